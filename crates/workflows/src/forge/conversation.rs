//! The drafting conversation, as a state machine.

use std::collections::VecDeque;
use std::sync::Arc;

use karat_cases::{Case, Tier};
use karat_forge::session::{Approver, Basis, CaseSelection, DeclaredOverlap, Entry, Session, Stage};
use karat_forge::{Draft, DraftFinding, Drafter, Request, Revision, Slot, check_draft};
use karat_json::text::counted;
use karat_tools::contract::ContractFinding;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::drafters::{ChosenDrafter, FileDrafts, choose_drafter};
use super::inputs::ForgeInputs;
use super::protocol::{Command, CommandOutcome, ConversationRequest, Event, Mode, Refusal, Step};
use super::report::Summary;
use super::session_file::SessionFile;
use super::verifier::{EvidenceMap, Verifier};
use super::writing::WriteOutcome;
use super::{MAX_TRIGGERS, MIN_TRIGGERS};
use crate::cancel::run_until_cancelled;
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::event::EventSink;
use crate::hint::Hint;

pub struct Conversation<'c> {
    pub(super) context: &'c Context<'c>,
    pub(super) mode: Mode,
    inputs: ForgeInputs,
    drafter: Arc<dyn Drafter>,
    drafted: Option<FileDrafts>,
    verifier: Option<Verifier>,
    approver: Option<String>,
    /// `None` in a dry run.
    pub(super) file: Option<SessionFile>,
    /// Questions to ask before the session starts.
    questions: VecDeque<Step>,
    declared: Vec<DeclaredOverlap>,
    /// The saved session, until it is resumed.
    saved: Option<Session>,
    is_resumed: bool,
    session: Option<Session>,
    evidence_map: EvidenceMap,
    written: WriteOutcome,
}

impl<'c> Conversation<'c> {
    /// Chooses the drafter, and resumes or starts a session once there are no open questions.
    pub async fn open(
        request: ConversationRequest,
        inputs: ForgeInputs,
        context: &'c Context<'c>,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let ConversationRequest { drafts, verify, mode, accept_description, approver } = request;
        let needs_confirmation = inputs.description_warning.is_some() && !accept_description && mode != Mode::DryRun;
        if needs_confirmation && matches!(mode, Mode::Unattended { resume: false, .. }) {
            return Err(Error::invalid("the description does not say when to use the tool")
                .hint("fix the description, or pass --yes to continue anyway"));
        }
        let preparing = async {
            let chosen = choose_drafter(drafts, &inputs, context).await?;
            let verifier = if verify { Some(Verifier::new(context).await?) } else { None };
            Ok((chosen, verifier))
        };
        let (ChosenDrafter { drafter, drafted }, verifier) = Box::pin(run_until_cancelled(cancel, preparing)).await?;
        let file = match mode {
            Mode::DryRun => None,
            _ => Some(SessionFile::open(&inputs.brief.tool.name, &context.settings)?),
        };
        let mut conversation = Self {
            context,
            mode,
            inputs,
            drafter,
            drafted,
            verifier,
            approver,
            file,
            questions: needs_confirmation.then_some(Step::ConfirmDescription).into_iter().collect(),
            declared: Vec::new(),
            saved: None,
            is_resumed: false,
            session: None,
            evidence_map: EvidenceMap::new(),
            written: WriteOutcome::default(),
        };
        conversation.prepare()?;
        if conversation.verifier.is_none() && conversation.saved.as_ref().is_some_and(|session| session.verify) {
            context.notices.note("drafts are verified, as when the session was started");
            let preparing = Verifier::new(context);
            conversation.verifier = Some(Box::pin(run_until_cancelled(cancel, preparing)).await?);
        }
        conversation.start_when_ready()?;
        Ok(conversation)
    }

    /// Loads the saved session and collects the questions to ask.
    fn prepare(&mut self) -> Result<(), Error> {
        let (resume, is_attended) = match self.mode {
            Mode::DryRun => (false, false),
            Mode::Unattended { resume, .. } => (resume, false),
            Mode::Attended { resume, .. } => (resume, true),
        };
        let tool = self.inputs.brief.tool.name.clone();
        match self.read_saved()? {
            Some(_) if !is_attended && !resume => {
                return Err(Error::invalid(format!("a session for '{tool}' is already saved"))
                    .hint(Hint::ResumeOrRestartForge { tool }));
            }
            Some(session) => self.resume(session, is_attended)?,
            None if resume => {
                let message = format!("no saved session for '{tool}'");
                return Err(Error::nothing_selected(message).hint(Hint::StartForge { tool: Some(tool) }));
            }
            None if is_attended => self.queue_questions(),
            None => self.require_triggers()?,
        }
        if is_attended && self.approver.is_none() {
            self.questions.push_back(Step::NameApprover);
        }
        Ok(())
    }

    fn read_saved(&self) -> Result<Option<Session>, Error> {
        let Some(file) = &self.file else { return Ok(None) };
        if let Mode::Attended { restart: true, .. } | Mode::Unattended { restart: true, .. } = self.mode {
            // Also discard a session that cannot be read.
            let unwritten = file.read().ok().flatten().map_or(0, |session| session.unwritten_count());
            if unwritten > 0 {
                let warning = format!("discarded {} not yet written", counted(unwritten, "approved case"));
                self.context.notices.warn(&warning);
            }
            file.remove()?;
            return Ok(None);
        }
        let session = file.read()?;
        match session {
            Some(session) if self.drafted.is_some() => {
                Err(Error::invalid("cannot use --drafts: a session for this tool is already saved")
                    .hint(Hint::ResumeForge { tool: session.tool.clone() })
                    .hint(Hint::RestartForgeWithDrafts { tool: session.tool }))
            }
            session => Ok(session),
        }
    }

    fn resume(&mut self, session: Session, is_attended: bool) -> Result<(), Error> {
        self.inputs = self.inputs.with_declared(&session.declared);
        self.inputs.brief.triggers.clone_from(&session.triggers);
        let changes = session.basis.changes(&Basis::new(&self.inputs.brief));
        if !changes.is_empty() && !is_attended {
            return Err(Error::invalid(format!("changed since the drafts were made: {}", changes.join("; ")))
                .hint("pass --restart to draft again; in a terminal, --resume asks whether to continue"));
        }
        if !changes.is_empty() {
            self.questions.push_back(Step::ConfirmChanges { changes });
        }
        // Confirmed when the session was started; a change of the description is asked about above.
        self.questions.retain(|question| *question != Step::ConfirmDescription);
        self.saved = Some(session);
        self.is_resumed = true;
        Ok(())
    }

    fn queue_questions(&mut self) {
        // Labeled cases cover overlaps, so overlaps are declared only if labeled cases are drafted.
        let has_labeled = self.inputs.tiers.includes(Tier::Labeled);
        let proposals = if has_labeled { self.inputs.proposals() } else { Vec::new() };
        let questions = proposals.into_iter().map(|(tool, reason)| Step::DeclareOverlap { tool, reason });
        self.questions.extend(questions);
        if self.drafted.is_none() && self.inputs.brief.triggers.len() < MIN_TRIGGERS {
            self.questions.push_back(Step::AddTriggers);
        }
    }

    fn require_triggers(&self) -> Result<(), Error> {
        let count = self.inputs.brief.triggers.len();
        if self.drafted.is_some() || count >= MIN_TRIGGERS {
            return Ok(());
        }
        let name = &self.inputs.brief.tool.name;
        let phrases = counted(count, "trigger phrase");
        Err(Error::invalid(format!("'{name}' has {phrases}; at least {MIN_TRIGGERS} are required")).hint(
            "add phrases that should trigger the tool: --trigger 'PHRASE' (3 to 5 times), or 'triggerPhrases' in the \
             registry",
        ))
    }

    /// Starts a session, or resumes the saved one, once there are no open questions.
    fn start_when_ready(&mut self) -> Result<(), Error> {
        if !self.questions.is_empty() || self.session.is_some() {
            return Ok(());
        }
        let mut session = if let Some(mut session) = self.saved.take() {
            session.basis = Basis::new(&self.inputs.brief);
            if matches!(self.mode, Mode::Attended { .. }) {
                session.batch_open_slots(self.drafter.as_ref());
            }
            session
        } else {
            self.inputs = self.inputs.with_declared(&self.declared);
            let mut session = self.start_session();
            session.declared.clone_from(&self.declared);
            session
        };
        session.verify |= self.verifier.is_some();
        let is_done = session.stage() == Stage::Done;
        self.session = Some(session);
        if is_done { Ok(()) } else { self.save() }
    }

    fn start_session(&mut self) -> Session {
        let (brief, plan, drafter) = (&self.inputs.brief, self.inputs.plan(), self.drafter.as_ref());
        match &self.drafted {
            Some(FileDrafts { drafts, open }) => Session::with_drafts(brief, plan, drafts, open.clone(), drafter),
            None => Session::new(brief, self.inputs.plan(), self.inputs.slots(&plan), drafter),
        }
    }

    pub fn next(&self) -> Step {
        if let Some(question) = self.questions.front() {
            return question.clone();
        }
        match self.session.as_ref().map_or(Stage::Done, Session::stage) {
            Stage::ApprovePlan => Step::ApprovePlan,
            Stage::Draft => Step::Draft,
            Stage::Decide if self.verifier.is_some() && !self.unverified().is_empty() => Step::Verify,
            Stage::Decide => Step::Decide,
            Stage::Write(_) => Step::Write,
            Stage::Done => Step::Done,
        }
    }

    /// Applies a command and saves the session.
    pub async fn apply(
        &mut self,
        command: Command,
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<CommandOutcome, Error> {
        let step = self.next();
        let applied = if self.questions.is_empty() {
            self.execute(step, command, events, cancel).await
        } else {
            self.answer(&step, command)
        };
        let applied = applied.or_else(|failure| match failure {
            CommandFailure::Refused(refusal) => Ok(CommandOutcome::Refused(refusal)),
            CommandFailure::Drafting(error) if error.kind != ErrorKind::Cancelled => {
                Ok(CommandOutcome::DraftingFailed(error))
            }
            CommandFailure::Drafting(error) | CommandFailure::Other(error) => Err(error),
        })?;
        self.start_when_ready()?;
        if matches!(applied, CommandOutcome::Approved { .. } | CommandOutcome::Changed { .. } | CommandOutcome::Done) {
            self.save()?;
        }
        Ok(applied)
    }

    fn answer(&mut self, question: &Step, command: Command) -> Result<CommandOutcome, CommandFailure> {
        match (question, command) {
            (Step::ConfirmDescription | Step::ConfirmChanges { .. }, Command::Proceed) => {}
            (Step::DeclareOverlap { tool, reason }, Command::DeclareOverlap { declare }) => {
                let declared = DeclaredOverlap { tool: tool.clone(), reason: Some(reason.clone()) };
                self.declared.extend(declare.then_some(declared));
            }
            (Step::AddTriggers, Command::AddTrigger { phrase }) => {
                let (triggers, phrase) = (&mut self.inputs.brief.triggers, phrase.trim());
                if triggers.iter().any(|known| known.eq_ignore_ascii_case(phrase)) {
                    return Err(Refusal::DuplicateTrigger.into());
                }
                triggers.push(phrase.to_owned());
                if triggers.len() < MAX_TRIGGERS {
                    return Ok(CommandOutcome::Done);
                }
            }
            (Step::AddTriggers, Command::EndTriggers) => {
                if self.inputs.brief.triggers.len() < MIN_TRIGGERS {
                    return Err(Refusal::TooFewTriggers.into());
                }
            }
            (Step::NameApprover, Command::NameApprover { name }) => {
                if name.trim().is_empty() {
                    return Err(Refusal::EmptyName.into());
                }
                self.approver = Some(name.trim().to_owned());
            }
            _ => return Err(Refusal::UnavailableCommand.into()),
        }
        self.questions.pop_front();
        Ok(CommandOutcome::Done)
    }

    async fn execute(
        &mut self,
        step: Step,
        command: Command,
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<CommandOutcome, CommandFailure> {
        let approver = self.approver.clone().unwrap_or_default();
        let time = self.context.clock.now().to_string();
        let session = self.session.as_mut().ok_or(Refusal::UnavailableCommand)?;
        let can_decide = matches!(step, Step::Decide | Step::Verify);
        match command {
            Command::ApprovePlan if step == Step::ApprovePlan => session.approve_plan(),
            Command::Draft if step == Step::Draft => {
                let slots = session.batch().map(karat_forge::session::Batch::slots_without_draft).unwrap_or_default();
                self.draft(&slots, 0, None, events, cancel).await?;
            }
            Command::Verify if step == Step::Verify => self.verify(events, cancel).await?,
            Command::Approve { selection } if can_decide => {
                let mut numbers = unapproved_drafts(session, &selection);
                let refused = session.approve(&selection, Approver { name: &approver, time: &time })?;
                numbers.retain(|number| !refused.contains(number));
                return Ok(CommandOutcome::Approved { approved: numbers, refused });
            }
            Command::Drop { numbers } if can_decide => session.drop_cases(&numbers)?,
            Command::Redraft { selection, instructions } if can_decide => {
                return self.redraft(&selection, instructions.as_deref(), events, cancel).await;
            }
            Command::Replace { number, case } if can_decide => {
                let findings = self.check_draft(number, &case)?;
                let session = self.session.as_mut().ok_or(Refusal::UnavailableCommand)?;
                let id = session.editable(number)?.slot.id.clone();
                session.replace(number, case, findings)?;
                self.evidence_map.remove(&id);
                return Ok(CommandOutcome::Changed { ids: vec![id] });
            }
            Command::Write => return self.write(),
            Command::Next if can_decide => session.forward()?,
            Command::Back if can_decide => session.back()?,
            _ => return Err(Refusal::UnavailableCommand.into()),
        }
        Ok(CommandOutcome::Done)
    }

    async fn redraft(
        &mut self,
        selection: &CaseSelection,
        instructions: Option<&str>,
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<CommandOutcome, CommandFailure> {
        match instructions {
            None if !self.drafter.can_redraft() => return Err(Refusal::NoOtherDraft.into()),
            Some(_) if !self.drafter.accepts_instructions() => return Err(Refusal::InstructionsNotSupported.into()),
            _ => {}
        }
        let session = self.session.as_ref().ok_or(Refusal::UnavailableCommand)?;
        let entries: Vec<Entry> = session.redraftable(selection)?.into_iter().cloned().collect();
        let slots: Vec<Slot> = entries.iter().map(|entry| entry.slot.clone()).collect();
        let attempt = entries.iter().map(|entry| entry.attempts).max().unwrap_or_default();
        let drafts: Vec<Draft> = entries.into_iter().filter_map(|entry| entry.draft).collect();
        let revision = instructions.map(|instructions| Revision { drafts: &drafts, instructions });
        self.draft(&slots, attempt, revision, events, cancel).await?;
        let ids: Vec<String> = slots.into_iter().map(|slot| slot.id).collect();
        for id in &ids {
            self.evidence_map.remove(id);
        }
        Ok(CommandOutcome::Changed { ids })
    }

    async fn draft(
        &mut self,
        slots: &[Slot],
        attempt: u32,
        revision: Option<Revision<'_>>,
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<(), CommandFailure> {
        let session = self.session.as_mut().ok_or(Refusal::UnavailableCommand)?;
        let (brief, drafter) = (&self.inputs.brief, self.drafter.as_ref());
        let other_cases = session.others(brief, slots);
        let request = Request { brief, slots, other_cases: &other_cases, attempt, revision };
        let model = drafter.model();
        if let Some(model) = &model {
            emit(events, Event::Drafting { model: model.clone() })?;
        }
        let drafting = async {
            let drafts = drafter.draft(request).await;
            drafts.map_err(|error| Error::no_verdict(format!("cannot draft: {}", error.message)))
        };
        let drafts = run_until_cancelled(cancel, drafting).await.map_err(CommandFailure::Drafting)?;
        session.fill(&drafts, drafter.name(), model.as_deref());
        Ok(())
    }

    async fn verify(
        &mut self,
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<(), CommandFailure> {
        let drafts = self.unverified();
        let (Some(verifier), Some(session)) = (&self.verifier, &mut self.session) else { return Ok(()) };
        emit(events, Event::Verifying { agent: verifier.agent_identity(), drafts: drafts.len() })?;
        let verifying = async {
            verifier.verify(drafts, session, &self.inputs, &mut self.evidence_map, self.context).await;
            Ok(())
        };
        Ok(run_until_cancelled(cancel, verifying).await?)
    }

    /// Returns the undecided drafts of the batch that can be run but were not yet.
    fn unverified(&self) -> Vec<(Slot, Case)> {
        let batch = self.session.as_ref().and_then(Session::batch);
        let entries = batch.map(|batch| batch.entries.as_slice()).unwrap_or_default();
        let open =
            entries.iter().filter(|entry| entry.is_undecided() && !self.evidence_map.contains_key(&entry.slot.id));
        open.filter_map(|entry| Some((entry.slot.clone(), entry.draft.as_ref()?.parse_case()?))).collect()
    }

    /// Writes all approved cases. Saves the session after each file, so that no case is written twice.
    fn write(&mut self) -> Result<CommandOutcome, CommandFailure> {
        let (files_before, overlaps_before) = (self.written.files.len(), self.written.overlaps.len());
        for tier in [Tier::Golden, Tier::Labeled] {
            let session = self.session.as_mut().ok_or(Refusal::UnavailableCommand)?;
            if session.unwritten(tier).is_empty() {
                continue;
            }
            if self.mode != Mode::DryRun {
                self.written.write(session, &self.inputs, tier, self.context)?;
            }
            session.mark_written(tier);
            self.save()?;
        }
        let files = self.written.files[files_before..].to_vec();
        let overlaps_added = self.written.overlaps[overlaps_before..].to_vec();
        Ok(CommandOutcome::Wrote { files, overlaps_added })
    }

    fn save(&self) -> Result<(), Error> {
        match (&self.file, &self.session) {
            (Some(file), Some(session)) => file.save(session),
            _ => Ok(()),
        }
    }

    /// Removes the finished session from disk and returns its summary.
    pub fn finish(self) -> Result<Summary, Error> {
        let session = self.session.ok_or_else(|| Error::invalid("the session has not started"))?;
        if let Some(file) = &self.file {
            file.remove()?;
        }
        let lists_drafts = self.mode == Mode::DryRun;
        let (drafter, evidence_map) = (self.drafter.as_ref(), &self.evidence_map);
        Ok(Summary::of(&session, &self.inputs, drafter, self.written, evidence_map, lists_drafts))
    }

    /// Returns the session, once all questions are answered.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Returns the session, if it was resumed.
    pub fn resumed(&self) -> Option<&Session> {
        self.saved.as_ref().or(self.session.as_ref()).filter(|_| self.is_resumed)
    }

    pub fn evidence_map(&self) -> &EvidenceMap {
        &self.evidence_map
    }

    pub fn triggers(&self) -> &[String] {
        &self.inputs.brief.triggers
    }

    /// Returns the tool's name, spelt as in the registry.
    pub fn tool(&self) -> &str {
        &self.inputs.brief.tool.name
    }

    /// Returns the path of the session file, for display.
    pub fn session_path(&self) -> Option<&str> {
        self.file.as_ref().map(|file| file.display_path.as_str())
    }

    /// Returns the finding that the tool's description would have if the other tool were declared to overlap it.
    pub fn lacks_disambiguation(&self, other: &str) -> Option<ContractFinding> {
        self.inputs.lacks_disambiguation(other)
    }

    /// Returns the findings of a case that would replace a draft.
    pub fn check_draft(&self, number: usize, case: &Value) -> Result<Vec<DraftFinding>, Refusal> {
        let session = self.session.as_ref().ok_or(Refusal::UnavailableCommand)?;
        let slot = &session.editable(number)?.slot;
        let others = session.others(&self.inputs.brief, std::slice::from_ref(slot));
        Ok(check_draft(&self.inputs.brief, slot, case, &others))
    }
}

/// Returns the numbers of the selected drafts of the batch that are not approved yet.
fn unapproved_drafts(session: &Session, selection: &CaseSelection) -> Vec<usize> {
    let Some(batch) = session.batch() else { return Vec::new() };
    match selection {
        CaseSelection::All => batch.open_numbers(),
        CaseSelection::Some(numbers) => {
            let is_unapproved = |entry: &Entry| !entry.is_approved();
            let entry = |number: usize| number.checked_sub(1).and_then(|index| batch.entries.get(index));
            numbers.iter().copied().filter(|number| entry(*number).is_some_and(is_unapproved)).collect()
        }
    }
}

/// The reason why a command failed.
enum CommandFailure {
    Refused(Refusal),
    Drafting(Error),
    Other(Error),
}

impl From<Refusal> for CommandFailure {
    fn from(refusal: Refusal) -> Self {
        CommandFailure::Refused(refusal)
    }
}

impl From<karat_forge::session::InvalidAction> for CommandFailure {
    fn from(refusal: karat_forge::session::InvalidAction) -> Self {
        CommandFailure::Refused(refusal.into())
    }
}

impl From<Error> for CommandFailure {
    fn from(error: Error) -> Self {
        CommandFailure::Other(error)
    }
}

fn emit(events: &mut dyn EventSink<Event>, event: Event) -> Result<(), Error> {
    if events.emit(event).is_break() { Err(Error::cancelled()) } else { Ok(()) }
}
