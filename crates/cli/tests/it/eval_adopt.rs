//! `karat eval adopt`.

use serde_json::{Value, json};

use crate::support::project_with_python;

const LANGFUSE: &str = "\
import math
import os

from langfuse import Evaluation, get_client

client = get_client()


def mentions(*, output, expected_output, **kwargs):
    found = expected_output in output
    return Evaluation(name='mentions', value=math.floor(found), comment='compared')


def run():
    client.run_experiment(evaluators=[mentions], name=os.environ['NAME'])
";

#[test]
fn writes_a_function_that_runs_in_a_case() {
    let project = project_with_python().file("evaluators.py", LANGFUSE);
    let output = project.run(["eval", "adopt", "evaluators.py", "--reference", "Tokyo"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    for part in [
        "mentions from evaluators.py, an evaluator of Langfuse",
        "test run: passed with score 1: compared",
        "wrote evals/functions/mentions.py",
        "\"evalImports\": [\"math\"]",
    ] {
        assert!(output.stdout.contains(part), "no {part:?} in {}", output.stdout);
    }
    // The project must allow the module.
    assert_eq!(project.run(["eval", "check", "mentions"]).code, Some(2));
    let project = project.file("karat.json", json!({"evalImports": ["math"]}));
    assert_eq!(project.run(["eval", "check", "mentions"]).code, Some(0));
    // Nothing is overwritten, and the same code is not an error.
    assert_eq!(project.run(["eval", "adopt", "evaluators.py"]).code, Some(0));
    let project = project.file("evaluators.py", LANGFUSE.replace("compared", "changed"));
    let output = project.run(["eval", "adopt", "evaluators.py"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("evals/functions/mentions.py already exists"), "{}", output.stderr);
    assert_eq!(project.run(["eval", "adopt", "evaluators.py", "--name", "mentions_2"]).code, Some(0));
}

#[test]
fn reports_why_an_evaluator_cannot_run() {
    let source = "import openai\n\n\ndef get_assert(output, context):\n    return openai.judge(output)\n";
    let project = project_with_python().file("assert.py", source);
    let output = project.run(["eval", "adopt", "assert.py:get_assert", "--format", "json"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report["obstacles"], json!(["it imports 'openai', which needs a model"]));
    assert_eq!(
        (&report["written"], &report["trial"], &report["evalId"]),
        (&json!(false), &json!(null), &json!("eval_assert"))
    );
}

#[test]
fn lists_the_evaluators_of_a_file() {
    let source = "def a(output, expected):\n    return 1\n\n\ndef b(output, expected):\n    return 0\n";
    let project = project_with_python().file("scores.py", source);
    let output = project.run(["eval", "adopt", "scores.py"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("several evaluators: a, b"), "{}", output.stderr);
    assert!(output.stderr.contains("karat eval adopt scores.py:a"), "{}", output.stderr);
    let output = project.run(["eval", "adopt", "scores.py:b", "--dry-run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("def b(output, expected):\n    return 0\n"), "{}", output.stdout);
    assert!(!project.path().join("evals/functions/b.py").exists());
}

#[test]
fn an_unknown_form_is_explained() {
    let project = project_with_python().file("plain.py", "def foo(a):\n    return a\n");
    for source in ["plain.py", "plain.py:foo"] {
        let output = project.run(["eval", "adopt", source]);
        assert_eq!(output.code, Some(2), "{}", output.both());
        let stderr = output.unwrapped_stderr();
        assert!(stderr.contains("hint: expected the parameters of promptfoo"), "{stderr}");
        assert!(stderr.contains("hint: karat eval new NAME") && !stderr.contains("name a function"), "{stderr}");
    }
}
