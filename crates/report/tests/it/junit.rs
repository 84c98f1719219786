//! `JUnit` files.

use karat_report::junit::{JunitReporter, render};
use proptest::prelude::*;
use quick_junit::{NonSuccessKind, Report, TestCaseStatus};

use crate::fixture::{self, HOSTILE};

#[test]
fn renders_every_kind_of_outcome() {
    let xml = fixture::report(&fixture::events(), JunitReporter::new);
    insta::assert_snapshot!(xml, @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="karat" tests="8" skipped="1" failures="4" errors="1" timestamp="2026-03-04T05:06:07.089+00:00" time="61.234">
        <testsuite name="evals/get_weather.golden.json" tests="5" skipped="1" errors="1" failures="2" timestamp="2026-03-04T05:06:07.089+00:00" time="1.250">
            <properties>
                <property name="tool" value="get_weather"/>
                <property name="tier" value="golden"/>
                <property name="runId" value="run-7"/>
                <property name="agentEndpoint" value="https://agent.test/chat"/>
                <property name="stale" value="true"/>
                <property name="stalenessWarning" value="Evals for get_weather generated against description hash aaaaaaaaaaaa, current is bbbbbbbbbbbb. Results may not reflect current routing contract."/>
                <property name="notRun" value="1"/>
            </properties>
            <testcase name="gs-get-weather-001" classname="get_weather.golden" assertions="2" time="0.250">
                <properties>
                    <property name="description" value="Rain in Zürich ☂ 東京"/>
                </properties>
                <system-out>Es regnet in Zürich.</system-out>
            </testcase>
            <testcase name="gs-get-weather-002" classname="get_weather.golden" assertions="2" time="0.250">
                <properties>
                    <property name="description" value="Names the city"/>
                </properties>
                <failure message="responseContains: expected &apos;Tokyo&apos; in response but not found" type="responseContains">responseContains: expected &apos;Tokyo&apos; in response but not found
        at /expect/responseContains
    maxLatencyMs: expected at most 100 ms, took 250 ms
        at /expect/maxLatencyMs</failure>
            </testcase>
            <testcase name="gs-get-weather-004" classname="get_weather.golden" assertions="0" time="0.250">
                <properties>
                    <property name="description" value="Answers at all"/>
                </properties>
                <error message="HTTP 500: Internal Server Error" type="errored">HTTP 500: Internal Server Error</error>
            </testcase>
            <testcase name="gs-get-weather-005" classname="get_weather.golden" assertions="2" time="0.250">
                <properties>
                    <property name="description" value="Too slow"/>
                </properties>
                <failure message="timeout: no answer within 60000 ms (&apos;timeoutMs&apos;)" type="timeout">timeout: no answer within 60000 ms (&apos;timeoutMs&apos;)</failure>
            </testcase>
            <testcase name="gs-get-weather-006" classname="get_weather.golden" assertions="0" time="0.250">
                <properties>
                    <property name="description" value="Nothing to check"/>
                    <property name="vacuous" value="no assertion ran, so this pass proves nothing"/>
                </properties>
                <skipped message="no assertion ran, so this pass proves nothing"/>
            </testcase>
        </testsuite>
        <testsuite name="evals/book_flight.labeled.json" tests="3" skipped="0" errors="0" failures="2" timestamp="2026-03-04T05:06:07.089+00:00" time="0.750">
            <properties>
                <property name="tool" value="book_flight"/>
                <property name="tier" value="labeled"/>
                <property name="runId" value="run-7"/>
                <property name="agentEndpoint" value="https://agent.test/chat"/>
                <property name="stale" value="false"/>
                <property name="warning" value="stubs do not apply to an endpoint agent"/>
                <property name="notRun" value="0"/>
            </properties>
            <testcase name="ls-book-flight-001" classname="book_flight.labeled" assertions="2" time="0.250">
                <properties>
                    <property name="description" value="Books, and nothing else"/>
                    <property name="regression" value="true"/>
                </properties>
                <failure message="toolsCalled: expected [&apos;book_flight&apos;] but got [&apos;get_weather&apos;]" type="toolsCalled">toolsCalled: expected [&apos;book_flight&apos;] but got [&apos;get_weather&apos;]
        at /expect/toolsCalled</failure>
            </testcase>
            <testcase name="ls-book-flight-002" classname="book_flight.labeled" assertions="2" time="0.250">
                <properties>
                    <property name="description" value="\u{0}\u{1b}[31mred ]]&gt; &lt;script&gt;alert(1)&lt;/script&gt; &lt;img src=x onerror=alert(1)&gt; &amp; \u{fffe}
    ::add-mask::x %0A::stop-commands::y ```
    &lt;/details&gt; | ![i](http://evil.test/i.png) www.evil.test @octocat #1 \u{202e}end"/>
                </properties>
                <failure message="responseNotContains: \u{0}\u{1b}[31mred ]]&gt; &lt;script&gt;alert(1)&lt;/script&gt; &lt;img src=x onerror=alert(1)&gt; &amp; \u{fffe}" type="responseNotContains">responseNotContains: \u{0}\u{1b}[31mred ]]&gt; &lt;script&gt;alert(1)&lt;/script&gt; &lt;img src=x onerror=alert(1)&gt; &amp; \u{fffe}
    ::add-mask::x %0A::stop-commands::y ```
    &lt;/details&gt; | ![i](http://evil.test/i.png) www.evil.test @octocat #1 \u{202e}end
        at /expect/responseNotContains</failure>
                <system-out>\u{0}\u{1b}[31mred ]]&gt; &lt;script&gt;alert(1)&lt;/script&gt; &lt;img src=x onerror=alert(1)&gt; &amp; \u{fffe}
    ::add-mask::x %0A::stop-commands::y ```
    &lt;/details&gt; | ![i](http://evil.test/i.png) www.evil.test @octocat #1 \u{202e}end</system-out>
            </testcase>
            <testcase name="ls-book-flight-003" classname="book_flight.labeled" assertions="2" time="0.250"/>
        </testsuite>
    </testsuites>
    "#);
}

#[test]
fn separates_errors_from_failures() {
    let report = Report::deserialize_from_str(&render(&fixture::record(&fixture::events())).unwrap()).unwrap();
    assert_eq!((report.tests, report.failures, report.errors), (8, 4, 1));
    for case in report.test_suites.iter().flat_map(|suite| &suite.test_cases) {
        let TestCaseStatus::NonSuccess { kind, .. } = &case.status else { continue };
        assert_eq!(*kind == NonSuccessKind::Error, case.name.as_str() == "gs-get-weather-004");
    }
}

#[test]
fn escapes_hostile_text() {
    let xml = render(&fixture::record(&fixture::events())).unwrap();
    let report = Report::deserialize_from_str(&xml).unwrap();
    let text = failure_text(&report, 1, 1);
    for part in ["\\u{0}\\u{1b}[31mred ]]> <script>", "onerror=alert(1)> & \\u{fffe}\n::add-mask::x", "\\u{202e}end"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    for raw in ["<script", "<img", "]]>", "\u{1b}", "\u{0}", "\u{fffe}"] {
        assert!(!xml.contains(raw), "{raw:?}");
        assert!(HOSTILE.contains(raw));
    }
}

#[test]
fn truncates_long_responses() {
    let mut suite = fixture::Suite::new("a.json", "a", karat_cases::Tier::Golden, &[1]);
    let mut case = fixture::case("a", "", karat_core::result::Outcome::Passed);
    case.details.response = "é".repeat(3_000);
    suite.cases = vec![(0, case)];
    let xml = render(&fixture::record(&fixture::events_of(&[suite]))).unwrap();
    let report = Report::deserialize_from_str(&xml).unwrap();
    let system_out = report.test_suites[0].test_cases[0].system_out.clone().unwrap();
    assert_eq!(system_out.as_str(), format!("{}…", "é".repeat(1_999)));
}

#[test]
fn an_unfinished_suite_has_no_cases() {
    let mut events = fixture::events();
    events.retain(|event| !matches!(event, karat_core::event::RunEvent::SuiteFinished { suite: 1, .. }));
    let report = Report::deserialize_from_str(&render(&fixture::record(&events)).unwrap()).unwrap();
    let suite = &report.test_suites[1];
    assert!(suite.test_cases.is_empty());
    let not_run = suite.properties.iter().find(|property| property.name.as_str() == "notRun").unwrap();
    assert_eq!(not_run.value.as_str(), "3");
}

#[test]
fn a_failed_write_is_an_error() {
    let message = fixture::report_read_only(JunitReporter::new).to_string();
    assert!(message.starts_with("cannot write the JUnit report to /"), "{message}");
    assert!(message.ends_with("report: the file is read-only"), "{message}");
}

proptest! {
    #[test]
    fn any_text_becomes_valid_xml_with_its_printable_parts(text in fixture::any_text()) {
        let xml = render(&fixture::record(&fixture::events_with_text(&text))).unwrap();
        prop_assert!(xml.chars().all(is_allowed_in_xml));
        let report = Report::deserialize_from_str(&xml).unwrap();
        prop_assert_eq!((report.tests, report.failures, report.errors), (4, 2, 1));

        let description = failure_text(&report, 0, 0);
        let mut rest = description.as_str();
        for part in text.split(|character: char| !is_plain(character)) {
            let position = rest.find(part);
            prop_assert!(position.is_some(), "{:?} in {:?}", part, description);
            rest = &rest[position.unwrap() + part.len()..];
        }
    }
}

fn failure_text(report: &Report, suite: usize, case: usize) -> String {
    match &report.test_suites[suite].test_cases[case].status {
        TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, description: Some(text), .. } => text.to_string(),
        other => panic!("no failure: {other:?}"),
    }
}

/// The `Char` production of XML 1.0, without discouraged characters.
fn is_allowed_in_xml(character: char) -> bool {
    matches!(character, '\n' | ' '..='\u{7e}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn is_plain(character: char) -> bool {
    is_allowed_in_xml(character)
        && !matches!(character, '\n' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[test]
fn trials_are_properties() {
    let text = fixture::report(&fixture::events_with_trials(), JunitReporter::new);
    assert!(text.contains(r#"<property name="trialsPassed" value="2/3"/>"#), "{text}");
    assert!(text.contains(r#"<property name="flaky" value="true"/>"#), "{text}");
    let message = "1 of 3 trials failed: timeout: no answer within 60000 ms (&apos;timeoutMs&apos;)";
    assert!(text.contains(&format!(r#"message="{message}" type="timeout""#)), "{text}");
}
