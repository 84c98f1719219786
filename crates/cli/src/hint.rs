//! Hints of workflows as commands that a user can copy.

use karat_tools::overlap::command_word;
use karat_workflows::Hint;

pub(crate) fn hint_text(hint: Hint) -> String {
    match hint {
        Hint::Text(text) => text,
        Hint::ListContradictions { eval } => format!("'karat contradictions {eval}' lists where they do"),
        Hint::AddEval { file: None } => "'karat eval add FILE' puts an eval function into the store".to_owned(),
        Hint::AddEval { file: Some(file) } => format!("'karat eval add {file}' puts it there"),
        Hint::NewEval => "'karat eval new NAME' writes a first one".to_owned(),
        Hint::TestEval { file } => format!("karat eval test {file} judges these cases"),
        Hint::FixEval => "fix its file, and 'karat eval add' it as a new version".to_owned(),
        Hint::JudgeStored { eval } => format!("'karat eval run {eval} --stored' judges what is missing"),
        Hint::FilterTraces => "'karat trace list' takes the same flags".to_owned(),
        Hint::JudgeArrow { file } => format!("karat eval batch … <{file}, which reads Arrow and writes it"),
        Hint::ConvertTraces { program, file } => format!("{program} {file} | karat eval run … --traces -"),
        Hint::NameOrMakeOverlapMap => {
            "name one with --overlap-map-path, or make one with 'karat overlap add'".to_owned()
        }
        Hint::WriteToolLock => "'karat tools lock' writes it, to be committed with the eval files".to_owned(),
        Hint::ListTraces => "'karat trace list' shows the traces; an id may be shortened to its beginning".to_owned(),
        Hint::ImportTraces => "'karat trace import FILE' puts traces there".to_owned(),
        Hint::RunWithoutStore => "--no-store runs without keeping anything there".to_owned(),
        Hint::AddEvalVersion => "'karat eval add FILE' makes another one of other code".to_owned(),
        Hint::ImportOrReceiveTraces => "karat trace import FILE, or karat trace receive".to_owned(),
        Hint::ListFeedback => {
            "'karat feedback list' shows who said what; --author NAME says whose rating it is".to_owned()
        }
        Hint::ChangeFeedback => "'karat feedback list' shows what was said, 'karat feedback add' changes it".to_owned(),
        Hint::RateTraces => "'karat review' and 'karat feedback add' take down what people find".to_owned(),
        Hint::RefineNewest { eval, file } => {
            format!("'karat eval refine {eval}' goes on from it; the candidate is in {file}")
        }
        Hint::SkipInvalidRows => "--skip-invalid imports the rows that are valid".to_owned(),
        Hint::CreateStore => {
            "'karat trace import FILE', 'karat eval add FILE' and 'karat run' make one; --store names another"
                .to_owned()
        }
        Hint::CheckFiles => "'karat check' shows why".to_owned(),
        Hint::CheckOrNameRegressionFile => "'karat check' shows whether it is valid; --file names another".to_owned(),
        Hint::RunEvalsOrDescribeCase => {
            "run the eval files with 'karat run', or give --message and the expectation instead of --from-run"
                .to_owned()
        }
        Hint::ReplaceExpectation { key } => {
            format!("give the value as it was, for example --{} VALUE", kebab_case(&key))
        }
        Hint::ShowRawTrace { trace } => {
            format!("karat trace show {} --raw prints what its source sent", command_word(&trace))
        }
        Hint::NameToolUnderTest { tool: None, trace } => {
            format!("name it: karat regress add TOOL --from-trace {trace}")
        }
        Hint::NameToolUnderTest { tool: Some(tool), trace } => {
            format!("name the one under test: karat regress add {tool} --from-trace {trace}")
        }
        Hint::ListTools => "'karat tools' lists them".to_owned(),
        Hint::ForgeBrief { tool } => {
            format!("karat forge {} --brief says what the drafts look like", command_word(&tool))
        }
        Hint::StartForge { tool: None } => "karat forge TOOL begins one".to_owned(),
        Hint::StartForge { tool: Some(tool) } => format!("karat forge {} begins one", command_word(&tool)),
        Hint::ResumeForge { tool } => format!("karat forge {} --resume goes on with it", command_word(&tool)),
        Hint::ResumeKeptForge { tool, file } => {
            format!("kept in {file}: karat forge {} --resume goes on here", command_word(&tool))
        }
        Hint::ResumeOrRestartForge { tool } => {
            format!("karat forge {} --resume goes on with it, --restart forgets it", command_word(&tool))
        }
        Hint::RestartForge { tool } => format!("karat forge {} --restart forgets it", command_word(&tool)),
        Hint::RestartForgeWithDrafts { tool } => {
            format!("karat forge {} --restart --drafts FILE forgets it", command_word(&tool))
        }
    }
}

/// Returns the flag of a key of 'expect'.
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
