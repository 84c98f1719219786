//! `--dry-run` and `--approve-all`: no prompts.

use std::fmt::Write as _;

use karat_core::exit::ExitStatus;
use karat_lints::Rule;
use karat_report::forge::{BatchView, batch_text, batch_view, open_text, plan_text, summary_text, usage_text};
use karat_report::{counted, printable};
use karat_workflows::Hint;
use karat_workflows::forge::{Conversation, ForgeInputs, Mode, Step};

use super::Forge;
use super::spinner::Spinner;
use crate::failure::Failure;
use crate::hint::hint_text;

impl Forge<'_> {
    /// Drafts all cases and prints them.
    pub(super) async fn dry_run(&self, inputs: ForgeInputs) -> Result<ExitStatus, Failure> {
        let mut conversation = self.open(inputs, Mode::DryRun, None).await?;
        let console = self.printer.console();
        let mut text = String::new();
        let mut observe = |conversation: &Conversation<'_>, step: &Step| match step {
            Step::ApprovePlan => {
                let plan = conversation.session().map(|session| plan_text(&session.plan));
                let _ = writeln!(text, "{}", plan.unwrap_or_default());
            }
            Step::Decide => {
                let batch = batch_view(conversation, None).map(|batch| BatchView { approved: None, ..batch });
                let _ = batch.map(|batch| writeln!(text, "{}", batch_text(&batch, console)));
            }
            _ => {}
        };
        conversation.run_unattended(&mut observe, &mut Spinner::new(self), &self.cancel).await?;
        let summary = conversation.finish()?;
        for finding in &summary.report.coverage_findings {
            let _ = writeln!(text, "coverage: {}", printable(&finding.message));
        }
        text.push_str(&open_text(&summary.report));
        self.print(&summary.report, &text)?;
        Ok(if summary.refused.is_empty() { ExitStatus::Success } else { ExitStatus::Failed })
    }

    /// Writes all drafts that can be approved, and lists the others.
    pub(super) async fn approve_all(&self, inputs: ForgeInputs) -> Result<ExitStatus, Failure> {
        // Recorded in the eval file, so that unreviewed cases can be found.
        let approver = format!("{} (--approve-all)", self.args.author.name(self.environment)?);
        let mode = Mode::Unattended { resume: self.args.resume, restart: self.args.restart };
        let mut conversation = self.open(inputs, mode, Some(approver)).await?;
        let mut spinner = Spinner::new(self);
        let result = conversation.run_unattended(&mut |_, _| {}, &mut spinner, &self.cancel).await;
        drop(spinner);
        if let Err(error) = result {
            let failure = Failure::from(error);
            if failure.status == ExitStatus::Interrupted {
                self.printer.print_wrapped("", &resume_text(&conversation));
            }
            return Err(failure);
        }
        self.finish(conversation)
    }

    /// Prints what was written and what was left out.
    pub(super) fn finish(&self, conversation: Conversation<'_>) -> Result<ExitStatus, Failure> {
        let is_scripted = self.args.approve_all;
        let summary = conversation.finish()?;
        if let Some(usage) = &summary.usage {
            self.printer.note(&usage_text(usage));
        }
        if is_scripted && summary.with_findings > 0 {
            let rules: Vec<String> = summary.findings.iter().map(|(rule, count)| format!("{count} {rule}")).collect();
            let cases = counted(summary.with_findings, "case");
            self.printer.warn(&format!("{cases} with warnings: {}", rules.join(", ")));
        }
        if let Some(count) = summary.findings.get(Rule::FewProofValues.name()) {
            let advice = if self.args.verify {
                "add them to 'responseContains'"
            } else {
                "add them to 'responseContains'; '--verify' and '--drafter traces' take them from real answers"
            };
            let subject = match count {
                // The warning has the number.
                _ if is_scripted => Rule::FewProofValues.name().to_owned() + ": ",
                1 => "1 case has ".to_owned(),
                count => format!("{count} cases have "),
            };
            self.printer.note(&format!("{subject}too few values that prove the call: {advice}"));
        }
        for finding in &summary.report.coverage_findings {
            self.printer.warn(&format!("coverage: {}", finding.message));
        }
        self.print(&summary.report, &summary_text(&summary, &self.overlap_map(), is_scripted))?;
        Ok(match &summary {
            summary if !is_scripted || summary.refused.is_empty() => ExitStatus::Success,
            summary if summary.has_no_verdict => ExitStatus::Errored,
            _ => ExitStatus::Failed,
        })
    }
}

/// Returns where the session is saved and how to resume it.
pub(super) fn resume_text(conversation: &Conversation<'_>) -> String {
    let tool = conversation.tool().to_owned();
    let file = conversation.session_path().unwrap_or_default().to_owned();
    hint_text(Hint::ResumeSavedForge { tool, file })
}
