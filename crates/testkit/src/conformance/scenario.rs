//! Runs a scenario: its files, its agent, its commands and their expectations.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::matching::{as_operator, is_absent, mismatch};
use super::placeholder::Placeholders;
use super::vector;
use crate::project::{Output, TempProject, TimedOut};
use crate::server::ScriptedServer;

/// The keys of a step with rules for its streams.
const STREAM_KEYS: [&str; 3] = ["stdout", "stderr", "output"];

const SCENARIO_KEYS: [&str; 4] = ["name", "files", "agent", "steps"];
const STEP_KEYS: [&str; 20] = [
    "args",
    "env",
    "stdin",
    "files",
    "agent",
    "exit",
    "stdout",
    "stderr",
    "output",
    "json",
    "jsonl",
    "result",
    "results",
    "resultsDir",
    "keep",
    "fileHolds",
    "requests",
    "requestCount",
    "peak",
    "withinS",
];

/// The operators that treat a file as text rather than JSON.
const TEXT_OPERATORS: [&str; 3] = ["$has", "$lacks", "$prefix"];

/// Runs scenarios one after another with one server.
#[derive(Debug)]
pub(super) struct ScenarioRunner {
    binary: PathBuf,
    server: ScriptedServer,
}

impl ScenarioRunner {
    pub(super) fn new(binary: &Path) -> Self {
        Self { binary: binary.to_owned(), server: ScriptedServer::start(json!({})) }
    }

    /// Runs the vectors of one group and returns the problems.
    pub(super) fn run_vectors(&self, document: &Value, vectors: &[&Value]) -> Vec<String> {
        match vector::compile(document, vectors) {
            Ok(scenario) => self.run(&scenario),
            Err(problem) => vec![problem],
        }
    }

    /// Runs a scenario up to the first step with problems and returns them.
    pub(super) fn run(&self, scenario: &Value) -> Vec<String> {
        if let Some(problem) = unsupported(scenario) {
            return vec![problem];
        }
        let base = self.server.base_url();
        let project = TempProject::new(&self.binary)
            .in_ci()
            .env("OPENAI_API_KEY", "test-key")
            .env("OPENAI_BASE_URL", format!("{base}/v1"))
            .env("ANTHROPIC_API_KEY", "test-key")
            .env("ANTHROPIC_BASE_URL", &base);
        let mut placeholders = Placeholders {
            agent: self.server.endpoint(),
            base,
            dir: project.path().to_string_lossy().into_owned(),
            run_id: String::new(),
        };
        write_files(&project, scenario, &placeholders);
        self.server.reset(scenario.get("agent").cloned().unwrap_or_else(|| json!({})));
        for (index, step) in scenario["steps"].as_array().into_iter().flatten().enumerate() {
            if let Some(script) = step.get("agent") {
                self.server.reset(script.clone());
            }
            write_files(&project, step, &placeholders);
            let problems = Step { rules: step, project: &project, server: &self.server }.execute(&mut placeholders);
            if !problems.is_empty() {
                return problems.into_iter().map(|problem| format!("step {}: {problem}", index + 1)).collect();
            }
        }
        Vec::new()
    }
}

/// Returns why a scenario is invalid or not supported.
fn unsupported(scenario: &Value) -> Option<String> {
    let unknown_key = |part: &Value, known: &[&str]| {
        let keys = part.as_object().into_iter().flat_map(|map| map.keys());
        keys.map(String::as_str).find(|key| !known.contains(key)).map(str::to_owned)
    };
    if let Some(key) = unknown_key(scenario, &SCENARIO_KEYS) {
        return Some(format!("unknown key '{key}' in the scenario"));
    }
    let Some(steps) = scenario.get("steps").and_then(Value::as_array).filter(|steps| !steps.is_empty()) else {
        return Some("the scenario has no steps".to_owned());
    };
    steps.iter().enumerate().find_map(|(index, step)| {
        let number = index + 1;
        if step.get("sql").is_some() {
            return Some(format!("step {number}: 'sql' is not supported"));
        }
        if let Some(key) = unknown_key(step, &STEP_KEYS) {
            return Some(format!("step {number}: unknown key '{key}'"));
        }
        let is_list = |key: &&&str| step.get(**key).is_none_or(Value::is_array);
        if let Some(key) = STREAM_KEYS.iter().find(|key| !is_list(key)) {
            return Some(format!("step {number}: '{key}' must be a list of strings or rules"));
        }
        let has_arguments = step.get("args").is_some_and(Value::is_array);
        (!has_arguments).then(|| format!("step {number}: missing 'args'"))
    })
}

/// Writes the files of a scenario or a step: text with placeholders filled, JSON unchanged.
fn write_files(project: &TempProject, part: &Value, placeholders: &Placeholders) {
    for (path, content) in part.get("files").and_then(Value::as_object).into_iter().flatten() {
        match content {
            Value::String(text) => project.write(path, placeholders.fill(text)),
            json => project.write(path, json),
        }
    }
}

/// A step to execute.
struct Step<'s> {
    /// The JSON of the step.
    rules: &'s Value,
    project: &'s TempProject,
    server: &'s ScriptedServer,
}

impl Step<'_> {
    /// Runs the command, returns the problems, and updates the run id in `names`.
    fn execute(&self, placeholders: &mut Placeholders) -> Vec<String> {
        let folder = self.rules.get("resultsDir").and_then(Value::as_str).unwrap_or("results");
        let before = self.project.files_in(folder, ".json");
        let output = match self.run(placeholders) {
            Ok(output) => output,
            Err(problem) => return vec![problem],
        };
        let mut problems = Vec::new();
        self.check_streams(&output, placeholders, &mut problems);
        self.check_exit(&output, &mut problems);
        self.check_stdout_as_json(&output, placeholders, &mut problems);
        if ["result", "results", "keep"].iter().any(|key| self.rules.get(key).is_some()) {
            let mut new = self.project.files_in(folder, ".json");
            new.retain(|path| !before.contains(path));
            match read_results(&new) {
                Ok(results) => self.check_results(&results, placeholders, &mut problems),
                Err(problem) => problems.push(problem),
            }
            if new.is_empty() {
                problems.push(format!("no result file in {folder}/ ({})", describe_end(&output)));
                return problems;
            }
        }
        self.check_files(placeholders, &mut problems);
        self.check_requests(placeholders, &mut problems);
        problems
    }

    fn run(&self, placeholders: &Placeholders) -> Result<Output, String> {
        let text = |value: &Value| value.as_str().map(|text| placeholders.fill(text));
        let arguments: Option<Vec<String>> = self.rules["args"].as_array().into_iter().flatten().map(text).collect();
        // Without a width, messages are not wrapped and can be found regardless of the lengths of ids and paths.
        let mut command = self.project.command(arguments.ok_or("'args' must be strings")?).env_remove("COLUMNS");
        for (name, value) in self.rules.get("env").and_then(Value::as_object).into_iter().flatten() {
            command =
                command.env(placeholders.fill(name), text(value).ok_or("the value of a variable must be a string")?);
        }
        if let Some(input) = self.rules.get("stdin") {
            command = command.stdin(input.as_str().ok_or("'stdin' must be a string")?);
        }
        let seconds = self.rules.get("withinS").and_then(Value::as_f64).unwrap_or(60.0);
        let result = command.timeout(Duration::from_secs_f64(seconds)).start().wait();
        result.map_err(|TimedOut(output)| format!("timed out after {seconds} s ({})", describe_end(&output)))
    }

    fn check_streams(&self, output: &Output, placeholders: &Placeholders, problems: &mut Vec<String>) {
        for (key, text) in [("stdout", &output.stdout), ("stderr", &output.stderr), ("output", &output.both())] {
            let text = Value::String(text.clone());
            for rule in self.rules.get(key).and_then(Value::as_array).into_iter().flatten() {
                let rule = placeholders.fill_all(rule);
                let rule = if rule.is_object() { rule } else { json!({"$has": rule}) };
                problems.extend(mismatch(&rule, &text, key));
            }
        }
    }

    fn check_exit(&self, output: &Output, problems: &mut Vec<String>) {
        let Some(expected) = self.rules.get("exit") else { return };
        let single = std::slice::from_ref(expected);
        let allowed = expected.as_array().map_or(single, Vec::as_slice);
        if !allowed.iter().any(|code| code.as_i64() == output.code.map(i64::from)) {
            problems.push(format!("expected exit {expected}, found {}", describe_end(output)));
        }
    }

    /// Compares standard output as one JSON document or as JSON lines.
    fn check_stdout_as_json(&self, output: &Output, placeholders: &Placeholders, problems: &mut Vec<String>) {
        let lines = || output.stdout.lines().filter(|line| !line.trim().is_empty());
        let parsers: [(&str, &dyn Fn() -> serde_json::Result<Value>); 2] = [
            ("json", &|| serde_json::from_str(&output.stdout)),
            ("jsonl", &|| lines().map(serde_json::from_str::<Value>).collect()),
        ];
        for (key, parse) in parsers {
            let Some(rule) = self.rules.get(key) else { continue };
            match parse() {
                Ok(got) => problems.extend(mismatch(&placeholders.fill_all(rule), &got, key)),
                Err(error) => problems.push(format!("stdout is not {key}: {error}: {}", tail(&output.stdout))),
            }
        }
    }

    fn check_results(&self, results: &[Value], placeholders: &mut Placeholders, problems: &mut Vec<String>) {
        let Some(newest) = results.last() else { return };
        if let Some(rule) = self.rules.get("result") {
            problems.extend(mismatch(&placeholders.fill_all(rule), newest, "result"));
        }
        if let Some(rule) = self.rules.get("results") {
            problems.extend(mismatch(&placeholders.fill_all(rule), &Value::Array(results.to_vec()), "results"));
        }
        newest["runId"].as_str().unwrap_or_default().clone_into(&mut placeholders.run_id);
    }

    fn check_files(&self, placeholders: &Placeholders, problems: &mut Vec<String>) {
        for (path, rule) in self.rules.get("fileHolds").and_then(Value::as_object).into_iter().flatten() {
            let text = std::fs::read_to_string(self.project.path().join(path));
            match (is_absent(rule), text) {
                (true, Ok(_)) => problems.push(format!("{path} was written")),
                (true, Err(_)) => {}
                (false, Err(error)) => problems.push(format!("cannot read {path}: {error}")),
                (false, Ok(text)) => {
                    let as_text = rule.is_string()
                        || as_operator(rule).is_some_and(|(operator, _)| TEXT_OPERATORS.contains(&operator));
                    let got = if as_text { Ok(Value::String(text)) } else { serde_json::from_str(&text) };
                    match got {
                        Ok(got) => problems.extend(mismatch(&placeholders.fill_all(rule), &got, path)),
                        Err(error) => problems.push(format!("{path} is not JSON: {error}")),
                    }
                }
            }
        }
    }

    fn check_requests(&self, placeholders: &Placeholders, problems: &mut Vec<String>) {
        let requests = self.server.requests();
        let describe = |reason| format!("a model API would refuse the request: {reason}");
        problems.extend(self.server.refusals().into_iter().map(describe));
        let counts = [("requestCount", requests.len()), ("peak", self.server.peak())];
        for (key, count) in counts {
            if let Some(rule) = self.rules.get(key) {
                problems.extend(mismatch(rule, &json!(count), key));
            }
        }
        if let Some(rule) = self.rules.get("requests") {
            let bodies = requests.into_iter().map(|request| request.body).collect();
            problems.extend(mismatch(&placeholders.fill_all(rule), &Value::Array(bodies), "requests"));
        }
    }
}

fn read_results(paths: &[PathBuf]) -> Result<Vec<Value>, String> {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    };
    paths.iter().map(|path| read(path).map_err(|error| format!("{}: {error}", path.display()))).collect()
}

/// Describes the exit and the last output of a command.
fn describe_end(output: &Output) -> String {
    let code = output.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit {code}"));
    let text = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
    format!("{code}: {}", tail(text))
}

fn tail(text: &str) -> &str {
    let text = text.trim();
    let start = text.char_indices().rev().nth(399).map_or(0, |(start, _)| start);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_rules_are_lists() {
        let scenario = |rule: Value| json!({"name": "x", "steps": [{"args": ["run"], "output": rule}]});
        let problem = unsupported(&scenario(json!({"$has": ["a"]})));
        assert_eq!(problem.as_deref(), Some("step 1: 'output' must be a list of strings or rules"));
        assert_eq!(unsupported(&scenario(json!(["a", {"$lacks": "b"}]))), None);
    }
}
