//! Coverage, for the terminal and as a page: what both say, and in which order.

mod html;
mod text;

use karat_core::case::NO_TOOL;
use karat_tools::confusion::LeftOut;
use karat_tools::coverage::{Coverage, MOST_GOLDEN, Part, Requirement, RequirementResult, ToolCoverage};

use crate::terminal_text::{cut_middle, printable};

pub use html::coverage_page;
pub use text::coverage_text;

/// How long a name is shown beside others, in columns.
const LONGEST_NAME: usize = 60;

/// One number of the whole.
struct Figure {
    requirement: Requirement,
    part: Part,
    /// What is counted.
    what: &'static str,
    state: State,
}

/// How a number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Whole,
    /// Nothing of the kind is declared.
    Nothing,
    Partial,
    /// It is required and does not hold.
    Missing,
    /// It is required, and nobody can tell.
    Unknown,
}

/// Something that is missing, and what to do about it.
struct Section {
    state: State,
    title: String,
    advice: &'static str,
    lines: Vec<String>,
    /// The table of tools shows it too.
    is_in_table: bool,
}

fn result_of(coverage: &Coverage, requirement: Requirement) -> Option<&RequirementResult> {
    coverage.requirements.iter().find(|result| result.requirement == requirement)
}

/// Returns how something stands that is required or not.
fn state(coverage: &Coverage, requirement: Requirement, is_whole: bool) -> State {
    match result_of(coverage, requirement).map(|result| result.held) {
        Some(None) => State::Unknown,
        Some(Some(false)) => State::Missing,
        Some(Some(true)) | None => {
            if is_whole {
                State::Whole
            } else {
                State::Partial
            }
        }
    }
}

/// Returns the numbers of the whole, by the names under which they can be required.
fn figures(coverage: &Coverage) -> Vec<Figure> {
    let totals = &coverage.totals;
    let of = |requirement: Requirement| match requirement {
        Requirement::Tested => (totals.tested, "tools that a case is for or expects"),
        Requirement::Golden => (totals.golden, "tools with 5 golden cases or more"),
        Requirement::Labeled => (totals.labeled, "tools with enough labeled cases of each difficulty"),
        Requirement::Overlaps => (totals.overlaps, "declared overlaps with an ambiguous case"),
        Requirement::Clusters => (totals.clusters, "declared clusters with a case that takes all tools"),
        Requirement::Fresh => (totals.fresh, "eval files known to fit their tool as it is now"),
        Requirement::Known => (totals.known, "eval files all of whose tools are in the registry"),
    };
    let figure = |requirement: Requirement| {
        let (part, what) = of(requirement);
        let state = match state(coverage, requirement, part.is_whole()) {
            State::Whole if part.of == 0 => State::Nothing,
            state => state,
        };
        Figure { requirement, part, what, state }
    };
    Requirement::ALL.into_iter().map(figure).collect()
}

/// Says why there is nothing to count.
fn nothing(requirement: Requirement, has_map: bool) -> &'static str {
    match requirement {
        Requirement::Overlaps | Requirement::Clusters if has_map => "none are declared",
        Requirement::Overlaps | Requirement::Clusters => "there is no overlap map",
        Requirement::Fresh => "there are no eval files that can be stale",
        Requirement::Known => "there are no eval files",
        Requirement::Tested | Requirement::Golden | Requirement::Labeled => "there are no tools",
    }
}

/// Returns the tools that miss something, the worst first; equals stay in the registry's order.
fn incomplete(coverage: &Coverage) -> Vec<&ToolCoverage> {
    let mut tools: Vec<&ToolCoverage> = coverage.tools.iter().filter(|tool| !tool.complete).collect();
    tools.sort_by(|left, right| right.never_tested.cmp(&left.never_tested).then(left.share.total_cmp(&right.share)));
    tools
}

/// Returns all that is missing, by what is required first.
fn sections(coverage: &Coverage) -> Vec<Section> {
    let mut sections = vec![gaps(coverage)];
    for requirement in Requirement::ALL {
        sections.push(section(coverage, requirement));
        if requirement == Requirement::Fresh {
            sections.push(doubtful(coverage));
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
        advice: "there may be more tools, so the wanted numbers are the least there can be",
        lines: gaps.map(|gap| format!("{}: {}", gap.place, one_line(&gap.what))).collect(),
        is_in_table: false,
    }
}

/// Returns what a server said in one line, without the indentation of its lines.
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
            (title, "5 to 10 are wanted", lines)
        }
        Requirement::Labeled => {
            let lines = coverage.missing(requirement);
            let title = format!("{} too few labeled cases", counted(lines.len(), "tool has", "tools have"));
            (title, "the numbers grow with the registry and the overlap map", lines)
        }
        Requirement::Overlaps => {
            let uncovered = coverage.overlaps.iter().filter(|overlap| overlap.covered_by.is_empty());
            let lines: Vec<String> = uncovered
                .map(|overlap| overlap.tools.iter().map(|tool| clipped(tool)).collect::<Vec<_>>().join(" / "))
                .collect();
            let title = format!("{} no ambiguous case", counted(lines.len(), "overlap has", "overlaps have"));
            (title, "write one whose toolsAcceptable names both tools", lines)
        }
        Requirement::Clusters => {
            let uncovered = coverage.clusters.iter().filter(|cluster| cluster.covered_by.is_empty());
            let tools = uncovered.map(|cluster| cluster.tools.iter().map(|tool| clipped(tool)).collect::<Vec<_>>());
            let lines: Vec<String> = tools.map(|tools| tools.join(", ")).collect();
            let title = format!("{} no full case", counted(lines.len(), "cluster has", "clusters have"));
            (title, "write a labeled case one of whose sets holds all its tools", lines)
        }
        Requirement::Fresh => {
            let files = coverage.stale_files.iter();
            let lines: Vec<String> = files.map(|file| format!("{}: {}", file.file, file.reasons.join("; "))).collect();
            let title = format!("{} stale", counted(lines.len(), "eval file is", "eval files are"));
            (title, "look the cases over, then renew the file's metadata", lines)
        }
        Requirement::Known => unknown_names(coverage),
    };
    let is_in_table = matches!(requirement, Requirement::Tested | Requirement::Golden | Requirement::Labeled);
    Section { state, title, advice, lines, is_in_table }
}

fn doubtful(coverage: &Coverage) -> Section {
    let files = coverage.doubtful_files.iter();
    let lines: Vec<String> =
        files.map(|one| format!("{}: {}", one.file, one.doubt.sentence(&clipped(&one.tool)))).collect();
    let are_unsaid = coverage.doubtful_files.iter().any(|one| one.doubt.is_unsaid());
    Section {
        state: state(coverage, Requirement::Fresh, false),
        title: format!("{} not known to be fresh", counted(lines.len(), "eval file is", "eval files are")),
        advice: if are_unsaid {
            "write descriptionHash into its metadata ('karat tools' shows it), or keep a lock: 'karat tools lock'"
        } else {
            "what they were made for cannot be compared with the registry"
        },
        lines,
        is_in_table: false,
    }
}

fn unknown_names(coverage: &Coverage) -> (String, &'static str, Vec<String>) {
    let near =
        |name: &Option<String>| name.as_ref().map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"));
    let files = coverage.unknown_files.iter();
    let files = files.map(|file| format!("{}: the file is about '{}'{}", file.file, file.tool, near(&file.nearest)));
    let cases = coverage.unknown_tools.iter();
    let cases = cases.map(|one| format!("{}: {} names '{}'{}", one.file, one.case_id, one.tool, near(&one.nearest)));
    let lines: Vec<String> = files.chain(cases).collect();
    let count = counted(lines.len(), "mention", "mentions");
    if coverage.registry.complete {
        (format!("{count} of tools that the registry lacks"), "mend the name, or add the tool", lines)
    } else {
        let advice = "they may stand where the registry could not be read";
        (format!("{count} of tools that are not known to the registry"), advice, lines)
    }
}

fn too_many_golden(coverage: &Coverage) -> Section {
    let many = coverage.tools.iter().filter(|tool| tool.golden.count > MOST_GOLDEN);
    let lines: Vec<String> = many.map(|tool| format!("{} has {}", tool.name, tool.golden.count)).collect();
    Section {
        state: State::Partial,
        title: format!("{} more than {MOST_GOLDEN} golden cases", counted(lines.len(), "tool has", "tools have")),
        advice: "golden cases are a quick look; what goes further belongs in the labeled file",
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
        advice: "they count for no difficulty until they say theirs",
        lines,
        is_in_table: false,
    }
}

/// Says what of the stored results could not be counted.
fn left_out(left_out: &LeftOut) -> Vec<String> {
    let LeftOut {
        changed_results,
        unhashed_results,
        other_results,
        unreadable_results,
        without_answer,
        without_expectation,
    } = left_out;
    let all = [
        (*changed_results, "result was made", "results were made", "with another version of the eval file"),
        (*unhashed_results, "result does", "results do", "not say which version of the eval file"),
        (*other_results, "result is", "results are", "of other eval files"),
        (*unreadable_results, "file is", "files are", "no result"),
        (*without_answer, "answer", "answers", "never came"),
        (*without_expectation, "answer was", "answers were", "to cases that name no tool to be called"),
    ];
    let counts = all.into_iter().filter(|(count, ..)| *count > 0);
    counts.map(|(count, one, many, what)| format!("{} {what}", counted(count, one, many))).collect()
}

/// Returns a name that leaves room for those beside it.
fn clipped(name: &str) -> String {
    cut_middle(&printable(name), LONGEST_NAME, "...").into_owned()
}

/// Returns how a tool of the matrix is shown.
fn shown_tool(name: &str) -> &str {
    if name == NO_TOOL { "(no tool)" } else { name }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// Returns a share in whole percents, which is 0 or 100 only where it is exactly that.
fn percent(share: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is between 0 and 1")]
    let whole = (share * 100.0).round() as u32;
    match whole {
        0 if share > 0.0 => "<1%".to_owned(),
        100 if share < 1.0 => ">99%".to_owned(),
        whole => format!("{whole}%"),
    }
}
