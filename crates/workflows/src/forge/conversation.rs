//! The conversation about drafts, as a state machine.

use std::collections::VecDeque;
use std::sync::Arc;

use karat_core::case::{Case, Tier};
use karat_forge::session::{Approver, Basis, DeclaredOverlap, Entry, Session, Stage, Which};
use karat_forge::{Draft, DraftFinding, Drafter, Request, Revision, Slot, examine};
use karat_json::text::counted;
use karat_tools::contract::ContractFinding;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::drafters::{ChosenDrafter, Drafted, choose_drafter};
use super::material::Material;
use super::protocol::{Applied, Command, ConversationRequest, Event, Mode, Refusal, Step};
use super::report::{Summary, WrittenFile};
use super::session_file::SessionFile;
use super::verifier::{Evidences, Verifier};
use super::writing::Written;
use super::{MAX_TRIGGERS, MIN_TRIGGERS};
use crate::cancel::unless_cancelled;
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::event::EventSink;
use crate::hint::Hint;

pub struct Conversation<'c> {
    pub(super) context: &'c Context<'c>,
    pub(super) mode: Mode,
    material: Material,
    drafter: Arc<dyn Drafter>,
    drafted: Option<Drafted>,
    verifier: Option<Verifier>,
    approver: Option<String>,
    /// None in a dry run.
    pub(super) file: Option<SessionFile>,
    /// What is asked before the session begins.
    questions: VecDeque<Step>,
    declared: Vec<DeclaredOverlap>,
    /// The session that was left, until it is resumed.
    kept: Option<Session>,
    is_resumed: bool,
    session: Option<Session>,
    evidences: Evidences,
    written: Written,
}

impl<'c> Conversation<'c> {
    /// Chooses the drafter, and resumes a session or begins one, after the questions that are open.
    pub async fn open(
        request: ConversationRequest,
        material: Material,
        context: &'c Context<'c>,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let ConversationRequest { drafts, verify, mode, accept_description, approver } = request;
        let is_doubtful = material.doubt.is_some() && !accept_description && mode != Mode::DryRun;
        if is_doubtful && matches!(mode, Mode::Unattended { .. }) {
            return Err(Error::invalid("the description does not say when to use the tool")
                .hint("fix the description, or go on all the same with --yes"));
        }
        let preparing = async {
            let chosen = choose_drafter(drafts, &material, context).await?;
            let verifier = if verify { Some(Verifier::new(context).await?) } else { None };
            Ok((chosen, verifier))
        };
        let (ChosenDrafter { drafter, drafted }, verifier) = Box::pin(unless_cancelled(cancel, preparing)).await?;
        let file = match mode {
            Mode::DryRun => None,
            _ => Some(SessionFile::open(&material.brief.tool.name, &context.settings)?),
        };
        let mut conversation = Self {
            context,
            mode,
            material,
            drafter,
            drafted,
            verifier,
            approver,
            file,
            questions: is_doubtful.then_some(Step::ConfirmDescription).into_iter().collect(),
            declared: Vec::new(),
            kept: None,
            is_resumed: false,
            session: None,
            evidences: Evidences::new(),
            written: Written::default(),
        };
        conversation.prepare()?;
        conversation.start_when_ready()?;
        Ok(conversation)
    }

    /// Finds the session that was left, and what is to be asked.
    fn prepare(&mut self) -> Result<(), Error> {
        let (resume, is_attended) = match self.mode {
            Mode::DryRun => (false, false),
            Mode::Unattended { resume, .. } => (resume, false),
            Mode::Attended { resume, .. } => (resume, true),
        };
        let tool = self.material.brief.tool.name.clone();
        match self.read_kept()? {
            Some(_) if !is_attended && !resume => {
                return Err(
                    Error::invalid(format!("a session of '{tool}' is kept")).hint(Hint::ResumeOrRestartForge { tool })
                );
            }
            Some(session) => self.resume(session, is_attended)?,
            None if resume => {
                let message = format!("there is no session of '{tool}' to go on with");
                return Err(Error::nothing_selected(message).hint(Hint::StartForge { tool: Some(tool) }));
            }
            None if is_attended => self.ask_what_is_missing(),
            None => self.require_triggers()?,
        }
        if is_attended && self.approver.is_none() {
            self.questions.push_back(Step::NameApprover);
        }
        Ok(())
    }

    fn read_kept(&self) -> Result<Option<Session>, Error> {
        let Some(file) = &self.file else { return Ok(None) };
        if let Mode::Attended { restart: true, .. } | Mode::Unattended { restart: true, .. } = self.mode {
            // A session that cannot be read is forgotten all the same.
            let unwritten = file.read().ok().flatten().map_or(0, |session| session.unwritten_count());
            if unwritten > 0 {
                let forgotten = format!("{} not written yet, forgotten", counted(unwritten, "approved case"));
                self.context.notices.warn(&forgotten);
            }
            file.remove()?;
            return Ok(None);
        }
        let session = file.read()?;
        match session {
            Some(session) if self.drafted.is_some() => {
                Err(Error::invalid("a session of this tool has begun, which --drafts cannot be added to")
                    .hint(Hint::ResumeForge { tool: session.tool.clone() })
                    .hint(Hint::RestartForgeWithDrafts { tool: session.tool }))
            }
            session => Ok(session),
        }
    }

    fn resume(&mut self, session: Session, is_attended: bool) -> Result<(), Error> {
        self.material = self.material.with_declared(&session.declared);
        self.material.brief.triggers.clone_from(&session.triggers);
        let changes = session.basis.changes(&Basis::of(&self.material.brief));
        if !changes.is_empty() && !is_attended {
            return Err(Error::invalid(format!("since the drafts were made, this changed: {}", changes.join("; ")))
                .hint("--restart drafts anew; in a terminal, --resume asks whether to go on"));
        }
        if !changes.is_empty() {
            self.questions.push_back(Step::ConfirmChanges { changes });
        }
        self.kept = Some(session);
        self.is_resumed = true;
        Ok(())
    }

    fn ask_what_is_missing(&mut self) {
        // A labeled case has to cover an overlap, so it is declared together with them.
        let has_labeled = self.material.tiers.includes(Tier::Labeled);
        let proposals = if has_labeled { self.material.proposals() } else { Vec::new() };
        let questions = proposals.into_iter().map(|(tool, reason)| Step::DeclareOverlap { tool, reason });
        self.questions.extend(questions);
        if self.drafted.is_none() && self.material.brief.triggers.len() < MIN_TRIGGERS {
            self.questions.push_back(Step::AddTriggers);
        }
    }

    fn require_triggers(&self) -> Result<(), Error> {
        let found = self.material.brief.triggers.len();
        if self.drafted.is_some() || found >= MIN_TRIGGERS {
            return Ok(());
        }
        let name = &self.material.brief.tool.name;
        Err(Error::invalid(format!("'{name}' has {found} trigger phrases, and at least {MIN_TRIGGERS} are needed")).hint(
            "say what people say who mean it: --trigger 'PHRASE' (3 to 5 times), or 'triggerPhrases' in the registry",
        ))
    }

    /// Begins the session, or resumes the kept one, when nothing is left to ask.
    fn start_when_ready(&mut self) -> Result<(), Error> {
        if !self.questions.is_empty() || self.session.is_some() {
            return Ok(());
        }
        let session = if let Some(mut session) = self.kept.take() {
            session.basis = Basis::of(&self.material.brief);
            if matches!(self.mode, Mode::Attended { .. }) {
                session.reopen(self.drafter.as_ref());
            }
            session
        } else {
            self.material = self.material.with_declared(&self.declared);
            let mut session = self.begin();
            session.declared.clone_from(&self.declared);
            session
        };
        let is_done = session.stage() == Stage::Done;
        self.session = Some(session);
        if is_done { Ok(()) } else { self.save() }
    }

    fn begin(&mut self) -> Session {
        let (brief, plan, drafter) = (&self.material.brief, self.material.plan(), self.drafter.as_ref());
        match &self.drafted {
            Some(Drafted { drafts, open }) => Session::begin_with(brief, plan, drafts, open.clone(), drafter),
            None => Session::begin(brief, self.material.plan(), self.material.slots(&plan), drafter),
        }
    }

    /// Returns the next step.
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

    /// Does what a person or a script wants, and saves the session.
    pub async fn apply(
        &mut self,
        command: Command,
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<Applied, Error> {
        let step = self.next();
        let applied = if self.questions.is_empty() {
            self.obey(step, command, events, cancel).await
        } else {
            self.answer(&step, command)
        };
        let applied = applied.or_else(|failure| match failure {
            Failed::Refused(refusal) => Ok(Applied::Refused(refusal)),
            Failed::Drafting(error) if error.kind != ErrorKind::Cancelled => Ok(Applied::NotDrafted(error)),
            Failed::Drafting(error) | Failed::Other(error) => Err(error),
        })?;
        self.start_when_ready()?;
        if matches!(applied, Applied::Approved { .. } | Applied::Changed { .. } | Applied::Done) {
            self.save()?;
        }
        Ok(applied)
    }

    fn answer(&mut self, question: &Step, command: Command) -> Result<Applied, Failed> {
        match (question, command) {
            (Step::ConfirmDescription | Step::ConfirmChanges { .. }, Command::Proceed) => {}
            (Step::DeclareOverlap { tool, reason }, Command::DeclareOverlap { declare }) => {
                let declared = DeclaredOverlap { tool: tool.clone(), reason: Some(reason.clone()) };
                self.declared.extend(declare.then_some(declared));
            }
            (Step::AddTriggers, Command::AddTrigger { phrase }) => {
                let (triggers, phrase) = (&mut self.material.brief.triggers, phrase.trim());
                if triggers.iter().any(|known| known.eq_ignore_ascii_case(phrase)) {
                    return Err(Refusal::KnownTrigger.into());
                }
                triggers.push(phrase.to_owned());
                if triggers.len() < MAX_TRIGGERS {
                    return Ok(Applied::Done);
                }
            }
            (Step::AddTriggers, Command::EndTriggers) => {
                if self.material.brief.triggers.len() < MIN_TRIGGERS {
                    return Err(Refusal::TooFewTriggers.into());
                }
            }
            (Step::NameApprover, Command::NameApprover { name }) => {
                if name.trim().is_empty() {
                    return Err(Refusal::EmptyName.into());
                }
                self.approver = Some(name.trim().to_owned());
            }
            _ => return Err(Refusal::OutOfTurn.into()),
        }
        self.questions.pop_front();
        Ok(Applied::Done)
    }

    async fn obey(
        &mut self,
        step: Step,
        command: Command,
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<Applied, Failed> {
        let approver = self.approver.clone().unwrap_or_default();
        let time = self.context.clock.now().to_string();
        let session = self.session.as_mut().ok_or(Refusal::OutOfTurn)?;
        let decides = matches!(step, Step::Decide | Step::Verify);
        match command {
            Command::ApprovePlan if step == Step::ApprovePlan => session.approve_plan(),
            Command::Draft if step == Step::Draft => {
                let slots = session.batch().map(karat_forge::session::Batch::slots_without_draft).unwrap_or_default();
                self.draft(&slots, 0, None, events, cancel).await?;
            }
            Command::Verify if step == Step::Verify => self.verify(events, cancel).await?,
            Command::Approve { which } if decides => {
                let refused = session.approve(&which, Approver { name: &approver, time: &time })?;
                return Ok(Applied::Approved { refused });
            }
            Command::Drop { numbers } if decides => session.leave_out(&numbers)?,
            Command::Redraft { which, words } if decides => {
                return self.redraft(&which, words.as_deref(), events, cancel).await;
            }
            Command::Replace { number, case } if decides => {
                let findings = self.examine(number, &case)?;
                let session = self.session.as_mut().ok_or(Refusal::OutOfTurn)?;
                let id = session.editable(number)?.slot.id.clone();
                session.replace(number, case, findings)?;
                self.evidences.remove(&id);
                return Ok(Applied::Changed { ids: vec![id] });
            }
            Command::Write => return Ok(Applied::Wrote { files: self.write()? }),
            Command::Next if decides => session.forward()?,
            Command::Back if decides => session.back()?,
            _ => return Err(Refusal::OutOfTurn.into()),
        }
        Ok(Applied::Done)
    }

    async fn redraft(
        &mut self,
        which: &Which,
        words: Option<&str>,
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<Applied, Failed> {
        match words {
            None if !self.drafter.can_redraft() => return Err(Refusal::NoOtherDraft.into()),
            Some(_) if !self.drafter.understands_words() => return Err(Refusal::WordsNotUnderstood.into()),
            _ => {}
        }
        let session = self.session.as_ref().ok_or(Refusal::OutOfTurn)?;
        let entries: Vec<Entry> = session.redraftable(which)?.into_iter().cloned().collect();
        let slots: Vec<Slot> = entries.iter().map(|entry| entry.slot.clone()).collect();
        let attempt = entries.iter().map(|entry| entry.attempts).max().unwrap_or_default();
        let drafts: Vec<Draft> = entries.into_iter().filter_map(|entry| entry.draft).collect();
        let revision = words.map(|words| Revision { drafts: &drafts, words });
        self.draft(&slots, attempt, revision, events, cancel).await?;
        let ids: Vec<String> = slots.into_iter().map(|slot| slot.id).collect();
        for id in &ids {
            self.evidences.remove(id);
        }
        Ok(Applied::Changed { ids })
    }

    async fn draft(
        &mut self,
        slots: &[Slot],
        attempt: u32,
        revision: Option<Revision<'_>>,
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<(), Failed> {
        let session = self.session.as_mut().ok_or(Refusal::OutOfTurn)?;
        let (brief, drafter) = (&self.material.brief, self.drafter.as_ref());
        let so_far = session.others(brief, slots);
        let request = Request { brief, slots, so_far: &so_far, attempt, revision };
        let model = drafter.model();
        if let Some(model) = &model {
            emit(events, Event::Drafting { model: model.clone() })?;
        }
        let drafting = async {
            let drafts = drafter.draft(request).await;
            drafts.map_err(|error| Error::no_verdict(format!("cannot draft: {}", error.message)))
        };
        let drafts = unless_cancelled(cancel, drafting).await.map_err(Failed::Drafting)?;
        session.fill(&drafts, drafter.name(), model.as_deref());
        Ok(())
    }

    async fn verify(&mut self, events: &mut dyn EventSink<Event>, cancel: &CancellationToken) -> Result<(), Failed> {
        let drafts = self.unverified();
        let (Some(verifier), Some(session)) = (&self.verifier, &mut self.session) else { return Ok(()) };
        emit(events, Event::Verifying { agent: verifier.agent(), drafts: drafts.len() })?;
        let verifying = async {
            verifier.verify(drafts, session, &self.material, &mut self.evidences, self.context).await;
            Ok(())
        };
        Ok(unless_cancelled(cancel, verifying).await?)
    }

    /// Returns the undecided drafts of the batch that can be run and were not.
    fn unverified(&self) -> Vec<(Slot, Case)> {
        let batch = self.session.as_ref().and_then(Session::batch);
        let entries = batch.map(|batch| batch.entries.as_slice()).unwrap_or_default();
        let open = entries.iter().filter(|entry| entry.is_undecided() && !self.evidences.contains_key(&entry.slot.id));
        open.filter_map(|entry| Some((entry.slot.clone(), entry.draft.as_ref()?.read()?))).collect()
    }

    /// Writes all approved cases; saves after each file, so that none is written twice.
    fn write(&mut self) -> Result<Vec<WrittenFile>, Failed> {
        let before = self.written.files.len();
        for tier in [Tier::Golden, Tier::Labeled] {
            let session = self.session.as_mut().ok_or(Refusal::OutOfTurn)?;
            if session.unwritten(tier).is_empty() {
                continue;
            }
            if self.mode != Mode::DryRun {
                self.written.write(session, &self.material, tier, self.context)?;
            }
            session.wrote(tier);
            self.save()?;
        }
        Ok(self.written.files[before..].to_vec())
    }

    fn save(&self) -> Result<(), Error> {
        match (&self.file, &self.session) {
            (Some(file), Some(session)) => file.save(session),
            _ => Ok(()),
        }
    }

    /// Removes the session from disk, since all of it is decided and written, and sums it up.
    pub fn finish(self) -> Result<Summary, Error> {
        let session = self.session.ok_or_else(|| Error::invalid("the session has not begun"))?;
        if let Some(file) = &self.file {
            file.remove()?;
        }
        let evidences = (self.mode == Mode::DryRun).then_some(&self.evidences);
        Ok(Summary::of(&session, &self.material, self.drafter.as_ref(), self.written, evidences))
    }

    /// Returns the session, once the questions before it are answered.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Returns the session, if it was left and is resumed here.
    pub fn resumed(&self) -> Option<&Session> {
        self.kept.as_ref().or(self.session.as_ref()).filter(|_| self.is_resumed)
    }

    pub fn evidences(&self) -> &Evidences {
        &self.evidences
    }

    pub fn triggers(&self) -> &[String] {
        &self.material.brief.triggers
    }

    /// Returns the tool's name as the registry spells it.
    pub fn tool(&self) -> &str {
        &self.material.brief.tool.name
    }

    /// Returns where the session is kept, as the user would type it.
    pub fn session_path(&self) -> Option<&str> {
        self.file.as_ref().map(|file| file.shown.as_str())
    }

    /// Returns what the tool's description lacks if the other tool is declared to overlap it.
    pub fn lacks_disambiguation(&self, other: &str) -> Option<ContractFinding> {
        self.material.lacks_disambiguation(other)
    }

    /// Returns what is wrong with a case in the place of a draft.
    pub fn examine(&self, number: usize, case: &Value) -> Result<Vec<DraftFinding>, Refusal> {
        let session = self.session.as_ref().ok_or(Refusal::OutOfTurn)?;
        let slot = &session.editable(number)?.slot;
        let others = session.others(&self.material.brief, std::slice::from_ref(slot));
        Ok(examine(&self.material.brief, slot, case, &others))
    }
}

/// Why a command was not done.
enum Failed {
    Refused(Refusal),
    Drafting(Error),
    Other(Error),
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Failed::Refused(refusal)
    }
}

impl From<karat_forge::session::Refusal> for Failed {
    fn from(refusal: karat_forge::session::Refusal) -> Self {
        Failed::Refused(refusal.into())
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Other(error)
    }
}

fn emit(events: &mut dyn EventSink<Event>, event: Event) -> Result<(), Error> {
    if events.emit(event).is_break() { Err(Error::cancelled()) } else { Ok(()) }
}
