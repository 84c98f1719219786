//! Hints of workflows as commands that a user can copy.

use karat_workflows::Hint;

pub(crate) fn hint_text(hint: Hint) -> String {
    match hint {
        Hint::Text(text) => text,
        Hint::ListContradictions { eval } => format!("'karat contradictions {eval}' lists where they do"),
        Hint::AddEval { file: None } => "'karat eval add FILE' puts an eval function into the store".to_owned(),
        Hint::AddEval { file: Some(file) } => format!("'karat eval add {file}' puts it there"),
        Hint::AddEvalVersion => "'karat eval add FILE' makes another one of other code".to_owned(),
        Hint::ListTraces => "'karat trace list' shows the traces; an id may be shortened to its beginning".to_owned(),
        Hint::ImportTraces => "'karat trace import FILE' puts traces there".to_owned(),
        Hint::ImportOrReceiveTraces => "karat trace import FILE, or karat trace receive".to_owned(),
        Hint::ListFeedback => {
            "'karat feedback list' shows who said what; --author NAME says whose rating it is".to_owned()
        }
        Hint::SkipInvalidRows => "--skip-invalid imports the rows that are valid".to_owned(),
        Hint::CreateStore => {
            "'karat trace import FILE', 'karat eval add FILE' and 'karat run' make one; --store names another"
                .to_owned()
        }
    }
}
