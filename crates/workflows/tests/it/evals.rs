use karat_workflows::evals::{AddRequest, NewEval, ShowRequest, add, history, list, new_eval, show};
use karat_workflows::{ErrorKind, Hint};

use crate::project::TestProject;

const FIRST: &str = "def eval_tone(trace):\n    return True, 'first'\n";
const SECOND: &str = "def eval_tone(trace):\n    return True, 'second'\n";

async fn add_tone(project: &TestProject, code: &str) -> (u64, bool) {
    project.files.write("evals/functions/tone.py", code);
    let request = AddRequest { functions: vec!["tone".to_owned()], note: Some(" why ".to_owned()) };
    let added = add(request, &project.context()).await.unwrap();
    (added.evals[0].version, added.evals[0].added)
}

#[tokio::test]
async fn adds_shows_and_lists_versions() {
    let project = TestProject::new();
    assert_eq!(add_tone(&project, FIRST).await, (1, true));
    assert_eq!(add_tone(&project, FIRST).await, (1, false));
    assert_eq!(add_tone(&project, SECOND).await, (2, true));
    assert!(project.notices().is_empty());
    assert_eq!(add_tone(&project, FIRST).await, (3, true));
    let warning = "warning: eval_tone: the code of version 1 replaces that of version 2 (why)";
    assert_eq!(project.notices(), [warning]);

    let context = project.context();
    let evals = list(&context).await.unwrap().evals;
    assert_eq!((evals.len(), evals[0].newest_version, evals[0].created_at), (1, 3, context.clock.now()));
    let details = show(ShowRequest { eval: "tone".to_owned(), version: Some(2) }, &context).await.unwrap();
    assert_eq!(details.version.code, SECOND);
    assert_eq!(history("eval_tone", &context).await.unwrap().versions.len(), 3);
    let error = show(ShowRequest { eval: "tome".to_owned(), version: None }, &context).await.unwrap_err();
    assert_eq!((error.kind, error.hints), (ErrorKind::NotFound, vec![Hint::from("did you mean 'eval_tone'?")]));
}

#[test]
fn new_eval_never_overwrites() {
    let project = TestProject::new();
    let written = NewEval {
        name: "tone".to_owned(),
        function_file: "evals/functions/tone.py".to_owned(),
        wrote_function: true,
        cases_file: "evals/functions/tone.cases.jsonl".to_owned(),
    };
    assert_eq!(new_eval("eval_tone", &project.context()).unwrap(), written);
    assert!(project.files.read("evals/functions/tone.py").contains("def eval_tone("));
    let error = new_eval("tone", &project.context()).unwrap_err();
    assert_eq!(error.message, "evals/functions/tone.py already exists");
    std::fs::remove_file(project.files.path().join("evals/functions/tone.cases.jsonl")).unwrap();
    assert_eq!(new_eval("tone", &project.context()).unwrap(), NewEval { wrote_function: false, ..written });
}
