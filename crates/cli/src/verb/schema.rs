//! `karat schema`: prints the JSON Schemas of file and output formats.

use karat_core::case::{EvalFileSchema, RubricFileSchema};
use karat_core::case_list::CaseList;
use karat_core::exit::ExitStatus;
use karat_core::regression::ArchiveSchema;
use karat_core::result::{KeptRun, RunList, SuiteResult};
use karat_core::rubric::RubricResult;
use karat_core::stored::{ImportReport, ReceiveEvent};
use karat_evals::agreement::{
    AgreementReport, ContradictionList, Refinement, ResolvedContradiction, VersionComparison,
};
use karat_evals::execution::{EvalRun, Execution};
use karat_evals::feedback::Feedback;
use karat_evals::function_test::{EvalTestReport, FunctionCaseSchema};
use karat_evals::report::{EvalDetails, EvalHistory, EvalList, EvalsAdded, StoredEvalRun};
use karat_evals::traces::{TraceDetails, TraceList};
use karat_tools::coverage::Coverage;
use karat_tools::lock::{ToolsDiff, ToolsLock};
use karat_tools::overlap::OverlapMapSchema;
use karat_tools::tool_list::ToolList;
use schemars::{Schema, schema_for};

use crate::args::{SchemaArgs, SchemaName};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::verb::check::RuleList;
use crate::verb::overlap::SuggestionReport;
use karat_workflows::check::CheckReport;
use karat_workflows::check_functions::EvalCheckReport;
use karat_workflows::doctor::DoctorReport;
use karat_workflows::feedback::{FeedbackChange, FeedbackImportReport, FeedbackList};
use karat_workflows::forge::ForgeReport;
use karat_workflows::overlaps::OverlapList;
use karat_workflows::regress::RegressReport;
use karat_workflows::runs::PrunedRuns;
use karat_workflows::schema::{agent_script, forge_brief, model_script};
use karat_workflows::settings::Config;

pub(crate) fn run(args: &SchemaArgs, printer: &Printer) -> Result<ExitStatus, Failure> {
    let schema: Schema = match args.format {
        SchemaName::Case => schema_for!(EvalFileSchema),
        SchemaName::Rubric => schema_for!(RubricFileSchema),
        SchemaName::Config => schema_for!(Config),
        SchemaName::Result => schema_for!(SuiteResult),
        SchemaName::RubricResult => schema_for!(RubricResult),
        SchemaName::Runs => schema_for!(RunList),
        SchemaName::RunsPrune => schema_for!(PrunedRuns),
        SchemaName::Show => schema_for!(KeptRun),
        SchemaName::Coverage => schema_for!(Coverage),
        SchemaName::CaseList => schema_for!(CaseList),
        SchemaName::Check => schema_for!(CheckReport),
        SchemaName::Script => agent_script(),
        SchemaName::JudgeScript => model_script(),
        SchemaName::Tools => schema_for!(ToolList),
        SchemaName::ToolsLock => schema_for!(ToolsLock),
        SchemaName::ToolsDiff => schema_for!(ToolsDiff),
        SchemaName::OverlapMap => schema_for!(OverlapMapSchema),
        SchemaName::OverlapList => schema_for!(OverlapList),
        SchemaName::OverlapSuggestions => schema_for!(SuggestionReport),
        SchemaName::RegressReport => schema_for!(RegressReport),
        SchemaName::RegressionArchive => schema_for!(ArchiveSchema),
        SchemaName::EvalDoctor => schema_for!(DoctorReport),
        SchemaName::EvalCheck => schema_for!(EvalCheckReport),
        SchemaName::EvalCases => schema_for!(FunctionCaseSchema),
        SchemaName::EvalExecution => schema_for!(Execution),
        SchemaName::EvalRun => schema_for!(EvalRun),
        SchemaName::EvalRunStored => schema_for!(StoredEvalRun),
        SchemaName::EvalAdd => schema_for!(EvalsAdded),
        SchemaName::EvalList => schema_for!(EvalList),
        SchemaName::EvalShow => schema_for!(EvalDetails),
        SchemaName::EvalHistory => schema_for!(EvalHistory),
        SchemaName::EvalTest => schema_for!(EvalTestReport),
        SchemaName::EvalAgreement => schema_for!(AgreementReport),
        SchemaName::EvalCompare => schema_for!(VersionComparison),
        SchemaName::EvalRefine => schema_for!(Refinement),
        SchemaName::Contradictions => schema_for!(ContradictionList),
        SchemaName::ContradictionsResolve => schema_for!(ResolvedContradiction),
        SchemaName::Forge => schema_for!(ForgeReport),
        SchemaName::ForgeBrief => forge_brief(),
        SchemaName::CheckRules => schema_for!(RuleList),
        SchemaName::Feedback => schema_for!(Feedback),
        SchemaName::FeedbackAdd => schema_for!(FeedbackChange),
        SchemaName::FeedbackImport => schema_for!(FeedbackImportReport),
        SchemaName::FeedbackList => schema_for!(FeedbackList),
        SchemaName::TraceImport => schema_for!(ImportReport),
        SchemaName::TraceList => schema_for!(TraceList),
        SchemaName::TraceShow => schema_for!(TraceDetails),
        SchemaName::TraceReceive => schema_for!(ReceiveEvent),
    };
    printer.print_json(&schema)?;
    Ok(ExitStatus::Success)
}
