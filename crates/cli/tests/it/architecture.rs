//! Checks the layers of `ARCHITECTURE.md`: a crate depends only on lower layers, and no crate has a cycle of modules.
//!
//! The compiler only forbids cycles of crates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The layers, from bottom to top. Crates of the same layer do not depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    /// Reusable libraries without knowledge of karat.
    Parts,
    /// Eval files: pure.
    Cases,
    /// Traces, assertions, verdicts: pure.
    Domain,
    /// Rules for eval files: pure.
    Lints,
    /// Analyses of the domain: pure.
    Derived,
    /// One technology each, without knowledge of the domain.
    Technology,
    /// One capability each.
    Capability,
    /// Use cases, which combine capabilities.
    Workflows,
    /// Output for people and programs.
    Presentation,
    /// HTTP.
    Server,
    /// The command line, which may start the server.
    CommandLine,
    /// Development only.
    Testkit,
}

const LAYERS: [(&str, Layer); 24] = [
    ("karat-pattern", Layer::Parts),
    ("karat-json", Layer::Parts),
    ("karat-cases", Layer::Cases),
    ("karat-core", Layer::Domain),
    ("karat-lints", Layer::Lints),
    ("karat-chat", Layer::Derived),
    ("karat-evals", Layer::Derived),
    ("karat-tools", Layer::Derived),
    ("karat-http", Layer::Technology),
    ("karat-process", Layer::Technology),
    ("karat-registry", Layer::Capability),
    ("karat-agents", Layer::Capability),
    ("karat-runner", Layer::Capability),
    ("karat-forge", Layer::Capability),
    ("karat-sandbox", Layer::Capability),
    ("karat-state", Layer::Capability),
    ("karat-traces", Layer::Capability),
    ("karat-store", Layer::Capability),
    ("karat-project", Layer::Capability),
    ("karat-workflows", Layer::Workflows),
    ("karat-report", Layer::Presentation),
    ("karat-server", Layer::Server),
    ("karat", Layer::CommandLine),
    ("karat-testkit", Layer::Testkit),
];

/// Crates for files, network or an async runtime, forbidden in the domain.
const IMPURE: [&str; 6] = ["tokio", "reqwest", "axum", "sqlx", "hyper", "rusqlite"];

/// Crates that only the technology layer may use, so that there is one HTTP client.
const HTTP_CLIENT: [&str; 2] = ["reqwest", "rustls"];

/// User interface crates: a workflow must run without a terminal and without a web server.
const USER_INTERFACE: [&str; 8] =
    ["clap", "console", "crossterm", "indicatif", "inquire", "miette", "axum", "textwrap"];

/// Crates that decide where logs go: only the command line may use them.
const LOG_OUTPUT: [&str; 1] = ["tracing-subscriber"];

/// A crate of the workspace and the dependencies in its manifest.
#[derive(Debug)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug)]
struct Dependency {
    name: String,
    is_dev: bool,
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo is available, since it runs this test");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

fn workspace() -> Vec<Package> {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps"]))
        .expect("cargo metadata writes JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    // workspace-hack has no code.
    packages.iter().map(package).filter(|package| package.name != "workspace-hack").collect()
}

fn package(value: &Value) -> Package {
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    let dependencies = value["dependencies"].as_array().expect("a list of dependencies");
    let dependency = |dependency: &Value| Dependency { name: name(dependency), is_dev: dependency["kind"] == "dev" };
    Package { name: name(value), dependencies: dependencies.iter().map(dependency).collect() }
}

fn layer_of(name: &str) -> Option<Layer> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

/// Returns the dependencies that violate a rule, each with the rule.
fn violations(packages: &[Package]) -> Vec<String> {
    let mut violations = Vec::new();
    for Package { name, dependencies } in packages {
        let Some(layer) = layer_of(name) else {
            violations.push(format!("'{name}' has no layer: add it to LAYERS in this test and to ARCHITECTURE.md"));
            continue;
        };
        for dependency in dependencies {
            let rule = match layer_of(&dependency.name) {
                Some(target) => violated_rule(layer, target, dependency),
                None => violated_external_rule(layer, dependency),
            };
            violations.extend(rule.map(|rule| format!("'{name}' depends on '{}': {rule}", dependency.name)));
        }
    }
    violations
}

fn violated_external_rule(layer: Layer, dependency: &Dependency) -> Option<&'static str> {
    if layer <= Layer::Derived && IMPURE.contains(&dependency.name.as_str()) {
        return Some("the domain is pure: declare a port there and implement it in a capability");
    }
    if !matches!(layer, Layer::Technology | Layer::Testkit)
        && HTTP_CLIENT.contains(&dependency.name.as_str())
        && !dependency.is_dev
    {
        return Some("there is one HTTP client: use karat-http");
    }
    if layer != Layer::CommandLine && LOG_OUTPUT.contains(&dependency.name.as_str()) && !dependency.is_dev {
        return Some("the command line decides where logs go: emit spans and events with tracing");
    }
    if layer == Layer::Workflows && USER_INTERFACE.contains(&dependency.name.as_str()) && !dependency.is_dev {
        return Some("a workflow has no user interface: emit an event or return a result");
    }
    None
}

fn violated_rule(layer: Layer, target: Layer, dependency: &Dependency) -> Option<&'static str> {
    match (layer, target) {
        (Layer::Parts | Layer::Cases | Layer::Domain | Layer::Lints | Layer::Derived, Layer::Testkit) => {
            Some("the domain is tested without the testkit")
        }
        (_, Layer::Testkit) if dependency.is_dev => None,
        (_, Layer::Testkit) => Some("the testkit never ships: list it under [dev-dependencies]"),
        (Layer::Testkit, Layer::Parts | Layer::Cases | Layer::Domain | Layer::Lints | Layer::Derived) => None,
        (Layer::Testkit, _) => Some("every crate's tests use the testkit, so it may use the domain only"),
        (Layer::Technology, Layer::Cases | Layer::Domain | Layer::Lints | Layer::Derived) => {
            Some("technology crates know nothing of the domain: take and return plain types")
        }
        _ if target < layer => None,
        _ if target == layer => {
            Some("crates of the same layer must not depend on each other: combine them in a layer above")
        }
        _ => Some("a crate may use the layers below it, never above"),
    }
}

#[test]
fn crates_depend_only_on_lower_layers() {
    let packages = workspace();
    assert!(packages.iter().any(|package| package.name == "karat-core"), "cargo metadata lists the workspace");
    let violations = violations(&packages);
    assert!(violations.is_empty(), "layer violations:\n- {}", violations.join("\n- "));
}

#[test]
fn the_domain_has_no_impure_transitive_dependencies() {
    let tree = cargo(&["tree", "--package", "karat-core", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let crates: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.contains(&"serde_json"), "cargo tree lists the dependencies of the domain");
    let impure: Vec<&&str> = crates.iter().filter(|name| IMPURE.contains(name)).collect();
    assert!(
        impure.is_empty(),
        "karat-core depends on {impure:?}: disable the feature that pulls it in \
         (see `cargo tree --package karat-core --invert NAME`)"
    );
}

/// Returns a crate with these dependencies; the prefix `dev:` marks a development dependency.
fn crate_with(name: &str, dependencies: &[&str]) -> Package {
    let dependency = |name: &&str| match name.strip_prefix("dev:") {
        Some(name) => Dependency { name: name.to_owned(), is_dev: true },
        None => Dependency { name: (*name).to_owned(), is_dev: false },
    };
    Package { name: name.to_owned(), dependencies: dependencies.iter().map(dependency).collect() }
}

#[test]
fn allows_dependencies_on_lower_layers() {
    let allowed: [(&str, &[&str]); 11] = [
        ("karat-core", &["karat-cases", "karat-json", "karat-pattern", "serde_json", "dev:proptest"]),
        ("karat-http", &["karat-json", "tokio", "reqwest", "rustls", "dev:karat-testkit"]),
        ("karat-agents", &["karat-core", "karat-http", "tokio", "dev:karat-testkit"]),
        ("karat-workflows", &["karat-http"]),
        ("karat-store", &["karat-core", "sqlx"]),
        ("karat-workflows", &["karat-store", "karat-runner", "karat-project", "tokio"]),
        ("karat-report", &["karat-workflows", "karat-core"]),
        ("karat-server", &["karat-core", "karat-workflows", "karat-report", "axum", "dev:karat-testkit"]),
        ("karat", &["karat-core", "karat-agents", "karat-registry", "karat-report", "karat-runner"]),
        ("karat", &["karat-server", "dev:karat-testkit"]),
        ("karat-testkit", &["karat-core", "axum", "tokio"]),
    ];
    for (name, dependencies) in allowed {
        assert_eq!(violations(&[crate_with(name, dependencies)]), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn rejects_forbidden_dependencies() {
    let forbidden: [(&str, &[&str], &str); 27] = [
        ("karat-json", &["karat-core"], "never above"),
        ("karat-json", &["karat-pattern"], "of the same layer"),
        ("karat-core", &["karat-report"], "never above"),
        ("karat-cases", &["karat-core"], "never above"),
        ("karat-lints", &["karat-tools"], "never above"),
        ("karat-core", &["dev:karat-testkit"], "without the testkit"),
        ("karat-core", &["tokio"], "declare a port"),
        ("karat-pattern", &["dev:sqlx"], "declare a port"),
        ("karat-core", &["karat-http"], "never above"),
        ("karat-tools", &["karat-http"], "never above"),
        ("karat-http", &["karat-core"], "nothing of the domain"),
        ("karat-http", &["karat-tools"], "nothing of the domain"),
        ("karat-http", &["karat-agents"], "never above"),
        ("karat-agents", &["reqwest"], "one HTTP client"),
        ("karat-runner", &["karat-agents"], "of the same layer"),
        ("karat-runner", &["dev:karat-report"], "never above"),
        ("karat-store", &["karat-server"], "never above"),
        ("karat-store", &["karat-workflows"], "never above"),
        ("karat-workflows", &["karat-report"], "never above"),
        ("karat-workflows", &["clap"], "has no user interface"),
        ("karat-workflows", &["crossterm"], "has no user interface"),
        ("karat-agents", &["karat-testkit"], "[dev-dependencies]"),
        ("karat", &["karat-testkit"], "[dev-dependencies]"),
        ("karat-server", &["tracing-subscriber"], "where logs go"),
        ("karat-server", &["karat"], "never above"),
        ("karat-testkit", &["karat-runner"], "the domain only"),
        ("karat-helpers", &["karat-core"], "has no layer"),
    ];
    for (name, dependencies, rule) in forbidden {
        let violations = violations(&[crate_with(name, dependencies)]);
        assert!(violations.len() == 1 && violations[0].contains(rule), "{name} with {dependencies:?}: {violations:?}");
    }
}

/// Returns the top-level modules of a crate, each with the modules that it refers to as `crate::NAME`.
fn module_graph(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut pending = vec![source.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).expect("readable folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                pending.push(entry);
                continue;
            }
            let relative = entry.strip_prefix(source).expect("path below the source");
            let first = relative.components().next().expect("a name").as_os_str().to_string_lossy();
            let module = first.trim_end_matches(".rs").to_owned();
            let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
            let is_root = matches!(module.as_str(), "lib" | "main" | "build");
            if entry.extension().is_none_or(|end| end != "rs") || name.ends_with("tests.rs") || is_root {
                continue;
            }
            let text = std::fs::read_to_string(&entry).expect("readable UTF-8");
            graph.entry(module).or_default().extend(referenced_modules(&text));
        }
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for (module, named) in &mut graph {
        named.retain(|name| name != module && modules.contains(name));
    }
    graph
}

/// Returns the modules that a source file refers to with `crate::`, outside comments and tests.
fn referenced_modules(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let mut named = BTreeSet::new();
    for line in lines {
        for rest in line.split("crate::").skip(1) {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            // This also matches `my_crate::x`; the caller drops names that are not modules.
            named.insert(rest.chars().take_while(|letter| is_part(*letter)).collect::<String>());
        }
    }
    named
}

/// Returns the modules that depend on themselves, directly or through others.
fn modules_in_cycles(graph: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&str> {
    let reaches_itself = |start: &String| {
        let mut seen: BTreeSet<&String> = BTreeSet::new();
        let mut pending: Vec<&String> = graph[start].iter().collect();
        while let Some(module) = pending.pop() {
            if module == start {
                return true;
            }
            if seen.insert(module) {
                pending.extend(&graph[module]);
            }
        }
        false
    };
    graph.keys().filter(|module| reaches_itself(module)).map(String::as_str).collect()
}

#[test]
fn crates_have_no_module_cycles() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of crates");
    let mut checked = 0;
    for entry in std::fs::read_dir(crates).expect("crates").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
        let graph = module_graph(&entry.join("src"));
        let cycles = modules_in_cycles(&graph);
        assert!(cycles.is_empty(), "modules of {name} form a cycle: {cycles:?}");
        checked += 1;
    }
    assert!(checked >= 12, "{checked} crates");
}

#[test]
fn finds_module_cycles() {
    let graph = |edges: &[(&str, &[&str])]| {
        let edge = |(from, to): &(&str, &[&str])| {
            ((*from).to_owned(), to.iter().map(|&name| name.to_owned()).collect::<BTreeSet<String>>())
        };
        edges.iter().map(edge).collect::<BTreeMap<_, _>>()
    };
    let acyclic = graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])]);
    assert!(modules_in_cycles(&acyclic).is_empty());
    let cyclic = graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &["a"])]);
    assert_eq!(modules_in_cycles(&cyclic), BTreeSet::from(["a", "b", "c"]));
    let text = "use crate::alpha::X; // crate::beta\nfn f() { crate::gamma::g() }\n#[cfg(test)]\nmod tests { use crate::delta; }";
    assert_eq!(referenced_modules(text), BTreeSet::from(["alpha".to_owned(), "gamma".to_owned()]));
}
