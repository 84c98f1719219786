//! Evaluators of other frameworks give the same verdicts and scores when they are adopted.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use karat_core::judgement::{EvalContext, Limits, ReturnForm};
use karat_sandbox::{
    AdoptError, AdoptedFunction, Framework, Function, FunctionRunner, Isolation, ProjectRules, adopt, helper_name,
    validate_with,
};
use rstest::rstest;
use serde::Deserialize;
use serde_json::json;

use crate::support::{Source, fixtures, outcome, sandbox, sources};

/// An input of `inputs.jsonl`.
#[derive(Deserialize)]
struct Case {
    output: String,
    reference: String,
}

/// A framework's result for one input.
#[derive(Deserialize, Debug, PartialEq)]
struct Expected {
    evaluator: String,
    input: usize,
    /// Null if the framework has only scores.
    passed: Option<bool>,
    score: Option<f64>,
}

fn read_lines<T: for<'d> Deserialize<'d>>(file: &str) -> Vec<T> {
    let text = fs::read_to_string(fixtures().join("adopt").join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn adopt_alone(source: &str, name: Option<&str>) -> Result<AdoptedFunction, AdoptError> {
    adopt(source.as_bytes(), name, &|_| false)
}

/// Validates an adopted function in a project that allows its imports.
fn function_of(adopted: &AdoptedFunction) -> Function {
    let helper = |name: &str| {
        adopted.helper.as_ref().filter(|_| name == helper_name(&adopted.name)).map(|code| code.clone().into_bytes())
    };
    let rules = ProjectRules {
        imports: &adopted.imports,
        returns: ReturnForm::Contract,
        helper: &helper,
        ..ProjectRules::default()
    };
    validate_with(adopted.code.as_bytes(), &rules).unwrap_or_else(|findings| panic!("{}\n{findings:#?}", adopted.code))
}

fn expected_framework(name: &str) -> Framework {
    match name.split('_').next().unwrap() {
        "promptfoo" => Framework::Promptfoo,
        "braintrust" => Framework::Braintrust,
        "langfuse" => Framework::Langfuse,
        "langsmith" => Framework::Langsmith,
        "phoenix" => Framework::Phoenix,
        "mlflow" => Framework::Mlflow,
        "deepeval" => Framework::Deepeval,
        other => {
            assert_eq!(other, "openai");
            Framework::Openai
        }
    }
}

#[test]
fn adopted_evaluators_agree_with_their_framework() {
    let cases: Vec<Case> = read_lines("inputs.jsonl");
    let mut expected: BTreeMap<(String, usize), Expected> = BTreeMap::new();
    for row in read_lines::<Expected>("expected.jsonl") {
        expected.insert((row.evaluator.clone(), row.input), row);
    }
    let all = sources("adopt");
    assert_eq!((all.len(), cases.len(), expected.len()), (24, 10, 240));
    let mut differences = Vec::new();
    for Source { name, text, .. } in all {
        let adopted = adopt_alone(&text, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(adopted.framework, expected_framework(&name), "{name}");
        assert_eq!(adopted.obstacles, Vec::<String>::new(), "{name}");
        let definition = text.find("\ndef ").or(text.find("\nclass ")).map_or(0, |start| start + 1);
        let code = adopted.helper.as_deref().unwrap_or(&adopted.code);
        assert!(code.contains(text[definition..].trim_end()), "{name}: the evaluator is unchanged in\n{code}");
        let function = function_of(&adopted);
        let eval_id = function.name.clone();
        let functions = vec![Arc::new(function)];
        let runner = FunctionRunner::new(sandbox(), functions, Limits::default(), Isolation::default(), 1).unwrap();
        for (input, Case { output, reference }) in cases.iter().enumerate() {
            let trace = json!({"steps": [{"input": {"message": "weather?"}, "output": {"response": output}}]});
            let reference = if name == "openai_exact" || name == "openai_numbers" {
                json!({"reference_answer": reference})
            } else {
                json!(reference)
            };
            let params = json!({"keywords": ["tokyo", "degrees"], "limit": 40, "length": "short"});
            let context =
                EvalContext { case: None, reference: Some(reference), params: params.as_object().unwrap().clone() };
            let judgement = runner.judge_text(&eval_id, trace.to_string().as_bytes(), &context);
            let row = &expected[&(name.clone(), input)];
            let score = judgement.score.or_else(|| match outcome(&judgement) {
                "pass" => Some(1.0),
                "fail" => Some(0.0),
                _ => None,
            });
            let is_same_score = match (score, row.score) {
                (Some(actual), Some(expected)) => (actual - expected).abs() < 1e-9,
                (actual, expected) => actual == expected,
            };
            let is_same_verdict = match row.passed {
                Some(passed) => outcome(&judgement) == if passed { "pass" } else { "fail" },
                None => outcome(&judgement) == "not applicable" || row.score.is_some(),
            };
            if !is_same_score || !is_same_verdict {
                differences.push(format!("{name} on {input}: {judgement:?} instead of {row:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn moves_an_evaluator_with_the_prefix_to_a_helper() {
    let source = "import math\n\neval_limit = 3\n\ndef eval_size(output, expected):\n    return math.floor(len(output) / eval_limit)\n";
    let adopted = adopt_alone(source, None).unwrap();
    assert_eq!((adopted.name.as_str(), adopted.imports.as_slice()), ("eval_size", &["math".to_owned()][..]));
    assert!(adopted.helper.as_ref().unwrap().contains("eval_limit = 3\n"));
    function_of(&adopted);
}

#[test]
fn copies_only_statements_that_the_evaluator_needs() {
    let source = "import os, re\nimport openai\n\nclient = openai.OpenAI(api_key=os.environ['KEY'])\n\n\n\
                  def clean(text):\n    return re.sub(r'\\W', '', text)\n\n\ndef task(item):\n    return client.responses.create()\n\n\n\
                  def same(input, output, expected):\n    return clean(output) == clean(expected)\n\n\ntask(1)\n";
    let adopted = adopt_alone(source, None).unwrap();
    assert_eq!(adopted.obstacles, Vec::<String>::new());
    assert!(adopted.code.contains("import re\n") && !adopted.code.contains("openai"), "{}", adopted.code);
    function_of(&adopted);
}

#[rstest]
#[case(
    "import openai\ndef get_assert(output, context):\n    return openai.grade(output)\n",
    "it imports 'openai', which needs a model"
)]
#[case(
    "import requests\ndef f(output, expected):\n    return requests.get(output).ok\n",
    "it imports 'requests', which needs the network"
)]
#[case(
    "import numpy as np\ndef f(output, expected):\n    return np.mean([1])\n",
    "it imports 'numpy', which needs native code"
)]
#[case(
    "import os\ndef f(output, expected):\n    return os.environ['X'] == output\n",
    "it imports 'os', which needs files, a process or the environment"
)]
#[case(
    "from .util import same\ndef f(output, expected):\n    return same(output, expected)\n",
    "it imports '.util', which is not a file in its folder"
)]
#[case(
    "import transformers.pipelines as t\ndef f(output, expected):\n    return t.score(output)\n",
    "it imports 'transformers.pipelines', which needs a model"
)]
fn reports_why_an_evaluator_cannot_run(#[case] source: &str, #[case] obstacle: &str) {
    assert_eq!(adopt_alone(source, None).unwrap().obstacles, [obstacle]);
}

#[rstest]
#[case("def f(a, b):\n    return True\n", None, "no evaluator of a known framework")]
#[case("def f(output, expected): pass\ndef g(output, expected): pass\n", None, "several evaluators: f, g")]
#[case("def f(output, expected): pass\n", Some("g"), "no function 'g' at the top level")]
#[case("def f(", None, "the file is not valid Python")]
fn reports_files_without_one_evaluator(#[case] source: &str, #[case] name: Option<&str>, #[case] message: &str) {
    assert_eq!(adopt_alone(source, name).unwrap_err().to_string(), message);
}

#[test]
fn reports_unknown_parameters() {
    let source = "def score(outputs, reference_outputs, judge):\n    return judge(outputs)\n";
    let adopted = adopt_alone(source, Some("score")).unwrap();
    assert_eq!(adopted.obstacles, ["its parameter 'judge' is unknown to LangSmith"]);
}

#[test]
fn runs_coroutines_that_await_no_external_call() {
    let judge = |body: &str| {
        let adopted =
            adopt_alone(&format!("import json\n\n\nasync def same(output, expected):\n    {body}\n"), None).unwrap();
        let functions = vec![Arc::new(function_of(&adopted))];
        let runner = FunctionRunner::new(sandbox(), functions, Limits::default(), Isolation::default(), 1).unwrap();
        runner.judge_text("eval_same", br#"{"steps": []}"#, &EvalContext::default())
    };
    assert_eq!(outcome(&judge("return 1")), "pass");
    assert_eq!(
        outcome(&judge("await _Forever()\n\n\nclass _Forever:\n    def __await__(self):\n        yield 1")),
        "exception"
    );
}
