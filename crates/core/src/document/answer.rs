//! The trace document of an answer or a conversation, written without building its content first.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::StepUsage;
use crate::trace::{ToolCall, Usage};
use crate::turn_details::TurnDetails;

/// An answer that serialises as a trace document with one step, from the message to the final response, or a
/// conversation with at least one step per turn.
#[derive(Debug, Clone, Copy)]
pub struct AnswerDocument<'a> {
    pub trace_id: &'a str,
    pub message: &'a str,
    pub response: &'a str,
    pub tool_calls: &'a [ToolCall],
    pub model: Option<&'a str>,
    pub stop_reason: Option<&'a str>,
    pub usage: Option<&'a Usage>,
    /// The turns of a conversation; those without an answer have no step.
    pub turns: &'a [TurnDetails],
    /// The number of the first of these turns.
    pub first_turn: usize,
    /// The case of a run that the answer belongs to.
    pub origin: Option<RunOrigin<'a>>,
}

/// The run and case of an answer; becomes the metadata of its trace.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RunOrigin<'a> {
    pub run_id: &'a str,
    pub eval_file: &'a str,
    pub case_id: &'a str,
    pub trial: u64,
    pub agent: &'a str,
}

impl AnswerDocument<'_> {
    /// Sets the number of the first turn.
    #[must_use]
    pub fn with_first_turn(self, first_turn: usize) -> Self {
        Self { first_turn, ..self }
    }

    pub fn to_value(self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns the number of steps.
    pub(crate) fn step_count(&self) -> usize {
        if self.turns.is_empty() { 1 } else { self.turns.iter().map(|turn| steps_of_turn(0, turn).count()).sum() }
    }

    /// Returns the agent's texts, in order.
    pub(crate) fn responses(&self) -> impl DoubleEndedIterator<Item = &str> {
        let single = self.turns.is_empty().then_some(self.response);
        single.into_iter().chain(self.turns.iter().filter_map(|turn| turn.response.as_deref()))
    }

    fn steps(&self) -> Vec<Step<'_>> {
        if self.turns.is_empty() {
            return vec![Step {
                turn: None,
                input: Input { message: Some(self.message) },
                output: Output { response: self.response },
                tool_calls: self.tool_calls,
                error: (),
            }];
        }
        (self.first_turn..).zip(self.turns).flat_map(|(number, turn)| steps_of_turn(number, turn)).collect()
    }
}

/// Returns a step per model call where these are known, and one step otherwise; none without an answer.
fn steps_of_turn(number: usize, turn: &TurnDetails) -> impl Iterator<Item = Step<'_>> {
    let calls = turn.tool_calls.as_slice();
    let in_order = calls.iter().map(|call| call.step);
    let is_known = turn.steps.is_some() && calls.iter().all(|call| call.step.is_some()) && in_order.is_sorted();
    let count = turn.steps.filter(|_| is_known).unwrap_or(1).max(1);
    turn.response.as_deref().into_iter().flat_map(move |response| {
        (0..count).map(move |step| {
            let start = calls.partition_point(|call| is_known && call.step < Some(step));
            let end = calls.partition_point(|call| !is_known || call.step <= Some(step));
            let is_last = step + 1 == count;
            Step {
                turn: Some(number),
                input: Input { message: (step == 0).then_some(turn.message.as_str()) },
                // The texts of earlier model calls are not part of a trace.
                output: Output { response: if is_last { response } else { "" } },
                tool_calls: &calls[start..end],
                error: (),
            }
        })
    })
}

impl Serialize for AnswerDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a> {
            trace_id: &'a str,
            steps: Vec<Step<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            model: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            stop_reason: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            usage: Option<StepUsage>,
            #[serde(skip_serializing_if = "Option::is_none")]
            name: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            metadata: Option<RunOrigin<'a>>,
        }
        let document = Document {
            trace_id: self.trace_id,
            steps: self.steps(),
            model: self.model,
            stop_reason: self.stop_reason,
            usage: self.usage.map(StepUsage::from),
            name: self.origin.map(|origin| origin.case_id),
            metadata: self.origin,
        };
        document.serialize(serializer)
    }
}

#[derive(Serialize)]
struct Step<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<usize>,
    input: Input<'a>,
    output: Output<'a>,
    #[serde(serialize_with = "serialize_calls")]
    tool_calls: &'a [ToolCall],
    error: (),
}

#[derive(Serialize)]
struct Input<'a> {
    /// Null for the model calls that follow tool results.
    message: Option<&'a str>,
}

#[derive(Serialize)]
struct Output<'a> {
    response: &'a str,
}

fn serialize_calls<S: Serializer>(calls: &[ToolCall], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Call<'a> {
        name: &'a str,
        arguments: &'a Map<String, Value>,
        result: Option<&'a Value>,
        error: Option<&'a str>,
        success: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        raw_arguments: Option<&'a str>,
    }
    serializer.collect_seq(calls.iter().map(|call| Call {
        name: &call.name,
        arguments: &call.params,
        result: call.result.as_ref(),
        error: call.failure(),
        success: call.success,
        raw_arguments: call.raw_params.as_deref(),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::details::CaseDetails;
    use crate::trace::Trace;

    fn document(trace: Trace, id: &str, message: &str) -> Value {
        CaseDetails::from(trace).document(id, message, None).to_value()
    }

    #[test]
    fn a_trace_has_the_documented_shape() {
        let call = ToolCall {
            name: "search".to_owned(),
            success: Some(true),
            params: json!({ "q": "rain" }).as_object().cloned().unwrap_or_default(),
            result: Some(json!({ "hits": 2 })),
            ..ToolCall::default()
        };
        let broken = ToolCall {
            name: "find".to_owned(),
            success: Some(false),
            raw_params: Some("{".to_owned()),
            ..ToolCall::default()
        };
        let trace = Trace {
            response: "It rains.".to_owned(),
            tool_calls: vec![call, broken],
            usage: Some(Usage { input_tokens: Some(3), ..Usage::default() }),
            model: Some("m-1".to_owned()),
            latency_ms: 12.0,
            ..Trace::default()
        };
        let expected = json!({
            "trace_id": "gs-x-001",
            "steps": [{
                "input": { "message": "Rain?" },
                "output": { "response": "It rains." },
                "tool_calls": [
                    { "name": "search", "arguments": { "q": "rain" }, "result": { "hits": 2 }, "error": null, "success": true },
                    {
                        "name": "find", "arguments": {}, "result": null, "error": "the call failed", "success": false,
                        "raw_arguments": "{"
                    }
                ],
                "error": null
            }],
            "model": "m-1",
            "usage": { "input_tokens": 3, "output_tokens": null, "cached_input_tokens": null, "cost_usd": null }
        });
        assert_eq!(document(trace, "gs-x-001", "Rain?"), expected);
    }

    #[test]
    fn a_conversation_has_a_step_per_model_call_where_these_are_known() {
        let call = |name: &str, step| ToolCall { name: name.to_owned(), step, ..ToolCall::default() };
        let turn = |message: &str, steps, tool_calls| TurnDetails {
            message: message.to_owned(),
            response: Some(format!("re: {message}")),
            steps,
            tool_calls,
            ..TurnDetails::default()
        };
        let turns = vec![
            turn("a", Some(3), vec![call("find", Some(0)), call("pay", Some(0)), call("mail", Some(1))]),
            turn("b", None, vec![call("find", None)]),
            TurnDetails::not_run("c"),
        ];
        let details = CaseDetails { turns, ..CaseDetails::default() };
        let document = details.document("t", "a", None).to_value();
        let steps: Vec<Value> = document["steps"]
            .as_array()
            .expect("steps")
            .iter()
            .map(|step| {
                let calls: Vec<&Value> =
                    step["tool_calls"].as_array().expect("calls").iter().map(|call| &call["name"]).collect();
                json!([step["turn"], step["input"]["message"], step["output"]["response"], calls])
            })
            .collect();
        let expected = [
            json!([0, "a", "", ["find", "pay"]]),
            json!([0, null, "", ["mail"]]),
            json!([0, null, "re: a", []]),
            json!([1, "b", "re: b", ["find"]]),
        ];
        assert_eq!(steps, expected);
        let second = CaseDetails { turns: details.turns[1..2].to_vec(), ..CaseDetails::default() };
        let document = second.document("t", "b", None).with_first_turn(1).to_value();
        assert_eq!(document["steps"][0]["turn"], 1);
    }

    #[test]
    fn an_empty_trace_has_one_step() {
        let empty = document(Trace::default(), "a", "");
        assert_eq!(empty["steps"][0]["tool_calls"], json!([]));
        assert_eq!(empty.as_object().map(Map::len), Some(2));
    }
}
