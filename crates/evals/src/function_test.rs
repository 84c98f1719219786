//! Test cases of an eval function: a trace and the expected verdict.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use karat_core::judgement::{Conclusion, ErrorKind, EvalContext};
use karat_core::outcome::Outcome;
use karat_json::{
    Finding, Location, ObjectReader, Path, Problems, Subject, locate, parse, read_bool, read_enum, read_object_map,
    read_string, type_name,
};

/// One line of a `.cases.jsonl` file.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCase {
    /// 1-based.
    pub line: usize,
    pub name: Option<String>,
    /// The trace's JSON text, verbatim.
    pub trace: String,
    /// The context that the function gets, if it takes one.
    pub context: EvalContext,
    pub expected: ExpectedResult,
}

/// The expected result of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedResult {
    Verdict {
        passed: bool,
        /// A string that the reason must contain.
        reason: Option<String>,
    },
    /// The function is not applicable to the trace.
    NotApplicable,
    Error(ErrorKind),
}

/// A line of the file, for its schema.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "karat eval function case")]
#[schemars(extend("oneOf" = [
    {"required": ["expected"]},
    {"required": ["error"], "not": {"required": ["reason"]}},
    {"required": ["applicable"], "not": {"required": ["reason"]}},
]))]
pub struct FunctionCaseSchema {
    /// Name of the case, shown when it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    name: Option<String>,
    /// The trace to judge.
    trace: Map<String, Value>,
    /// The context that the function gets: `case`, `reference` and `params`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ContextSchema")]
    context: Option<ContextSchema>,
    /// False to expect that the function is not applicable to the trace, instead of a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool", extend("const" = false))]
    applicable: Option<bool>,
    /// The verdict: true to pass, false to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    expected: Option<bool>,
    /// A string that the reason must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    reason: Option<String>,
    /// The kind of error that the function must end with, instead of a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ErrorKind")]
    error: Option<ErrorKind>,
}

/// The context of a case, for its schema.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContextSchema {
    /// Any value; in a run it is the case as in the eval file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    case: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reference: Option<Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    params: Map<String, Value>,
}

impl FunctionCase {
    /// Parses a file's cases, or returns all problems in file order.
    pub fn read_all(text: &str) -> Result<Vec<Self>, Vec<Finding>> {
        if let Some(finding) = detect_other_layout(text) {
            return Err(vec![finding]);
        }
        let mut cases = Vec::new();
        let mut findings = Vec::new();
        let mut start = 0;
        for (index, raw_line) in text.split_inclusive('\n').enumerate() {
            let line = raw_line.trim_end();
            if !line.trim_start().is_empty() {
                match Self::read(line, index + 1) {
                    Ok(case) => cases.push(case),
                    Err(line_findings) => {
                        findings.extend(line_findings.into_iter().map(|finding| shift_finding(finding, start, index)));
                    }
                }
            }
            start += raw_line.len();
        }
        if findings.is_empty() { Ok(cases) } else { Err(findings) }
    }

    fn read(text: &str, line: usize) -> Result<Self, Vec<Finding>> {
        let value = parse(text).map_err(|error| vec![Finding::syntax(text, error)])?;
        if !value.is_object() {
            let message = format!("the line must be an object, found {}", type_name(&value));
            return Err(vec![finding_at(text, 0..text.len(), message, None)]);
        }
        let mut problems = Problems::default();
        let read = read_case(&value, &mut problems);
        let trace = locate(text, "/trace").and_then(|member| text.get(member.value));
        match (read, trace) {
            (Some(read), Some(trace)) if problems.is_empty() => {
                let CaseWithoutTrace { name, context, expected } = read;
                Ok(Self { line, name, trace: trace.to_owned(), context, expected })
            }
            _ => Err(Finding::locate_all(text, problems.into_list())),
        }
    }

    /// Compares the result with the expected one. An unexpected error is `Errored`, not `Failed`.
    pub fn outcome(&self, actual: &Conclusion) -> Outcome {
        match (&self.expected, actual) {
            (ExpectedResult::Verdict { .. } | ExpectedResult::NotApplicable, Conclusion::Error(_)) => Outcome::Errored,
            (ExpectedResult::Verdict { passed, reason: part }, Conclusion::Verdict { passed: actual, reason }) => {
                let holds = passed == actual && part.as_ref().is_none_or(|part| reason.contains(part.as_str()));
                if holds { Outcome::Passed } else { Outcome::Failed }
            }
            (ExpectedResult::Error(kind), Conclusion::Error(error)) if error.kind == *kind => Outcome::Passed,
            (ExpectedResult::NotApplicable, Conclusion::NotApplicable { .. }) => Outcome::Passed,
            (ExpectedResult::Verdict { .. } | ExpectedResult::NotApplicable | ExpectedResult::Error(_), _) => {
                Outcome::Failed
            }
        }
    }
}

/// Detects a file that is not one case per line, to report it once instead of on every line.
fn detect_other_layout(text: &str) -> Option<Finding> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let is_whole_array = || parse(text.trim()).is_ok_and(|value| value.is_array());
    let (layout, command) = match first.as_bytes() {
        [b'[', ..] if parse(first).is_err() || is_whole_array() => ("an array", "jq -c '.[]'"),
        [b'{'] => ("an object over several lines", "jq -c ."),
        _ => return None,
    };
    let start = text.len() - text.trim_start().len();
    let message = format!("expected one JSON object per line, found {layout}");
    Some(finding_at(text, start..start + first.len(), message, Some(format!("convert the file with {command}"))))
}

fn finding_at(text: &str, range: Range<usize>, message: String, help: Option<String>) -> Finding {
    Finding { location: Location::new(text, range), pointer: None, case_id: None, message, help }
}

/// A line without its trace.
struct CaseWithoutTrace {
    name: Option<String>,
    context: EvalContext,
    expected: ExpectedResult,
}

fn read_context(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<EvalContext> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let case = object.raw("case").filter(|case| !case.is_null()).cloned();
    let reference = object.raw("reference").cloned();
    let params = object.optional("params", path, problems, read_object_map).unwrap_or_default();
    object.close(path, problems);
    Some(EvalContext { case, reference, params })
}

fn read_case(value: &Value, problems: &mut Problems) -> Option<CaseWithoutTrace> {
    let path = &Path::Root;
    let mut object = ObjectReader::open(value, path, problems)?;
    let name = object.optional("name", path, problems, read_string);
    let trace = object.required("trace", path, problems, read_object_map);
    let context = object.optional("context", path, problems, read_context).unwrap_or_default();
    let applicable = object.optional("applicable", path, problems, read_bool);
    let passed = object.optional("expected", path, problems, read_bool);
    let reason = object.optional("reason", path, problems, read_string);
    let error = object.optional("error", path, problems, |value, path, problems| {
        let from_name = |name: &str| ErrorKind::ALL.into_iter().find(|kind| kind.name() == name);
        read_enum(value, path, problems, &ErrorKind::ALL.map(ErrorKind::name), from_name)
    });
    let has = |key: &str| value.get(key).is_some();
    match ["expected", "error", "applicable"].into_iter().filter(|key| has(key)).collect::<Vec<_>>()[..] {
        [] => {
            let message = "'expected' is missing: true to pass, false to fail".to_owned();
            let help = "or give 'error', the kind of error that the function must end with";
            problems.push(path, Subject::Value, message, Some(help.to_owned()));
        }
        [_] => {}
        [first, second, ..] => {
            let message = format!("'{first}' and '{second}' are mutually exclusive: {}", exclusion(second));
            problems.push(path, Subject::Value, message, None);
        }
    }
    if applicable == Some(true) {
        problems.push(&path.key("applicable"), Subject::Value, "'applicable' can only be false".to_owned(), None);
    }
    if has("reason") && !has("expected") {
        let message = "'reason' requires 'expected': an error has no reason".to_owned();
        problems.push(&path.key("reason"), Subject::Key, message, None);
    }
    object.close(path, problems);
    trace?;
    let expected = match (passed, error, applicable) {
        (Some(passed), None, None) => ExpectedResult::Verdict { passed, reason },
        (None, Some(kind), None) => ExpectedResult::Error(kind),
        (None, None, Some(_)) => ExpectedResult::NotApplicable,
        _ => return None,
    };
    Some(CaseWithoutTrace { name, context, expected })
}

/// Explains why a key excludes the others.
fn exclusion(key: &str) -> &'static str {
    if key == "error" { "an error has no verdict" } else { "a function that is not applicable has no verdict" }
}

/// Shifts a finding from line to file coordinates.
fn shift_finding(mut finding: Finding, start: usize, lines_before: usize) -> Finding {
    let range = &finding.location.range;
    finding.location.range = range.start + start..range.end + start;
    finding.location.position.line += lines_before;
    finding
}

/// Output of `karat eval test --format json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat eval test report")]
pub struct EvalTestReport {
    pub functions: Vec<TestedFunction>,
    /// Files of cases without a function in the folder of eval functions.
    pub cases_without_function: Vec<String>,
    pub summary: EvalTestSummary,
}

/// A function and its cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TestedFunction {
    /// The function's name.
    pub eval_id: String,
    pub file: String,
    /// Path of its cases file, existing or not.
    pub cases_file: String,
    /// Whether that file exists.
    #[serde(skip)]
    pub has_cases_file: bool,
    /// Empty if there are none.
    pub cases: Vec<TestedCase>,
}

/// A case and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TestedCase {
    /// 1-based line in the file.
    pub line: usize,
    pub name: Option<String>,
    pub outcome: Outcome,
    /// The expected verdict; null if an error is expected.
    pub expected: Option<bool>,
    /// The string that the reason must contain.
    pub expected_reason: Option<String>,
    pub expected_error: Option<ErrorKind>,
    /// Whether the function is expected to be not applicable.
    pub expected_not_applicable: bool,
    /// The actual verdict; null on an error.
    pub result: Option<bool>,
    /// False if the function was not applicable.
    pub applicable: bool,
    pub reason: Option<String>,
    pub error: Option<String>,
    pub error_kind: Option<ErrorKind>,
}

/// Totals over all cases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvalTestSummary {
    pub functions: usize,
    /// Number of functions without cases.
    pub without_cases: usize,
    pub passed: usize,
    pub failed: usize,
    pub errored: usize,
}

impl TestedCase {
    pub fn new(case: FunctionCase, actual: Conclusion) -> Self {
        let outcome = case.outcome(&actual);
        let expected_not_applicable = case.expected == ExpectedResult::NotApplicable;
        let (expected, expected_reason, expected_error) = match case.expected {
            ExpectedResult::Verdict { passed, reason } => (Some(passed), reason, None),
            ExpectedResult::NotApplicable => (None, None, None),
            ExpectedResult::Error(kind) => (None, None, Some(kind)),
        };
        let applicable = actual.is_applicable();
        let (result, reason, error) = actual.into_parts();
        Self {
            line: case.line,
            name: case.name,
            outcome,
            expected,
            expected_reason,
            expected_error,
            expected_not_applicable,
            result,
            applicable,
            reason,
            error_kind: error.as_ref().map(|error| error.kind),
            error: error.map(|error| error.message),
        }
    }
}

impl EvalTestReport {
    pub fn new(functions: Vec<TestedFunction>, cases_without_function: Vec<String>) -> Self {
        let cases = || functions.iter().flat_map(|function| &function.cases);
        let count = |outcome| cases().filter(|case| case.outcome == outcome).count();
        let summary = EvalTestSummary {
            functions: functions.len(),
            without_cases: functions.iter().filter(|function| function.cases.is_empty()).count(),
            passed: count(Outcome::Passed),
            failed: count(Outcome::Failed),
            errored: count(Outcome::Errored),
        };
        Self { functions, cases_without_function, summary }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use karat_core::judgement::EvalError;

    #[test]
    fn parses_cases() {
        let text = "\n{\"name\": \"n\", \"trace\": {\"a\": 1.50 }, \"expected\": true, \"reason\": \"r\"}\r\n  \n\
                    {\"trace\": {}, \"error\": \"exception\"}";
        let cases = FunctionCase::read_all(text).expect("valid");
        let first = ExpectedResult::Verdict { passed: true, reason: Some("r".to_owned()) };
        assert_eq!((cases[0].line, cases[0].name.as_deref(), &cases[0].expected), (2, Some("n"), &first));
        assert_eq!(cases[0].trace, "{\"a\": 1.50 }", "verbatim");
        assert_eq!((cases[1].line, &cases[1].expected), (4, &ExpectedResult::Error(ErrorKind::Exception)));
    }

    #[rstest]
    #[case("{\"trace\": {}}", "'expected' is missing: true to pass, false to fail")]
    #[case("{\"expected\": true}", "'trace' is missing")]
    #[case("{\"trace\": {}, \"expected\": 1}", "'expected' must be true or false, found a number")]
    #[case("{\"trace\": [], \"expected\": true}", "'trace' must be an object, found an array")]
    #[case("{\"trace\": {}, \"expected\": true, \"reasons\": \"\"}", "unknown key 'reasons'")]
    #[case(
        "{\"trace\": {}, \"expected\": true, \"applicable\": false}",
        "'expected' and 'applicable' are mutually exclusive: a function that is not applicable has no verdict"
    )]
    #[case("{\"trace\": {}, \"applicable\": true}", "'applicable' can only be false")]
    #[case("{\"trace\": {}, \"expected\": true, \"context\": {\"param\": {}}}", "unknown key 'param'")]
    #[case("{\"trace\": {}, \"error\": \"exeption\"}", "invalid value 'exeption' for 'error'")]
    #[case(
        "{\"trace\": {}, \"error\": \"return\", \"reason\": \"\"}",
        "'reason' requires 'expected': an error has no reason"
    )]
    #[case(
        "{\"trace\": {}, \"error\": \"return\", \"expected\": true}",
        "'expected' and 'error' are mutually exclusive: an error has no verdict"
    )]
    fn reports_problems_with_their_line(#[case] line: &str, #[case] message: &str) {
        let text = format!("{{\"trace\": {{}}, \"expected\": true}}\n{line}\n");
        let findings = FunctionCase::read_all(&text).expect_err("invalid");
        assert_eq!(findings[0].message, message);
        assert_eq!(findings[0].location.position.line, 2);
        assert!(findings[0].location.range.start >= 32);
    }

    #[test]
    fn reports_every_broken_line() {
        let findings =
            FunctionCase::read_all("{]\n[]\n{\"trace\": {}, \"expected\": true}\nnull").expect_err("invalid");
        let lines: Vec<usize> = findings.iter().map(|finding| finding.location.position.line).collect();
        assert_eq!(lines, [1, 2, 4]);
    }

    #[rstest]
    #[case("[{\"trace\": {}, \"expected\": true}]", "expected one JSON object per line, found an array", 1)]
    #[case("\n[\n  {}, {}\n]\n", "expected one JSON object per line, found an array", 2)]
    #[case("[]\n{}", "the line must be an object, found an array", 1)]
    #[case("{\n  \"trace\": {}\n}", "expected one JSON object per line, found an object over several lines", 1)]
    fn reports_another_layout_once(#[case] text: &str, #[case] message: &str, #[case] line: usize) {
        let findings = FunctionCase::read_all(text).expect_err("invalid");
        assert_eq!((findings[0].message.as_str(), findings[0].location.position.line), (message, line));
        assert_eq!(findings.len() == 1, message.starts_with("expected one JSON"), "{findings:?}");
        assert!(text.get(findings[0].location.range.clone()).is_some());
    }

    fn verdict(passed: bool, reason: &str) -> Conclusion {
        Conclusion::Verdict { passed, reason: reason.to_owned() }
    }

    fn error(kind: ErrorKind) -> Conclusion {
        Conclusion::Error(EvalError::new(kind, ""))
    }

    #[rstest]
    #[case("\"expected\": true", verdict(true, "x"), Outcome::Passed)]
    #[case("\"expected\": true", verdict(false, "x"), Outcome::Failed)]
    #[case("\"expected\": false, \"reason\": \"short\"", verdict(false, "too short"), Outcome::Passed)]
    #[case("\"expected\": false, \"reason\": \"long\"", verdict(false, "too short"), Outcome::Failed)]
    #[case("\"expected\": false", error(ErrorKind::Exception), Outcome::Errored)]
    #[case("\"error\": \"timeout\"", error(ErrorKind::Timeout), Outcome::Passed)]
    #[case("\"error\": \"timeout\"", error(ErrorKind::Memory), Outcome::Failed)]
    #[case("\"error\": \"timeout\"", verdict(true, ""), Outcome::Failed)]
    #[case("\"applicable\": false", Conclusion::NotApplicable { reason: String::new() }, Outcome::Passed)]
    #[case("\"applicable\": false", verdict(true, ""), Outcome::Failed)]
    #[case("\"applicable\": false", error(ErrorKind::Timeout), Outcome::Errored)]
    #[case("\"expected\": true", Conclusion::NotApplicable { reason: String::new() }, Outcome::Failed)]
    fn compares_the_result_with_the_expectation(
        #[case] expected: &str,
        #[case] actual: Conclusion,
        #[case] outcome: Outcome,
    ) {
        let cases = FunctionCase::read_all(&format!("{{\"trace\": {{}}, {expected}}}")).expect("valid");
        assert_eq!(cases[0].outcome(&actual), outcome);
    }
}
