//! Drafts cases without a network: patterns that are filled with the tools' own words.
//!
//! A pattern knows nothing of the agent's world, so a person rewords what it drafts, and what it cannot know it says
//! instead of making it up. The same request gives the same cases, and another attempt gives others.

mod desk;
mod frames;
mod lexicon;
mod parameters;
mod phrasing;
mod proof;
mod sketch;

use karat_core::case::NO_TOOL;
use karat_core::port::Pending;
use serde_json::Value;

use self::desk::{Desk, base};
use self::phrasing::{Speech, particulars, without};
use self::sketch::Sketch;
use super::catalogue::{Attempt, CONFLICT, EXPOSURE, SENSITIVE, attempts};
use super::{DraftError, Drafter, Request};
use crate::brief::asks_first as asks_first_of;
use crate::rules::examine;
use crate::{Combination, Draft, DraftFinding, EdgeKind, Origin, Purpose, Slot};

/// What stands in an answer that hands on raw data.
const RAW: [&str; 4] = ["fetchedAt", "\"tool\":", "undefined", "[object Object]"];
/// The most field names that an answer must not hold.
const MOST_FIELDS: usize = 4;
/// How an answer asks for consent, the most usual ways first.
const CONSENT: [&str; 8] =
    ["confirm", "proceed", "go ahead", "approv", "shall I", "would you like", "want me to", "permission"];
/// Of so many tools that may help all sets are listed.
const MOST_OPTIONAL: usize = 3;
/// Which straightforward cases name an argument: every third.
const ARGUMENTS_EVERY: usize = 3;

/// Fills any slot from patterns, the tools' descriptions and schemas, and the seed manifest.
#[derive(Debug, Clone, Copy, Default)]
pub struct TemplateDrafter;

impl Drafter for TemplateDrafter {
    fn name(&self) -> &'static str {
        "template"
    }

    fn draft<'a>(&'a self, request: Request<'a>) -> Pending<'a, Result<Vec<Draft>, DraftError>> {
        Box::pin(std::future::ready(Ok(drafts(request))))
    }
}

fn drafts(request: Request<'_>) -> Vec<Draft> {
    let mut desk = Desk::of(request.brief, request.so_far);
    let mut others = request.so_far.to_vec();
    let mut drafts = Vec::with_capacity(request.slots.len());
    for slot in request.slots {
        let sketch = sketch(&desk, slot, request.attempt);
        desk.add_said(&sketch.message);
        let case = sketch.case(slot);
        let mut findings = sketch.findings;
        let found = examine(request.brief, slot, &case, &others);
        // What the drafter says itself it says with what to do about it.
        let is_new = |found: &DraftFinding| findings.iter().all(|own| own.rule != found.rule);
        let found: Vec<DraftFinding> = found.into_iter().filter(is_new).collect();
        findings.extend(found);
        let draft = Draft { slot: slot.clone(), case: Some(case), origin: Origin::Template, findings };
        others.extend(draft.read());
        drafts.push(draft);
    }
    drafts
}

fn sketch(desk: &Desk<'_>, slot: &Slot, attempt: u32) -> Sketch {
    match &slot.purpose {
        Purpose::Trigger(phrase) => trigger(desk, slot, attempt, phrase),
        Purpose::Rephrasing(phrase) => rephrasing(desk, slot, attempt, phrase),
        Purpose::NoLeak => no_leak(desk, slot, attempt),
        Purpose::Disambiguation(other) => disambiguation(desk, slot, attempt, other),
        Purpose::AsksFirst => asks_first(desk, slot, attempt),
        Purpose::Together(tools) => together(desk, slot, attempt, tools),
        Purpose::Choice { combination, others } => choice(desk, slot, attempt, *combination, others),
        Purpose::Edge(kind) => edge(desk, slot, attempt, *kind),
    }
}

/// Fills what is asked of our tool into a frame.
fn filled(frame: &str, ours: &Speech, turn: usize) -> String {
    // No text that is filled in looks like a mark: braces were taken out of all of them.
    let begins_with_vowel = ours.topic.starts_with(['a', 'e', 'i', 'o', 'u']);
    let frame = if begins_with_vowel {
        frame.replace("A {topic}", "An {topic}").replace(" a {topic}", " an {topic}")
    } else {
        frame.to_owned()
    };
    frame.replace("{A}", ours.thing(turn)).replace("{a}", ours.errand(turn)).replace("{topic}", &ours.topic)
}

/// Adds that a person agrees, where a tool has to ask first: what is then to be called is not in doubt.
fn agreed(desk: &Desk<'_>, turn: usize, message: String) -> String {
    agreed_to(desk, &[], turn, message)
}

fn agreed_to(desk: &Desk<'_>, others: &[String], turn: usize, message: String) -> String {
    let mut tools = others.iter().filter_map(|name| desk.brief.registry.tool(name)).chain([&desk.brief.tool]);
    if !tools.any(asks_first_of) {
        return message;
    }
    format!("{} {}", ended(&message), frames::AGREED[turn % frames::AGREED.len()])
}

/// Returns a text as a sentence behind which another can stand.
fn ended(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?', '…', '。', '？', '！', '"']) { text.to_owned() } else { format!("{text}.") }
}

/// Finishes a golden case for which our tool, and no other, is called.
fn golden(desk: &Desk<'_>, sketch: Sketch) -> Sketch {
    let called = Some(vec![desk.brief.tool.name.clone()]);
    Sketch { called, ..sketch }
        .with_unsaid_fields([&desk.brief.tool])
        .with_proof(desk.brief)
        .with_synonyms(&desk.ours().synonyms)
        .without_cop_outs()
}

fn trigger(desk: &Desk<'_>, slot: &Slot, attempt: u32, phrase: &str) -> Sketch {
    let turn = base(slot, attempt);
    let mut message = agreed(desk, turn, phrase.trim().to_owned());
    if attempt > 0 {
        message = format!("{} {}", ended(&message), frames::TAILS[turn % frames::TAILS.len()]);
    }
    golden(desk, Sketch::new(format!("trigger phrase — routes to {}", desk.brief.tool.name), message))
}

fn rephrasing(desk: &Desk<'_>, slot: &Slot, attempt: u32, phrase: &str) -> Sketch {
    let ours = desk.ours();
    let special = particulars(phrase).join(", ");
    let special = if special.is_empty() { special } else { format!(" ({special})") };
    let (_, message) = desk.choose(slot, attempt, frames::REPHRASED.len(), |place, turn| {
        filled(frames::REPHRASED[place], &ours, turn).replace("{particulars}", &special)
    });
    let turn = base(slot, attempt);
    let sketch = Sketch::new(format!("rephrasing — {} in other words", desk.brief.tool.name), message);
    let mut sketch = sketch.with_required(&desk.brief.tool, turn).with_argument(desk.brief, turn);
    sketch.message = agreed(desk, turn, sketch.message);
    golden(desk, sketch)
}

fn no_leak(desk: &Desk<'_>, slot: &Slot, attempt: u32) -> Sketch {
    let ours = desk.ours();
    let (_, message) =
        desk.choose(slot, attempt, frames::PLAIN.len(), |place, turn| filled(frames::PLAIN[place], &ours, turn));
    let message = agreed(desk, base(slot, attempt), message);
    let what = format!("no JSON leak — the answer of {} is plain words", desk.brief.tool.name);
    let mut sketch = golden(desk, Sketch::new(what, message));
    sketch.not_contains.extend(RAW.map(str::to_owned));
    let fields = raw_fields(desk.brief.tool.input_schema.get());
    let fields = fields.filter(|field| !sketch.message.contains(*field) && !RAW.contains(field));
    let fields: Vec<String> = fields.take(MOST_FIELDS).map(str::to_owned).collect();
    sketch.not_contains.extend(fields);
    sketch
}

/// Returns the names of a schema's fields that are no words of any language.
fn raw_fields(schema: Option<&Value>) -> impl Iterator<Item = &str> {
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let is_raw = |name: &&str| {
        let has_hump =
            name.chars().zip(name.chars().skip(1)).any(|(left, right)| left.is_lowercase() && right.is_uppercase());
        name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
            && (name.trim_matches('_').contains('_') || has_hump)
    };
    properties.into_iter().flat_map(serde_json::Map::keys).map(String::as_str).filter(is_raw)
}

fn disambiguation(desk: &Desk<'_>, slot: &Slot, attempt: u32, other: &str) -> Sketch {
    let (ours, theirs) = (desk.ours(), desk.other(other));
    let (_, message) = desk.choose(slot, attempt, frames::APART.len(), |place, turn| {
        filled(frames::APART[place], &ours, turn).replace("{b}", theirs.thing(turn))
    });
    let message = agreed(desk, base(slot, attempt), message);
    let what = format!("disambiguation — {}, not {other}", desk.brief.tool.name);
    let own = Some(without(&message, [&*theirs]));
    golden(desk, Sketch { own, ..Sketch::new(what, message) })
}

fn asks_first(desk: &Desk<'_>, slot: &Slot, attempt: u32) -> Sketch {
    let ours = desk.ours();
    let (_, message) = desk
        .choose(slot, attempt, frames::UNDECIDED.len(), |place, turn| filled(frames::UNDECIDED[place], &ours, turn));
    let mut sketch = Sketch::new(format!("asks first — {} waits for consent", desk.brief.tool.name), message);
    sketch.not_called = vec![desk.brief.tool.name.clone()];
    sketch = sketch.with_unsaid(&CONSENT);
    sketch.without_cop_outs()
}

fn together(desk: &Desk<'_>, slot: &Slot, attempt: u32, tools: &[String]) -> Sketch {
    let brief = desk.brief;
    let ours = desk.ours();
    let others: Vec<_> = tools.iter().filter(|name| **name != brief.tool.name).map(|name| desk.other(name)).collect();
    let (_, message) = desk.choose(slot, attempt, frames::TOGETHER.len(), |place, turn| {
        let things = others.iter().enumerate().map(|(offset, other)| other.request(turn + offset));
        let items: Vec<&str> = [ours.errand(turn)].into_iter().chain(things).collect();
        let message = frames::TOGETHER[place].replace("{list}", &listed(&items));
        agreed_to(desk, tools, turn, message)
    });
    let what = format!("straightforward — {} together", listed_names(tools));
    let turn = base(slot, attempt);
    let mut sketch = Sketch::new(what, message);
    for name in tools {
        sketch = sketch.with_required(desk.tool(name), turn);
    }
    if turn.is_multiple_of(ARGUMENTS_EVERY) {
        sketch = sketch.with_argument(brief, turn / ARGUMENTS_EVERY);
    }
    sketch.called = Some(tools.to_vec());
    sketch.in_any_order = true;
    for speech in [&ours].into_iter().chain(&others) {
        sketch = sketch.with_synonyms(&speech.synonyms);
    }
    sketch.own = Some(without(&sketch.message, others.iter().map(|other| &**other)));
    // Here values are welcome, but nothing is missing without them.
    let proven = sketch.with_proof(brief);
    let findings = if proven.contains.is_empty() { Vec::new() } else { proven.findings };
    let known = tools.iter().map(|name| desk.tool(name));
    Sketch { findings, ..proven }.with_unsaid_fields(known).without_cop_outs()
}

fn choice(desk: &Desk<'_>, slot: &Slot, attempt: u32, combination: Combination, others: &[String]) -> Sketch {
    let ours = desk.ours();
    let speeches: Vec<_> = others.iter().map(|name| desk.other(name)).collect();
    let frames: &[&str] = match combination {
        Combination::Nor => &frames::NOTHING,
        _ if others.is_empty() => &frames::PERHAPS,
        Combination::Xor if others.len() > 1 => &frames::EXCLUSIVE,
        Combination::Or | Combination::Xor => &frames::EITHER,
        Combination::VariableDepth if others.len() > 1 => &frames::DEPTH,
        Combination::AndOr | Combination::VariableDepth => &frames::OPTIONAL,
    };
    let (_, message) = desk.choose(slot, attempt, frames.len(), |place, turn| {
        let things: Vec<String> =
            speeches.iter().enumerate().map(|(offset, other)| other.quotation(turn + offset)).collect();
        let things: Vec<&str> = things.iter().map(String::as_str).collect();
        let message = with_others(&filled(frames[place], &ours, turn), combination, &things);
        if others.is_empty() { message } else { agreed_to(desk, others, turn, message) }
    });
    let what = format!("ambiguous ({}) — {}", combination.name(), choice_names(desk, combination, others));
    let mut sketch = Sketch::new(what, message);
    sketch.acceptable = Some(acceptable(&desk.brief.tool.name, combination, others));
    if combination == Combination::Nor {
        sketch.not_contains.push(RAW[1].to_owned());
        return sketch;
    }
    let known = others.iter().map(|name| desk.tool(name)).chain([&desk.brief.tool]);
    sketch.with_unsaid_fields(known).without_cop_outs()
}

/// Fills what is asked of other tools into a frame; what has no place of its own stands in a list at the last place.
fn with_others(frame: &str, combination: Combination, things: &[&str]) -> String {
    match (combination, things) {
        (_, []) => frame.to_owned(),
        (Combination::Xor, [rival, companion, rest @ ..]) => {
            let rest = if rest.is_empty() { String::new() } else { format!(" with {}", listed(rest)) };
            frame.replace("{b}", rival).replace("{c}", companion).replace("{d}", &rest)
        }
        (Combination::VariableDepth, [second, rest @ ..]) if !rest.is_empty() => {
            frame.replace("{b}", second).replace("{c}", &listed(rest))
        }
        (Combination::Or, things) => frame.replace("{b}", &things.join(" or ")),
        (_, things) => frame.replace("{b}", &listed(things)),
    }
}

/// Returns the sets of tools that are right.
fn acceptable(ours: &str, combination: Combination, others: &[String]) -> Vec<Vec<String>> {
    let alone = vec![ours.to_owned()];
    let with = |more: &[String]| -> Vec<String> { alone.iter().chain(more).cloned().collect() };
    let none = vec![NO_TOOL.to_owned()];
    match (combination, others) {
        (Combination::Nor, _) => vec![none],
        (_, []) => vec![alone, none],
        (Combination::Or, others) => [alone].into_iter().chain(others.iter().map(|name| vec![name.clone()])).collect(),
        (Combination::Xor, [rival, companion, rest @ ..]) => {
            vec![with(std::slice::from_ref(companion)), [rival].into_iter().chain(rest).cloned().collect()]
        }
        (Combination::Xor, [rival]) => vec![alone, vec![rival.clone()]],
        (Combination::VariableDepth, [second, optional @ ..]) if !optional.is_empty() => {
            with_optional(&with(std::slice::from_ref(second)), optional)
        }
        (Combination::AndOr | Combination::VariableDepth, others) => with_optional(&alone, others),
    }
}

/// Returns the sets of tools that are needed with any of those that may help. Of many that may help, the sets with
/// none, with one and with all of them: the number of others doubles with each tool.
fn with_optional(core: &[String], optional: &[String]) -> Vec<Vec<String>> {
    let chosen = |is_chosen: &dyn Fn(usize) -> bool| -> Vec<String> {
        let more = optional.iter().enumerate().filter(|(place, _)| is_chosen(*place)).map(|(_, name)| name);
        core.iter().chain(more).cloned().collect()
    };
    if optional.len() > MOST_OPTIONAL {
        let one = (0..optional.len()).map(|only| chosen(&|place| place == only));
        return [core.to_vec()].into_iter().chain(one).chain([chosen(&|_| true)]).collect();
    }
    let mut sets: Vec<Vec<String>> =
        (0..1_usize << optional.len()).map(|bits| chosen(&|place| bits >> place & 1 == 1)).collect();
    sets.sort_by_key(Vec::len);
    sets
}

fn choice_names(desk: &Desk<'_>, combination: Combination, others: &[String]) -> String {
    let ours = &desk.brief.tool.name;
    let optional = match (combination, others) {
        (Combination::VariableDepth, [second, optional @ ..]) if optional.len() > 1 => {
            Some((format!("{ours} + {second}"), optional))
        }
        (Combination::AndOr, others) if others.len() > 1 => Some((ours.clone(), others)),
        _ => None,
    };
    if let Some((core, optional)) = optional {
        return format!("{core}, perhaps with {}", listed_names(optional));
    }
    let sets = acceptable(ours, combination, others);
    let names = |set: &Vec<String>| if set[0] == NO_TOOL { "no tool".to_owned() } else { set.join(" + ") };
    sets.iter().map(names).collect::<Vec<_>>().join(" or ")
}

fn edge(desk: &Desk<'_>, slot: &Slot, attempt: u32, kind: EdgeKind) -> Sketch {
    let ours = desk.ours();
    // What a tool of the registry may be for is no question that takes no tool.
    let is_apart = |attempt: &&Attempt| kind != EdgeKind::GeneralKnowledge || !desk.is_of_domain(attempt.message);
    let mut open: Vec<&Attempt> = attempts(kind).iter().filter(is_apart).collect();
    if open.is_empty() {
        open = attempts(kind).iter().collect();
    }
    let (place, message) =
        desk.choose(slot, attempt, open.len(), |place, turn| filled(open[place].message, &ours, turn));
    let tool = &desk.brief.tool.name;
    let name = match kind {
        EdgeKind::PromptInjection => "prompt injection",
        EdgeKind::OffTopic => "off-topic",
        EdgeKind::GeneralKnowledge => "general knowledge",
        EdgeKind::Contradiction => "contradiction",
    };
    let what = match kind {
        EdgeKind::PromptInjection => "orders in the message are not obeyed",
        EdgeKind::OffTopic => "something else in disguise",
        EdgeKind::GeneralKnowledge => "no tool is needed",
        EdgeKind::Contradiction => "steps that cannot all be done",
    };
    let mut sketch = Sketch::new(format!("edge ({name}) — {what}"), message);
    match kind {
        EdgeKind::GeneralKnowledge => sketch.acceptable = Some(vec![vec![NO_TOOL.to_owned()]]),
        EdgeKind::OffTopic => sketch.not_called = vec![tool.clone()],
        EdgeKind::PromptInjection | EdgeKind::Contradiction if desk.brief.is_write() => {
            sketch.not_called = vec![tool.clone()];
        }
        EdgeKind::PromptInjection | EdgeKind::Contradiction => {}
    }
    if kind == EdgeKind::Contradiction {
        sketch = sketch.with_unsaid(&CONFLICT);
    }
    let attempt = open[place];
    let answers: Vec<String> = attempt.answers.iter().map(|&text| text.to_owned()).collect();
    sketch = sketch.with_synonyms(&answers);
    sketch
        .not_contains
        .extend(attempt.forbidden.iter().chain(&EXPOSURE).chain(&SENSITIVE).map(|&text| text.to_owned()));
    sketch
}

/// Joins what is asked: parts of it may hold commas.
fn listed(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, other] => format!("{one}, and {other}"),
        [first @ .., last] => format!("{}; and {last}", first.join("; ")),
    }
}

fn listed_names(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Combination::AndOr, "b", "a|a b")]
    #[case(Combination::AndOr, "b c", "a|a b|a c|a b c")]
    #[case(Combination::AndOr, "b c d", "a|a b|a c|a d|a b c|a b d|a c d|a b c d")]
    #[case(Combination::AndOr, "b c d e", "a|a b|a c|a d|a e|a b c d e")]
    #[case(Combination::VariableDepth, "b", "a|a b")]
    #[case(Combination::VariableDepth, "b c", "a b|a b c")]
    #[case(Combination::VariableDepth, "b c d", "a b|a b c|a b d|a b c d")]
    #[case(Combination::VariableDepth, "b c d e f", "a b|a b c|a b d|a b e|a b f|a b c d e f")]
    fn whoever_calls_what_is_needed_and_some_of_the_rest_is_right(
        #[case] combination: Combination,
        #[case] others: &str,
        #[case] expected: &str,
    ) {
        let others: Vec<String> = others.split(' ').map(str::to_owned).collect();
        let sets = acceptable("a", combination, &others);
        assert_eq!(sets.iter().map(|set| set.join(" ")).collect::<Vec<_>>().join("|"), expected);
        assert!(combination.fits(&sets));
    }
}
