//! What the pages show of a terminal is what the program prints.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use karat_core::rating::Rating;
use karat_testkit::project::TempProject;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use crate::agreement::judged;
use crate::contradictions::contradicted;
use crate::feedback::ada_with;
use crate::store_project::wait;
use crate::stored::ProjectStore;
use crate::support::project;
use crate::trace_import::fixture;

/// Stands on a line of its own for lines that are left out.
const LEFT_OUT: &str = "…";

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Returns the blocks of a page that are written in one of these languages.
fn blocks(page: &str, languages: &[&str]) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((languages.contains(&language), String::new())),
            (None, None) => {}
            (Some((wanted, block)), Some(_)) => {
                if *wanted {
                    blocks.push(std::mem::take(block));
                }
                open = None;
            }
            (Some((_, block)), None) => block.extend([line, "\n"]),
        }
    }
    blocks
}

/// A command that a page shows, and what the page says that it prints.
struct Shown {
    command: String,
    prints: String,
}

/// Returns the commands of a page whose output it shows.
fn shown(page: &str) -> Vec<Shown> {
    let mut all = Vec::new();
    for block in blocks(page, &["text", "console"]) {
        for part in block.split("$ karat ").skip(1) {
            let (command, prints) = part.split_once('\n').expect("a line");
            all.push(Shown { command: command.to_owned(), prints: prints.to_owned() });
        }
    }
    all
}

/// Runs a command of a page and asserts that it prints what the page shows: to stdout, or to stdout and stderr.
#[track_caller]
fn assert_prints(project: &TempProject, shown: &Shown) {
    let arguments = shell_words::split(&shown.command).unwrap();
    let output = project.command(arguments).env("LC_ALL", "C.UTF-8").run();
    let all = format!("{}{}", output.stdout, output.stderr);
    let is_it = [&output.stdout, &all].into_iter().any(|real| is_shown(real, &shown.prints));
    assert!(is_it, "karat {} prints\n{all}", shown.command);
}

/// Tells whether a page shows this output, but for what it says that it leaves out.
fn is_shown(real: &str, shown: &str) -> bool {
    let real: Vec<&str> = real.lines().collect();
    let shown: Vec<&str> = shown.lines().collect();
    let mut parts = shown.split(|line| *line == LEFT_OUT);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = real.strip_prefix(first) else { return false };
    let parts: Vec<&[&str]> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.windows(part.len()).position(|window| window == *part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Some conversations about the weather, of which one went wrong, judged and rated.
fn weather() -> TempProject {
    let project = project();
    let store = ProjectStore::open(&project);
    let step = |asked: Value, calls: Value, answer: &str, began: &str, ended: &str| {
        json!({"input": {"message": asked}, "output": {"response": answer}, "tool_calls": calls, "error": null,
            "model": "claude-sonnet-4-5", "started_at": began, "ended_at": ended})
    };
    let failed = json!([{"name": "get_weather", "arguments": {"city": "Berlin"}, "error": "no such station"}]);
    let days = [
        ("2025-11-14T10:46:07", "097f1d892bcf1b65bb1e8d2be1b6bd1e", "What's the weather in Berlin?"),
        ("2025-11-12T14:51:00", "7a38edd8cf5b0d31e0ab0a1c5ad5cbe7", "Will it rain in Rome tomorrow?"),
        ("2025-11-09T14:55:30", "df41e597e36d6bd0a6f3ac0de9d3b6f5", "Do I need a coat in Oslo?"),
        (
            "2025-10-30T09:03:12",
            "fee618f9a56ae1b4ad5f2be29d60f8c4",
            "What's the weather in Tokyo and in Kyoto this week?",
        ),
        ("2025-10-29T09:03:12", "0c2b5a7d1f3e49688a7b6c5d4e3f2a10", "Hello"),
    ];
    for (began, id, asked) in days {
        let is_first = id.starts_with("097f");
        let found = json!([{"name": "get_weather", "arguments": {"city": "Rome"}, "result": {"sky": "clear"}}]);
        let steps = if is_first {
            let (first, last) = ("2025-11-14T10:46:07.252Z", "2025-11-14T10:46:10.952Z");
            let began = format!("{began}Z");
            json!([
                step(json!(asked), failed.clone(), "", &began, first),
                step(Value::Null, json!([]), "I cannot tell.", first, last),
            ])
        } else {
            let (began, ended) = (format!("{began}Z"), format!("{began}.9Z"));
            json!([step(json!(asked), found, "The sky is clear.", &began, &ended)])
        };
        let name = "weather conversation";
        store.document(&json!({"trace_id": id, "name": name, "started_at": format!("{began}Z"),
            "ended_at": steps.as_array().unwrap().last().unwrap()["ended_at"], "steps": steps}));
    }
    let (first, second) = ("097f1d892bcf1b65bb1e8d2be1b6bd1e", "df41e597e36d6bd0a6f3ac0de9d3b6f5");
    store.version("eval_helpful", "one");
    let version = store.version("eval_helpful", "two");
    store.verdict("eval_helpful", version, first, Some(false), "the answer gives up");
    store.feedback("ada", first, Rating::Negative, Some("a retry would have helped"));
    store.feedback("ada", second, Rating::Positive, None);
    project
}

#[test]
fn the_page_on_traces_is_real() {
    let shown = shown(&page("traces.md"));
    let [import, list, show] = &shown[..] else { panic!("{} commands", shown.len()) };
    let mut trajectories = String::new();
    let packed = std::fs::File::open(fixture("tau-bench/gpt-4o-airline.json.gz")).unwrap();
    GzDecoder::new(packed).read_to_string(&mut trajectories).unwrap();
    assert_prints(&project().file("trajectories.json", trajectories), import);
    let weather = weather();
    assert_prints(&weather, list);
    assert_prints(&weather, show);
}

#[test]
fn the_page_on_feedback_is_real() {
    let text = page("feedback.md");
    let [rows] = &blocks(&text, &["csv"])[..] else { panic!("one table") };
    let [line] = &blocks(&text, &["json"])[..] else { panic!("one line") };
    let ada = ada_with(&["tau-retail-17", "tau-airline-3"]).file("labels.csv", rows.clone());
    let shown = shown(&text);
    assert_eq!(shown.len(), 7);
    // A review needs a terminal.
    for shown in shown.iter().filter(|shown| !shown.command.starts_with("review ")) {
        assert_prints(&ada, shown);
    }
    let known = ada.command(["feedback", "import", "-"]).stdin(line.clone()).run();
    assert_eq!(known.code, Some(0), "{}", known.both());
}

#[test]
fn the_page_on_agreement_is_real() {
    let shown = shown(&page("agreement.md"));
    let [agreement, contradictions, compare] = &shown[..] else { panic!("{} commands", shown.len()) };
    let judged = judged();
    assert_prints(&judged, agreement);
    assert_prints(&judged, compare);
    assert_prints(&contradicted().0, contradictions);
}

/// Whoever writes SQL finds the columns that the page names.
#[test]
fn the_page_on_the_store_names_what_is_there() {
    let text = page("store.md");
    let judged = judged();
    let mut statements: Vec<String> = Vec::new();
    for row in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let quoted = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
        let lists = quoted(cells[1]);
        for table in quoted(cells[0]) {
            statements.push(format!("select * from {table}"));
        }
        if let [table] = &quoted(cells[0])[..] {
            let columns = lists.into_iter().filter(|list| list != "stale");
            statements.extend(columns.map(|columns| format!("select {columns} from {table}")));
        }
    }
    assert!(statements.len() > 15, "{statements:?}");
    let (_, counted) = text.split_once("    select eval_id, count(*)").expect("a statement");
    statements.push(format!("select eval_id, count(*){}", counted.split(';').next().unwrap()));
    let (_, quoted) = text.split_once("    sqlite3 .karat/karat.db '").expect("a command");
    statements.push(quoted.split('\'').next().unwrap().to_owned());
    wait(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(judged.path().join(".karat/karat.db"));
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        for statement in statements {
            let ran = sqlx::query(AssertSqlSafe(statement.clone())).fetch_all(&mut connection).await;
            assert!(ran.is_ok(), "{statement}: {:?}", ran.err());
        }
    });
}

/// Lines of a page that only show how a command is called are understood.
#[test]
fn commands_without_output_are_understood() {
    for name in ["traces.md", "sources.md", "store.md", "feedback.md", "agreement.md", "opentelemetry.md"] {
        let text = page(name);
        let of_blocks = blocks(&text, &["sh"]);
        let lines = of_blocks.iter().flat_map(|block| block.lines());
        let indented = text.lines().filter_map(|line| line.strip_prefix("    "));
        for line in lines.chain(indented).filter_map(|line| line.strip_prefix("karat ")) {
            let line = line.split(" # ").next().unwrap();
            let arguments = shell_words::split(line).unwrap();
            // Somebody who listens would not end, and a server is far away.
            if arguments[..2] == ["trace", "receive"] || arguments.iter().any(|argument| argument == "--url") {
                continue;
            }
            let output = project().file("exports/none.txt", "").run(arguments);
            assert_eq!(output.code, Some(4), "karat {line}: {}", output.both());
        }
    }
}
