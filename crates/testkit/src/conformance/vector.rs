//! Compiles vectors into scenarios: many cases in one eval file, so that one run judges them all.

use serde_json::{Map, Value, json};

/// Returns the vectors that share mode, seed, snapshot and arguments together, in the order of the first of each.
pub(super) fn groups<'d>(document: &'d Value, vectors: &'d [Value]) -> Vec<Vec<&'d Value>> {
    let mut groups: Vec<Vec<&Value>> = Vec::new();
    for vector in vectors {
        let setting = Setting::of(document, vector);
        match groups.iter_mut().find(|group| Setting::of(document, group[0]) == setting) {
            Some(group) => group.push(vector),
            None => groups.push(vec![vector]),
        }
    }
    groups
}

/// What vectors must share to be judged in one run.
#[derive(Debug, PartialEq)]
struct Setting<'d> {
    mode: &'d str,
    seed: Option<&'d Value>,
    snapshot: Option<&'d Value>,
    arguments: &'d [Value],
}

impl<'d> Setting<'d> {
    /// Takes what the vector says, else what the document says for all.
    fn of(document: &'d Value, vector: &'d Value) -> Self {
        let own_or_shared =
            |key: &str| vector.get(key).or_else(|| document.get(key)).filter(|setting| !setting.is_null());
        Self {
            mode: own_or_shared("mode").and_then(Value::as_str).unwrap_or("endpoint"),
            seed: own_or_shared("seed"),
            snapshot: own_or_shared("snapshot"),
            arguments: own_or_shared("args").and_then(Value::as_array).map_or(&[], Vec::as_slice),
        }
    }
}

/// Compiles vectors of one group, or says why it cannot.
pub(super) fn compile(document: &Value, vectors: &[&Value]) -> Result<Value, String> {
    let setting = Setting::of(document, vectors[0]);
    let endpoint = match setting.mode {
        "endpoint" => "{agent}",
        "openai" => "openai:test-model",
        "anthropic" => "anthropic:test-model",
        other => return Err(format!("the mode '{other}' is not known to this player")),
    };
    let (mut cases, mut script, mut wanted) = (Vec::new(), Map::new(), Vec::new());
    for (index, vector) in vectors.iter().enumerate() {
        let id = format!("gs-vector-{:03}", index + 1);
        // The name is the message by which the agent knows what to answer.
        let name = &vector["name"];
        let message = name.as_str().ok_or("a vector needs a name")?.to_owned();
        let mut case = json!({"id": id, "description": name, "input": {"message": name}});
        let own = vector.get("case").and_then(Value::as_object).cloned().unwrap_or_default();
        case.as_object_mut().expect("a case is an object").extend(own);
        case["expect"] = vector["expect"].clone();
        cases.push(case);
        if script.insert(message, vector["reply"].clone()).is_some() {
            return Err(format!("two vectors have the name {name}"));
        }
        wanted.push(wanted_case(&id, &vector["want"])?);
    }
    let all_pass = vectors.iter().all(|vector| vector["want"]["passed"] == true);
    let tools = document.get("tools").cloned().unwrap_or_else(|| json!([]));
    let mut arguments =
        vec!["run", "evals/vector.golden.json", "--agent-endpoint", endpoint, "--output-dir", "results"];
    let mut files = json!({"evals/vector.golden.json": cases, "tools.json": tools});
    if let Some(seed) = setting.seed {
        files["evals/seed-manifest.json"] = seed.clone();
        arguments.extend(["--seed-manifest-path", "evals/seed-manifest.json"]);
    }
    if let Some(snapshot) = setting.snapshot {
        files["snapshot.json"] = snapshot.clone();
        arguments.extend(["--snapshot-file", "snapshot.json"]);
    }
    if tools.as_array().is_some_and(|tools| !tools.is_empty()) {
        arguments.extend(["--tool-registry-path", "tools.json"]);
    }
    let arguments: Vec<Value> =
        arguments.into_iter().map(Value::from).chain(setting.arguments.iter().cloned()).collect();
    let exit = i32::from(!all_pass);
    let step = json!({"args": arguments, "exit": exit, "result": {"cases": wanted}});
    Ok(json!({"name": "vectors", "files": files, "agent": script, "steps": [step]}))
}

/// Translates a vector's verdict into what a result file must say of its case.
fn wanted_case(id: &str, want: &Value) -> Result<Value, String> {
    let mut case = json!({"id": id});
    let want = want.as_object().ok_or("a vector needs 'want'")?;
    let passed = want.get("passed").and_then(Value::as_bool).ok_or("'want' needs 'passed'")?;
    for (key, value) in want {
        match key.as_str() {
            "passed" => case["passed"] = value.clone(),
            "run" => case["assertionsRun"] = value.clone(),
            "skipped" => case["assertionsSkipped"] = value.clone(),
            "details" => case["details"] = value.clone(),
            "error" | "errorHas" => {}
            other => return Err(format!("the key '{other}' in 'want' is not known")),
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
