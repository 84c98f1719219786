//! Takes case after case, asks the agent, judges the answer.

use std::any::Any;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::FutureExt;
use karat_core::assertion::{Evidence, judge};
use karat_core::case::Case;
use karat_core::port::Agent;
use karat_core::result::CaseResult;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use crate::case::{CaseEnd, case_result};
use crate::plan::Plan;

/// What all workers see.
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) agent: Arc<dyn Agent>,
    /// Every case as (suite, index), in order.
    pub(crate) units: Vec<(u32, u32)>,
    pub(crate) next: AtomicUsize,
    /// Set when no further case is to begin.
    pub(crate) stop: AtomicBool,
}

/// A case that ended.
pub(crate) struct Finished {
    pub(crate) suite: usize,
    pub(crate) index: usize,
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    pub(crate) result: CaseResult,
}

pub(crate) async fn work(shared: Arc<Shared>, out: mpsc::UnboundedSender<Finished>, mut cancel: watch::Receiver<bool>) {
    let cancelled = async {
        // Whoever let go of the sender will not cancel any more.
        if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
            pending::<()>().await;
        }
    };
    tokio::pin!(cancelled);
    while !shared.stop.load(Ordering::Relaxed) {
        let Some(&(suite, index)) = shared.units.get(shared.next.fetch_add(1, Ordering::Relaxed)) else {
            return;
        };
        let (suite, index) = (suite as usize, index as usize);
        let case = &shared.plan.suites[suite].file.cases[index];
        let started = Instant::now();
        // Cancelled while asking: the case has not ended, so there is nothing to report.
        let result = tokio::select! {
            biased;
            () = &mut cancelled => return,
            result = run_case(&shared, case) => result,
        };
        // Here and not by the dispatcher, so that no case begins in the meantime.
        if shared.plan.fail_fast && !result.passed {
            shared.stop.store(true, Ordering::Relaxed);
        }
        if out.send(Finished { suite, index, started, ended: Instant::now(), result }).is_err() {
            return;
        }
    }
}

async fn run_case(shared: &Shared, case: &Case) -> CaseResult {
    let started = Instant::now();
    // The call itself may panic too, not only what it returns.
    let answer = AssertUnwindSafe(async { shared.agent.answer(case).await }).catch_unwind();
    let end = match timeout(shared.plan.timeout, answer).await {
        Err(_) => CaseEnd::TimedOut(started.elapsed()),
        Ok(Err(panic)) => CaseEnd::Errored(internal(panic.as_ref()), started.elapsed()),
        Ok(Ok(Err(error))) => CaseEnd::Errored(error.message, error.elapsed),
        Ok(Ok(Ok(trace))) => {
            let verdict = catch_unwind(AssertUnwindSafe(|| {
                let evidence = Evidence {
                    case,
                    trace: &trace,
                    mode: shared.agent.mode(case),
                    tokens: &shared.plan.tokens,
                    registry: shared.plan.registry.as_ref(),
                    tokenizer: shared.plan.tokenizer,
                };
                judge(evidence, shared.plan.strictness)
            }));
            match verdict {
                Ok(verdict) => CaseEnd::Judged(Box::new((trace, verdict))),
                Err(panic) => CaseEnd::Errored(internal(panic.as_ref()), started.elapsed()),
            }
        }
    };
    case_result(case, end, &shared.plan.redactor)
}

fn internal(panic: &(dyn Any + Send)) -> String {
    let what = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    format!("internal error, please report it: {what}")
}
