//! The wrappers of the guide to agents work, with stand-ins for the clients that they call.

use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::documented::{blocks, page};
use crate::support::{case, only_result, project};

/// A client of a shop whose answers name the session. The weather station of Oslo is offline.
const PYTHON_CLIENT: &str = r#"
from types import SimpleNamespace

class Client:
    def ask(self, message, session):
        arguments = {"city": message.rsplit(" ", 1)[-1].rstrip("?")}
        error = "offline" if arguments["city"] == "Oslo" else None
        call = SimpleNamespace(tool="get_weather", arguments=arguments, error=error)
        return SimpleNamespace(text=f"asked in {session}", calls=[] if message == "Hello" else [call])
"#;

/// The same in JavaScript.
const NODE_CLIENT: &str = r"
export class Client {
  async ask(message, { session }) {
    const args = { city: message.split(' ').at(-1).replace('?', '') };
    const error = args.city === 'Oslo' ? 'offline' : null;
    return { text: `asked in ${session}`, calls: message === 'Hello' ? [] : [{ tool: 'get_weather', args, error }] };
  }
}
";

/// The part of boto3 that the wrapper uses. Replies are as in the reference of `InvokeAgent`: a stream of chunks and
/// traces, in which an action group has a function or a path.
const BOTO3: &str = r#"
def client(name):
    assert name == "bedrock-agent-runtime"
    return Runtime()

class Runtime:
    def invoke_agent(self, *, agentId, agentAliasId, sessionId, inputText, enableTrace=False):
        assert agentId and agentAliasId and enableTrace
        return {"contentType": "application/json", "sessionId": sessionId, "completion": stream(inputText, sessionId)}

def stream(text, session):
    city = text.rsplit(" ", 1)[-1].rstrip("?")
    parameters = [{"name": "city", "type": "string", "value": city}]
    action = {"actionGroupName": "weather", "executionType": "LAMBDA", "parameters": parameters}
    action |= {"apiPath": "/weather", "verb": "get"} if city == "Rome" else {"function": "get_weather"}
    yield trace({"modelInvocationInput": {"text": text}})
    if text != "Hello":
        yield trace({"invocationInput": {"invocationType": "ACTION_GROUP", "actionGroupInvocationInput": action}})
        yield trace({"observation": {"type": "ACTION_GROUP", "actionGroupInvocationOutput": {"text": "18"}}})
        yield {"trace": {"trace": {"preProcessingTrace": {"modelInvocationOutput": {}}}}}
    yield {"chunk": {"bytes": "asked in ".encode()}}
    yield {"chunk": {"bytes": session.encode()}}

def trace(step):
    return {"sessionId": "s", "trace": {"trace": {"orchestrationTrace": step}}}
"#;

/// Returns the block of the guide that starts with this comment, and the endpoint that the guide gives for it.
fn wrapper(language: &str, start: &str) -> (String, String) {
    let text = page("guides/agents.md");
    let wrapper = blocks(&text, &[language]).into_iter().find(|block| block.starts_with(start)).expect(start);
    let before = text.split(start).next().unwrap();
    let quoted = |text: &str| Some(text.rsplit_once("\"agentEndpoint\": \"")?.1.split('"').next()?.to_owned());
    let max_lines = if start.contains("bedrock") { 18 } else { 10 };
    let lines = wrapper.lines().filter(|line| !line.is_empty()).count();
    assert!(lines <= max_lines, "{start} has {lines} lines");
    let endpoint = quoted(wrapper.lines().next().unwrap()).or_else(|| quoted(before)).expect("an endpoint");
    (wrapper, endpoint)
}

/// Runs cases that pass if the wrapper's text, calls and arguments are right. Returns the cases of the result.
fn run_cases(project: TempProject, endpoint: &str) -> Vec<Value> {
    let city = json!([{"tool": "get_weather", "paramName": "city", "assertion": "equals", "value": "Oslo"}]);
    let asked = json!(["^asked in [0-9a-f-]{36}$"]);
    let cases = json!([
        case("gs-x-100", "Hello", json!({"toolsCalled": [], "responseMatches": asked})),
        case(
            "gs-x-101",
            "What is the weather in Oslo?",
            json!({"toolsCalled": ["get_weather"], "toolParams": city, "responseMatches": asked}),
        ),
        case("gs-x-102", "What is the weather in Rome?", json!({"minToolCalls": 1, "maxToolCalls": 1})),
    ]);
    let project = project.file("karat.json", json!({"agentEndpoint": endpoint})).file("evals/x.golden.json", cases);
    let output = project.run(["run", "--no-store"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    only_result(&project, "evals/results")["cases"].as_array().unwrap().clone()
}

fn calls(case: &Value) -> Vec<(&Value, &Value)> {
    let calls = case["details"]["toolCalls"].as_array().unwrap();
    calls.iter().map(|call| (&call["name"], &call["success"])).collect()
}

/// Runs a wrapper with the client that it imports; the client reports which calls failed.
fn assert_wraps_a_client(language: &str, start: &str, client: (&str, &str)) {
    let (wrapper, endpoint) = wrapper(language, start);
    let file = start.rsplit(' ').next().unwrap();
    let cases = run_cases(project().file(file, wrapper).file(client.0, client.1), &endpoint);
    assert_eq!(calls(&cases[0]), []);
    assert_eq!(calls(&cases[1]), [(&json!("get_weather"), &json!(false))]);
    assert_eq!(calls(&cases[2]), [(&json!("get_weather"), &json!(true))]);
}

#[test]
fn python_wrapper_reports_calls() {
    assert_wraps_a_client("python", "# wrapper.py", ("shop_client.py", PYTHON_CLIENT));
}

#[test]
#[ignore = "needs Node"]
fn node_wrapper_reports_calls() {
    assert_wraps_a_client("js", "// wrapper.mjs", ("shop-client.mjs", NODE_CLIENT));
}

/// The stream does not report which calls failed.
#[test]
fn bedrock_wrapper_reports_calls() {
    let (wrapper, endpoint) = wrapper("python", "# bedrock.py");
    let cases = run_cases(project().file("bedrock.py", wrapper).file("boto3.py", BOTO3), &endpoint);
    assert_eq!(calls(&cases[0]), []);
    assert_eq!(calls(&cases[1]), [(&json!("get_weather"), &Value::Null)]);
    assert_eq!(calls(&cases[2]), [(&json!("/weather"), &Value::Null)]);
}
