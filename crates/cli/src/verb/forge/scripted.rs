//! `--dry-run` and `--approve-all`: nobody is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use karat_core::case::{Difficulty, Tier};
use karat_core::exit::ExitStatus;
use karat_core::lint::{Rule, Severity};
use karat_core::port::Clock as _;
use karat_core::trace::Usage;
use karat_forge::session::{Approver, Batch, Entry, Session, Stage, Which};
use karat_forge::{Draft, DraftFinding, Drafter, examine_whole};
use karat_report::forge::{BatchView, batch_text};
use karat_report::{counted, dollars, printable};
use karat_tools::overlap::command_word;

use super::drafting::Drafting;
use super::kept::KeptSession;
use super::material::Material;
use super::report::ForgeReport;
use super::view::{Evidences, batch_view};
use super::writing::Written;
use super::{Forge, plan_text};
use crate::failure::Failure;
use karat_workflows::context::clock::SystemClock;

/// How many trigger phrases a tool needs.
pub(super) const MIN_TRIGGERS: usize = 3;

impl Forge<'_> {
    /// Drafts all cases and prints them.
    pub(super) fn dry_run(&self) -> Result<ExitStatus, Failure> {
        let material = &self.material;
        self.require_triggers()?;
        let drafting = Drafting::new(self)?;
        let mut session = self.begin(material, drafting.drafter());
        let mut evidences = Evidences::new();
        let mut text = String::new();
        let mut are_sound = true;
        let nobody = Approver { name: "nobody", time: "" };
        loop {
            match session.stage() {
                Stage::ApprovePlan => {
                    let _ = writeln!(text, "{}", plan_text(&session.plan));
                    session.approve_plan();
                }
                Stage::Draft => {
                    drafting.fill(&mut session, material)?;
                }
                Stage::Decide => {
                    if let Some(verifier) = &self.verifier {
                        verifier.verify(self, &mut session, material, &mut evidences)?;
                    }
                    let batch =
                        batch_view(&session, &evidences, None).map(|batch| BatchView { approved: None, ..batch });
                    if let Some(batch) = batch {
                        let _ = writeln!(text, "{}", batch_text(&batch, self.printer.console()));
                    }
                    // Nothing is approved by this: it is how the next batch comes.
                    let refused = session.approve(&Which::All, nobody).map_err(|error| told(&error))?;
                    are_sound &= refused.is_empty();
                    session.leave_out(&refused).map_err(|error| told(&error))?;
                }
                Stage::Write(tier) => session.wrote(tier),
                Stage::Done => break,
            }
        }
        let lacking = lacking(material, &session);
        for finding in &lacking {
            let _ = writeln!(text, "all together: {}", printable(&finding.message));
        }
        text.push_str(&open_text(&session));
        let report = ForgeReport::of_session(&session, drafting.drafter(), Vec::new(), Vec::new(), &lacking);
        report.with_drafts(&session, &evidences).print(self.args.format, &text, self.printer)?;
        Ok(if are_sound { ExitStatus::Success } else { ExitStatus::Failed })
    }

    /// Writes all drafts that can be approved, and lists the others.
    pub(super) fn approve_all(&self) -> Result<ExitStatus, Failure> {
        let kept = self.open_session()?;
        let drafting = Drafting::new(self)?;
        // Who reads the file later should know that nobody looked.
        let by = format!("{} (--approve-all)", self.approver_name()?);
        let (mut session, material) = match self.kept_session(&kept)? {
            Some((session, material, changes)) => {
                if !self.args.resume {
                    return Err(self.session_is_kept());
                }
                if !changes.is_empty() {
                    return Err(Failure::invalid(format!(
                        "since the drafts were made, this changed: {}",
                        changes.join("; ")
                    ))
                    .hint("--restart drafts anew; in a terminal, --resume asks whether to go on"));
                }
                (session, material)
            }
            None if self.args.resume => return Err(self.no_session()),
            None => {
                self.require_triggers()?;
                (self.begin(&self.material, drafting.drafter()), self.material.clone())
            }
        };
        let mut written = Written::default();
        if !self.args.resume && session.stage() != Stage::Done {
            kept.save(&session)?;
        }
        let mut going = || self.approve_batches(&by, &kept, &mut session, &material, &drafting, &mut written);
        if let Err(failure) = going() {
            if failure.status == ExitStatus::Interrupted {
                self.printer.talk(&printable(&kept.how_to_go_on()));
                return Err(failure);
            }
            // Who tries again has nothing to go on with.
            if !session.batches().iter().flat_map(|batch| &batch.entries).any(Entry::is_approved) {
                kept.forget()?;
                return Err(failure);
            }
            return Err(failure.hint(kept.how_to_go_on()));
        }
        kept.forget()?;
        self.finish(&session, &material, drafting.drafter(), written)
    }

    /// Goes through all batches that are left.
    fn approve_batches(
        &self,
        by: &str,
        kept: &KeptSession,
        session: &mut Session,
        material: &Material,
        drafting: &Drafting<'_>,
        written: &mut Written,
    ) -> Result<(), Failure> {
        loop {
            match session.stage() {
                Stage::ApprovePlan => session.approve_plan(),
                Stage::Draft => {
                    drafting.fill(session, material)?;
                }
                Stage::Decide => {
                    let time = SystemClock.now().to_string();
                    let approver = Approver { name: by, time: &time };
                    // What is nobody else's business needs a person's word.
                    let private = session.batch().map(private).unwrap_or_default();
                    session.leave_out(&private).map_err(|error| told(&error))?;
                    // When all of a batch was private, the next one is current, and is looked at for itself.
                    if private.is_empty()
                        || session
                            .batch()
                            .is_some_and(|batch| !batch.open_numbers().is_empty() && self::private(batch).is_empty())
                    {
                        let refused = session.approve(&Which::All, approver).map_err(|error| told(&error))?;
                        session.leave_out(&refused).map_err(|error| told(&error))?;
                    }
                }
                Stage::Write(tier) => {
                    self.write(session, material, tier, written)?;
                    session.wrote(tier);
                }
                Stage::Done => return Ok(()),
            }
            kept.save(session)?;
        }
    }

    /// Tells what was written and what was left out.
    pub(super) fn finish(
        &self,
        session: &Session,
        material: &Material,
        drafter: &dyn Drafter,
        written: Written,
    ) -> Result<ExitStatus, Failure> {
        let lacking = lacking(material, session);
        if let Some(usage) = drafter.usage() {
            self.printer.note(&used(&usage));
        }
        let mut out = String::new();
        for file in &written.files {
            let tier = file.tier.name();
            let cases = format!("{} {tier} {}", file.added.len(), if file.added.len() == 1 { "case" } else { "cases" });
            let _ = match (file.is_new, file.added.is_empty()) {
                (true, _) => writeln!(out, "wrote {}: {cases}", printable(&file.path)),
                (false, true) => {
                    writeln!(out, "{} has all of them already: {} in all", printable(&file.path), file.total)
                }
                (false, false) => writeln!(out, "added {cases} to {}: {} in all", printable(&file.path), file.total),
            };
        }
        if !written.overlaps.is_empty() {
            let map = self.settings.shown(&self.settings.overlap_map.path);
            let told = format!("{map}: {} overlaps {}", session.tool, written.overlaps.join(", "));
            let _ = writeln!(out, "{}", printable(&told));
        }
        let left_out: Vec<&Entry> =
            [Tier::Golden, Tier::Labeled].into_iter().flat_map(|tier| session.left_out(tier)).collect();
        if !left_out.is_empty() {
            let _ = writeln!(out, "left out: {}", counted(left_out.len(), "draft"));
        }
        // A person who dropped one wanted it so.
        let is_bad = |entry: &&&Entry| !entry.draft.as_ref().is_some_and(Draft::can_be_approved) || is_private(entry);
        let bad: Vec<&&Entry> = left_out.iter().filter(is_bad).collect();
        for entry in bad.iter().filter(|_| self.args.approve_all) {
            let findings = entry.draft.iter().flat_map(|draft: &Draft| &draft.findings);
            let is_reason =
                |finding: &&DraftFinding| finding.severity == Severity::Error || finding.rule == Rule::PersonalData;
            let why = findings.filter(is_reason).map(|finding| finding.message.as_str());
            let why: Vec<&str> = why.collect();
            let _ = writeln!(out, "  {}: {}", printable(&entry.slot.id), printable(&why.join("; ")));
        }
        if self.args.approve_all {
            self.tell_warnings(session);
        }
        if session.batches().is_empty() && session.open_slots().is_empty() {
            let _ =
                writeln!(out, "nothing to draft: {} has all the cases that it should have", printable(&session.tool));
        }
        for finding in &lacking {
            self.printer.warn(&format!("all cases together: {}", finding.message));
        }
        out.push_str(&open_text(session));
        let is_incomplete = !bad.is_empty();
        ForgeReport::of_session(session, drafter, written.files, written.overlaps, &lacking).print(
            self.args.format,
            &out,
            self.printer,
        )?;
        Ok(if self.args.approve_all && is_incomplete { ExitStatus::Failed } else { ExitStatus::Success })
    }

    /// Tells how many cases were written that a person might not have let pass.
    fn tell_warnings(&self, session: &Session) {
        let entries = session.batches().iter().flat_map(|batch| &batch.entries).filter(|entry| entry.is_approved());
        let drafts = entries.filter_map(|entry| entry.draft.as_ref()).filter(|draft| !draft.findings.is_empty());
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        let mut count = 0;
        for draft in drafts {
            count += 1;
            let rules: BTreeSet<String> = draft.findings.iter().map(|finding| finding.rule.name().to_owned()).collect();
            for rule in rules {
                *kinds.entry(rule).or_default() += 1;
            }
        }
        if count > 0 {
            let kinds: Vec<String> = kinds.into_iter().map(|(rule, count)| format!("{count} {rule}")).collect();
            self.printer.warn(&format!("{} with warnings: {}", counted(count, "case"), kinds.join(", ")));
        }
    }

    /// Returns who approves where nobody can be asked.
    pub(super) fn approver_name(&self) -> Result<String, Failure> {
        self.args.approver.name(self.environment)
    }

    pub(super) fn known_approver(&self) -> Option<String> {
        self.approver_name().ok()
    }

    fn require_triggers(&self) -> Result<(), Failure> {
        if self.drafted.is_some() {
            return Ok(());
        }
        let found = self.material.brief.triggers.len();
        if found >= MIN_TRIGGERS {
            return Ok(());
        }
        let name = &self.material.brief.tool.name;
        Err(Failure::invalid(format!(
            "'{name}' has {found} trigger phrases, and at least {MIN_TRIGGERS} are needed"
        ))
        .hint(
            "say what people say who mean it: --trigger 'PHRASE' (3 to 5 times), or 'triggerPhrases' in the registry",
        ))
    }

    /// Returns a kept session with the material it works on, and what changed since.
    pub(super) fn kept_session(&self, kept: &KeptSession) -> Result<Option<(Session, Material, Vec<String>)>, Failure> {
        if self.args.restart {
            if let Some(session) = kept.read()? {
                match session.unwritten_count() {
                    0 => {}
                    count => {
                        self.printer.warn(&format!("{} not written yet, forgotten", counted(count, "approved case")));
                    }
                }
            }
            kept.forget()?;
            return Ok(None);
        }
        let Some(session) = kept.read()? else { return Ok(None) };
        if self.drafted.is_some() {
            let tool = command_word(&session.tool);
            return Err(Failure::invalid("a session of this tool has begun, which --drafts cannot be added to")
                .hint(format!("karat forge {tool} --resume goes on with it"))
                .hint(format!("karat forge {tool} --restart --drafts FILE forgets it")));
        }
        let mut material = self.material.with_declared(&session.declared);
        material.brief.triggers.clone_from(&session.triggers);
        let changes = session.basis.changes(&karat_forge::session::Basis::of(&material.brief));
        Ok(Some((session, material, changes)))
    }

    fn session_is_kept(&self) -> Failure {
        let word = command_word(&self.material.brief.tool.name);
        Failure::invalid(format!("a session of '{}' is kept", self.material.brief.tool.name))
            .hint(format!("karat forge {word} --resume goes on with it, --restart forgets it"))
    }

    pub(super) fn no_session(&self) -> Failure {
        let name = &self.material.brief.tool.name;
        Failure::nothing_selected(format!("there is no session of '{name}' to go on with"))
            .hint(format!("karat forge {} begins one", command_word(name)))
    }
}

/// Lists the open slots and the ways to fill them.
fn open_text(session: &Session) -> String {
    let open = session.open_slots();
    if open.is_empty() {
        return String::new();
    }
    let mut kinds: BTreeMap<(Tier, Option<Difficulty>), usize> = BTreeMap::new();
    for slot in open {
        *kinds.entry((slot.purpose.tier(), slot.purpose.difficulty())).or_default() += 1;
    }
    let kinds = kinds
        .into_iter()
        .map(|((tier, difficulty), count)| format!("{count} {}", difficulty.map_or(tier.name(), Difficulty::name)));
    let ways = [
        ("--brief", "prints what a coding agent needs to draft them"),
        ("--drafts FILE", "takes drafts of a coding agent, of a model, or yours"),
        ("--model KIND:MODEL", "lets a model draft them"),
        ("--drafter traces", "takes real messages of stored traces"),
    ];
    let mut text = format!("still open: {}\n", kinds.collect::<Vec<_>>().join(", "));
    for (flag, what) in ways {
        let _ = writeln!(text, "  {flag:<18}  {what}");
    }
    text
}

/// Says what drafting used up.
fn used(usage: &Usage) -> String {
    let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let cost = usage.cost_usd.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
    format!("the model read {} and wrote {} tokens{cost}", tokens(usage.input_tokens), tokens(usage.output_tokens))
}

/// Returns the numbers of the drafts that hold something personal.
fn private(batch: &Batch) -> Vec<usize> {
    let entries = batch.entries.iter().enumerate().filter(|(_, entry)| entry.is_undecided() && is_private(entry));
    entries.map(|(index, _)| index + 1).collect()
}

fn is_private(entry: &Entry) -> bool {
    let findings = entry.draft.iter().flat_map(|draft| &draft.findings);
    findings.into_iter().any(|finding| finding.rule == Rule::PersonalData)
}

/// Returns what all cases together lack.
fn lacking(material: &Material, session: &Session) -> Vec<DraftFinding> {
    let entries = session.batches().iter().flat_map(|batch| &batch.entries).filter(|entry| entry.is_approved());
    let drafts: Vec<Draft> = entries.filter_map(|entry| entry.draft.clone()).collect();
    if drafts.is_empty() {
        return Vec::new();
    }
    examine_whole(&material.brief, &session.plan, &drafts)
}

fn told(error: &karat_forge::session::Refusal) -> Failure {
    Failure::errored(error.to_string())
}
