//! Every promise, tried with the Python that the build made.

use karat_sandbox::{Guest, Sandbox, try_promises};

#[test]
fn every_promise_holds() {
    let guest = Guest::find(None).expect("a build with Python");
    let sandbox = Sandbox::open(&guest).expect("a sandbox");
    let mut heard = 0;
    let trials = try_promises(&sandbox, |_| heard += 1).expect("a sandbox that works");
    let broken: Vec<_> = trials.iter().filter(|trial| trial.broken.is_some()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(heard == trials.len() && heard > 20, "{heard}");
}
