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
fn copies_modules_of_the_project() {
    let scores =
        "from .words import split\n\n\ndef share(a, b):\n    return len(split(a) & split(b)) / len(split(b))\n";
    let source =
        "from lib.scores import share\n\n\ndef overlap(output, expected):\n    return share(output, expected)\n";
    let project = project_with_python()
        .file("evals/quality/overlap.py", source)
        .file("src/lib/scores.py", scores)
        .file("src/lib/words.py", "def split(text):\n    return set(text.lower().split())\n");
    let output = project.run(["eval", "adopt", "evals/quality/overlap.py", "--reference", "sunny in Rome"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    for part in [
        "passed with score 0.666",
        "wrote evals/functions/overlap.py",
        "wrote evals/functions/_overlap_lib_scores.py",
        "wrote evals/functions/_overlap_words.py",
    ] {
        assert!(output.stdout.contains(part), "no {part:?} in {}", output.stdout);
    }
    assert_eq!(project.run(["eval", "check", "overlap"]).code, Some(0));
}

#[test]
fn a_module_outside_of_the_project_is_not_copied() {
    let source =
        "from lib.scores import share\n\n\ndef overlap(output, expected):\n    return share(output, expected)\n";
    let project = project_with_python()
        .file("lib/scores.py", "def share(a, b):\n    return 1\n")
        .file("project/karat.json", json!({}))
        .file("project/overlap.py", source);
    let output = project.run(["eval", "adopt", "project/overlap.py", "--config", "project/karat.json"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("it imports 'lib.scores', which the sandbox does not have"), "{}", output.stdout);
}

#[test]
fn a_constructor_without_its_arguments_is_refused() {
    let source = "\
from deepeval.metrics import BaseMetric


class NoWord(BaseMetric):
    def __init__(self, word):
        self.word = word

    def measure(self, test_case):
        self.score = float(self.word not in test_case.actual_output)
        return self.score
";
    let project = project_with_python().file("metrics.py", source);
    let output = project.run(["eval", "adopt", "metrics.py"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("its constructor needs 'word': pass --params"), "{}", output.stdout);
    assert!(!project.path().join("evals/functions/no_word.py").exists());
    let output = project.run(["eval", "adopt", "metrics.py", "--params", "{\"word\": \"sunny\"}"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("test run: failed with score 0"), "{}", output.stdout);
}

#[test]
fn hints_at_a_function_only_if_it_can_be_adopted() {
    let plain =
        "def clean(text):\n    return text\n\n\ndef same(prediction, expected):\n    return prediction == expected\n";
    let project = project_with_python().file("plain.py", plain).file("other.py", "def f(a, b):\n    return a\n");
    let output = project.run(["eval", "adopt", "plain.py"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("choose a function: same\n"), "{}", output.stderr);
    let output = project.run(["eval", "adopt", "plain.py:same"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("same from plain.py, a plain function"), "{}", output.stdout);
    for source in ["other.py", "other.py:f"] {
        let output = project.run(["eval", "adopt", source]);
        assert_eq!(output.code, Some(2));
        assert!(!output.stderr.contains("choose a function"), "{}", output.stderr);
        let stderr = output.unwrapped_stderr();
        assert!(stderr.contains("hint: expected the parameters of promptfoo"), "{stderr}");
        assert!(stderr.contains("hint: karat eval new NAME"), "{stderr}");
    }
}
