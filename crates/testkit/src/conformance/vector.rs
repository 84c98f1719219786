//! Compiles vectors into scenarios with one eval file, so that a single run judges them all.

use serde_json::{Map, Value, json};

/// Groups the vectors with the same mode, seed, snapshot and arguments, in order of first appearance.
pub(super) fn groups<'d>(document: &'d Value, vectors: &'d [Value]) -> Vec<Vec<&'d Value>> {
    let mut groups: Vec<Vec<&Value>> = Vec::new();
    for vector in vectors {
        let settings = Settings::of(document, vector);
        match groups.iter_mut().find(|group| Settings::of(document, group[0]) == settings) {
            Some(group) => group.push(vector),
            None => groups.push(vec![vector]),
        }
    }
    groups
}

/// The settings that vectors must share to be judged in one run.
#[derive(Debug, PartialEq)]
struct Settings<'d> {
    mode: &'d str,
    seed: Option<&'d Value>,
    snapshot: Option<&'d Value>,
    arguments: &'d [Value],
}

impl<'d> Settings<'d> {
    /// Uses the values of the vector, else those of the document.
    fn of(document: &'d Value, vector: &'d Value) -> Self {
        let own_or_shared = |key: &str| vector.get(key).or_else(|| document.get(key)).filter(|value| !value.is_null());
        Self {
            mode: own_or_shared("mode").and_then(Value::as_str).unwrap_or("endpoint"),
            seed: own_or_shared("seed"),
            snapshot: own_or_shared("snapshot"),
            arguments: own_or_shared("args").and_then(Value::as_array).map_or(&[], Vec::as_slice),
        }
    }
}

/// Compiles the vectors of one group.
pub(super) fn compile(document: &Value, vectors: &[&Value]) -> Result<Value, String> {
    let settings = Settings::of(document, vectors[0]);
    let endpoint = match settings.mode {
        "endpoint" => "{agent}",
        "openai" => "openai:test-model",
        "anthropic" => "anthropic:test-model",
        other => return Err(format!("unknown mode '{other}'")),
    };
    if vectors.iter().any(|vector| vector.get("state").is_some()) {
        return compile_with_state(&settings, vectors);
    }
    let (mut cases, mut script, mut expected_cases) = (Vec::new(), Map::new(), Vec::new());
    for (index, vector) in vectors.iter().enumerate() {
        let id = format!("gs-vector-{:03}", index + 1);
        // The name is also the message, by which the scripted agent finds its reply.
        let name = &vector["name"];
        let message = name.as_str().ok_or("a vector must have a name")?.to_owned();
        cases.push(case_of(&id, vector));
        if script.insert(message, vector["reply"].clone()).is_some() {
            return Err(format!("two vectors have the name {name}"));
        }
        expected_cases.push(expected_case(&id, &vector["want"])?);
    }
    let tools = document.get("tools").cloned().unwrap_or_else(|| json!([]));
    let mut arguments =
        vec!["run", "evals/vector.golden.json", "--agent-endpoint", endpoint, "--output-dir", "results"];
    let mut files = json!({"evals/vector.golden.json": cases, "tools.json": tools});
    if let Some(seed) = settings.seed {
        files["evals/seed-manifest.json"] = seed.clone();
        arguments.extend(["--seed-manifest-path", "evals/seed-manifest.json"]);
    }
    if let Some(snapshot) = settings.snapshot {
        files["snapshot.json"] = snapshot.clone();
        arguments.extend(["--snapshot-file", "snapshot.json"]);
    }
    if tools.as_array().is_some_and(|tools| !tools.is_empty()) {
        arguments.extend(["--tool-registry-path", "tools.json"]);
    }
    let arguments: Vec<Value> =
        arguments.into_iter().map(Value::from).chain(settings.arguments.iter().cloned()).collect();
    let step = json!({"args": arguments, "exit": exit_of(vectors), "result": {"cases": expected_cases}});
    Ok(json!({"name": "vectors", "files": files, "agent": script, "steps": [step]}))
}

/// Compiles vectors with `state`: a hook writes the state before the case, and the agent, a program, that after it.
fn compile_with_state(settings: &Settings<'_>, vectors: &[&Value]) -> Result<Value, String> {
    const RESET: &str = "cp \"before/$KARAT_CASE_ID.json\" db.json; cp \"before/$KARAT_CASE_ID.txt\" log.txt";
    const AGENT: &str = "id=$(sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/'); cp \"after/$id.json\" db.json; \
         cp \"after/$id.txt\" log.txt; cat \"replies/$id.json\"";
    let configuration = json!({
        "agentEndpoint": "command:sh agent.sh",
        "agent": {"request": {"body": {"id": "{{caseId}}", "message": "{{message}}"}}},
        "stateSources": {"db": {"file": "db.json"}, "log": {"file": "log.txt", "as": "text"}},
        "hooks": {"beforeCase": ["sh", "-c", RESET]},
    });
    let (mut cases, mut expected_cases) = (Vec::new(), Vec::new());
    let mut files = json!({"karat.json": configuration, "agent.sh": AGENT});
    for (index, vector) in vectors.iter().enumerate() {
        let id = format!("gs-vector-{:03}", index + 1);
        for folder in ["before", "after"] {
            let state = &vector["state"][folder];
            files[format!("{folder}/{id}.json")] = state.get("db").cloned().unwrap_or_else(|| json!({}));
            files[format!("{folder}/{id}.txt")] = state.get("log").cloned().unwrap_or_else(|| json!(""));
        }
        files[format!("replies/{id}.json")] = vector["reply"].clone();
        cases.push(case_of(&id, vector));
        expected_cases.push(expected_case(&id, &vector["want"])?);
    }
    files["evals/vector.golden.json"] = cases.into();
    let mut arguments = vec![json!("run"), json!("evals/vector.golden.json"), json!("--output-dir"), json!("results")];
    if let Some(seed) = settings.seed {
        files["evals/seed-manifest.json"] = seed.clone();
    }
    arguments.extend(settings.arguments.iter().cloned());
    let step = json!({"args": arguments, "exit": exit_of(vectors), "result": {"cases": expected_cases}});
    Ok(json!({"name": "vectors", "files": files, "agent": {}, "steps": [step]}))
}

fn case_of(id: &str, vector: &Value) -> Value {
    let name = &vector["name"];
    let mut case = json!({"id": id, "description": name, "input": {"message": name}});
    let own = vector.get("case").and_then(Value::as_object).cloned().unwrap_or_default();
    case.as_object_mut().expect("the case is an object").extend(own);
    case["expect"] = vector["expect"].clone();
    case
}

/// Returns the exit code of a run; a vector whose case is errored names it.
fn exit_of(vectors: &[&Value]) -> i64 {
    let all_pass = vectors.iter().all(|vector| vector["want"]["passed"] == true);
    vectors.iter().filter_map(|vector| vector["exit"].as_i64()).max().unwrap_or(i64::from(!all_pass))
}

/// Translates the expected verdict of a vector into the expected case of a result file.
fn expected_case(id: &str, want: &Value) -> Result<Value, String> {
    let mut case = json!({"id": id});
    let want = want.as_object().ok_or("a vector must have 'want'")?;
    let passed = want.get("passed").and_then(Value::as_bool).ok_or("'want' must have 'passed'")?;
    for (key, value) in want {
        match key.as_str() {
            "passed" => case["passed"] = value.clone(),
            "run" => case["assertionsRun"] = value.clone(),
            "skipped" => case["assertionsSkipped"] = value.clone(),
            "details" => case["details"] = value.clone(),
            "error" | "errorHas" => {}
            other => return Err(format!("unknown key '{other}' in 'want'")),
        }
    }
    match (want.get("error"), want.get("errorHas")) {
        (_, Some(parts)) => case["error"] = json!({"$has": parts}),
        (Some(start), None) => case["error"] = json!({"$prefix": start}),
        (None, None) if passed => case["error"] = json!({"$absent": true}),
        (None, None) => {}
    }
    Ok(case)
}
