//! `karat forge`: drafts golden and labeled cases for a tool.

mod conversation;
mod editor;
mod scripted;
mod spinner;
mod typed_command;

use karat_core::exit::ExitStatus;
use karat_core::port::Clock as _;
use karat_forge::BATCH_SIZE;
use karat_report::counted;
use karat_report::forge::{brief_text, plan_text, sessions_text};
use karat_workflows::context::clock::SystemClock;
use karat_workflows::forge::{
    Conversation, ConversationRequest, DescriptionWarning, DrafterRequest, DraftsRequest, ForgeInputs, ForgeReport,
    LoadedInputs, MIN_TRIGGERS, Tiers, ToolRequest, TraceInput, VagueDescription, load_inputs, saved_sessions,
};
use karat_workflows::trace_filter::parse_time;
use karat_workflows::{CancellationToken, Context, Error, Hint};

use crate::args::{ForgeArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

struct Forge<'f> {
    args: &'f ForgeArgs,
    context: &'f Context<'f>,
    surface: &'f Surface<'f>,
    environment: &'f Environment,
    printer: &'f Printer,
    cancel: CancellationToken,
}

/// How drafts are shown and approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plan,
    Brief,
    DryRun,
    ApproveAll,
    Terminal,
}

impl Mode {
    fn of(args: &ForgeArgs) -> Self {
        match args {
            ForgeArgs { plan: true, .. } => Mode::Plan,
            ForgeArgs { brief: true, .. } => Mode::Brief,
            ForgeArgs { dry_run: true, .. } => Mode::DryRun,
            ForgeArgs { approve_all: true, .. } => Mode::ApproveAll,
            _ => Mode::Terminal,
        }
    }
}

pub(crate) fn run(args: &ForgeArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    if args.tool.is_none() && !args.resume {
        return Err(Failure::invalid("missing tool name")
            .hint("run 'karat forge TOOL', or 'karat tools' to list tools")
            .hint("run 'karat forge --resume' to continue a saved session"));
    }
    let (environment, printer) = (surface.environment, surface.printer.as_ref());
    let mode = Mode::of(args);
    let context = surface.context(&[])?;
    let tool = match (&args.tool, saved_sessions(&context.settings).as_slice()) {
        (Some(tool), _) => tool.clone(),
        (None, []) => {
            let error = Error::nothing_selected("no saved session");
            return Err(error.hint(Hint::StartForge { tool: None }).into());
        }
        (None, [only]) => only.tool.clone(),
        (None, several) => {
            printer.print(&sessions_text(several))?;
            return Err(Failure::nothing_selected("several sessions are saved")
                .hint("name the tool: karat forge TOOL --resume"));
        }
    };
    let request = ToolRequest { tool, tiers: args.tier, triggers: args.trigger.clone() };
    surface.run_interactive(async |cancel| {
        let inputs = match load_inputs(&request, mode != Mode::Plan, &context, &cancel).await? {
            LoadedInputs::Ready(inputs) => inputs,
            LoadedInputs::Vague(vague) => return Err(reject_description(&vague, printer)),
        };
        if let Some(description_warning) = &inputs.description_warning {
            show_description_warning(description_warning, printer);
        }
        // Checked after other errors, which a terminal would not fix.
        if mode == Mode::Terminal && !(environment.stdin_is_terminal && environment.stderr_is_terminal) {
            return Err(Failure::invalid("approving drafts needs a terminal")
                .hint("pass --plan, --brief or --dry-run to print the plan, the instructions or the drafts")
                .hint("in scripts, pass --approve-all to write drafts without review"));
        }
        let forge = Forge { args, context: &context, surface, environment, printer, cancel };
        match mode {
            Mode::Plan => forge.show_plan(&inputs),
            Mode::Brief => forge.show_brief(&inputs),
            Mode::DryRun => Box::pin(forge.dry_run(*inputs)).await,
            Mode::ApproveAll => Box::pin(forge.approve_all(*inputs)).await,
            Mode::Terminal => Box::pin(forge.run_terminal(*inputs)).await,
        }
    })
}

impl Forge<'_> {
    fn show_plan(&self, inputs: &ForgeInputs) -> Result<ExitStatus, Failure> {
        let plan = inputs.plan();
        let text = plan_text(&plan);
        if self.args.tier == Tiers::Both && plan.cases() > BATCH_SIZE {
            self.printer.note(
                "this plan gives full coverage; to start smaller, pass --tier golden or review only the first batches",
            );
        }
        self.print(&ForgeReport::of_plan(plan), &text)?;
        Ok(ExitStatus::Success)
    }

    fn show_brief(&self, inputs: &ForgeInputs) -> Result<ExitStatus, Failure> {
        let document = inputs.brief_document();
        let tool = &inputs.brief.tool.name;
        if inputs.has_too_few_triggers() {
            let phrases = counted(inputs.brief.triggers.len(), "trigger phrase");
            self.printer.warn(&format!(
                "{tool}: {phrases}, but golden cases need {MIN_TRIGGERS} to 5; pass --trigger 'PHRASE' for each, or add \
                 'triggerPhrases' to the registry"
            ));
        }
        match self.args.format {
            OutputFormat::Json => self.printer.print_json(&document)?,
            OutputFormat::Human => self.printer.print(&brief_text(&document, tool))?,
        }
        Ok(ExitStatus::Success)
    }

    async fn open(
        &self,
        inputs: ForgeInputs,
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
        Ok(Conversation::open(request, inputs, self.context, &self.cancel).await?)
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
            kind: args.drafter,
            model: args.model.clone(),
            traces,
            since,
            rating: args.rating.map(Into::into),
        }))
    }

    /// Returns the path of the overlap map, for display.
    fn overlap_map(&self) -> String {
        self.context.settings.display_path(&self.context.settings.overlap_map.path)
    }

    /// Prints the report as JSON, or the text.
    fn print(&self, report: &ForgeReport, text: &str) -> Result<(), Failure> {
        match self.args.format {
            OutputFormat::Json => self.printer.print_json(report),
            OutputFormat::Human => self.printer.print(text),
        }
    }
}

fn show_description_warning(description_warning: &DescriptionWarning, printer: &Printer) {
    let DescriptionWarning { tool, finding, corrected } = description_warning;
    printer.warn(&format!("{tool}: {} ({})", finding.message, finding.rule.name()));
    printer.print_wrapped("  ", &format!("suggested description: {corrected}"));
}

fn reject_description(vague: &VagueDescription, printer: &Printer) -> Failure {
    let VagueDescription { tool, location, findings, corrected } = vague;
    let location = location.as_ref().map(|location| format!(" ({location})")).unwrap_or_default();
    printer.failure(&Failure::invalid(format!(
        "{tool}{location}: The tool description is too vague for reliable eval generation. Fix the description first."
    )));
    for finding in findings {
        printer.print_wrapped("  ", &format!("{}: {}", finding.rule.name(), finding.message));
        printer.print_wrapped("    ", &finding.suggestion);
    }
    printer.print_wrapped("  ", &format!("suggested description: {corrected}"));
    let rules: Vec<String> = findings.iter().map(|finding| format!("\"{}\"", finding.rule.name())).collect();
    let silence = format!("{{\"silence\": {{\"{tool}\": [{}]}}}}", rules.join(", "));
    printer.print_wrapped("  ", &format!("to draft anyway, add this to karat.json: {silence}"));
    Failure::reported(ExitStatus::Invalid)
}
