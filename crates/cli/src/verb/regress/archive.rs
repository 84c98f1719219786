//! `karat regress archive`.

use karat_core::exit::ExitStatus;
use karat_core::port::Clock;
use karat_core::regression::{ArchivedCase, is_regression};
use karat_json::canonical::canonical_hash;
use karat_json::nearest;
use karat_report::printable;

use super::{RegressReport, ReportedCase, load_valid, named_file, open, write};
use crate::args::{ConfigArgs, RegressArchiveArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::resolve::{edit_lock, resolve_settings};
use karat_project::EvalPath;
use karat_project::Loaded;
use karat_project::{archive_path, archived_ids, read_archive};
use karat_workflows::context::clock::SystemClock;

pub(super) fn run(
    args: &RegressArchiveArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let config = ConfigArgs { config: args.config.clone(), ..ConfigArgs::default() };
    let settings = resolve_settings(&config, &[], environment, printer)?;
    let _lock = edit_lock(&settings, printer)?;
    let path = match &args.file {
        Some(file) => named_file(file, &settings),
        None => find(&args.id, &load_valid(&[], &settings, printer)?)?,
    };
    let mut editor = open(&path, printer)?;
    let file = editor.file().map_err(|error| Failure::errored(error.to_string()))?;
    if file.cases.iter().any(|case| case.id == args.id && !is_regression(&file, case)) {
        return Err(Failure::invalid(format!("'{}' of {} is no regression case", args.id, path.shown))
            .hint("other cases can be edited and removed as they are"));
    }
    let (case, sealed) =
        editor.remove(&args.id).map_err(|error| Failure::invalid(format!("{}: {error}", path.shown)))?;
    let hash = canonical_hash(&case);
    let sealed_hash = sealed.filter(|sealed| *sealed != hash);
    if sealed_hash.is_some() {
        printer.warn(&format!(
            "'{}' was edited after it was made; it is archived as it is now, with both hashes",
            args.id
        ));
    }
    let archive_path = archive_path(&path.path);
    let shown = settings.shown(&archive_path);
    let mut archive = read_archive(&archive_path, &shown)?;
    match archive.cases.iter().find(|archived| archived.id() == args.id) {
        // Somebody was interrupted between the two files; what is left to do is done below.
        Some(archived) if archived.case == case => {}
        Some(_) => {
            return Err(Failure::invalid(format!("{shown} holds another case with the id '{}'", args.id))
                .hint("ids are never used twice: give this case another one"));
        }
        None => {
            let archived_at = SystemClock.now().to_string();
            archive
                .add(ArchivedCase { archived_at, reason: args.reason.clone(), hash: hash.clone(), sealed_hash, case })
                .map_err(|error| Failure::errored(format!("cannot edit {shown}: {error}")))?;
            // First, so that at no time the case is nowhere.
            write(&archive_path, &shown, &archive.into_text())?;
        }
    }
    write(&path.path, &path.shown, &editor.into_text())?;
    let told = format!("archived {} of {} in {}\n", printable(&args.id), printable(&path.shown), printable(&shown));
    let case = ReportedCase { id: args.id.clone(), path: path.shown, archive: Some(shown), hash, case: None };
    RegressReport { written: true, cases: vec![case] }.print(args.format, &told, printer)?;
    Ok(ExitStatus::Success)
}

/// Finds the one eval file that holds a regression case.
fn find(id: &str, loaded: &[Loaded]) -> Result<EvalPath, Failure> {
    let regressions = |loaded: &'_ Loaded| -> Vec<String> {
        let file = &loaded.file;
        file.cases.iter().filter(|case| is_regression(file, case)).map(|case| case.id.clone()).collect()
    };
    let holders: Vec<&Loaded> = loaded.iter().filter(|one| regressions(one).iter().any(|found| found == id)).collect();
    match holders.as_slice() {
        [one] => Ok(one.path.clone()),
        [] => {
            if let Some(one) =
                loaded.iter().find(|one| archived_ids(&one.path.path).is_some_and(|ids| ids.contains(id)))
            {
                return Err(Failure::invalid(format!("'{id}' of {} is archived already", one.path.shown)));
            }
            let failure = Failure::invalid(format!("no eval file holds a regression case '{id}'"));
            let ids: Vec<String> = loaded.iter().flat_map(regressions).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            Err(match nearest(id, &ids) {
                Some(near) => failure.hint(format!("did you mean '{near}'?")),
                None => failure,
            })
        }
        several => {
            let names: Vec<&str> = several.iter().map(|one| one.path.shown.as_str()).collect();
            Err(Failure::invalid(format!("several eval files hold '{id}': {}", names.join(", ")))
                .hint("name the one that is meant with --file"))
        }
    }
}
