//! A model that replies from a file, for examples and tests.

use std::time::{Duration, Instant};

use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{AgentError, BoxFuture, WaitObserver};
use karat_core::trace::Usage;
use karat_json::hash::short_hash;
use karat_json::{
    Finding, ObjectReader, Path, Problems, parse, read_array, read_count, read_object_map, read_string, read_strings,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::scripted::ScriptError;

/// A file of scripted model answers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "karat judge script")]
pub struct ChatScript {
    /// URL or path of this file's JSON Schema, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The first reply whose `contains` strings all occur in the prompt is used.
    pub replies: Vec<ScriptedChatReply>,
    /// The answer to any other prompt; without it, other prompts are errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<ScriptedAnswer>,
}

/// A scripted answer and the prompts that it matches.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptedChatReply {
    /// Strings that must all occur in the prompt. The prompt is JSON, so a quotation mark is written `\"`.
    #[schemars(length(min = 1))]
    pub contains: Vec<String>,
    /// The answer; for a judge: `{"score": …, "reason": …}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Map<String, Value>>,
    /// Fail with this message instead of answering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Delay before the answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// `inputTokens`, `outputTokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ScriptedUsage>,
}

/// A default answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptedAnswer {
    /// The answer; for a judge: `{"score": …, "reason": …}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Map<String, Value>>,
    /// Fail with this message instead of answering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Delay before the answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// `inputTokens`, `outputTokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ScriptedUsage>,
}

/// Token usage of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptedUsage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// A model that answers from a script.
#[derive(Debug)]
pub struct ScriptedChatModel {
    identity: String,
    /// Hash of the script's text.
    hash: String,
    replies: Vec<(Vec<String>, Answer)>,
    otherwise: Option<Answer>,
}

#[derive(Debug, Clone)]
struct Answer {
    delay: Duration,
    outcome: Result<Value, String>,
    usage: Option<Usage>,
}

impl ScriptedChatModel {
    /// Parses a script; `identity` is the model's name in results.
    pub fn parse(text: &str, identity: String) -> Result<Self, ScriptError> {
        let value = parse(text).map_err(|error| ScriptError { findings: vec![Finding::syntax(text, error)] })?;
        let mut problems = Problems::default();
        let script = read_script(&value, &mut problems);
        match script.filter(|_| problems.is_empty()) {
            Some((replies, otherwise)) => Ok(Self { identity, hash: short_hash(text.as_bytes()), replies, otherwise }),
            None => Err(ScriptError { findings: Finding::locate_all(text, problems.into_list()) }),
        }
    }
}

type Replies = (Vec<(Vec<String>, Answer)>, Option<Answer>);

fn read_script(value: &Value, problems: &mut Problems) -> Option<Replies> {
    let path = Path::Root;
    let mut object = ObjectReader::open(value, &path, problems)?;
    object.optional("$schema", &path, problems, read_string);
    let replies = object.required("replies", &path, problems, |value, path, problems| {
        read_array(value, path, problems, |value, path, problems| {
            let mut object = ObjectReader::open(value, path, problems)?;
            let contains = object.required("contains", path, problems, |value, path, problems| {
                let texts = read_strings(value, path, problems)?;
                if texts.is_empty() {
                    problems.at(path, "'contains' is empty: use 'otherwise' for a default answer");
                }
                Some(texts)
            });
            let answer = read_answer(object, path, problems);
            Some((contains?, answer?))
        })
    });
    let otherwise = object.optional("otherwise", &path, problems, |value, path, problems| {
        let object = ObjectReader::open(value, path, problems)?;
        read_answer(object, path, problems)
    });
    object.close(&path, problems);
    Some((replies?, otherwise))
}

fn read_answer(mut object: ObjectReader<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<Answer> {
    let value = object.optional("value", path, problems, read_object_map);
    let error = object.optional("error", path, problems, read_string);
    let delay = object.optional("delayMs", path, problems, read_count).unwrap_or_default();
    let usage = object.optional("usage", path, problems, |value, path, problems| {
        let mut object = ObjectReader::open(value, path, problems)?;
        let usage = Usage {
            input_tokens: object.optional("inputTokens", path, problems, read_count),
            output_tokens: object.optional("outputTokens", path, problems, read_count),
            ..Usage::default()
        };
        object.close(path, problems);
        Some(usage)
    });
    let (has_value, has_error) = (object.raw("value").is_some(), object.raw("error").is_some());
    object.close(path, problems);
    if has_value == has_error {
        problems.at(path, "expected exactly one of 'value' and 'error'");
    }
    let outcome = match (value, error) {
        (_, Some(error)) => Err(error),
        (value, None) => Ok(Value::Object(value?)),
    };
    Some(Answer { delay: Duration::from_millis(delay), outcome, usage })
}

impl ChatModel for ScriptedChatModel {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn parameters(&self) -> Map<String, Value> {
        [("script".to_owned(), Value::from(self.hash.as_str()))].into_iter().collect()
    }

    fn complete<'a>(
        &'a self,
        prompt: &'a ChatPrompt,
        _wait_observer: &'a dyn WaitObserver,
    ) -> BoxFuture<'a, Result<ChatReply, AgentError>> {
        Box::pin(async move {
            let start = Instant::now();
            let fail = |message: String| AgentError::new(message, start.elapsed());
            let matches = |texts: &[String]| texts.iter().all(|text| prompt.user.contains(text.as_str()));
            let answer = self
                .replies
                .iter()
                .find_map(|(contains, answer)| matches(contains).then_some(answer))
                .or(self.otherwise.as_ref())
                .ok_or_else(|| fail("the script has no answer to this prompt".to_owned()))?;
            if !answer.delay.is_zero() {
                tokio::time::sleep(answer.delay).await;
            }
            let value = answer.outcome.clone().map_err(fail)?;
            Ok(ChatReply { value, usage: answer.usage.clone(), latency_ms: start.elapsed().as_secs_f64() * 1000.0 })
        })
    }
}

#[cfg(test)]
mod tests {
    use karat_core::port::IgnoreWaits;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn model(script: &Value) -> Result<ScriptedChatModel, Vec<String>> {
        let parsed = ScriptedChatModel::parse(&script.to_string(), "scripted:judge.json".to_owned());
        parsed.map_err(|error| error.findings.into_iter().map(|finding| finding.message).collect())
    }

    fn script() -> Value {
        json!({
            "replies": [
                { "contains": ["accuracy", "Paris"], "value": { "score": 2, "reason": "right" } },
                { "contains": ["accuracy"], "value": { "score": 0, "reason": "wrong" }, "usage": { "inputTokens": 3 } },
                { "contains": ["tone"], "error": "overloaded", "delayMs": 1 }
            ]
        })
    }

    #[rstest]
    #[case("Paris, for accuracy", Ok(json!({ "score": 2, "reason": "right" })))]
    #[case("accuracy", Ok(json!({ "score": 0, "reason": "wrong" })))]
    #[case("tone", Err("overloaded"))]
    #[case("else", Err("the script has no answer to this prompt"))]
    #[tokio::test]
    async fn the_first_matching_reply_is_used(#[case] user: &str, #[case] expected: Result<Value, &str>) {
        let prompt =
            ChatPrompt { system: String::new(), user: user.to_owned(), name: "n".to_owned(), schema: json!({}) };
        let model = model(&script()).expect("a valid script");
        let reply = model.complete(&prompt, &IgnoreWaits).await;
        assert_eq!(reply.map(|reply| reply.value).map_err(|error| error.message), expected.map_err(str::to_owned));
    }

    #[tokio::test]
    async fn an_unmatched_prompt_gets_the_default_answer() {
        let mut script = script();
        script["otherwise"] = json!({ "value": { "score": 1, "reason": "" } });
        let prompt =
            ChatPrompt { system: "tone".to_owned(), user: String::new(), name: String::new(), schema: json!({}) };
        let reply = model(&script).expect("a valid script").complete(&prompt, &IgnoreWaits).await.expect("an answer");
        assert_eq!(reply.value["score"], 1);
    }

    #[rstest]
    #[case(json!({}), "'replies' is missing")]
    #[case(json!({ "replies": [], "otherwize": {} }), "unknown key 'otherwize'")]
    #[case(json!({ "replies": [{ "value": {} }] }), "'contains' is missing")]
    #[case(json!({ "replies": [{ "contains": [], "value": {} }] }), "'contains' is empty: use 'otherwise' for a default answer")]
    #[case(json!({ "replies": [{ "contains": ["a"] }] }), "expected exactly one of 'value' and 'error'")]
    #[case(json!({ "replies": [], "otherwise": { "value": {}, "error": "" } }), "expected exactly one of 'value' and 'error'")]
    #[case(json!({ "replies": [], "otherwise": { "value": 3 } }), "'value' must be an object, found a number")]
    fn rejects_invalid_scripts(#[case] script: Value, #[case] message: &str) {
        assert_eq!(model(&script).err(), Some(vec![message.to_owned()]));
    }
}
