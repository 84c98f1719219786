//! `karat eval compare`: compares the verdicts of two versions.

use karat_core::exit::ExitStatus;
use karat_evals::agreement::{Direction, VersionComparison, VersionFigures};
use karat_report::version_comparison_text;
use karat_workflows::agreement::{CompareRequest, compare};

use crate::args::{EvalCompareArgs, OutputFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalCompareArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let request = parse_versions(&args.versions)?;
    let context = surface.store_context(&args.store)?;
    let comparison = surface.run(compare(request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&comparison)?,
        OutputFormat::Human => {
            let limit = if args.limit == 0 { usize::MAX } else { args.limit };
            printer.print(&version_comparison_text(&comparison, limit, printer.console()))?;
        }
    }
    if comparison.common_traces == 0 && args.format == OutputFormat::Human {
        let version = |figures: VersionFigures| figures.version.unwrap_or_default();
        let (name, before, now) = (&comparison.eval_id, version(comparison.before), version(comparison.now));
        printer.note(&format!(
            "no trace was judged by both versions {before} and {now}; run 'karat eval run {name} --stored' to judge \
             with the newest"
        ));
    }
    Ok(status(&comparison))
}

fn status(comparison: &VersionComparison) -> ExitStatus {
    match comparison.direction {
        Direction::Worse => ExitStatus::Failed,
        _ if comparison.common_traces == 0 => ExitStatus::NothingSelected,
        Direction::Better | Direction::Unclear => ExitStatus::Success,
    }
}

/// Parses `NAME`, `NAME 1 2`, `NAME@1 NAME@2`, and combinations of these.
fn parse_versions(words: &[String]) -> Result<CompareRequest, Failure> {
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
                Some(name) if without_prefix(name) != without_prefix(before) => {
                    let message = format!("cannot compare different evals: '{name}' and '{before}'");
                    return Err(Failure::invalid(message).hint(format!("for example: karat eval compare {name} 1 2")));
                }
                _ => name = Some(before),
            }
        }
        if let Some(after) = after {
            let number = parse_version(after).ok_or_else(|| {
                Failure::invalid(format!("'{after}' is not a valid version")).hint("versions are numbered from 1")
            })?;
            versions.push(number);
        }
    }
    let Some(name) = name else {
        return Err(Failure::invalid("missing eval name").hint("for example: karat eval compare NAME 1 2"));
    };
    Ok(CompareRequest { eval: name.to_owned(), versions })
}

/// Parses `3` or `v3`.
fn parse_version(word: &str) -> Option<u64> {
    let digits = word.strip_prefix('v').unwrap_or(word);
    digits.parse().ok().filter(|version| *version > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn without_prefix(name: &str) -> &str {
    name.strip_prefix("eval_").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn parse(words: &[&str]) -> Result<CompareRequest, Failure> {
        parse_versions(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
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
        assert_eq!((without_prefix(&request.eval), request.versions.as_slice()), ("tone", expected));
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
