//! The Markdown summary.

use karat_cases::Tier;
use karat_core::result::Outcome;
use karat_report::markdown::{LIMIT, MarkdownReporter, render, render_within};
use proptest::prelude::*;

use crate::fixture::{self, Suite};

#[test]
fn renders_every_kind_of_outcome() {
    let text = fixture::report(&fixture::events(), MarkdownReporter::new);
    insta::assert_snapshot!(text, @r"
    ## ❌ karat: 1 regression, 3/8 passed, 4 failed, 1 errored, 1 vacuous, 1 not run

    ### Regressions

    **❌ <code>ls-book-flight-001</code>** Books, and nothing else · <code>evals/book_flight.labeled.json&#58;3</code>

    ```text
    toolsCalled: expected ['book_flight'] but got ['get_weather']

    message: message of ls-book-flight-001
    answer: (empty)
    calls: none
    ```

    ### Suites

    | Tool | Tier | Passed | Failed | Errored | Skipped assertions | Total time |
    | --- | --- | ---: | ---: | ---: | ---: | ---: |
    | get_weather | golden | 2 | 2 | 1 | 3 | 1.2 s |
    | book_flight | labeled | 1 | 2 | 0 | 0 | 750 ms |

    ### Warnings

    - ⚠️ <code>evals/get_weather.golden.json</code>: Evals for get_weather generated against description hash aaaaaaaaaaaa, current is bbbbbbbbbbbb. Results may not reflect current routing contract.
    - ⚠️ <code>evals/get_weather.golden.json</code>: <code>gs-get-weather-006</code> passed, but no assertion ran, so it proves nothing.
    - ⚠️ <code>evals/get_weather.golden.json</code>: 1 selected case was not run.
    - ⚠️ <code>evals/book_flight.labeled.json</code>: stubs do not apply to an endpoint agent

    ### Other failures

    <details>
    <summary>❌ <code>gs-get-weather-002</code> Names the city</summary>

    <code>evals/get_weather.golden.json&#58;15</code>

    ```text
    responseContains: expected 'Tokyo' in response but not found
    maxLatencyMs: expected at most 100 ms, took 250 ms

    message: message of gs-get-weather-002
    answer: (empty)
    calls: none
    ```

    </details>

    <details>
    <summary>❌ <code>gs-get-weather-005</code> Too slow</summary>

    <code>evals/get_weather.golden.json&#58;48</code>

    ```text
    timeout: no answer within 60000 ms ('timeoutMs')
    ```

    </details>

    <details>
    <summary>❌ <code>ls-book-flight-002</code> &#92;u&#123;0&#125;&#92;u&#123;1b&#125;&#91;31mred &#93;&#93;&gt; &lt;script&gt;alert&#40;1&#41;&lt;/script&gt; &lt;img src=x onerror=alert&#40;1&#41;&gt; &amp; &#92;u&#123;fffe&#125; &#58;&#58;add-mask&#58;&#58;x %0A&#58;&#58;stop-commands&#58;&#58;y &#96;&#96;&#96; &lt;/details&gt; &#124; &#33;&#91;i&#93;&#40;http&#58;&#8203;//evil.test/i.png&#41; www&#8203;.evil.test &#64;&#8203;octocat &#35;&#8203;1 &#92;u&#123;202e&#125;end</summary>

    <code>evals/book_flight.labeled.json&#58;14</code>

    ````text
    responseNotContains: \u{0}\u{1b}[31mred ]]> <script>alert(1)</script> <img src=x onerror=alert(1)> & \u{fffe}
    ::add-mask::x %0A::stop-commands::y ```
    </details> | ![i](http://evil.test/i.png) www.evil.test @octocat #1 \u{202e}end

    message: message of ls-book-flight-002
    answer: \u{0}\u{1b}[31mred ]]> <script>alert(1)</script> <img src=x onerror=alert(1)> & \u{fffe}
    ::add-mask::x %0A::stop-commands::y ```
    </details> | ![i](http://evil.test/i.png) www.evil.test @octocat #1 \u{202e}end
    calls: none
    ````

    </details>

    ### Errors: no verdict

    <details>
    <summary>❗ <code>gs-get-weather-004</code> Answers at all</summary>

    <code>evals/get_weather.golden.json&#58;37</code>

    ```text
    HTTP 500: Internal Server Error
    ```

    </details>
    ");
}

#[test]
fn renders_a_passing_run() {
    let mut suite = Suite::new("a.golden.json", "a", Tier::Golden, &[1]);
    suite.cases = vec![(0, fixture::case("gs-a-001", "", Outcome::Passed))];
    insta::assert_snapshot!(render(&fixture::record(&fixture::events_of(&[suite]))), @"
    ## ✅ karat: 1/1 passed

    ### Suites

    | Tool | Tier | Passed | Failed | Errored | Skipped assertions | Total time |
    | --- | --- | ---: | ---: | ---: | ---: | ---: |
    | a | golden | 1 | 0 | 0 | 0 | 250 ms |
    ");
}

#[test]
fn near_misses_are_warnings() {
    let mut suite = Suite::new("a.json", "a", Tier::Golden, &[3]);
    suite.cases = vec![(0, fixture::near_miss("x", "US", "<b>us</b>"))];
    let text = render(&fixture::record(&fixture::events_of(&[suite])));
    let warning = text.lines().find(|line| line.contains("near miss")).unwrap_or_else(|| panic!("{text}"));
    assert!(warning.starts_with("- ⚠️ <code>a.json</code>: <code>x</code>: near miss of"), "{warning}");
    assert!(warning.contains("&lt;b&gt;us&lt;/b&gt;"), "{warning}");
}

#[test]
fn missing_verdicts_are_marked_with_a_warning() {
    let headline = |suite: Suite| {
        let text = render(&fixture::record(&fixture::events_of(&[suite])));
        text.lines().next().unwrap().to_owned()
    };
    let suite = || Suite::new("a.golden.json", "a", Tier::Golden, &[1, 2]);
    let passed = || fixture::case("gs-a-001", "", Outcome::Passed);
    let errored = || fixture::errored("gs-a-002", "", "no connection");

    let both = Suite { cases: vec![(0, passed()), (1, errored())], ..suite() };
    assert_eq!(headline(both), "## ⚠️ karat: 1/2 passed, 1 errored");
    let passing = Suite { cases: vec![(0, passed())], ..suite() };
    assert_eq!(headline(passing), "## ⚠️ karat: 1/1 passed, 1 not run");
    assert_eq!(headline(suite()), "## ⚠️ karat: 0/0 passed, 2 not run");
}

#[test]
fn truncates_long_reports_with_a_note() {
    let lines: Vec<usize> = (0..2_000).collect();
    let mut suite = Suite::new("a.golden.json", "a", Tier::Golden, &lines);
    let long = "x".repeat(5_000);
    suite.cases =
        lines.iter().map(|&index| (index, fixture::failed(&format!("{index}"), "", &[("a", &long)]))).collect();
    let run = fixture::record(&fixture::events_of(&[suite]));

    let text = render(&run);
    assert!(text.len() <= LIMIT && text.len() > LIMIT / 2, "{}", text.len());
    let count = text.matches("<details>").count();
    assert_eq!(text.matches("</details>").count(), count);
    assert!(text.ends_with(&format!("\n_{} more left out to limit the size of this report._\n", 2_000 - count)));

    let headline = render_within(&run, 0);
    assert!(headline.starts_with("## ❌ karat: 0/2000 passed, 2000 failed\n") && headline.len() < 1_000, "{headline}");
}

#[test]
fn a_failed_write_is_an_error() {
    let message = fixture::report_read_only(MarkdownReporter::new).to_string();
    assert!(message.starts_with("cannot write the Markdown report to /"), "{message}");
}

proptest! {
    #[test]
    fn no_text_becomes_markup(text in fixture::any_text()) {
        let hostile = prose(&render(&fixture::record(&fixture::events_with_text(&text))));
        let plain = prose(&render(&fixture::record(&fixture::events_with_text("word"))));
        // There are as many tags, cells, headings and emphases as with a plain text.
        for markup in ["<", ">", "|", "*", "`", "[", "]", "!", "\\", "\n#", "\n- ", "\n\n", "~", "$", "@", "://"] {
            prop_assert_eq!(hostile.matches(markup).count(), plain.matches(markup).count(), "{:?} in {}", markup, hostile);
        }
        prop_assert!(!hostile.to_lowercase().contains("www."));
        prop_assert!(!hostile.chars().any(|character| character != '\n' && character.is_control()));
    }
}

/// Returns the text outside of fenced code blocks.
fn prose(markdown: &str) -> String {
    let mut out = String::new();
    let mut fence: Option<usize> = None;
    for line in markdown.split('\n') {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            None => {
                out.push_str(line);
                out.push('\n');
            }
            Some(open) if ticks >= open && line.trim_start_matches('`').trim().is_empty() => fence = None,
            // A fence may be indented by up to three spaces, and a longer run of backticks also closes it.
            Some(open) => assert!(!line.contains(&"`".repeat(open)), "{line:?} in a fence of {open}"),
        }
    }
    assert_eq!(fence, None, "a fence was left open");
    out
}

#[test]
fn trials_and_gates_come_first() {
    let events = fixture::events_with_trials();
    insta::assert_snapshot!(fixture::report(&events, MarkdownReporter::new), @"
    ## ⚠️ karat: 1/4 passed, 2 failed, 1 errored, 8/12 trials passed, 1 errored (73% of 11 verdicts, 95% interval 43–90%), 3 flaky

    ### Gates

    - ✅ passRate of <code>openai&#58;&lt;b&gt;m&lt;/b&gt;</code>: 0.75, at least 0.7
    - ❌ p95LatencyMs of <code>openai&#58;&lt;b&gt;m&lt;/b&gt;</code>: 250 ms, at most 200 ms
    - ❗ maxRegressions: not checked, at most 0&#58; there is no baseline

    ### Suites

    | Tool | Tier | Passed | Failed | Errored | Trials | Flaky | Skipped assertions | Total time |
    | --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |
    | x | golden | 1 | 2 | 1 | 8/12 trials passed, 1 errored &#40;73% of 11 verdicts, 95% interval 43–90%&#41; | 3 | 0 | 3.0 s |

    ### Failures

    <details>
    <summary>❌ <code>gs-x-002</code> 2/3 flaky Sometimes</summary>

    <code>evals/x.golden.json&#58;15</code>

    ```text
    1 of 3 trials failed: toolsCalled: expected 'a'
    minLength: expected 5

    message: message of gs-x-001
    answer: (empty)
    calls: none
    ```

    </details>

    <details>
    <summary>❌ <code>gs-x-003</code> 2/3 flaky Sometimes</summary>

    <code>evals/x.golden.json&#58;26</code>

    ```text
    1 of 3 trials failed: timeout: no answer within 60000 ms ('timeoutMs')
    ```

    </details>

    ### Errors: no verdict

    <details>
    <summary>❗ <code>gs-x-004</code> 1/3 flaky Sometimes</summary>

    <code>evals/x.golden.json&#58;37</code>

    ```text
    1 of 3 trials errored, 1 failed: HTTP 500
    ```

    </details>
    ");
}
