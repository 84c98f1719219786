//! Checks every guarantee with the embedded guest.

use karat_sandbox::{Guest, Sandbox, check_guarantees};

#[test]
fn all_guarantees_hold() {
    let guest = Guest::find(None).expect("a build with Python");
    let sandbox = Sandbox::open(&guest).expect("a sandbox");
    let mut calls = 0;
    let checks = check_guarantees(&sandbox, |_| calls += 1).expect("a working sandbox");
    let violated: Vec<_> = checks.iter().filter(|check| check.violation.is_some()).collect();
    assert!(violated.is_empty(), "{violated:#?}");
    assert!(calls == checks.len() && calls > 20, "{calls}");
}
