//! Loads everything that drafting needs: the tool, the registry, overlaps, facts and existing cases.

use std::collections::BTreeSet;
use std::path::PathBuf;

use karat_cases::registry::{Registry, Tool, same_name};
use karat_cases::token::TokenSources;
use karat_cases::{Case, SuiteFile, Tier};
use karat_forge::file::file_name;
use karat_forge::session::DeclaredOverlap;
use karat_forge::{Brief, BriefDocument, Overlap, Plan, Slot, golden_slots, labeled_slots};
use karat_json::nearest;
use karat_project::{EvalPath, discover_or_empty, parse_suite_file, read_bytes, read_json_setting, read_overlap_map};
use karat_tools::contract::{ContractFinding, ContractRule, check_descriptions};
use karat_tools::coverage::MIN_GOLDEN_CASES;
use karat_tools::overlap::{DEFAULT_MIN_SIMILARITY, Neighbour, OverlapEntry, OverlapMap, Shape, Suggestion, suggest};
use tokio_util::sync::CancellationToken;

use super::description::{DescriptionVerdict, DescriptionWarning, VagueDescription, check_description};
use super::{MAX_TRIGGERS, MIN_TRIGGERS};
use crate::cancel::run_until_cancelled;
use crate::context::Context;
use crate::context::snapshot::capture;
use crate::context::tools::list_tools;
use crate::error::Error;
use crate::hint::Hint;
use crate::notice::Notices;
use crate::settings::Settings;

/// The tool that cases are drafted for.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    pub tool: String,
    pub tiers: Tiers,
    /// Phrases that should trigger the tool; those of the registry if empty.
    pub triggers: Vec<String>,
}

/// The tiers to draft cases for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiers {
    Golden,
    Labeled,
    Both,
}

impl Tiers {
    pub fn includes(self, tier: Tier) -> bool {
        match self {
            Tiers::Golden => tier == Tier::Golden,
            Tiers::Labeled => tier == Tier::Labeled,
            Tiers::Both => matches!(tier, Tier::Golden | Tier::Labeled),
        }
    }
}

/// The result of [`load_inputs`].
pub enum LoadedInputs {
    Ready(Box<ForgeInputs>),
    Vague(VagueDescription),
}

/// The inputs of drafting, and the files to write to.
#[derive(Clone)]
pub struct ForgeInputs {
    pub brief: Brief,
    pub tiers: Tiers,
    /// A warning about the description to confirm before drafting.
    pub description_warning: Option<DescriptionWarning>,
    overlaps: Option<OverlapMap>,
    /// `None` if a part of the registry could not be read.
    pub(super) registry_size: Option<usize>,
    golden_file: PathBuf,
    labeled_file: PathBuf,
}

/// Reads the tool, the registry, the overlap map, the facts of the test data and the existing cases.
pub async fn load_inputs(
    request: &ToolRequest,
    with_facts: bool,
    context: &Context<'_>,
    cancel: &CancellationToken,
) -> Result<LoadedInputs, Error> {
    run_until_cancelled(cancel, load_all_inputs(request, with_facts, context)).await
}

async fn load_all_inputs(
    request: &ToolRequest,
    with_facts: bool,
    context: &Context<'_>,
) -> Result<LoadedInputs, Error> {
    let (settings, notices) = (&context.settings, context.notices);
    let registry = list_tools(settings, notices).await?.ok_or_else(|| {
        let default = settings.display_path(&settings.tool_registry.path);
        Error::invalid("no tool registry is configured")
            .hint(format!("the default {default} does not exist"))
            .hint("pass --tool-registry-path, or set 'toolRegistryPath' in karat.json")
    })?;
    registry.gaps().iter().for_each(|gap| notices.gap(gap));
    let tool = find_tool(&request.tool, &registry)?.clone();
    let overlaps = read_overlap_map(&settings.overlap_map)?;
    let description_warning = match check_description(&tool, &registry, overlaps.as_ref(), context)? {
        DescriptionVerdict::Vague(vague) => return Ok(LoadedInputs::Vague(vague)),
        DescriptionVerdict::Doubtful(description_warning) => Some(description_warning),
        DescriptionVerdict::Clear => None,
    };
    let seed = read_json_setting(&settings.seed_manifest, "the seed manifest")?;
    let snapshot = match &settings.snapshot {
        Some(source) if with_facts => {
            Some(capture(source, settings.timeout, &settings.variables, &settings.redactor).await?)
        }
        _ => None,
    };
    let files = ToolFiles::find(&tool.name, context)?;
    let registry_size = registry.gaps().is_empty().then(|| registry.tools().len());
    let (neighbours, clusters) = declared(&tool.name, overlaps.as_ref(), &registry, notices);
    let triggers = triggers(&request.triggers, &tool);
    if triggers.len() > MAX_TRIGGERS {
        let (name, count) = (&tool.name, triggers.len());
        notices.warn(&format!(
            "'{name}' has {count} trigger phrases, expected {MIN_TRIGGERS} to {MAX_TRIGGERS}: each one gets a golden case"
        ));
    }
    let brief = Brief {
        triggers,
        overlaps: neighbours,
        clusters,
        sources: TokenSources { seed, snapshot },
        silenced: settings.silence.silence.case_rules(&tool.name),
        golden: files.golden.cases,
        labeled: files.labeled.cases,
        tool,
        registry,
    };
    Ok(LoadedInputs::Ready(Box::new(ForgeInputs {
        brief,
        tiers: request.tiers,
        description_warning,
        overlaps,
        registry_size,
        golden_file: files.golden.path,
        labeled_file: files.labeled.path,
    })))
}

impl ForgeInputs {
    pub fn plan(&self) -> Plan {
        Plan::new(&self.brief)
    }

    /// Returns the document that a person or model needs to draft the missing cases.
    pub fn brief_document(&self) -> BriefDocument {
        let plan = self.plan();
        BriefDocument::new(&self.brief, &plan, &self.slots(&plan))
    }

    /// Returns the slots of the wanted tiers.
    pub(super) fn slots(&self, plan: &Plan) -> Vec<Slot> {
        let mut slots = if self.tiers.includes(Tier::Golden) { golden_slots(&self.brief) } else { Vec::new() };
        if self.tiers.includes(Tier::Labeled) {
            slots.extend(labeled_slots(&self.brief, plan));
        }
        slots
    }

    /// Whether golden cases are missing and there are too few trigger phrases to create slots for them.
    pub fn has_too_few_triggers(&self) -> bool {
        let is_short_of_golden = self.brief.golden.len() < MIN_GOLDEN_CASES;
        self.tiers.includes(Tier::Golden) && self.brief.triggers.len() < MIN_TRIGGERS && is_short_of_golden
    }

    pub(super) fn file(&self, tier: Tier) -> &PathBuf {
        if tier == Tier::Golden { &self.golden_file } else { &self.labeled_file }
    }

    /// Returns the inputs with overlaps that a person declared.
    pub(super) fn with_declared(&self, declared: &[DeclaredOverlap]) -> Self {
        let mut inputs = self.clone();
        let overlaps = &mut inputs.brief.overlaps;
        for DeclaredOverlap { tool, reason } in declared {
            if overlaps.iter().all(|overlap| overlap.tool != *tool) {
                overlaps.push(Overlap { tool: tool.clone(), reasons: reason.iter().cloned().collect() });
            }
        }
        overlaps.sort_by(|left, right| left.tool.cmp(&right.tool));
        inputs
    }

    /// Returns tools to propose as overlaps, each with a reason, if the map is editable and has no entry for the tool.
    pub(super) fn proposals(&self) -> Vec<(String, String)> {
        let map = self.overlaps.as_ref();
        let name = &self.brief.tool.name;
        let has_entry = map.is_some_and(|map| map.entries.iter().any(|entry| entry.tool == *name));
        let is_list = map.is_some_and(|map| map.shape == Shape::List && !map.entries.is_empty());
        if has_entry || is_list || !self.brief.overlaps.is_empty() {
            return Vec::new();
        }
        let all = suggest(&self.brief.registry, map, None, DEFAULT_MIN_SIMILARITY).list.into_iter();
        let proposal = |suggestion: Suggestion| {
            let (first, second) = &suggestion.tools;
            let other = if first == name { second } else { first };
            (first == name || second == name).then(|| (other.clone(), overlap_reason(&suggestion, other)))
        };
        all.filter_map(proposal).collect()
    }

    /// Returns the finding that the tool's description would have if the other tool were declared to overlap it.
    pub(super) fn lacks_disambiguation(&self, other: &str) -> Option<ContractFinding> {
        let near = Neighbour { tool: other.to_owned(), ..Neighbour::default() };
        let entry =
            OverlapEntry { tool: self.brief.tool.name.clone(), overlaps: vec![near], ..OverlapEntry::default() };
        let map = OverlapMap::of(Shape::ByTool, vec![entry], String::new());
        let findings = check_descriptions(&self.brief.registry, Some(&map)).into_iter();
        let is_disambiguation = |finding: &ContractFinding| {
            finding.tool == self.brief.tool.name && finding.rule == ContractRule::DescriptionDisambiguation
        };
        findings.into_iter().find(is_disambiguation)
    }
}

fn overlap_reason(suggestion: &Suggestion, other: &str) -> String {
    if suggestion.named_by.iter().any(|by| by == other) {
        return format!("the description of {other} names it");
    }
    if !suggestion.named_by.is_empty() {
        return format!("its description names {other}");
    }
    let words: Vec<&str> = suggestion.shared_words.iter().take(4).map(String::as_str).collect();
    format!("both are about {}", words.join(", "))
}

fn find_tool<'r>(name: &str, registry: &'r Registry) -> Result<&'r Tool, Error> {
    registry.find(name).ok_or_else(|| {
        let error = Error::not_found(format!("unknown tool '{name}'"));
        match nearest(name, &registry.names()) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint(Hint::ListTools),
        }
    })
}

/// Returns the phrases of the request, or those of the registry if there are none, without duplicates.
fn triggers(requested: &[String], tool: &Tool) -> Vec<String> {
    let phrases = if requested.is_empty() { tool.trigger_phrases() } else { requested };
    let mut seen = BTreeSet::new();
    let phrases = phrases.iter().map(|phrase| phrase.trim()).filter(|phrase| !phrase.is_empty());
    phrases.filter(|phrase| seen.insert(phrase.to_lowercase())).map(str::to_owned).collect()
}

/// Returns a tool's overlaps with their reasons, and its clusters. Skips tools that are not in the registry.
fn declared(
    tool: &str,
    map: Option<&OverlapMap>,
    registry: &Registry,
    notices: &dyn Notices,
) -> (Vec<Overlap>, Vec<Vec<String>>) {
    let Some(map) = map else { return (Vec::new(), Vec::new()) };
    let is_known = |name: &str| {
        let known = registry.tool(name).is_some();
        if !known {
            notices.warn(&format!("skipped unknown tool '{name}' of the overlap map"));
        }
        known
    };
    let neighbours: Vec<&str> = map.neighbours(tool).filter(|name| is_known(name)).collect();
    let overlap = |other: &str| {
        let mut reasons: Vec<String> = Vec::new();
        for entry in map.entries.iter().filter(|entry| entry.tool == tool || entry.tool == other) {
            let own = entry.overlaps.iter().filter(|near| near.tool == tool || near.tool == other);
            let own: Vec<&String> = own.filter_map(|near| near.reason.as_ref()).collect();
            let names_pair = entry.overlaps.iter().any(|near| near.tool == tool || near.tool == other);
            let general = entry.reason.as_ref().filter(|_| names_pair && own.is_empty());
            reasons.extend(own.into_iter().chain(general).cloned());
        }
        reasons.dedup();
        Overlap { tool: other.to_owned(), reasons }
    };
    let clusters = map.clusters_of(tool).map(|cluster| cluster.iter().cloned().collect::<Vec<String>>());
    let clusters = clusters.filter(|cluster| cluster.iter().all(|name| registry.tool(name).is_some())).collect();
    (neighbours.into_iter().map(overlap).collect(), clusters)
}

/// A tool's eval files of both tiers.
struct ToolFiles {
    golden: TierFile,
    labeled: TierFile,
}

/// The file of a tier, and its cases.
struct TierFile {
    path: PathBuf,
    cases: Vec<Case>,
}

impl ToolFiles {
    fn find(tool: &str, context: &Context<'_>) -> Result<Self, Error> {
        let settings = &context.settings;
        let mut golden = TierFile::at_default_path(tool, Tier::Golden, settings)?;
        let mut labeled = TierFile::at_default_path(tool, Tier::Labeled, settings)?;
        for path in discover_or_empty(&[], &settings.layout, &settings.layout.current_dir)? {
            let is_own = [&golden.path, &labeled.path].contains(&&path.path);
            match parse_suite_file(&path, &read_bytes(&path)?) {
                Ok(SuiteFile::Eval(file)) if same_name(&file.tool_name, tool) => match file.tier {
                    Tier::Golden => golden.add(&path, file.cases),
                    Tier::Labeled => labeled.add(&path, file.cases),
                    Tier::Regression | Tier::Rubric | Tier::Security | Tier::Unknown => {}
                },
                Ok(_) => {}
                Err(_) if is_own => {
                    return Err(Error::invalid(format!(
                        "cannot add cases to {}: the file is invalid",
                        path.display_path
                    ))
                    .hint(Hint::CheckFiles));
                }
                Err(_) => {
                    let warning = format!("skipped invalid file {}; run 'karat check' for details", path.display_path);
                    context.notices.warn(&warning);
                }
            }
        }
        Ok(Self { golden, labeled })
    }
}

impl TierFile {
    /// Returns the file of a tier at its default path.
    fn at_default_path(tool: &str, tier: Tier, settings: &Settings) -> Result<Self, Error> {
        if tool.trim().is_empty() || tool.contains(['/', '\\']) || tool.starts_with('.') {
            return Err(Error::invalid(format!("tool name '{tool}' cannot be used in a file name")));
        }
        Ok(Self { path: settings.layout.root.join("evals").join(file_name(tool, tier)), cases: Vec::new() })
    }

    /// Adds the cases of a file. New cases go to the first file, unless the one at the default path exists.
    fn add(&mut self, path: &EvalPath, cases: Vec<Case>) {
        self.cases.extend(cases);
        if !self.path.exists() {
            self.path.clone_from(&path.path);
        }
    }
}
