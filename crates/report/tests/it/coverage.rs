//! Coverage for the terminal and as an HTML page.

use karat_cases::Expectation;
use karat_cases::registry::{Gap, GapKind, Registry, Tool, ToolLocation};
use karat_json::Position;
use karat_report::{ConsoleSettings, Palette, Symbols, Verbosity, coverage_page, coverage_text};
use karat_tools::confusion::{ExcludedCounts, MeasuredConfusion};
use karat_tools::coverage::{Coverage, Requirement};

fn registry(names: impl IntoIterator<Item = String>) -> Registry {
    Registry::from_tools(names.into_iter().map(|name| Tool { name, ..Tool::default() }))
}

fn broken() -> Registry {
    let mut registry = registry(["a".to_owned()]);
    let location = ToolLocation { source: "tools.ts".to_owned(), position: Some(Position { line: 3, column: 7 }) };
    registry.add_gap(Gap { kind: GapKind::Broken, location, message: "expected `}`".to_owned() });
    registry
}

fn settings(symbols: Symbols) -> ConsoleSettings {
    ConsoleSettings { columns: 80, symbols, palette: Palette { color: false }, verbosity: Verbosity::Normal }
}

/// Every tool is confused with the next one, the first most often.
fn confused(tools: usize) -> MeasuredConfusion {
    let mut measured = MeasuredConfusion { results: 1, ..MeasuredConfusion::default() };
    for tool in 0..tools {
        let expect = Expectation { tools_called: Some(vec![format!("tool_{tool}")]), ..Expectation::default() };
        for _ in 0..tools - tool {
            measured.confusion.add(&expect, &[format!("tool_{}", (tool + 1) % tools)]);
        }
    }
    measured
}

#[test]
fn registry_gaps_come_first() {
    let mut coverage = Coverage::of(&broken(), None, None, &[], None);
    coverage.require(&[Requirement::Tested]);
    insta::assert_snapshot!(coverage_text(&coverage, settings(Symbols::ASCII)), @"
    Coverage of at least 1 tool by 0 eval files, 0 cases

      ERR  tested    0/1  tools that a case targets or expects
      warn golden    0/1  tools with 5 golden cases or more
      warn labeled   0/1  tools with enough labeled cases of each difficulty
      -    overlaps       no overlap map
      -    clusters       no overlap map
      -    fresh          no eval files that can be stale
      -    known          no eval files

      FAIL a     never tested

      ERR  1 part of the registry could not be read
           there may be more tools, so the required numbers are minimums
             tools.ts:3:7: expected `}`

      ERR  1 tool is never tested
           write a golden file for each
             a

      No stored results to measure confusion.
    ");
    let page = coverage_page(&coverage).expect("a page");
    assert!(page.contains("Coverage of at least 1 tool"));
    assert!(page.contains("tools.ts:3:7: expected `}`"));
    assert!(page.contains("unknown"));
}

#[test]
fn reports_results_left_out_of_the_confusion() {
    let left_out =
        ExcludedCounts { changed_results: 1, without_answer: 2, without_expectation: 1, ..ExcludedCounts::default() };
    let measured = MeasuredConfusion { left_out, ..confused(3) };
    let registry = registry((0..3).map(|tool| format!("tool_{tool}")));
    let coverage = Coverage::of(&registry, None, None, &[], Some(&measured));
    let text = coverage_text(&coverage, settings(Symbols::UNICODE));
    let (_, confusion) = text.split_once("Confusion").expect("a confusion");
    insta::assert_snapshot!(confusion, @"
    in 6 answers from 1 result
     expected   called instead  times  rate
     tool_0   → tool_1              3  100%
     tool_1   → tool_2              2  100%
     tool_2   → tool_0              1  100%

     expected (rows), called (columns)
                    1    2    3
     1 tool_0       .    3    .
     2 tool_1       .    .    2
     3 tool_2       1    .    .

     left out: 1 result was made with another version of the eval file; 2 cases
       without an answer; 1 answer to cases that expect no tool
    ");
}

#[test]
fn highlights_only_correct_calls() {
    let registry = registry((0..3).map(|tool| format!("tool_{tool}")));
    let mut measured = confused(3);
    let page = |measured: &MeasuredConfusion| {
        coverage_page(&Coverage::of(&registry, None, None, &[], Some(measured))).expect("a page")
    };
    assert!(!page(&measured).contains("<td class=\"right\""));
    let nothing = Expectation { tools_called: Some(Vec::new()), ..Expectation::default() };
    measured.confusion.add(&nothing, &[]);
    measured.confusion.add(&nothing, &["tool_0".to_owned()]);
    assert!(page(&measured).contains("<td class=\"right\">1</td>"), "calling no tool was correct");
    // Optional requirements are listed as well.
    assert!(page(&measured).contains("3 tools have too few labeled cases"));
}

#[test]
fn a_large_matrix_shows_the_worst_pairs() {
    let registry = registry((0..500).map(|tool| format!("tool_{tool}")));
    let coverage = Coverage::of(&registry, None, None, &[], Some(&confused(500)));
    let page = coverage_page(&coverage).expect("a page");
    let (_, matrix) = page.split_once("<table class=\"heat\">").expect("a matrix");
    assert!(matrix.contains("tool_0<") && !matrix.contains("tool_400<"));
    assert!(matrix.matches("<tr>").count() <= 25, "{}", matrix.matches("<tr>").count());
    assert!(page.contains("476 more are left out"), "counts the tools left out");
    assert_eq!(page.matches("never tested</span>").count(), 500);
    let text = coverage_text(&coverage, settings(Symbols::UNICODE));
    assert!(text.contains("… and 480 more") && text.contains("… and 490 more"), "{text}");
    assert!(text.lines().count() < 60, "{text}");
}
