//! Approval in the terminal, batch by batch.

use karat_core::exit::ExitStatus;
use karat_forge::DraftFinding;
use karat_forge::session::{CaseSelection, Session};
use karat_lints::Severity;
use karat_report::forge::{
    batch_text, batch_text_within, batch_view, numbers_text, overlaps_text, plan_notes, plan_question, plan_text,
    refusal_text,
};
use karat_report::{ConsoleSettings, counted, printable};
use karat_workflows::forge::{
    Command, CommandOutcome, Conversation, ForgeInputs, MAX_TRIGGERS, MIN_TRIGGERS, Mode, Step, Tiers,
};

use super::Forge;
use super::editor::{EditOutcome, edit};
use super::scripted::resume_text;
use super::spinner::Spinner;
use super::typed_command::{TypedCommand, parse_command};
use crate::ask::{self, NoAnswer};
use crate::failure::Failure;

const QUESTION: &str = "What now? (a to approve all, ? for help)";

const HELP: &str = "  a, a 1 3, a 2-4   approve all valid cases, or some
  e 2               edit a case in your editor ($VISUAL, $EDITOR)
  r TEXT            have a model revise the undecided cases
  r 2 TEXT          have a model revise one case
  g, g 2            draft the undecided cases, or one, again
  d 2               drop a case: it is not written
  w                 write the approved cases, and continue
  s, s 2            show the batch again, or a case in full
  n, b              next batch (when all cases are decided), previous batch
  q                 quit; approved cases are saved or written";

/// Why a session ended before all cases were decided.
enum SessionEnd {
    /// The user quit, and needs no further message.
    Silently,
    Quit,
    Interrupted,
    Failed(Failure),
}

impl From<NoAnswer> for SessionEnd {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::Cancelled => SessionEnd::Quit,
            NoAnswer::Interrupted => SessionEnd::Interrupted,
            NoAnswer::Failed(_) => SessionEnd::Failed(no_answer.into()),
        }
    }
}

impl From<Failure> for SessionEnd {
    fn from(failure: Failure) -> Self {
        match failure.status {
            ExitStatus::Interrupted => SessionEnd::Interrupted,
            _ => SessionEnd::Failed(failure),
        }
    }
}

/// Output before the next prompt.
enum Redraw {
    Batch,
    /// Some drafts of the batch.
    Drafts(Vec<String>),
    Nothing,
}

struct Terminal<'t, 'c> {
    forge: &'t Forge<'t>,
    conversation: &'t mut Conversation<'c>,
    redraw: Redraw,
    /// Whether the heading of these questions was printed.
    asked_for_overlaps: bool,
    asked_for_triggers: bool,
}

impl Forge<'_> {
    pub(super) async fn run_terminal(&self, inputs: ForgeInputs) -> Result<ExitStatus, Failure> {
        let mode = Mode::Attended { resume: self.args.resume, restart: self.args.restart };
        let mut conversation = self.open(inputs, mode, self.args.author.name(self.environment).ok()).await?;
        if let Some(session) = conversation.resumed() {
            self.note_resumed(session);
        }
        let mut terminal = Terminal {
            forge: self,
            conversation: &mut conversation,
            redraw: Redraw::Batch,
            asked_for_overlaps: false,
            asked_for_triggers: false,
        };
        let Err(ended) = Box::pin(terminal.run()).await else { return self.finish(conversation) };
        // Before the session starts, nothing is saved.
        let saved = conversation.session().map(|session| {
            let resume = resume_text(&conversation);
            match session.unwritten_count() {
                0 => format!("session {resume}"),
                count => format!("{} not written, {resume}", counted(count, "approved case")),
            }
        });
        if let (SessionEnd::Quit | SessionEnd::Interrupted, Some(saved)) = (&ended, &saved) {
            self.printer.print_wrapped("", saved);
        }
        match (ended, saved) {
            (SessionEnd::Silently | SessionEnd::Quit, _) => Ok(ExitStatus::Success),
            (SessionEnd::Interrupted, _) => Err(Failure::reported(ExitStatus::Interrupted)),
            (SessionEnd::Failed(failure), Some(saved)) => Err(failure.hint(saved)),
            (SessionEnd::Failed(failure), None) => Err(failure),
        }
    }

    fn note_resumed(&self, session: &Session) {
        let approved = session.approved_count();
        self.printer.note(&format!("continuing the saved session, {approved} approved (pass --restart to start over)"));
        if !self.args.trigger.is_empty() {
            self.printer.warn("--trigger has no effect on a saved session");
        }
        if self.args.tier != Tiers::Both {
            self.printer.warn("--tier has no effect on a saved session");
        }
    }
}

impl Terminal<'_, '_> {
    async fn run(&mut self) -> Result<(), SessionEnd> {
        loop {
            let command = match self.conversation.next() {
                Step::Done => return Ok(()),
                Step::ApprovePlan => self.ask_for_plan()?,
                Step::Draft => Command::Draft,
                Step::Verify => Command::Verify,
                Step::Write => Command::Write,
                Step::Decide => match self.ask_for_decision().await? {
                    Some(command) => command,
                    None => continue,
                },
                question => match self.ask(&question)? {
                    Some(command) => command,
                    None => continue,
                },
            };
            self.apply(command).await?;
        }
    }

    /// Asks a question of the setup; returns `None` to ask it again.
    fn ask(&mut self, question: &Step) -> Result<Option<Command>, SessionEnd> {
        let printer = self.forge.printer;
        match question {
            Step::ConfirmDescription => {
                let proceed = ask::yes_or_no("Draft cases anyway?", false)?;
                if proceed { Ok(Some(Command::Proceed)) } else { Err(SessionEnd::Silently) }
            }
            Step::ConfirmChanges { changes } => {
                printer.warn("these changed since the cases were drafted, and the plan is not updated:");
                for change in changes {
                    printer.print_wrapped("  ", change);
                }
                if ask::yes_or_no("Continue with these drafts anyway?", false)? {
                    return Ok(Some(Command::Proceed));
                }
                printer.note("the session is unchanged; pass --restart to draft again");
                Err(SessionEnd::Silently)
            }
            Step::DeclareOverlap { tool, reason } => Ok(Some(self.ask_for_overlap(tool, reason)?)),
            Step::AddTriggers => Ok(Some(self.ask_for_trigger()?)),
            _ => {
                let name = ask::line("Your name, recorded with the cases you approve:")?.trim().to_owned();
                Ok(Some(name).filter(|name| !name.is_empty()).map(|name| Command::NameApprover { name }))
            }
        }
    }

    fn ask_for_overlap(&mut self, other: &str, reason: &str) -> Result<Command, NoAnswer> {
        let printer = self.forge.printer;
        let (name, shown) = (printable(self.conversation.tool()), printable(other));
        if !std::mem::replace(&mut self.asked_for_overlaps, true) {
            printer.print_wrapped("", &format!("The overlap map has no entry for {name}. It may overlap with:"));
        }
        printer.print_wrapped("  ", &format!("{other}: {reason}"));
        let declare = ask::yes_or_no(&format!("Declare that {name} and {shown} overlap?"), true)?;
        if declare && let Some(finding) = self.conversation.lacks_disambiguation(other) {
            printer.warn(&finding.message);
            printer.print_wrapped("  ", &finding.suggestion);
        }
        Ok(Command::DeclareOverlap { declare })
    }

    fn ask_for_trigger(&mut self) -> Result<Command, NoAnswer> {
        if !std::mem::replace(&mut self.asked_for_triggers, true) {
            let name = printable(self.conversation.tool());
            let text = format!(
                "Which phrases should trigger {name}? Enter {MIN_TRIGGERS} to {MAX_TRIGGERS}, then an empty line."
            );
            self.forge.printer.print_wrapped("", &text);
            for (index, known) in self.conversation.triggers().iter().enumerate() {
                self.forge.printer.print_wrapped("", &format!("Phrase {}: {} (given)", index + 1, printable(known)));
            }
        }
        let phrase = ask::line(&format!("Phrase {}:", self.conversation.triggers().len() + 1))?;
        Ok(match phrase.trim() {
            "" => Command::EndTriggers,
            phrase => Command::AddTrigger { phrase: phrase.to_owned() },
        })
    }

    fn ask_for_plan(&self) -> Result<Command, SessionEnd> {
        let Some(session) = self.conversation.session() else { return Ok(Command::ApprovePlan) };
        let printer = self.forge.printer;
        printer.print_stderr(plan_text(&session.plan).trim_end());
        for note in plan_notes(session) {
            printer.print_wrapped("", &note);
        }
        if ask::yes_or_no(&plan_question(session), true)? { Ok(Command::ApprovePlan) } else { Err(SessionEnd::Quit) }
    }

    /// Shows new drafts and asks for a command; returns `None` if the command only concerns the terminal.
    async fn ask_for_decision(&mut self) -> Result<Option<Command>, SessionEnd> {
        match std::mem::replace(&mut self.redraw, Redraw::Nothing) {
            Redraw::Batch => self.show(None),
            Redraw::Drafts(ids) => self.show(Some(&ids)),
            Redraw::Nothing => {}
        }
        let printer = self.forge.printer;
        let typed = match parse_command(&ask::line(QUESTION)?) {
            Ok(typed) => typed,
            Err(message) => {
                printer.print_wrapped("", &message);
                return Ok(None);
            }
        };
        Ok(match typed {
            TypedCommand::Approve(selection) => Some(Command::Approve { selection }),
            TypedCommand::Drop(numbers) => Some(Command::Drop { numbers }),
            TypedCommand::Regenerate(selection) => Some(Command::Redraft { selection, instructions: None }),
            TypedCommand::Revise(selection, text) => Some(Command::Redraft { selection, instructions: Some(text) }),
            TypedCommand::Write => Some(Command::Write),
            TypedCommand::Next => Some(Command::Next),
            TypedCommand::Back => Some(Command::Back),
            TypedCommand::Edit(number) => self.edit(number)?,
            TypedCommand::Show(selection) => {
                self.redraw = self.selected(&selection);
                None
            }
            TypedCommand::Help => {
                printer.print_stderr(HELP);
                None
            }
            TypedCommand::Quit => {
                self.write_before_quitting().await?;
                return Err(SessionEnd::Quit);
            }
        })
    }

    async fn write_before_quitting(&mut self) -> Result<(), SessionEnd> {
        let count = self.conversation.session().map_or(0, Session::unwritten_count);
        if count > 0 && ask::yes_or_no(&format!("Write the {} now?", counted(count, "approved case")), true)? {
            self.apply(Command::Write).await?;
        }
        Ok(())
    }

    /// Applies a command and prints the result.
    async fn apply(&mut self, command: Command) -> Result<(), SessionEnd> {
        let printer = self.forge.printer;
        let position = |conversation: &Conversation<'_>| conversation.session().map(Session::position);
        let before = position(self.conversation);
        let step = self.conversation.next();
        let dropped = if let Command::Drop { numbers } = &command { numbers.clone() } else { Vec::new() };
        let mut spinner = Spinner::new(self.forge);
        let applied = self.conversation.apply(command, &mut spinner, &self.forge.cancel).await;
        drop(spinner);
        match applied.map_err(Failure::from)? {
            // The batch with the evidence is still to be shown.
            CommandOutcome::Done if step == Step::Verify => {}
            CommandOutcome::Done if dropped.is_empty() => self.redraw = Redraw::Batch,
            CommandOutcome::Done => {
                printer.note(&format!("dropped: {}", numbers_text(&dropped)));
                self.note_undecided();
            }
            CommandOutcome::Approved { approved, refused } => {
                if !approved.is_empty() {
                    printer.note(&format!("approved: {}", numbers_text(&approved)));
                }
                if !refused.is_empty() {
                    let numbers = numbers_text(&refused);
                    printer.warn(&format!("not approved because of errors: {numbers} (edit, regenerate or drop them)"));
                }
                self.note_undecided();
            }
            CommandOutcome::Changed { ids } => self.redraw = Redraw::Drafts(ids),
            CommandOutcome::Wrote { files, overlaps_added } => {
                if !overlaps_added.is_empty() {
                    let map = self.forge.overlap_map();
                    printer.note(&overlaps_text(&map, self.conversation.tool(), &overlaps_added));
                }
                if files.is_empty() {
                    printer.print_stderr("nothing to write: all approved cases are in their files");
                }
                for file in files {
                    printer.note(&format!("{}: {} in {}", file.tier, counted(file.total, "case"), file.path));
                }
            }
            CommandOutcome::DraftingFailed(error) => {
                printer.failure(&error.into());
                if step == Step::Draft && !ask::yes_or_no("Try again?", true)? {
                    return Err(SessionEnd::Quit);
                }
            }
            CommandOutcome::Refused(refusal) => printer.print_wrapped("", &refusal_text(&refusal)),
        }
        if step == Step::Write || before != position(self.conversation) {
            self.redraw = Redraw::Batch;
        }
        Ok(())
    }

    /// Returns the effect of `s`: redraw the batch, or the cases with these numbers.
    fn selected(&self, selection: &CaseSelection) -> Redraw {
        let CaseSelection::Some(numbers) = selection else { return Redraw::Batch };
        let entries = self.conversation.session().and_then(Session::batch).map(|batch| batch.entries.as_slice());
        let (mut ids, mut unknown) = (Vec::new(), Vec::new());
        for number in numbers {
            match number.checked_sub(1).and_then(|index| entries.unwrap_or_default().get(index)) {
                Some(entry) => ids.push(entry.slot.id.clone()),
                None => unknown.push(*number),
            }
        }
        if !unknown.is_empty() {
            self.forge.printer.print_stderr(&format!("no case {} in this batch", numbers_text(&unknown)));
        }
        if ids.is_empty() { Redraw::Nothing } else { Redraw::Drafts(ids) }
    }

    /// Lists the undecided cases of a partly decided batch.
    fn note_undecided(&self) {
        let Some(batch) = self.conversation.session().and_then(Session::batch) else { return };
        let open = batch.open_numbers();
        if !open.is_empty() && open.len() < batch.entries.len() {
            self.forge.printer.note(&format!("still undecided: {}", numbers_text(&open)));
        }
    }

    /// Opens a draft in the editor; returns `None` if it is unchanged.
    fn edit(&self, number: usize) -> Result<Option<Command>, NoAnswer> {
        let (environment, printer) = (self.forge.environment, self.forge.printer);
        let Some(session) = self.conversation.session() else { return Ok(None) };
        let entry = match session.editable(number) {
            Ok(entry) => entry,
            Err(refusal) => {
                printer.print_wrapped("", &refusal.to_string());
                return Ok(None);
            }
        };
        let problems = |case: &serde_json::Value| -> Vec<String> {
            let findings = self.conversation.check_draft(number, case).unwrap_or_default().into_iter();
            let errors = findings.filter(|finding| finding.severity == Severity::Error);
            let text = |finding: DraftFinding| match finding.pointer.as_str() {
                "" => finding.message,
                path => format!("{path}: {}", finding.message),
            };
            errors.map(text).collect()
        };
        let case = entry.draft.as_ref().and_then(|draft| draft.case.as_ref());
        Ok(match edit(case, &entry.slot.id, environment, printer, &problems)? {
            EditOutcome::Case(case) => Some(Command::Replace { number, case }),
            EditOutcome::Unchanged => None,
        })
    }

    /// Shows the batch, or some of its drafts.
    fn show(&self, only: Option<&[String]>) {
        if let Some(batch) = batch_view(self.conversation, only) {
            let printer = self.forge.printer;
            let settings = ConsoleSettings { palette: printer.stderr_palette, ..printer.console() };
            // Leaves room for the prompt. Chosen cases are always shown in full.
            let rows = self.forge.environment.stderr_rows.filter(|_| only.is_none()).map(|rows| rows.saturating_sub(2));
            printer.print_stderr(&match rows {
                Some(rows) => batch_text_within(&batch, settings, rows),
                None => batch_text(&batch, settings),
            });
        }
    }
}
