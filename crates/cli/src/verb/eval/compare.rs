//! `karat eval compare`: which verdicts changed between two versions, and whether for the better.

use karat_core::exit::ExitStatus;
use karat_evals::agreement::{Direction, VersionComparison, VersionFigures};
use karat_report::version_comparison_text;
use karat_workflows::agreement::{CompareRequest, compare};

use crate::args::{EvalCompareArgs, OutputFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalCompareArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let request = read_versions(&args.versions)?;
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
            "no trace was judged by versions {before} and {now}; 'karat eval run {name} --stored' judges with the newest"
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

/// Reads `NAME`, `NAME 1 2`, `NAME@1 NAME@2`, and mixtures of these.
fn read_versions(words: &[String]) -> Result<CompareRequest, Failure> {
    let mut name: Option<&str> = None;
    let mut versions = Vec::new();
    for word in words {
        let (before, after) = match word.split_once('@') {
            Some((before, after)) => (before, Some(after)),
            // A function name cannot be a number.
            None if version(word).is_some() => ("", Some(word.as_str())),
            None => (word.as_str(), None),
        };
        if !before.is_empty() {
            match name {
                Some(name) if plain(name) != plain(before) => {
                    let message = format!("two versions of one eval are compared, not '{name}' and '{before}'");
                    return Err(Failure::invalid(message).hint(format!("as in: karat eval compare {name} 1 2")));
                }
                _ => name = Some(before),
            }
        }
        if let Some(after) = after {
            let number = version(after).ok_or_else(|| {
                Failure::invalid(format!("'{after}' is not a version")).hint("versions are numbers from 1")
            })?;
            versions.push(number);
        }
    }
    let Some(name) = name else {
        return Err(Failure::invalid("the eval's name is missing").hint("as in: karat eval compare NAME 1 2"));
    };
    Ok(CompareRequest { eval: name.to_owned(), versions })
}

/// Reads a version as people write it.
fn version(word: &str) -> Option<u64> {
    let digits = word.strip_prefix('v').unwrap_or(word);
    digits.parse().ok().filter(|version| *version > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn plain(name: &str) -> &str {
    name.strip_prefix("eval_").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn read(words: &[&str]) -> Result<CompareRequest, Failure> {
        read_versions(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
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
    fn versions_are_said_in_many_ways(#[case] words: &[&str], #[case] expected: &[u64]) {
        let wanted = read(words).expect("versions");
        assert_eq!((plain(&wanted.eval), wanted.versions.as_slice()), ("tone", expected));
    }

    #[rstest]
    #[case(&["1", "2"], "the eval's name is missing")]
    #[case(&["@1", "@2"], "the eval's name is missing")]
    #[case(&["tone@1", "length@2"], "two versions of one eval are compared, not 'tone' and 'length'")]
    #[case(&["tone@0"], "'0' is not a version")]
    #[case(&["tone@+1"], "'+1' is not a version")]
    fn what_is_no_pair_of_versions_is_refused(#[case] words: &[&str], #[case] expected: &str) {
        assert_eq!(read(words).expect_err("no versions").message, expected);
    }
}
