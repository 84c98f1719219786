//! Judges answers by the expectations of cases.

use std::panic::{AssertUnwindSafe, catch_unwind};

use karat_cases::Case;
use karat_core::assertion::{Evidence, PendingVerdict, Verdict};
use karat_core::conversation::Exchange;
use karat_core::judgement::{ErrorKind, EvalError, Judgement};
use karat_core::port::EvalFunctions;
use karat_core::trace::Trace;
use serde_json::Value;

use crate::shared::SharedState;
use crate::timeout::panic_message;

/// The input of a judgement: a case, or a turn as a case of its own.
#[derive(Clone, Copy)]
pub(crate) struct Part<'p> {
    pub(crate) suite: usize,
    pub(crate) case: &'p Case,
    /// The case that a turn belongs to; determines how it was answered.
    pub(crate) whole: &'p Case,
    pub(crate) trace: &'p Trace,
    /// The conversation before the turn.
    pub(crate) earlier: &'p [Exchange],
}

impl SharedState {
    /// Judges a case or a part of it; `document` returns the trace document for eval functions. Returns the message of a
    /// panic as an error.
    pub(crate) fn judge<'p>(
        &'p self,
        part: Part<'p>,
        document: impl Fn() -> Value,
        finish: impl FnOnce(PendingVerdict<'p>) -> Verdict,
    ) -> Result<Verdict, String> {
        let judged = catch_unwind(AssertUnwindSafe(|| {
            let Part { suite, case, whole, trace, earlier } = part;
            let evidence = Evidence {
                case,
                trace,
                earlier,
                mode: self.agent(suite).mode(whole),
                tokens: &self.plan.tokens,
                registry: self.plan.registry.as_ref(),
                tokenizer: self.plan.tokenizer,
            };
            let mut pending = PendingVerdict::start(evidence, self.plan.strictness);
            if let Some(first) = pending.next_eval() {
                // Eval functions have their own time limit; they count neither as latency nor towards the timeout.
                let functions = self.plan.functions.as_deref();
                let document = document();
                let case_value = Some(whole.to_value());
                let mut next = Some(first);
                while let Some(mut call) = next {
                    call.context.case.clone_from(&case_value);
                    let judge = |functions: &dyn EvalFunctions| functions.judge(call.name, &document, &call.context);
                    let judgement = functions.map_or_else(no_functions, judge);
                    pending.record_eval(call, judgement);
                    next = pending.next_eval();
                }
            }
            finish(pending)
        }));
        judged.map_err(|panic| panic_message(panic.as_ref()))
    }
}

/// Returns the judgement of a run without eval functions: an error, so that the case does not pass.
fn no_functions() -> Judgement {
    Judgement::not_run(EvalError::new(ErrorKind::Validation, "this run has no eval functions"))
}
