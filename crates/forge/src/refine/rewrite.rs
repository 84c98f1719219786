//! Asks a model for candidates.

use karat_core::chat::ChatModel;
use karat_core::port::{AgentError, AgentErrorCause, IgnoreWaits};
use karat_core::rubric::total_usage;
use karat_core::trace::Usage;
use karat_evals::agreement::RefusedCode;
use karat_json::text::shorten;

use super::answer;
use super::prompt::{RejectedCode, RewriteRequest};

/// Maximum number of times that a model is asked to fix rejected code.
const MAX_CORRECTIONS: usize = 1;

/// Maximum length of a problem that is sent back to the model, in characters.
const MAX_PROBLEM: usize = 2000;

/// Code that a model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedCode {
    pub code: String,
    /// The model's explanation.
    pub explanation: String,
}

/// The result of asking a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rewrite {
    /// Valid and distinct candidates, up to the number wanted.
    pub candidates: Vec<ProposedCode>,
    /// Code that is still invalid after corrections.
    pub refused: Vec<RefusedCode>,
    /// The problem with the last answer as a whole.
    pub problem: Option<String>,
    pub usage: Option<Usage>,
}

/// Asks a model for candidates. `check` returns the problems of code; rejected code goes back to the model.
pub async fn rewrite(
    model: &dyn ChatModel,
    request: RewriteRequest<'_>,
    check: &(dyn Fn(&str) -> Result<(), Vec<String>> + Sync),
) -> Result<Rewrite, AgentError> {
    let mut rewrite = Rewrite::default();
    let mut usages = Vec::new();
    let mut rejected: Vec<RejectedCode> = Vec::new();
    for correction in 0..=MAX_CORRECTIONS {
        let open = request.wanted.saturating_sub(rewrite.candidates.len());
        let question = RewriteRequest { wanted: open, ..request };
        let prompt = question.question(rewrite.problem.as_deref(), &rejected);
        match model.complete(&prompt, &IgnoreWaits).await {
            Ok(reply) => {
                usages.push(reply.usage);
                match answer::parse(&reply.value) {
                    Ok(proposed) => {
                        rewrite.problem = None;
                        rejected = rewrite.add_candidates(proposed, &request, check);
                    }
                    Err(reason) => rewrite.problem = Some(problem_text(&reason, &reply.value.to_string())),
                }
            }
            Err(AgentError { message, cause: AgentErrorCause::Unusable(reply), .. }) => {
                usages.push(reply.usage.clone());
                rewrite.problem = Some(problem_text(&message, &reply.text));
            }
            Err(error) if correction == 0 => return Err(error),
            // Keep the candidates so far.
            Err(error) => {
                rewrite.problem = Some(error.message);
                break;
            }
        }
        if rewrite.candidates.len() >= request.wanted || rejected.is_empty() && rewrite.problem.is_none() {
            break;
        }
    }
    rewrite.refused =
        rejected.into_iter().map(|RejectedCode { code, reasons }| RefusedCode { code, reasons }).collect();
    rewrite.usage = total_usage(usages.iter().map(Option::as_ref));
    Ok(rewrite)
}

impl Rewrite {
    /// Stores valid candidates and returns the rejected ones with the reasons.
    fn add_candidates(
        &mut self,
        proposed: Vec<ProposedCode>,
        request: &RewriteRequest<'_>,
        check: &(dyn Fn(&str) -> Result<(), Vec<String>> + Sync),
    ) -> Vec<RejectedCode> {
        let mut rejected = Vec::new();
        for proposal in proposed {
            let is_known = self.candidates.iter().any(|known| known.code.trim() == proposal.code.trim())
                || request.tried.iter().any(|tried| tried.code.trim() == proposal.code.trim());
            let checked = if proposal.code.trim() == request.code.trim() {
                Err(vec!["same as the current code".to_owned()])
            } else if is_known {
                Err(vec!["same as another candidate".to_owned()])
            } else {
                check(&proposal.code)
            };
            match checked {
                Ok(()) if self.candidates.len() < request.wanted => self.candidates.push(proposal),
                Ok(()) => {}
                Err(reasons) => rejected.push(RejectedCode { code: proposal.code, reasons }),
            }
        }
        rejected
    }
}

fn problem_text(reason: &str, text: &str) -> String {
    let problem =
        if text.is_empty() || reason.contains(text) { reason.to_owned() } else { format!("{reason}: {text}") };
    shorten(&problem, MAX_PROBLEM).into_owned()
}
