//! Secrets do not appear in files, logs or reports.

use std::ffi::OsString;

use karat_testkit::server::ScriptedServer;
use serde_json::json;

use crate::store_project::{Database, StoreProject};
use crate::support::{ok_case, project};

const SECRET: &str = "s3cr3t-value-of-a-token";

#[test]
fn masks_echoed_headers_everywhere() {
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
fn configuration_errors_do_not_show_secrets() {
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "http://127.0.0.1:9/chat", "agent": {"headers": {"Authorization": "Bearer ${AGENT_TOKEN}"}}}))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    insta::assert_snapshot!(project.run(["run"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot send the header 'Authorization': the environment variable
      AGENT_TOKEN is not set
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

#[test]
fn masks_secrets_at_truncation_limits() {
    let server = ScriptedServer::start(json!({
        "page": {"status": 500, "raw": format!("{}{SECRET}", "x".repeat(570))},
        "html": {"raw": format!("{}{SECRET}", "x".repeat(560))},
    }));
    let project = project()
        .file(
            "karat.json",
            json!({"agentEndpoint": server.endpoint(), "outputDir": "results", "agent": {"headers": {"x-key": "${AGENT_TOKEN}"}}}),
        )
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "page"), ok_case("gs-x-002", "html")]));
    let output = project.command(["run"]).env("AGENT_TOKEN", SECRET).run();
    assert_eq!(output.code, Some(3));
    let file = std::fs::read_to_string(&project.files_in("results", ".json")[0]).unwrap();
    for text in [output.both(), file] {
        assert!(!text.contains(&SECRET[..6]), "{text}");
    }
}

#[test]
fn invalid_json_does_not_show_secrets() {
    let text = format!("{{\"agent\": {{\"headers\": {{\"X-Api-Key\": \"{SECRET}\",}}}}}}");
    let output = project().file("karat.json", text).run(["run"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("trailing comma"), "{}", output.stderr);
    assert!(!output.both().contains(SECRET), "{}", output.both());
}

#[test]
fn masks_url_passwords_in_every_encoding() {
    let server = ScriptedServer::start(json!({"*": {"response": "bWU6cGFecy0xMjM0 pa^s-1234"}}));
    let address = server.endpoint().replace("http://", "http://me:pa^s-1234@");
    let project = project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run", "--agent-endpoint", &address, "--output-dir", "results"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    let file = std::fs::read_to_string(&project.files_in("results", ".json")[0]).unwrap();
    for secret in ["pa^s-1234", "pa%5Es-1234", "bWU6cGFecy0xMjM0"] {
        assert!(!file.contains(secret), "{secret} in {file}");
    }
}

#[test]
fn a_mistyped_store_url_creates_no_file() {
    let project = project().file("w.jsonl", "{\"trace_id\": \"t\", \"steps\": []}\n");
    for store in ["postgres:/me:hunter2@host/db", "PostgreSQL:me:hunter2@host", "host=db user=me password=hunter2"] {
        let output = project.command(["trace", "import", "w.jsonl"]).env("KARAT_STORE", store).run();
        assert_eq!(output.code, Some(2), "{}", output.both());
        assert!(output.stderr.contains("postgres://USER:PASSWORD@HOST:PORT/DATABASE"), "{}", output.stderr);
        assert!(!output.both().contains("hunter2"), "{}", output.both());
    }
    let names = std::fs::read_dir(project.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let is_store =
        |name: &OsString| ["post", "Post", "host"].iter().any(|part| name.to_string_lossy().starts_with(part));
    let created: Vec<_> = names.filter(is_store).collect();
    assert!(created.is_empty(), "{created:?}");
}

/// The password of the test server is `karat`, a word that occurs in most output.
#[test]
#[ignore = "needs PostgreSQL"]
fn a_password_that_is_a_common_word_is_not_masked() {
    let store = StoreProject::new(Database::Postgres);
    let steps = json!([{"input": "the karat of gold", "output": "24 karat"}]);
    store.project.write("w.jsonl", json!({"trace_id": "karat-1", "steps": steps}).to_string());
    insta::assert_snapshot!(store.project.run(["trace", "import", "w.jsonl"]).filtered(), @"
    exit: 0
    ----- stdout -----
    1 trace added, 0 changed, 0 unchanged (karat 1)
      1 step, 0 tool calls, 0 errors
    ----- stderr -----
    next: 'karat trace list', 'karat trace show ID' or
      'karat eval run NAME --stored'
    ");
    let details = store.project.run(["trace", "show", "karat-1", "--format", "json"]);
    assert!(details.stdout.contains("the karat of gold"), "{}", details.both());
    let list = store.project.run(["trace", "list"]);
    assert!(list.stdout.starts_with("trace ") && list.stdout.contains("karat-1"), "{}", list.both());
    let run = store.project.run(["run"]);
    assert!(!run.both().contains("***"), "{}", run.both());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn errors_do_not_show_the_database_password() {
    let store = StoreProject::new(Database::Postgres);
    let server = store.server_url().unwrap();
    let (user, host_and_path) = server.rsplit_once('@').expect("a user");
    let host_and_path = host_and_path.split('?').next().unwrap();
    let (address, _) = host_and_path.split_once('/').expect("a database");
    let error_with = |url: &str| {
        let output = store.project.command(["trace", "list"]).env("KARAT_STORE", url).run();
        assert_eq!(output.code, Some(3), "{}", output.both());
        assert!(!output.both().contains("***"), "{}", output.both());
        output.both().replace(address, "SERVER")
    };
    // The first password is also the name of the subcommand.
    for password in ["trace", "s3cr3t-and-l0ng"] {
        let name = "postgres://karat";
        let errors = [
            error_with(&format!("{name}:{password}@{host_and_path}")),
            error_with(&format!("{name}:{password}@127.0.0.1:1/karat_test")),
            error_with(&format!("postgres://127.0.0.1:1/karat_test?user=karat&password={password}")),
            error_with(&format!("{name}:{password}@nowhere.invalid/karat_test")),
            error_with(&format!("{name}:12#{password}@{host_and_path}")),
            error_with(&format!("{name}:12/{password}@{host_and_path}")),
        ];
        assert!(errors.iter().all(|error| !error.contains(password)), "{errors:#?}");
        assert!(errors[0].contains("SERVER/karat_test rejected the user 'karat'"), "{}", errors[0]);
        assert!(errors[1].contains("cannot connect to PostgreSQL at 127.0.0.1:1/karat_test: "), "{}", errors[1]);
        assert!(
            errors[3].contains("cannot connect to PostgreSQL at nowhere.invalid:5432/karat_test: "),
            "{}",
            errors[3]
        );
        for error in &errors[4..] {
            assert!(error.contains("invalid store URL") && !error.contains(":12"), "{error}");
        }
    }
    insta::assert_snapshot!(error_with(&format!("{user}@{address}/nowhere")), @"
    error: PostgreSQL at SERVER/nowhere has no database 'nowhere'
    hint: create it with: createdb nowhere
    ");
}
