use karat_workflows::functions::{FunctionFile, find_functions, load_functions, no_functions};
use karat_workflows::{Error, ErrorKind, Hint};

use crate::project::TestProject;

fn load(project: &TestProject, arguments: &[&str]) -> Result<Vec<(String, String)>, Error> {
    let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
    let loaded = load_functions(&arguments, &project.context().settings)?;
    Ok(loaded.into_iter().map(|loaded| (loaded.display_path, loaded.function.name.clone())).collect())
}

fn project() -> TestProject {
    TestProject::new()
        .file("evals/functions/length.py", "def eval_length(trace):\n    return True, ''\n")
        .file("evals/functions/tone.py", "def eval_tone(trace):\n    return True, ''\n")
        .file("evals/functions/_shared.py", "not Python")
}

#[test]
fn loads_each_function_once_by_name_or_path() {
    let project = project();
    let tone = ("evals/functions/tone.py".to_owned(), "eval_tone".to_owned());
    let length = ("evals/functions/length.py".to_owned(), "eval_length".to_owned());
    assert_eq!(
        load(&project, &["tone", "eval_length", "evals/functions/tone.py"]).unwrap(),
        [tone.clone(), length.clone()]
    );
    assert_eq!(load(&project, &["evals/functions"]).unwrap(), [length.clone(), tone.clone()]);
    assert_eq!(load(&project, &[]).unwrap(), [length, tone]);
}

#[test]
fn suggests_similar_names_and_files() {
    for (argument, hint) in
        [("tome", "did you mean 'eval_tone'?"), ("tome.py", "did you mean 'evals/functions/tone.py'?")]
    {
        let error = load(&project(), &[argument]).unwrap_err();
        assert_eq!((error.kind, &error.hints[..]), (ErrorKind::NotFound, &[Hint::from(hint)][..]), "{argument}");
    }
}

#[test]
fn returns_the_findings_of_all_invalid_files() {
    let project = project().file("a.py", "import os\n").file("b.py", "def eval_b():\n    pass\n");
    let error = load(&project, &["a.py", "tone", "b.py"]).unwrap_err();
    let files: Vec<(&str, bool)> =
        error.files.iter().map(|file| (file.name.as_str(), file.findings.is_empty())).collect();
    assert_eq!((error.kind, files), (ErrorKind::Invalid, vec![("a.py", false), ("b.py", false)]));
}

#[test]
fn rejects_functions_with_the_same_name() {
    let project = project().file("evals/functions/other.py", "def eval_tone(trace):\n    return True, ''\n");
    let functions = find_functions(&project.context().settings).unwrap();
    assert!(functions.get("eval_tone").is_none());
    let messages: Vec<String> =
        functions.broken("eval_tone").flat_map(FunctionFile::findings).map(|finding| finding.message).collect();
    assert_eq!(
        messages,
        [
            "'eval_tone' is also defined in evals/functions/tone.py",
            "'eval_tone' is also defined in evals/functions/other.py"
        ]
    );
}

#[test]
fn a_project_without_functions_selects_nothing() {
    let project = TestProject::new();
    assert!(load(&project, &[]).unwrap().is_empty());
    let error = no_functions(&project.context().settings);
    assert_eq!((error.kind, error.hints), (ErrorKind::NothingSelected, vec![Hint::NewEval]));
}
