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

use std::sync::Arc;

use karat_core::case::Tier;
use karat_core::exit::ExitStatus;
use karat_core::registry::same_name;
use karat_forge::session::Session;
use karat_forge::{BriefDocument, Draft, DraftFile, Drafter, Plan, Slot, golden_slots, labeled_slots};
use karat_report::{counted, printable};
use karat_tools::contract::corrected_description;
use karat_tools::coverage::LEAST_GOLDEN;
use karat_tools::overlap::command_word;
use tokio::runtime::Runtime;

use self::kept::{KeptSession, kept_tools};
use self::material::Material;
pub(crate) use self::report::ForgeReport;
use self::scripted::MIN_TRIGGERS;
use self::verify::Verifier;
use crate::args::{ForgeArgs, OutputFormat};
use crate::ask;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use karat_workflows::settings::Settings;

/// What all of the verb works with.
struct Forge<'f> {
    args: &'f ForgeArgs,
    environment: &'f Environment,
    printer: &'f Arc<Printer>,
    settings: Settings,
    material: Material,
    /// None where nothing is drafted.
    drafter: Option<Arc<dyn Drafter>>,
    /// The drafts of a file, and the slots that stay open, where one is named.
    drafted: Option<(Vec<Draft>, Vec<Slot>)>,
    verifier: Option<Verifier>,
    runtime: Runtime,
    interrupts: Interrupts,
}

/// How a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plan,
    Brief,
    DryRun,
    ApproveAll,
    Terminal,
}

impl Mode {
    fn of(args: &ForgeArgs, environment: &Environment) -> Result<Self, Failure> {
        match args {
            ForgeArgs { plan: true, .. } => Ok(Mode::Plan),
            ForgeArgs { brief: true, .. } => Ok(Mode::Brief),
            ForgeArgs { dry_run: true, .. } => Ok(Mode::DryRun),
            ForgeArgs { approve_all: true, .. } => Ok(Mode::ApproveAll),
            _ if environment.stdin_is_terminal && environment.stderr_is_terminal => Ok(Mode::Terminal),
            _ => Err(Failure::invalid("a person has to approve the drafts, and there is no terminal")
                .hint(
                    "--plan shows the plan, --brief what is needed to draft, --dry-run the drafts with their findings",
                )
                .hint("scripts may give --approve-all, which writes drafts that nobody has looked at")),
        }
    }
}

pub(crate) fn run(args: &ForgeArgs, environment: &Environment, printer: &Arc<Printer>) -> Result<ExitStatus, Failure> {
    if args.tool.is_none() && !args.resume {
        return Err(Failure::invalid("which tool are cases to be drafted for?")
            .hint("karat forge TOOL; 'karat tools' lists them")
            .hint("karat forge --resume goes on with a session that was left"));
    }
    let mode = Mode::of(args, environment)?;
    let settings = resolve_settings(&args.config, &[], environment, printer)?;
    let Some(tool) = named_tool(args, &settings)? else {
        return kept::list(&settings, printer);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
    let interrupts = Interrupts::listen(&runtime);
    let preparing = async {
        let material = Material::gather(&tool, args, mode != Mode::Plan, &settings, printer).await?;
        if matches!(mode, Mode::Plan | Mode::Brief) {
            return Ok((material, None, None));
        }
        if args.drafts.is_some() {
            let verifier = if args.verify { Some(Verifier::new(&settings, printer).await?) } else { None };
            return Ok((material, None, verifier));
        }
        let drafter = drafting::choose(args, &material, environment, &settings, printer).await?;
        let verifier = if args.verify { Some(Verifier::new(&settings, printer).await?) } else { None };
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
    let mut forge =
        Forge { args, environment, printer, settings, material, drafter, drafted: None, verifier, runtime, interrupts };
    let status = forge.agree_to_description(mode).and_then(|()| {
        forge.read_drafts()?;
        forge.run(mode)
    });
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
            Mode::Brief => self.show_brief(),
            Mode::DryRun => self.dry_run(),
            Mode::ApproveAll => self.approve_all(),
            Mode::Terminal => self.converse(),
        }
    }

    /// Goes on with a description that only lacks its `Use when` if a person agrees. What writes nothing goes on.
    fn agree_to_description(&self, mode: Mode) -> Result<(), Failure> {
        let Some(finding) = &self.material.doubt else { return Ok(()) };
        let tool = &self.material.brief.tool;
        self.printer.warn(&format!("{}: {} ({})", tool.name, finding.message, finding.rule.name()));
        let corrected = corrected_description(tool, &[finding], &self.material.brief.registry);
        self.printer.talk(&printable(&format!("  a description to start from: {corrected}")));
        match mode {
            _ if self.args.yes => Ok(()),
            Mode::Plan | Mode::Brief | Mode::DryRun => Ok(()),
            Mode::ApproveAll => Err(Failure::invalid("the description does not say when to use the tool")
                .hint("fix the description, or go on all the same with --yes")),
            Mode::Terminal if ask::yes_or_no("Draft cases all the same?", false)? => Ok(()),
            Mode::Terminal => Err(Failure::reported(ExitStatus::Success)),
        }
    }

    /// Reads the file of drafts, if one is named, and gives each draft a slot.
    fn read_drafts(&mut self) -> Result<(), Failure> {
        let Some(path) = &self.args.drafts else { return Ok(()) };
        let (name, text) = if path.as_os_str() == "-" {
            ("stdin".to_owned(), std::io::read_to_string(std::io::stdin()).map_err(|error| error.to_string()))
        } else {
            let text = std::fs::read_to_string(self.environment.process.current_dir.join(path));
            (path.display().to_string(), text.map_err(|error| error.to_string()))
        };
        let text = text.map_err(|error| Failure::invalid(format!("cannot read the drafts {name}: {error}")))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut file = DraftFile::read(&name, text).map_err(|error| {
            Failure::invalid(format!("{name}: {error}"))
                .hint(format!("karat forge {} --brief says what the drafts look like", self.material.brief.tool.name))
        })?;
        let brief = &self.material.brief;
        if let Some(other) = file.tool.as_ref().filter(|other| !same_name(other, &brief.tool.name)) {
            return Err(Failure::invalid(format!(
                "the drafts {name} are for '{other}', not for '{}'",
                brief.tool.name
            )));
        }
        match file.leave_out_existing(brief) {
            0 => {}
            count => self.printer.note(&format!("{} of {name} already written", counted(count, "case"))),
        }
        let all = [golden_slots(brief), labeled_slots(brief, &Plan::of(brief))].concat();
        let (mut filled, drafter) = file.match_to(brief, &all);
        let is_wanted = |slot: &Slot| match slot.purpose.tier() {
            Tier::Golden => self.args.tier.has_golden(),
            _ => self.args.tier.has_labeled(),
        };
        let count = filled.len();
        filled.retain(is_wanted);
        if filled.len() < count {
            self.printer.note(&format!("{} of another tier left out", counted(count - filled.len(), "draft")));
        }
        let is_open = |slot: &Slot| is_wanted(slot) && filled.iter().all(|other| other.id != slot.id);
        let open: Vec<Slot> = all.into_iter().filter(is_open).collect();
        let drafts = drafter.drafts(brief, &filled, &[]);
        self.printer.note(&format!("{} in {name}", counted(drafts.len(), "draft")));
        self.drafter = Some(Arc::new(drafter));
        self.drafted = Some((drafts, open));
        Ok(())
    }

    /// Returns the slots of the wanted tiers.
    fn slots(&self, material: &Material, plan: &Plan) -> Vec<Slot> {
        let brief = &material.brief;
        let mut slots = if self.args.tier.has_golden() { golden_slots(brief) } else { Vec::new() };
        if self.args.tier.has_labeled() {
            slots.extend(labeled_slots(brief, plan));
        }
        slots
    }

    fn show_plan(&self) -> Result<ExitStatus, Failure> {
        let plan = Plan::of(&self.material.brief);
        let text = plan_text(&plan);
        ForgeReport::of_plan(plan).print(self.args.format, &text, self.printer)?;
        Ok(ExitStatus::Success)
    }

    fn show_brief(&self) -> Result<ExitStatus, Failure> {
        let plan = Plan::of(&self.material.brief);
        let slots = self.slots(&self.material, &plan);
        let document = BriefDocument::of(&self.material.brief, &plan, &slots);
        self.warn_of_few_triggers();
        match self.args.format {
            OutputFormat::Json => self.printer.print_json(&document)?,
            OutputFormat::Human => {
                let tool = command_word(&self.material.brief.tool.name);
                let hand_in = format!(
                    "\n## Hand in the drafts\n\n\
                     1. karat forge {tool} --drafts FILE --dry-run --format json: findings by case, exit code 1 while a \
                     draft cannot be approved\n\
                     2. karat forge {tool} --drafts FILE: a person approves, and karat writes the eval files\n"
                );
                self.printer.print(&printable_lines(&format!("{document}{hand_in}")))?;
            }
        }
        Ok(ExitStatus::Success)
    }

    /// Warns where golden cases are missing and there are too few trigger phrases to make slots for them.
    fn warn_of_few_triggers(&self) {
        let brief = &self.material.brief;
        let found = brief.triggers.len();
        if self.args.tier.has_golden() && found < MIN_TRIGGERS && brief.golden.len() < LEAST_GOLDEN {
            let phrases = counted(found, "trigger phrase");
            self.printer.warn(&format!(
                "{}: {phrases}, but golden cases need {MIN_TRIGGERS} to 5; pass --trigger 'PHRASE' for each, or add \
                 'triggerPhrases' to the registry",
                brief.tool.name
            ));
        }
    }

    /// Begins a session for what is missing.
    fn begin(&self, material: &Material, drafter: &dyn Drafter) -> Session {
        let brief = &material.brief;
        let plan = Plan::of(brief);
        if let Some((drafts, open)) = &self.drafted {
            return Session::begin_with(brief, plan, drafts, open.clone(), drafter);
        }
        let slots = self.slots(material, &plan);
        Session::begin(brief, plan, slots, drafter)
    }

    fn open_session(&self) -> Result<KeptSession, Failure> {
        KeptSession::open(&self.material.brief.tool.name, &self.settings)
    }
}

/// Returns the plan as a person reads it.
fn plan_text(plan: &Plan) -> String {
    printable_lines(&plan.to_string())
}

/// Makes lines safe to print: they hold names and texts of others.
fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| printable(line).into_owned()).collect();
    lines.join("\n") + "\n"
}
