//! All that is known of a tool before a case is drafted.

use std::collections::BTreeSet;
use std::path::PathBuf;

use karat_core::case::{Case, SuiteFile, Tier};
use karat_core::exit::ExitStatus;
use karat_core::registry::{Registry, Tool, ToolField, same_name};
use karat_core::token::TokenSources;
use karat_forge::file::file_name;
use karat_forge::session::DeclaredOverlap;
use karat_forge::{Brief, Overlap};
use karat_json::nearest;
use karat_report::printable;
use karat_tools::contract::{
    ContractFinding, ContractRule, DraftingGate, SilencedRule, Silencer, check_descriptions, corrected_description,
};
use karat_tools::overlap::{Neighbour, OverlapEntry, OverlapMap, Shape, Suggestion, USUALLY_ALIKE, suggest};

use crate::args::ForgeArgs;
use crate::failure::Failure;
use crate::printer::Printer;
use karat_project::read_overlap_map;
use karat_project::{EvalPath, discover_any};
use karat_project::{parse_suite_file, read_bytes, read_json_setting};
use karat_workflows::context::snapshot::capture;
use karat_workflows::context::tools::list_tools;
use karat_workflows::settings::Settings;

/// What cases are made of, and where they go.
#[derive(Clone)]
pub(super) struct Material {
    pub(super) brief: Brief,
    /// What a person should know of the description before cases are drafted from it.
    pub(super) doubt: Option<ContractFinding>,
    pub(super) overlaps: Option<OverlapMap>,
    /// None where a part of the registry could not be read.
    pub(super) registry_size: Option<usize>,
    pub(super) golden_file: PathBuf,
    pub(super) labeled_file: PathBuf,
}

impl Material {
    /// Reads the tool, the registry, the overlap map, the facts of the test data and the cases that exist; refuses a
    /// tool whose description is too vague.
    pub(super) async fn gather(
        name: &str,
        args: &ForgeArgs,
        needs_facts: bool,
        settings: &Settings,
        printer: &Printer,
    ) -> Result<Self, Failure> {
        let registry = list_tools(settings, printer).await?.ok_or_else(|| {
            Failure::invalid(format!(
                "there is no tool registry: {} is not there",
                settings.tool_registry.path.display()
            ))
            .hint("name one with --tool-registry-path, or 'toolRegistryPath' in karat.json")
        })?;
        registry.gaps().iter().for_each(|gap| printer.warn_of_gap(gap));
        let tool = find_tool(name, &registry)?.clone();
        let overlaps = read_overlap_map(&settings.overlap_map)?;
        let doubt = verify_description(&tool, &registry, overlaps.as_ref(), settings, printer)?;
        let seed = read_json_setting(&settings.seed_manifest, "the seed manifest")?;
        let snapshot = match &settings.snapshot {
            Some(source) if needs_facts => {
                Some(capture(source, settings.timeout, &settings.variables, &settings.redactor).await?)
            }
            _ => None,
        };
        let files = ToolFiles::find(&tool.name, settings, printer)?;
        let registry_size = registry.gaps().is_empty().then(|| registry.tools().len());
        let (neighbours, clusters) = declared(&tool.name, overlaps.as_ref(), &registry, printer);
        let brief = Brief {
            triggers: triggers(args, &tool),
            overlaps: neighbours,
            clusters,
            sources: TokenSources { seed, snapshot },
            silenced: settings.silence.silence.case_rules(&tool.name),
            golden: files.golden.cases,
            labeled: files.labeled.cases,
            tool,
            registry,
        };
        Ok(Self {
            brief,
            doubt,
            overlaps,
            registry_size,
            golden_file: files.golden.path,
            labeled_file: files.labeled.path,
        })
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

    /// Returns neighbours to propose, where the map can be edited and says nothing of the tool.
    pub(super) fn proposals(&self) -> Vec<Suggestion> {
        let map = self.overlaps.as_ref();
        let has_entry = map.is_some_and(|map| map.entries.iter().any(|entry| entry.tool == self.brief.tool.name));
        let is_list = map.is_some_and(|map| map.shape == Shape::List && !map.entries.is_empty());
        if has_entry || is_list || !self.brief.overlaps.is_empty() {
            return Vec::new();
        }
        let all = suggest(&self.brief.registry, map, None, USUALLY_ALIKE).list;
        let name = &self.brief.tool.name;
        all.into_iter().filter(|one| one.tools.0 == *name || one.tools.1 == *name).collect()
    }

    /// Returns what the tool's description lacks if the other is declared to be taken for it.
    pub(super) fn told_apart_by_nothing(&self, other: &str) -> Option<ContractFinding> {
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

fn find_tool<'r>(name: &str, registry: &'r Registry) -> Result<&'r Tool, Failure> {
    registry.find(name).ok_or_else(|| {
        let failure = Failure::invalid(format!("the registry has no tool '{name}'"));
        match nearest(name, &registry.names()) {
            Some(near) => failure.hint(format!("did you mean '{near}'?")),
            None => failure.hint("'karat tools' lists them"),
        }
    })
}

/// Refuses a description from which no reliable cases can be drafted. Returns the finding that a person has to agree to.
fn verify_description(
    tool: &Tool,
    registry: &Registry,
    overlaps: Option<&OverlapMap>,
    settings: &Settings,
    printer: &Printer,
) -> Result<Option<ContractFinding>, Failure> {
    if let Some(unknown) = tool.unknown(ToolField::Description) {
        return Err(Failure::invalid(format!("the description of '{}' is not known: {}", tool.name, unknown.why))
            .hint(format!("{}: cases are drafted from a description that can be read", unknown.place)));
    }
    let mut silencer = Silencer::new(&settings.silence.silence);
    let of_tool = |finding: &ContractFinding| {
        finding.tool == tool.name || finding.rule.is_mutual() && finding.also.contains(&tool.name)
    };
    let findings = check_descriptions(registry, overlaps).into_iter().filter(of_tool);
    // What is silenced was looked at.
    let mut findings: Vec<ContractFinding> = findings
        .filter(|finding| !silencer.takes([tool.name.as_str()], SilencedRule::Contract(finding.rule)))
        .collect();
    let gate = |finding: &ContractFinding| finding.drafting_gate(registry);
    for finding in findings.iter().filter(|finding| gate(finding) == DraftingGate::Warn) {
        printer.warn(&format!("{}: {} ({})", tool.name, finding.message, finding.rule.name()));
    }
    if !findings.iter().any(|finding| gate(finding) == DraftingGate::Refuse) {
        let doubt = findings.iter().position(|finding| gate(finding) == DraftingGate::Ask);
        return Ok(doubt.map(|at| findings.swap_remove(at)));
    }
    let place = tool.description_place.as_ref().or(tool.place.as_ref());
    let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
    printer.failure(&Failure::invalid(format!(
        "{}{place}: The tool description is too vague for reliable eval generation. Fix the description first.",
        tool.name
    )));
    let wrong: Vec<&ContractFinding> = findings.iter().filter(|finding| gate(finding) != DraftingGate::Warn).collect();
    for finding in &wrong {
        printer.talk(&format!("  {}: {}", finding.rule.name(), printable(&finding.message)));
        printer.talk(&format!("    {}", printable(&finding.suggestion)));
    }
    let corrected = corrected_description(tool, &wrong, registry);
    printer.talk(&printable(&format!("  a description to start from: {corrected}")));
    let rules: Vec<String> = wrong.iter().map(|finding| format!("\"{}\"", finding.rule.name())).collect();
    let silence = format!("{{\"silence\": {{\"{}\": [{}]}}}}", tool.name, rules.join(", "));
    printer.talk(&printable(&format!("  to draft all the same, put this into karat.json: {silence}")));
    Err(Failure::reported(ExitStatus::Invalid))
}

/// Returns the phrases of the flags, else those of the registry, each once.
fn triggers(args: &ForgeArgs, tool: &Tool) -> Vec<String> {
    let phrases = if args.trigger.is_empty() { tool.trigger_phrases() } else { &args.trigger };
    let mut seen = BTreeSet::new();
    let phrases = phrases.iter().map(|phrase| phrase.trim()).filter(|phrase| !phrase.is_empty());
    phrases.filter(|phrase| seen.insert(phrase.to_lowercase())).map(str::to_owned).collect()
}

/// Returns a tool's neighbours with their reasons, and its clusters; what the registry does not have is left out.
fn declared(
    tool: &str,
    map: Option<&OverlapMap>,
    registry: &Registry,
    printer: &Printer,
) -> (Vec<Overlap>, Vec<Vec<String>>) {
    let Some(map) = map else { return (Vec::new(), Vec::new()) };
    let is_known = |name: &str| {
        let known = registry.tool(name).is_some();
        if !known {
            printer.warn(&format!("the overlap map names '{name}', which the registry does not have: left out"));
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
    fn find(tool: &str, settings: &Settings, printer: &Printer) -> Result<Self, Failure> {
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
                    return Err(Failure::invalid(format!("{} is invalid, so no case can be added to it", path.shown))
                        .hint("'karat check' shows why"));
                }
                Err(_) => {
                    printer.warn(&format!("{} is invalid and is passed over; 'karat check' shows why", path.shown));
                }
            }
        }
        Ok(Self { golden, labeled })
    }
}

impl TierFile {
    /// Returns where a tier's cases are if nobody put them elsewhere.
    fn usual(tool: &str, tier: Tier, settings: &Settings) -> Result<Self, Failure> {
        if tool.trim().is_empty() || tool.contains(['/', '\\']) || tool.starts_with('.') {
            return Err(Failure::invalid(format!("'{tool}' cannot be a part of a file's name")));
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
