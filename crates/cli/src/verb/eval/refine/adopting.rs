//! What becomes of candidates: a person adopts one, or they are written for later.

use std::path::{Path, PathBuf};

use karat_core::agreement::{Candidate, Refinement};
use karat_core::exit::ExitStatus;
use karat_core::port::{Clock, EvalStore};
use karat_core::stored::{AddedVersion, EvalVersion, NewVersion};
use karat_json::text::shorten;
use karat_project::replace_file;
use karat_report::{code_diff_text, printable};
use karat_store::{Store, make_folder};
use tokio::runtime::Runtime;

use super::REFINED;
use crate::args::EvalRefineArgs;
use crate::ask::{self, NoAnswer};
use crate::failure::Failure;
use crate::printer::Printer;
use karat_workflows::context::clock::SystemClock;
use karat_workflows::settings::Settings;

/// How much of what a model says of its code a version's note holds.
const LONGEST_WHY: usize = 200;

/// Writes the candidates into a folder, each whole.
pub(super) fn write(refinement: &mut Refinement, args: &EvalRefineArgs, settings: &Settings) -> Result<(), Failure> {
    let folder = match &args.out {
        Some(folder) => settings.layout.here.join(folder),
        None => own_folder(&refinement.eval_id, settings),
    };
    make_folder(&folder)
        .map_err(|error| Failure::errored(format!("cannot write {}: {error}", settings.shown(&folder))))?;
    for candidate in &mut refinement.candidates {
        candidate.file = Some(write_one(candidate, &folder, settings)?);
    }
    // Those of an earlier time would pass for candidates of today. What else a person's folder holds is theirs.
    if args.out.is_none() {
        let more = (refinement.candidates.len() + 1..).map(|number| folder.join(format!("candidate_{number}.py")));
        for old in more.take_while(|old| old.exists()) {
            std::fs::remove_file(&old)
                .map_err(|error| Failure::errored(format!("cannot remove {}: {error}", settings.shown(&old))))?;
        }
    }
    Ok(())
}

fn own_folder(eval_id: &str, settings: &Settings) -> PathBuf {
    settings.layout.root.join(".karat").join("refine").join(eval_id)
}

/// Writes a candidate, and returns where it is, as a person would name it.
fn write_one(candidate: &Candidate, folder: &Path, settings: &Settings) -> Result<String, Failure> {
    let path = folder.join(format!("candidate_{}.py", candidate.number));
    let written = make_folder(folder).and_then(|()| replace_file(&path, &candidate.code));
    written.map_err(|error| Failure::errored(format!("cannot write {}: {error}", settings.shown(&path))))?;
    Ok(settings.shown(&path))
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Adopt(usize),
    /// None: of the only one.
    Diff(Option<usize>),
    Leave,
}

impl Decision {
    fn read(line: &str) -> Option<Self> {
        let line = line.trim().to_lowercase();
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|number| *number > 0);
        match line.as_str() {
            "q" | "quit" => Some(Self::Leave),
            "d" | "diff" => Some(Self::Diff(None)),
            _ => match line.strip_prefix("diff").or_else(|| line.strip_prefix('d')) {
                Some(rest) => number(rest).map(|number| Self::Diff(Some(number))),
                None => number(&line).map(Self::Adopt),
            },
        }
    }
}

/// Asks a person which candidate becomes a version.
pub(super) struct Adopting<'a> {
    pub(super) refinement: &'a Refinement,
    pub(super) version: &'a EvalVersion,
    pub(super) guest_hash: &'a str,
    pub(super) store: &'a Store,
    pub(super) runtime: &'a Runtime,
    pub(super) settings: &'a Settings,
    /// Who is asked.
    pub(super) approver: &'a str,
}

impl Adopting<'_> {
    pub(super) fn ask(self, printer: &Printer) -> Result<ExitStatus, Failure> {
        let most = self.refinement.candidates.len();
        let numbers = if most == 1 { "1".to_owned() } else { format!("1-{most}") };
        let question = format!("Adopt which? ({numbers} adopts, d N shows the diff, q leaves)");
        loop {
            let line = match ask::line(&question) {
                Ok(line) => line,
                Err(NoAnswer::Left) => return Ok(left(printer)),
                Err(NoAnswer::Interrupted) => return Err(NoAnswer::Interrupted.into()),
                Err(NoAnswer::Broken(why)) => return Err(Failure::errored(format!("cannot ask: {why}"))),
            };
            match Decision::read(&line) {
                Some(Decision::Leave) => return Ok(left(printer)),
                Some(Decision::Diff(number)) => {
                    let number = number.or_else(|| (most == 1).then_some(1));
                    match number.and_then(|number| self.refinement.candidates.get(number - 1)) {
                        Some(candidate) => {
                            let text = code_diff_text(&self.version.code, &candidate.code, printer.console());
                            printer.print(&text)?;
                        }
                        None => printer.talk(&format!("of which? d {numbers}")),
                    }
                }
                Some(Decision::Adopt(number)) if number <= most => {
                    let candidate = self.refinement.candidates[number - 1].clone();
                    return self.adopt(&candidate, printer);
                }
                // Nothing is adopted by a slip of the finger.
                _ => printer.talk(&format!("a number ({numbers}), d with a number, or q")),
            }
        }
    }

    fn adopt(self, candidate: &Candidate, printer: &Printer) -> Result<ExitStatus, Failure> {
        let name = printable(&self.version.eval_id);
        let why = shorten(&candidate.why, LONGEST_WHY);
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let version = NewVersion {
            eval_id: self.version.eval_id.clone(),
            code: candidate.code.clone(),
            code_hash: candidate.code_hash.clone(),
            guest_hash: self.guest_hash.to_owned(),
            note: Some(format!("{REFINED} {}, approved by {}{why}", self.refinement.model, self.approver)),
            created_at: SystemClock.now(),
            // A candidate was measured against one version, and says nothing of another.
            after: Some(self.version.version),
        };
        let added = self.runtime.block_on(self.store.add_version(&version))?;
        let number = match added {
            AddedVersion::Added(number) | AddedVersion::Unchanged(number) => number,
            AddedVersion::Conflict(newest) => {
                let file = write_one(candidate, &own_folder(&self.version.eval_id, self.settings), self.settings)?;
                let message = match newest {
                    Some(newest) => format!("version {newest} of {name} was added in the meantime"),
                    None => format!("{name} is no longer in the store"),
                };
                return Err(Failure::errored(format!("{message}, so nothing was adopted"))
                    .hint(format!("'karat eval refine {name}' goes on from it; the candidate is in {file}")));
            }
        };
        let told = format!("adopted {} as version {number} of {name}\n", candidate.number);
        printer.print(&told)?;
        printer.note(&format!("'karat eval run {name} --stored' judges the stored traces with it"));
        self.offer_file(candidate, printer)?;
        Ok(ExitStatus::Success)
    }

    /// Offers to write the code into the function's file: otherwise adding that file again would undo the adoption.
    fn offer_file(&self, candidate: &Candidate, printer: &Printer) -> Result<(), Failure> {
        let files =
            karat_workflows::functions::find_functions(self.settings).map(|found| found.files).unwrap_or_default();
        let file = files.into_iter().find_map(|file| {
            let function = file.function.ok()?;
            (function.name == self.version.eval_id).then_some((file.path, file.shown, function))
        });
        let name = printable(&self.version.eval_id);
        let Some((path, shown, function)) = file else {
            printer.note(&format!("'karat eval show {name}' prints the new code"));
            return Ok(());
        };
        // What somebody changed since is not written over.
        if function.code_hash == self.version.code_hash {
            match ask::line(&format!("Write it to {shown} too? (y/N)")) {
                Ok(line) if matches!(line.trim().to_lowercase().as_str(), "y" | "yes") => {
                    let failed = |error| Failure::errored(format!("cannot write {shown}: {error}"));
                    replace_file(&path, &candidate.code).map_err(failed)?;
                    printer.talk(&format!("wrote {shown}"));
                    return Ok(());
                }
                Err(NoAnswer::Interrupted) => return Err(NoAnswer::Interrupted.into()),
                _ => {}
            }
        }
        printer
            .note(&format!("{shown} is as it was: 'karat eval add' of it would put its code in place of this version"));
        Ok(())
    }
}

fn left(printer: &Printer) -> ExitStatus {
    printer.talk("nothing was adopted");
    ExitStatus::Success
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("2", Some(Decision::Adopt(2)))]
    #[case(" 1 ", Some(Decision::Adopt(1)))]
    #[case("d", Some(Decision::Diff(None)))]
    #[case("d2", Some(Decision::Diff(Some(2))))]
    #[case("D 2", Some(Decision::Diff(Some(2))))]
    #[case("diff 3", Some(Decision::Diff(Some(3))))]
    #[case("q", Some(Decision::Leave))]
    #[case("", None)]
    #[case("y", None)]
    #[case("0", None)]
    #[case("-1", None)]
    #[case("d x", None)]
    fn only_a_number_adopts(#[case] line: &str, #[case] expected: Option<Decision>) {
        assert_eq!(Decision::read(line), expected);
    }
}
