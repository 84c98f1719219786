//! Rules that a project silences.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::ContractRule;
use karat_cases::registry::{Registry, ToolField};
use karat_json::{Path, Problem, Problems, Subject, nearest, read_array, read_object_map, read_string, type_name};
use karat_lints::Rule;

/// Wildcard for all tools or all rules.
const ALL: &str = "*";

/// Silenced rules by tool, from the configuration; `*` is every tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Silence {
    tools: BTreeMap<String, SilencedRules>,
}

/// The silenced rules of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
enum SilencedRules {
    All(RuleWildcard),
    Named(Vec<SilencedRule>),
}

/// The wildcard for all rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
enum RuleWildcard {
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

/// A rule about how a tool was read, not about its description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RegistryRule {
    /// A value is only known when the tool's source is run.
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
    /// Returns the case rules that are silenced for a tool.
    pub fn case_rules(&self, tool: &str) -> Vec<Rule> {
        let mut silencer = Silencer::new(self);
        Rule::ALL.iter().copied().filter(|rule| silencer.silences([tool], SilencedRule::Case(*rule))).collect()
    }

    /// Reads the rules by tool, strictly.
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let map = read_object_map(value, path, problems)?;
        let read = |(tool, value): (&String, &Value)| {
            Some((tool.clone(), SilencedRules::read(value, &path.key(tool), problems)?))
        };
        // Collected first, so that the problems of all entries are reported.
        let entries: Vec<Option<(String, SilencedRules)>> = map.iter().map(read).collect();
        let tools = entries.into_iter().collect::<Option<_>>()?;
        Some(Self { tools })
    }
}

impl SilencedRules {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let names: Vec<&str> = SilencedRule::all().map(SilencedRule::name).collect();
        match value {
            Value::String(word) if word == ALL => Some(Self::All(RuleWildcard::All)),
            Value::Array(_) => {
                let read_rule = |value: &Value, path: &Path<'_>, problems: &mut Problems| {
                    let name = read_string(value, path, problems)?;
                    let rule = SilencedRule::all().find(|rule| rule.name() == name);
                    if rule.is_none() {
                        let help = nearest(&name, &names).map(|near| format!("did you mean '{near}'?"));
                        let help =
                            help.unwrap_or_else(|| "run 'karat check --rules' to list the rules for cases".to_owned());
                        let message = format!("unknown or non-silenceable rule '{name}'");
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

/// Filters silenced findings, counts them, and tracks which entries were used.
#[derive(Debug)]
pub struct Silencer<'s> {
    silence: &'s Silence,
    /// Used entries by tool and rule index; 0 for all rules.
    used: BTreeSet<(&'s str, usize)>,
    count: usize,
}

impl<'s> Silencer<'s> {
    pub fn new(silence: &'s Silence) -> Self {
        Self { silence, used: BTreeSet::new(), count: 0 }
    }

    /// Whether a finding is silenced, for any of its tools or for all tools. Counts it if so.
    pub fn silences<'t>(&mut self, tools: impl IntoIterator<Item = &'t str>, rule: SilencedRule) -> bool {
        let mut is_silenced = false;
        for name in tools.into_iter().chain([ALL]) {
            let Some((tool, rules)) = self.silence.tools.get_key_value(name) else {
                continue;
            };
            let index = match rules {
                SilencedRules::All(_) => Some(0),
                SilencedRules::Named(rules) => rules.iter().position(|named| *named == rule),
            };
            if let Some(index) = index {
                self.used.insert((tool, index));
                is_silenced = true;
            }
        }
        self.count += usize::from(is_silenced);
        is_silenced
    }

    /// Returns the number of silenced findings.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the entries that silenced nothing. Entries for tools that are not fully known are skipped.
    pub fn unused(&self, registry: &Registry) -> Vec<Problem> {
        let mut problems = Problems::default();
        for (tool, rules) in &self.silence.tools {
            let path = Path::Root.key(tool);
            let known = registry.tool(tool);
            if tool != ALL && known.is_none() {
                if registry.gaps().is_empty() {
                    let help = nearest(tool, &registry.names()).map(|near| format!("did you mean '{near}'?"));
                    let message = format!("unused entry: 'silence' names '{tool}', which is not in the registry");
                    problems.push(&path, Subject::Key, message, help);
                }
                continue;
            }
            if known.is_some_and(|tool| tool.unknown(ToolField::Description).is_some()) {
                continue;
            }
            let target = if tool == ALL { "any tool".to_owned() } else { format!("'{tool}'") };
            let help = Some("remove it, so that it does not hide new findings".to_owned());
            match rules {
                SilencedRules::All(_) if !self.used.contains(&(tool.as_str(), 0)) => {
                    let message = format!("unused entry: no rule reports anything about {target}");
                    problems.push(&path, Subject::Key, message, help);
                }
                SilencedRules::All(_) => {}
                SilencedRules::Named(rules) => {
                    let unused = |(index, _): &(usize, &SilencedRule)| !self.used.contains(&(tool.as_str(), *index));
                    for (index, rule) in rules.iter().enumerate().filter(unused) {
                        let message = format!("unused entry: '{}' reports nothing about {target}", rule.name());
                        problems.push(&path.index(index), Subject::Value, message, help.clone());
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
    use karat_cases::registry::Tool;

    fn read(value: &Value) -> Result<Silence, Vec<Problem>> {
        let mut problems = Problems::default();
        let read = Silence::read(value, &Path::Root, &mut problems);
        read.filter(|_| problems.is_empty()).ok_or_else(|| problems.into_list())
    }

    #[test]
    fn rejects_unknown_rules_with_a_suggestion() {
        let problems = read(&json!({"a": ["description-vauge"], "b": "all", "c": [1]})).expect_err("invalid");
        let messages: Vec<_> =
            problems.iter().map(|problem| (problem.pointer.as_str(), problem.message.as_str())).collect();
        assert_eq!(
            messages,
            [
                ("/a/0", "unknown or non-silenceable rule 'description-vauge'"),
                ("/b", "'b' must be an array of rules or \"*\", found a string"),
                ("/c/0", "'c'[0] must be a string, found a number"),
            ]
        );
        assert_eq!(problems[0].help.as_deref(), Some("did you mean 'description-vague'?"));
    }

    #[test]
    fn reports_unused_entries() {
        let silence = read(&json!({
            "a": ["description-vague", "description-length"], "b": "*", "c": "*", "get": ["description-vague"],
            "*": ["description-trigger"],
        }))
        .expect("valid");
        let rule = SilencedRule::Contract;
        let mut silencer = Silencer::new(&silence);
        assert!(silencer.silences(["a"], rule(ContractRule::DescriptionVague)));
        assert!(silencer.silences(["z", "b"], rule(ContractRule::DescriptionDuplicate)));
        assert!(silencer.silences(["z"], rule(ContractRule::DescriptionTrigger)));
        assert!(!silencer.silences(["z"], SilencedRule::UNKNOWN));
        assert_eq!(silencer.count(), 3);
        let tool = |name: &str| Tool { name: name.to_owned(), ..Tool::default() };
        let registry = Registry::from_tools(["a", "b", "c", "gets"].map(tool));
        let unused = silencer.unused(&registry);
        let pointers: Vec<&str> = unused.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(pointers, ["/a/1", "/c", "/get"]);
        assert_eq!(unused[2].help.as_deref(), Some("did you mean 'gets'?"));
    }
}
