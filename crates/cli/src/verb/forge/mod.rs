//! `karat forge`: golden and labeled cases drafted for a tool, approved by a person.

mod conversation;
mod editor;
mod scripted;
mod spinner;
mod summary;
mod typed_command;
mod view;

use karat_core::exit::ExitStatus;
use karat_core::port::Clock as _;
use karat_forge::Plan;
use karat_forge::session::Session;
use karat_report::{counted, printable};
use karat_tools::overlap::command_word;
use karat_workflows::context::clock::SystemClock;
use karat_workflows::forge::{
    Conversation, ConversationRequest, DescriptionDoubt, DrafterRequest, DraftsRequest, ForgeReport, Gathered,
    MIN_TRIGGERS, Material, ToolRequest, TraceInput, VagueDescription, gather, kept_sessions,
};
use karat_workflows::trace_filter::parse_time;
use karat_workflows::{CancellationToken, Context, Error, Hint};

use crate::args::{ForgeArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

/// What all of the verb works with.
struct Forge<'f> {
    args: &'f ForgeArgs,
    context: &'f Context<'f>,
    environment: &'f Environment,
    printer: &'f Printer,
    cancel: CancellationToken,
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

pub(crate) fn run(args: &ForgeArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    if args.tool.is_none() && !args.resume {
        return Err(Failure::invalid("which tool are cases to be drafted for?")
            .hint("karat forge TOOL; 'karat tools' lists them")
            .hint("karat forge --resume goes on with a session that was left"));
    }
    let (environment, printer) = (surface.environment, surface.printer.as_ref());
    let mode = Mode::of(args, environment)?;
    let context = surface.context(&args.config, &[])?;
    let tool = match (&args.tool, kept_sessions(&context.settings).as_slice()) {
        (Some(tool), _) => tool.clone(),
        (None, []) => {
            let error = Error::nothing_selected("there is no session to go on with");
            return Err(error.hint(Hint::StartForge { tool: None }).into());
        }
        (None, [only]) => only.tool.clone(),
        (None, several) => {
            printer.print(&sessions_text(several))?;
            return Err(
                Failure::nothing_selected("several sessions are kept").hint("name the tool: karat forge TOOL --resume")
            );
        }
    };
    let request = ToolRequest { tool, tiers: args.tier.into(), triggers: args.trigger.clone() };
    surface.converse(async |cancel| {
        let material = match gather(&request, mode != Mode::Plan, &context, &cancel).await? {
            Gathered::Material(material) => material,
            Gathered::Vague(vague) => return Err(refuse(&vague, printer)),
        };
        if let Some(doubt) = &material.doubt {
            warn_of_doubt(doubt, printer);
        }
        let forge = Forge { args, context: &context, environment, printer, cancel };
        match mode {
            Mode::Plan => forge.show_plan(&material),
            Mode::Brief => forge.show_brief(&material),
            Mode::DryRun => Box::pin(forge.dry_run(*material)).await,
            Mode::ApproveAll => Box::pin(forge.approve_all(*material)).await,
            Mode::Terminal => Box::pin(forge.converse(*material)).await,
        }
    })
}

impl Forge<'_> {
    fn show_plan(&self, material: &Material) -> Result<ExitStatus, Failure> {
        let plan = material.plan();
        let text = plan_text(&plan);
        self.print(&ForgeReport::of_plan(plan), &text)?;
        Ok(ExitStatus::Success)
    }

    fn show_brief(&self, material: &Material) -> Result<ExitStatus, Failure> {
        let document = material.brief_document();
        let tool = &material.brief.tool.name;
        if material.has_too_few_triggers() {
            let phrases = counted(material.brief.triggers.len(), "trigger phrase");
            self.printer.warn(&format!(
                "{tool}: {phrases}, but golden cases need {MIN_TRIGGERS} to 5; pass --trigger 'PHRASE' for each, or add \
                 'triggerPhrases' to the registry"
            ));
        }
        match self.args.format {
            OutputFormat::Json => self.printer.print_json(&document)?,
            OutputFormat::Human => {
                let tool = command_word(tool);
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

    async fn open(
        &self,
        material: Material,
        mode: karat_workflows::forge::Mode,
        approver: Option<String>,
    ) -> Result<Conversation<'_>, Failure> {
        let request = ConversationRequest {
            drafts: self.drafts_request()?,
            verify: self.args.verify,
            mode,
            accept_description: self.args.yes,
            approver,
        };
        Ok(Conversation::open(request, material, self.context, &self.cancel).await?)
    }

    fn drafts_request(&self) -> Result<DraftsRequest, Failure> {
        let args = self.args;
        let folder = &self.environment.process.current_dir;
        if let Some(path) = &args.drafts {
            let is_stdin = path.as_os_str() == "-";
            let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
            let text = if is_stdin {
                std::io::read_to_string(std::io::stdin())
            } else {
                std::fs::read_to_string(folder.join(path))
            };
            let text = text.map_err(|error| Failure::invalid(format!("cannot read the drafts {name}: {error}")))?;
            return Ok(DraftsRequest::File { name, text });
        }
        let mut traces = Vec::new();
        for path in &args.traces {
            let name = path.display().to_string();
            let reader: Box<dyn std::io::Read + Send> = if path.as_os_str() == "-" {
                Box::new(std::io::stdin())
            } else {
                let failed = |error| Failure::invalid(format!("cannot read the traces {name}: {error}"));
                Box::new(std::fs::File::open(folder.join(path)).map_err(failed)?)
            };
            traces.push(TraceInput { name, reader });
        }
        let since = args.since.as_deref().map(|since| parse_time("--since", since, SystemClock.now())).transpose()?;
        Ok(DraftsRequest::Drafter(DrafterRequest {
            kind: args.drafter.map(Into::into),
            model: args.model.clone(),
            traces,
            since,
            rating: args.rating.map(Into::into),
        }))
    }

    /// Prints the report for programs, or this text for people.
    fn print(&self, report: &ForgeReport, text: &str) -> Result<(), Failure> {
        match self.args.format {
            OutputFormat::Json => self.printer.print_json(report),
            OutputFormat::Human => self.printer.print(text),
        }
    }
}

fn sessions_text(sessions: &[Session]) -> String {
    let mut out = String::from("Several sessions are kept:\n");
    for session in sessions {
        let (number, of) = session.place();
        let tier = session.batch().map_or("all decided", |batch| batch.tier.name());
        let place = if session.batch().is_some() { format!(", batch {number} of {of}") } else { String::new() };
        let line = format!("  {}: {tier}{place}, {} approved", session.tool, session.approved_count());
        out.push_str(&printable(&line));
        out.push('\n');
    }
    out
}

fn warn_of_doubt(doubt: &DescriptionDoubt, printer: &Printer) {
    let DescriptionDoubt { tool, finding, corrected } = doubt;
    printer.warn(&format!("{tool}: {} ({})", finding.message, finding.rule.name()));
    printer.talk(&printable(&format!("  a description to start from: {corrected}")));
}

fn refuse(vague: &VagueDescription, printer: &Printer) -> Failure {
    let VagueDescription { tool, place, findings, corrected } = vague;
    let place = place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    printer.failure(&Failure::invalid(format!(
        "{tool}{place}: The tool description is too vague for reliable eval generation. Fix the description first."
    )));
    for finding in findings {
        printer.talk(&format!("  {}: {}", finding.rule.name(), printable(&finding.message)));
        printer.talk(&format!("    {}", printable(&finding.suggestion)));
    }
    printer.talk(&printable(&format!("  a description to start from: {corrected}")));
    let rules: Vec<String> = findings.iter().map(|finding| format!("\"{}\"", finding.rule.name())).collect();
    let silence = format!("{{\"silence\": {{\"{tool}\": [{}]}}}}", rules.join(", "));
    printer.talk(&printable(&format!("  to draft all the same, put this into karat.json: {silence}")));
    Failure::reported(ExitStatus::Invalid)
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
