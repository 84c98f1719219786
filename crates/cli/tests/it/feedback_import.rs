//! `karat feedback import`: CSV and JSON Lines files.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use karat_testkit::project::TempProject;
use rstest::rstest;
use serde_json::json;

use crate::feedback::{assert_matches_schema, parse_json, project_with_traces};
use crate::project_store::ProjectStore;

fn feedback_rows(project: &TempProject) -> Vec<String> {
    let csv = project.run(["feedback", "list", "--history", "--format", "csv"]).stdout;
    csv.lines().skip(1).map(str::to_owned).collect()
}

#[rstest]
#[case::bom_and_crlf("\u{feff}trace_id,rating\r\nt1,positive\r\nt2,negative\r\n")]
#[case::semicolons("rating;trace_id\npositive;t1\nnegative;t2\n")]
#[case::tabs("trace_id\trating\nt1\tpositive\nt2\tnegative\n")]
#[case::quotes("\"trace_id\",\"rating\"\n\"t1\",\"positive\"\n\"t2\",\"negative\"")]
#[case::json_lines(
    "{\"trace_id\":\"t1\",\"rating\":\"positive\"}\r\n\r\n{\"rating\":\"negative\",\"trace_id\":\"t2\"}\r\n"
)]
fn reads_csv_variants_and_json_lines(#[case] text: &str) {
    let project = project_with_traces(&["t1", "t2"]);
    let output = project.command(["feedback", "import", "-"]).stdin(text).run();
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "imported 2 ratings from stdin\n"),
        "{}",
        output.both()
    );
    let rows = feedback_rows(&project);
    assert!(rows.iter().all(|row| row.contains(",Ada,") && row.ends_with(",import")), "{rows:?}");
    let again = project.command(["feedback", "import", "-"]).stdin(text).run();
    assert_eq!(again.stdout, "imported 0 ratings from stdin; 2 rows unchanged\n");
    assert_eq!(feedback_rows(&project).len(), 2);
}

/// A row without a time is newer than all rows with a time.
#[rstest]
#[case::after("t1,negative,2026-01-03\nt1,positive,\n")]
#[case::before("t1,positive,\nt1,negative,2026-01-03\n")]
fn a_row_without_a_time_is_the_current_rating(#[case] rows: &str) {
    let project = project_with_traces(&["t1"]);
    let old = "trace_id,rating,created_at\nt1,positive,2026-01-02\n";
    assert_eq!(project.command(["feedback", "import", "-"]).stdin(old).run().code, Some(0));
    let rows = format!("trace_id,rating,created_at\n{rows}");
    let import = || project.command(["feedback", "import", "-"]).stdin(rows.clone()).run();
    assert_eq!(import().stdout, "imported 2 ratings from stdin\n");
    let current = project.run(["feedback", "list", "--format", "csv"]).stdout;
    assert!(current.lines().count() == 2 && current.contains("positive"), "{current}");
    assert_eq!(import().stdout, "imported 0 ratings from stdin; 2 rows unchanged\n");
}

#[test]
fn completes_short_ids() {
    let project = project_with_traces(&["conversation-1-a", "conversation-2-a", "conversation-2-b"]);
    let import = |rows: &str| {
        project.command(["feedback", "import", "-"]).stdin(format!("trace_id,rating,author\n{rows}")).run()
    };
    assert_eq!(import("conversation-1,negative,ada\n").stdout, "imported 1 rating from stdin\n");
    assert!(feedback_rows(&project)[0].contains("conversation-1-a"), "{:?}", feedback_rows(&project));
    let ambiguous = import("conversation-2,positive,ada\n");
    assert_eq!(ambiguous.code, Some(2), "{}", ambiguous.both());
    assert!(ambiguous.stderr.contains("several ids begin with 'conversation-2'"), "{}", ambiguous.stderr);
    let twice = import("conversation-1-a,positive,ada\nconversation-1,negative,ada\n");
    assert_eq!(twice.code, Some(2), "{}", twice.both());
    assert!(twice.stderr.contains("duplicate rating of 'conversation-1-a'"), "{}", twice.stderr);
}

/// An import adds a hash to an id that is unique only within its file.
#[test]
fn accepts_the_ids_of_imported_files() {
    let ids = ["conv-1-1e2ec23a4aa6", "conv-10-1e2ec23a4aa6", "conv-2-1e2ec23a4aa6", "conv-2-ffffc23a4aa6"];
    let project = project_with_traces(&ids);
    let import = |rows: &str| {
        project.command(["feedback", "import", "-"]).stdin(format!("trace_id,rating,author\n{rows}")).run()
    };
    assert_eq!(import("conv-1,good,ada\n").stdout, "imported 1 rating from stdin\n");
    assert!(feedback_rows(&project)[0].contains("conv-1-1e2ec23a4aa6"), "{:?}", feedback_rows(&project));
    let ambiguous = import("conv-2,good,ada\n");
    assert!(ambiguous.stderr.contains("several ids begin with 'conv-2'"), "{}", ambiguous.stderr);
    let added = project.run(["feedback", "add", "conv-1", "bad", "--author", "bob"]);
    assert_eq!(added.code, Some(0), "{}", added.both());
}

#[test]
fn reports_all_invalid_rows_and_writes_nothing() {
    let project = project_with_traces(&["t1", "t2-whole"]).file(
        "labels.csv",
        "trace_id,rating,note,created_at\n\
         t1,positive,fine,2026-01-02\n\
         t1,postive,,\n\
         t2,negative,shortened,\n\
         nowhere,negative,,\n\
         t1,neutral,,soon\n\
         t1,neutral\n",
    );
    let output = project.run(["feedback", "import", "labels.csv"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(output.stderr, @"
      × 'postive' is not a valid rating
       ╭─[labels.csv:3:4]
     3 │ t1,postive,,
       ·    ───────
       ╰────
      help: did you mean 'positive'?
      × trace 't2' not found in the store
       ╭─[labels.csv:4:1]
     4 │ t2,negative,shortened,
       · ──
       ╰────
      help: did you mean 't2-whole'? A short id has at least 8 characters
      × trace 'nowhere' not found in the store
       ╭─[labels.csv:5:1]
     5 │ nowhere,negative,,
       · ───────
       ╰────
      help: run 'karat trace list' to list traces
      × created_at is not a valid time: 'soon'
       ╭─[labels.csv:6:13]
     6 │ t1,neutral,,soon
       ·             ────
       ╰────
      help: expected 2026-11-16T12:00:00Z or 2026-11-16
      × expected 4 fields, found 2
       ╭─[labels.csv:7:1]
     7 │ t1,neutral
       · ▲
       ╰────
      help: quote a field that contains a separator
    error: nothing was imported from labels.csv
    hint: pass --skip-invalid to import only the valid rows
    ");
    assert_eq!(feedback_rows(&project), [""; 0]);
    let report = project.run(["feedback", "import", "labels.csv", "--format", "json"]);
    assert_eq!(report.code, Some(2));
    let report = parse_json(&report);
    assert_matches_schema("feedback-import", &report);
    assert_eq!((&report["written"], &report["rows"]), (&json!(false), &json!(6)));
    let lines: Vec<u64> =
        report["invalid"].as_array().unwrap().iter().map(|row| row["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [3, 4, 5, 6, 7]);
    // --skip-invalid imports the valid rows.
    let some = project.run(["feedback", "import", "labels.csv", "--skip-invalid"]);
    assert_eq!(some.code, Some(1), "{}", some.both());
    assert_eq!(some.stdout, "imported 1 rating from labels.csv; 5 rows left out\n");
    insta::assert_snapshot!(some.stderr, @"
    warning: labels.csv:3:4: 'postive' is not a valid rating
    warning: labels.csv:4:1: trace 't2' not found in the store
    warning: labels.csv:5:1: trace 'nowhere' not found in the store
    warning: labels.csv:6:13: created_at is not a valid time: 'soon'
    warning: labels.csv:7:1: expected 4 fields, found 2
    ");
    assert_eq!(feedback_rows(&project), ["t1,positive,fine,Ada,2026-01-02T00:00:00Z,import"]);
}

#[test]
fn rejects_invalid_headers() {
    let project = project_with_traces(&["t1"]);
    let import = |text: &str, more: &[&str]| {
        project.write("labels.csv", text);
        project.run(["feedback", "import", "labels.csv"].iter().chain(more).copied())
    };
    let output = import("trace_id,rating,rating,Notes\nt1,positive,,\n", &["--skip-invalid"]);
    assert_eq!(output.code, Some(2));
    insta::assert_snapshot!(output.stderr, @"
      × duplicate column 'rating'
       ╭─[labels.csv:1:17]
     1 │ trace_id,rating,rating,Notes
       ·                 ──────
       ╰────
      × unknown column 'Notes'
       ╭─[labels.csv:1:24]
     1 │ trace_id,rating,rating,Notes
       ·                        ─────
       ╰────
      help: did you mean 'note'?
    error: nothing was imported from labels.csv
    ");
    let output = import("t1,positive\n", &[]);
    assert_eq!(output.code, Some(2));
    insta::assert_snapshot!(output.stderr, @"
      × missing header
       ╭─[labels.csv:1:1]
     1 │ t1,positive
       · ──
       ╰────
      help: expected columns: trace_id,rating,note,author,created_at,source
    error: nothing was imported from labels.csv
    ");
    let output = import("trace_id,rating,reviewer_mood\nt1,positive,good\n", &["--ignore-unknown"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let output = import("trace_id,rating\n\n", &[]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(4), "error: no ratings in labels.csv\n"));
    let output = import("", &[]);
    assert_eq!(output.code, Some(4));
    let output = import("{}", &["--from", "csv"]);
    assert_eq!(output.code, Some(2), "--from overrides the detected format: {}", output.both());
}

#[test]
fn rejects_an_unclosed_quote() {
    let project =
        project_with_traces(&["t1", "t2"]).file("labels.csv", "trace_id,rating,note\nt1,positive,\"oh\nt2,negative,\n");
    let output = project.run(["feedback", "import", "labels.csv", "--skip-invalid"]);
    assert_eq!(output.code, Some(2));
    insta::assert_snapshot!(output.stderr, @r#"
      × unclosed quote
       ╭─[labels.csv:2:13]
     2 │ t1,positive,"oh
       ·             ─
       ╰────
      help: a field that begins with a quote must end with one
    error: nothing was imported from labels.csv
    "#);
    assert_eq!(feedback_rows(&project), [""; 0]);
}

#[test]
fn locates_invalid_utf8() {
    let project = project_with_traces(&["t1"]);
    project.write("labels.csv", b"trace_id,rating,note\nt1,positive,caf\xe9\n".to_vec());
    let output = project.run(["feedback", "import", "labels.csv"]);
    assert_eq!(output.code, Some(2));
    insta::assert_snapshot!(output.stderr, @r#"
    error: labels.csv:2:16 is not valid UTF-8
    hint: in a spreadsheet, save the file as "CSV UTF-8"
    "#);
    let missing = project.run(["feedback", "import", "nowhere.csv"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("cannot read nowhere.csv"), "{}", missing.stderr);
}

#[test]
fn a_dry_run_writes_nothing() {
    let project = project_with_traces(&["t1"]).file("labels.csv", "trace_id,rating\nt1,positive\n");
    let output = project.run(["feedback", "import", "labels.csv", "--dry-run"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "would import 1 rating from labels.csv\n"));
    assert_eq!(feedback_rows(&project), [""; 0]);
}

#[test]
fn a_row_without_a_time_that_changes_nothing_is_skipped() {
    let project = project_with_traces(&["t1"]);
    assert_eq!(project.run(["feedback", "add", "t1", "negative", "--note", "slow"]).code, Some(0));
    let import = |rating: &str| {
        let text = format!("trace_id,rating,author\nt1,{rating},Ada\n");
        project.command(["feedback", "import", "-"]).stdin(text).run().stdout
    };
    assert_eq!(import("negative"), "imported 0 ratings from stdin; 1 row unchanged\n");
    assert_eq!(import("positive"), "imported 1 rating from stdin\n");
    assert_eq!(import("retracted"), "imported 1 rating from stdin\n");
    assert_eq!(import("retracted"), "imported 0 ratings from stdin; 1 row unchanged\n");
    assert_eq!(project.run(["feedback", "list", "--format", "jsonl"]).stdout, "");
    assert_eq!(feedback_rows(&project).len(), 3);
}

#[test]
fn imports_100_000_rows_quickly() {
    let project = project_with_traces(&[]);
    let store = ProjectStore::open(&project);
    let ids: Vec<String> = (0..1000).map(|number| format!("trace-{number:04}")).collect();
    for id in &ids {
        store.add_trace(id, "x", "2026-01-02");
    }
    let mut text = "trace_id,rating,author,created_at\n".to_owned();
    for row in 0..100_000 {
        let rating = ["positive", "negative", "neutral"][row % 3];
        let (id, author) = (&ids[row % 1000], row / 1000);
        writeln!(text, "{id},{rating},author {author},2026-01-02T10:00:00Z").unwrap();
    }
    project.write("labels.csv", text);
    let started = Instant::now();
    let import = || project.command(["feedback", "import", "labels.csv"]).timeout(Duration::from_mins(3)).run();
    let output = import();
    assert_eq!(output.stdout, "imported 100000 ratings from labels.csv\n", "{}", output.both());
    assert_eq!(import().stdout, "imported 0 ratings from labels.csv; 100000 rows unchanged\n");
    assert!(started.elapsed() < Duration::from_mins(2), "{:?}", started.elapsed());
}
