//! `karat tools`: list, lock, diff and export scripts.

use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::support::{case, ok_case, project};

/// Returns three tools, one of which has only a name.
fn tools() -> Value {
    json!([
        {"name": "get_weather", "version": "1.2.0", "description": "Fetches the weather. Use when asked about it.",
         "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}},
        {"name": "get_forecast", "version": "1.0.3", "description": "Fetches the forecast.", "inputSchema": {"type": "object"}},
        {"name": "ping"},
    ])
}

fn project_with_tools(tools: Value) -> TempProject {
    project().file("karat.json", json!({"toolRegistryPath": "tools.json"})).file("tools.json", tools)
}

fn parse_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn assert_matches_schema(schema: &str, document: &Value) {
    let schema = parse_json(&project().run(["schema", schema]).stdout);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn lists_tools_with_token_counts() {
    let project = project_with_tools(tools());
    insta::assert_snapshot!(project.run(["tools"]).filtered(), @"
    exit: 0
    ----- stdout -----
    NAME          VERSION  TOKENS  LOCATION         DESCRIPTION
    get_weather   1.2.0        11  tools.json:2:2   Fetches the weather.
    get_forecast  1.0.3         5  tools.json:15:2  Fetches the forecast.
    ping          —             —  tools.json:23:2  —

    3 tools: 16 tokens in descriptions, 19 in schemas
    ----- stderr -----
    ");
    assert_eq!(project.run(["tools", "list"]).stdout, project.run(["tools"]).stdout);
    let verbose = project.run(["tools", "-v"]).stdout;
    assert!(verbose.contains("HASH") && verbose.contains("8749cb0a6c21"), "{verbose}");
    insta::assert_snapshot!(project.run(["tools", "get_*", "--ascii", "--quiet"]).filtered(), @"
    exit: 0
    ----- stdout -----
    2 tools: 16 tokens in descriptions, 19 in schemas
    ----- stderr -----
    ");
}

#[test]
fn prints_json() {
    let project = project_with_tools(tools());
    let output = project.run(["tools", "--format", "json", "get_forecast"]);
    let mut document = parse_json(&output.stdout);
    assert_matches_schema("tools", &document);
    // The location is covered by the reader's tests.
    document["tools"][0].as_object_mut().unwrap().remove("place");
    insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap(), @r#"
    {
      "tools": [
        {
          "name": "get_forecast",
          "version": "1.0.3",
          "description": "Fetches the forecast.",
          "descriptionHash": "5709d0ef99fa",
          "descriptionTokens": 5,
          "inputSchema": {
            "type": "object"
          },
          "schemaHash": "a2c799262a3c",
          "schemaTokens": 5,
          "category": null,
          "requiresConfirmation": null,
          "status": null,
          "triggerPhrases": [],
          "unknown": []
        }
      ],
      "gaps": [],
      "totals": {
        "tools": 1,
        "descriptionTokens": 5,
        "schemaTokens": 5
      },
      "tokenizer": "o200k_base"
    }
    "#);
}

#[test]
fn counts_tokens_with_the_configured_tokenizer() {
    let project = project_with_tools(json!([{"name": "t", "description": "मौसम कैसा है"}]));
    let tokens = |tokenizer| {
        let output = project.run(["tools", "--format", "json", "--tokenizer", tokenizer]);
        parse_json(&output.stdout)["totals"]["descriptionTokens"].as_u64().unwrap()
    };
    assert_ne!(tokens("o200k_base"), tokens("cl100k_base"));
}

#[test]
fn rejects_unknown_tool_names() {
    let project = project_with_tools(tools());
    insta::assert_snapshot!(project.run(["tools", "get_weather", "get_wether"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no tool matches 'get_wether'
    hint: did you mean 'get_weather'?
    ");
    insta::assert_snapshot!(project.run(["tools", "--quiet", "lock"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: no tool matches 'lock'
    hint: options come after the subcommand: 'karat tools lock …'
    ");
    let odd = project_with_tools(json!([{"name": "[a"}, {"name": "[b]"}]));
    assert_eq!(odd.run(["tools", "[a", "[b]"]).code, Some(0));
}

#[test]
fn requires_a_registry() {
    let project = project();
    insta::assert_snapshot!(project.run(["tools"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: no tool registry is configured
    hint: the default tools/tools.exports.ts does not exist
    hint: pass --tool-registry-path, or set 'toolRegistryPath' in karat.json
    ");
    assert_eq!(project.run(["tools", "lock"]).code, Some(2));
    assert_eq!(project.run(["tools", "diff"]).code, Some(2));
}

#[test]
fn does_not_rewrite_an_unchanged_lock() {
    let project = project_with_tools(tools());
    insta::assert_snapshot!(project.run(["tools", "lock", "--check"]).filtered(), @"
    exit: 1
    ----- stdout -----
    ----- stderr -----
    error: evals/tools.lock.json does not exist
    hint: run 'karat tools lock' to write it
    ");
    assert!(!project.path().join("evals").exists(), "--check wrote a file");
    insta::assert_snapshot!(project.run(["tools", "lock"]).filtered(), @"
    exit: 0
    ----- stdout -----
    ----- stderr -----
    locked 3 tools in evals/tools.lock.json
    ");
    let first = project.read("evals/tools.lock.json");
    insta::assert_snapshot!(first, @r#"
    {
      "lockVersion": 1,
      "tools": {
        "get_forecast": {
          "descriptionHash": "5709d0ef99fa",
          "schemaHash": "a2c799262a3c",
          "version": "1.0.3"
        },
        "get_weather": {
          "descriptionHash": "8749cb0a6c21",
          "schemaHash": "fc0b1a9e7eab",
          "version": "1.2.0"
        },
        "ping": {
          "descriptionHash": null,
          "schemaHash": null,
          "version": null
        }
      }
    }
    "#);
    assert_matches_schema("tools-lock", &parse_json(&first));
    assert_eq!(project.run(["tools", "lock", "--check"]).code, Some(0));
    // Formatting is ignored.
    let compact = format!("{}", project.read_json("evals/tools.lock.json"));
    project.write("evals/tools.lock.json", compact.as_str());
    insta::assert_snapshot!(project.run(["tools", "lock"]).filtered(), @"
    exit: 0
    ----- stdout -----
    ----- stderr -----
    evals/tools.lock.json is up to date: 3 tools
    ");
    assert_eq!(project.read("evals/tools.lock.json"), compact);
}

#[test]
fn reports_and_updates_an_outdated_lock() {
    let project = project_with_tools(tools());
    project.run(["tools", "lock"]);
    let mut lock = project.read_json("evals/tools.lock.json");
    lock["$schema"] = json!("../tools-lock.json");
    project.write("evals/tools.lock.json", &lock);
    let mut changed = tools();
    changed[0]["version"] = json!("2.0.0");
    changed[2] = json!({"name": "pong"});
    project.write("tools.json", changed);
    let before = project.read("evals/tools.lock.json");
    insta::assert_snapshot!(project.run(["tools", "lock", "--check"]).filtered(), @"
    exit: 1
    ----- stdout -----
    changed  get_weather
             version       1.2.0 → 2.0.0  major
    added    pong
    removed  ping
    ----- stderr -----
    error: evals/tools.lock.json is out of date
    hint: run 'karat tools diff' to see stale eval files, or 'karat tools lock' to
      update it
    ");
    assert_eq!(project.read("evals/tools.lock.json"), before);
    assert_eq!(project.run(["tools", "lock"]).code, Some(0));
    assert_eq!(project.read_json("evals/tools.lock.json")["$schema"], json!("../tools-lock.json"));
    assert_eq!(project.run(["tools", "lock", "--check"]).code, Some(0));
}

#[test]
fn diff_lists_changes_and_stale_files() {
    let hash = "0123456789ab";
    let project = project_with_tools(tools())
        .file("evals/get-weather.golden.json", json!([ok_case("gs-get-weather-001", "a")]))
        .file(
            "evals/get-forecast.labeled.json",
            json!([case("ls-get-forecast-001", "a", json!({"toolsNotCalled": ["ping"]}))]),
        )
        .file(
            "evals/old.golden.json",
            json!({"metadata": {"toolName": "ping", "descriptionHash": hash}, "cases": [ok_case("gs-ping-001", "a")]}),
        );
    project.run(["tools", "lock"]);
    insta::assert_snapshot!(project.run(["tools", "diff"]).filtered(), @"
    exit: 0
    ----- stdout -----
    Stale eval files
      evals/old.golden.json
        written for description 0123456789ab of ping, which no longer has one

    3 tools: no changes since evals/tools.lock.json; 1 eval file is stale
    ----- stderr -----
    ");
    project.write(
        "tools.json",
        json!([
            {"name": "get_weather", "version": "2.0.0", "description": "Fetches all weather.", "inputSchema": {"type": "object"}},
            {"name": "forecast", "version": "1.0.3", "description": "Fetches the forecast.", "inputSchema": {"type": "object"}},
            {"name": "pong", "description": "Answers."},
            {"name": "pang", "description": "Answers too."},
            {"name": "pung", "description": "Answers not."},
        ]),
    );
    project.write("evals/broken.golden.json", "[{");
    insta::assert_snapshot!(project.run(["tools", "diff"]).filtered(), @"
    exit: 1
    ----- stdout -----
    changed  get_weather
             description   8749cb0a6c21 → 4af110b84328
             input schema  fc0b1a9e7eab → a2c799262a3c
             version       1.2.0 → 2.0.0  major
    added    pang
    added    pong
    added    pung
    removed  ping
    renamed  get_forecast → forecast
             probably: description and schema are equal

    Stale eval files
      evals/get-forecast.labeled.json
        its tool get_forecast was removed (renamed to forecast?)
        1 case names ping, which was removed
        the registry grew from 3 to 5 tools: more of them may be acceptable
      evals/get-weather.golden.json
        description, input schema and version of get_weather changed since the
          lock
      evals/old.golden.json
        its tool ping was removed

    5 tools: 1 changed, 3 added, 1 removed, 1 renamed since evals/tools.lock.json; 3
    eval files are stale
    ----- stderr -----
    warning: evals/broken.golden.json is invalid and may be stale; run 'karat check'
      for details
    ");
    let output = project.run(["tools", "diff", "--format", "json", "evals/get-forecast.labeled.json"]);
    assert_eq!(output.code, Some(1));
    let document = parse_json(&output.stdout);
    assert_matches_schema("tools-diff", &document);
    assert_eq!(document["renamed"], json!([{"before": "get_forecast", "now": "forecast"}]));
    assert_eq!(document["staleFiles"].as_array().unwrap().len(), 1);
    assert_eq!(
        document["staleFiles"][0]["effects"],
        json!([
            {"kind": "toolRemoved", "tool": "get_forecast", "renamedTo": "forecast"},
            {"kind": "namesRemovedTool", "tool": "ping", "renamedTo": null, "cases": 1},
            {"kind": "registryGrown", "before": 3, "now": 5},
        ])
    );
}

#[test]
fn diff_requires_a_supported_lock() {
    let project = project_with_tools(tools());
    insta::assert_snapshot!(project.run(["tools", "diff"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: evals/tools.lock.json does not exist
    hint: run 'karat tools lock' to write it, and commit it with the eval files
    ");
    project.write("evals/tools.lock.json", "{\"lockVersion\": 2}");
    insta::assert_snapshot!(project.run(["tools", "diff"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × unsupported 'lockVersion' 2 (supported: 1): the file was written by a
      │ newer karat
       ╭─[evals/tools.lock.json:1:17]
     1 │ {"lockVersion": 2}
       ·                 ─
       ╰────
    error: evals/tools.lock.json is not a valid tool lock
    hint: remove it and run 'karat tools lock' to create a new one
    "#);
    // A file that is not a lock is not overwritten.
    assert_eq!(project.run(["tools", "lock", "--lock-file", "karat.json"]).code, Some(2));
    assert_eq!(project.read_json("karat.json"), json!({"toolRegistryPath": "tools.json"}));
}

#[test]
fn a_lock_is_not_an_eval_file() {
    let project = project_with_tools(json!([{"name": "cases"}, {"name": "id"}, {"name": "expect"}]))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a")]));
    assert_eq!(project.run(["tools", "lock"]).code, Some(0));
    let report = parse_json(&project.run(["check", "--format", "json"]).stdout);
    assert_eq!(report["files"], json!(1));
}

#[test]
fn escapes_and_truncates_hostile_names() {
    let long = "x".repeat(10_000);
    let name = "\u{1b}]0;owned\u{7}\u{202e}evil\n\"";
    let tools = json!([{"name": name, "version": "\u{1b}[2J", "description": "\u{9b}31m"}, {"name": long}]);
    let project = project_with_tools(tools);
    for arguments in [&["tools"][..], &["tools", "lock"], &["tools", "diff"]] {
        let output = project.run(arguments.iter().copied());
        assert_eq!(output.code, Some(0), "{}", output.both());
        let is_harmless = |character: char| character == '\n' || !character.is_control() && character != '\u{202e}';
        assert!(output.both().chars().all(is_harmless), "{}", output.both());
        // The list is not truncated, so that it can be searched.
        let is_list = arguments.len() == 1;
        assert!(is_list || output.both().lines().all(|line| line.chars().count() <= 80), "{}", output.both());
        assert!(!is_list || output.stdout.contains(&long), "{}", output.both());
    }
    project.write("tools.json", json!([{"name": format!("{long}y"), "version": "2"}]));
    let output = project.run(["tools", "diff"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 80), "{}", output.stdout);
    assert!(!output.stdout.contains('\u{1b}'));
}

#[test]
fn masks_secrets_in_descriptions() {
    let tools = json!([{"name": "t", "version": "hunter2hunter2", "description": "Uses hunter2hunter2."}]);
    let project = project_with_tools(tools);
    project.write(
        "karat.json",
        json!({"toolRegistryPath": "tools.json", "agent": {"headers": {"authorization": "hunter2hunter2"}}}),
    );
    for arguments in [&["tools"][..], &["tools", "--format", "json"]] {
        let output = project.run(arguments.iter().copied());
        assert_eq!(output.code, Some(0), "{}", output.both());
        assert!(!output.both().contains("hunter2hunter2"), "{}", output.both());
    }
}

/// Creates a project with TypeScript tools, one of which has a computed description.
fn project_with_source(more: &str) -> TempProject {
    let source = format!(
        "export const get_weather = {{ name: 'get_weather', description: 'Fetches it.', version: '1.0.0' }};\n\
         export const get_news = {{ name: 'get_news', description: `News of ${{process.env.CITY}}.`, version: '1.0.0' }};\n\
         {more}\n"
    );
    project().file("tools/tools.exports.ts", source.as_str())
}

#[test]
fn a_folder_with_a_config_is_the_project() {
    let project = project()
        .file("one/karat.json", json!({"toolRegistryPath": "tools.json"}))
        .file("one/tools.json", json!([{"name": "look"}, {"name": "see"}]))
        .file("two/karat.json", json!({}));
    let output = project.run(["tools", "one"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("one/tools.json:2:2"), "{}", output.both());
    let output = project.run(["tools", "one", "look"]);
    assert!(output.stdout.contains("1 tool:"), "{}", output.both());
    assert_eq!(project.run(["tools", "one", "two"]).code, Some(2));
    assert_eq!(project.run(["tools", "lock", "nowhere"]).code, Some(2));
    assert_eq!(project.run(["tools", "lock", "one"]).code, Some(0));
    assert!(project.path().join("one/evals/tools.lock.json").exists());
}

#[test]
fn computed_values_are_unknown_but_not_changes() {
    let project = project_with_source("");
    let output = project.run(["tools"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("the description of 'get_news' is unknown:"), "{}", output.stdout);
    assert!(output.stdout.contains("as far as known"), "{}", output.stdout);
    let list = parse_json(&project.run(["tools", "--format", "json", "get_news"]).stdout);
    assert_matches_schema("tools", &list);
    assert_eq!(list["tools"][0]["unknown"][0]["field"], json!("description"));
    assert_eq!(project.run(["tools", "lock"]).code, Some(0));
    let lock = project.read_json("evals/tools.lock.json");
    let locked = json!({"descriptionHash": null, "schemaHash": null, "version": "1.0.0", "unknown": ["description"]});
    assert_eq!(lock["tools"]["get_news"], locked);
    let source = project.read("tools/tools.exports.ts").replace("process.env.CITY", "process.env.TOWN");
    project.write("tools/tools.exports.ts", source);
    let output = project.run(["tools", "diff"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("unknown  get_news"), "{}", output.stdout);
}

#[test]
fn fails_when_no_tools_are_found() {
    let source = "import { tool } from 'ai';\n\
        export const make = (options) => tool({ description: 'Makes.', inputSchema: {}, execute });\n";
    let output = project().file("tools/tools.exports.ts", source).run(["tools"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    let stderr = output.unwrapped_stderr();
    assert!(stderr.contains("read the file that adds it to 'tools' instead"), "{stderr}");
    assert!(stderr.contains("error: no tools found in the registry"), "{stderr}");
    assert!(stderr.contains("hint: pass the file that registers the tools"), "{stderr}");
}

#[test]
fn reports_a_broken_file_and_writes_no_lock() {
    let project = project_with_source("export * from './broken';").file("tools/broken.ts", "export const = {");
    let output = project.run(["tools"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.stdout.contains("get_weather"), "{}", output.stdout);
    assert!(output.stderr.starts_with("warning: tools/broken.ts:1:"), "{}", output.stderr);
    let output = project.run(["tools", "lock"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(!project.path().join("evals/tools.lock.json").exists());
    project.write("evals/tools.lock.json", json!({"lockVersion": 1, "tools": {}}));
    assert_eq!(project.run(["tools", "diff"]).code, Some(3));
}

#[test]
fn unreadable_tools_are_not_removed() {
    let project = project_with_source("");
    assert_eq!(project.run(["tools", "lock"]).code, Some(0));
    project.write("tools/tools.exports.ts", "import { make } from 'somewhere';\nexport const get_weather = make();\n");
    let output = project.run(["tools", "diff"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("unknown  get_weather"), "{}", output.stdout);
    // Tools that can no longer be read keep their lock entries.
    let before = project.read("evals/tools.lock.json");
    for arguments in [&["tools", "lock", "--check"][..], &["tools", "lock"]] {
        let output = project.run(arguments);
        assert_eq!(output.code, Some(0), "{}", output.both());
        let expected = "warning: 2 tools can no longer be read completely; the existing lock entries are preserved\n\
                    evals/tools.lock.json is up to date: 2 tools";
        assert!(output.unwrapped_stderr().contains(expected), "{}", output.stderr);
    }
    assert_eq!(project.read("evals/tools.lock.json"), before);
}

#[test]
fn an_empty_registry_does_not_empty_the_lock() {
    let project = project_with_tools(tools());
    project.run(["tools", "lock"]);
    project.write("tools.json", json!([]));
    let before = project.read("evals/tools.lock.json");
    insta::assert_snapshot!(project.run(["tools", "lock"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    warning: the tool registry has no tools
    error: evals/tools.lock.json cannot be updated: the tool registry has no tools
    hint: if this is intended, remove the lock
    ");
    assert_eq!(project.read("evals/tools.lock.json"), before);
}

/// Creates a project whose registry is the output of the Python export script.
fn project_with_export(arguments: &[&str]) -> TempProject {
    let script = project().run(["tools", "export-script", "python"]);
    assert_eq!(script.code, Some(0), "{}", script.both());
    let command: Vec<&str> = ["python3", "-B", "export.py"].iter().chain(arguments).copied().collect();
    project().file("karat.json", json!({"toolRegistry": {"command": command}})).file("export.py", script.stdout)
}

/// Returns each tool as `name(parameters): description`, with `*` after required parameters.
fn signatures(project: &TempProject) -> Vec<String> {
    let output = project.run(["tools", "--format", "json"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let signature = |tool: &Value| {
        let schema = &tool["inputSchema"];
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let parameters = schema["properties"].as_object().into_iter().flatten();
        let parameters: Vec<String> = parameters
            .map(|(name, _)| format!("{name}{}", if required.contains(&json!(name)) { "*" } else { "" }))
            .collect();
        format!("{}({}): {}", tool["name"].as_str().unwrap(), parameters.join(", "), tool["description"])
    };
    parse_json(&output.stdout)["tools"].as_array().unwrap().iter().map(signature).collect()
}

#[test]
fn reads_exported_tools() {
    let module = "
print('starting')

def add(a: int, b: int = 2) -> int:
    'Adds two numbers.'
    return a + b

def helper(x): return x

TOOLS = [add, {'name': 'look', 'description': 'Looks.', 'input_schema': {'type': 'object', 'properties': {'x': {}}}}]

def build(): return [helper]
";
    let tools = |arguments: &[&str]| signatures(&project_with_export(arguments).file("app/tools.py", module));
    let (add, look) = (r#"add(a*, b): "Adds two numbers.""#, r#"look(x): "Looks.""#);
    assert_eq!(tools(&["app/tools.py"]), [add, look]);
    assert_eq!(tools(&["app.tools"]), [add, look]);
    assert_eq!(tools(&["app/tools.py", "add"]), [add]);
    assert_eq!(tools(&["app/tools.py", "build()"]), ["helper(x*): null"]);
    // Plain functions are exported if nothing in the module is marked as a tool.
    let text = "from json import dumps\ndef one(a, *rest): 'One.'\ndef _two(): ...\n";
    assert_eq!(signatures(&project_with_export(&["plain.py"]).file("plain.py", text)), [r#"one(a*): "One.""#]);
}

#[test]
fn export_reports_why_it_found_no_tools() {
    let run = |module: &str| project_with_export(&["m.py"]).file("m.py", module).run(["tools"]);
    for (module, message) in [
        ("X = 1\n", "error: no tools found in m.py"),
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
    ] {
        let output = run(module);
        assert_eq!(output.code, Some(2), "{}", output.both());
        assert!(output.stderr.contains(message), "{}", output.both());
    }
}

#[test]
fn rejects_unknown_export_script_languages() {
    let node = project().run(["tools", "export-script", "node"]);
    assert!(node.stdout.starts_with("// Prints the tools of a JavaScript or TypeScript module"), "{}", node.both());
    let output = project().run(["tools", "export-script", "ruby"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
}
