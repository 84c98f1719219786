//! Hints of workflows, phrased as commands to copy.

use karat_tools::overlap::shell_quote;
use karat_workflows::Hint;

pub(crate) fn hint_text(hint: Hint) -> String {
    match hint {
        Hint::Text(text) => text,
        Hint::ListContradictions { eval } => format!("run 'karat contradictions {eval}' to list contradictions"),
        Hint::AddEval { file: None } => "run 'karat eval add FILE' to add an eval function".to_owned(),
        Hint::AddEval { file: Some(file) } => format!("run 'karat eval add {file}' to add it"),
        Hint::NewEval => "run 'karat eval new NAME' to create one".to_owned(),
        Hint::TestEval { file } => format!("run 'karat eval test {file}' to judge these cases"),
        Hint::FixEval => "fix the file, then run 'karat eval add' to add a new version".to_owned(),
        Hint::JudgeStored { eval } => format!("run 'karat eval run {eval} --stored' to judge the missing traces"),
        Hint::FilterTraces => "run 'karat trace list' with the same flags to see which traces match".to_owned(),
        Hint::JudgeArrow { file } => format!("to judge Arrow data: karat eval batch … <{file}"),
        Hint::ConvertTraces { program, file } => format!("{program} {file} | karat eval run … --traces -"),
        Hint::NameOrCreateOverlapMap => "pass --overlap-map-path, or run 'karat overlap add' to create one".to_owned(),
        Hint::WriteToolLock => "run 'karat tools lock' to write it, and commit it with the eval files".to_owned(),
        Hint::ListTraces => "run 'karat trace list' to list traces; a unique prefix of an id is enough".to_owned(),
        Hint::ImportTraces => "run 'karat trace import FILE' to import traces".to_owned(),
        Hint::RunWithoutStore => "pass --no-store to run without the store".to_owned(),
        Hint::AddEvalVersion => "run 'karat eval add FILE' to add another version".to_owned(),
        Hint::ImportOrReceiveTraces => {
            "run 'karat trace import FILE' or 'karat trace receive' to add traces".to_owned()
        }
        Hint::ListFeedback => "run 'karat feedback list' to list ratings, or pass another --author NAME".to_owned(),
        Hint::ChangeFeedback => {
            "run 'karat feedback list' to list ratings, or 'karat feedback add' to change one".to_owned()
        }
        Hint::RateTraces => "run 'karat review' or 'karat feedback add' to rate traces".to_owned(),
        Hint::RefineNewest { eval, file } => {
            format!("run 'karat eval refine {eval}' to refine the newest version; the candidate is in {file}")
        }
        Hint::SkipInvalidRows => "pass --skip-invalid to import only the valid rows".to_owned(),
        Hint::CreateStore => {
            "'karat run', 'karat trace import FILE' or 'karat eval add FILE' creates it; pass --store to use another"
                .to_owned()
        }
        Hint::CheckFiles => "run 'karat check' for details".to_owned(),
        Hint::CheckOrNameRegressionFile => "run 'karat check' for details, or pass another --file".to_owned(),
        Hint::ListRuns => {
            "run 'karat runs' to list runs; 'latest', a unique prefix of an id or a path works too".to_owned()
        }
        Hint::RunEvals => "run 'karat run' first".to_owned(),
        Hint::SelectRunTraces => "pass --source runs or --source all to include the traces of test runs".to_owned(),
        Hint::ReplaceExpectation { key } => {
            format!("pass the original value, for example --{} VALUE", kebab_case(&key))
        }
        Hint::ShowRawTrace { trace } => {
            format!("to print the original data: karat trace show {} --raw", shell_quote(&trace))
        }
        Hint::NameToolUnderTest { tool: None, trace } => {
            format!("name the tool under test: karat regress add TOOL --from-trace {trace}")
        }
        Hint::NameToolUnderTest { tool: Some(tool), trace } => {
            format!("name the tool under test: karat regress add {tool} --from-trace {trace}")
        }
        Hint::ListTools => "run 'karat tools' to list tools".to_owned(),
        Hint::ForgeBrief { tool } => {
            format!("to print the expected format: karat forge {} --brief", shell_quote(&tool))
        }
        Hint::StartForge { tool: None } => "to start one: karat forge TOOL".to_owned(),
        Hint::StartForge { tool: Some(tool) } => format!("to start one: karat forge {}", shell_quote(&tool)),
        Hint::ResumeForge { tool } => format!("to continue it: karat forge {} --resume", shell_quote(&tool)),
        Hint::ResumeSavedForge { tool, file } => {
            format!("saved in {file}; to continue: karat forge {} --resume", shell_quote(&tool))
        }
        Hint::ResumeOrRestartForge { tool } => {
            format!("pass --restart to discard it, or continue it: karat forge {} --resume", shell_quote(&tool))
        }
        Hint::RestartForge { tool } => format!("to discard it: karat forge {} --restart", shell_quote(&tool)),
        Hint::RestartForgeWithDrafts { tool } => {
            format!("to discard it: karat forge {} --restart --drafts FILE", shell_quote(&tool))
        }
    }
}

/// Returns the flag name for a key of `expect`.
fn kebab_case(key: &str) -> String {
    let mut flag = String::new();
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            flag.push('-');
        }
        flag.push(letter.to_ascii_lowercase());
    }
    flag
}
