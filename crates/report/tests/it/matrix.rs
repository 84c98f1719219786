//! Comparison of several agents.

use std::sync::{Arc, Mutex};

use karat_cases::Tier;
use karat_core::event::Reporter;
use karat_core::event::RunEvent;
use karat_core::result::combine;
use karat_core::result::{CaseResult, Outcome};
use karat_core::staleness::Staleness;
use karat_core::trace::Usage;
use karat_report::junit::JunitReporter;
use karat_report::markdown::MarkdownReporter;
use karat_report::{ConsoleReporter, ConsoleSettings, Palette, Symbols, Verbosity, matrix_of, width};
use proptest::prelude::*;

use crate::fixture::{self, HOSTILE, Suite, any_text, case, errored, events_of, failed};

const PLAIN: ConsoleSettings = ConsoleSettings {
    columns: 80,
    symbols: Symbols::UNICODE,
    palette: Palette { color: false },
    verbosity: Verbosity::Normal,
};

/// Renders a run for the terminal.
fn rendered(events: &[RunEvent], settings: ConsoleSettings) -> String {
    let text = Arc::new(Mutex::new(String::new()));
    let printed = Arc::clone(&text);
    let output = Box::new(move |part: &str| {
        printed.lock().expect("no panic").push_str(part);
        Ok(())
    });
    let mut reporter = ConsoleReporter::new(settings, output);
    for event in events {
        reporter.on_event(event).expect("gathered");
        reporter.flush().expect("printed");
    }
    drop(reporter);
    Arc::into_inner(text).expect("the reporter was dropped").into_inner().expect("no panic")
}

fn with_cost(mut case: CaseResult, duration_ms: u64, cost_usd: Option<f64>) -> CaseResult {
    case.duration_ms = duration_ms;
    case.details.usage = Some(Box::new(Usage { cost_usd, ..Usage::default() }));
    case
}

fn suite_of(agent: &str, path: &str, tier: Tier, cases: Vec<CaseResult>) -> Suite {
    let lines: Vec<usize> = (1..=cases.len()).collect();
    let mut suite = Suite::new(path, "get_weather", tier, &lines);
    suite.header.agent = Some(agent.to_owned());
    suite.cases = cases.into_iter().enumerate().collect();
    suite
}

/// Returns a run with two agents that differ in everything.
fn two_agents() -> Vec<RunEvent> {
    let (golden, labeled) = ("evals/get_weather.golden.json", "evals/get_weather.labeled.json");
    let pass = |id: &str| case(id, "Rain in Zürich", Outcome::Passed);
    let wrong = [("toolsCalled", "expected ['get_weather'] but got []")];
    let mut vacuous = pass("gs-get-weather-003");
    vacuous.vacuous = true;
    let mut first = suite_of(
        "openai:gpt-large",
        golden,
        Tier::Golden,
        vec![
            with_cost(pass("gs-get-weather-001"), 900, Some(0.004)),
            with_cost(pass("gs-get-weather-002"), 1_200, Some(0.006)),
            with_cost(vacuous, 100, Some(0.001)),
        ],
    );
    first.header.staleness = vec![Staleness::ToolMissing { tool: "get_weather".to_owned() }];
    first.warnings = vec!["only of the first agent".to_owned()];
    let second = suite_of(
        "openai:gpt-large",
        labeled,
        Tier::Labeled,
        vec![with_cost(pass("ls-get-weather-001"), 2_000, Some(0.004))],
    );
    let mut third = suite_of(
        "anthropic:small",
        golden,
        Tier::Golden,
        vec![
            with_cost(pass("gs-get-weather-001"), 300, Some(0.000_4)),
            with_cost(failed("gs-get-weather-002", "Rain in Zürich", &wrong), 400, Some(0.000_6)),
            with_cost(errored("gs-get-weather-003", "Rain in Zürich", "HTTP 500: overloaded"), 10, Some(0.0)),
        ],
    );
    third.header.staleness.clone_from(&first.header.staleness);
    third.regressions = vec!["gs-get-weather-002".to_owned()];
    let fourth = suite_of(
        "anthropic:small",
        labeled,
        Tier::Labeled,
        vec![with_cost(pass("ls-get-weather-001"), 500, Some(0.000_5))],
    );
    events_of(&[first, second, third, fourth])
}

#[test]
fn small_costs_are_not_shown_as_zero() {
    let mut suite = Suite::new("evals/x.golden.json", "x", Tier::Golden, &[1]);
    suite.cases = vec![(0, with_cost(case("gs-x-001", "cheap", Outcome::Passed), 1, Some(0.000_012)))];
    let text = rendered(&events_of(&[suite]), PLAIN);
    assert!(text.contains("| $0.0000120\n"), "{text}");
}

#[test]
fn renders_one_table() {
    insta::assert_snapshot!(rendered(&two_agents(), PLAIN), @"
    ═══ 2 agents — 4 cases ════════════════════════════════════════════
                          openai:gpt-large  anthropic:small
    get_weather — golden evals
      gs-get-weather-001                ✓                ✓
      gs-get-weather-002                ✓                ✗
      gs-get-weather-003                ⚠                !
    get_weather — labeled evals
      ls-get-weather-001                ✓                ✓
    ───────────────────────────────────────────────────────────────────
      pass rate                      100%*           66.7%
      errored                           0                1
      vacuous                           1                0
      cost                        $0.0150         $0.00150*
      cost per pass              $0.00500        $0.000750*
      latency p50                  900 ms           400 ms*
      latency p95                   2.0 s           500 ms*
      * the best value of its row
      best value: openai:gpt-large, $0.00500 per passed case at a pass rate of 100%;
        a cheaper agent passes less often

      gs-get-weather-002  Rain in Zürich
        ✗ anthropic:small: regression: toolsCalled: expected ['get_weather'] but got
          []
      gs-get-weather-003  Rain in Zürich
        ⚠ openai:gpt-large: no assertion ran, so this proves nothing
        ! anthropic:small: HTTP 500: overloaded
      ⚠ Staleness unknown: get_weather is not in the registry
      ⚠ openai:gpt-large: only of the first agent

    4 suites: 1 regression | 6/8 passed | 1 failed | 1 errored | 1 vacuous
      0 skipped assertions
    ");
}

#[test]
fn renders_ascii_and_only_failures_when_quiet() {
    let settings = ConsoleSettings { symbols: Symbols::ASCII, verbosity: Verbosity::Quiet, ..PLAIN };
    let text = rendered(&two_agents(), settings);
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!(text, @"
    === 2 agents - 4 cases ============================================
                          openai:gpt-large  anthropic:small
    get_weather - golden evals
      gs-get-weather-002               ok             FAIL
      gs-get-weather-003             warn              ERR
    -------------------------------------------------------------------
      pass rate                      100%*           66.7%
      errored                           0                1
      vacuous                           1                0
      cost                        $0.0150         $0.00150*
      cost per pass              $0.00500        $0.000750*
      latency p50                  900 ms           400 ms*
      latency p95                   2.0 s           500 ms*
      * the best value of its row
      best value: openai:gpt-large, $0.00500 per passed case at a pass rate of 100%;
        a cheaper agent passes less often

      gs-get-weather-002  Rain in Z?rich
        FAIL anthropic:small: regression: toolsCalled: expected ['get_weather'] but
             got []
      gs-get-weather-003  Rain in Z?rich
        warn openai:gpt-large: no assertion ran, so this proves nothing
        ERR anthropic:small: HTTP 500: overloaded
      warn Staleness unknown: get_weather is not in the registry
      warn openai:gpt-large: only of the first agent

    4 suites: 1 regression | 6/8 passed | 1 failed | 1 errored | 1 vacuous
      0 skipped assertions
    ");
}

#[test]
fn the_best_value_is_bold_and_starred() {
    let text = rendered(&two_agents(), ConsoleSettings { palette: Palette { color: true }, ..PLAIN });
    assert!(text.contains("\u{1b}[1m100%*\u{1b}[0m"), "{text:?}");
}

#[test]
fn shows_passed_trials() {
    let trials = |passed: usize, failed: usize, errored_trials: usize| {
        let passes = vec![case("gs-x-001", "", Outcome::Passed); passed];
        let failures = vec![failed_case(); failed];
        let errors = vec![errored("gs-x-001", "", "no connection"); errored_trials];
        let all = passes.into_iter().chain(failures).chain(errors).map(|result| with_cost(result, 100, Some(0.01)));
        combine(all.collect(), 5).expect("trials")
    };
    let suites = [trials(5, 0, 0), trials(3, 2, 0), trials(3, 1, 1), trials(0, 0, 5)];
    let suites: Vec<Suite> = suites
        .into_iter()
        .zip(["a:1", "b:2", "c:3", "d:4"])
        .map(|(result, agent)| suite_of(agent, "x.golden.json", Tier::Golden, vec![result]))
        .collect();
    insta::assert_snapshot!(rendered(&events_of(&suites), PLAIN), @"
    ═══ 4 agents — 1 case ═════════════════════════════════════════════
                          a:1       b:2       c:3       d:4
    get_weather — golden evals
      gs-x-001           5/5       3/5     3/5 !     0/5 !
    ───────────────────────────────────────────────────────────────────
      pass rate         100%*      60%       75%         —
      errored              0         0         1         5
      cost           $0.0500   $0.0500   $0.0500   $0.0500
      cost per pass  $0.0100*  $0.0167   $0.0167         —
      latency p50     100 ms    100 ms    100 ms         —
      latency p95     100 ms    100 ms    100 ms         —
      * the best value of its row
      best value: a:1, $0.0100 per passed case at a pass rate of 100%; known for 3
        of 4 agents

      gs-x-001
        ✗ b:2: 2 of 5 trials failed: responseContains: expected 'a'
        ! c:3: 1 of 5 trials errored, 1 failed: no connection
        ! d:4: 5 of 5 trials errored: no connection

    4 suites: 1/4 passed | 1 failed | 2 errored | 0 skipped assertions
      11/20 trials passed, 6 errored (79% of 14 verdicts, 95% interval 52–92%)
      2 flaky
    ");
}

fn failed_case() -> CaseResult {
    failed("gs-x-001", "", &[("responseContains", "expected 'a'")])
}

fn events_of_agents(names: &[String]) -> Vec<RunEvent> {
    let suite = |name: &String| {
        let cases = vec![with_cost(case("gs-x-000", "", Outcome::Passed), 1, Some(0.5)), failed_case()];
        suite_of(name, "x.golden.json", Tier::Golden, cases)
    };
    events_of(&names.iter().map(suite).collect::<Vec<_>>())
}

#[test]
fn truncates_the_middle_of_long_names() {
    let names = ["https://agents.example.com/v1/support/chat", "https://agents.example.com/v2/support/ask", "openai:x"];
    insta::assert_snapshot!(rendered(&events_of_agents(&names.map(str::to_owned)), PLAIN), @"
    ═══ 3 agents — 2 cases ════════════════════════════════════════════
                     https://a…port/chat  https://a…pport/ask  openai:x
    get_weather — golden evals
      gs-x-000                        ✓                    ✓         ✓
      gs-x-001                        ✗                    ✗         ✗
    ───────────────────────────────────────────────────────────────────
      pass rate                     50%                  50%       50%
      cost                            —                    —         —
      cost per pass                   —                    —         —
      latency p50                  1 ms                 1 ms      1 ms
      latency p95                250 ms               250 ms    250 ms
      best value: unknown, since no agent has a known cost per passed case

      gs-x-001
        ✗ all: responseContains: expected 'a'

    3 suites: 3/6 passed | 3 failed | 0 skipped assertions
    ");
}

#[test]
fn ids_and_the_ends_of_reasons_are_never_truncated() {
    let id = format!("gs-{}001", "long-".repeat(12));
    let reason = format!("expected [{}] but got ['b']", "'a', ".repeat(60));
    let suite = |agent: &str| {
        suite_of(
            agent,
            "x.golden.json",
            Tier::Golden,
            vec![failed(&id, "finds it", &[("toolsCalled", reason.as_str())])],
        )
    };
    let text = rendered(&events_of(&[suite("openai:a"), suite("openai:b")]), PLAIN);
    assert!(text.contains(&format!("\n  {id}\n")), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("{id} finds it")) && words.contains("but got ['b']"), "{text}");
}

#[test]
fn many_agents_get_numbers_and_several_blocks() {
    let names: Vec<String> =
        (1..=11).map(|number| format!("command:./agent --variant number-{number} --fast")).collect();
    insta::assert_snapshot!(rendered(&events_of_agents(&names), PLAIN), @"
    ═══ 11 agents — 2 cases ══════════════════════════════════════════════════════
      [1]  command:./agent --variant number-1 --fast
      [2]  command:./agent --variant number-2 --fast
      [3]  command:./agent --variant number-3 --fast
      [4]  command:./agent --variant number-4 --fast
      [5]  command:./agent --variant number-5 --fast
      [6]  command:./agent --variant number-6 --fast
      [7]  command:./agent --variant number-7 --fast
      [8]  command:./agent --variant number-8 --fast
      [9]  command:./agent --variant number-9 --fast
      [10] command:./agent --variant number-10 --fast
      [11] command:./agent --variant number-11 --fast
                         [1]      [2]      [3]      [4]      [5]      [6]      [7]
    get_weather — golden evals
      gs-x-000            ✓        ✓        ✓        ✓        ✓        ✓        ✓
      gs-x-001            ✗        ✗        ✗        ✗        ✗        ✗        ✗
    ──────────────────────────────────────────────────────────────────────────────
      pass rate         50%      50%      50%      50%      50%      50%      50%
      cost                —        —        —        —        —        —        —
      cost per pass       —        —        —        —        —        —        —
      latency p50      1 ms     1 ms     1 ms     1 ms     1 ms     1 ms     1 ms
      latency p95    250 ms   250 ms   250 ms   250 ms   250 ms   250 ms   250 ms

                         [8]      [9]     [10]     [11]
    get_weather — golden evals
      gs-x-000            ✓        ✓        ✓        ✓
      gs-x-001            ✗        ✗        ✗        ✗
    ──────────────────────────────────────────────────────────────────────────────
      pass rate         50%      50%      50%      50%
      cost                —        —        —        —
      cost per pass       —        —        —        —
      latency p50      1 ms     1 ms     1 ms     1 ms
      latency p95    250 ms   250 ms   250 ms   250 ms
      best value: unknown, since no agent has a known cost per passed case

      gs-x-001
        ✗ all: responseContains: expected 'a'

    11 suites: 11/22 passed | 11 failed | 0 skipped assertions
    ");
}

#[test]
fn numbers_agents_with_equal_names() {
    let names = ["https://host/chat?key=***".to_owned(), "https://host/chat?key=***".to_owned()];
    let matrix = matrix_of(&fixture::record(&events_of_agents(&names))).expect("two agents");
    let agents: Vec<&str> = matrix.agents.iter().map(|agent| agent.agent.as_str()).collect();
    assert_eq!(agents, ["https://host/chat?key=***", "https://host/chat?key=*** (2)"]);
    assert_eq!(matrix.rows.iter().map(|row| row.cells.len()).collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn rows_keep_file_order_if_cases_are_missing() {
    let pass = |id: &str| case(id, "", Outcome::Passed);
    let mut first = suite_of("a:1", "x.golden.json", Tier::Golden, vec![pass("1"), pass("3"), pass("5")]);
    let mut second = suite_of("b:2", "x.golden.json", Tier::Golden, vec![pass("2"), pass("3"), pass("4"), pass("5")]);
    for suite in [&mut first, &mut second] {
        suite.header.selected = 5;
        // The index is the id, counted from 0.
        for (index, case) in &mut suite.cases {
            *index = case.id.parse::<usize>().expect("a number") - 1;
        }
    }
    let matrix = matrix_of(&fixture::record(&events_of(&[first, second]))).expect("two agents");
    let rows: Vec<(&str, Vec<bool>)> =
        matrix.rows.iter().map(|row| (row.id.as_str(), row.cells.iter().map(Option::is_some).collect())).collect();
    let expected = [
        ("1", vec![true, false]),
        ("2", vec![false, true]),
        ("3", vec![true, true]),
        ("4", vec![false, true]),
        ("5", vec![true, true]),
    ];
    assert_eq!(rows, expected);
    assert_eq!(matrix.agents.iter().map(|agent| agent.not_run).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn a_single_agent_has_no_matrix() {
    assert_eq!(matrix_of(&fixture::record(&fixture::events())), None);
}

#[test]
fn renders_markdown() {
    insta::assert_snapshot!(fixture::report(&two_agents(), MarkdownReporter::new), @r"
    ## ❌ karat: 1 regression, 6/8 passed, 1 failed, 1 errored, 1 vacuous

    ### Regressions

    **❌ <code>gs-get-weather-002</code>** Rain in Zürich · <code>evals/get_weather.golden.json&#58;2 &#40;anthropic&#58;small&#41;</code>

    ```text
    toolsCalled: expected ['get_weather'] but got []

    message: message of gs-get-weather-002
    answer: (empty)
    calls: none
    ```

    ### Agents

    | | <code>openai&#58;gpt-large</code> | <code>anthropic&#58;small</code> |
    | --- | ---: | ---: |
    | pass rate | **100%** \* | 66.7% |
    | errored | 0 | 1 |
    | vacuous | 1 | 0 |
    | cost | &#36;0.0150 | **&#36;0.00150** \* |
    | cost per pass | &#36;0.00500 | **&#36;0.000750** \* |
    | latency p50 | 900 ms | **400 ms** \* |
    | latency p95 | 2.0 s | **500 ms** \* |

    \* the best value of its row

    best value: <code>openai&#58;gpt-large</code>, &#36;0.00500 per passed case at a pass rate of 100%; a cheaper agent passes less often

    ### Cases

    | Case | <code>openai&#58;gpt-large</code> | <code>anthropic&#58;small</code> |
    | --- | ---: | ---: |
    | <code>gs-get-weather-001</code> Rain in Zürich | ✅ | ✅ |
    | <code>gs-get-weather-002</code> Rain in Zürich | ✅ | ❌ |
    | <code>gs-get-weather-003</code> Rain in Zürich | ⚠️ | ❗ |
    | <code>ls-get-weather-001</code> Rain in Zürich | ✅ | ✅ |

    ### Suites

    | Tool | Tier | Passed | Failed | Errored | Skipped assertions | Total time |
    | --- | --- | ---: | ---: | ---: | ---: | ---: |
    | get_weather &#40;openai&#58;gpt-large&#41; | golden | 3 | 0 | 0 | 0 | 2.2 s |
    | get_weather &#40;openai&#58;gpt-large&#41; | labeled | 1 | 0 | 0 | 0 | 2.0 s |
    | get_weather &#40;anthropic&#58;small&#41; | golden | 1 | 1 | 1 | 0 | 710 ms |
    | get_weather &#40;anthropic&#58;small&#41; | labeled | 1 | 0 | 0 | 0 | 500 ms |

    ### Warnings

    - ⚠️ <code>evals/get_weather.golden.json &#40;openai&#58;gpt-large&#41;</code>: Tool get_weather is not in the registry, so whether its evals are stale is unknown.
    - ⚠️ <code>evals/get_weather.golden.json &#40;openai&#58;gpt-large&#41;</code>: only of the first agent
    - ⚠️ <code>evals/get_weather.golden.json &#40;openai&#58;gpt-large&#41;</code>: <code>gs-get-weather-003</code> passed, but no assertion ran, so it proves nothing.
    - ⚠️ <code>evals/get_weather.golden.json &#40;anthropic&#58;small&#41;</code>: Tool get_weather is not in the registry, so whether its evals are stale is unknown.

    ### Errors: no verdict

    <details>
    <summary>❗ <code>gs-get-weather-003</code> Rain in Zürich</summary>

    <code>evals/get_weather.golden.json&#58;3 &#40;anthropic&#58;small&#41;</code>

    ```text
    HTTP 500: overloaded
    ```

    </details>
    ");
}

#[test]
fn junit_has_a_suite_per_agent() {
    let text = fixture::report(&two_agents(), JunitReporter::new);
    assert!(text.contains("<testsuite name=\"evals/get_weather.golden.json (anthropic:small)\""), "{text}");
    assert!(text.contains("classname=\"get_weather.labeled (openai:gpt-large)\""), "{text}");
}

#[test]
fn a_long_list_is_limited_to_failures() {
    let cases = |fails: usize| -> Vec<CaseResult> {
        let new_row = |number: usize| {
            let id = format!("gs-x-{number:04}");
            if number < fails {
                failed(&id, "", &[("toolsCalled", "expected []")])
            } else {
                case(&id, "", Outcome::Passed)
            }
        };
        (0..700).map(new_row).collect()
    };
    let suites = [("a:1", 0), ("b:2", 400)].map(|(agent, fails)| suite_of(agent, "x.json", Tier::Golden, cases(fails)));
    let text = fixture::report(&events_of(&suites), MarkdownReporter::new);
    assert!(text.contains("_Not listed: 300 that passed everywhere, 100 that did not._"), "{text}");
    assert!(text.contains("best value: unknown"), "{text}");
}

/// Returns a run whose agents, files and cases have these names.
fn events_with_texts(texts: &[String], agents: usize) -> Vec<RunEvent> {
    let text = |index: usize| texts[index % texts.len()].clone();
    let suites: Vec<Suite> = (0..agents)
        .map(|agent| {
            let cases = vec![
                case(&format!("{}1", text(1)), &text(2), Outcome::Passed),
                failed(&format!("{}2", text(2)), &text(3), &[("toolsCalled", &text(4))]),
                errored(&format!("{}3", text(3)), &text(4), &text(5)),
            ];
            suite_of(&format!("{}{agent}", text(agent)), &text(0), Tier::Golden, cases)
        })
        .collect();
    events_of(&suites)
}

#[test]
fn escapes_control_characters_and_markup() {
    let events = events_with_texts(&[HOSTILE.to_owned()], 2);
    let text = rendered(&events, PLAIN);
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{0}', '\r']), "{text:?}");
    let page = fixture::report(&events, MarkdownReporter::new);
    assert!(
        !page.replace("```", "").contains("<script") || page.matches("<script").count() <= page.matches("````").count()
    );
    assert!(!page.lines().filter(|line| line.starts_with("| ")).any(|line| line.contains("<img")), "{page}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_line_is_wider_than_the_screen(
        texts in prop::collection::vec(any_text(), 1..6),
        agents in 2_usize..14,
        columns in 40_usize..120,
        ascii in any::<bool>(),
    ) {
        let symbols = if ascii { Symbols::ASCII } else { Symbols::UNICODE };
        let text = rendered(&events_with_texts(&texts, agents), ConsoleSettings { columns, symbols, ..PLAIN });
        for line in text.lines() {
            prop_assert!(width(line) <= columns, "{} > {columns}: {line}\n{text}", width(line));
        }
        prop_assert!(!ascii || text.is_ascii(), "{text}");
    }
}

#[test]
fn equal_errors_of_several_cases_are_printed_once() {
    let path = "evals/get_weather.golden.json";
    let error = |id: &str| errored(id, "", "HTTP 404");
    let first = vec![error("gs-001"), error("gs-002"), case("gs-003", "", Outcome::Passed), error("gs-004")];
    let second = vec![case("gs-001", "", Outcome::Passed), failed("gs-002", "", &[("a", "b")]), error("gs-003")];
    let suites = [suite_of("a", path, Tier::Golden, first), suite_of("b", path, Tier::Golden, second)];
    let text = rendered(&events_of(&suites), PLAIN);
    assert_eq!(text.matches("a: HTTP 404\n      and 2 more cases with the same error\n").count(), 1, "{text}");
    assert_eq!(text.matches("HTTP 404").count(), 2, "{text}");
    assert!(text.contains("  gs-002\n    ✗ b: a: b\n"), "{text}");
}
