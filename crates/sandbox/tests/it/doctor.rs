//! Checks every promise with the embedded guest.

use karat_sandbox::{Guest, Sandbox, check_promises};

#[test]
fn every_promise_holds() {
    let guest = Guest::find(None).expect("a build with Python");
    let sandbox = Sandbox::open(&guest).expect("a sandbox");
    let mut calls = 0;
    let checks = check_promises(&sandbox, |_| calls += 1).expect("a working sandbox");
    let violated: Vec<_> = checks.iter().filter(|check| check.violation.is_some()).collect();
    assert!(violated.is_empty(), "{violated:#?}");
    assert!(calls == checks.len() && calls > 20, "{calls}");
}
