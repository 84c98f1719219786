//! Drafts cases with a model.
//!
//! Cases that break a rule go back to the model with the reasons, up to [`MAX_CORRECTIONS`] times. Cases that still
//! break a rule are shown with their findings.

mod answer;
mod batch;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use karat_cases::Case;
use karat_core::chat::{ChatModel, ChatPrompt};
use karat_core::port::{AgentError, AgentErrorCause, BoxFuture, IgnoreWaits};
use karat_core::rubric::total_usage;
use karat_core::trace::Usage;
use serde_json::Value;

use crate::{Brief, Draft, DraftError, DraftFinding, Drafter, Request, Slot, check_draft};

use self::batch::Batch;

/// Maximum number of times that a model is asked to correct its cases.
const MAX_CORRECTIONS: usize = 2;

/// Checks a draft, by itself and against other cases.
type CheckDraft = fn(&Brief, &Slot, &Value, &[Case]) -> Vec<DraftFinding>;

/// Fills slots by asking a model.
pub struct ModelDrafter {
    model: Arc<dyn ChatModel>,
    check_draft: CheckDraft,
    /// The usage of each answer.
    usages: Mutex<Vec<Option<Usage>>>,
}

impl ModelDrafter {
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        Self { model, check_draft, usages: Mutex::default() }
    }

    /// Returns the number of answers so far.
    pub fn answers(&self) -> usize {
        self.usages.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    async fn fill(&self, request: Request<'_>) -> Result<Vec<Draft>, DraftError> {
        let mut batch = Batch::new(request, self.model.identity(), self.check_draft);
        for correction in 0..=MAX_CORRECTIONS {
            let open = batch.open();
            if open.is_empty() {
                break;
            }
            let prompt = batch.question(&open).prompt();
            match self.ask(&prompt).await {
                Ok(value) => batch.accept_answer(&open, &value, &prompt.schema),
                Err(AgentError { message, cause: AgentErrorCause::Unusable(reply), .. }) => {
                    batch.reject_answer(&message, &reply.text);
                }
                // Nothing has been drafted yet that could be lost.
                Err(error) if correction == 0 => {
                    return Err(DraftError { message: format!("{}: {}", self.model.identity(), error.message) });
                }
                Err(error) => {
                    batch.give_up(&error.message);
                    break;
                }
            }
        }
        Ok(batch.into_drafts())
    }

    async fn ask(&self, prompt: &ChatPrompt) -> Result<Value, AgentError> {
        let replied = self.model.complete(prompt, &IgnoreWaits).await;
        let usage = match &replied {
            Ok(reply) => Some(reply.usage.clone()),
            Err(error) => error.unusable_reply().map(|reply| reply.usage.clone()),
        };
        self.usages.lock().unwrap_or_else(PoisonError::into_inner).extend(usage);
        replied.map(|reply| reply.value)
    }
}

impl Drafter for ModelDrafter {
    fn name(&self) -> &'static str {
        "model"
    }

    fn model(&self) -> Option<String> {
        Some(self.model.identity())
    }

    fn usage(&self) -> Option<Usage> {
        let usages = self.usages.lock().unwrap_or_else(PoisonError::into_inner);
        total_usage(usages.iter().map(Option::as_ref))
    }

    fn accepts_instructions(&self) -> bool {
        true
    }

    fn draft<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Vec<Draft>, DraftError>> {
        Box::pin(self.fill(request))
    }
}
