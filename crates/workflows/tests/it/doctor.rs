use std::ops::ControlFlow;

use karat_workflows::ErrorKind;
use karat_workflows::doctor::{Event, doctor};
use karat_workflows::settings::Surroundings;

use crate::project::TestProject;

fn nothing(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn a_guest_that_cannot_be_read_is_a_problem() {
    let project = TestProject::new();
    let guest = Some(project.files.path().join("gone.wasm"));
    let report = doctor(&Surroundings { guest, ..Surroundings::default() }, &mut nothing);
    assert!(!report.is_healthy && report.guest.is_none());
    let error = report.error.unwrap();
    assert_eq!((error.kind, Some(&error.message)), (ErrorKind::Unavailable, report.problem.as_ref()));
}

#[test]
fn a_sink_that_breaks_ends_the_examination() {
    let mut seen = 0;
    let project = TestProject::new();
    let report = doctor(project.context().surroundings, &mut |_: Event| {
        seen += 1;
        ControlFlow::Break(())
    });
    assert_eq!((seen, report.load_ms), (1, None));
}
