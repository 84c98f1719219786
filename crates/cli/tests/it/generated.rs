//! Generated files match the program.
//!
//! Run `KARAT_UPDATE=1 cargo test -p karat generated` to update them.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::support::project;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("workspace").to_path_buf()
}

fn assert_fresh(path: &str, fresh: &str) {
    let path = root().join(path);
    if std::env::var_os("KARAT_UPDATE").is_some() {
        std::fs::write(&path, fresh).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == fresh, "{} is stale: run KARAT_UPDATE=1 cargo test -p karat generated", path.display());
}

#[test]
fn schemas_are_fresh() {
    // Read from the help, so that new formats are included.
    let help = project().run(["schema", "--help"]).stdout;
    let (_, values) = help.split_once("Possible values:").expect("formats");
    let names: Vec<&str> = values
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "))
        .filter_map(|line| Some(line.split_once(':')?.0))
        .take_while(|name| !name.contains(' '))
        .collect();
    assert!(names.contains(&"case") && names.contains(&"eval-refine") && names.contains(&"forge"), "{names:?}");
    let mut committed: Vec<String> = std::fs::read_dir(root().join("schemas"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .collect();
    committed.retain(|name| !names.contains(&name.as_str()));
    assert_eq!(committed, Vec::<String>::new(), "schemas of formats that no longer exist");
    for name in names {
        let output = project().run(["schema", name]);
        assert_eq!(output.code, Some(0));
        assert_fresh(&format!("schemas/{name}.json"), &output.stdout);
    }
}

/// Every verb that the reference lists.
const VERBS: &[&str] = &[
    "",
    "run",
    "check",
    "coverage",
    "diff",
    "runs",
    "runs list",
    "runs merge",
    "runs prune",
    "show",
    "tools",
    "tools list",
    "tools lock",
    "tools diff",
    "tools export-script",
    "overlap",
    "overlap list",
    "overlap suggest",
    "overlap add",
    "overlap remove",
    "regress",
    "regress add",
    "regress archive",
    "regress seal",
    "eval",
    "eval doctor",
    "eval batch",
    "eval check",
    "eval run",
    "eval new",
    "eval adopt",
    "eval add-case",
    "eval test",
    "eval add",
    "eval list",
    "eval show",
    "eval history",
    "eval agreement",
    "eval compare",
    "eval refine",
    "contradictions",
    "contradictions resolve",
    "feedback",
    "feedback add",
    "feedback retract",
    "feedback import",
    "feedback list",
    "review",
    "trace",
    "trace import",
    "trace list",
    "trace show",
    "trace receive",
    "agent",
    "agent try",
    "agent show",
    "agent detect",
    "forge",
    "init",
    "schema",
    "completions",
];

#[test]
fn the_cli_reference_is_current() {
    let mut page =
        "# Command line\n\nGenerated from the program's help; do not edit. A group of flags is listed with the \
                    first command that has it.\nEvery command has the global options of `karat`.\n"
            .to_owned();
    // Groups of flags that were already listed, and the command they are listed with.
    let mut groups: HashMap<String, String> = HashMap::new();
    for verb in VERBS {
        let arguments: Vec<&str> = verb.split_whitespace().chain(["-h"]).collect();
        let output = project().command(arguments).env("COLUMNS", "100").run();
        assert_eq!(output.code, Some(0));
        let title = format!("karat {verb}").trim_end().to_owned();
        let _ = write!(page, "\n## {title}\n\n```text\n");
        for section in output.stdout.trim_end().split("\n\n") {
            let section = match groups.get(section) {
                Some(_) if section.starts_with("Global options:") => continue,
                Some(first) => format!("{} see {first}", section.lines().next().unwrap_or_default()),
                None => section.to_owned(),
            };
            let _ = write!(page, "{section}\n\n");
            if section.lines().count() > 3 {
                groups.insert(section, title.clone());
            }
        }
        page.truncate(page.trim_end().len());
        page.push_str("\n```\n");
    }
    assert_fresh("docs/reference/cli.md", &page);
}

/// Wrapped examples cannot be copied.
#[test]
fn help_fits_80_columns() {
    for verb in VERBS {
        let help = |columns: &str| {
            let arguments: Vec<&str> = verb.split_whitespace().chain(["--help"]).collect();
            project().command(arguments).env("COLUMNS", columns).run().stdout
        };
        let (narrow, wide) = (help("80"), help("100"));
        let too_wide: Vec<&str> = narrow.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(too_wide, Vec::<&str>::new(), "karat {verb} --help");
        let [narrow, wide] = [&narrow, &wide].map(|help| help.split_once("Examples:\n").expect(verb).1);
        assert_eq!(narrow, wide, "karat {verb} --help");
    }
}

#[test]
fn the_list_of_rules_is_current() {
    let output = project().run(["check", "--rules", "--format", "json"]);
    let list: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let mut page = "# Rules for cases\n\n`karat check` applies these rules to eval files, and `karat forge` applies \
                    them to drafts. A draft with an error\ncannot be approved. Silence a rule for a tool, or for all \
                    tools with `*`, in `karat.json`:\n`{\"silence\": {\"get_weather\": [\"few-proof-values\"]}}`.\n\n\
                    Generated from the program; do not edit.\n\n\
                    | rule | in files | in drafts | requirement | violation |\n|---|---|---|---|---|\n"
        .to_owned();
    for rule in list["rules"].as_array().unwrap() {
        let text = |key: &str| rule[key].as_str().unwrap_or("–").replace('|', "\\|");
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | `{}` |",
            text("rule"),
            text("severity"),
            text("draftSeverity"),
            text("summary"),
            text("example").replace('`', "")
        );
    }
    assert_fresh("docs/reference/rules.md", &page);
}

fn validate(schema: &str, file: &str) {
    let read = |path: &str| serde_json::from_str(&std::fs::read_to_string(root().join(path)).unwrap()).unwrap();
    let (schema, value): (serde_json::Value, serde_json::Value) = (read(schema), read(file));
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&value).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new(), "{file}");
}

/// `karat check` accepts what `karat run examples/agents/NAME` reads.
#[test]
fn the_example_agents_are_configured_correctly() {
    let project = project();
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("examples/agents")).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.join("karat.json").exists() {
            continue;
        }
        count += 1;
        validate("schemas/config.json", &folder.join("karat.json").to_string_lossy());
        let check = project.run(["check".as_ref(), folder.as_os_str()]);
        assert_eq!(check.stdout, "1 file, 4 cases: 0 invalid, 0 errors, 0 warnings\n", "{}", check.both());
        assert_eq!((check.code, check.stderr.as_str()), (Some(0), ""), "{}", folder.display());
    }
    assert_eq!(count, 22);
    validate("schemas/case.json", "examples/agents/shop.json");
    validate("schemas/case.json", "examples/agents/oslo.json");
}

#[test]
fn the_examples_match_their_schemas_and_pass() {
    validate("schemas/config.json", "examples/shop/karat.json");
    validate("schemas/case.json", "examples/shop/evals/refund-order.labeled.json");
    validate("schemas/config.json", "examples/weather/karat.json");
    validate("schemas/script.json", "examples/weather/agent.json");
    validate("schemas/script.json", "examples/weather/agent-after-a-bad-change.json");
    validate("schemas/case.json", "examples/weather/evals/get-weather.golden.json");
    validate("schemas/case.json", "examples/weather/evals/get-weather.labeled.json");
    validate("schemas/rubric.json", "examples/weather/evals/get-weather.rubric.json");
    validate("schemas/judge-script.json", "examples/weather/judge.json");
    validate("schemas/tools-lock.json", "examples/weather/evals/tools.lock.json");
    let example = root().join("examples/weather");
    let project = project();
    let config = example.join("karat.json");
    let lock =
        project.run(["tools".as_ref(), "lock".as_ref(), "--check".as_ref(), "--config".as_ref(), config.as_os_str()]);
    assert_eq!(lock.code, Some(0), "{}", lock.both());
    let check = project.run(["check".as_ref(), example.as_os_str()]);
    assert_eq!(check.code, Some(0), "{}", check.both());
    assert!(check.stdout.contains("0 invalid, 0 errors, 0 warnings"), "{}", check.stdout);
    // Do not write into the example's folder.
    let outputs = ["--output-dir", "results", "--store", "karat.db"].map(AsRef::as_ref);
    let run = project.run(["run".as_ref(), example.as_os_str()].into_iter().chain(outputs));
    assert_eq!(run.code, Some(0), "{}", run.both());
    assert!(run.stdout.contains("7/7 passed") && run.stdout.contains("3/4 points"), "{}", run.stdout);
}

#[test]
fn the_readme_shows_the_real_output() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, shown) = readme.split_once("$ karat run ").expect("a command");
    let (arguments, shown) = shown.split_once('\n').expect("its output");
    let (shown, _) = shown.split_once("```").expect("its end");
    let project = project();
    let results = project.path().join("results");
    let command = std::process::Command::new(env!("CARGO_BIN_EXE_karat"))
        .arg("run")
        .args(arguments.split(' '))
        .arg("--output-dir")
        .arg(results)
        .arg("--store")
        .arg(project.path().join("karat.db"))
        .env("LC_ALL", "C.UTF-8")
        .env_remove("COLUMNS")
        .current_dir(root())
        .output()
        .unwrap();
    let real = String::from_utf8(command.stdout).unwrap();
    let filters = karat_testkit::project::Filters::general();
    // The width of a duration moves the spaces before it.
    let plain = |text: &str| filters.apply(text).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(plain(shown), plain(&real));
}
