//! A model that drafts.
//!
//! Its answer is examined like any other draft. Cases that break a rule go back to it with the reasons, at most twice;
//! the others stay as they are. A person sees the rest with its findings.

mod answer;
mod batch;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use karat_core::case::Case;
use karat_core::chat::{ChatModel, ChatPrompt};
use karat_core::port::{AgentError, AgentErrorCause, Pending, Unwatched};
use karat_core::rubric::total_usage;
use karat_core::trace::Usage;
use serde_json::Value;

use crate::{Brief, Draft, DraftError, DraftFinding, Drafter, Request, Slot, examine};

use self::batch::Batch;

/// How often a model is asked to correct its cases.
const MAX_CORRECTIONS: usize = 2;

/// Examines a draft, by itself and beside other cases.
type Examine = fn(&Brief, &Slot, &Value, &[Case]) -> Vec<DraftFinding>;

/// Fills slots by asking a model.
pub struct ModelDrafter {
    model: Arc<dyn ChatModel>,
    examine: Examine,
    /// What each answer used.
    usages: Mutex<Vec<Option<Usage>>>,
}

impl ModelDrafter {
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        Self { model, examine, usages: Mutex::default() }
    }

    /// Returns how many answers there were so far.
    pub fn answers(&self) -> usize {
        self.usages.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    async fn fill(&self, request: Request<'_>) -> Result<Vec<Draft>, DraftError> {
        let mut batch = Batch::new(request, self.model.identity(), self.examine);
        for correction in 0..=MAX_CORRECTIONS {
            let open = batch.open();
            if open.is_empty() {
                break;
            }
            let prompt = batch.question(&open).prompt();
            match self.ask(&prompt).await {
                Ok(value) => batch.take(&open, &value, &prompt.schema),
                Err(AgentError { message, cause: AgentErrorCause::Unusable(reply), .. }) => {
                    batch.refuse(&message, &reply.text);
                }
                // Nothing was drafted yet that could be lost.
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
        let replied = self.model.complete(prompt, &Unwatched).await;
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

    fn understands_words(&self) -> bool {
        true
    }

    fn draft<'a>(&'a self, request: Request<'a>) -> Pending<'a, Result<Vec<Draft>, DraftError>> {
        Box::pin(self.fill(request))
    }
}
