//! Compares the outcomes of traces alone, after other traces, and on several threads.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use karat_core::judgement::{Conclusion, Judgement, Limits};
use karat_sandbox::{Function, Input, Isolation, Sandbox, Task, validate};

/// Everything that the function determines: verdict or error, and output.
pub(crate) type Outcome = (Conclusion, String, String);

fn outcome(judgement: Judgement) -> Outcome {
    (judgement.conclusion, judgement.stdout, judgement.stderr)
}

/// Judges JSON Lines with a function and returns the outcomes.
pub(crate) fn outcomes(
    sandbox: &Sandbox,
    function: &Arc<Function>,
    lines: &str,
    isolation: Isolation,
    jobs: usize,
) -> Vec<Outcome> {
    let functions = vec![Arc::clone(function)];
    // A busy machine must not decide the outcome.
    let limits = Limits { time: Duration::from_mins(1), ..Limits::default() };
    let task = Task { functions, limits, isolation, jobs };
    // One trace per batch, so that all threads get some.
    let inputs: Vec<_> =
        lines.lines().map(|line| Ok::<_, Infallible>(vec![Input { key: (), text: Ok(line.into()) }])).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut stream = sandbox.judge_stream(&task, inputs.into_iter()).unwrap();
        let mut all = Vec::new();
        loop {
            let judged = stream.next().await.unwrap();
            if judged.is_empty() {
                return all;
            }
            all.extend(judged.into_iter().flat_map(|judged| judged.judgements).map(outcome));
        }
    })
}

/// How a function's outcomes depend on other traces.
pub(crate) struct Comparison {
    /// A difference in the default isolation, if any.
    pub(crate) difference: Option<String>,
    /// Whether the last trace has another outcome in shared isolation.
    pub(crate) differs_when_shared: bool,
}

/// Compares the last trace alone with the same trace after the others, and all traces on 1, 2 and 8 threads.
pub(crate) fn compare(sandbox: &Sandbox, source: &str, lines: &str) -> Comparison {
    let function = validate(source.as_bytes()).unwrap_or_else(|_| Function::unvalidated("eval_generated", source));
    let function = Arc::new(function);
    let last = lines.lines().last().unwrap();
    let fresh = |lines, jobs| outcomes(sandbox, &function, lines, Isolation::Fresh, jobs);
    let alone = fresh(last, 1);
    let expected = fresh(lines, 1);
    let mut difference = (expected.last() != alone.last())
        .then(|| format!("after the other traces: {:?}\nalone: {:?}\n{source}", expected.last(), alone.last()));
    for jobs in [2, 8] {
        let outcomes = fresh(lines, jobs);
        let different = outcomes.iter().zip(&expected).position(|(outcome, expected)| outcome != expected);
        if let Some(number) = different {
            difference.get_or_insert(format!(
                "trace {number} on {jobs} threads: {:?}\non one thread: {:?}\n{source}",
                outcomes[number], expected[number]
            ));
        } else if outcomes.len() != expected.len() {
            difference.get_or_insert(format!("{} traces on {jobs} threads", outcomes.len()));
        }
    }
    let shared = outcomes(sandbox, &function, lines, Isolation::Shared, 1);
    Comparison { difference, differs_when_shared: shared.last() != alone.last() }
}
