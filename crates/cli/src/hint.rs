//! Hints of workflows as commands that a user can copy.

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
        Hint::NameToolUnderTest { tool: None, trace } => {
            format!("name it: karat regress add TOOL --from-trace {trace}")
        }
        Hint::NameToolUnderTest { tool: Some(tool), trace } => {
            format!("name the one under test: karat regress add {tool} --from-trace {trace}")
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
