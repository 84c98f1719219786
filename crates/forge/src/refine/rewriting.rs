//! The asking of a model.

use karat_core::chat::ChatModel;
use karat_core::port::{AgentError, AgentErrorCause, Unwatched};
use karat_core::rubric::total_usage;
use karat_core::trace::Usage;
use karat_evals::agreement::RefusedCode;
use karat_json::text::shorten;

use super::answer;
use super::prompt::{Returned, Rewriting};

/// How often a model is asked to mend what does not hold.
const MOST_CORRECTIONS: usize = 1;

/// How much of what it said a model is told again.
const LONGEST_PROBLEM: usize = 2000;

/// Code that a model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    pub code: String,
    /// What the model says of it.
    pub why: String,
}

/// What came of asking a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rewritten {
    /// What holds, each once, at most as many as were wanted.
    pub candidates: Vec<Proposed>,
    /// What did not hold, and was not mended.
    pub refused: Vec<RefusedCode>,
    /// What was wrong with the last answer as a whole.
    pub problem: Option<String>,
    pub usage: Option<Usage>,
}

/// Asks a model for candidates. `check` says what is wrong with code; what does not hold goes back once.
pub async fn rewrite(
    model: &dyn ChatModel,
    rewriting: Rewriting<'_>,
    check: &(dyn Fn(&str) -> Result<(), Vec<String>> + Sync),
) -> Result<Rewritten, AgentError> {
    let mut rewritten = Rewritten::default();
    let mut usages = Vec::new();
    let mut returned: Vec<Returned> = Vec::new();
    for correction in 0..=MOST_CORRECTIONS {
        let open = rewriting.wanted.saturating_sub(rewritten.candidates.len());
        let question = Rewriting { wanted: open, ..rewriting };
        let prompt = question.question(rewritten.problem.as_deref(), &returned);
        match model.complete(&prompt, &Unwatched).await {
            Ok(reply) => {
                usages.push(reply.usage);
                match answer::read(&reply.value) {
                    Ok(proposed) => {
                        rewritten.problem = None;
                        returned = rewritten.take(proposed, &rewriting, check);
                    }
                    Err(why) => rewritten.problem = Some(said(&why, &reply.value.to_string())),
                }
            }
            Err(AgentError { message, cause: AgentErrorCause::Unusable(reply), .. }) => {
                usages.push(reply.usage.clone());
                rewritten.problem = Some(said(&message, &reply.text));
            }
            Err(error) if correction == 0 => return Err(error),
            // What holds already is not lost because the model is gone.
            Err(error) => {
                rewritten.problem = Some(error.message);
                break;
            }
        }
        if rewritten.candidates.len() >= rewriting.wanted || returned.is_empty() && rewritten.problem.is_none() {
            break;
        }
    }
    rewritten.refused = returned.into_iter().map(|Returned { code, reasons }| RefusedCode { code, reasons }).collect();
    rewritten.usage = total_usage(usages.iter().map(Option::as_ref));
    Ok(rewritten)
}

impl Rewritten {
    /// Keeps what holds, and returns the rest with the reasons.
    fn take(
        &mut self,
        proposed: Vec<Proposed>,
        rewriting: &Rewriting<'_>,
        check: &(dyn Fn(&str) -> Result<(), Vec<String>> + Sync),
    ) -> Vec<Returned> {
        let mut returned = Vec::new();
        for one in proposed {
            let is_known = self.candidates.iter().any(|known| known.code.trim() == one.code.trim())
                || rewriting.tried.iter().any(|tried| tried.code.trim() == one.code.trim());
            let checked = if one.code.trim() == rewriting.code.trim() {
                Err(vec!["it is the code of today".to_owned()])
            } else if is_known {
                Err(vec!["it is the code of another candidate".to_owned()])
            } else {
                check(&one.code)
            };
            match checked {
                Ok(()) if self.candidates.len() < rewriting.wanted => self.candidates.push(one),
                Ok(()) => {}
                Err(reasons) => returned.push(Returned { code: one.code, reasons }),
            }
        }
        returned
    }
}

fn said(why: &str, text: &str) -> String {
    let whole = if text.is_empty() || why.contains(text) { why.to_owned() } else { format!("{why}: {text}") };
    shorten(&whole, LONGEST_PROBLEM).into_owned()
}
