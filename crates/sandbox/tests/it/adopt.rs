//! Evaluators of other frameworks give the same verdicts and scores when they are adopted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use karat_core::judgement::{EvalContext, Limits, ReturnForm};
use karat_sandbox::{
    AdoptError, AdoptRequest, AdoptedFunction, Framework, Function, FunctionRunner, Isolation, ProjectModule,
    ProjectRules, adopt, helper_name, validate_with,
};
use rstest::rstest;
use serde::Deserialize;
use serde_json::{Value, json};

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
    adopt_with(source, name, &[])
}

/// Adopts an evaluator of a project with the given modules: names and sources.
fn adopt_with(source: &str, function: Option<&str>, modules: &[(&str, &str)]) -> Result<AdoptedFunction, AdoptError> {
    let find_module = |_: &Path, name: &str| {
        let (name, source) = modules.iter().find(|(module, _)| *module == name)?;
        Some(ProjectModule { path: name.into(), source: source.as_bytes().to_vec() })
    };
    let path = Path::new("evaluators.py");
    adopt(&AdoptRequest { source: source.as_bytes(), path, function, name: None, find_module: &find_module })
}

/// Validates an adopted function in a project that allows its imports.
fn function_of(adopted: &AdoptedFunction) -> Function {
    let helper = |name: &str| adopted.helpers.get(name).map(|code| code.clone().into_bytes());
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
        let code = adopted.helpers.get(&helper_name(&adopted.name)).unwrap_or(&adopted.code);
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
    assert!(adopted.helpers["_size"].contains("eval_limit = 3\n"));
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
    "it imports '.util', which is not a file of the project"
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
#[case("def f(output, expected): pass\n", Some("g"), "no function 'g' in the file")]
#[case("def f(", None, "the file is not valid Python")]
#[case("def f(output, example): pass\n", Some("f"), "no evaluator of a known framework")]
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

/// Judges a trace with an adopted evaluator. Returns the outcome.
fn judge(adopted: &AdoptedFunction, trace: &Value, reference: Value, params: &Value) -> String {
    assert_eq!(adopted.obstacles, Vec::<String>::new());
    let functions = vec![Arc::new(function_of(adopted))];
    let runner = FunctionRunner::new(sandbox(), functions, Limits::default(), Isolation::default(), 1).unwrap();
    let params = params.as_object().cloned().unwrap_or_default();
    let context = EvalContext { case: None, reference: Some(reference), params };
    outcome(&runner.judge_text(&adopted.name, trace.to_string().as_bytes(), &context)).to_owned()
}

fn trace_of(output: &Value) -> Value {
    json!({"steps": [{"input": {"message": "Why?"}, "output": output}]})
}

/// Returns the outcome of an evaluator on an output.
fn outcome_of(source: &str, name: Option<&str>, output: &Value, reference: Value) -> String {
    judge(&adopt_alone(source, name).unwrap(), &trace_of(output), reference, &json!({}))
}

const BRAINTRUST_OBJECT: &str = "\
from autoevals import Score

def created(output, expected=None, **kwargs):
    if isinstance(output, str):
        return Score(name='created', score=0)
    return Score(name='created', score=float(output['n'] == 1))
";

const MLFLOW_OBJECT: &str = "\
from mlflow.genai.scorers import scorer

@scorer
def created(outputs):
    return outputs['n'] == 1
";

const PHOENIX_OBJECT: &str = "\
from phoenix.evals import create_evaluator

@create_evaluator(name='n')
def created(output):
    return output.get('n') == 1
";

const PROMPTFOO_OBJECT: &str = "def get_assert(output, context):\n    return output['n'] == 1\n";

#[rstest]
#[case(BRAINTRUST_OBJECT)]
#[case(MLFLOW_OBJECT)]
#[case(PHOENIX_OBJECT)]
#[case(PROMPTFOO_OBJECT)]
fn an_output_with_other_keys_is_given_as_the_object(#[case] source: &str) {
    for output in [json!({"response": "done", "n": 1}), json!({"n": 1}), json!({"response": "", "value": {"n": 1}})] {
        assert_eq!(outcome_of(source, None, &output, Value::Null), "pass", "{output}");
    }
    assert_eq!(outcome_of(source, None, &json!({"response": "done", "n": 2}), Value::Null), "fail");
}

#[rstest]
#[case(json!("done"))]
#[case(json!({"response": "done"}))]
#[case(json!({"response": "done", "reasoning": "because", "toolCalls": []}))]
fn an_output_in_karats_own_form_is_given_as_text(#[case] output: Value) {
    let source = "def same(output, expected):\n    return output.upper() == expected\n";
    assert_eq!(outcome_of(source, None, &output, json!("DONE")), "pass");
}

#[rstest]
// An explicit default wins.
#[case("outputs.get('refunded', False) is False", json!({"response": "no"}), "pass")]
#[case("outputs.get('answer', '') == ''", json!({"response": "no"}), "pass")]
// A name that does not mean the text is absent.
#[case("outputs.get('error') is None", json!({"response": "no"}), "pass")]
#[case("outputs.get('answer') == 'no'", json!({"response": "no"}), "pass")]
#[case("'refunded' in outputs", json!({"response": "no"}), "fail")]
#[case("'response' in outputs and outputs['summary'] == 'no'", json!({"response": "no"}), "pass")]
// Nothing is added to several keys.
#[case("outputs.get('answer') is None", json!({"response": "no", "n": 1}), "pass")]
#[case("outputs['answer'] == 'no'", json!({"response": "no", "n": 1}), "exception")]
#[case("outputs['n'] == 1 and 'n' in outputs", json!({"response": "no", "n": 1}), "pass")]
fn keys_that_an_output_lacks_are_not_invented(#[case] check: &str, #[case] output: Value, #[case] expected: &str) {
    let source = format!("def f(outputs: dict, reference_outputs: dict) -> bool:\n    return {check}\n");
    assert_eq!(outcome_of(&source, None, &output, json!("")), expected, "{check}");
}

#[rstest]
#[case("prediction: str, expected: str")]
#[case("response, reference")]
#[case("answer, gold, threshold=1")]
#[case("ground_truth, actual")]
#[case("output, target")]
fn a_named_function_of_two_texts_is_adopted(#[case] parameters: &str) {
    let names: Vec<&str> = parameters.split(',').map(|part| part.split([':', '=']).next().unwrap().trim()).collect();
    let source =
        format!("def same({parameters}) -> float:\n    return float({}.strip() == {}.strip())\n", names[0], names[1]);
    assert_eq!(adopt_alone(&source, Some("same")).unwrap().framework, Framework::Plain, "{parameters}");
    for (response, expected) in [("Paris ", "pass"), ("Rome", "fail")] {
        assert_eq!(outcome_of(&source, Some("same"), &json!({"response": response}), json!("Paris")), expected);
    }
    assert_eq!(adopt_alone(&source, None).unwrap_err(), AdoptError::NoneFound { functions: vec!["same".to_owned()] });
}

const WITH_MODULES: &str = "\
import numpy
from langfuse import Evaluation
from evals.scorers import share as part
from evals import limits

def enough(output, expected_output):
    from .words import words
    return Evaluation(name='e', value=part(words(output), words(expected_output)) >= limits.LIMIT)
";

const SCORERS: &str = "\
import openai
import math
from .words import unique

def share(a, b):
    return math.floor(100 * len(unique(a) & unique(b)) / len(b))

def judge(a):
    return openai.judge(a)
";

#[test]
fn modules_of_the_project_are_copied_as_far_as_they_are_needed() {
    let words = "def words(text):\n    return text.split()\n\ndef unique(words):\n    return set(words)\n";
    let modules = [("evals.scorers", SCORERS), ("evals.limits", "LIMIT = 50\n"), (".words", words)];
    let adopted = adopt_with(WITH_MODULES, None, &modules).unwrap();
    let names: Vec<&str> = adopted.helpers.keys().map(String::as_str).collect();
    assert_eq!(names, ["_enough_evals_limits", "_enough_evals_scorers", "_enough_words"]);
    assert!(!adopted.helpers["_enough_evals_scorers"].contains("openai"), "{adopted:#?}");
    assert_eq!(adopted.imports, ["math"]);
    for (response, expected) in [("a b c", "pass"), ("a d", "fail")] {
        assert_eq!(judge(&adopted, &trace_of(&json!(response)), json!("a b c"), &json!({})), expected);
    }
}

#[rstest]
#[case(
    "import openai\n\ndef f(a):\n    return openai.judge(a)\n",
    "it imports 'lib.scores', which imports 'openai', which needs a model"
)]
#[case("def g(a):\n    return a\n", "it imports 'lib.scores', which has no 'f' at the top level")]
#[case("def f(:", "it imports 'lib.scores', which is not valid Python")]
fn says_why_a_module_of_the_project_cannot_run(#[case] module: &str, #[case] obstacle: &str) {
    let source = "from lib.scores import f\n\ndef same(output, expected):\n    return f(output)\n";
    assert_eq!(adopt_with(source, None, &[("lib.scores", module)]).unwrap().obstacles, [obstacle]);
}

#[test]
fn an_evaluator_inside_of_a_function_is_adopted() {
    let source = "\
LIMIT = 8

def build():
    from mlflow.genai.scorers import scorer
    import math
    unused = 1

    @scorer
    def short(outputs):
        text = '''a
b'''
        return math.floor(len(outputs)) < LIMIT and len(text) == 3

    return [short]
";
    for name in [None, Some("short")] {
        assert_eq!(outcome_of(source, name, &json!("short"), Value::Null), "pass");
        assert_eq!(outcome_of(source, name, &json!("not short"), Value::Null), "fail");
    }
}

#[test]
fn a_closure_is_refused() {
    let source = "\
def build(judge):
    from mlflow.genai.scorers import scorer

    @scorer
    def graded(outputs):
        return judge.evaluate(outputs)

    return graded
";
    let adopted = adopt_alone(source, Some("graded")).unwrap();
    assert_eq!(adopted.obstacles, ["it is a closure: it uses 'judge' of the function 'build'"]);
}

#[test]
fn only_free_names_are_copied() {
    let source = "\
import sys
import logging
import openai

score = openai.score()
logging.basicConfig(filename='log')
TABLE = {}
TABLE['a'] = 1

def nonempty(output, expected, client: openai.OpenAI = None):
    score = TABLE.get('a') if output else 0.0
    logging.info('x')
    return score

for score in []:
    print(score, file=sys.stderr)
if __name__ == '__main__':
    import json, logging
    TABLE['a'] = open('table.json')
";
    let adopted = adopt_alone(source, None).unwrap();
    assert_eq!(adopted.obstacles, Vec::<String>::new());
    for absent in ["sys", "import openai", "basicConfig", "'__main__'", "open(", "import json"] {
        assert!(!adopted.code.contains(absent), "{absent} in\n{}", adopted.code);
    }
    assert_eq!(judge(&adopted, &trace_of(&json!("text")), Value::Null, &json!({})), "pass");
}

#[test]
fn phoenix_evaluators_get_the_example() {
    let source = "\
from phoenix.client.experiments import create_evaluator

@create_evaluator(name='same', kind='CODE')
def same(output: dict, example) -> float:
    is_same = output['n'] == example.output['n'] == example.metadata['n']
    return float(is_same and example.input['question'] == 'Why?')
";
    let adopted = adopt_alone(source, None).unwrap();
    for (n, expected) in [(1, "pass"), (2, "fail")] {
        let trace = trace_of(&json!({"n": n, "m": 0}));
        assert_eq!(judge(&adopted, &trace, json!({"n": 1}), &json!({"n": 1})), expected);
    }
}

#[test]
fn deepeval_metrics_get_metadata() {
    let source = "\
from deepeval.metrics import BaseMetric

class Slots(BaseMetric):
    def measure(self, test_case):
        meta = test_case.metadata or {}
        self.score = float(meta['slots'] == 2 and test_case.additional_metadata == meta)
        return self.score
";
    let adopted = adopt_alone(source, None).unwrap();
    for (slots, expected) in [(2, "pass"), (3, "fail")] {
        let trace = trace_of(&json!({"response": "ok", "n": 1}));
        assert_eq!(judge(&adopted, &trace, Value::Null, &json!({"slots": slots})), expected);
    }
}

const NO_WORD: &str = "\
from deepeval.metrics import BaseMetric

class Base(BaseMetric):
    def __init__(self, word: str, threshold: float = 1.0):
        self.word, self.threshold = word, threshold

    def measure(self, test_case):
        self.score = float(self.word not in test_case.actual_output)
        return self.score

class NoWord(Base):
    pass
";

#[test]
fn constructors_are_filled_from_params() {
    let adopted = adopt_alone(NO_WORD, Some("NoWord")).unwrap();
    assert_eq!(adopted.required_params, ["word"]);
    let trace = trace_of(&json!({"response": "a bad word"}));
    assert_eq!(judge(&adopted, &trace, Value::Null, &json!({"word": "good"})), "pass");
    assert_eq!(judge(&adopted, &trace, Value::Null, &json!({"word": "bad"})), "fail");
    assert_eq!(judge(&adopted, &trace, Value::Null, &json!({"word": "bad", "threshold": 0})), "pass");
    let source = NO_WORD.replace("word: str", "model: Model");
    let obstacles = adopt_alone(&source, Some("NoWord")).unwrap().obstacles;
    assert_eq!(obstacles, ["its constructor takes 'model', which needs a model"]);
}

#[rstest]
#[case("async ", "await ")]
#[case("", "")]
fn braintrust_evaluators_get_the_tool_calls_of_the_trace(#[case] is_async: &str, #[case] wait: &str) {
    let source = format!(
        "\
from braintrust import Score

{is_async}def tools(input, output, expected, trace) -> float:
    spans = {wait}trace.get_spans(span_type=['tool'])
    names = [span.span_attributes.get('name') for span in spans]
    count = len({wait}trace.get_spans())
    return float(names == expected and spans[0].input == {{'q': 1}} and count == 2)
"
    );
    let adopted = adopt_alone(&source, None).unwrap();
    let calls = json!([{"name": "search", "arguments": {"q": 1}, "result": 2}]);
    let trace = json!({"steps": [{"input": "q", "output": {"response": "a"}, "tool_calls": calls}]});
    assert_eq!(judge(&adopted, &trace, json!(["search"]), &json!({})), "pass");
    assert_eq!(judge(&adopted, &trace, json!(["fetch"]), &json!({})), "fail");
}

#[rstest]
#[case(
    "from deepeval.metrics import BaseMetric\nfrom deepeval.metrics.utils import initialize_model\n\n\
     class M(BaseMetric):\n    def measure(self, test_case):\n        return initialize_model().score\n",
    "it uses 'initialize_model' of deepeval.metrics.utils, which needs a model"
)]
#[case(
    "from braintrust import wrap_openai\n\ndef f(output, expected):\n    return wrap_openai()\n",
    "it uses 'wrap_openai' of braintrust, which needs a model"
)]
#[case(
    "import langfuse\n\ndef f(output, expected_output, **kwargs):\n    from langfuse.openai import OpenAI\n    return OpenAI()\n",
    "it uses 'OpenAI' of langfuse.openai, which needs a model"
)]
fn says_that_a_member_of_the_framework_needs_a_model(#[case] source: &str, #[case] obstacle: &str) {
    assert_eq!(adopt_alone(source, None).unwrap().obstacles, [obstacle]);
}

#[test]
fn says_that_a_base_class_is_in_another_file() {
    let source = "from evals.base import Det\n\nclass Best(Det):\n    def _evaluate(self, case):\n        return 1.0\n";
    for name in [None, Some("Best")] {
        let error = adopt_alone(source, name).unwrap_err();
        assert_eq!(error.to_string(), "the base class 'Det' of 'Best' is in another file, 'evals.base'");
    }
}

#[test]
fn notes_say_what_fills_the_context_and_which_defaults_count() {
    let notes = |source: &str| adopt_alone(source, None).unwrap().notes.join("\n");
    let promptfoo = notes("def get_assert(output, context):\n    return context['vars']['n'] in output\n");
    assert!(promptfoo.contains("context[\"vars\"] is filled from the 'params'"), "{promptfoo}");
    assert!(!notes(PROMPTFOO_OBJECT).contains("vars"));
    let source = "def f(run, example):\n    return run.outputs.get('answer', '') == ''\n";
    assert!(notes(source).contains("it reads 'answer' of the output with a default, which counts without the key"));
}
