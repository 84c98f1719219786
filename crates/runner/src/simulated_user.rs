//! Runs a conversation whose user is played by a model.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use karat_cases::SimulatedUser;
use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::WaitGuard;
use karat_core::result::Cause;
use karat_core::rubric::total_usage;
use karat_core::simulated_user::{Fault, SimulatedUserDetails, SimulationEnd, find_fault};
use karat_core::trace::Usage;
use karat_core::user_prompt::{UserReply, read_reply, user_prompt};

use crate::case::CaseEnd;
use crate::conversation::{Progress, judge_conversation};
use crate::dialog::Dialog;
use crate::shared::{SharedState, Unit};
use crate::stopwatch::Stopwatch;
use crate::surroundings::Surroundings;
use crate::timeout::with_timeout;

/// Sends what the model says until it is done, then judges the whole conversation.
pub(crate) async fn run_simulated(
    shared: &Arc<SharedState>,
    unit: Unit,
    user: &SimulatedUser,
    dialog: &mut Dialog<'_>,
    surroundings: &mut Surroundings<'_>,
    watch: &Stopwatch,
) -> CaseEnd {
    let Some(model) = shared.plan.simulated_users.get(&user.model) else {
        return CaseEnd::internal("no model plays the simulated user".to_owned(), watch.elapsed());
    };
    let mut simulation = Simulation { shared, user, model: model.as_ref(), usages: Vec::new() };
    let mut progress = Progress::new(shared.plan.strictness);
    let (mut end, mut fault) = (SimulationEnd::MaxTurns, None);
    for _ in 0..user.max_turns() {
        // The time of the simulated user counts neither as latency nor towards the timeout.
        let wait = WaitGuard::begin(watch);
        let next = simulation.next_message(&progress).await;
        drop(wait);
        let message = match next {
            Next::Message(message) => message,
            Next::Done => {
                end = SimulationEnd::Done;
                break;
            }
            Next::Fault(found) => {
                end = SimulationEnd::Fault;
                progress.break_off(Cause::SimulatedUser, &format!("the simulated user {found}"));
                fault = Some(found);
                break;
            }
            Next::Failed(reason) => {
                end = SimulationEnd::NoMessage;
                progress.break_off(Cause::SimulatedUser, &format!("the simulated user gave no message: {reason}"));
                break;
            }
        };
        let answer = dialog.send(&message).await;
        progress = match progress.add_answer(shared, unit, &message, answer, false, watch).await {
            Ok(progress) => progress,
            Err(message) => return CaseEnd::internal(message, watch.elapsed()),
        };
        if progress.has_ended() {
            end = SimulationEnd::NoAnswer;
            break;
        }
    }
    progress.simulated_user = Some(SimulatedUserDetails {
        model: simulation.model.identity(),
        messages: progress.sent(),
        end,
        fault,
        usage: total_usage(simulation.usages.iter().map(Option::as_ref)),
    });
    judge_conversation(shared, unit, progress, dialog, surroundings, watch).await
}

/// What the simulated user does next.
enum Next {
    Message(String),
    Done,
    Fault(Fault),
    /// The model gave no message.
    Failed(String),
}

struct Simulation<'s> {
    shared: &'s SharedState,
    user: &'s SimulatedUser,
    model: &'s dyn ChatModel,
    /// Usage of each call, if known.
    usages: Vec<Option<Usage>>,
}

impl Simulation<'_> {
    async fn next_message(&mut self, progress: &Progress) -> Next {
        let prompt = user_prompt(self.user, progress.exchanges(), &self.shared.plan.redactor);
        let reply = self.ask(&prompt).await;
        // A failed call may have been billed, but its usage is unknown.
        self.usages.push(reply.as_ref().ok().and_then(|reply| reply.usage.clone()));
        match reply.and_then(|reply| read_reply(&reply.value)) {
            Err(reason) => Next::Failed(reason),
            // A user who says nothing at all asks nothing of the agent.
            Ok(UserReply::Done) if progress.exchanges().is_empty() => self.check(progress, String::new()),
            Ok(UserReply::Done) => Next::Done,
            Ok(UserReply::Message(message)) => self.check(progress, message),
        }
    }

    fn check(&self, progress: &Progress, message: String) -> Next {
        match find_fault(self.user, progress.exchanges(), &message) {
            Some(fault) => Next::Fault(fault),
            None => Next::Message(message),
        }
    }

    async fn ask(&self, prompt: &ChatPrompt) -> Result<ChatReply, String> {
        let watch = Stopwatch::start();
        let reply = with_timeout(self.shared.plan.timeout, &watch, || self.model.complete(prompt, &watch)).await;
        let reply = reply.unwrap_or_else(|abandoned| abandoned.notify(|error| self.model.on_abandoned(prompt, error)));
        reply.map_err(|error| {
            if error.ends_run() {
                self.shared.stop.store(true, Ordering::Relaxed);
            }
            error.message
        })
    }
}
