//! Rubric suites, which are reported separately.

use std::sync::{Arc, Mutex};

use karat_core::event::Reporter;
use karat_core::event::{RunEvent, RunTotals};
use karat_core::rubric::{RubricOutcome, RubricSuite};
use karat_project::ResultFileReporter;
use karat_report::github::GithubReporter;
use karat_report::junit::JunitReporter;
use karat_report::markdown::MarkdownReporter;
use karat_report::{ConsoleReporter, ConsoleSettings, Palette, Symbols, Verbosity};

use crate::fixture::{self, HOSTILE, scored};

/// A run of two rubric suites: one scored and one skipped.
fn events(text: &str) -> Vec<RunEvent> {
    let skipped = RubricOutcome::Skipped("no judge is configured".to_owned());
    let suites = [scored(text), RubricSuite { outcome: skipped, tool_name: "other".to_owned(), ..scored("x") }];
    let mut totals = RunTotals::default();
    for suite in &suites {
        totals.rubric.get_or_insert_default().add(suite);
    }
    let run_id = "run-7".to_owned();
    let mut events = vec![RunEvent::RunStarted { run_id: run_id.clone(), suites: Vec::new(), total_cases: 0 }];
    events.extend(suites.map(|suite| RunEvent::RubricFinished { suite: Arc::new(suite) }));
    events.push(RunEvent::RunFinished { run_id, totals });
    events
}

fn console(events: &[RunEvent], columns: usize, symbols: Symbols, verbosity: Verbosity) -> String {
    let written = Arc::new(Mutex::new(String::new()));
    let out = Arc::clone(&written);
    let settings = ConsoleSettings { columns, symbols, palette: Palette { color: false }, verbosity };
    let mut reporter = ConsoleReporter::new(
        settings,
        Box::new(move |text| {
            out.lock().expect("no panic").push_str(text);
            Ok(())
        }),
    );
    for event in events {
        reporter.on_event(event).expect("memory");
    }
    reporter.flush().expect("memory");
    std::mem::take(&mut *written.lock().expect("no panic"))
}

#[test]
fn the_console_shows_scores_and_reasons() {
    let text = "leaves out what was asked for, and says more than anybody wanted to know about it";
    insta::assert_snapshot!(console(&events(text), 72, Symbols::UNICODE, Verbosity::Normal), @"
    ═══ leaves out what was asked for, and says more than anybody wanted to know about it — rubric
      4/6   leaves out what was asked for, and says more than anybody 250 ms
            wanted to know about it  leaves out what was asked for,
            and says more than anybody wanted to know about it
        leaves out what was asked for, and says more than anybody wanted to
        know about it 3/3, leaves out what was asked for, and says more than
        anybody wanted to know about it 1/3
        → leaves out what was asked for, and says more than anybody wanted
          to know about it 1/3: leaves out what was asked for, and says more
          than anybody wanted to know about it
      6/6   leaves out what was asked for, and says more than anybody 250 ms
            wanted to know about it  leaves out what was asked for,
            and says more than anybody wanted to know about it
        leaves out what was asked for, and says more than anybody wanted to
        know about it 3/3, leaves out what was asked for, and says more than
        anybody wanted to know about it 3/3
      !     leaves out what was asked for, and says more than anybody 250 ms
            wanted to know about it  leaves out what was asked for,
            and says more than anybody wanted to know about it
        → error: leaves out what was asked for, and says more than anybody
          wanted to know about it
    ────────────────────────────────────────────────────────────────────────
      2 judged | 10/12 points (83%) | 1 errored | 1 not run
        judged by leaves out what was asked for, and says more than anybody
        wanted to know about it
      ⚠ leaves out what was asked for, and says more than anybody wanted to
        know about it

    ═══ other — rubric ════════════════════════════════════════════════
      ⚠ skipped: no judge is configured

    2 rubric suites: 2 judged | 10/12 points (83%) | 1 errored | 1 not run
      4 skipped
    ");
}

#[test]
fn quiet_shows_only_lost_points_in_ascii() {
    let text = console(&events("naïve — x"), 72, Symbols::ASCII, Verbosity::Quiet);
    insta::assert_snapshot!(text, @"
    === na?ve - x - rubric ============================================
      4/6   na?ve - x  na?ve - x                                 250 ms
        na?ve - x 3/3, na?ve - x 1/3
        -> na?ve - x 1/3: na?ve - x
      ERR   na?ve - x  na?ve - x                                 250 ms
        -> error: na?ve - x
    -------------------------------------------------------------------
      2 judged | 10/12 points (83%) | 1 errored | 1 not run
        judged by na?ve - x
      warn na?ve - x

    === other - rubric ================================================
      warn skipped: no judge is configured

    2 rubric suites: 2 judged | 10/12 points (83%) | 1 errored | 1 not run
      4 skipped
    ");
    assert!(text.is_ascii());
}

#[test]
fn escapes_control_characters() {
    for columns in [0, 1, 20, 80, 400] {
        let output = console(&events(HOSTILE), columns, Symbols::UNICODE, Verbosity::Normal);
        let is_hostile = |character: char| character != '\n' && character.is_control() || character == '\u{202e}';
        assert!(!output.contains(is_hostile), "{output:?}");
    }
}

#[test]
fn markdown_has_a_separate_table() {
    insta::assert_snapshot!(fixture::report(&events("x|y"), MarkdownReporter::new), @"
    ## ⚠️ karat: rubrics: 2 judged with 83% of the points, 1 errored, 1 not run, 4 skipped

    ### Rubrics

    | Tool | Judge | Judged | Errored | Not run | Points |
    | --- | --- | ---: | ---: | ---: | ---: |
    | x&#124;y | x&#124;y | 2 | 1 | 1 | 10/12 (83%) |
    | other | skipped: no judge is configured | – | – | – | – |

    ### Rubrics: errors and lost points

    - ⚠️ <code>x&#124;y</code>: x&#124;y

    <details>
    <summary>4/6 <code>x&#124;y</code> x&#124;y</summary>

    <code>x&#124;y</code>

    ```text
    x|y 3/3: x|y
    x|y 1/3: x|y
    ```

    </details>

    <details>
    <summary>❗ <code>x&#124;y</code> x&#124;y</summary>

    <code>x&#124;y</code>

    ```text
    x|y
    ```

    </details>
    ");
}

#[test]
fn github_reports_missing_scores() {
    insta::assert_snapshot!(fixture::report(&events("x"), GithubReporter::new), @"
    ::error file=x,line=3,title=x errored::x
    ::warning file=x,title=karat::x
    ::warning file=x,title=rubric skipped::no judge is configured
    ::notice title=karat::rubrics: 2 judged with 83%25 of the points, 1 errored, 1 not run, 4 skipped
    ");
}

#[test]
fn junit_leaves_rubrics_out() {
    let text = fixture::report(&events("scored"), JunitReporter::new);
    assert!(!text.contains("scored") && text.contains("tests=\"0\""), "{text}");
}

#[test]
fn each_finished_suite_has_a_result_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut reporter = ResultFileReporter::new(folder.path().to_owned());
    let twice = [events("get/weather"), events("get/weather")].concat();
    for event in &twice {
        reporter.on_event(event).expect("a writable folder");
    }
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["get_weather-rubric-run-7-2.json", "get_weather-rubric-run-7.json"]);
    let text = std::fs::read_to_string(folder.path().join(&names[1])).expect("a result");
    assert!(text.contains("\"tier\": \"rubric\"") && text.contains("\"scoreShare\": 0.8"), "{text}");
}
