//! Which eval of the store a person means.

use karat_evals::port::EvalStore;
use karat_evals::version::{EvalSummary, EvalVersion};
use karat_json::nearest;

use crate::error::Error;
use crate::hint::Hint;

/// How many names a hint lists.
const MAX_NAMED: usize = 10;

/// Finds the eval of this name, with or without its `eval_`.
pub async fn find_eval(store: &impl EvalStore, name: &str) -> Result<EvalSummary, Error> {
    let evals = store.evals().await?;
    named(evals, name)
}

/// Takes the eval of this name out of all.
pub fn named(mut evals: Vec<EvalSummary>, name: &str) -> Result<EvalSummary, Error> {
    let wanted = if name.starts_with("eval_") { name.to_owned() } else { format!("eval_{name}") };
    if let Some(place) = evals.iter().position(|eval| eval.eval_id == wanted) {
        return Ok(evals.swap_remove(place));
    }
    let names: Vec<&str> = evals.iter().map(|eval| eval.eval_id.as_str()).collect();
    let error = Error::not_found(format!("there is no eval '{wanted}' in the store"));
    Err(match nearest(&wanted, &names) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None if names.is_empty() => error.hint(Hint::AddEval { file: None }),
        None if names.len() > MAX_NAMED => {
            error.hint(format!("there are {} and {} more", names[..MAX_NAMED].join(", "), names.len() - MAX_NAMED))
        }
        None => error.hint(format!("there are: {}", names.join(", "))),
    })
}

/// Returns an eval's versions, the oldest first.
pub async fn versions_of(store: &impl EvalStore, eval: &EvalSummary) -> Result<Vec<EvalVersion>, Error> {
    store.versions(&eval.eval_id).await.map_err(Error::from)
}

/// Takes the version that is meant out of all, which are not empty: the newest where nobody says.
pub fn version_among(versions: &[EvalVersion], wanted: Option<u64>) -> Result<EvalVersion, Error> {
    let found = match wanted {
        Some(wanted) => versions.iter().find(|version| version.version == wanted),
        None => versions.last(),
    };
    found.cloned().ok_or_else(|| {
        let name = versions.first().map(|version| version.eval_id.as_str()).unwrap_or_default();
        let newest = versions.last().map_or(0, |version| version.version);
        let error =
            Error::not_found(format!("there is no version {} of {name} in the store", wanted.unwrap_or_default()));
        error.hint(if newest == 1 { "there is version 1".to_owned() } else { format!("there are 1 to {newest}") })
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
            errored: 0,
        }
    }

    #[rstest]
    #[case("tone", Ok("eval_tone"))]
    #[case("eval_tone", Ok("eval_tone"))]
    #[case("tones", Err("did you mean 'eval_tone'?"))]
    #[case("quite_else", Err("there are: eval_length, eval_tone"))]
    fn an_eval_is_found_by_its_name(#[case] name: &str, #[case] expected: Result<&str, &str>) {
        let found = named(vec![summary("eval_length"), summary("eval_tone")], name);
        match (found, expected) {
            (Ok(eval), Ok(name)) => assert_eq!(eval.eval_id, name),
            (Err(error), Err(hint)) => assert_eq!(error.hints, [Hint::from(hint)]),
            (found, _) => panic!("{found:?}"),
        }
    }

    #[test]
    fn an_empty_store_says_how_to_fill_it() {
        assert_eq!(named(Vec::new(), "tone").expect_err("there is none").hints, [Hint::AddEval { file: None }]);
    }
}
