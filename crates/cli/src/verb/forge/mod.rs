//! `karat forge`: golden and labeled cases drafted for a tool, approved by a person.

mod conversation;
mod drafting;
mod editor;
mod kept;
mod material;
mod reading;
mod report;
mod scripted;
mod verify;
mod view;
mod writing;

use std::rc::Rc;
use std::sync::Arc;

use karat_core::exit::ExitStatus;
use karat_forge::session::Session;
use karat_forge::{Drafter, Plan, golden_slots, labeled_slots};
use karat_report::printable;
use tokio::runtime::Runtime;

use self::kept::{KeptSession, kept_tools};
use self::material::Material;
pub(crate) use self::report::ForgeReport;
use self::verify::Verifier;
use crate::args::ForgeArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::settings::Settings;

/// What all of the verb works with.
struct Forge<'f> {
    args: &'f ForgeArgs,
    environment: &'f Environment,
    printer: &'f Rc<Printer>,
    settings: Settings,
    material: Material,
    /// None where nothing is drafted.
    drafter: Option<Arc<dyn Drafter>>,
    verifier: Option<Verifier>,
    runtime: Runtime,
    interrupts: Interrupts,
}

/// How a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plan,
    DryRun,
    ApproveAll,
    Terminal,
}

impl Mode {
    fn of(args: &ForgeArgs, environment: &Environment) -> Result<Self, Failure> {
        match args {
            ForgeArgs { plan: true, .. } => Ok(Mode::Plan),
            ForgeArgs { dry_run: true, .. } => Ok(Mode::DryRun),
            ForgeArgs { approve_all: true, .. } => Ok(Mode::ApproveAll),
            _ if environment.stdin_is_terminal && environment.stderr_is_terminal => Ok(Mode::Terminal),
            _ => Err(Failure::invalid("nothing is written that a person has not approved, and there is no terminal")
                .hint("--plan shows the plan, --dry-run prints the drafts")
                .hint("--approve-all writes them although nobody has looked at them")),
        }
    }
}

pub(crate) fn run(args: &ForgeArgs, environment: &Environment, printer: &Rc<Printer>) -> Result<ExitStatus, Failure> {
    if args.tool.is_none() && !args.resume {
        return Err(Failure::invalid("which tool are cases to be drafted for?")
            .hint("karat forge TOOL; 'karat tools' lists them")
            .hint("karat forge --resume goes on with a session that was left"));
    }
    let mode = Mode::of(args, environment)?;
    let mut settings = Settings::resolve(&args.config, &[], environment, printer)?;
    let Some(tool) = named_tool(args, &settings)? else {
        return kept::list(&settings, printer);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
    let interrupts = Interrupts::listen(&runtime);
    let preparing = async {
        let material = Material::gather(&tool, args, &mut settings, printer).await?;
        if mode == Mode::Plan {
            return Ok((material, None, None));
        }
        let drafter = drafting::choose(args, &material, environment, &mut settings, printer).await?;
        let verifier = if args.verify { Some(Verifier::new(&mut settings, printer).await?) } else { None };
        Ok((material, Some(drafter), verifier))
    };
    let (material, drafter, verifier) = match runtime.block_on(interrupts.unless_asked(preparing)) {
        Ok(prepared) => prepared,
        Err(failure) => {
            runtime.shutdown_background();
            return Err(failure);
        }
    };
    crate::ask::end_when_asked_at_a_prompt(&runtime, &interrupts);
    let forge = Forge { args, environment, printer, settings, material, drafter, verifier, runtime, interrupts };
    let status = forge.run(mode);
    // What was given up must not keep the program.
    forge.runtime.shutdown_background();
    status
}

/// Returns the tool that is meant; none where several sessions are kept and nobody says which is meant.
fn named_tool(args: &ForgeArgs, settings: &Settings) -> Result<Option<String>, Failure> {
    if let Some(tool) = &args.tool {
        return Ok(Some(tool.clone()));
    }
    match kept_tools(settings).as_slice() {
        [] => Err(Failure::nothing_selected("there is no session to go on with").hint("karat forge TOOL begins one")),
        [only] => Ok(Some(only.clone())),
        _ => Ok(None),
    }
}

impl Forge<'_> {
    fn run(&self, mode: Mode) -> Result<ExitStatus, Failure> {
        match mode {
            Mode::Plan => self.show_plan(),
            Mode::DryRun => self.dry_run(),
            Mode::ApproveAll => self.approve_all(),
            Mode::Terminal => self.converse(),
        }
    }

    /// Returns the formula's numbers, with what is proposed after failures if that is wanted.
    fn plan(&self, material: &Material) -> Result<Plan, Failure> {
        let mut plan = Plan::of(&material.brief);
        for growth in material.growth(&plan, self.args.grow, &self.settings, self.printer)? {
            let tiers = plan.tiers.iter_mut().filter(|tier| tier.difficulty == growth.difficulty);
            tiers.for_each(|tier| tier.wanted = growth.proposed);
        }
        Ok(plan)
    }

    fn show_plan(&self) -> Result<ExitStatus, Failure> {
        let plan = self.plan(&self.material)?;
        let text = plan_text(&plan);
        ForgeReport::of_plan(plan).print(self.args.format, &text, self.printer)?;
        Ok(ExitStatus::Success)
    }

    /// Begins a session for what is missing.
    fn begin(&self, material: &Material) -> Result<Session, Failure> {
        let brief = &material.brief;
        let plan = self.plan(material)?;
        let golden = if self.args.tier.has_golden() { golden_slots(brief) } else { Vec::new() };
        let labeled = if self.args.tier.has_labeled() { labeled_slots(brief, &plan) } else { Vec::new() };
        Ok(Session::begin(brief, plan, golden, labeled))
    }

    fn open_session(&self) -> Result<KeptSession, Failure> {
        KeptSession::open(&self.material.brief.tool.name, &self.settings)
    }
}

/// Returns the plan as a person reads it; a tool's name is somebody else's text.
fn plan_text(plan: &Plan) -> String {
    let lines: Vec<String> = plan.to_string().lines().map(|line| printable(line).into_owned()).collect();
    lines.join("\n") + "\n"
}
