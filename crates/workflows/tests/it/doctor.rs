use std::ops::ControlFlow;

use karat_workflows::ErrorKind;
use karat_workflows::doctor::{Event, doctor};
use karat_workflows::settings::ProcessEnv;

use crate::project::TestProject;

fn ignore(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn reports_an_unreadable_guest() {
    let project = TestProject::new();
    let guest = Some(project.files.path().join("gone.wasm"));
    let report = doctor(&ProcessEnv { guest, ..ProcessEnv::default() }, &mut ignore);
    assert!(!report.is_healthy && report.guest.is_none());
    let error = report.error.unwrap();
    assert_eq!((error.kind, Some(&error.message)), (ErrorKind::Unavailable, report.problem.as_ref()));
}

#[test]
fn stops_when_the_event_sink_breaks() {
    let mut seen = 0;
    let project = TestProject::new();
    let report = doctor(project.context().process_env, &mut |_: Event| {
        seen += 1;
        ControlFlow::Break(())
    });
    assert_eq!((seen, report.load_ms), (1, None));
}
