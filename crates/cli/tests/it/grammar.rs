//! Flags, names and help of all verbs.

use rstest::rstest;
use serde_json::json;

use crate::feedback::project_with_traces;
use crate::support::{ok_case, project};

/// Returns the lines of a verb's help below a heading.
fn help_lines(arguments: &[&str], heading: &str) -> Vec<String> {
    let help = project().command(arguments.iter().chain(&["-h"]).copied()).env("COLUMNS", "100").run().stdout;
    let lines = help.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns the flags below a heading.
fn flags(arguments: &[&str], heading: &str) -> Vec<String> {
    let flag = |line: &String| {
        let word = line.split_whitespace().find(|word| word.starts_with("--"))?;
        word.split(['[', '=', ',']).next().filter(|flag| *flag != "--help").map(str::to_owned)
    };
    let lines = help_lines(arguments, heading);
    // Further lines of a description are indented more.
    lines.iter().filter(|line| line.starts_with("  -") || line.starts_with("      --")).filter_map(flag).collect()
}

#[test]
fn help_of_run_lists_common_flags_first() {
    let own = flags(&["run"], "Options:");
    assert_eq!(
        own,
        [
            "--agent-endpoint",
            "--jobs",
            "--trials",
            "--baseline",
            "--fail-fast",
            "--format",
            "--report",
            "--list",
            "--watch",
            "--no-store"
        ]
    );
    assert!(flags(&["run"], "Selection:").contains(&"--tag".to_owned()));
    let configuration = flags(&["run"], "Configuration");
    assert!(configuration.contains(&"--timeout-ms".to_owned()), "{configuration:?}");
    for absent in ["--forge", "--refine", "--agreement", "--overlap-map-path"] {
        assert!(!configuration.contains(&absent.to_owned()), "{absent} has no effect on a run");
    }
}

#[rstest]
#[case(&["check"], 12)]
#[case(&["coverage"], 7)]
#[case(&["tools"], 6)]
#[case(&["tools", "lock"], 5)]
#[case(&["runs", "merge"], 4)]
#[case(&["eval", "refine"], 10)]
#[case(&["eval", "test"], 2)]
#[case(&["trace", "list"], 3)]
fn verbs_accept_only_relevant_configuration(#[case] verb: &[&str], #[case] most: usize) {
    let configuration = flags(verb, "Configuration");
    assert!(configuration.contains(&"--config".to_owned()), "{configuration:?}");
    assert!(configuration.len() <= most, "{configuration:?}");
}

#[rstest]
#[case(&["check", "--temperature", "1"])]
#[case(&["tools", "--concurrency", "2"])]
#[case(&["coverage", "--trials", "2"])]
#[case(&["run", "--refine", "openai:gpt-5"])]
fn rejects_flags_without_an_effect(#[case] arguments: &[&str]) {
    let output = project().run(arguments.iter().copied());
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("unexpected argument"), "{}", output.stderr);
}

#[rstest]
#[case(&["rnu"], "run")]
#[case(&["eval", "rnu"], "run")]
#[case(&["trace", "lsit"], "list")]
fn suggests_verbs(#[case] arguments: &[&str], #[case] verb: &str) {
    let output = project().run(arguments.iter().copied());
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains(&format!("tip: a similar subcommand exists: '{verb}'")), "{}", output.stderr);
}

#[test]
fn accepts_concurrency_for_jobs() {
    let project = project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    for flag in ["-j", "--jobs", "--concurrency"] {
        let output = project.run(["run", "--list", flag, "2"]);
        assert_eq!(output.code, Some(0), "{}", output.both());
        let output = project.run(["run", "--list", flag, "0"]);
        assert_eq!(output.code, Some(2), "{}", output.both());
        assert!(output.stderr.starts_with("error: --jobs "), "{}", output.stderr);
    }
}

#[test]
fn ratings_are_good_bad_or_neutral() {
    let project = project_with_traces(&["t1"]);
    for (input, word, name) in
        [("good", "good", "positive"), ("negative", "bad", "negative"), ("neutral", "neutral", "neutral")]
    {
        let output = project.run(["feedback", "add", "t1", input]);
        assert!(output.stdout.starts_with(&format!("t1: rated {word} by Ada")), "{}", output.both());
        let table = project.run(["feedback", "list"]).stdout;
        assert!(table.contains(word), "{table}");
        let json = project.run(["feedback", "list", "--format", "json"]).stdout;
        assert!(json.replace(' ', "").contains(&format!("\"rating\":\"{name}\"")), "{json}");
        for filter in [input, word] {
            let list = project.run(["trace", "list", "--source", "all", "--rating", filter]);
            assert!(list.stdout.contains("t1"), "{}", list.both());
        }
    }
    let imported = project.command(["feedback", "import", "-"]).stdin("trace_id,rating,author\nt1,bad,Bob\n").run();
    assert_eq!(imported.stdout, "imported 1 rating from stdin\n", "{}", imported.both());
}

#[test]
fn writes_manual_pages() {
    let project = project();
    let output = project.run(["man", "--dir", "share/man"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let page = project.read("share/man/karat-run.1");
    assert!(page.starts_with(".ie") || page.contains(".TH"), "{page}");
    for page in ["karat.1", "karat-eval.1", "karat-eval-run.1", "karat-trace-list.1"] {
        assert!(project.path().join("share/man").join(page).is_file(), "{page}");
    }
    assert!(!project.run(["--help"]).stdout.contains("manual pages"), "hidden: it is for packages");
}
