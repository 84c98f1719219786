//! A conversation: the messages and the answers to them.

use crate::trace::{ToolCall, Trace, Usage};

/// A message of the user and the agent's answer to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exchange {
    pub message: String,
    pub trace: Trace,
}

/// Returns a conversation as one answer: all calls in order, the last response, and the sums of latency, usage and cost.
pub fn total_trace<'e>(traces: impl ExactSizeIterator<Item = &'e Trace>) -> Trace {
    let has_turns = traces.len() > 0;
    let mut total = Trace::default();
    let mut usage = Some(None::<Usage>);
    let mut first_token = Some(None::<f64>);
    let mut steps = Some(0);
    for trace in traces {
        total.response.clone_from(&trace.response);
        // The number of steps is known only if it is known for every turn.
        let steps_before = steps;
        total.tool_calls.extend(trace.tool_calls.iter().map(|call| {
            let step = call.step.zip(steps_before).map(|(step, before)| step + before);
            ToolCall { step, ..call.clone() }
        }));
        steps = steps.zip(trace.steps).map(|(before, steps)| before + steps);
        total.model = trace.model.clone().or(total.model);
        total.stop_reason.clone_from(&trace.stop_reason);
        total.latency_ms += trace.latency_ms;
        total.calls_unreported |= trace.calls_unreported;
        // The slowest first text; unknown if it is unknown for a turn.
        first_token = first_token
            .zip(trace.first_token_ms)
            .map(|(slowest, time)| Some(slowest.map_or(time, |slowest| slowest.max(time))));
        usage = usage
            .zip(trace.usage.as_ref())
            .map(|(sum, usage)| Some(sum.map_or_else(|| usage.clone(), |sum| sum.plus(usage))));
        if let Some(stderr) = &trace.stderr {
            total.stderr.get_or_insert_default().push_str(stderr);
        }
        for warning in &trace.warnings {
            if !total.warnings.contains(warning) {
                total.warnings.push(warning.clone());
            }
        }
    }
    total.steps = steps.filter(|_| has_turns);
    total.usage = usage.flatten();
    total.first_token_ms = first_token.flatten();
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(response: &str, tool: &str, usage: Option<Usage>) -> Trace {
        let tool_calls = vec![ToolCall { name: tool.to_owned(), step: Some(0), ..ToolCall::default() }];
        Trace { response: response.to_owned(), tool_calls, steps: Some(2), usage, latency_ms: 10.0, ..Trace::default() }
    }

    fn usage(input_tokens: u64, cost_usd: Option<f64>) -> Usage {
        Usage { input_tokens: Some(input_tokens), output_tokens: Some(1), cost_usd, ..Usage::default() }
    }

    #[test]
    fn adds_up_the_turns() {
        let traces = [trace("a", "find", Some(usage(3, Some(0.5)))), trace("b", "pay", Some(usage(4, Some(0.25))))];
        let total = total_trace(traces.iter());
        assert_eq!((total.response.as_str(), total.tool_names()), ("b", vec!["find", "pay"]));
        assert_eq!((total.latency_ms, total.cost_usd()), (20.0, Some(0.75)));
        let steps: Vec<Option<u64>> = total.tool_calls.iter().map(|call| call.step).collect();
        assert_eq!((total.steps, steps), (Some(4), vec![Some(0), Some(2)]));
        assert_eq!(total.usage.and_then(|usage| usage.input_tokens), Some(7));
    }

    #[test]
    fn unknown_usage_of_a_turn_is_unknown_in_the_sum() {
        let total = |second| total_trace([trace("a", "t", Some(usage(3, Some(0.5)))), trace("b", "t", second)].iter());
        assert_eq!(total(None).usage, None);
        let partly = total(Some(usage(4, None))).usage.expect("known tokens");
        assert_eq!((partly.input_tokens, partly.cost_usd), (Some(7), None));
    }
}
