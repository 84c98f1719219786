//! The conversation at the terminal: a batch at a time, and a person who decides.

use karat_core::exit::ExitStatus;
use karat_core::lint::Severity;
use karat_forge::session::Session;
use karat_report::forge::batch_text;
use karat_report::{ConsoleSettings, counted, printable};
use karat_workflows::forge::{
    Applied, Command, Conversation, MAX_TRIGGERS, MIN_TRIGGERS, Material, Mode, Refusal, Step,
};

use super::editor::{Edited, edit};
use super::scripted::resume_text;
use super::spinner::Spinner;
use super::typed_command::{TypedCommand, parse_command};
use super::view::batch_view;
use super::{Forge, plan_text};
use crate::args::ForgeTier;
use crate::ask::{self, NoAnswer};
use crate::failure::Failure;

const QUESTION: &str = "What now? (a approves all, ? lists more)";

const HELP: &str = "  a, a 1 3, a 2-4   approve all that can be approved, or some
  e 2               edit a case in your editor ($VISUAL, $EDITOR)
  r WORDS           have undecided cases drafted again as you say (by a model)
  r 2 WORDS         the same for one case
  g, g 2            have the undecided cases, or one, drafted again
  d 2               drop a case: it is not written
  w                 write what is approved so far, and go on
  s                 show the batch again
  n, b              the next batch, when all is decided; the batch before
  q                 leave; approved cases are kept or written, as you like";

/// Why a conversation came to an end before all was decided.
enum Ended {
    /// The person left, and everything was said.
    Silently,
    /// The person left.
    Left,
    Interrupted,
    Failed(Failure),
}

impl From<NoAnswer> for Ended {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::Left => Ended::Left,
            NoAnswer::Interrupted => Ended::Interrupted,
            NoAnswer::Broken(_) => Ended::Failed(no_answer.into()),
        }
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        match failure.status {
            ExitStatus::Interrupted => Ended::Interrupted,
            _ => Ended::Failed(failure),
        }
    }
}

/// What is shown before the next question.
enum Shown {
    Batch,
    /// These drafts of the batch.
    Drafts(Vec<String>),
    Nothing,
}

struct Terminal<'t, 'c> {
    forge: &'t Forge<'t>,
    conversation: &'t mut Conversation<'c>,
    shown: Shown,
    /// A heading stands over the first of several questions.
    asked_for_overlaps: bool,
    asked_for_triggers: bool,
}

impl Forge<'_> {
    pub(super) async fn converse(&self, material: Material) -> Result<ExitStatus, Failure> {
        let mode = Mode::Attended { resume: self.args.resume, restart: self.args.restart };
        let mut conversation = self.open(material, mode, self.args.approver.name(self.environment).ok()).await?;
        if let Some(session) = conversation.resumed() {
            self.note_resumed(session);
        }
        let mut terminal = Terminal {
            forge: self,
            conversation: &mut conversation,
            shown: Shown::Batch,
            asked_for_overlaps: false,
            asked_for_triggers: false,
        };
        let Err(ended) = terminal.run().await else { return self.finish(conversation) };
        // Nothing is kept before the session begins.
        let kept = conversation.session().map(|session| {
            let unwritten = counted(session.unwritten_count(), "approved case");
            format!("{unwritten} not written, {}", resume_text(&conversation))
        });
        if let (Ended::Left | Ended::Interrupted, Some(kept)) = (&ended, &kept) {
            self.printer.talk(&printable(kept));
        }
        match (ended, kept) {
            (Ended::Silently | Ended::Left, _) => Ok(ExitStatus::Success),
            (Ended::Interrupted, _) => Err(Failure::reported(ExitStatus::Interrupted)),
            (Ended::Failed(failure), Some(kept)) => Err(failure.hint(kept)),
            (Ended::Failed(failure), None) => Err(failure),
        }
    }

    fn note_resumed(&self, session: &Session) {
        let approved = session.approved_count();
        self.printer
            .note(&format!("going on with the session that was left, {approved} approved (--restart begins anew)"));
        if !self.args.trigger.is_empty() {
            self.printer.warn("--trigger has no effect on a session that has begun");
        }
        if self.args.tier != ForgeTier::Both {
            self.printer.warn("--tier has no effect on a session that has begun");
        }
    }
}

impl Terminal<'_, '_> {
    async fn run(&mut self) -> Result<(), Ended> {
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

    /// Asks what is to be known before the session begins; returns nothing where the question is to be asked again.
    fn ask(&mut self, question: &Step) -> Result<Option<Command>, Ended> {
        let printer = self.forge.printer;
        match question {
            Step::ConfirmDescription => {
                let goes_on = ask::yes_or_no("Draft cases all the same?", false)?;
                if goes_on { Ok(Some(Command::Proceed)) } else { Err(Ended::Silently) }
            }
            Step::ConfirmChanges { changes } => {
                printer.warn("this changed since the drafts were made, and the plan is still the one of then:");
                for change in changes {
                    printer.talk(&format!("  {}", printable(change)));
                }
                if ask::yes_or_no("Go on with these drafts all the same?", false)? {
                    return Ok(Some(Command::Proceed));
                }
                printer.note("the session is kept as it is; --restart drafts anew");
                Err(Ended::Silently)
            }
            Step::DeclareOverlap { tool, reason } => Ok(Some(self.ask_for_overlap(tool, reason)?)),
            Step::AddTriggers => Ok(Some(self.ask_for_trigger()?)),
            _ => {
                let name = ask::line("Your name, which is recorded with what you approve:")?.trim().to_owned();
                Ok(Some(name).filter(|name| !name.is_empty()).map(|name| Command::NameApprover { name }))
            }
        }
    }

    fn ask_for_overlap(&mut self, other: &str, reason: &str) -> Result<Command, NoAnswer> {
        let printer = self.forge.printer;
        let (name, shown) = (printable(self.conversation.tool()), printable(other));
        if !std::mem::replace(&mut self.asked_for_overlaps, true) {
            printer.talk(&format!("The overlap map says nothing of {name}. It may be taken for:"));
        }
        printer.talk(&printable(&format!("  {other}: {reason}")));
        let declare = ask::yes_or_no(&format!("Declare that {name} and {shown} overlap?"), true)?;
        if declare && let Some(finding) = self.conversation.lacks_disambiguation(other) {
            printer.warn(&finding.message);
            printer.talk(&format!("  {}", printable(&finding.suggestion)));
        }
        Ok(Command::DeclareOverlap { declare })
    }

    fn ask_for_trigger(&mut self) -> Result<Command, NoAnswer> {
        if !std::mem::replace(&mut self.asked_for_triggers, true) {
            let name = printable(self.conversation.tool());
            self.forge.printer.talk(&format!(
                "What does a person say who means {name}? {MIN_TRIGGERS} to {MAX_TRIGGERS} phrases, an empty line ends them."
            ));
        }
        let phrase = ask::line(&format!("Phrase {}:", self.conversation.triggers().len() + 1))?;
        Ok(match phrase.trim() {
            "" => Command::EndTriggers,
            phrase => Command::AddTrigger { phrase: phrase.to_owned() },
        })
    }

    fn ask_for_plan(&self) -> Result<Command, Ended> {
        let plan = self.conversation.session().map(|session| plan_text(&session.plan)).unwrap_or_default();
        self.forge.printer.talk(plan.trim_end());
        if ask::yes_or_no("Proceed?", true)? { Ok(Command::ApprovePlan) } else { Err(Ended::Left) }
    }

    /// Shows what is new, and asks what to do; returns nothing where only the terminal has to do something.
    async fn ask_for_decision(&mut self) -> Result<Option<Command>, Ended> {
        match std::mem::replace(&mut self.shown, Shown::Nothing) {
            Shown::Batch => self.show(None),
            Shown::Drafts(ids) => self.show(Some(&ids)),
            Shown::Nothing => {}
        }
        let printer = self.forge.printer;
        let typed = match parse_command(&ask::line(QUESTION)?) {
            Ok(typed) => typed,
            Err(what) => {
                printer.talk(&printable(&what));
                return Ok(None);
            }
        };
        Ok(match typed {
            TypedCommand::Approve(which) => Some(Command::Approve { which }),
            TypedCommand::Drop(numbers) => Some(Command::Drop { numbers }),
            TypedCommand::Regenerate(which) => Some(Command::Redraft { which, words: None }),
            TypedCommand::Revise(which, words) => Some(Command::Redraft { which, words: Some(words) }),
            TypedCommand::Write => Some(Command::Write),
            TypedCommand::Next => Some(Command::Next),
            TypedCommand::Back => Some(Command::Back),
            TypedCommand::Edit(number) => self.edit(number)?,
            TypedCommand::Show => {
                self.shown = Shown::Batch;
                None
            }
            TypedCommand::Help => {
                printer.talk(HELP);
                None
            }
            TypedCommand::Quit => {
                self.write_before_leaving().await?;
                return Err(Ended::Left);
            }
        })
    }

    async fn write_before_leaving(&mut self) -> Result<(), Ended> {
        let count = self.conversation.session().map_or(0, Session::unwritten_count);
        if count > 0 && ask::yes_or_no(&format!("Write the {} now?", counted(count, "approved case")), true)? {
            self.apply(Command::Write).await?;
        }
        Ok(())
    }

    /// Applies a command and prints what came of it.
    async fn apply(&mut self, command: Command) -> Result<(), Ended> {
        let printer = self.forge.printer;
        let place = |conversation: &Conversation<'_>| conversation.session().map(Session::place);
        let before = place(self.conversation);
        let step = self.conversation.next();
        let dropped = if let Command::Drop { numbers } = &command { numbers.clone() } else { Vec::new() };
        let mut spinner = Spinner::new(self.forge);
        let applied = self.conversation.apply(command, &mut spinner, &self.forge.cancel).await;
        drop(spinner);
        match applied.map_err(Failure::from)? {
            // The drafts that were run are still to be shown.
            Applied::Done if step == Step::Verify => {}
            Applied::Done if dropped.is_empty() => self.shown = Shown::Batch,
            Applied::Done => {
                printer.note(&format!("dropped: {}", numbers_text(&dropped)));
                self.note_open();
            }
            Applied::Approved { refused } => {
                if !refused.is_empty() {
                    let numbers = numbers_text(&refused);
                    printer.warn(&format!(
                        "not approved, since there are errors: {numbers} (edit, draft anew or drop them)"
                    ));
                }
                self.note_open();
            }
            Applied::Changed { ids } => self.shown = Shown::Drafts(ids),
            Applied::Wrote { files } => {
                if files.is_empty() {
                    printer.talk("nothing to write: no case is approved that is not in its file");
                }
                for file in files {
                    printer.note(&format!("{}: {} in {}", file.tier, counted(file.total, "case"), file.path));
                }
            }
            Applied::NotDrafted(error) => {
                printer.failure(&error.into());
                if step == Step::Draft && !ask::yes_or_no("Try again?", true)? {
                    return Err(Ended::Left);
                }
            }
            Applied::Refused(refusal) => printer.talk(&printable(&refusal_text(&refusal))),
        }
        if step == Step::Write || before != place(self.conversation) {
            self.shown = Shown::Batch;
        }
        Ok(())
    }

    /// Says what is still to be decided after some of it was.
    fn note_open(&self) {
        let Some(batch) = self.conversation.session().and_then(Session::batch) else { return };
        let open = batch.open_numbers();
        if !open.is_empty() && open.len() < batch.entries.len() {
            self.forge.printer.note(&format!("still open: {}", numbers_text(&open)));
        }
    }

    /// Lets the person edit a draft; returns nothing where it stays as it was.
    fn edit(&self, number: usize) -> Result<Option<Command>, NoAnswer> {
        let (environment, printer) = (self.forge.environment, self.forge.printer);
        let Some(session) = self.conversation.session() else { return Ok(None) };
        let entry = match session.editable(number) {
            Ok(entry) => entry,
            Err(refusal) => {
                printer.talk(&printable(&refusal.to_string()));
                return Ok(None);
            }
        };
        let problems = |case: &serde_json::Value| -> Vec<String> {
            let findings = self.conversation.examine(number, case).unwrap_or_default().into_iter();
            let errors = findings.filter(|finding| finding.severity == Severity::Error);
            errors.map(|finding| format!("{} {}", finding.pointer, finding.message).trim().to_owned()).collect()
        };
        let case = entry.draft.as_ref().and_then(|draft| draft.case.as_ref());
        Ok(match edit(case, &entry.slot.id, environment, printer, &problems)? {
            Edited::Case(case) => Some(Command::Replace { number, case }),
            Edited::Unchanged => None,
        })
    }

    /// Shows the batch, or these of its drafts.
    fn show(&self, only: Option<&[String]>) {
        if let Some(batch) = batch_view(self.conversation, only) {
            let printer = self.forge.printer;
            let settings = ConsoleSettings { palette: printer.stderr_palette, ..printer.console() };
            printer.talk(&batch_text(&batch, settings));
        }
    }
}

fn numbers_text(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

fn refusal_text(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NoOtherDraft | Refusal::WordsNotUnderstood => {
            format!("{refusal}: edit the case (e NUMBER), or name a model with --model")
        }
        Refusal::TooFewTriggers | Refusal::KnownTrigger => format!("  {refusal}"),
        refusal => refusal.to_string(),
    }
}
