//! `karat eval adopt`: writes an eval function around an evaluator of another framework.

use karat_core::exit::ExitStatus;
use karat_report::adopted_text;
use karat_workflows::adopt_eval::{AdoptReport, Request, adopt_eval, parse_source};
use serde_json::{Map, Value};

use crate::args::EvalAdoptArgs;
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalAdoptArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let (file, function) = parse_source(&args.source);
    let trace = match &args.trace {
        Some(path) => {
            let path = context.settings.layout.current_dir.join(path);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Failure::invalid(format!("cannot read {}: {error}", path.display())))?;
            let trace = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
            Some(trace.ok_or_else(|| Failure::invalid(format!("{} is not a JSON object", path.display())))?)
        }
        None => None,
    };
    let params: Map<String, Value> = match &args.params {
        Some(text) => serde_json::from_str(text).map_err(|_| Failure::invalid("--params must be a JSON object"))?,
        None => Map::new(),
    };
    let reference = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
    let request = Request {
        file,
        function,
        name: args.name.clone(),
        trace,
        reference: args.reference.as_ref().map(reference),
        params,
        is_dry_run: args.dry_run,
        options: args.limits.options(context.settings.eval_limits)?,
    };
    let report = adopt_eval(&request, &context)?;
    surface.printer.print_result(args.format, &report, adopted_text)?;
    Ok(status(&report))
}

fn status(report: &AdoptReport) -> ExitStatus {
    match &report.trial {
        None => ExitStatus::Failed,
        Some(trial) if trial.error.is_some() => ExitStatus::Errored,
        Some(_) => ExitStatus::Success,
    }
}
