//! Rubric files: parsing, errors and the schema.

use karat_cases::{Origin, RubricFile, RubricFileSchema, SuiteFile, Tier};
use karat_json::Finding;
use rstest::rstest;
use serde_json::{Value, json};

const NAME: Origin<'_> = Origin::new("get-weather.rubric.json");

fn parse(file: &Value) -> Result<RubricFile, Vec<String>> {
    let text = serde_json::to_string_pretty(file).expect("serializable");
    let line = |finding: Finding| {
        let Finding { location, case_id, message, help, .. } = finding;
        let id = case_id.map(|id| format!(" {id}")).unwrap_or_default();
        let help = help.map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{}{id}: {message}{help}", location.position.line)
    };
    RubricFile::parse(text.as_bytes(), NAME).map_err(|invalid| invalid.findings.into_iter().map(line).collect())
}

fn full_file() -> Value {
    json!({
        "$schema": "rubric.json",
        "metadata": { "toolName": "get_weather", "tier": "rubric" },
        "cases": [{
            "id": "rb-get-weather-001",
            "description": "compares two cities",
            "input": { "message": "Paris or Rome?" },
            "referenceData": { "paris": 18 },
            "stubs": { "get_weather": { "temperature": 18 } },
            "maxTurns": 3,
            "rubric": [
                { "dimension": "accuracy", "maxScore": 1, "criteria": "1 if right" },
                { "dimension": "tone", "maxScore": 5, "criteria": "5 friendly, 0 rude" }
            ]
        }]
    })
}

#[test]
fn parses_a_rubric_file() {
    let file = parse(&full_file()).unwrap();
    assert_eq!((file.tool_name.as_str(), file.hash.len()), ("get_weather", 12));
    let case = &file.cases[0];
    assert_eq!((case.case.location.line, case.case.max_turns), (8, Some(3)));
    assert_eq!(case.case.stubs.as_ref().map(serde_json::Map::len), Some(1));
    assert_eq!(case.case.expect, karat_cases::Expectation::default());
    assert_eq!(case.reference_data.as_ref().unwrap()["paris"], 18);
    let rubric: Vec<(&str, u64)> =
        case.rubric.iter().map(|dimension| (dimension.dimension.as_str(), dimension.max_score)).collect();
    assert_eq!(rubric, [("accuracy", 1), ("tone", 5)]);
    let plain = file.without_rubrics();
    assert_eq!((plain.tier, plain.cases.len()), (Tier::Rubric, 1));
}

#[test]
fn accepts_a_bare_array() {
    let file = parse(&full_file()["cases"]).unwrap();
    assert_eq!((file.tool_name.as_str(), file.metadata), ("get-weather", None));
}

#[rstest]
#[case("/cases/0/rubric", json!([]), &["23 rb-get-weather-001: 'rubric' needs at least one dimension"])]
#[case("/cases/0/rubric/1/dimension", json!("accuracy"), &["30 rb-get-weather-001: duplicate dimension 'accuracy'"])]
#[case("/cases/0/rubric/1/dimension", json!(" accuracy"), &["30 rb-get-weather-001: duplicate dimension ' accuracy'"])]
#[case("/cases/0/rubric/0/maxScore", json!(0), &["26 rb-get-weather-001: 'maxScore' must be an integer of at least 1, found 0"])]
#[case("/cases/0/rubric/0/maxScore", json!(2.5), &["26 rb-get-weather-001: 'maxScore' must be an integer of at least 1, found 2.5"])]
#[case("/cases/0/rubric/0/maxScore", json!("5"), &["26 rb-get-weather-001: 'maxScore' must be an integer of at least 1, found a string"])]
#[case("/cases/0/rubric/0/criteria", json!(" "), &["27 rb-get-weather-001: 'criteria' is empty"])]
#[case("/cases/0/rubric/0", json!({ "dimension": "a", "maxscore": 1, "criteria": "c" }), &[
    "24 rb-get-weather-001: 'maxScore' is missing",
    "26 rb-get-weather-001: unknown key 'maxscore' (did you mean 'maxScore'?)",
])]
#[case("/cases/0/referenceData", json!([1]), &["14 rb-get-weather-001: 'referenceData' must be an object, found an array"])]
#[case("/cases/0/maxTurns", json!(0), &["22 rb-get-weather-001: 'maxTurns' must be an integer of at least 1, found 0"])]
#[case("/cases/0/id", json!(" "), &["9  : 'id' is empty"])]
#[case("/metadata/tier", json!("golden"), &["5: 'tier' of a rubric file cannot be 'golden'"])]
fn reports_problems_with_their_line(#[case] pointer: &str, #[case] value: Value, #[case] expected: &[&str]) {
    let mut file = full_file();
    *file.pointer_mut(pointer).unwrap() = value;
    assert_eq!(parse(&file).unwrap_err(), expected);
}

#[test]
fn rejects_keys_of_eval_files() {
    let mut file = full_file();
    file["cases"][0]["difficulty"] = json!("edge");
    assert_eq!(parse(&file).unwrap_err().len(), 1);
    file["cases"][0]["expect"] = json!({});
    let findings = parse(&file).unwrap_err();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].contains("does not belong in a rubric file (move it to an eval file"), "{findings:?}");
}

#[test]
fn rejects_duplicate_ids_and_keys() {
    let mut file = full_file();
    let case = file["cases"][0].clone();
    file["cases"].as_array_mut().unwrap().push(case);
    assert_eq!(parse(&file).unwrap_err().len(), 1);
    let text = "[{\"id\": \"a\", \"input\": {\"message\": \"m\"}, \"rubric\": [{\"dimension\": \"d\", \"maxScore\": 1, \
                \"maxScore\": 9, \"criteria\": \"c\"}]}]";
    assert_eq!(RubricFile::parse(text.as_bytes(), NAME).unwrap_err().findings.len(), 1);
}

/// The tier comes from the metadata or, failing that, from the file name.
#[rstest]
#[case("x.rubric.json", json!(null), Some(Tier::Rubric), true)]
#[case("x.json", json!("rubric"), Some(Tier::Rubric), true)]
#[case("x.golden.json", json!("rubric"), Some(Tier::Rubric), true)]
#[case("x.golden.json", json!(null), None, false)]
#[case("x.rubric.json", json!("golden"), None, false)]
fn the_tier_decides_the_kind_of_file(
    #[case] file_name: &str,
    #[case] tier: Value,
    #[case] rubric: Option<Tier>,
    #[case] is_valid: bool,
) {
    let mut file = full_file();
    file["metadata"]["tier"] = tier;
    let parsed = SuiteFile::parse(file.to_string().as_bytes(), Origin::new(file_name));
    assert_eq!(parsed.is_ok(), is_valid, "{parsed:?}");
    match parsed {
        Ok(SuiteFile::Rubric(_)) => assert_eq!(rubric, Some(Tier::Rubric)),
        Ok(SuiteFile::Eval(_)) => panic!("parsed as an eval file"),
        Err(invalid) => {
            let help = invalid.findings[0].help.as_deref().unwrap();
            assert_eq!(help, "move it to a rubric file, named x.rubric.json");
        }
    }
}

#[rstest]
#[case(b"")]
#[case(b"\"rubric\"")]
#[case(b"{\"metadata\": {\"tier\": \"rubric\"}}")]
#[case(b"{\"metadata\": 7, \"cases\": []}")]
#[case(b"\xff")]
#[case(b"[{\"id\": 1, \"rubric\": {}}]")]
fn rejects_malformed_files(#[case] bytes: &[u8]) {
    assert!(SuiteFile::parse(bytes, NAME).is_err());
}

#[test]
fn schema_and_parser_agree() {
    let schema = serde_json::to_value(schemars::schema_for!(RubricFileSchema)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let pointers = [
        "/cases",
        "/cases/0",
        "/cases/0/id",
        "/cases/0/description",
        "/cases/0/input",
        "/cases/0/input/message",
        "/cases/0/referenceData",
        "/cases/0/stubs",
        "/cases/0/maxTurns",
        "/cases/0/rubric",
        "/cases/0/rubric/0",
        "/cases/0/rubric/0/dimension",
        "/cases/0/rubric/0/maxScore",
        "/cases/0/rubric/0/criteria",
        "/metadata",
        "/$schema",
    ];
    let values = json!([null, true, 0, 1, -1, 1.5, 2.0, "", " ", "text", [], [1], ["a"], [{}], {}, { "a": 1 }]);
    let mut seen = [0, 0];
    for pointer in pointers {
        for value in values.as_array().unwrap() {
            let mut changed = full_file();
            *changed.pointer_mut(pointer).unwrap() = value.clone();
            let (parsed, schema) = (parse(&changed), validator.is_valid(&changed));
            assert_eq!(parsed.is_ok(), schema, "{pointer} = {value}: {parsed:?}");
            seen[usize::from(schema)] += 1;
        }
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let mut without = full_file();
        if let Some(map) = without.pointer_mut(parent).and_then(Value::as_object_mut) {
            map.remove(key);
            assert_eq!(parse(&without).is_ok(), validator.is_valid(&without), "without {pointer}");
        }
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}
