//! Measures the agreement of verdicts with ratings, and compares two versions of an eval.

use karat_evals::agreement::{
    AgreementCounts, AgreementDay, AgreementReport, EvalAgreement, RaterAgreement, Thresholds, Trend, VersionAgreement,
    VersionComparison,
};
use karat_evals::port::{ComparisonStore, EvalStore, FeedbackStore};
use karat_evals::version::{EvalSummary, EvalVersion};
use karat_store::Store;

use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::stored_eval::{find_eval, select_version, versions_of};
use crate::trace_filter::TraceOrigin;

#[derive(Debug, Clone)]
pub struct MeasureRequest {
    /// An eval, by name with or without `eval_`; default: all.
    pub eval: Option<String>,
    /// Default: the newest.
    pub version: Option<u64>,
    /// The traces whose verdicts and ratings are compared.
    pub origin: TraceOrigin,
}

/// Measures agreement and applies the thresholds of the settings.
pub async fn measure(request: MeasureRequest, context: &Context<'_>) -> Result<AgreementReport, Error> {
    let thresholds = context.settings.agreement;
    context
        .read_store(async |store| {
            let evals = match &request.eval {
                Some(name) => vec![find_eval(store, name).await?],
                None => store.evals().await?,
            };
            if evals.is_empty() {
                let error = Error::nothing_selected("no evals in the store");
                return Err(error.hint(Hint::AddEval { file: None }));
            }
            let mut measured = Vec::with_capacity(evals.len());
            for eval in evals {
                measured.extend(measure_eval(store, &eval, &request, &thresholds).await?);
            }
            let patterns = store.rating_patterns().await?;
            Ok(AgreementReport::new(measured, RaterAgreement::of(&patterns), thresholds))
        })
        .await
}

async fn measure_eval(
    store: &Store,
    eval: &EvalSummary,
    request: &MeasureRequest,
    thresholds: &Thresholds,
) -> Result<Option<EvalAgreement>, Error> {
    let versions = versions_of(store, eval).await?;
    let selected = select_version(&versions, request.version)?.version;
    let mut lines = Vec::with_capacity(versions.len());
    let mut selected_days = Vec::new();
    for version in &versions {
        let (counts, days) = counts_by_origin(store, &eval.eval_id, version.version, request.origin).await?;
        lines.push(VersionAgreement::new(version.version, version.created_at, counts));
        if version.version == selected {
            selected_days = days;
        }
    }
    Ok(EvalAgreement::new(&eval.eval_id, selected, lines, Trend::of(&selected_days), thresholds))
}

/// Returns the counts of a version for traces of this origin, in total and by day.
async fn counts_by_origin(
    store: &Store,
    eval_id: &str,
    version: u64,
    origin: TraceOrigin,
) -> Result<(AgreementCounts, Vec<AgreementDay>), Error> {
    let all = store.agreement(eval_id, version).await?;
    let mut days = store.agreement_by_day(eval_id, version).await?;
    if origin == TraceOrigin::All {
        return Ok((all, days));
    }
    let run_days = store.agreement_of_runs_by_day(eval_id, version).await?;
    let mut run_counts = AgreementCounts::default();
    for day in &run_days {
        run_counts.add(&day.counts);
    }
    if origin == TraceOrigin::Runs {
        return Ok((run_counts, run_days));
    }
    for day in &mut days {
        if let Some(part) = run_days.iter().find(|part| part.day == day.day) {
            day.counts = day.counts.without(&part.counts);
        }
    }
    Ok((all.without(&run_counts), days))
}

#[derive(Debug, Clone)]
pub struct CompareRequest {
    /// The eval's name, with or without `eval_`.
    pub eval: String,
    /// Two versions, one to compare with the newest, or none for the newest two.
    pub versions: Vec<u64>,
}

impl CompareRequest {
    /// Parses `NAME`, `NAME 1 2`, `NAME@1 NAME@2`, and combinations of these.
    pub fn parse(words: &[String]) -> Result<Self, Error> {
        let mut name: Option<&str> = None;
        let mut versions = Vec::new();
        for word in words {
            let (before, after) = match word.split_once('@') {
                Some((before, after)) => (before, Some(after)),
                // A function name cannot be a number.
                None if parse_version(word).is_some() => ("", Some(word.as_str())),
                None => (word.as_str(), None),
            };
            if !before.is_empty() {
                match name {
                    Some(name) if strip_eval_prefix(name) != strip_eval_prefix(before) => {
                        let message = format!("cannot compare different evals: '{name}' and '{before}'");
                        return Err(Error::invalid(message).hint(format!("for example: karat eval compare {name} 1 2")));
                    }
                    _ => name = Some(before),
                }
            }
            if let Some(after) = after {
                let number = parse_version(after).ok_or_else(|| {
                    Error::invalid(format!("'{after}' is not a valid version")).hint("versions are numbered from 1")
                })?;
                versions.push(number);
            }
        }
        let Some(name) = name else {
            return Err(Error::invalid("missing eval name").hint("for example: karat eval compare NAME 1 2"));
        };
        Ok(Self { eval: name.to_owned(), versions })
    }
}

/// Parses `3` or `v3`.
fn parse_version(word: &str) -> Option<u64> {
    let digits = word.strip_prefix('v').unwrap_or(word);
    digits.parse().ok().filter(|version| *version > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn strip_eval_prefix(name: &str) -> &str {
    name.strip_prefix("eval_").unwrap_or(name)
}

pub async fn compare(request: CompareRequest, context: &Context<'_>) -> Result<VersionComparison, Error> {
    context
        .read_store(async |store| {
            let eval = find_eval(store, &request.eval).await?;
            let versions = versions_of(store, &eval).await?;
            let (before, now) = versions_to_compare(&request.versions, &versions)?;
            let pairs = store.verdict_pairs(&eval.eval_id, before, now).await?;
            Ok(VersionComparison::of(&eval.eval_id, before, now, pairs))
        })
        .await
}

fn versions_to_compare(requested: &[u64], versions: &[EvalVersion]) -> Result<(u64, u64), Error> {
    for number in requested {
        select_version(versions, Some(*number))?;
    }
    let newest = select_version(versions, None)?;
    let (before, now) = match (requested, versions) {
        ([before, now], _) => (*before, *now),
        ([before], _) => (*before, newest.version),
        ([], [.., second, newest]) => (second.version, newest.version),
        ([], _) => {
            return Err(Error::invalid(format!("{} has only one version", newest.eval_id)).hint(Hint::AddEvalVersion));
        }
        _ => return Err(Error::invalid("cannot compare more than two versions")),
    };
    if before == now {
        return Err(Error::invalid(format!("cannot compare version {before} with itself")));
    }
    Ok((before, now))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[], 3, Ok((2, 3)))]
    #[case(&[1], 3, Ok((1, 3)))]
    #[case(&[3, 1], 3, Ok((3, 1)))]
    #[case(&[3], 3, Err("cannot compare version 3 with itself"))]
    #[case(&[], 1, Err("eval_tone has only one version"))]
    #[case(&[1, 4], 3, Err("version 4 of eval_tone not found in the store"))]
    #[case(&[1, 2, 3], 3, Err("cannot compare more than two versions"))]
    fn selects_two_versions(
        #[case] requested: &[u64],
        #[case] newest: u64,
        #[case] expected: Result<(u64, u64), &str>,
    ) {
        let versions: Vec<EvalVersion> = (1..=newest)
            .map(|version| EvalVersion {
                eval_id: "eval_tone".to_owned(),
                version,
                code: String::new(),
                options: karat_core::judgement::EvalOptions::default(),
                code_hash: String::new(),
                guest_hash: String::new(),
                note: None,
                created_at: Timestamp::UNIX_EPOCH,
            })
            .collect();
        let selected = versions_to_compare(requested, &versions);
        assert_eq!(selected.as_ref().map_err(|error| error.message.as_str()), expected.as_ref().map_err(|text| *text));
    }

    fn parse(words: &[&str]) -> Result<CompareRequest, Error> {
        CompareRequest::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[rstest]
    #[case(&["tone"], &[])]
    #[case(&["tone", "1", "2"], &[1, 2])]
    #[case(&["tone", "v3", "v2"], &[3, 2])]
    #[case(&["tone@1", "tone@2"], &[1, 2])]
    #[case(&["tone@1", "eval_tone@2"], &[1, 2])]
    #[case(&["tone@1", "@2"], &[1, 2])]
    #[case(&["1", "2", "tone"], &[1, 2])]
    #[case(&["tone@4"], &[4])]
    fn parses_versions(#[case] words: &[&str], #[case] expected: &[u64]) {
        let request = parse(words).expect("versions");
        assert_eq!((strip_eval_prefix(&request.eval), request.versions.as_slice()), ("tone", expected));
    }

    #[rstest]
    #[case(&["1", "2"], "missing eval name")]
    #[case(&["@1", "@2"], "missing eval name")]
    #[case(&["tone@1", "length@2"], "cannot compare different evals: 'tone' and 'length'")]
    #[case(&["tone@0"], "'0' is not a valid version")]
    #[case(&["tone@+1"], "'+1' is not a valid version")]
    fn rejects_invalid_versions(#[case] words: &[&str], #[case] expected: &str) {
        assert_eq!(parse(words).expect_err("no versions").message, expected);
    }
}
