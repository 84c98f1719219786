//! The documentation shows what the program prints.

use std::io::Read as _;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::Duration;

use flate2::read::GzDecoder;
use karat_core::rating::Rating;
#[cfg(unix)]
use karat_testkit::project::Filters;
use karat_testkit::project::TempProject;
#[cfg(unix)]
use rstest::rstest;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use crate::agreement::rated_project;
use crate::contradictions::project_with_contradictions;
use crate::feedback::project_with_traces;
use crate::project_store::ProjectStore;
use crate::store_project::block_on;
use crate::support::project;
use crate::trace_import::fixture;

/// A line that stands for omitted lines.
const OMISSION: &str = "…";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

pub(crate) fn page(name: &str) -> String {
    std::fs::read_to_string(docs().join(name)).unwrap()
}

/// Returns the code blocks of a page in one of these languages.
pub(crate) fn blocks(page: &str, languages: &[&str]) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((languages.contains(&language), String::new())),
            (None, None) => {}
            (Some((is_selected, block)), Some(_)) => {
                if *is_selected {
                    blocks.push(std::mem::take(block));
                }
                open = None;
            }
            (Some((_, block)), None) => block.extend([line, "\n"]),
        }
    }
    blocks
}

/// A run that proves nothing must not make a job green.
#[test]
fn workflows_run_in_strict_mode() {
    let folders = ["", "guides", "reference", "explanation"].map(|folder| docs().join(folder));
    let mut runs = 0;
    for entry in folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for line in blocks(&text, &["yaml", "yml"]).iter().flat_map(|block| block.lines()) {
            if line.contains("karat run ") || line.ends_with("karat run") {
                assert!(line.contains("--strict"), "{}: {line}", path.display());
                runs += 1;
            }
        }
    }
    assert!(runs >= 2, "{runs} runs in workflows");
}

/// A command on a page, with the output that the page shows.
pub(crate) struct DocumentedCommand {
    command: String,
    output: String,
}

/// Returns the commands of a page that are shown with their output.
pub(crate) fn documented_commands(page: &str) -> Vec<DocumentedCommand> {
    let mut all = Vec::new();
    for block in blocks(page, &["text", "console"]) {
        for part in block.split("$ karat ").skip(1) {
            let (command, output) = part.split_once('\n').expect("a line");
            all.push(DocumentedCommand { command: command.to_owned(), output: output.to_owned() });
        }
    }
    all
}

/// Asserts that a command prints what the page shows, to stdout or to stdout and stderr.
#[track_caller]
pub(crate) fn assert_prints(project: &TempProject, documented: &DocumentedCommand) {
    let arguments = shell_words::split(&documented.command).unwrap();
    let output = project.command(arguments).env("LC_ALL", "C.UTF-8").run();
    let all = format!("{}{}", output.stdout, output.stderr);
    let is_match = [&output.stdout, &all].into_iter().any(|real| matches_documented(real, &documented.output));
    assert!(is_match, "karat {} prints\n{all}", documented.command);
}

/// Whether the real output matches the documented one, apart from omitted lines.
fn matches_documented(real: &str, documented: &str) -> bool {
    let real: Vec<&str> = real.lines().collect();
    let documented: Vec<&str> = documented.lines().collect();
    let mut parts = documented.split(|line| *line == OMISSION);
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

/// Conversations about the weather, judged and rated; one of them failed.
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
        let calls = json!([{"name": "get_weather", "arguments": {"city": "Rome"}, "result": {"sky": "clear"}}]);
        let steps = if is_first {
            let (first, last) = ("2025-11-14T10:46:07.252Z", "2025-11-14T10:46:10.952Z");
            let began = format!("{began}Z");
            json!([
                step(json!(asked), failed.clone(), "", &began, first),
                step(Value::Null, json!([]), "I cannot tell.", first, last),
            ])
        } else {
            let (began, ended) = (format!("{began}Z"), format!("{began}.9Z"));
            json!([step(json!(asked), calls, "The sky is clear.", &began, &ended)])
        };
        let name = "weather conversation";
        store.add_document(&json!({"trace_id": id, "name": name, "started_at": format!("{began}Z"),
            "ended_at": steps.as_array().unwrap().last().unwrap()["ended_at"], "steps": steps}));
    }
    let (first, second) = ("097f1d892bcf1b65bb1e8d2be1b6bd1e", "df41e597e36d6bd0a6f3ac0de9d3b6f5");
    store.add_version("eval_helpful", "one");
    let version = store.add_version("eval_helpful", "two");
    store.add_verdict("eval_helpful", version, first, Some(false), "the answer gives up");
    store.add_feedback("ada", first, Rating::Negative, Some("a retry would have helped"));
    store.add_feedback("ada", second, Rating::Positive, None);
    project
}

#[test]
fn shows_the_real_output_of_trace_commands() {
    let commands = documented_commands(&page("reference/traces.md"));
    let [import, list, show] = &commands[..] else { panic!("{} commands", commands.len()) };
    let mut trajectories = String::new();
    let packed = std::fs::File::open(fixture("tau-bench/gpt-4o-airline.json.gz")).unwrap();
    GzDecoder::new(packed).read_to_string(&mut trajectories).unwrap();
    assert_prints(&project().file("trajectories.json", trajectories), import);
    let weather = weather();
    assert_prints(&weather, list);
    assert_prints(&weather, show);
}

#[test]
fn shows_the_real_output_of_feedback_commands() {
    let text = page("guides/feedback.md");
    let [rows] = &blocks(&text, &["csv"])[..] else { panic!("one table") };
    let json = blocks(&text, &["json"]);
    let line = json.iter().find(|block| block.contains("trace_id")).expect("a line of ratings");
    let ada = project_with_traces(&["tau-retail-17", "tau-airline-3"]).file("labels.csv", rows.clone());
    let commands = documented_commands(&text);
    let commands: Vec<&DocumentedCommand> =
        commands.iter().filter(|documented| documented.command.starts_with("feedback ")).collect();
    assert_eq!(commands.len(), 6);
    for documented in commands {
        assert_prints(&ada, documented);
    }
    let known = ada.command(["feedback", "import", "-"]).stdin(line.clone()).run();
    assert_eq!(known.code, Some(0), "{}", known.both());
}

#[test]
fn shows_the_real_output_of_agreement_commands() {
    let commands = documented_commands(&page("guides/feedback.md"));
    let command = |verb: &str| commands.iter().find(|documented| documented.command.starts_with(verb)).expect(verb);
    let judged = rated_project();
    assert_prints(&judged, command("eval agreement "));
    assert_prints(&judged, command("eval compare "));
    assert_prints(&project_with_contradictions().0, command("contradictions "));
}

/// The tables and columns that the page names exist.
#[test]
fn names_existing_tables_and_columns() {
    let text = page("reference/store.md");
    let judged = rated_project();
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
    block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(judged.path().join(".karat/karat.db"));
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        for statement in statements {
            let ran = sqlx::query(AssertSqlSafe(statement.clone())).fetch_all(&mut connection).await;
            assert!(ran.is_ok(), "{statement}: {:?}", ran.err());
        }
    });
}

/// Commands that a page shows without their output have valid arguments.
#[test]
fn commands_without_output_are_valid() {
    let guides = std::fs::read_dir(docs().join("guides")).unwrap();
    let guides = guides.map(|entry| format!("guides/{}", entry.unwrap().file_name().to_str().unwrap()));
    for name in guides.chain(["reference/traces.md", "reference/store.md", "tutorial.md"].map(str::to_owned)) {
        let text = page(&name);
        let of_blocks = blocks(&text, &["sh"]);
        let lines = of_blocks.iter().flat_map(|block| block.lines());
        let indented = text.lines().filter_map(|line| line.strip_prefix("    "));
        for line in lines.chain(indented).filter_map(|line| line.strip_prefix("karat ")) {
            let line = [" # ", " > ", " <", " |"].iter().fold(line, |line, end| line.split(end).next().unwrap());
            let arguments = shell_words::split(line).unwrap();
            // A receiver does not exit, and a server is not reachable.
            if line.starts_with("trace receive") || arguments.iter().any(|argument| argument == "--url") {
                continue;
            }
            let output = project().file("exports/none.txt", "").run(arguments);
            let is_valid = !output.stderr.contains("For more information, try '--help'");
            assert!(is_valid, "{name}: karat {line}: {}", output.both());
        }
    }
}

/// Saves the files and runs the commands of a page in its order, as a reader does, and compares the output. With
/// `KARAT_UPDATE=1`, writes the real output to the page.
#[cfg(unix)]
#[rstest]
#[case("tutorial.md")]
#[case("guides/agents.md")]
#[case("guides/ci.md")]
#[case("guides/eval-functions.md")]
#[case("guides/regressions.md")]
#[case("guides/tool-quality.md")]
#[case("reference/assertions.md")]
#[case("reference/configuration.md")]
#[case("reference/eval-files.md")]
#[case("reference/results.md")]
#[case("reference/tools.md")]
fn commands_of_a_page_print_the_documented_output(#[case] name: &str) {
    let karat = Path::new(env!("CARGO_BIN_EXE_karat")).parent().unwrap();
    let search = format!("{}:{}", karat.display(), std::env::var("PATH").unwrap_or_default());
    let project = TempProject::new("/bin/sh").env("PATH", search).env("LC_ALL", "C.UTF-8");
    let documented = page(name);
    let real = run_page(&documented, &project);
    let is_real = comparable(&documented) == comparable(&real);
    if !is_real && std::env::var_os("KARAT_UPDATE").is_some() {
        std::fs::write(docs().join(name), &real).unwrap();
        return;
    }
    assert!(is_real, "{name} shows other output than karat prints; the page with the real output is\n{real}");
}

/// Returns the page with the real output in its console blocks. A block after a line that ends in "`PATH`:" is saved to
/// that path.
#[cfg(unix)]
fn run_page(page: &str, project: &TempProject) -> String {
    let mut real = String::new();
    let mut path = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        real.extend([line, "\n"]);
        let Some(language) = line.strip_prefix("```") else {
            if !line.is_empty() {
                path = line.strip_suffix("`:").and_then(|line| Some(line.rsplit_once('`')?.1));
            }
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if language == "console" {
            real.push_str(&run_block(&block, project));
        } else {
            let content: String = block.iter().flat_map(|line| [*line, "\n"]).collect();
            if let Some(path) = path {
                project.write(path, content.as_str());
            }
            real.push_str(&content);
        }
        real.push_str("```\n");
        path = None;
    }
    real
}

/// Runs the commands of a console block in a shell and returns the block with their real output.
#[cfg(unix)]
fn run_block(block: &[&str], shell: &TempProject) -> String {
    let mut real = String::new();
    let mut lines = block.iter();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else { continue };
        let mut command = command.to_owned();
        while command.ends_with('\\') {
            command.push('\n');
            command.push_str(lines.next().expect("a continued line"));
        }
        // One stream, as on a terminal.
        let script = format!("exec 2>&1\n{command}");
        let output = shell.command(["-c", script.as_str()]).timeout(Duration::from_mins(5)).run();
        real.extend(["$ ", command.as_str(), "\n", output.stdout.as_str()]);
    }
    real
}

/// Removes ids, durations and rates, which differ between runs, and the spaces that depend on their length.
#[cfg(unix)]
fn comparable(page: &str) -> String {
    let mut text = String::new();
    for line in Filters::general().apply(page).lines() {
        let words = line.split_whitespace().map(|word| if is_cut_run_id(word) { "[RUN_ID]" } else { word });
        text.push_str(&words.collect::<Vec<_>>().join(" "));
        text.push('\n');
    }
    text
}

#[cfg(unix)]
fn is_cut_run_id(word: &str) -> bool {
    word.contains('…') && word.get(8..9) == Some("-")
}
