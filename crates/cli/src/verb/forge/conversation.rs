//! The conversation at the terminal: a batch at a time, and a person who decides.

use karat_core::case::Tier;
use karat_core::exit::ExitStatus;
use karat_core::lint::Severity;
use karat_core::port::Clock as _;
use karat_forge::session::{
    Approver, Basis, Command, DeclaredOverlap, Entry, Refusal, Session, Stage, Which, parse_command,
};
use karat_forge::{Draft, Drafter, examine};
use karat_report::forge::batch_text;
use karat_report::{ConsoleSettings, counted, printable};
use karat_tools::overlap::Suggestion;

use super::drafting::Drafting;
use super::editor::{Edited, edit};
use super::kept::KeptSession;
use super::material::Material;
use super::scripted::MIN_TRIGGERS;
use super::view::{Evidences, batch_view};
use super::writing::Written;
use super::{Forge, plan_text};
use crate::args::ForgeTier;
use crate::ask::{self, NoAnswer};
use crate::failure::Failure;
use karat_workflows::context::clock::SystemClock;

const MAX_TRIGGERS: usize = 5;

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

struct Conversation<'c> {
    forge: &'c Forge<'c>,
    kept: KeptSession,
    material: Material,
    session: Session,
    drafting: Drafting<'c>,
    evidences: Evidences,
    written: Written,
    approver: String,
}

impl Forge<'_> {
    pub(super) fn converse(&self) -> Result<ExitStatus, Failure> {
        let kept = self.open_session()?;
        let drafting = Drafting::new(self)?;
        let (session, material) = match self.kept_session(&kept)? {
            Some((session, material, changes)) => match self.agree_to_changes(session, &material, &changes)? {
                Some(mut session) => {
                    session.reopen(drafting.drafter());
                    (session, material)
                }
                None => return Ok(ExitStatus::Success),
            },
            None if self.args.resume => return Err(self.no_session()),
            None => self.begin_by_asking(drafting.drafter())?,
        };
        let approver = match self.known_approver() {
            Some(name) => name,
            None => loop {
                let name = ask::line("Your name, which is recorded with what you approve:")?.trim().to_owned();
                if !name.is_empty() {
                    break name;
                }
            },
        };
        let (evidences, written) = (Evidences::new(), Written::default());
        let mut conversation =
            Conversation { forge: self, kept, material, session, drafting, evidences, written, approver };
        match conversation.run() {
            Ok(()) => {
                conversation.kept.forget()?;
                let Conversation { session, material, drafting, written, .. } = conversation;
                self.finish(&session, &material, drafting.drafter(), written)
            }
            Err(ended) => {
                let unwritten = counted(conversation.session.unwritten_count(), "approved case");
                let kept = format!("{unwritten} not written, {}", conversation.kept.how_to_go_on());
                match ended {
                    Ended::Left => {
                        self.printer.talk(&printable(&kept));
                        Ok(ExitStatus::Success)
                    }
                    Ended::Interrupted => {
                        self.printer.talk(&printable(&kept));
                        Err(Failure::reported(ExitStatus::Interrupted))
                    }
                    Ended::Failed(failure) => Err(failure.hint(kept)),
                }
            }
        }
    }

    /// Says what changed since a session was left, and goes on only if the person wants to.
    fn agree_to_changes(
        &self,
        mut session: Session,
        material: &Material,
        changes: &[String],
    ) -> Result<Option<Session>, Failure> {
        let approved = session.approved_count();
        self.printer
            .note(&format!("going on with the session that was left, {approved} approved (--restart begins anew)"));
        if !self.args.trigger.is_empty() {
            self.printer.warn("--trigger has no effect on a session that has begun");
        }
        if self.args.tier != ForgeTier::Both {
            self.printer.warn("--tier has no effect on a session that has begun");
        }
        if changes.is_empty() {
            return Ok(Some(session));
        }
        self.printer.warn("this changed since the drafts were made, and the plan is still the one of then:");
        for change in changes {
            self.printer.talk(&format!("  {}", printable(change)));
        }
        if !ask::yes_or_no("Go on with these drafts all the same?", false)? {
            self.printer.note("the session is kept as it is; --restart drafts anew");
            return Ok(None);
        }
        session.basis = Basis::of(&material.brief);
        Ok(Some(session))
    }

    /// Begins a session: asks for what nothing else says.
    fn begin_by_asking(&self, drafter: &dyn Drafter) -> Result<(Session, Material), Failure> {
        let declared = self.ask_for_overlaps()?;
        let mut material = self.material.with_declared(&declared);
        if self.drafted.is_none() {
            self.ask_for_triggers(&mut material)?;
        }
        let mut session = self.begin(&material, drafter);
        session.declared = declared;
        Ok((session, material))
    }

    fn ask_for_triggers(&self, material: &mut Material) -> Result<(), NoAnswer> {
        let triggers = &mut material.brief.triggers;
        if triggers.len() >= MIN_TRIGGERS {
            return Ok(());
        }
        let name = printable(&material.brief.tool.name).into_owned();
        self.printer.talk(&format!(
            "What does a person say who means {name}? {MIN_TRIGGERS} to {MAX_TRIGGERS} phrases, an empty line ends them."
        ));
        while triggers.len() < MAX_TRIGGERS {
            let phrase = ask::line(&format!("Phrase {}:", triggers.len() + 1))?;
            let phrase = phrase.trim();
            let is_known = triggers.iter().any(|known| known.eq_ignore_ascii_case(phrase));
            match phrase {
                "" if triggers.len() >= MIN_TRIGGERS => break,
                "" => self.printer.talk(&format!("  at least {MIN_TRIGGERS} are needed")),
                _ if is_known => self.printer.talk("  that one is there already"),
                phrase => triggers.push(phrase.to_owned()),
            }
        }
        Ok(())
    }

    /// Proposes neighbours where the overlap map says nothing of the tool.
    fn ask_for_overlaps(&self) -> Result<Vec<DeclaredOverlap>, NoAnswer> {
        // An overlap has to be covered by a labeled case, so that it is declared together with them.
        let proposals = if self.args.tier.has_labeled() { self.material.proposals() } else { Vec::new() };
        let name = &self.material.brief.tool.name;
        if proposals.is_empty() {
            return Ok(Vec::new());
        }
        self.printer.talk(&format!("The overlap map says nothing of {}. It may be taken for:", printable(name)));
        let mut declared = Vec::new();
        for proposal in &proposals {
            let other = if proposal.tools.0 == *name { &proposal.tools.1 } else { &proposal.tools.0 };
            let reason = reason(proposal, other);
            self.printer.talk(&printable(&format!("  {other}: {reason}")));
            if ask::yes_or_no(&format!("Declare that {} and {} overlap?", printable(name), printable(other)), true)? {
                if let Some(finding) = self.material.told_apart_by_nothing(other) {
                    self.printer.warn(&finding.message);
                    self.printer.talk(&format!("  {}", printable(&finding.suggestion)));
                }
                declared.push(DeclaredOverlap { tool: other.clone(), reason: Some(reason) });
            }
        }
        Ok(declared)
    }
}

fn reason(proposal: &Suggestion, other: &str) -> String {
    if proposal.named_by.iter().any(|by| by == other) {
        return format!("the description of {other} names it");
    }
    if !proposal.named_by.is_empty() {
        return format!("its description names {other}");
    }
    let words: Vec<&str> = proposal.shared_words.iter().take(4).map(String::as_str).collect();
    format!("both are about {}", words.join(", "))
}

impl Conversation<'_> {
    fn run(&mut self) -> Result<(), Ended> {
        let mut is_shown = false;
        if self.session.stage() != Stage::Done {
            self.save()?;
        }
        loop {
            match self.session.stage() {
                Stage::ApprovePlan => {
                    self.forge.printer.talk(plan_text(&self.session.plan).trim_end());
                    if !ask::yes_or_no("Proceed?", true)? {
                        return Err(Ended::Left);
                    }
                    self.session.approve_plan();
                    self.save()?;
                }
                Stage::Draft => {
                    is_shown = false;
                    match self.drafting.fill(&mut self.session, &self.material) {
                        Ok(()) => self.save()?,
                        Err(failure) if failure.status == ExitStatus::Interrupted => return Err(Ended::Interrupted),
                        Err(failure) => {
                            self.forge.printer.failure(&failure);
                            if !ask::yes_or_no("Try again?", true)? {
                                return Err(Ended::Left);
                            }
                        }
                    }
                }
                Stage::Decide => {
                    if !is_shown {
                        self.verify()?;
                        self.show(None);
                    }
                    let line = ask::line(QUESTION)?;
                    let before = self.session.place();
                    match parse_command(&line) {
                        Ok(Command::Quit) => {
                            self.write_before_leaving()?;
                            return Err(Ended::Left);
                        }
                        Ok(Command::Write) => {
                            self.write_approved()?;
                            is_shown = true;
                        }
                        Ok(command) => {
                            let shows_again = self.obey(command)?;
                            is_shown = !shows_again && before == self.session.place();
                        }
                        Err(what) => {
                            self.forge.printer.talk(&printable(&what));
                            is_shown = true;
                        }
                    }
                }
                Stage::Write(tier) => {
                    self.write_tier(tier)?;
                    is_shown = false;
                }
                Stage::Done => return Ok(()),
            }
        }
    }

    fn save(&self) -> Result<(), Failure> {
        self.kept.save(&self.session)
    }

    /// Writes the approved cases of a tier, and notes it.
    fn write_tier(&mut self, tier: Tier) -> Result<(), Failure> {
        self.forge.write(&self.session, &self.material, tier, &mut self.written)?;
        self.session.wrote(tier);
        self.save()?;
        if let Some(file) = self.written.files.last().filter(|file| file.tier == tier) {
            self.forge.printer.note(&format!("{tier}: {} in {}", counted(file.total, "case"), file.path));
        }
        Ok(())
    }

    /// Writes all approved cases now.
    fn write_approved(&mut self) -> Result<(), Failure> {
        if self.session.unwritten_count() == 0 {
            self.forge.printer.talk("nothing to write: no case is approved that is not in its file");
        }
        for tier in [Tier::Golden, Tier::Labeled] {
            if !self.session.unwritten(tier).is_empty() {
                self.write_tier(tier)?;
            }
        }
        Ok(())
    }

    fn write_before_leaving(&mut self) -> Result<(), Ended> {
        let count = self.session.unwritten_count();
        if count > 0 && ask::yes_or_no(&format!("Write the {} now?", counted(count, "approved case")), true)? {
            self.write_approved()?;
        }
        Ok(())
    }

    /// Does what a person wants; tells whether the batch should be shown again.
    fn obey(&mut self, command: Command) -> Result<bool, Ended> {
        let decides = matches!(command, Command::Approve(_) | Command::Drop(_));
        let done = match command {
            Command::Approve(which) => {
                let time = SystemClock.now().to_string();
                let approver = Approver { name: &self.approver, time: &time };
                self.session.approve(&which, approver).map(|refused| {
                    if !refused.is_empty() {
                        let numbers: Vec<String> = refused.iter().map(usize::to_string).collect();
                        let told = format!(
                            "not approved, since there are errors: {} (edit, draft anew or drop them)",
                            numbers.join(", ")
                        );
                        self.forge.printer.warn(&told);
                    }
                    false
                })
            }
            Command::Drop(numbers) => self.session.leave_out(&numbers).map(|()| {
                let dropped: Vec<String> = numbers.iter().map(usize::to_string).collect();
                self.forge.printer.note(&format!("dropped: {}", dropped.join(", ")));
                false
            }),
            Command::Edit(number) => self.edit(number)?.map(|()| false),
            Command::Regenerate(_) if !self.drafting.drafter().can_redraft() => {
                self.forge
                    .printer
                    .talk("there is no other draft: edit the case (e NUMBER), or name a model with --model");
                Ok(false)
            }
            Command::Regenerate(which) => self.redraft(&which, None)?.map(|()| false),
            Command::Revise(which, words) => {
                if self.drafting.drafter().understands_words() {
                    self.redraft(&which, Some(&words))?.map(|()| false)
                } else {
                    self.forge
                        .printer
                        .talk("only a model understands words: edit the case (e NUMBER), or name a model with --model");
                    Ok(false)
                }
            }
            Command::Next => self.session.forward().map(|()| true),
            Command::Back => self.session.back().map(|()| true),
            Command::Show => Ok(true),
            Command::Help | Command::Quit | Command::Write => {
                self.forge.printer.talk(HELP);
                Ok(false)
            }
        };
        self.save()?;
        // Not before: who reads what is left takes the rest for kept.
        if decides && done.is_ok() {
            self.tell_what_is_open();
        }
        Ok(done.unwrap_or_else(|refusal| {
            self.forge.printer.talk(&printable(&refusal.to_string()));
            false
        }))
    }

    /// Says what is still to be decided after some of it was.
    fn tell_what_is_open(&self) {
        let open = self.session.batch().map(karat_forge::session::Batch::open_numbers).unwrap_or_default();
        let entries = self.session.batch().map_or(0, |batch| batch.entries.len());
        if !open.is_empty() && open.len() < entries {
            let numbers: Vec<String> = open.iter().map(usize::to_string).collect();
            self.forge.printer.note(&format!("still open: {}", numbers.join(", ")));
        }
    }

    fn redraft(&mut self, which: &Which, words: Option<&str>) -> Result<Result<(), Refusal>, Ended> {
        let entries: Vec<Entry> = match self.session.redraftable(which) {
            Ok(entries) => entries.into_iter().cloned().collect(),
            Err(refusal) => return Ok(Err(refusal)),
        };
        for entry in &entries {
            self.evidences.remove(&entry.slot.id);
        }
        match self.drafting.redraft(&mut self.session, &self.material, &entries, words) {
            Ok(()) => {}
            Err(failure) if failure.status == ExitStatus::Interrupted => return Err(Ended::Interrupted),
            // The drafts are still there.
            Err(failure) => {
                self.forge.printer.failure(&failure);
                return Ok(Ok(()));
            }
        }
        self.save()?;
        self.verify()?;
        let ids: Vec<&str> = entries.iter().map(|entry| entry.slot.id.as_str()).collect();
        self.show(Some(&ids));
        Ok(Ok(()))
    }

    fn edit(&mut self, number: usize) -> Result<Result<(), Refusal>, Ended> {
        let entry = match self.session.editable(number) {
            Ok(entry) => entry.clone(),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let others = self.session.others(&self.material.brief, std::slice::from_ref(&entry.slot));
        let brief = &self.material.brief;
        let problems = |case: &serde_json::Value| -> Vec<String> {
            let findings = examine(brief, &entry.slot, case, &others).into_iter();
            let errors = findings.filter(|finding| finding.severity == Severity::Error);
            errors.map(|finding| format!("{} {}", finding.pointer, finding.message).trim().to_owned()).collect()
        };
        let case = entry.draft.as_ref().and_then(|draft: &Draft| draft.case.as_ref());
        let (environment, printer) = (self.forge.environment, self.forge.printer);
        let Edited::Case(case) = edit(case, &entry.slot.id, environment, printer, &problems)? else {
            return Ok(Ok(()));
        };
        let findings = examine(brief, &entry.slot, &case, &others);
        let replaced = self.session.replace(number, case, findings);
        self.save()?;
        self.evidences.remove(&entry.slot.id);
        self.verify()?;
        self.show(Some(&[entry.slot.id.as_str()]));
        Ok(replaced)
    }

    fn verify(&mut self) -> Result<(), Ended> {
        if let Some(verifier) = &self.forge.verifier {
            verifier.verify(self.forge, &mut self.session, &self.material, &mut self.evidences)?;
        }
        Ok(())
    }

    /// Shows the batch, or these of its cases.
    fn show(&self, only: Option<&[&str]>) {
        if let Some(batch) = batch_view(&self.session, &self.evidences, only) {
            let printer = self.forge.printer;
            let settings = ConsoleSettings { palette: printer.stderr_palette, ..printer.console() };
            printer.talk(&batch_text(&batch, settings));
        }
    }
}
