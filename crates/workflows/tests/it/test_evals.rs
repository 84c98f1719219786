use karat_core::judgement::Limits;
use karat_sandbox::Isolation;
use karat_workflows::context::sandbox::SandboxOptions;
use karat_workflows::test_evals::{Request, test_evals};
use karat_workflows::{Error, ErrorKind};

use crate::project::TestProject;

fn test(project: &TestProject) -> Result<(usize, usize, usize), Error> {
    let options = SandboxOptions { limits: Limits::default(), isolation: Isolation::default(), jobs: 2 };
    let request = Request { functions: Vec::new(), options };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let report = runtime.block_on(test_evals(&request, &project.context()))?;
    let summary = report.summary;
    Ok((summary.passed, summary.failed, summary.errored))
}

fn project() -> TestProject {
    TestProject::new().file("evals/functions/short.py", "def eval_short(trace):\n    return len(trace) < 2, 'long'\n")
}

#[test]
fn judges_the_cases_of_a_function() {
    let cases = "{\"trace\": {}, \"expected\": true}\n{\"trace\": {\"a\": 1, \"b\": 2}, \"expected\": true}\n";
    assert_eq!(test(&project().file("evals/functions/short.cases.jsonl", cases)).unwrap(), (1, 1, 0));
    assert_eq!(test(&project()).unwrap(), (0, 0, 0));
}

#[test]
fn rejects_invalid_cases_without_running() {
    let error = test(&project().file("evals/functions/short.cases.jsonl", "{\"trace\": {}}\n")).unwrap_err();
    assert_eq!((error.kind, error.files[0].name.as_str()), (ErrorKind::Invalid, "evals/functions/short.cases.jsonl"));
    let error = test(&TestProject::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NothingSelected);
}
