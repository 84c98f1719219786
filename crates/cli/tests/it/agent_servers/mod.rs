//! Runs against agents of many products, as people have them.
//!
//! The agents are in `examples/agents`, and behave as `karat_testkit::agent_server` says.

mod a2a;
mod adk;
mod ag_ui;
mod ai_sdk;
mod custom;
mod functions;
mod langgraph;
mod langserve;
mod mastra;
mod shop;
mod stand_ins;
mod telemetry;

use karat_testkit::agent_server::read_example;

/// A test names each folder of `examples/agents`, and starts its agent with its configuration and cases.
#[test]
fn every_example_is_tested() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = |folder: &str| {
        let entries = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        entries.collect::<Vec<_>>()
    };
    let tests: String =
        names("tests/it/agent_servers").iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let examples = names("../../examples/agents").into_iter().filter(|path| path.is_dir()).collect::<Vec<_>>();
    assert!(examples.len() > 20, "{examples:?}");
    for example in examples {
        let name = example.file_name().unwrap().to_str().unwrap();
        assert!(example.join("karat.json").is_file(), "{name} has no karat.json");
        let cases = std::fs::read_to_string(example.join("evals/shop.json")).unwrap();
        assert_eq!(cases, read_example("shop.json"), "{name} has other cases");
        let is_tested = ["example", "program"].iter().any(|start| tests.contains(&format!("{start}(\"{name}\"")));
        assert!(is_tested, "no test runs {name}");
    }
}
