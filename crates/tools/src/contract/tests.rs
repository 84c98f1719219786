//! Tests of all rules together.

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use karat_cases::registry::{Known, ToolLocation, Unknown};

fn tool(name: &str, description: &str) -> Tool {
    Tool { name: name.to_owned(), description: Some(description.to_owned()).into(), ..Tool::default() }
}

fn rules(registry: &Registry, map: &str) -> Vec<(ContractRule, String)> {
    let map = OverlapMap::read(map.as_bytes()).expect("a map");
    let findings = check_descriptions(registry, Some(&map));
    findings.into_iter().map(|finding| (finding.rule, finding.tool)).collect()
}

#[test]
fn a_valid_registry_has_no_findings() {
    let registry = Registry::from_tools([
        tool(
            "get_weather",
            "Fetches the current weather of a city. Use when the user asks how it is outside right now. For coming \
             days use get_forecast.",
        ),
        tool(
            "get_forecast",
            "Fetches the forecast of a city for up to seven days. Use when the user asks about coming days. For right \
             now use get_weather.",
        ),
    ]);
    assert_eq!(rules(&registry, r#"{"get_weather": {"overlaps": ["get_forecast"]}}"#), []);
}

#[rstest]
#[case::none(None)]
#[case::empty(Some(""))]
#[case::blank(Some(" \n\t"))]
fn a_missing_description_is_one_finding(#[case] description: Option<&str>) {
    let tool = Tool { name: "t".to_owned(), description: description.map(str::to_owned).into(), ..Tool::default() };
    let expected = [(ContractRule::DescriptionMissing, "t".to_owned())];
    assert_eq!(rules(&Registry::from_tools([tool]), r#"{"t": {"overlaps": ["u"]}}"#), expected);
}

#[test]
fn skips_unknown_descriptions() {
    let location = ToolLocation { source: "t.ts".to_owned(), position: None };
    let description = Known::Unknown(Unknown { location, reason: "a call".to_owned() });
    let tool = |name: &str| Tool { name: name.to_owned(), description: description.clone(), ..Tool::default() };
    assert_eq!(rules(&Registry::from_tools([tool("t"), tool("u")]), r#"{"t": {"overlaps": ["u"]}}"#), []);
}

#[rstest]
#[case("Ruft das Wetter ab.")]
#[case("获取天气")]
#[case("Узнаёт погоду")]
fn skips_english_rules_for_other_languages(#[case] description: &str) {
    let registry = Registry::from_tools([tool("get_weather", description), tool("get_forecast", "Получает прогноз.")]);
    assert_eq!(rules(&registry, r#"{"get_weather": {"overlaps": ["get_forecast"]}}"#), []);
}

#[test]
fn reports_each_rule_once_and_in_order() {
    use ContractRule::{
        DescriptionAction, DescriptionDisambiguation, DescriptionDuplicate, DescriptionReturns, DescriptionTrigger,
        DescriptionVague,
    };

    let registry = Registry::from_tools([
        tool("x", "This tool handles stuff."),
        tool("y", "Returns JSON with the price of one share."),
        tool("z", "This tool handles stuff."),
    ]);
    let rules = rules(&registry, r#"{"x": {"overlaps": ["y"]}}"#);
    let of = |name: &str| rules.iter().filter(|(_, tool)| tool == name).map(|(rule, _)| *rule).collect::<Vec<_>>();
    assert_eq!(
        of("x"),
        [DescriptionAction, DescriptionTrigger, DescriptionDisambiguation, DescriptionVague, DescriptionDuplicate]
    );
    assert_eq!(of("y"), [DescriptionReturns, DescriptionTrigger, DescriptionDisambiguation]);
    assert_eq!(of("z"), [DescriptionAction, DescriptionTrigger, DescriptionVague]);
}

#[test]
fn names_match_serialisation() {
    for rule in ContractRule::ALL {
        assert_eq!(serde_json::to_value(rule).expect("serializes"), rule.name());
    }
}

fn words_of(count: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    prop::collection::vec("[b-df-hj-np-tv-z]{2}[aeou][b-df-hj-km-np-rtv-z]{1,3}", count)
        .prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn accepts_descriptions_that_follow_the_contract(
        verb in prop::sample::select(vec!["Fetches", "Books", "Cancel", "Quickly looks up", "Converts"]),
        object in words_of(4..8),
        trigger in prop::sample::select(vec!["Use when the user asks for", "Use this tool if you need", "Call this whenever"]),
        subject in words_of(1..5),
    ) {
        let description = format!("{verb} the {object}. {trigger} {subject}. For more, use other_tool instead.");
        let registry = Registry::from_tools([
            tool("some_tool", &description),
            tool("other_tool", "Sings a lovely song of old days. Use when the user is sad. Not for some_tool's work."),
        ]);
        prop_assert_eq!(rules(&registry, r#"{"some_tool": {"overlaps": ["other_tool"]}}"#), []);
    }

    #[test]
    fn is_deterministic_with_valid_spans(text in "\\PC{0,80}", other in "[ -~\\n]{0,120}") {
        let registry = Registry::from_tools([tool("a", &text), tool("b", &other)]);
        let findings = check_descriptions(&registry, None);
        prop_assert_eq!(&findings, &check_descriptions(&registry, None));
        for finding in findings {
            let description = registry.tool(&finding.tool).and_then(|tool| tool.description.as_deref()).unwrap_or("");
            if let Some(span) = finding.span {
                prop_assert!(description.get(span).is_some());
            }
        }
    }
}
