//! Measures coverage: counts cases and compares them with the wanted numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::freshness::{CurrentState, Freshness};
use super::{
    Amount, CaseReference, ClusterCoverage, ConfusionMatrix, Coverage, DifficultySpread, DoubtfulFile,
    MIN_GOLDEN_CASES, OverlapCoverage, Ratio, RegistryGap, RegistryState, StaleFile, ToolCoverage, Totals, UnknownFile,
    UnknownTool, WantedCases,
};
use crate::confusion::MeasuredConfusion;
use crate::lock::LockDiff;
use crate::overlap::{OverlapMap, covers_cluster};
use karat_cases::registry::Registry;
use karat_cases::{Case, Difficulty, EvalFile, Expectation, ExpectedCalls, NO_TOOL, Tier};
use karat_json::nearest;

/// An eval file and its path for messages.
#[derive(Debug, Clone, Copy)]
pub struct Suite<'s> {
    pub path: &'s str,
    pub file: &'s EvalFile,
}

impl Coverage {
    /// Measures what the suites test of the registry's tools, and adds the measured confusion.
    ///
    /// The diff since the lock decides on the freshness of files without metadata.
    pub fn of(
        registry: &Registry,
        overlaps: Option<&OverlapMap>,
        lock: Option<&LockDiff>,
        suites: &[Suite<'_>],
        confusion: Option<&MeasuredConfusion>,
    ) -> Self {
        let empty = OverlapMap::default();
        let map = overlaps.unwrap_or(&empty);
        let mut counter = Counter::new(CurrentState { registry, overlaps, lock }, map);
        for suite in suites {
            counter.suite(*suite);
        }
        let is_declared = |left: &str, right: &str| map.neighbours(left).any(|other| other == right);
        Self {
            overlap_map_version: overlaps.map(|map| map.version.clone()),
            confusion: confusion.map(|measured| ConfusionMatrix::of(measured, is_declared)),
            ..counter.finish()
        }
    }
}

struct Counter<'c> {
    now: CurrentState<'c>,
    registry: &'c Registry,
    map: &'c OverlapMap,
    names: Vec<&'c str>,
    index_by_name: HashMap<&'c str, usize>,
    counts: Vec<Counts>,
    pairs: BTreeMap<(&'c str, &'c str), Vec<CaseReference>>,
    clusters: Vec<ClusterCoverage>,
    /// By smallest tool, so that a case is compared with few clusters.
    clusters_by_tool: HashMap<&'c str, Vec<usize>>,
    stale_files: Vec<StaleFile>,
    doubtful_files: Vec<DoubtfulFile>,
    unknown_tools: Vec<UnknownTool>,
    unknown_files: Vec<UnknownFile>,
    nearest: HashMap<String, Option<String>>,
    totals: Totals,
}

/// The cases of one tool.
#[derive(Debug, Clone, Default)]
struct Counts {
    golden: usize,
    straightforward: usize,
    ambiguous: usize,
    edge: usize,
    without_difficulty: usize,
    regression: usize,
    rubric: usize,
    other: usize,
    expected_by: usize,
    stale_files: Vec<String>,
}

impl<'c> Counter<'c> {
    fn new(now: CurrentState<'c>, map: &'c OverlapMap) -> Self {
        let registry = now.registry;
        let names = registry.names();
        let clusters: Vec<&BTreeSet<String>> = map.clusters().collect();
        let mut clusters_by_tool: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, cluster) in clusters.iter().enumerate() {
            if let Some(first) = cluster.first() {
                clusters_by_tool.entry(first).or_default().push(index);
            }
        }
        Self {
            now,
            registry,
            map,
            index_by_name: names.iter().enumerate().map(|(index, name)| (*name, index)).collect(),
            counts: vec![Counts::default(); names.len()],
            names,
            pairs: map.pairs().map(|pair| (pair, Vec::new())).collect(),
            clusters: clusters
                .into_iter()
                .map(|tools| ClusterCoverage { tools: tools.clone(), covered_by: Vec::new() })
                .collect(),
            clusters_by_tool,
            stale_files: Vec::new(),
            doubtful_files: Vec::new(),
            unknown_tools: Vec::new(),
            unknown_files: Vec::new(),
            nearest: HashMap::new(),
            totals: Totals::default(),
        }
    }

    fn suite(&mut self, Suite { path, file }: Suite<'c>) {
        let tool =
            self.registry.find(&file.tool_name).and_then(|tool| self.index_by_name.get(tool.name.as_str()).copied());
        let unknown_before = self.unknown_tools.len();
        self.totals.files += 1;
        for case in &file.cases {
            self.case(path, file.tier, case, tool);
        }
        self.freshness(path, file, tool);
        self.totals.known.add(tool.is_some() && self.unknown_tools.len() == unknown_before);
        if tool.is_none() {
            let nearest = self.nearest(&file.tool_name);
            self.unknown_files.push(UnknownFile { file: path.to_owned(), tool: file.tool_name.clone(), nearest });
        }
    }

    fn freshness(&mut self, path: &str, file: &EvalFile, tool: Option<usize>) {
        let Some(freshness) = self.now.freshness(file) else {
            return;
        };
        self.totals.fresh.add(matches!(freshness, Freshness::Fresh));
        let name = tool.map_or_else(|| file.tool_name.clone(), |tool| self.names[tool].to_owned());
        match freshness {
            Freshness::Fresh => {}
            Freshness::Stale(reasons) => {
                if let Some(tool) = tool {
                    self.counts[tool].stale_files.push(path.to_owned());
                }
                self.stale_files.push(StaleFile { file: path.to_owned(), tool: name, reasons });
            }
            Freshness::Doubtful(doubt) => {
                self.doubtful_files.push(DoubtfulFile { file: path.to_owned(), tool: name, doubt });
            }
        }
    }

    fn case(&mut self, path: &str, tier: Tier, case: &'c Case, tool: Option<usize>) {
        self.totals.cases += 1;
        let of_tier = match tier {
            Tier::Golden => &mut self.totals.golden_cases,
            Tier::Labeled => &mut self.totals.labeled_cases,
            Tier::Regression => &mut self.totals.regression_cases,
            Tier::Rubric => &mut self.totals.rubric_cases,
            Tier::Security | Tier::Unknown => &mut self.totals.other_cases,
        };
        *of_tier += 1;
        if let Some(tool) = tool {
            self.counts[tool].add(tier, case.difficulty);
        }
        let expected: BTreeSet<&str> = case.expectations().flat_map(expected_tools).collect();
        for name in expected {
            if let Some(&index) = self.index_by_name.get(name) {
                self.counts[index].expected_by += 1;
            }
        }
        let named: BTreeSet<&str> = case.expectations().flat_map(named_tools).collect();
        for name in named {
            if self.index_by_name.contains_key(name) {
                continue;
            }
            let nearest = self.nearest(name);
            let (file, case_id) = (path.to_owned(), case.id.clone());
            self.unknown_tools.push(UnknownTool { file, case_id, tool: name.to_owned(), nearest });
        }
        self.cover_pairs(path, case);
        if tier == Tier::Labeled {
            self.cover_clusters(path, case);
        }
    }

    /// Records the overlaps that a case covers, via the neighbours of its tools.
    fn cover_pairs(&mut self, path: &str, case: &'c Case) {
        if case.difficulty != Some(Difficulty::Ambiguous) {
            return;
        }
        let named = case.expectations().flat_map(|expect| expect.tools_acceptable.iter().flatten().flatten());
        let named: BTreeSet<&str> = named.map(String::as_str).collect();
        for tool in &named {
            for other in self.map.neighbours(tool).filter(|other| *tool < *other && named.contains(other)) {
                if let Some(covering) = self.pairs.get_mut(&(*tool, other)) {
                    covering.push(reference(path, case));
                }
            }
        }
    }

    fn cover_clusters(&mut self, path: &str, case: &Case) {
        let expected: BTreeSet<&str> = case.expectations().flat_map(expected_tools).collect();
        for tool in expected {
            for &index in self.clusters_by_tool.get(tool).into_iter().flatten() {
                let cluster = &mut self.clusters[index];
                if covers_cluster(case, &cluster.tools) {
                    cluster.covered_by.push(reference(path, case));
                }
            }
        }
    }

    /// Returns the nearest tool name; cached, since a wrong name often occurs repeatedly.
    fn nearest(&mut self, name: &str) -> Option<String> {
        if let Some(known) = self.nearest.get(name) {
            return known.clone();
        }
        let suggestion = nearest(name, &self.names).map(str::to_owned);
        self.nearest.insert(name.to_owned(), suggestion.clone());
        suggestion
    }

    fn finish(self) -> Coverage {
        let mut totals = self.totals;
        let covered: HashMap<(&str, &str), bool> =
            self.pairs.iter().map(|(pair, covering)| (*pair, !covering.is_empty())).collect();
        let mut clusters_of: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, cluster) in self.clusters.iter().enumerate() {
            for tool in &cluster.tools {
                clusters_of.entry(tool).or_default().push(index);
            }
        }
        totals.clusters = Ratio::of(self.clusters.iter().map(|cluster| !cluster.covered_by.is_empty()));
        totals.overlaps = Ratio::of(covered.values().copied());
        let mut tools = Vec::with_capacity(self.names.len());
        for (name, counts) in self.names.iter().zip(self.counts) {
            let is_covered = |other: &str| {
                let pair = if *name < other { (*name, other) } else { (other, *name) };
                covered.get(&pair).copied().unwrap_or_default()
            };
            let neighbours = self.map.neighbours(name).map(|other| (other, is_covered(other))).collect();
            let clusters = clusters_of.get(name).into_iter().flatten();
            let clusters = clusters.map(|&index| (index, !self.clusters[index].covered_by.is_empty())).collect();
            let tool = counts.coverage(name, self.names.len(), neighbours, clusters);
            totals.tested.add(!tool.never_tested);
            totals.golden.add(tool.golden.is_enough());
            totals.labeled.add(tool.has_labeled());
            totals.complete.add(tool.complete);
            tools.push(tool);
        }
        let gap = |gap: &karat_cases::registry::Gap| RegistryGap {
            kind: gap.kind,
            location: gap.location.clone(),
            message: gap.message.clone(),
        };
        let gaps = self.registry.gaps();
        let overlap = |((left, right), covered_by): ((&str, &str), Vec<CaseReference>)| OverlapCoverage {
            tools: [left.to_owned(), right.to_owned()],
            covered_by,
        };
        Coverage {
            registry: RegistryState {
                tools: self.names.len(),
                complete: gaps.is_empty(),
                gaps: gaps.iter().map(gap).collect(),
            },
            overlap_map_version: None,
            totals,
            tools,
            overlaps: self.pairs.into_iter().map(overlap).collect(),
            clusters: self.clusters,
            stale_files: self.stale_files,
            doubtful_files: self.doubtful_files,
            unknown_tools: self.unknown_tools,
            unknown_files: self.unknown_files,
            confusion: None,
            requirements: Vec::new(),
        }
    }
}

impl Counts {
    fn add(&mut self, tier: Tier, difficulty: Option<Difficulty>) {
        let count = match (tier, difficulty) {
            (Tier::Golden, _) => &mut self.golden,
            (Tier::Regression, _) | (Tier::Labeled, Some(Difficulty::Regression)) => &mut self.regression,
            (Tier::Labeled, Some(Difficulty::Straightforward)) => &mut self.straightforward,
            (Tier::Labeled, Some(Difficulty::Ambiguous)) => &mut self.ambiguous,
            (Tier::Labeled, Some(Difficulty::Edge)) => &mut self.edge,
            (Tier::Labeled, None) => &mut self.without_difficulty,
            (Tier::Rubric, _) => &mut self.rubric,
            (Tier::Security | Tier::Unknown, _) => &mut self.other,
        };
        *count += 1;
    }

    /// Compares the counts with the wanted numbers; neighbours and clusters come with whether each is covered.
    fn coverage(
        self,
        name: &str,
        registry_size: usize,
        neighbours: Vec<(&str, bool)>,
        clusters: Vec<(usize, bool)>,
    ) -> ToolCoverage {
        let wanted = WantedCases::of(registry_size, neighbours.len(), clusters.len());
        let overlaps_covered = Ratio::of(neighbours.iter().map(|(_, covered)| *covered));
        let clusters_covered = Ratio::of(clusters.iter().map(|(_, covered)| *covered));
        let Self { golden, straightforward, ambiguous, edge, .. } = self;
        let own = golden + straightforward + ambiguous + edge + self.without_difficulty;
        let own = own + self.regression + self.rubric + self.other;
        let mut tool = ToolCoverage {
            name: name.to_owned(),
            never_tested: own + self.expected_by == 0,
            complete: false,
            share: 0.0,
            golden: Amount { count: golden, wanted: MIN_GOLDEN_CASES },
            straightforward: Amount { count: straightforward, wanted: wanted.straightforward },
            ambiguous: Amount { count: ambiguous, wanted: wanted.ambiguous },
            edge: Amount { count: edge, wanted: wanted.edge },
            without_difficulty: self.without_difficulty,
            spread: spread(straightforward, ambiguous, edge),
            regression: self.regression,
            rubric: self.rubric,
            other: self.other,
            expected_by: self.expected_by,
            overlaps: overlaps_covered,
            uncovered_overlaps: neighbours
                .into_iter()
                .filter(|(_, covered)| !covered)
                .map(|(other, _)| other.to_owned())
                .collect(),
            clusters: clusters_covered,
            uncovered_clusters: clusters.into_iter().filter(|(_, covered)| !covered).map(|(index, _)| index).collect(),
            stale_files: self.stale_files,
        };
        let amounts = [tool.golden, tool.straightforward, tool.ambiguous, tool.edge];
        let parts = [tool.overlaps, tool.clusters].map(|part| Amount { count: part.count, wanted: part.of });
        let all = || amounts.iter().chain(&parts);
        tool.share =
            share(all().map(|amount| amount.count.min(amount.wanted)).sum(), all().map(|amount| amount.wanted).sum());
        tool.complete = all().all(|amount| amount.is_enough()) && tool.stale_files.is_empty();
        tool
    }
}

fn spread(straightforward: usize, ambiguous: usize, edge: usize) -> Option<DifficultySpread> {
    let all = straightforward + ambiguous + edge;
    (all > 0).then(|| DifficultySpread {
        straightforward: share(straightforward, all),
        ambiguous: share(ambiguous, all),
        edge: share(edge, all),
    })
}

#[expect(clippy::cast_precision_loss, reason = "case counts are far below 2^52")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

fn reference(path: &str, case: &Case) -> CaseReference {
    CaseReference { file: path.to_owned(), case_id: case.id.clone() }
}

/// Returns the tools that a case expects or accepts, each once.
fn expected_tools(expect: &Expectation) -> HashSet<&str> {
    let called = expect.tools_called.iter().flatten();
    let acceptable = expect.tools_acceptable.iter().flatten().flatten();
    let listed = called.chain(acceptable).map(String::as_str).filter(|tool| *tool != NO_TOOL);
    listed.chain(expect.calls.iter().flat_map(ExpectedCalls::tools)).collect()
}

/// Returns all tools that a case names, each once, sorted by name.
fn named_tools(expect: &Expectation) -> BTreeSet<&str> {
    let forbidden = expect.tools_not_called.iter().flatten();
    let params = expect.tool_params.iter().flatten().map(|assertion| &assertion.tool);
    let ordered = expect.tool_order.iter().flatten().flat_map(|(before, after)| [before, after]);
    let mut named: BTreeSet<&str> = forbidden.chain(params).chain(ordered).map(String::as_str).collect();
    named.extend(expected_tools(expect));
    named
}
