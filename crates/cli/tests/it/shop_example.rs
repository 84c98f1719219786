//! `examples/shop` and the guide about state: a right agent, and one that also refunds another order.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use karat_testkit::project::TempProject;

use crate::documented::{assert_prints, documented_commands, page};
use crate::support::{newest_result, project};

/// The port in the files of the example.
const PORT: &str = "8765";

/// The server of the example. It is killed when dropped.
struct ShopServer {
    process: Child,
    port: String,
}

impl ShopServer {
    fn start(project: &TempProject, flags: &[&str]) -> Self {
        let mut command = Command::new("python3");
        command.args(["server.py", "--port", "0"]).args(flags).current_dir(project.path());
        let mut process = command.stdout(Stdio::piped()).spawn().expect("python3 starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("stdout")).read_line(&mut line).expect("the server prints a line");
        let port = line.trim().rsplit(':').next().expect("a port").to_owned();
        Self { process, port }
    }
}

impl Drop for ShopServer {
    fn drop(&mut self) {
        // It may have exited in the meantime.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the server in a copy of the example that uses its port.
fn shop(flags: &[&str]) -> (TempProject, ShopServer) {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shop");
    let read = |name: &str| std::fs::read_to_string(example.join(name)).unwrap();
    let evals = "evals/refund-order.labeled.json";
    let project = project().file("server.py", read("server.py")).file(evals, read(evals));
    let server = ShopServer::start(&project, flags);
    let config = read("karat.json");
    assert!(config.contains(PORT));
    project.write("karat.json", config.replace(PORT, &server.port));
    (project, server)
}

#[test]
fn the_right_agent_passes() {
    let (project, _server) = shop(&[]);
    // Twice, since a hook resets the database.
    for _ in 0..2 {
        let output = project.run(["run"]);
        assert_eq!(output.code, Some(0), "{}", output.both());
    }
}

#[test]
fn an_agent_that_refunds_another_order_fails() {
    let (project, _server) = shop(&["--careless"]);
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    let result = newest_result(&project, "results");
    let error = r#"stateUnchanged: shop changed at /orders/4412/status (before "delivered", after "refunded"), /refunds/4412 (before absent, after {"amount":9900})"#;
    assert_eq!(result["cases"][0]["error"], error);
    // Calls and response are the same: only the state shows it.
    assert_eq!(result["cases"][0]["details"]["toolsCalled"], serde_json::json!(["get_order", "refund_order"]));
    assert_eq!(result["cases"][1]["passed"], true);
}

#[test]
fn the_guide_shows_the_real_output() {
    let commands = documented_commands(&page("guides/state.md"));
    let [careless] = &commands[..] else { panic!("{} commands", commands.len()) };
    let (project, _server) = shop(&["--careless"]);
    assert_prints(&project, careless);
}
