//! Secrets reach no file, log or page.

use karat_testkit::server::ScriptedServer;
use serde_json::json;

use crate::support::{ok_case, project};

const SECRET: &str = "s3cr3t-value-of-a-token";

#[test]
fn a_header_that_the_agent_echoes_is_masked_everywhere() {
    let echo = json!({
        "response": format!("your token is {SECRET}"),
        "toolCalls": [{"name": "t", "success": true, "params": {"auth": SECRET, SECRET: [1]}, "result": {"seen": SECRET}}],
    });
    let server = ScriptedServer::start(json!({
        "echo": echo,
        "fail": {"status": 500, "raw": format!("bad token {SECRET}")},
        "html": {"raw": format!("<{SECRET}>")},
    }));
    let project = project()
        .file(
            "karat.json",
            json!({
                "agentEndpoint": format!("{}?api_key=in-the-query-1", server.endpoint()),
                "outputDir": "results",
                "agent": {"headers": {"Authorization": "Bearer ${AGENT_TOKEN}", "x-api-key": "written-down-2"}},
            }),
        )
        .file(
            "evals/x.golden.json",
            json!([ok_case("gs-x-001", "echo"), ok_case("gs-x-002", "fail"), ok_case("gs-x-003", "html")]),
        );
    for format in ["human", "json", "jsonl"] {
        let output = project
            .command([
                "run",
                "--format",
                format,
                "--report",
                "junit=r.xml",
                "--report",
                "markdown=r.md",
                "--report",
                "github=r.txt",
            ])
            .env("AGENT_TOKEN", SECRET)
            .run();
        assert_eq!(output.code, Some(3), "{}", output.both());
        let mut texts =
            vec![output.stdout, output.stderr, project.read("r.xml"), project.read("r.md"), project.read("r.txt")];
        texts.extend(project.files_in("results", ".json").iter().map(|path| std::fs::read_to_string(path).unwrap()));
        for text in texts {
            for secret in [SECRET, "in-the-query-1", "written-down-2"] {
                assert!(!text.contains(secret), "{secret} in {text}");
            }
        }
    }
    let sent = server.requests().remove(0);
    assert_eq!(sent.headers.get("authorization").map(String::as_str), Some(format!("Bearer {SECRET}").as_str()));
}

#[test]
fn what_cannot_be_sent_is_said_without_the_secret() {
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "http://127.0.0.1:9/chat", "agent": {"headers": {"Authorization": "Bearer ${AGENT_TOKEN}"}}}))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    insta::assert_snapshot!(project.run(["run"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: the header 'Authorization' cannot be sent: the environment variable AGENT_TOKEN is not set
    ");
    let broken = project.command(["run"]).env("AGENT_TOKEN", format!("{SECRET}\nx")).run();
    assert_eq!(broken.code, Some(2));
    assert!(!broken.both().contains(SECRET), "{}", broken.both());
    project.write(
        "karat.json",
        format!("{{\"agentEndpoint\": 5, \"agent\": {{\"headers\": {{\"x-api-key\": \"{SECRET}\"}}}}}}"),
    );
    let invalid = project.run(["run"]);
    assert_eq!(invalid.code, Some(2));
    assert!(!invalid.both().contains(SECRET), "{}", invalid.both());
}
