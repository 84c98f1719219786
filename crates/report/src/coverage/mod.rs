//! Coverage for the terminal and as an HTML page, with the content that both share.

mod html;
mod text;

use karat_cases::NO_TOOL;
use karat_tools::confusion::ExcludedCounts;
use karat_tools::coverage::{Coverage, MAX_GOLDEN_CASES, Ratio, Requirement, RequirementResult, ToolCoverage};

use crate::terminal_text::{printable, truncate_middle};

pub use html::coverage_page;
pub use text::coverage_text;

/// Maximum width of a name in a list.
const MAX_NAME_WIDTH: usize = 60;

/// One number of the summary.
struct Figure {
    requirement: Requirement,
    part: Ratio,
    /// The counted items.
    description: &'static str,
    state: State,
}

/// The state of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Complete,
    /// There is nothing to count.
    NotApplicable,
    Partial,
    /// Required, but not fulfilled.
    Missing,
    /// Required, but cannot be determined.
    Unknown,
}

/// Missing items, and what to do about them.
struct Section {
    state: State,
    title: String,
    advice: &'static str,
    lines: Vec<String>,
    /// Whether the table of tools shows it too.
    is_in_table: bool,
}

fn result_of(coverage: &Coverage, requirement: Requirement) -> Option<&RequirementResult> {
    coverage.requirements.iter().find(|result| result.requirement == requirement)
}

/// Returns the state of a requirement.
fn state(coverage: &Coverage, requirement: Requirement, is_complete: bool) -> State {
    match result_of(coverage, requirement).map(|result| result.held) {
        Some(None) => State::Unknown,
        Some(Some(false)) => State::Missing,
        Some(Some(true)) | None => {
            if is_complete {
                State::Complete
            } else {
                State::Partial
            }
        }
    }
}

/// Returns the numbers of the summary, one for each requirement.
fn figures(coverage: &Coverage) -> Vec<Figure> {
    let totals = &coverage.totals;
    let of = |requirement: Requirement| match requirement {
        Requirement::Tested => (totals.tested, "tools that a case targets or expects"),
        Requirement::Golden => (totals.golden, "tools with 5 golden cases or more"),
        Requirement::Labeled => (totals.labeled, "tools with enough labeled cases of each difficulty"),
        Requirement::Overlaps => (totals.overlaps, "declared overlaps with an ambiguous case"),
        Requirement::Clusters => (totals.clusters, "declared clusters with a case that needs all tools"),
        Requirement::Fresh => (totals.fresh, "eval files that match their current tool"),
        Requirement::Known => (totals.known, "eval files whose tools are all in the registry"),
    };
    let figure = |requirement: Requirement| {
        let (part, description) = of(requirement);
        let state = match state(coverage, requirement, part.is_complete()) {
            State::Complete if part.of == 0 => State::NotApplicable,
            state => state,
        };
        Figure { requirement, part, description, state }
    };
    Requirement::ALL.into_iter().map(figure).collect()
}

/// Explains why there is nothing to count.
fn not_applicable(requirement: Requirement, has_map: bool) -> &'static str {
    match requirement {
        Requirement::Overlaps | Requirement::Clusters if has_map => "none declared",
        Requirement::Overlaps | Requirement::Clusters => "no overlap map",
        Requirement::Fresh => "no eval files that can be stale",
        Requirement::Known => "no eval files",
        Requirement::Tested | Requirement::Golden | Requirement::Labeled => "no tools",
    }
}

/// Returns the incomplete tools, worst first; ties keep registry order.
fn incomplete(coverage: &Coverage) -> Vec<&ToolCoverage> {
    let mut tools: Vec<&ToolCoverage> = coverage.tools.iter().filter(|tool| !tool.complete).collect();
    tools.sort_by(|left, right| right.never_tested.cmp(&left.never_tested).then(left.share.total_cmp(&right.share)));
    tools
}

/// Returns all sections, in the order of the requirements.
fn sections(coverage: &Coverage) -> Vec<Section> {
    let mut sections = vec![gaps(coverage)];
    for requirement in Requirement::ALL {
        sections.push(section(coverage, requirement));
        if requirement == Requirement::Fresh {
            sections.push(unknown_freshness(coverage));
        }
    }
    sections.extend([too_many_golden(coverage), without_difficulty(coverage)]);
    sections.retain(|section| !section.lines.is_empty());
    sections
}

fn gaps(coverage: &Coverage) -> Section {
    let gaps = coverage.registry.gaps.iter();
    let state = if coverage.registry.is_broken() { State::Unknown } else { State::Partial };
    Section {
        state,
        title: format!(
            "{} could not be read",
            counted(coverage.registry.gaps.len(), "part of the registry", "parts of the registry")
        ),
        advice: "there may be more tools, so the required numbers are minimums",
        lines: gaps.map(|gap| format!("{}: {}", gap.location, one_line(&gap.message))).collect(),
        is_in_table: false,
    }
}

/// Joins the lines of a message, without their indentation.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn section(coverage: &Coverage, requirement: Requirement) -> Section {
    let state = state(coverage, requirement, false);
    let (title, advice, lines) = match requirement {
        Requirement::Tested => {
            let names: Vec<String> =
                coverage.tools.iter().filter(|tool| tool.never_tested).map(|tool| tool.name.clone()).collect();
            (
                format!("{} never tested", counted(names.len(), "tool is", "tools are")),
                "write a golden file for each",
                names,
            )
        }
        Requirement::Golden => {
            let lines = coverage.missing(requirement);
            let title = format!("{} too few golden cases", counted(lines.len(), "tool has", "tools have"));
            (title, "5 to 10 are recommended", lines)
        }
        Requirement::Labeled => {
            let lines = coverage.missing(requirement);
            let title = format!("{} too few labeled cases", counted(lines.len(), "tool has", "tools have"));
            (title, "larger registries and overlap maps need more cases", lines)
        }
        Requirement::Overlaps => {
            let uncovered = coverage.overlaps.iter().filter(|overlap| overlap.covered_by.is_empty());
            let lines: Vec<String> = uncovered
                .map(|overlap| overlap.tools.iter().map(|tool| shorten_name(tool)).collect::<Vec<_>>().join(" / "))
                .collect();
            let title = format!("{} no ambiguous case", counted(lines.len(), "overlap has", "overlaps have"));
            (title, "write one whose toolsAcceptable names both tools", lines)
        }
        Requirement::Clusters => {
            let uncovered = coverage.clusters.iter().filter(|cluster| cluster.covered_by.is_empty());
            let tools =
                uncovered.map(|cluster| cluster.tools.iter().map(|tool| shorten_name(tool)).collect::<Vec<_>>());
            let lines: Vec<String> = tools.map(|tools| tools.join(", ")).collect();
            let title = format!("{} no case with all tools", counted(lines.len(), "cluster has", "clusters have"));
            (title, "write a labeled case with all its tools in one set", lines)
        }
        Requirement::Fresh => {
            let files = coverage.stale_files.iter();
            let lines: Vec<String> = files.map(|file| format!("{}: {}", file.file, file.reasons.join("; "))).collect();
            let title = format!("{} stale", counted(lines.len(), "eval file is", "eval files are"));
            (title, "review the cases, then update the file's metadata", lines)
        }
        Requirement::Known => unknown_names(coverage),
    };
    let is_in_table = matches!(requirement, Requirement::Tested | Requirement::Golden | Requirement::Labeled);
    Section { state, title, advice, lines, is_in_table }
}

fn unknown_freshness(coverage: &Coverage) -> Section {
    let files = coverage.doubtful_files.iter();
    let lines: Vec<String> =
        files.map(|file| format!("{}: {}", file.file, file.doubt.sentence(&shorten_name(&file.tool)))).collect();
    let can_be_fixed = coverage.doubtful_files.iter().any(|file| file.doubt.is_fixable_by_author());
    Section {
        state: state(coverage, Requirement::Fresh, false),
        title: format!("{} may be stale", counted(lines.len(), "eval file", "eval files")),
        advice: if can_be_fixed {
            "add descriptionHash to the metadata ('karat tools -v' shows it), or run 'karat tools lock' to create a lock"
        } else {
            "their metadata cannot be compared with the registry"
        },
        lines,
        is_in_table: false,
    }
}

fn unknown_names(coverage: &Coverage) -> (String, &'static str, Vec<String>) {
    let suggestion =
        |name: &Option<String>| name.as_ref().map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"));
    let files = coverage.unknown_files.iter();
    let files =
        files.map(|file| format!("{}: the file is about '{}'{}", file.file, file.tool, suggestion(&file.nearest)));
    let cases = coverage.unknown_tools.iter();
    let cases =
        cases.map(|case| format!("{}: {} names '{}'{}", case.file, case.case_id, case.tool, suggestion(&case.nearest)));
    let lines: Vec<String> = files.chain(cases).collect();
    let count = counted(lines.len(), "mention", "mentions");
    if coverage.registry.complete {
        (format!("{count} of tools that are not in the registry"), "fix the name, or add the tool", lines)
    } else {
        let advice = "they may be in a part of the registry that could not be read";
        (format!("{count} of unknown tools"), advice, lines)
    }
}

fn too_many_golden(coverage: &Coverage) -> Section {
    let many = coverage.tools.iter().filter(|tool| tool.golden.count > MAX_GOLDEN_CASES);
    let lines: Vec<String> = many.map(|tool| format!("{} has {}", tool.name, tool.golden.count)).collect();
    Section {
        state: State::Partial,
        title: format!("{} more than {MAX_GOLDEN_CASES} golden cases", counted(lines.len(), "tool has", "tools have")),
        advice: "golden cases are a quick check; move more thorough cases to the labeled file",
        lines,
        is_in_table: false,
    }
}

fn without_difficulty(coverage: &Coverage) -> Section {
    let tools = coverage.tools.iter().filter(|tool| tool.without_difficulty > 0);
    let lines: Vec<String> = tools.map(|tool| format!("{} has {}", tool.name, tool.without_difficulty)).collect();
    Section {
        state: State::Partial,
        title: format!("{} labeled cases without a difficulty", counted(lines.len(), "tool has", "tools have")),
        advice: "they do not count until they have a difficulty",
        lines,
        is_in_table: false,
    }
}

/// Describes the stored results that were not counted.
fn left_out(left_out: &ExcludedCounts) -> Vec<String> {
    let ExcludedCounts {
        changed_results,
        unhashed_results,
        other_results,
        unreadable_results,
        without_answer,
        without_expectation,
    } = left_out;
    let all = [
        (*changed_results, "result was made", "results were made", "with another version of the eval file"),
        (*unhashed_results, "result has", "results have", "no hash of the eval file"),
        (*other_results, "result is", "results are", "of other eval files"),
        (*unreadable_results, "file", "files", "could not be read"),
        (*without_answer, "case", "cases", "without an answer"),
        (*without_expectation, "answer", "answers", "to cases that expect no tool"),
    ];
    let counts = all.into_iter().filter(|(count, ..)| *count > 0);
    counts
        .map(|(count, singular, plural, description)| format!("{} {description}", counted(count, singular, plural)))
        .collect()
}

/// Truncates a name in a list.
fn shorten_name(name: &str) -> String {
    truncate_middle(&printable(name), MAX_NAME_WIDTH, "...").into_owned()
}

/// Returns the label of a tool in the matrix.
fn tool_label(name: &str) -> &str {
    if name == NO_TOOL { "(no tool)" } else { name }
}

fn counted(count: usize, singular: &str, plural: &str) -> String {
    if count == 1 { format!("1 {singular}") } else { format!("{count} {plural}") }
}

/// Formats a share in percent; only exact values are shown as 0% or 100%.
fn percent(share: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is between 0 and 1")]
    let whole = (share * 100.0).round() as u32;
    match whole {
        0 if share > 0.0 => "<1%".to_owned(),
        100 if share < 1.0 => ">99%".to_owned(),
        whole => format!("{whole}%"),
    }
}
