//! All that is known of a tool before a case is drafted.

use std::collections::BTreeSet;
use std::path::PathBuf;

use karat_core::case::{Case, SuiteFile, Tier};
use karat_core::registry::{Registry, Tool, same_name};
use karat_core::token::TokenSources;
use karat_forge::file::file_name;
use karat_forge::session::DeclaredOverlap;
use karat_forge::{Brief, BriefDocument, Overlap, Plan, Slot, golden_slots, labeled_slots};
use karat_json::nearest;
use karat_project::{EvalPath, discover_any, parse_suite_file, read_bytes, read_json_setting, read_overlap_map};
use karat_tools::contract::{ContractFinding, ContractRule, check_descriptions};
use karat_tools::coverage::LEAST_GOLDEN;
use karat_tools::overlap::{Neighbour, OverlapEntry, OverlapMap, Shape, Suggestion, USUALLY_ALIKE, suggest};
use tokio_util::sync::CancellationToken;

use super::MIN_TRIGGERS;
use super::description::{DescriptionDoubt, DescriptionVerdict, VagueDescription, check_description};
use crate::cancel::unless_cancelled;
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
    /// What a person says who means the tool; else as the registry says.
    pub triggers: Vec<String>,
}

/// Which cases to draft.
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

/// What came of reading the material.
pub enum Gathered {
    Material(Box<Material>),
    Vague(VagueDescription),
}

/// What cases are made of, and where they go.
#[derive(Clone)]
pub struct Material {
    pub brief: Brief,
    pub tiers: Tiers,
    /// What a person should know of the description before cases are drafted from it.
    pub doubt: Option<DescriptionDoubt>,
    overlaps: Option<OverlapMap>,
    /// None where a part of the registry could not be read.
    pub(super) registry_size: Option<usize>,
    golden_file: PathBuf,
    labeled_file: PathBuf,
}

/// Reads the tool, the registry, the overlap map, the facts of the test data and the cases that exist.
pub async fn gather(
    request: &ToolRequest,
    with_facts: bool,
    context: &Context<'_>,
    cancel: &CancellationToken,
) -> Result<Gathered, Error> {
    unless_cancelled(cancel, gather_all(request, with_facts, context)).await
}

async fn gather_all(request: &ToolRequest, with_facts: bool, context: &Context<'_>) -> Result<Gathered, Error> {
    let (settings, notices) = (&context.settings, context.notices);
    let registry = list_tools(settings, notices).await?.ok_or_else(|| {
        Error::invalid(format!("there is no tool registry: {} is not there", settings.tool_registry.path.display()))
            .hint("name one with --tool-registry-path, or 'toolRegistryPath' in karat.json")
    })?;
    registry.gaps().iter().for_each(|gap| notices.gap(gap));
    let tool = find_tool(&request.tool, &registry)?.clone();
    let overlaps = read_overlap_map(&settings.overlap_map)?;
    let doubt = match check_description(&tool, &registry, overlaps.as_ref(), context)? {
        DescriptionVerdict::Vague(vague) => return Ok(Gathered::Vague(vague)),
        DescriptionVerdict::Doubtful(doubt) => Some(doubt),
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
    let brief = Brief {
        triggers: triggers(&request.triggers, &tool),
        overlaps: neighbours,
        clusters,
        sources: TokenSources { seed, snapshot },
        silenced: settings.silence.silence.case_rules(&tool.name),
        golden: files.golden.cases,
        labeled: files.labeled.cases,
        tool,
        registry,
    };
    Ok(Gathered::Material(Box::new(Material {
        brief,
        tiers: request.tiers,
        doubt,
        overlaps,
        registry_size,
        golden_file: files.golden.path,
        labeled_file: files.labeled.path,
    })))
}

impl Material {
    pub fn plan(&self) -> Plan {
        Plan::of(&self.brief)
    }

    /// Returns what somebody needs to draft the missing cases.
    pub fn brief_document(&self) -> BriefDocument {
        let plan = self.plan();
        BriefDocument::of(&self.brief, &plan, &self.slots(&plan))
    }

    /// Returns the slots of the wanted tiers.
    pub(super) fn slots(&self, plan: &Plan) -> Vec<Slot> {
        let mut slots = if self.tiers.includes(Tier::Golden) { golden_slots(&self.brief) } else { Vec::new() };
        if self.tiers.includes(Tier::Labeled) {
            slots.extend(labeled_slots(&self.brief, plan));
        }
        slots
    }

    /// Tells whether golden cases are missing and there are too few trigger phrases to make slots for them.
    pub fn has_too_few_triggers(&self) -> bool {
        let is_short_of_golden = self.brief.golden.len() < LEAST_GOLDEN;
        self.tiers.includes(Tier::Golden) && self.brief.triggers.len() < MIN_TRIGGERS && is_short_of_golden
    }

    pub(super) fn file(&self, tier: Tier) -> &PathBuf {
        if tier == Tier::Golden { &self.golden_file } else { &self.labeled_file }
    }

    /// Returns the material with neighbours that a person approved.
    pub(super) fn with_declared(&self, declared: &[DeclaredOverlap]) -> Self {
        let mut material = self.clone();
        let overlaps = &mut material.brief.overlaps;
        for DeclaredOverlap { tool, reason } in declared {
            if overlaps.iter().all(|overlap| overlap.tool != *tool) {
                overlaps.push(Overlap { tool: tool.clone(), reasons: reason.iter().cloned().collect() });
            }
        }
        overlaps.sort_by(|left, right| left.tool.cmp(&right.tool));
        material
    }

    /// Returns tools to propose as overlaps, each with a reason, where the map can be edited and says nothing of the tool.
    pub(super) fn proposals(&self) -> Vec<(String, String)> {
        let map = self.overlaps.as_ref();
        let name = &self.brief.tool.name;
        let has_entry = map.is_some_and(|map| map.entries.iter().any(|entry| entry.tool == *name));
        let is_list = map.is_some_and(|map| map.shape == Shape::List && !map.entries.is_empty());
        if has_entry || is_list || !self.brief.overlaps.is_empty() {
            return Vec::new();
        }
        let all = suggest(&self.brief.registry, map, None, USUALLY_ALIKE).list.into_iter();
        let proposal = |suggestion: Suggestion| {
            let (first, second) = &suggestion.tools;
            let other = if first == name { second } else { first };
            (first == name || second == name).then(|| (other.clone(), overlap_reason(&suggestion, other)))
        };
        all.filter_map(proposal).collect()
    }

    /// Returns what the tool's description lacks if the other is declared to be taken for it.
    pub(super) fn lacks_disambiguation(&self, other: &str) -> Option<ContractFinding> {
        let near = Neighbour { tool: other.to_owned(), ..Neighbour::default() };
        let entry =
            OverlapEntry { tool: self.brief.tool.name.clone(), overlaps: vec![near], ..OverlapEntry::default() };
        let map = OverlapMap::of(Shape::ByTool, vec![entry], String::new());
        let findings = check_descriptions(&self.brief.registry, Some(&map)).into_iter();
        let is_meant = |finding: &ContractFinding| {
            finding.tool == self.brief.tool.name && finding.rule == ContractRule::DescriptionDisambiguation
        };
        findings.into_iter().find(is_meant)
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
        let error = Error::not_found(format!("the registry has no tool '{name}'"));
        match nearest(name, &registry.names()) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint(Hint::ListTools),
        }
    })
}

/// Returns the phrases of the request, else those of the registry, each once.
fn triggers(requested: &[String], tool: &Tool) -> Vec<String> {
    let phrases = if requested.is_empty() { tool.trigger_phrases() } else { requested };
    let mut seen = BTreeSet::new();
    let phrases = phrases.iter().map(|phrase| phrase.trim()).filter(|phrase| !phrase.is_empty());
    phrases.filter(|phrase| seen.insert(phrase.to_lowercase())).map(str::to_owned).collect()
}

/// Returns a tool's neighbours with their reasons, and its clusters; what the registry does not have is left out.
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
            notices.warn(&format!("the overlap map names '{name}', which the registry does not have: left out"));
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

/// Where a tier's cases are, and which there are.
struct TierFile {
    path: PathBuf,
    cases: Vec<Case>,
}

impl ToolFiles {
    fn find(tool: &str, context: &Context<'_>) -> Result<Self, Error> {
        let settings = &context.settings;
        let mut golden = TierFile::usual(tool, Tier::Golden, settings)?;
        let mut labeled = TierFile::usual(tool, Tier::Labeled, settings)?;
        for path in discover_any(&[], &settings.layout, &settings.layout.here)? {
            let is_own = [&golden.path, &labeled.path].contains(&&path.path);
            match parse_suite_file(&path, &read_bytes(&path)?) {
                Ok(SuiteFile::Eval(file)) if same_name(&file.tool_name, tool) => match file.tier {
                    Tier::Golden => golden.add(&path, file.cases),
                    Tier::Labeled => labeled.add(&path, file.cases),
                    Tier::Regression | Tier::Rubric | Tier::Unknown => {}
                },
                Ok(_) => {}
                Err(_) if is_own => {
                    return Err(Error::invalid(format!("{} is invalid, so no case can be added to it", path.shown))
                        .hint(Hint::CheckFiles));
                }
                Err(_) => {
                    let warning = format!("{} is invalid and is passed over; 'karat check' shows why", path.shown);
                    context.notices.warn(&warning);
                }
            }
        }
        Ok(Self { golden, labeled })
    }
}

impl TierFile {
    /// Returns where a tier's cases are if nobody put them elsewhere.
    fn usual(tool: &str, tier: Tier, settings: &Settings) -> Result<Self, Error> {
        if tool.trim().is_empty() || tool.contains(['/', '\\']) || tool.starts_with('.') {
            return Err(Error::invalid(format!("'{tool}' cannot be a part of a file's name")));
        }
        Ok(Self { path: settings.layout.root.join("evals").join(file_name(tool, tier)), cases: Vec::new() })
    }

    /// Takes note of a file's cases; the first file is extended, unless there is one of the usual name.
    fn add(&mut self, path: &EvalPath, cases: Vec<Case>) {
        self.cases.extend(cases);
        if !self.path.exists() {
            self.path.clone_from(&path.path);
        }
    }
}
