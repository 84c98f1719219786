//! `karat eval compare`: which verdicts changed between two versions, and whether for the better.

use karat_core::agreement::{Direction, VersionComparison, VersionFigures};
use karat_core::exit::ExitStatus;
use karat_core::port::ComparisonStore;
use karat_core::stored::EvalVersion;
use karat_report::version_comparison_text;
use karat_store::Store;

use crate::args::{EvalCompareArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};
use karat_workflows::stored_eval::{find_eval, version_among, versions_of};

/// The eval that is meant, and its versions as far as they are said.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    name: String,
    versions: Vec<u64>,
}

pub(super) fn run(args: &EvalCompareArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let wanted = Wanted::read(&args.versions)?;
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let comparison = with_store(open_store_to_read(&settings), async |store| compare(&wanted, store).await);
    let comparison = runtime_that_ends()?.block_on(comparison)?;
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

async fn compare(wanted: &Wanted, store: &Store) -> Result<VersionComparison, Failure> {
    let eval = find_eval(store, &wanted.name).await?;
    let versions = versions_of(store, &eval).await?;
    let (before, now) = wanted.two_of(&versions)?;
    let pairs = store.verdict_pairs(&eval.eval_id, before, now).await?;
    Ok(VersionComparison::of(&eval.eval_id, before, now, pairs))
}

impl Wanted {
    /// Reads `NAME`, `NAME 1 2`, `NAME@1 NAME@2`, and what is between these.
    fn read(words: &[String]) -> Result<Self, Failure> {
        let mut name: Option<&str> = None;
        let mut versions = Vec::new();
        for word in words {
            let (before, after) = match word.split_once('@') {
                Some((before, after)) => (before, Some(after)),
                // A number is no name of a function.
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
                    Failure::invalid(format!("'{after}' is no version")).hint("versions are numbers from 1")
                })?;
                versions.push(number);
            }
        }
        let Some(name) = name else {
            return Err(Failure::invalid("the eval's name is missing").hint("as in: karat eval compare NAME 1 2"));
        };
        if versions.len() > 2 {
            return Err(Failure::invalid("two versions are compared, not three"));
        }
        Ok(Self { name: name.to_owned(), versions })
    }

    /// Returns the two versions that are meant.
    fn two_of(&self, versions: &[EvalVersion]) -> Result<(u64, u64), Failure> {
        for wanted in &self.versions {
            version_among(versions, Some(*wanted))?;
        }
        let newest = version_among(versions, None)?;
        let (before, now) = match (self.versions.as_slice(), versions) {
            ([before, now, ..], _) => (*before, *now),
            ([one], _) => (*one, newest.version),
            ([], [.., second, newest]) => (second.version, newest.version),
            ([], _) => {
                return Err(Failure::invalid(format!("{} has one version only", newest.eval_id))
                    .hint("'karat eval add FILE' makes another one of other code"));
            }
        };
        if before == now {
            return Err(Failure::invalid(format!("version {before} is compared with itself")));
        }
        Ok((before, now))
    }
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
    use jiff::Timestamp;
    use rstest::rstest;

    use super::*;

    fn read(words: &[&str]) -> Result<Wanted, Failure> {
        Wanted::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
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
        assert_eq!((plain(&wanted.name), wanted.versions.as_slice()), ("tone", expected));
    }

    #[rstest]
    #[case(&["1", "2"], "the eval's name is missing")]
    #[case(&["@1", "@2"], "the eval's name is missing")]
    #[case(&["tone@1", "length@2"], "two versions of one eval are compared, not 'tone' and 'length'")]
    #[case(&["tone@0"], "'0' is no version")]
    #[case(&["tone@+1"], "'+1' is no version")]
    #[case(&["tone@1", "2", "3"], "two versions are compared, not three")]
    fn what_is_no_pair_of_versions_is_refused(#[case] words: &[&str], #[case] expected: &str) {
        assert_eq!(read(words).expect_err("no versions").message, expected);
    }

    #[rstest]
    #[case(&[], 3, Ok((2, 3)))]
    #[case(&[1], 3, Ok((1, 3)))]
    #[case(&[3, 1], 3, Ok((3, 1)))]
    #[case(&[3], 3, Err("version 3 is compared with itself"))]
    #[case(&[], 1, Err("eval_tone has one version only"))]
    #[case(&[1, 4], 3, Err("there is no version 4 of eval_tone in the store"))]
    fn two_versions_are_meant(#[case] said: &[u64], #[case] newest: u64, #[case] expected: Result<(u64, u64), &str>) {
        let versions: Vec<EvalVersion> = (1..=newest)
            .map(|version| EvalVersion {
                eval_id: "eval_tone".to_owned(),
                version,
                code: String::new(),
                code_hash: String::new(),
                guest_hash: String::new(),
                note: None,
                created_at: Timestamp::UNIX_EPOCH,
            })
            .collect();
        let wanted = Wanted { name: "tone".to_owned(), versions: said.to_vec() };
        let found = wanted.two_of(&versions);
        assert_eq!(found.as_ref().map_err(|failure| failure.message.as_str()), expected.as_ref().map_err(|text| *text));
    }
}
