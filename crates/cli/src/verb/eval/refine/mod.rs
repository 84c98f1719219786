//! `karat eval refine`: a model rewrites an eval, and a person decides.

mod adopting;
mod judging;
mod rated;

use std::sync::Arc;

use karat_core::agreement::{Candidate, PartAgreement, PartedAgreement, RatedVerdict, Refinement, RefusedCode, rank};
use karat_core::chat::ChatModel;
use karat_core::exit::ExitStatus;
use karat_core::rubric::total_usage;
use karat_core::stored::EvalVersion;
use karat_forge::refine::{Example, Proposed, Rewriting, Rewritten, Tried, rewrite};
use karat_report::{counted, refinement_text};
use karat_sandbox::{Function, validate};
use karat_store::Store;
use tokio::runtime::Runtime;

use self::judging::Court;
use self::rated::{Parted, RatedTrace};
use crate::args::{EvalRefineArgs, HOLD_OUT, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{keep_store, open_store_to_read};
use karat_workflows::context::chat_models::{chosen_rewriter, make_rewriter};
use karat_workflows::settings::ChatModelConfig;
use karat_workflows::settings::{Anchored, Settings};
use karat_workflows::stored_eval::{find_eval, version_among, versions_of};

/// More is a mistake.
const MOST_CANDIDATES: usize = 20;
const MOST_ROUNDS: usize = 10;

/// How the note of a version begins that a model wrote.
const REFINED: &str = "refined by";

pub(super) fn run(args: &EvalRefineArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    verify(args)?;
    let settings = resolve_settings(&args.config, &[], environment, printer)?;
    // Who names no model is told so before anything is judged.
    let chosen = if args.dry_run { None } else { Some(chosen_rewriter(args.model.as_deref(), &settings)?) };
    // So is who cannot approve anything: a model's answer costs money.
    let approver = who_is_asked(args, environment)?;
    let runtime = runtime_that_ends()?;
    let preparing = keep_store(open_store_to_read(&settings), async |store| {
        let eval = find_eval(store, &args.name).await?;
        let versions = versions_of(store, &eval).await?;
        warn_of_leaks(&versions, args.hold_out, printer);
        let version = version_among(&versions, None)?;
        let parted = Parted::read(store, &eval.eval_id, args.hold_out, printer).await?;
        Ok((version, parted))
    });
    let (store, (version, parted)) = runtime.block_on(preparing)?;
    let workshop = Workshop { args, environment, runtime: &runtime, store: &store, version: &version, printer };
    let refined = workshop.refine(parted, chosen.as_ref(), approver.as_deref(), &settings);
    // Whatever came of it: a file that is not closed leaves a journal beside it.
    runtime.block_on(store.close());
    refined
}

/// What a refinement is made with, and of what.
#[derive(Clone, Copy)]
struct Workshop<'w> {
    args: &'w EvalRefineArgs,
    environment: &'w Environment,
    runtime: &'w Runtime,
    store: &'w Store,
    version: &'w EvalVersion,
    printer: &'w Printer,
}

impl Workshop<'_> {
    fn refine(
        self,
        parted: Parted,
        chosen: Option<&Anchored<ChatModelConfig>>,
        approver: Option<&str>,
        settings: &Settings,
    ) -> Result<ExitStatus, Failure> {
        let Workshop { args, version, printer, .. } = self;
        parted.verify(&version.eval_id)?;
        let model = chosen.map(|chosen| make_rewriter(chosen, settings, printer)).transpose()?;
        let today = karat_workflows::judge_stored::validated(version)?;
        let court = Court::open(settings, self.environment)?;
        let today = court.judge(&[Arc::new(today)], &parted)?.into_iter().flatten().collect();
        let mut refining =
            Refining { args, version, parted, today, tried: Vec::new(), measured: Vec::new(), refused: Vec::new() };
        let examples = self.runtime.block_on(refining.examples(self.store))?;
        let Some(model) = model else {
            refining.show_question(&examples, printer)?;
            return Ok(ExitStatus::Success);
        };
        let problem = self.ask(model.as_ref(), &mut refining, &examples, &court)?;
        let identity = model.identity();
        let mut refinement = refining.into_refinement(&identity);
        if refinement.candidates.is_empty() {
            show(&refinement, args.format, printer)?;
            let failure = Failure::errored(format!("{identity} wrote no other function that can be run"));
            return Err(match problem {
                Some(problem) => failure.quote(problem),
                None => failure,
            });
        }
        if args.out.is_some() || approver.is_none() {
            adopting::write(&mut refinement, args, settings)?;
        }
        show(&refinement, args.format, printer)?;
        if let Some(approver) = approver {
            let adopting = adopting::Adopting {
                refinement: &refinement,
                version,
                guest_hash: court.guest_hash(),
                store: self.store,
                runtime: self.runtime,
                settings,
                approver,
            };
            return adopting.ask(printer);
        }
        match refinement.suggested().and_then(|candidate| candidate.file.as_ref()) {
            Some(file) => printer.note(&format!("nothing was adopted: 'karat eval add {file}' makes it a version")),
            None => printer.note("nothing was adopted, and no candidate does better than today's version"),
        }
        Ok(ExitStatus::Success)
    }

    /// Lets the model write, round by round, and measures what it wrote. Returns what was wrong at last.
    fn ask(
        self,
        model: &dyn ChatModel,
        refining: &mut Refining<'_>,
        examples: &[Example],
        court: &Court,
    ) -> Result<Option<String>, Failure> {
        let Workshop { args, version, printer, .. } = self;
        let told = counted(examples.len(), "trace");
        let identity = model.identity();
        printer.note(&format!("the code and {told} with what people said of them go to {identity}"));
        let mut usages = Vec::new();
        let mut problem = None;
        for _ in 0..args.rounds {
            let training = refining.agreement(&refining.today).training;
            let rewriting = refining.rewriting(&training, examples);
            let check = |code: &str| check(code, &version.eval_id).map(drop);
            let rewritten = match self.runtime.block_on(rewrite(model, rewriting, &check)) {
                Ok(rewritten) => rewritten,
                // What was tried before is worth showing.
                Err(error) if !refining.tried.is_empty() => {
                    printer.warn(&format!("{identity}: {}", error.message));
                    break;
                }
                Err(error) => return Err(Failure::errored(format!("{identity}: {}", error.message))),
            };
            let Rewritten { candidates, refused, problem: wrong, usage } = rewritten;
            usages.push(usage);
            problem = wrong;
            refining.refused.extend(refused);
            refining.measure(candidates, court)?;
        }
        let usage = total_usage(usages.iter().map(Option::as_ref)).unwrap_or_default();
        if let (Some(read), Some(written)) = (usage.input_tokens, usage.output_tokens) {
            printer.note(&format!("the model read {read} and wrote {written} tokens"));
        }
        Ok(problem)
    }
}

/// Returns who decides what is adopted, where somebody is there.
fn who_is_asked(args: &EvalRefineArgs, environment: &Environment) -> Result<Option<String>, Failure> {
    let is_asked = args.format == OutputFormat::Human
        && !args.dry_run
        && environment.stdin_is_terminal
        && environment.stderr_is_terminal;
    if !is_asked && args.approver.approved_by.is_none() {
        return Ok(None);
    }
    let approver = args.approver.name(environment)?;
    Ok(is_asked.then_some(approver))
}

fn verify(args: &EvalRefineArgs) -> Result<(), Failure> {
    if !(args.hold_out > 0.0 && args.hold_out < 1.0) {
        return Err(Failure::invalid("--hold-out must be between 0 and 1").hint("0.4 holds out two traces of five"));
    }
    for (flag, given, most) in [("candidates", args.candidates, MOST_CANDIDATES), ("rounds", args.rounds, MOST_ROUNDS)]
    {
        if !(1..=most).contains(&given) {
            return Err(Failure::invalid(format!("--{flag} must be from 1 to {most}")));
        }
    }
    Ok(())
}

/// Says that the held-out part may not be unknown to whoever wrote today's code: a larger share holds traces out of which
/// a model was told before.
fn warn_of_leaks(versions: &[EvalVersion], share: f64, printer: &Printer) {
    let is_refined = |version: &EvalVersion| version.note.as_deref().is_some_and(|note| note.starts_with(REFINED));
    if share > HOLD_OUT && versions.iter().any(is_refined) {
        printer.warn(
            "a version was refined before: with a larger --hold-out than then, its model was told of traces that are \
             held out now",
        );
    }
}

/// Says what is wrong with a model's code, in words that go back to it.
fn check(code: &str, eval_id: &str) -> Result<Function, Vec<String>> {
    let function = validate(code.as_bytes()).map_err(|findings| {
        let told = |finding: &karat_sandbox::Finding| {
            let line = code.get(..finding.range.start).map_or(1, |before| before.matches('\n').count() + 1);
            let help = finding.help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
            format!("line {line}: {}{help}", finding.message)
        };
        findings.iter().map(told).collect::<Vec<String>>()
    })?;
    if function.name == eval_id {
        Ok(function)
    } else {
        Err(vec![format!("the function is called {}, and must be called {eval_id}", function.name)])
    }
}

fn show(refinement: &Refinement, format: OutputFormat, printer: &Printer) -> Result<(), Failure> {
    match format {
        OutputFormat::Json => printer.print_json(refinement),
        OutputFormat::Human => printer.print(&refinement_text(refinement, printer.console())),
    }
}

/// A refinement under way.
struct Refining<'r> {
    args: &'r EvalRefineArgs,
    version: &'r EvalVersion,
    parted: Parted,
    /// What today's version says of all traces, in their order.
    today: Vec<RatedVerdict>,
    /// What a model is told of the code that it wrote before.
    tried: Vec<Tried>,
    /// The same code, with all that is known of it.
    measured: Vec<Candidate>,
    refused: Vec<RefusedCode>,
}

impl Refining<'_> {
    /// Chooses what the model is told of, with what people noted. Only traces of the training part are looked at.
    async fn examples(&self, store: &Store) -> Result<Vec<Example>, Failure> {
        let training = self.parted.traces.iter().zip(&self.today).filter(|(trace, _)| !trace.held_out);
        let example = |(trace, verdict): (&RatedTrace, &RatedVerdict)| Example {
            document: serde_json::from_str(&trace.document).unwrap_or_default(),
            verdict: verdict.passed,
            reason: verdict.reason.clone(),
            rating: trace.rating,
            note: None,
            trace_id: trace.id.clone(),
        };
        let mut chosen = Example::choose(training.map(example));
        for example in &mut chosen {
            example.note = rated::note(store, &example.trace_id, example.rating).await?;
        }
        Ok(chosen)
    }

    fn training(&self, verdicts: &[RatedVerdict]) -> Vec<RatedVerdict> {
        let both = self.parted.traces.iter().zip(verdicts);
        both.filter(|(trace, _)| !trace.held_out).map(|(_, verdict)| verdict.clone()).collect()
    }

    fn held_out(&self, verdicts: &[RatedVerdict]) -> Vec<RatedVerdict> {
        let both = self.parted.traces.iter().zip(verdicts);
        both.filter(|(trace, _)| trace.held_out).map(|(_, verdict)| verdict.clone()).collect()
    }

    fn agreement(&self, verdicts: &[RatedVerdict]) -> PartedAgreement {
        PartedAgreement {
            training: PartAgreement::of(&self.training(verdicts)),
            held_out: PartAgreement::of(&self.held_out(verdicts)),
        }
    }

    fn rewriting<'r>(&'r self, training: &'r PartAgreement, examples: &'r [Example]) -> Rewriting<'r> {
        Rewriting {
            eval_id: &self.version.eval_id,
            code: &self.version.code,
            wanted: self.args.candidates,
            training,
            examples,
            tried: &self.tried,
        }
    }

    /// Judges all traces with what the model wrote.
    fn measure(&mut self, proposed: Vec<Proposed>, court: &Court) -> Result<(), Failure> {
        let eval_id = self.version.eval_id.clone();
        let functions: Vec<(Arc<Function>, String)> = proposed
            .into_iter()
            .filter_map(|one| Some((Arc::new(check(&one.code, &eval_id).ok()?), one.why)))
            .collect();
        if functions.is_empty() {
            return Ok(());
        }
        let all: Vec<Arc<Function>> = functions.iter().map(|(function, _)| Arc::clone(function)).collect();
        let judged = court.judge(&all, &self.parted)?;
        let today = self.held_out(&self.today);
        for ((function, why), verdicts) in functions.into_iter().zip(judged) {
            let code = function.source.to_string();
            let training = self.training(&verdicts);
            let held_out = self.held_out(&verdicts);
            let parts = (code.clone(), function.code_hash.clone(), why);
            let candidate = Candidate::measure(&eval_id, self.version.version, parts, &training, (&today, &held_out));
            self.tried.push(Tried { code, training: candidate.agreement.training });
            self.measured.push(candidate);
        }
        Ok(())
    }

    /// Prints what a model would be asked.
    fn show_question(&self, examples: &[Example], printer: &Printer) -> Result<(), Failure> {
        let training = self.agreement(&self.today).training;
        let prompt = self.rewriting(&training, examples).prompt();
        let document: serde_json::Value = serde_json::from_str(&prompt.user).unwrap_or_default();
        printer.note("nobody was asked; this is what the model would be told");
        let question = serde_json::json!({"system": prompt.system, "document": document, "schema": prompt.schema});
        printer.print_json(&question)
    }

    fn into_refinement(self, model: &str) -> Refinement {
        let today = self.agreement(&self.today);
        let (training, held_out) = self.parted.sizes();
        let mut candidates = self.measured;
        rank(&mut candidates);
        Refinement {
            eval_id: self.version.eval_id.clone(),
            version: self.version.version,
            model: model.to_owned(),
            training,
            held_out,
            today,
            candidates,
            refused: self.refused,
        }
    }
}
