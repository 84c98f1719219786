//! Which findings about tools and cases a project silences.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::ContractRule;
use karat_core::lint::Rule;
use karat_core::registry::{Registry, ToolField};
use karat_json::{Path, Problem, Problems, Subject, nearest, read_array, read_object_map, read_string, type_name};

/// Stands for all tools, or for all rules.
const ALL: &str = "*";

/// Rules by tool, as a configuration says; the tool `*` is every tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Silence {
    tools: BTreeMap<String, SilencedRules>,
}

/// What is silenced for a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
enum SilencedRules {
    All(EveryRule),
    Named(Vec<SilencedRule>),
}

/// The word for all rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
enum EveryRule {
    #[serde(rename = "*")]
    All,
}

/// A rule that can be silenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SilencedRule {
    Contract(ContractRule),
    Registry(RegistryRule),
    Case(Rule),
}

/// A rule about what was read of a tool, not about its description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RegistryRule {
    /// Something shows only when the tool's source is run.
    RegistryUnknown,
}

impl SilencedRule {
    pub const UNKNOWN: SilencedRule = SilencedRule::Registry(RegistryRule::RegistryUnknown);

    pub fn name(self) -> &'static str {
        match self {
            SilencedRule::Contract(rule) => rule.name(),
            SilencedRule::Registry(RegistryRule::RegistryUnknown) => "registry-unknown",
            SilencedRule::Case(rule) => rule.name(),
        }
    }

    fn all() -> impl Iterator<Item = SilencedRule> {
        let of_cases = Rule::ALL.iter().copied().filter(|rule| !matches!(rule, Rule::Invalid | Rule::Drafter));
        let of_tools = ContractRule::ALL.into_iter().map(SilencedRule::Contract).chain([SilencedRule::UNKNOWN]);
        of_tools.chain(of_cases.map(SilencedRule::Case))
    }
}

impl Silence {
    /// Returns the rules for cases that are silenced for a tool.
    pub fn case_rules(&self, tool: &str) -> Vec<Rule> {
        let mut silencer = Silencer::new(self);
        Rule::ALL.iter().copied().filter(|rule| silencer.takes([tool], SilencedRule::Case(*rule))).collect()
    }

    /// Reads the rules by tool, strictly.
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let map = read_object_map(value, path, problems)?;
        let read = |(tool, value): (&String, &Value)| {
            Some((tool.clone(), SilencedRules::read(value, &path.key(tool), problems)?))
        };
        // Every entry is read, so that every entry's problem is found.
        let entries: Vec<Option<(String, SilencedRules)>> = map.iter().map(read).collect();
        let tools = entries.into_iter().collect::<Option<_>>()?;
        Some(Self { tools })
    }
}

impl SilencedRules {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let names: Vec<&str> = SilencedRule::all().map(SilencedRule::name).collect();
        match value {
            Value::String(word) if word == ALL => Some(Self::All(EveryRule::All)),
            Value::Array(_) => {
                let read_rule = |value: &Value, path: &Path<'_>, problems: &mut Problems| {
                    let name = read_string(value, path, problems)?;
                    let rule = SilencedRule::all().find(|rule| rule.name() == name);
                    if rule.is_none() {
                        let help = nearest(&name, &names).map(|near| format!("did you mean '{near}'?"));
                        let help = help.unwrap_or_else(|| "'karat check --rules' lists the rules for cases".to_owned());
                        let message = format!("there is no rule '{name}' that can be silenced");
                        problems.push(path, Subject::Value, message, Some(help));
                    }
                    rule
                };
                read_array(value, path, problems, read_rule).map(Self::Named)
            }
            _ => {
                let message = format!("{} must be an array of rules or \"*\", found {}", path.name(), type_name(value));
                problems.push(
                    path,
                    Subject::Value,
                    message,
                    Some("for example [\"description-trigger\"], or \"*\" for all rules".to_owned()),
                );
                None
            }
        }
    }
}

/// Takes out what is silenced, counts it, and remembers which entries were of use.
#[derive(Debug)]
pub struct Silencer<'s> {
    silence: &'s Silence,
    /// Tools with the places of their rules; all rules are in one place.
    used: BTreeSet<(&'s str, usize)>,
    count: usize,
}

impl<'s> Silencer<'s> {
    pub fn new(silence: &'s Silence) -> Self {
        Self { silence, used: BTreeSet::new(), count: 0 }
    }

    /// Tells whether a finding about some tools is silenced: for any of them, or for all tools.
    pub fn takes<'t>(&mut self, tools: impl IntoIterator<Item = &'t str>, rule: SilencedRule) -> bool {
        let mut is_silenced = false;
        for name in tools.into_iter().chain([ALL]) {
            let Some((tool, rules)) = self.silence.tools.get_key_value(name) else {
                continue;
            };
            let place = match rules {
                SilencedRules::All(_) => Some(0),
                SilencedRules::Named(rules) => rules.iter().position(|named| *named == rule),
            };
            if let Some(place) = place {
                self.used.insert((tool, place));
                is_silenced = true;
            }
        }
        self.count += usize::from(is_silenced);
        is_silenced
    }

    /// Returns how many findings were silenced.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Finds the entries that silenced nothing. Of what is not known, nothing is said.
    pub fn unused(&self, registry: &Registry) -> Vec<Problem> {
        let mut problems = Problems::default();
        for (tool, rules) in &self.silence.tools {
            let path = Path::Root.key(tool);
            let known = registry.tool(tool);
            if tool != ALL && known.is_none() {
                if registry.gaps().is_empty() {
                    let help = nearest(tool, &registry.names()).map(|near| format!("did you mean '{near}'?"));
                    let message =
                        format!("'silence' names '{tool}', which is not in the registry: it silences nothing");
                    problems.push(&path, Subject::Key, message, help);
                }
                continue;
            }
            if known.is_some_and(|tool| tool.unknown(ToolField::Description).is_some()) {
                continue;
            }
            let whom = if tool == ALL { "any tool".to_owned() } else { format!("'{tool}'") };
            let help = Some("take it out, so that it hides nothing new".to_owned());
            match rules {
                SilencedRules::All(_) if !self.used.contains(&(tool.as_str(), 0)) => {
                    let message = format!("no rule finds anything about {whom}: this silences nothing");
                    problems.push(&path, Subject::Key, message, help);
                }
                SilencedRules::All(_) => {}
                SilencedRules::Named(rules) => {
                    let unused = |(place, _): &(usize, &SilencedRule)| !self.used.contains(&(tool.as_str(), *place));
                    for (place, rule) in rules.iter().enumerate().filter(unused) {
                        let message = format!("'{}' finds nothing about {whom}: this silences nothing", rule.name());
                        problems.push(&path.index(place), Subject::Value, message, help.clone());
                    }
                }
            }
        }
        problems.into_list()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use karat_core::registry::Tool;

    fn read(value: &Value) -> Result<Silence, Vec<Problem>> {
        let mut problems = Problems::default();
        let read = Silence::read(value, &Path::Root, &mut problems);
        read.filter(|_| problems.is_empty()).ok_or_else(|| problems.into_list())
    }

    #[test]
    fn what_nobody_knows_is_said_with_what_is_near() {
        let problems = read(&json!({"a": ["description-vauge"], "b": "all", "c": [1]})).expect_err("invalid");
        let said: Vec<_> =
            problems.iter().map(|problem| (problem.pointer.as_str(), problem.message.as_str())).collect();
        assert_eq!(
            said,
            [
                ("/a/0", "there is no rule 'description-vauge' that can be silenced"),
                ("/b", "'b' must be an array of rules or \"*\", found a string"),
                ("/c/0", "'c'[0] must be a string, found a number"),
            ]
        );
        assert_eq!(problems[0].help.as_deref(), Some("did you mean 'description-vague'?"));
    }

    #[test]
    fn what_is_of_no_use_shows() {
        let silence = read(&json!({
            "a": ["description-vague", "description-length"], "b": "*", "c": "*", "get": ["description-vague"],
            "*": ["description-trigger"],
        }))
        .expect("valid");
        let rule = SilencedRule::Contract;
        let mut silencer = Silencer::new(&silence);
        assert!(silencer.takes(["a"], rule(ContractRule::DescriptionVague)));
        assert!(silencer.takes(["z", "b"], rule(ContractRule::DescriptionDuplicate)));
        assert!(silencer.takes(["z"], rule(ContractRule::DescriptionTrigger)));
        assert!(!silencer.takes(["z"], SilencedRule::UNKNOWN));
        assert_eq!(silencer.count(), 3);
        let tool = |name: &str| Tool { name: name.to_owned(), ..Tool::default() };
        let registry = Registry::of(["a", "b", "c", "gets"].map(tool));
        let unused = silencer.unused(&registry);
        let places: Vec<&str> = unused.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(places, ["/a/1", "/c", "/get"]);
        assert_eq!(unused[2].help.as_deref(), Some("did you mean 'gets'?"));
    }
}
