//! A case while it is being put together.

use karat_core::registry::Tool;
use serde_json::{Map, Value, json};

use super::parameters::{Argument, unsaid_fields};
use super::proof::Proof;
use crate::rules::DraftRule;
use crate::{Brief, DraftFinding, Slot};

/// How an answer gives up.
const COP_OUTS: [&str; 3] = ["I don't know", "no information", "unable to"];
/// The most words of which an answer is to hold one.
const MOST_WORDS: usize = 4;
/// The longest time to an answer.
const MOST_MILLISECONDS: u64 = 30_000;
/// How the description of a draft ends, so that a person sees that nobody has worded it yet.
const MARK: &str = "(draft: reword)";

/// What a case says and expects.
#[derive(Default)]
pub(super) struct Sketch {
    /// What is tested.
    pub(super) what: String,
    pub(super) message: String,
    /// The message without what it says of other tools, where it does.
    pub(super) own: Option<String>,
    pub(super) called: Option<Vec<String>>,
    pub(super) in_any_order: bool,
    pub(super) acceptable: Option<Vec<Vec<String>>>,
    pub(super) not_called: Vec<String>,
    pub(super) arguments: Vec<Value>,
    pub(super) contains: Vec<String>,
    pub(super) contains_any: Vec<Vec<String>>,
    pub(super) not_contains: Vec<String>,
    pub(super) findings: Vec<DraftFinding>,
}

impl Sketch {
    pub(super) fn new(what: impl Into<String>, message: impl Into<String>) -> Self {
        Self { what: what.into(), message: message.into(), ..Self::default() }
    }

    fn own(&self) -> &str {
        self.own.as_deref().unwrap_or(&self.message)
    }

    /// Asks for an answer that does not give up.
    pub(super) fn without_cop_outs(mut self) -> Self {
        self.not_contains.extend(COP_OUTS.map(str::to_owned));
        self
    }

    /// Asks for one of a tool's own words, where there are enough.
    pub(super) fn with_synonyms(mut self, synonyms: &[String]) -> Self {
        if synonyms.len() > 1 {
            self.contains_any.push(synonyms.to_vec());
        }
        self
    }

    /// Asks for one of some words, the first that the message does not hold itself: an answer that only repeats what
    /// it was told says nothing.
    pub(super) fn with_unsaid(self, words: &[&str]) -> Self {
        let message = self.message.to_lowercase();
        let unsaid = words.iter().filter(|word| !message.contains(&word.to_lowercase()));
        let unsaid: Vec<String> = unsaid.take(MOST_WORDS).map(|&word| word.to_owned()).collect();
        self.with_synonyms(&unsaid)
    }

    /// Names an argument in the message and asks for it, where the schema knows one.
    pub(super) fn with_argument(mut self, brief: &Brief, turn: usize) -> Self {
        if let Some(argument) = Argument::of(&brief.tool, &self.message, turn) {
            self.message = format!("{} {}", self.message, argument.sentence());
            self.arguments.push(argument.assertion(&brief.tool));
        }
        self
    }

    /// Names what a tool requires, where its schema knows a value and the message does not.
    pub(super) fn with_required(mut self, tool: &Tool, turn: usize) -> Self {
        for argument in Argument::required(tool, &self.message, turn) {
            self.message = format!("{} {}", self.message, argument.sentence());
            self.arguments.push(argument.assertion(tool));
        }
        self
    }

    /// Says what tools require and the message does not say: an agent can then only ask, or make it up.
    pub(super) fn with_unsaid_fields<'t>(mut self, tools: impl IntoIterator<Item = &'t Tool>) -> Self {
        let mut names = Vec::new();
        for tool in tools {
            for name in unsaid_fields(tool, &self.message) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        for name in names {
            let message = format!("the message does not say '{name}', which the tool requires");
            self.findings.push(DraftFinding::warning("/input/message", message));
        }
        self
    }

    /// Asks for values of the seed manifest, and says where there are none or where they are guessed.
    pub(super) fn with_proof(mut self, brief: &Brief) -> Self {
        if let Some(proof) = Proof::of(&brief.tool, &brief.sources, &self.message, self.own()) {
            if !proof.is_certain {
                let message = "these values were found in the seed manifest by their names only: check that an answer \
                               to this message holds them";
                self.findings.push(DraftFinding::warning("/expect/responseContains", message));
            }
            self.contains = proof.values;
        } else {
            let message = "no proof values: add what only the tool can know";
            self.findings.push(DraftFinding::warning("/expect", message).of(DraftRule::FewProofValues));
        }
        self
    }

    /// Returns the case as it would stand in the file, its keys in the order of the contract's examples.
    pub(super) fn case(&self, slot: &Slot) -> Value {
        let mut case = Map::new();
        case.insert("id".to_owned(), json!(slot.id));
        case.insert("description".to_owned(), json!(format!("{} {MARK}", self.what)));
        if let Some(difficulty) = slot.purpose.difficulty() {
            case.insert("difficulty".to_owned(), json!(difficulty.name()));
        }
        case.insert("input".to_owned(), json!({"message": self.message}));
        case.insert("expect".to_owned(), Value::Object(self.expect()));
        Value::Object(case)
    }

    fn expect(&self) -> Map<String, Value> {
        let mut expect = Map::new();
        let mut add = |key: &str, value: Value| drop(expect.insert(key.to_owned(), value));
        if let Some(called) = &self.called {
            add("toolsCalled", json!(called));
            if self.in_any_order {
                add("toolsCalledMatch", json!("anyOrder"));
            }
        }
        if let Some(acceptable) = &self.acceptable {
            add("toolsAcceptable", json!(acceptable));
        }
        if !self.not_called.is_empty() {
            add("toolsNotCalled", json!(self.not_called));
        }
        if !self.arguments.is_empty() {
            add("toolParams", json!(self.arguments));
        }
        add("noToolErrors", json!(true));
        add("responseNonEmpty", json!(true));
        if !self.contains.is_empty() {
            add("responseContains", json!(self.contains));
        }
        if !self.contains_any.is_empty() {
            add("responseContainsAny", json!(self.contains_any));
        }
        if !self.not_contains.is_empty() {
            add("responseNotContains", json!(self.not_contains));
        }
        add("maxLatencyMs", json!(MOST_MILLISECONDS));
        expect
    }
}
