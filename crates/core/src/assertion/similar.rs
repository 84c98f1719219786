//! Assertions on the similarity of the response to other texts.

use std::ops::ControlFlow;

use super::response::resolve;
use super::tally::{Check, Tally};
use super::{Evidence, Field};
use karat_cases::SimilarResponse;
use karat_json::text::quoted_list;

/// Tolerates rounding, so that a similarity of exactly the minimum holds.
const ROUNDING: f64 = 1e-9;

pub(super) fn response_similar(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    for (index, expected) in evidence.case.expect.response_similar.iter().flatten().enumerate() {
        let check = check_similarity(expected, evidence, tally);
        tally.record_item(Field::ResponseSimilar, index, check)?;
    }
    ControlFlow::Continue(())
}

fn check_similarity(expected: &SimilarResponse, evidence: Evidence<'_>, tally: &mut Tally) -> Check {
    let SimilarResponse { to, method, at_least } = expected;
    // All texts are resolved, so that every token without a value is reported.
    let texts: Vec<Option<String>> = to.texts().iter().map(|text| resolve(text, evidence, tally)).collect();
    // The text of an unresolved token could be the most similar one.
    let Some(texts) = texts.into_iter().collect::<Option<Vec<String>>>() else {
        return Check::Skipped;
    };
    let mut best = 0.0_f64;
    for text in &texts {
        match method.compare(&evidence.trace.response, text) {
            Ok(similarity) => best = best.max(similarity),
            Err(error) => return Check::Failed(error.to_string()),
        }
    }
    Check::from_bool(best + ROUNDING >= *at_least, || {
        let texts = match texts.as_slice() {
            [only] => format!("'{only}'"),
            several => format!("one of {}", quoted_list(several)),
        };
        // Rounded down, so that the text never shows a similarity that is enough.
        let shown = (best * 1e4).floor() / 1e4;
        format!("expected a {} similarity of at least {at_least} but got {shown} to {texts}", method.name())
    })
}
