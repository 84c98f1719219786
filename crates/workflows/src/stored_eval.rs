//! Finds evals and versions in the store.

use karat_evals::port::EvalStore;
use karat_evals::version::{EvalSummary, EvalVersion};
use karat_json::nearest;

use crate::error::Error;
use crate::hint::Hint;

/// Maximum number of names in a hint.
const MAX_LISTED_NAMES: usize = 10;

/// Finds an eval by name, with or without the prefix `eval_`.
pub async fn find_eval(store: &impl EvalStore, name: &str) -> Result<EvalSummary, Error> {
    let evals = store.evals().await?;
    select_eval(evals, name)
}

/// Selects an eval by name, with or without the prefix `eval_`.
pub fn select_eval(mut evals: Vec<EvalSummary>, name: &str) -> Result<EvalSummary, Error> {
    let eval_id = if name.starts_with("eval_") { name.to_owned() } else { format!("eval_{name}") };
    if let Some(index) = evals.iter().position(|eval| eval.eval_id == eval_id) {
        return Ok(evals.swap_remove(index));
    }
    let names: Vec<&str> = evals.iter().map(|eval| eval.eval_id.as_str()).collect();
    let error = Error::not_found(format!("eval '{eval_id}' not found in the store"));
    Err(match nearest(&eval_id, &names) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None if names.is_empty() => error.hint(Hint::AddEval { file: None }),
        None if names.len() > MAX_LISTED_NAMES => {
            let (listed, rest) = names.split_at(MAX_LISTED_NAMES);
            error.hint(format!("known evals: {} and {} more", listed.join(", "), rest.len()))
        }
        None => error.hint(format!("known evals: {}", names.join(", "))),
    })
}

/// Returns an eval's versions, oldest first.
pub async fn versions_of(store: &impl EvalStore, eval: &EvalSummary) -> Result<Vec<EvalVersion>, Error> {
    store.versions(&eval.eval_id).await.map_err(Error::from)
}

/// Selects a version; the newest by default. `versions` must not be empty.
pub fn select_version(versions: &[EvalVersion], number: Option<u64>) -> Result<EvalVersion, Error> {
    let version = match number {
        Some(number) => versions.iter().find(|version| version.version == number),
        None => versions.last(),
    };
    version.cloned().ok_or_else(|| {
        let name = versions.first().map(|version| version.eval_id.as_str()).unwrap_or_default();
        let newest = versions.last().map_or(0, |version| version.version);
        let error =
            Error::not_found(format!("version {} of {name} not found in the store", number.unwrap_or_default()));
        error.hint(if newest == 1 {
            "the only version is 1".to_owned()
        } else {
            format!("the versions are 1 to {newest}")
        })
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rstest::rstest;

    use super::*;

    fn summary(name: &str) -> EvalSummary {
        EvalSummary {
            eval_id: name.to_owned(),
            newest_version: 1,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            passed: 0,
            failed: 0,
            not_applicable: 0,
            errored: 0,
        }
    }

    #[rstest]
    #[case("tone", Ok("eval_tone"))]
    #[case("eval_tone", Ok("eval_tone"))]
    #[case("tones", Err("did you mean 'eval_tone'?"))]
    #[case("unrelated", Err("known evals: eval_length, eval_tone"))]
    fn selects_an_eval_by_name(#[case] name: &str, #[case] expected: Result<&str, &str>) {
        let selected = select_eval(vec![summary("eval_length"), summary("eval_tone")], name);
        match (selected, expected) {
            (Ok(eval), Ok(name)) => assert_eq!(eval.eval_id, name),
            (Err(error), Err(hint)) => assert_eq!(error.hints, [Hint::from(hint)]),
            (selected, _) => panic!("{selected:?}"),
        }
    }

    #[test]
    fn suggests_adding_an_eval_to_an_empty_store() {
        assert_eq!(select_eval(Vec::new(), "tone").expect_err("no evals").hints, [Hint::AddEval { file: None }]);
    }
}
