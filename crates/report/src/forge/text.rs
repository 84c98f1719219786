//! Plans, briefs, saved sessions and refusals.

use karat_cases::Tier;
use karat_forge::session::Session;
use karat_forge::{BATCH_SIZE, BriefDocument, Plan};
use karat_json::text::counted;
use karat_tools::overlap::shell_quote;
use karat_workflows::forge::Refusal;

use crate::terminal_text::printable;

/// Renders the brief of a tool, and how to hand in the drafts.
pub fn brief_text(document: &BriefDocument, tool: &str) -> String {
    let tool = shell_quote(tool);
    printable_lines(&format!(
        "{document}\n## Hand in the drafts\n\n\
         1. karat forge {tool} --drafts FILE --dry-run --format json: findings by case, exit code 1 while a \
         draft cannot be approved\n\
         2. karat forge {tool} --drafts FILE: a person approves, and karat writes the eval files\n"
    ))
}

/// Renders the planned cases.
pub fn plan_text(plan: &Plan) -> String {
    printable_lines(&plan.to_string())
}

/// Returns what to know before the planned labeled cases are drafted: how many stay open, and how to do fewer.
pub fn plan_notes(session: &Session) -> Vec<String> {
    let (now, open) = labeled_counts(session);
    let mut notes = Vec::new();
    if open > 0 {
        notes.push(format!(
            "{now} of these {} can be drafted now; {open} need --model, --drafts FILE or --drafter traces",
            counted(now + open, "case"),
        ));
    }
    if now > BATCH_SIZE {
        notes.push(
            "You do not need to finish: q after any batch keeps what you approved, and --resume continues.".to_owned(),
        );
    }
    notes
}

/// Returns the question before the planned labeled cases are drafted.
pub fn plan_question(session: &Session) -> String {
    let (now, _) = labeled_counts(session);
    let batches = session.batches().iter().filter(|batch| batch.tier == Tier::Labeled).count();
    let batches = if batches == 1 { "1 batch".to_owned() } else { format!("{batches} batches") };
    format!("Next: {} in {batches}, for you to review. Proceed?", counted(now, "draft"))
}

/// Returns the numbers of labeled cases that are drafted in this session, and that stay open.
fn labeled_counts(session: &Session) -> (usize, usize) {
    let labeled = session.batches().iter().filter(|batch| batch.tier == Tier::Labeled);
    let open = session.open_slots().iter().filter(|slot| slot.purpose.tier() == Tier::Labeled).count();
    (labeled.map(|batch| batch.entries.len()).sum(), open)
}

/// Renders the saved sessions, one per line.
pub fn sessions_text(sessions: &[Session]) -> String {
    let mut out = String::from("Several sessions are saved:\n");
    for session in sessions {
        let (number, of) = session.position();
        let tier = session.batch().map_or("all decided", |batch| batch.tier.name());
        let batch = if session.batch().is_some() { format!(", batch {number} of {of}") } else { String::new() };
        let line = format!("  {}: {tier}{batch}, {} approved", session.tool, session.approved_count());
        out.push_str(&printable(&line));
        out.push('\n');
    }
    out
}

/// Renders the numbers of cases.
pub fn numbers_text(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// Renders why a command was refused, and what to do instead.
pub fn refusal_text(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NoOtherDraft | Refusal::InstructionsNotSupported => {
            format!("{refusal}: edit the case (e NUMBER), or pass --model")
        }
        Refusal::TooFewTriggers | Refusal::DuplicateTrigger => format!("  {refusal}"),
        refusal => refusal.to_string(),
    }
}

/// Escapes control characters line by line; names and texts come from the project.
fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| printable(line).into_owned()).collect();
    lines.join("\n") + "\n"
}
