//! The console summary of a run.

use std::sync::{Arc, Mutex};

use karat_cases::Tier;
use karat_core::event::{Reporter, RunEvent, UnreachableAgent};
use karat_core::result::Outcome;
use karat_core::trace::ToolCall;
use karat_report::{ConsoleReporter, ConsoleSettings, Palette, Symbols, Verbosity, width};
use proptest::prelude::*;
use serde_json::json;

use crate::fixture::{self, Suite, any_text, case, errored, events_of, failed, timed_out, unreported_calls};

fn console(events: &[RunEvent], verbosity: Verbosity) -> String {
    let written = Arc::new(Mutex::new(String::new()));
    let out = Arc::clone(&written);
    let settings =
        ConsoleSettings { columns: 80, symbols: Symbols::UNICODE, palette: Palette { color: false }, verbosity };
    let output = Box::new(move |text: &str| {
        out.lock().expect("no panic").push_str(text);
        Ok(())
    });
    let mut reporter = ConsoleReporter::new(settings, output);
    for event in events {
        reporter.on_event(event).expect("memory");
    }
    reporter.flush().expect("memory");
    std::mem::take(&mut *written.lock().expect("no panic"))
}

#[test]
fn shows_the_details_of_failures() {
    let mut suite = Suite::new("evals/shop.golden.json", "shop", Tier::Golden, &[3, 9, 15]);
    (suite.header.id_columns, suite.header.description_columns) = (11, 20);
    let mut missing = failed("gs-shop-001", "Finds an order", &[("responseContains", "expected 'order'")]);
    missing.marks = vec!["order".to_owned()];
    missing.details.response = format!("{}Order A1 is on its way.\nMore.\n", "A line before.\n".repeat(9));
    let params = json!({"id": "A1"}).as_object().cloned().unwrap_or_default();
    missing.details.tool_calls = vec![ToolCall { name: "get_order".to_owned(), params, ..ToolCall::default() }];
    let mut passed = case("gs-shop-003", "Greets", Outcome::Passed);
    (passed.duration_ms, passed.details.response) = (16_052, "Hello.".to_owned());
    suite.cases = vec![(0, missing), (1, timed_out("gs-shop-002", "Too slow")), (2, passed)];
    suite.regressions = vec!["gs-shop-001".to_owned()];
    suite.header.has_baseline = true;
    suite.baseline_run_id = Some("run-6".to_owned());
    let events = events_of(&[suite]);
    insta::assert_snapshot!(console(&events, Verbosity::Normal), @r#"
    ═══ shop — golden evals ═══════════════════════════════════════════
      1 regression since run-6
      ✗ gs-shop-001  Finds an order                              250 ms
        → regression: responseContains: expected 'order'
          message  message of gs-shop-001
          answer   …
                   A line before.
                   Order A1 is on its way.
                   ^^^^^
                   More.
          calls    get_order {"id":"A1"}
      ✗ gs-shop-002  Too slow                                    250 ms
        → timeout: no answer within 60000 ms ('timeoutMs')
          message  message of gs-shop-002
      ✓ gs-shop-003  Greets                                      16.0 s
    ───────────────────────────────────────────────────────────────────
      1/3 passed | 2 failed | 0 skipped assertions | 16.5 s total

    not passed:
      ✗ gs-shop-001 (evals/shop.golden.json:3): regression: responseContains:
        expected 'order'
      ✗ gs-shop-002 (evals/shop.golden.json:9): timeout: no answer within 60000 ms
        ('timeoutMs')
    "#);
    insta::assert_snapshot!(console(&events, Verbosity::Full), @r#"
    ═══ shop — golden evals ═══════════════════════════════════════════
      1 regression since run-6
      ✗ gs-shop-001  Finds an order                              250 ms
        → regression: responseContains: expected 'order'
          message  message of gs-shop-001
          answer   A line before.
                   A line before.
                   A line before.
                   A line before.
                   A line before.
                   A line before.
                   A line before.
                   A line before.
                   A line before.
                   Order A1 is on its way.
                   ^^^^^
                   More.
          calls    get_order {"id":"A1"}
      ✗ gs-shop-002  Too slow                                    250 ms
        → timeout: no answer within 60000 ms ('timeoutMs')
          message  message of gs-shop-002
      ✓ gs-shop-003  Greets                                      16.0 s
          message  message of gs-shop-003
          answer   Hello.
          calls    none
    ───────────────────────────────────────────────────────────────────
      1/3 passed | 2 failed | 0 skipped assertions | 16.5 s total

    not passed:
      ✗ gs-shop-001 (evals/shop.golden.json:3): regression: responseContains:
        expected 'order'
      ✗ gs-shop-002 (evals/shop.golden.json:9): timeout: no answer within 60000 ms
        ('timeoutMs')
    "#);
}

#[test]
fn reports_once_that_calls_are_unreported() {
    let suite = |name: &str| {
        let mut suite = Suite::new(&format!("evals/{name}.golden.json"), name, Tier::Golden, &[1, 5]);
        (suite.header.id_columns, suite.header.description_columns) = (11, 4);
        suite.cases = (0..2).map(|index| (index, unreported_calls(&format!("gs-{name}-00{index}")))).collect();
        suite
    };
    let events = events_of(&[suite("shop"), suite("news")]);
    insta::assert_snapshot!(console(&events, Verbosity::Full), @"
    ═══ shop — golden evals ═══════════════════════════════════════════
      ✓ gs-shop-000                                              250 ms
          message  message of gs-shop-000
          answer   Sunny.
          calls    not reported
      ✓ gs-shop-001                                              250 ms
          message  message of gs-shop-001
          answer   Sunny.
          calls    not reported
    ───────────────────────────────────────────────────────────────────
      2/2 passed | 0 failed | 2 skipped assertions | 500 ms total

    ═══ news — golden evals ═══════════════════════════════════════════
      ✓ gs-news-000                                              250 ms
          message  message of gs-news-000
          answer   Sunny.
          calls    not reported
      ✓ gs-news-001                                              250 ms
          message  message of gs-news-001
          answer   Sunny.
          calls    not reported
    ───────────────────────────────────────────────────────────────────
      2/2 passed | 0 failed | 2 skipped assertions | 500 ms total

    ⚠ the agent does not report its tool calls, so assertions about calls were not
      judged in 4 cases: 'karat agent try MESSAGE' shows what its replies report
    2 suites: 4/4 passed | 0 failed | 4 skipped assertions
    ");
    let markdown = karat_report::markdown::render(&fixture::record(&events));
    let note = "- ⚠️ the agent does not report its tool calls, so assertions about calls were not judged in 4 cases";
    assert_eq!(markdown.matches(note).count(), 1, "{markdown}");
    let github = karat_report::github::render(&fixture::record(&events), "");
    assert_eq!(github.matches("::warning title=tool calls are not reported::").count(), 1, "{github}");
    let junit = karat_report::junit::render(&fixture::record(&events)).expect("XML");
    assert_eq!(junit.matches(r#"<property name="callsUnreported" value="true"/>"#).count(), 4, "{junit}");
}

#[test]
fn groups_equal_errors() {
    let lines: Vec<usize> = (1..=9).collect();
    let mut suite = Suite::new("evals/shop.golden.json", "shop", Tier::Golden, &lines);
    (suite.header.id_columns, suite.header.description_columns) = (11, 4);
    let id = |number: usize| format!("gs-shop-00{number}");
    suite.cases = (0..5).map(|index| (index, errored(&id(index), "Asks", "connection refused"))).collect();
    suite.cases.extend((5..9).map(|index| (index, errored(&id(index), "Asks", "not run"))));
    let mut events = events_of(&[suite]);
    if let Some(RunEvent::RunFinished { totals, .. }) = events.last_mut() {
        let (agent, error) = ("http://agent".to_owned(), "connection refused".to_owned());
        totals.unreachable = vec![UnreachableAgent { agent, error, not_run: 4 }];
    }
    insta::assert_snapshot!(console(&events, Verbosity::Normal), @"
    ═══ shop — golden evals ═══════════════════════════════════════════
      ! gs-shop-000  Asks                                        250 ms
        → error: connection refused
      ! 4 more cases with the same error
      ! gs-shop-005  Asks                                        250 ms
        → error: not run
      ! 3 more cases with the same error
    ───────────────────────────────────────────────────────────────────
      0/9 passed | 0 failed | 9 errored | 0 skipped assertions | 2.2 s total

    not passed:
      ! gs-shop-000 (evals/shop.golden.json:1) and 4 more: connection refused
      ! gs-shop-005 (evals/shop.golden.json:6) and 3 more: not run

    ! the agent cannot be reached, so 4 cases were not run: connection refused
    ");
    let markdown = karat_report::markdown::render(&fixture::record(&events));
    assert_eq!(markdown.matches("<details>").count(), 2, "{markdown}");
    assert!(markdown.contains("The same error in 4 more"), "{markdown}");
    let commands = karat_report::github::render(&fixture::record(&events), "");
    assert_eq!(commands.matches("::error ").count(), 2, "{commands}");
}

#[test]
fn all_suites_have_rules_of_equal_width() {
    let suites = [("a", 5), ("b", 60)].map(|(tool, columns)| {
        let mut suite = Suite::new(tool, tool, Tier::Golden, &[1]);
        (suite.header.id_columns, suite.header.description_columns) = (6, columns);
        suite.cases = vec![(0, case("gs-001", &"x".repeat(columns), Outcome::Passed))];
        suite
    });
    let text = console(&events_of(&suites), Verbosity::Normal);
    let rules: Vec<usize> = text.lines().filter(|line| line.starts_with(['═', '─'])).map(width).collect();
    assert_eq!((rules.len(), rules.iter().min()), (4, rules.iter().max()), "{text}");
}

#[test]
fn omits_suites_without_results() {
    let suites = ["a", "b"].map(|tool| Suite::new(tool, tool, Tier::Golden, &[1, 2]));
    assert_eq!(
        console(&events_of(&suites), Verbosity::Normal),
        "2 suites: 0/0 passed | 0 failed | 4 not run | 0 skipped assertions\n"
    );
}

proptest! {
    #[test]
    fn escapes_control_characters(text in any_text()) {
        for verbosity in [Verbosity::Full, Verbosity::Normal, Verbosity::Quiet] {
            let output = console(&fixture::events_with_text(&text), verbosity);
            let is_hostile = |character: char| {
                character.is_control() && character != '\n' || matches!(character, '\u{61c}' | '\u{2028}'..='\u{202e}')
            };
            prop_assert!(!output.contains(is_hostile), "{output:?}");
        }
    }
}
