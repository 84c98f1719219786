//! Tests of coverage.

use std::collections::BTreeSet;

use karat_cases::registry::{Gap, GapKind, Known, Registry, Tool, ToolLocation, Unknown};
use karat_cases::{Case, CaseLocation, Difficulty, EvalFile, Expectation, Input, Metadata, Tier};
use karat_tools::confusion::MeasuredConfusion;
use karat_tools::coverage::{Amount, Coverage, Ratio, Requirement, Suite};
use karat_tools::lock::{LockDiff, ToolsLock};
use karat_tools::overlap::{OverlapMap, covers_cluster, covers_pair};
use proptest::prelude::*;
use rstest::rstest;

fn registry(names: &[&str]) -> Registry {
    Registry::from_tools(names.iter().map(|&name| Tool { name: name.to_owned(), ..Tool::default() }))
}

fn map(text: &str) -> OverlapMap {
    OverlapMap::read(text.as_bytes()).expect("a map")
}

fn case(id: &str, difficulty: Option<Difficulty>, expect: Expectation) -> Case {
    Case {
        id: id.to_owned(),
        description: String::new(),
        difficulty,
        created_at: None,
        bug_ref: None,
        input: Some(Input { message: "m".to_owned() }),
        turns: None,
        user: None,
        on_turn_failure: None,
        stubs: None,
        injections: None,
        max_turns: None,
        expect,
        safety: None,
        tags: Vec::new(),
        skip: None,
        location: CaseLocation { line: 1, ..CaseLocation::default() },
    }
}

fn owned(tools: &[&str]) -> Vec<String> {
    tools.iter().map(|&tool| tool.to_owned()).collect()
}

fn calls(tools: &[&str]) -> Expectation {
    Expectation { tools_called: Some(owned(tools)), ..Expectation::default() }
}

fn accepts(sets: &[&[&str]]) -> Expectation {
    Expectation { tools_acceptable: Some(sets.iter().map(|set| owned(set)).collect()), ..Expectation::default() }
}

fn file(tool_name: &str, tier: Tier, cases: Vec<Case>) -> EvalFile {
    EvalFile { metadata: None, tier, tool_name: tool_name.to_owned(), hash: String::new(), cases }
}

fn cover(registry: &Registry, overlaps: Option<&OverlapMap>, files: &[(&str, EvalFile)]) -> Coverage {
    let suites: Vec<Suite<'_>> = files.iter().map(|(path, file)| Suite { path, file }).collect();
    Coverage::of(registry, overlaps, None, &suites, None)
}

fn part(count: usize, of: usize) -> Ratio {
    Ratio { count, of }
}

#[test]
fn wanted_numbers_count_both_directions_and_distinct_clusters() {
    let registry = registry(&["a", "b", "c", "d"]);
    let map = map(r#"{
        "a": {"overlaps": ["b"], "clusters": [["a", "b", "c"], ["c", "b", "a"]]},
        "b": {"overlaps": ["a", "b", "b"]},
        "c": {"overlaps": ["a"], "clusters": [["a", "c", "d"]]}
    }"#);
    let coverage = cover(&registry, Some(&map), &[]);
    let wanted: Vec<_> = coverage
        .tools
        .iter()
        .map(|tool| (tool.straightforward.wanted, tool.ambiguous.wanted, tool.edge.wanted))
        .collect();
    // a: O = {b, c}, C = {abc, acd}; b: O = {a}, C = {abc}; c: O = {a}, C = both; d: C = {acd}.
    assert_eq!(wanted, [(14, 31, 6), (14, 28, 6), (14, 29, 6), (14, 26, 6)]);
    assert_eq!((coverage.totals.overlaps, coverage.totals.clusters), (part(0, 2), part(0, 2)));
    assert_eq!(coverage.totals.tested, part(0, 4));
    assert!(coverage.tools.iter().all(|tool| tool.never_tested && !tool.complete));
}

#[test]
fn a_single_tool_needs_no_straightforward_cases() {
    let coverage = cover(&registry(&["a"]), None, &[]);
    assert_eq!(coverage.tools[0].straightforward, Amount { count: 0, wanted: 0 });
    assert_eq!(coverage.tools[0].edge.wanted, 5);
}

#[test]
fn counts_cases_by_tool_tier_and_difficulty() {
    let registry = registry(&["get_weather", "get_forecast"]);
    let labeled = [
        Some(Difficulty::Straightforward),
        Some(Difficulty::Ambiguous),
        Some(Difficulty::Ambiguous),
        Some(Difficulty::Edge),
        Some(Difficulty::Regression),
        None,
    ];
    let labeled = labeled.iter().map(|difficulty| case("ls", *difficulty, calls(&["get_forecast"]))).collect();
    let files = [
        ("g", file("get-weather", Tier::Golden, vec![case("gs", None, calls(&["get_weather"]))])),
        ("l", file("get_weather", Tier::Labeled, labeled)),
        ("r", file("get_weather", Tier::Regression, vec![case("rg", Some(Difficulty::Regression), calls(&[]))])),
        ("s", file("get_weather", Tier::Rubric, vec![case("s", None, Expectation::default())])),
        ("u", file("get_weather", Tier::Unknown, vec![case("u", Some(Difficulty::Edge), calls(&[]))])),
    ];
    let coverage = cover(&registry, None, &files);
    let [weather, forecast] = coverage.tools.as_slice() else { panic!("two tools") };
    assert_eq!(
        (weather.golden.count, weather.straightforward.count, weather.ambiguous.count, weather.edge.count),
        (1, 1, 2, 1)
    );
    assert_eq!((weather.without_difficulty, weather.regression, weather.rubric, weather.other), (1, 2, 1, 1));
    let spread = weather.spread.expect("labeled cases");
    assert_eq!((spread.straightforward, spread.ambiguous, spread.edge), (0.25, 0.5, 0.25));
    // It has no file, but cases expect it.
    assert!(!forecast.never_tested);
    assert_eq!((forecast.expected_by, forecast.golden.count, forecast.spread), (6, 0, None));
    let totals = &coverage.totals;
    assert_eq!((totals.files, totals.cases, totals.golden_cases, totals.labeled_cases), (5, 10, 1, 6));
    assert_eq!((totals.regression_cases, totals.rubric_cases, totals.other_cases), (1, 1, 1));
}

#[rstest]
#[case::not_called(Expectation { tools_not_called: Some(owned(&["b"])), ..Expectation::default() })]
#[case::none(accepts(&[&["__none__"]]))]
fn a_forbidden_tool_is_not_tested(#[case] expect: Expectation) {
    let files = [("f", file("a", Tier::Golden, vec![case("gs", None, expect)]))];
    let coverage = cover(&registry(&["a", "b"]), None, &files);
    assert_eq!(coverage.tools.iter().map(|tool| tool.never_tested).collect::<Vec<_>>(), [false, true]);
    assert_eq!(coverage.unknown_tools, []);
}

#[test]
fn lists_cases_that_cover_overlaps_and_clusters() {
    let registry = registry(&["a", "b", "c"]);
    let map = map(r#"{"a": {"overlaps": ["b", "c"], "clusters": [["a", "b", "c"]]}}"#);
    let ambiguous = Some(Difficulty::Ambiguous);
    let cases = vec![
        case("ls-a-001", ambiguous, accepts(&[&["a"], &["b"]])),
        case("ls-a-002", ambiguous, calls(&["a", "c"])),
        case("ls-a-003", Some(Difficulty::Edge), accepts(&[&["a", "c"]])),
        case("ls-a-004", Some(Difficulty::Straightforward), calls(&["c", "b", "a"])),
    ];
    let golden = vec![case("gs-a-001", None, calls(&["a", "b", "c"]))];
    let files = [("l", file("a", Tier::Labeled, cases)), ("g", file("a", Tier::Golden, golden))];
    let coverage = cover(&registry, Some(&map), &files);
    let ids = |covered_by: &[karat_tools::coverage::CaseReference]| {
        covered_by.iter().map(|case| case.case_id.clone()).collect::<Vec<_>>()
    };
    let overlaps: Vec<_> =
        coverage.overlaps.iter().map(|overlap| (overlap.tools.clone(), ids(&overlap.covered_by))).collect();
    let pair = |left: &str, right: &str| [left.to_owned(), right.to_owned()];
    assert_eq!(overlaps, [(pair("a", "b"), owned(&["ls-a-001"])), (pair("a", "c"), vec![])]);
    assert_eq!(ids(&coverage.clusters[0].covered_by), ["ls-a-004"]);
    assert_eq!(coverage.tools[0].uncovered_overlaps, ["c"]);
    assert_eq!(coverage.tools[0].uncovered_clusters, Vec::<usize>::new());
    assert_eq!((coverage.tools[2].overlaps, coverage.tools[2].clusters), (part(0, 1), part(1, 1)));
}

#[test]
fn reports_unknown_names_with_file_and_case() {
    let files = [
        (
            "evals/a.golden.json",
            file("get_weather", Tier::Golden, vec![case("gs-1", None, calls(&["get_wether", "get_wether"]))]),
        ),
        ("evals/b.golden.json", file("get_whether", Tier::Golden, vec![])),
    ];
    let coverage = cover(&registry(&["get_weather"]), None, &files);
    let unknown = &coverage.unknown_tools[..];
    assert_eq!(unknown.len(), 1);
    assert_eq!((unknown[0].file.as_str(), unknown[0].case_id.as_str()), ("evals/a.golden.json", "gs-1"));
    assert_eq!(unknown[0].nearest.as_deref(), Some("get_weather"));
    assert_eq!(coverage.unknown_files[0].tool, "get_whether");
    assert_eq!(coverage.totals.known, part(0, 2));
}

#[test]
fn reports_stale_files_with_reasons() {
    let metadata = Metadata { tool_version: Some("1.0.0".to_owned()), ..Metadata::default() };
    let stale = EvalFile { metadata: Some(metadata), ..file("a", Tier::Golden, vec![]) };
    let registry = Registry::from_tools([Tool {
        name: "a".to_owned(),
        version: Some("2.0.0".to_owned()).into(),
        ..Tool::default()
    }]);
    let coverage = cover(&registry, None, &[("a.json", stale)]);
    assert_eq!(coverage.stale_files[0].reasons, ["written for version 1.0.0 of a, which is now 2.0.0"]);
    assert_eq!(coverage.tools[0].stale_files, ["a.json"]);
    assert_eq!(coverage.totals.fresh, part(0, 1));
}

fn described(name: &str, description: Option<&str>) -> Tool {
    Tool { name: name.to_owned(), description: description.map(str::to_owned).into(), ..Tool::default() }
}

fn unknown_description(name: &str) -> Tool {
    let location = ToolLocation { source: "t.ts".to_owned(), position: None };
    let description = Known::Unknown(Unknown { location, reason: "a call".to_owned() });
    Tool { description, ..described(name, None) }
}

/// The description hash in a file's metadata.
#[derive(Clone, Copy)]
enum RecordedHash {
    Missing,
    Current,
    Other,
}

/// A file counts as fresh only if that is known.
#[rstest]
#[case::same(RecordedHash::Current, described("a", Some("now")), None, Some(true), "")]
#[case::another(
    RecordedHash::Other,
    described("a", Some("now")),
    None,
    Some(false),
    "e: written for description 000000000000 of a, which is now ed5eb9a37e2d"
)]
#[case::description_removed(
    RecordedHash::Other,
    described("a", None),
    None,
    Some(false),
    "e: written for description 000000000000 of a, which no longer has one"
)]
#[case::not_recorded(
    RecordedHash::Missing,
    described("a", Some("now")),
    None,
    Some(false),
    "e: unknown: no descriptionHash and no lock"
)]
#[case::hidden(
    RecordedHash::Current,
    unknown_description("a"),
    None,
    None,
    "e: unknown: the description of a is known only at run time"
)]
#[case::missing(RecordedHash::Current, described("b", Some("now")), None, None, "e: unknown: a is not in the registry")]
#[case::locked(RecordedHash::Missing, described("a", Some("now")), Some(described("a", Some("now"))), Some(true), "")]
#[case::changed(
    RecordedHash::Missing,
    described("a", Some("now")),
    Some(described("a", Some("then"))),
    Some(false),
    "e: description of a changed since the lock"
)]
#[case::removed(
    RecordedHash::Missing,
    described("b", Some("now")),
    Some(described("a", Some("then"))),
    Some(false),
    "e: its tool a was removed"
)]
#[case::not_locked(
    RecordedHash::Missing,
    described("a", Some("now")),
    Some(described("b", Some("then"))),
    Some(false),
    "e: unknown: no descriptionHash, and a is not in the lock"
)]
#[case::hidden_from_lock(
    RecordedHash::Missing,
    unknown_description("a"),
    Some(described("a", Some("then"))),
    None,
    "e: unknown: the description of a is known only at run time"
)]
fn unknown_files_are_not_fresh(
    #[case] recorded: RecordedHash,
    #[case] now: Tool,
    #[case] locked: Option<Tool>,
    #[case] held: Option<bool>,
    #[case] missing: &str,
) {
    let hash = match recorded {
        RecordedHash::Missing => None,
        RecordedHash::Current => described("a", Some("now")).description_hash(),
        RecordedHash::Other => Some("000000000000".to_owned()),
    };
    let metadata = hash.map(|hash| Metadata { description_hash: Some(hash), ..Metadata::default() });
    let made = EvalFile { metadata: metadata.clone(), ..file("a", Tier::Golden, vec![]) };
    let guard = EvalFile { metadata, ..file("a", Tier::Regression, vec![]) };
    let registry = Registry::from_tools([now]);
    let diff =
        locked.map(|tool| LockDiff::of(&ToolsLock::of(&Registry::from_tools([tool])), &ToolsLock::of(&registry), true));
    let of = |file: &EvalFile| {
        let mut coverage = Coverage::of(&registry, None, diff.as_ref(), &[Suite { path: "e", file }], None);
        coverage.require(&[Requirement::Fresh]);
        coverage
    };
    let coverage = of(&made);
    assert_eq!((coverage.requirements[0].held, coverage.requirements[0].missing.join("|").as_str()), (held, missing));
    assert_eq!(coverage.totals.fresh, part(usize::from(held == Some(true)), 1));
    // A regression file guards against a bug regardless of the description.
    assert_eq!((of(&guard).requirements[0].held, of(&guard).totals.fresh), (Some(true), part(0, 0)));
}

#[test]
fn a_file_for_another_overlap_map_is_stale() {
    let tool = described("a", Some("now"));
    let (description_hash, version) = (tool.description_hash(), Some("000000000000".to_owned()));
    let metadata = Metadata { description_hash, overlap_map_version: version, ..Metadata::default() };
    let made = EvalFile { metadata: Some(metadata), ..file("a", Tier::Golden, vec![]) };
    let map = map("{}");
    let coverage = cover(&Registry::from_tools([tool]), Some(&map), &[("e", made)]);
    let reason = format!("written for overlap map 000000000000, which is now {}", map.version);
    assert_eq!(coverage.stale_files[0].reasons, [reason]);
}

#[test]
fn without_files_nothing_is_fresh_or_known() {
    let mut coverage = cover(&registry(&["a"]), None, &[]);
    coverage.require(&[Requirement::Fresh, Requirement::Known]);
    assert!(coverage.requirements.iter().all(|result| result.held == Some(false)));
}

/// Returns eval files with complete coverage of one tool.
fn complete_files() -> Vec<(&'static str, EvalFile)> {
    let golden = (0..5).map(|number| case(&format!("gs-{number}"), None, calls(&["a"]))).collect();
    let difficulties = [(25, Difficulty::Ambiguous), (5, Difficulty::Edge)];
    let labeled = difficulties.iter().flat_map(|(count, difficulty)| {
        (0..*count).map(move |number| case(&format!("ls-{number}"), Some(*difficulty), calls(&["a"])))
    });
    vec![("g", file("a", Tier::Golden, golden)), ("l", file("a", Tier::Labeled, labeled.collect()))]
}

#[test]
fn requirements_are_met_or_list_what_is_missing() {
    let tools = registry(&["a"]);
    let files = complete_files();
    let suites: Vec<Suite<'_>> = files.iter().map(|(path, file)| Suite { path, file }).collect();
    let lock = ToolsLock::of(&tools);
    let diff = LockDiff::of(&lock, &lock, true);
    let mut coverage = Coverage::of(&tools, None, Some(&diff), &suites, None);
    coverage.require(&Requirement::ALL);
    assert!(coverage.requirements.iter().all(|result| result.held == Some(true) && result.missing.is_empty()));
    assert!(coverage.tools[0].complete);
    assert!((coverage.tools[0].share - 1.0).abs() < f64::EPSILON);

    let mut coverage = cover(&registry(&["a", "b"]), None, &complete_files());
    coverage.require(&[Requirement::Labeled, Requirement::Tested, Requirement::Tested]);
    let results: Vec<_> = coverage
        .requirements
        .iter()
        .map(|requirement| (requirement.requirement, requirement.held, requirement.missing.clone()))
        .collect();
    assert_eq!(
        results,
        [
            (Requirement::Tested, Some(false), owned(&["b is never tested"])),
            (
                Requirement::Labeled,
                Some(false),
                owned(&["a has 0/12 straightforward", "b has 0/12 straightforward, 0/25 ambiguous, 0/5 edge"])
            ),
        ]
    );
}

#[rstest]
#[case(GapKind::Broken, Requirement::Tested, None)]
#[case(GapKind::Broken, Requirement::Overlaps, Some(true))]
#[case(GapKind::Broken, Requirement::Known, None)]
#[case(GapKind::Unknown, Requirement::Tested, None)]
#[case(GapKind::Unknown, Requirement::Golden, None)]
#[case(GapKind::Unknown, Requirement::Labeled, None)]
#[case(GapKind::Unknown, Requirement::Fresh, Some(false))]
#[case(GapKind::Unknown, Requirement::Known, None)]
fn requirements_are_undecidable_with_gaps(
    #[case] kind: GapKind,
    #[case] requirement: Requirement,
    #[case] held: Option<bool>,
) {
    let mut registry = registry(&["a"]);
    let location = ToolLocation { source: "tools.ts".to_owned(), position: None };
    registry.add_gap(Gap { kind, location, message: "a syntax error".to_owned() });
    let mut files = complete_files();
    files[0].1.cases[0].expect = calls(&["a", "b"]);
    let mut coverage = cover(&registry, None, &files);
    coverage.require(&[requirement]);
    assert_eq!(coverage.requirements[0].held, held);
    assert!(!coverage.registry.complete);
}

#[test]
fn lists_confused_pairs_worst_first_with_rates() {
    let mut measured = MeasuredConfusion { results: 1, ..MeasuredConfusion::default() };
    for called in [&["b"][..], &["b"], &["a"], &["a"]] {
        measured.confusion.add(&calls(&["a"]), &owned(called));
    }
    measured.confusion.add(&calls(&["c"]), &owned(&["a"]));
    measured.confusion.add(&calls(&[]), &[]);
    let map = map(r#"{"a": {"overlaps": ["b"]}}"#);
    let coverage = Coverage::of(&registry(&["a", "b", "c"]), Some(&map), None, &[], Some(&measured));
    let matrix = coverage.confusion.expect("a matrix");
    let worst: Vec<_> = matrix
        .worst
        .iter()
        .map(|pair| (pair.expected.as_str(), pair.called.as_str(), pair.count, pair.declared))
        .collect();
    assert_eq!(worst, [("a", "b", 2, true), ("c", "a", 1, false)]);
    assert_eq!(matrix.worst.iter().map(|pair| pair.rate).collect::<Vec<_>>(), [0.5, 1.0]);
    assert_eq!((matrix.answers, matrix.count("a", "a"), matrix.count("a", "b"), matrix.count("b", "a")), (6, 2, 2, 0));
    assert_eq!(matrix.count("__none__", "__none__"), 1);
    assert_eq!(matrix.tools(), ["a", "b", "c"]);
}

/// Difficulty, tool sets, and whether the first set is a list of calls.
type DrawnCase = (Option<Difficulty>, Vec<Vec<String>>, bool);

fn arbitrary_case() -> impl Strategy<Value = DrawnCase> {
    let difficulty = prop::option::of(prop::sample::select(Difficulty::ALL.to_vec()));
    (difficulty, prop::collection::vec(prop::collection::vec("[a-e]", 0..4), 1..3), any::<bool>())
}

fn build_cases(cases: &[DrawnCase]) -> Vec<Case> {
    let build = |(number, (difficulty, sets, is_list)): (usize, &DrawnCase)| {
        let expect = if *is_list {
            Expectation { tools_called: sets.first().cloned(), ..Expectation::default() }
        } else {
            Expectation { tools_acceptable: Some(sets.clone()), ..Expectation::default() }
        };
        case(&format!("ls-{number}"), *difficulty, expect)
    };
    cases.iter().enumerate().map(build).collect()
}

proptest! {
    /// The index finds the same as an exhaustive comparison.
    #[test]
    fn indexed_coverage_equals_exhaustive_search(
        cases in prop::collection::vec(arbitrary_case(), 0..12),
        pairs in prop::collection::vec(("[a-e]", "[a-e]"), 0..6),
        clusters in prop::collection::vec(prop::collection::btree_set("[a-e]", 1..4), 0..4),
    ) {
        let entries: serde_json::Map<String, serde_json::Value> = ["a", "b", "c", "d", "e"].iter().map(|tool| {
            let overlaps: BTreeSet<&String> = pairs.iter().filter(|(left, _)| left == tool).map(|(_, right)| right).collect();
            let clusters: Vec<&BTreeSet<String>> = clusters.iter().filter(|cluster| cluster.contains(*tool)).collect();
            ((*tool).to_owned(), serde_json::json!({"overlaps": overlaps, "clusters": clusters}))
        }).collect();
        let map = map(&serde_json::Value::Object(entries).to_string());
        let registry = registry(&["a", "b", "c", "d", "e"]);
        let labeled = build_cases(&cases);
        let before = cover(&registry, Some(&map), &[("l", file("a", Tier::Labeled, labeled.clone()))]);
        for overlap in &before.overlaps {
            let [left, right] = &overlap.tools;
            let expected: Vec<&str> =
                labeled.iter().filter(|case| covers_pair(case, left, right)).map(|case| case.id.as_str()).collect();
            prop_assert_eq!(overlap.covered_by.iter().map(|case| case.case_id.as_str()).collect::<Vec<_>>(), expected);
        }
        for cluster in &before.clusters {
            let expected: Vec<&str> =
                labeled.iter().filter(|case| covers_cluster(case, &cluster.tools)).map(|case| case.id.as_str()).collect();
            prop_assert_eq!(cluster.covered_by.iter().map(|case| case.case_id.as_str()).collect::<Vec<_>>(), expected);
        }
        // The counts add up.
        let tool = &before.tools[0];
        let counted = tool.straightforward.count + tool.ambiguous.count + tool.edge.count;
        prop_assert_eq!(counted + tool.without_difficulty + tool.regression, labeled.len());
        prop_assert_eq!(before.totals.overlaps.of, before.overlaps.len());
        // An additional case never reduces coverage.
        let mut more = labeled;
        more.push(case("ls-more", Some(Difficulty::Ambiguous), accepts(&[&["a", "b", "c"]])));
        let after = cover(&registry, Some(&map), &[("l", file("a", Tier::Labeled, more))]);
        prop_assert!(after.totals.overlaps.count >= before.totals.overlaps.count);
        prop_assert!(after.totals.clusters.count >= before.totals.clusters.count);
        prop_assert!(after.totals.tested.count >= before.totals.tested.count);
        prop_assert!(after.tools.iter().zip(&before.tools).all(|(after, before)| after.share >= before.share));
    }
}
