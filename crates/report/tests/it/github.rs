//! Workflow commands and the step summary.

use karat_cases::Tier;
use karat_core::event::Reporter;
use karat_report::github::{GithubReporter, StepSummaryReporter, render};
use karat_report::markdown;
use proptest::prelude::*;

use crate::fixture::{self, Suite};

#[test]
fn renders_every_kind_of_outcome() {
    let commands = fixture::report(&fixture::events(), GithubReporter::new);
    insta::assert_snapshot!(commands, @r"
    ::error file=evals/book_flight.labeled.json,line=3,title=ls-book-flight-001%3A Books%2C and nothing else::regression: toolsCalled: expected ['book_flight'] but got ['get_weather']%0A%0Amessage: message of ls-book-flight-001%0Aanswer: (empty)%0Acalls: none
    ::error file=evals/get_weather.golden.json,line=15,title=gs-get-weather-002%3A Names the city::responseContains: expected 'Tokyo' in response but not found%0AmaxLatencyMs: expected at most 100 ms, took 250 ms%0A%0Amessage: message of gs-get-weather-002%0Aanswer: (empty)%0Acalls: none
    ::error file=evals/get_weather.golden.json,line=48,title=gs-get-weather-005%3A Too slow::timeout: no answer within 60000 ms ('timeoutMs')
    ::error file=evals/book_flight.labeled.json,line=14,title=ls-book-flight-002%3A \u{0}\u{1b}[31mred ]]> <script>alert(1)</script> <img src=x onerror=alert(1)> & \u{fffe} %3A%3Aadd-mask%3A%3Ax %250A%3A%3Astop-commands%3A%3Ay ``` </details> | ![i](http%3A//evil.test/i.png) www.evil.test @octocat …::responseNotContains: \u{0}\u{1b}[31mred ]]> <script>alert(1)</script> <img src=x onerror=alert(1)> & \u{fffe}%0A::add-mask::x %250A::stop-commands::y ```%0A</details> | ![i](http://evil.test/i.png) www.evil.test @octocat #1 \u{202e}end%0A%0Amessage: message of ls-book-flight-002%0Aanswer: \u{0}\u{1b}[31mred ]]> <script>alert(1)</script> <img src=x onerror=alert(1)> & \u{fffe}%0A::add-mask::x %250A::stop-commands::y ```%0A</details> | ![i](http://evil.test/i.png) www.evil.test @octocat #1 \u{202e}end%0Acalls: none
    ::error file=evals/get_weather.golden.json,line=37,title=gs-get-weather-004 errored::HTTP 500: Internal Server Error
    ::warning file=evals/get_weather.golden.json,title=staleness::Evals for get_weather generated against description hash aaaaaaaaaaaa, current is bbbbbbbbbbbb. Results may not reflect current routing contract.
    ::warning file=evals/get_weather.golden.json,line=59,title=gs-get-weather-006 is vacuous::passed, but no assertion ran, so it proves nothing
    ::warning file=evals/book_flight.labeled.json,title=karat::stubs do not apply to an endpoint agent
    ::notice title=karat::1 regression, 3/8 passed, 4 failed, 1 errored, 1 vacuous, 1 not run
    ");
}

#[test]
fn escapes_commands_in_messages() {
    let mut suite = Suite::new("a,b:c%.json", "a", Tier::Golden, &[1]);
    suite.cases = vec![(0, fixture::failed("x::y", "a, b\n::stop-commands::z", &[("a", "\r\n::add-mask::x %0A")]))];
    let commands = render(&fixture::record(&fixture::events_of(&[suite])), "");
    insta::assert_snapshot!(commands, @"
    ::error file=a%2Cb%3Ac%25.json,line=1,title=x%3A%3Ay%3A a%2C b %3A%3Astop-commands%3A%3Az::a: %0A::add-mask::x %250A%0A%0Amessage: message of x::y%0Aanswer: (empty)%0Acalls: none
    ::notice title=karat::0/1 passed, 1 failed
    ");
}

#[test]
fn near_misses_are_warnings() {
    let mut suite = Suite::new("a.json", "a", Tier::Golden, &[3]);
    suite.cases = vec![(0, fixture::near_miss("x", "I don't know", "I don’t\n::stop-commands::"))];
    let commands = render(&fixture::record(&fixture::events_of(&[suite])), "");
    insta::assert_snapshot!(commands, @r"
    ::warning file=a.json,line=3,title=x::near miss of 'I don't know': the response has 'I don’t%0A::stop-commands::' (set 'textMatch' to loose or exact)
    ::notice title=karat::1/1 passed
    ");
}

#[test]
fn escapes_control_characters_in_file_names() {
    let mut suite = Suite::new("a\u{1b}]0;b\u{202e}.json", "a", Tier::Golden, &[1]);
    suite.cases = vec![(0, fixture::failed("x", "", &[("a", "b")]))];
    let commands = render(&fixture::record(&fixture::events_of(&[suite])), "");
    assert!(commands.starts_with("::error file=a\\u{1b}]0;b\\u{202e}.json,line=1,"), "{commands}");
}

#[test]
fn appends_to_an_existing_summary() {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.md");
    std::fs::write(&summary, "# Of another tool").unwrap();
    let mut reporter = StepSummaryReporter::new(summary.clone());
    for event in fixture::events() {
        reporter.on_event(&event).unwrap();
    }
    let rendered = markdown::render(&fixture::record(&fixture::events()));
    assert_eq!(std::fs::read_to_string(summary).unwrap(), format!("# Of another tool\n\n{rendered}"));
}

#[test]
fn a_nearly_full_summary_gets_only_the_headline() {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.md");
    std::fs::write(&summary, "x".repeat(markdown::LIMIT)).unwrap();
    let mut reporter = StepSummaryReporter::new(summary.clone());
    for event in fixture::events() {
        reporter.on_event(&event).unwrap();
    }
    let text = std::fs::read_to_string(summary).unwrap();
    assert!(text.len() < markdown::LIMIT + 2_000);
    assert!(text.contains("## ❌ karat: 1 regression") && text.contains("1 more left out"));
}

#[test]
fn a_failed_write_is_an_error() {
    let message = fixture::report_read_only(GithubReporter::new).to_string();
    assert!(message.starts_with("cannot write GitHub's workflow commands to /"), "{message}");

    let folder = tempfile::tempdir().unwrap();
    let mut reporter = StepSummaryReporter::new(folder.path().to_path_buf());
    let error = fixture::events().iter().find_map(|event| reporter.on_event(event).err()).expect("a folder");
    assert!(error.to_string().starts_with("cannot write GitHub's step summary to /"), "{error}");
}

#[test]
fn failures_that_the_baseline_has_too_are_warnings() {
    let mut suite = Suite::new("a.json", "a", Tier::Golden, &[1, 2, 3]);
    let failed = |id: &str| fixture::failed(id, "", &[("a", "b")]);
    suite.cases = vec![(0, failed("known")), (1, failed("new")), (2, failed("worse"))];
    suite.baseline_run_id = Some("run-6".to_owned());
    suite.regressions = vec!["worse".to_owned()];
    suite.still_failing = vec!["known".to_owned()];
    let commands = render(&fixture::record(&fixture::events_of(&[suite])), "");
    insta::assert_snapshot!(commands, @"
    ::error file=a.json,line=3,title=worse::regression: a: b%0A%0Amessage: message of worse%0Aanswer: (empty)%0Acalls: none
    ::error file=a.json,line=2,title=new::a: b%0A%0Amessage: message of new%0Aanswer: (empty)%0Acalls: none
    ::warning file=a.json,line=1,title=known::fails in the baseline too: a: b%0A%0Amessage: message of known%0Aanswer: (empty)%0Acalls: none
    ::notice title=karat::1 regression, 0/3 passed, 3 failed
    ");
}

proptest! {
    #[test]
    fn no_text_becomes_a_command(text in fixture::any_text()) {
        let commands = render(&fixture::record(&fixture::events_with_text(&text)), "");
        let levels: Vec<&str> =
            commands.split(['\n', '\r']).map(|line| line.split(' ').next().unwrap_or_default()).collect();
        let expected = [&["::error"; 4][..], &["::warning"; 5], &["::notice", ""]].concat();
        prop_assert_eq!(levels, expected);
        for line in commands.lines() {
            // The next `::` ends the properties.
            let (properties, _) = line[2..].split_once("::").unwrap();
            let (_, properties) = properties.split_once(' ').unwrap();
            let names: Vec<&str> = properties.split(',').map(|pair| pair.split('=').next().unwrap()).collect();
            let known = [&["file", "line", "title"][..], &["file", "title"], &["title"]];
            prop_assert!(known.contains(&names.as_slice()), "{}", line);
        }
    }
}

#[test]
fn failed_gates_are_errors() {
    let text = fixture::report(&fixture::events_with_trials(), GithubReporter::new);
    insta::assert_snapshot!(text, @"
    ::error title=gate p95LatencyMs failed::p95LatencyMs of openai:<b>m</b>: 250 ms, at most 200 ms
    ::error title=gate maxRegressions could not be checked::maxRegressions: not checked, at most 0: there is no baseline
    ::error file=evals/x.golden.json,line=15,title=gs-x-002%3A Sometimes::1 of 3 trials failed: toolsCalled: expected 'a'%0AminLength: expected 5%0A%0Amessage: message of gs-x-001%0Aanswer: (empty)%0Acalls: none
    ::error file=evals/x.golden.json,line=26,title=gs-x-003%3A Sometimes::1 of 3 trials failed: timeout: no answer within 60000 ms ('timeoutMs')
    ::error file=evals/x.golden.json,line=37,title=gs-x-004 errored::1 of 3 trials errored, 1 failed: HTTP 500
    ::notice title=karat::1/4 passed, 2 failed, 1 errored, 8/12 trials passed, 1 errored (73%25 of 11 verdicts, 95%25 interval 43–90%25), 3 flaky
    ");
}
