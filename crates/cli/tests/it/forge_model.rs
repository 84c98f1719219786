//! The config key `forge`: the model that drafts cases.

use rstest::rstest;
use serde_json::{Value, json};

use crate::forge::forge_project;
use crate::support::{ok_case, project};

#[rstest]
#[case(json!({"model": "openai:gpt-5", "temperature": 0.7, "seed": 1, "maxOutputTokens": 9000}), None)]
#[case(json!(null), None)]
#[case(json!({"modell": "openai:gpt-5"}), Some("did you mean 'model'?"))]
#[case(json!({"model": 5}), Some("'model' must be a string"))]
#[case(json!({"model": "x:y", "temperature": -1}), Some("'temperature' must be a number of at least 0"))]
#[case(json!({"model": "x:y", "maxOutputTokens": 0}), Some("'maxOutputTokens' must be"))]
#[case(json!("openai:gpt-5"), Some("must be an object"))]
fn validates_the_forge_key(#[case] forge: Value, #[case] message: Option<&str>) {
    let project = project()
        .file("karat.json", json!({ "forge": forge }))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["check"]);
    match message {
        None => assert_eq!(output.code, Some(0), "{}", output.both()),
        Some(message) => {
            assert_eq!(output.code, Some(2), "{}", output.both());
            assert!(output.stderr.contains(message), "{}", output.stderr);
        }
    }
}

#[test]
fn flag_and_variable_are_equivalent() {
    let project = forge_project(2);
    for (value, code) in [("openai:gpt-5", 0), ("{\"model\": \"openai:gpt-5\"}", 0), ("{\"model\": 5}", 2)] {
        let flag = project.run(["forge", "get_weather", "--plan", "--forge", value]);
        let variable = project.command(["forge", "get_weather", "--plan"]).env("KARAT_FORGE", value).run();
        assert_eq!((flag.code, variable.code), (Some(code), Some(code)), "{value}: {}", flag.both());
    }
}
