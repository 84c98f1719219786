//! Holds the shape of the workspace: a star, with the core in its middle.
//!
//! The compiler forbids cycles, and nothing else. What `ARCHITECTURE.md` draws is held here.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// What a crate is in the star.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// Pure: depends on none of ours.
    Core,
    /// One job each: depends on the core only, never on another of these.
    Middle,
    /// Wires the others together.
    Wiring,
    /// Development only.
    Testkit,
}

/// Every crate's room, those to come as well.
const ROOMS: [(&str, Room); 12] = [
    ("karat-core", Room::Core),
    ("karat-registry", Room::Middle),
    ("karat-agents", Room::Middle),
    ("karat-runner", Room::Middle),
    ("karat-report", Room::Middle),
    ("karat-forge", Room::Middle),
    ("karat-sandbox", Room::Middle),
    ("karat-traces", Room::Middle),
    ("karat-store", Room::Middle),
    ("karat-server", Room::Wiring),
    ("karat", Room::Wiring),
    ("karat-testkit", Room::Testkit),
];

/// What reaches for the world, and so must not come near the core.
const WORLDLY: [&str; 6] = ["tokio", "reqwest", "axum", "sqlx", "hyper", "rusqlite"];

/// A crate of the workspace and what its manifest names.
#[derive(Debug)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug)]
struct Dependency {
    name: String,
    development: bool,
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs, since it runs this test");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

fn workspace() -> Vec<Package> {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps"]))
        .expect("cargo metadata writes JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    // It has no code.
    packages.iter().map(package).filter(|package| package.name != "workspace-hack").collect()
}

fn package(value: &Value) -> Package {
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    let dependencies = value["dependencies"].as_array().expect("a list of dependencies");
    Package {
        name: name(value),
        dependencies: dependencies
            .iter()
            .map(|dependency| Dependency { name: name(dependency), development: dependency["kind"] == "dev" })
            .collect(),
    }
}

fn room_of(name: &str) -> Option<Room> {
    ROOMS.iter().find(|(known, _)| *known == name).map(|(_, room)| *room)
}

/// Lists what breaks the star, each with the rule and the way out.
fn violations(packages: &[Package]) -> Vec<String> {
    let ours: BTreeMap<&str, Option<Room>> =
        packages.iter().map(|package| (package.name.as_str(), room_of(&package.name))).collect();
    let mut found = Vec::new();
    for Package { name, dependencies } in packages {
        let Some(room) = room_of(name) else {
            found.push(format!(
                "'{name}' has no room: decide what it is, say so in ARCHITECTURE.md, and add it to ROOMS in this test"
            ));
            continue;
        };
        for dependency in dependencies {
            let target = ours.get(dependency.name.as_str()).copied().flatten();
            let fault = match target {
                Some(target) => fault(room, name, target, dependency),
                None => worldly_fault(room, dependency),
            };
            found.extend(fault.map(|rule| format!("'{name}' depends on '{}': {rule}", dependency.name)));
        }
    }
    found
}

fn fault(room: Room, name: &str, target: Room, dependency: &Dependency) -> Option<&'static str> {
    match (room, target) {
        (Room::Core, _) => Some(
            "the core depends on none of ours, in tests neither: it declares a trait (a port), and the other crate \
             implements it",
        ),
        (_, Room::Testkit) if !dependency.development => {
            Some("the testkit never ships: name it under [dev-dependencies]")
        }
        (_, Room::Core | Room::Testkit) | (Room::Wiring, Room::Middle) => None,
        (Room::Middle, _) => Some(
            "crates of the middle row do not know each other: move the shared type or trait to karat-core and let \
             the command line or the server wire the two",
        ),
        (Room::Testkit, _) => Some(
            "the testkit serves every crate's tests, so it depends on the core only: what tests one crate alone stands \
             in that crate's tests",
        ),
        (Room::Wiring, _) if name == "karat" => None,
        (Room::Wiring, _) => Some("the command line starts the server, never the other way round"),
    }
}

fn worldly_fault(room: Room, dependency: &Dependency) -> Option<&'static str> {
    let worldly = WORLDLY.contains(&dependency.name.as_str());
    (room == Room::Core && worldly).then_some(
        "the core has no files, network, clock or async runtime: declare a port in karat-core and implement it in a \
         crate of the middle row",
    )
}

#[test]
fn the_workspace_is_a_star() {
    let packages = workspace();
    assert!(packages.iter().any(|package| package.name == "karat-core"), "cargo metadata lists the workspace");
    let violations = violations(&packages);
    assert!(violations.is_empty(), "the architecture does not hold:\n- {}", violations.join("\n- "));
}

#[test]
fn nothing_worldly_reaches_the_core_through_others() {
    let tree = cargo(&["tree", "--package", "karat-core", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let crates: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.contains(&"serde_json"), "cargo tree lists what the core depends on");
    let worldly: Vec<&&str> = crates.iter().filter(|name| WORLDLY.contains(name)).collect();
    assert!(
        worldly.is_empty(),
        "{worldly:?} came with a dependency of karat-core: turn off the feature that brings it \
         (`cargo tree --package karat-core --invert NAME` shows the way)"
    );
}

/// A crate that names these; a name that begins with `dev:` is a development dependency.
fn naming(name: &str, dependencies: &[&str]) -> Package {
    let dependency = |name: &&str| match name.strip_prefix("dev:") {
        Some(name) => Dependency { name: name.to_owned(), development: true },
        None => Dependency { name: (*name).to_owned(), development: false },
    };
    Package { name: name.to_owned(), dependencies: dependencies.iter().map(dependency).collect() }
}

fn violations_of(name: &str, dependencies: &[&str]) -> Vec<String> {
    let mut packages: Vec<Package> =
        ROOMS.iter().filter(|(known, _)| *known != name).map(|(known, _)| naming(known, &[])).collect();
    packages.push(naming(name, dependencies));
    violations(&packages)
}

#[test]
fn what_the_star_allows() {
    let allowed: [(&str, &[&str]); 7] = [
        ("karat-core", &["serde_json", "dev:proptest"]),
        ("karat-agents", &["karat-core", "tokio", "reqwest", "dev:karat-testkit"]),
        ("karat-store", &["karat-core", "sqlx"]),
        ("karat-server", &["karat-core", "karat-store", "karat-runner", "axum", "dev:karat-testkit"]),
        ("karat", &["karat-core", "karat-agents", "karat-registry", "karat-report", "karat-runner"]),
        ("karat", &["karat-server", "dev:karat-testkit"]),
        ("karat-testkit", &["karat-core", "axum", "tokio"]),
    ];
    for (name, dependencies) in allowed {
        assert_eq!(violations_of(name, dependencies), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn what_the_star_forbids() {
    let forbidden: [(&str, &[&str], &str); 15] = [
        ("karat-core", &["karat-report"], "declares a trait"),
        ("karat-core", &["dev:karat-testkit"], "in tests neither"),
        ("karat-core", &["tokio"], "declare a port"),
        ("karat-core", &["reqwest"], "declare a port"),
        ("karat-core", &["axum"], "declare a port"),
        ("karat-core", &["dev:sqlx"], "declare a port"),
        ("karat-runner", &["karat-agents"], "do not know each other"),
        ("karat-runner", &["dev:karat-report"], "do not know each other"),
        ("karat-report", &["karat"], "do not know each other"),
        ("karat-store", &["karat-server"], "do not know each other"),
        ("karat-agents", &["karat-testkit"], "[dev-dependencies]"),
        ("karat", &["karat-testkit"], "[dev-dependencies]"),
        ("karat-server", &["karat"], "never the other way round"),
        ("karat-testkit", &["karat-runner"], "the core only"),
        ("karat-helpers", &["karat-core"], "has no room"),
    ];
    for (name, dependencies, lesson) in forbidden {
        let found = violations_of(name, dependencies);
        assert_eq!(found.len(), 1, "{name} {dependencies:?}: {found:?}");
        assert!(found[0].contains(lesson) && found[0].contains(name), "{}", found[0]);
    }
}

/// The map names every crate once, and none that is not there.
#[test]
fn the_map_names_every_room() {
    let map = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let map = std::fs::read_to_string(map).expect("the map");
    let mut drawn: Vec<&str> =
        map.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |")).map(|(name, _)| name).collect();
    let mut known: Vec<&str> = ROOMS
        .iter()
        .map(|(name, _)| if *name == "karat" { "cli" } else { name.strip_prefix("karat-").unwrap_or(name) })
        .collect();
    drawn.sort_unstable();
    known.sort_unstable();
    assert_eq!(drawn, known);
}
