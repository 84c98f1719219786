use karat_workflows::ErrorKind;
use karat_workflows::check_functions::{Request, check_functions};

use crate::project::TestProject;

#[test]
fn reports_findings_and_unreadable_files() {
    let project = TestProject::new()
        .file("good.py", "def eval_good(trace):\n    return True, ''\n")
        .file("bad.py", "import os\n\ndef eval_bad(trace):\n    return True, ''\n");
    let functions = ["good.py", "bad.py", "gone.py"].map(str::to_owned).to_vec();
    let report = check_functions(&Request { functions }, &project.context()).unwrap();
    let [good, bad, gone] = &report.files[..] else { panic!("{report:?}") };
    assert_eq!((good.function.as_deref(), good.findings.len()), (Some("eval_good"), 0));
    let finding = &bad.findings[0];
    assert_eq!((finding.rule.as_str(), finding.line, finding.column), ("import", 1, 8));
    assert_eq!(&bad.text[finding.range.clone()], "os");
    assert!(gone.error.as_ref().is_some_and(|error| error.starts_with("cannot read gone.py")), "{gone:?}");
    assert!(good.is_valid() && !bad.is_valid() && !gone.is_valid());
}

#[test]
fn a_project_without_functions_selects_nothing() {
    let project = TestProject::new();
    let error = check_functions(&Request { functions: Vec::new() }, &project.context()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NothingSelected);
    assert!(project.notices().is_empty());
}
