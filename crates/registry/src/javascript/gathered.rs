//! The tools that were met, and what becomes of them once everything was read.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use karat_core::registry::{Gap, GapKind, Registry, Tool, ToolField, Unknown as UnknownField};
use serde_json::{Map, Value as Json};

use super::definition;
use super::modules::Modules;
use super::value::{Object, Place};

/// Tools in the order in which they were met.
#[derive(Default)]
pub(super) struct Gathered {
    entries: Vec<Entry>,
    seen: HashSet<(Place, String)>,
    /// Definitions without a name that a key has named.
    keyed: HashSet<Place>,
    /// Definitions without a name that stand in a list.
    listed: Vec<Place>,
}

struct Entry {
    name: String,
    object: Rc<Object>,
    place: Place,
    /// The definition has no name of its own, and is called what it is exported as unless a key says otherwise.
    is_fallback: bool,
}

impl Gathered {
    /// Takes in a tool; one that was met before is passed over.
    pub(super) fn add(&mut self, name: String, object: Rc<Object>, place: Place) {
        if self.seen.insert((place, name.clone())) {
            self.entries.push(Entry { name, object, place, is_fallback: false });
        }
    }

    /// Takes in a tool that has its name from a key.
    pub(super) fn add_keyed(&mut self, name: String, object: Rc<Object>, place: Place) {
        self.keyed.insert(place);
        self.add(name, object, place);
    }

    /// Takes in a tool that has its name from an export.
    pub(super) fn add_exported(&mut self, name: String, object: Rc<Object>, place: Place) {
        self.entries.push(Entry { name, object, place, is_fallback: true });
    }

    /// Notes a definition in a list that gives it no name; something else may.
    pub(super) fn add_listed(&mut self, place: Place) {
        self.listed.push(place);
    }

    /// Puts the tools into a registry; names that are taken become gaps.
    pub(super) fn finish(mut self, modules: &Modules, registry: &mut Registry, gaps: &mut Vec<Gap>) {
        let writes = modules.loose_writes();
        let mut fallbacks = HashSet::new();
        let mut tools: Vec<(Tool, Option<Place>, Place)> = Vec::new();
        let mut by_name: HashMap<String, usize> = HashMap::new();
        for entry in std::mem::take(&mut self.entries) {
            if entry.is_fallback && (self.keyed.contains(&entry.place) || !fallbacks.insert(entry.place)) {
                continue;
            }
            let described = entry.object.get("description").map(|value| value.place);
            let mut tool = definition::read(entry.name, &entry.object, entry.place, modules);
            for (at, write, reached) in &writes {
                if reached.contains(&entry.place.module) {
                    forget(&mut tool, write.key.as_deref(), *at, modules);
                }
            }
            match by_name.get(&tool.name) {
                None => {
                    by_name.insert(tool.name.clone(), tools.len());
                    tools.push((tool, described, entry.place));
                }
                Some(&at) => {
                    let (first, first_described, _) = &mut tools[at];
                    // The same words at the same place: a definition, and what was made of it.
                    if described.is_some() && *first_described == described {
                        complete(first, tool);
                        continue;
                    }
                    let other = first.place.as_ref().map(ToString::to_string).unwrap_or_default();
                    let what = format!("the name '{}' is taken by the tool at {other}", tool.name);
                    gaps.push(Gap { kind: GapKind::Broken, place: modules.place(entry.place), what });
                }
            }
        }
        for place in self.listed {
            if !self.keyed.contains(&place) && !fallbacks.contains(&place) {
                let what = "the tool has no name of its own, and a list gives it none".to_owned();
                gaps.push(Gap { kind: GapKind::Unknown, place: modules.place(place), what });
            }
        }
        for (tool, ..) in tools {
            registry.add(tool).ok();
        }
    }
}

/// Adds what another reading of the same tool says more.
fn complete(tool: &mut Tool, other: Tool) {
    let had_schema = tool.input_schema.is_some();
    tool.version = tool.version.take().or(other.version);
    tool.input_schema = tool.input_schema.take().or(other.input_schema);
    tool.category = tool.category.take().or(other.category);
    tool.requires_confirmation = tool.requires_confirmation.or(other.requires_confirmation);
    tool.status = tool.status.take().or(other.status);
    if tool.trigger_phrases.is_empty() {
        tool.trigger_phrases = other.trigger_phrases;
    }
    for unknown in other.unknown {
        let says_more = match unknown.field {
            ToolField::InputSchema => !had_schema,
            ToolField::Description => tool.description.is_none(),
            _ => false,
        };
        if says_more && !tool.unknown.contains(&unknown) {
            tool.unknown.push(unknown);
        }
    }
}

/// Makes a field unknown that may be changed somewhere; all that the tool has, where no field is named.
fn forget(tool: &mut Tool, key: Option<&str>, at: Place, modules: &Modules) {
    let all = [
        ToolField::Description,
        ToolField::Version,
        ToolField::InputSchema,
        ToolField::Category,
        ToolField::RequiresConfirmation,
        ToolField::Status,
        ToolField::TriggerPhrases,
    ];
    for field in all {
        let (is_named, is_there) = match field {
            ToolField::Description => (key == Some("description"), tool.description.is_some()),
            ToolField::Version => (key == Some("version"), tool.version.is_some()),
            ToolField::InputSchema => {
                (key.is_some_and(|key| definition::SCHEMA_KEYS.contains(&key)), tool.input_schema.is_some())
            }
            ToolField::Category => (key == Some("category"), tool.category.is_some()),
            ToolField::RequiresConfirmation => {
                (key == Some("requiresConfirmation"), tool.requires_confirmation.is_some())
            }
            ToolField::Status => (key == Some("status"), tool.status.is_some()),
            ToolField::TriggerPhrases => (key == Some("triggerPhrases"), !tool.trigger_phrases.is_empty()),
        };
        let concerns = is_named || key.is_none() && is_there;
        if !concerns || tool.unknown(field).is_some() {
            continue;
        }
        match field {
            ToolField::Description => (tool.description, tool.description_place) = (None, None),
            ToolField::Version => tool.version = None,
            ToolField::InputSchema => tool.input_schema = Some(Json::Object(Map::new())),
            ToolField::Category => tool.category = None,
            ToolField::RequiresConfirmation => tool.requires_confirmation = None,
            ToolField::Status => tool.status = None,
            ToolField::TriggerPhrases => tool.trigger_phrases.clear(),
        }
        let why = "it may be changed here".to_owned();
        tool.unknown.push(UnknownField { field, place: modules.place(at), why });
    }
}
