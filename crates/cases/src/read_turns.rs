//! Strict parser of the messages of a case: `input`, `turns` or `user`.

use karat_json::{ObjectReader, Path, Problems, Subject, read_array, read_enum, read_object_map, read_string};
use serde_json::Value;

use super::read::read_non_empty_string;
use super::read_expectation::read_expectation;
use super::state::reject_state_of_turn;
use super::{Expectation, Input, OnTurnFailure, SimulatedUser, Turn};

/// The messages of a case: exactly one of `input`, `turns` and `user`.
pub(super) struct Dialog {
    pub(super) input: Option<Input>,
    pub(super) turns: Option<Vec<Turn>>,
    pub(super) user: Option<SimulatedUser>,
    pub(super) on_turn_failure: Option<OnTurnFailure>,
}

impl Dialog {
    /// Whether a turn has an `expect`.
    pub(super) fn has_expectation(&self) -> bool {
        self.turns.iter().flatten().any(|turn| turn.expect.is_some())
    }
}

/// Reads the messages of a case. Only the turns of a judged conversation can have expectations.
pub(super) fn read_dialog(
    case: &mut ObjectReader<'_>,
    is_judged: bool,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Option<Dialog> {
    let (has_input, has_turns) = (case.raw("input").is_some(), case.raw("turns").is_some());
    let on_turn_failure = if is_judged {
        case.optional("onTurnFailure", path, problems, |value, path, problems| {
            read_enum(value, path, problems, &OnTurnFailure::NAMES, OnTurnFailure::from_name)
        })
    } else {
        None
    };
    if is_judged && case.raw("user").is_some() {
        if has_input || has_turns {
            let message = "a case has exactly one of 'input', 'turns' and 'user'".to_owned();
            problems.push(&path.key("user"), Subject::Key, message, None);
            return None;
        }
        reject_turn_failure(on_turn_failure, path, problems);
        let user = case.required("user", path, problems, SimulatedUser::read)?;
        return Some(Dialog { input: None, turns: None, user: Some(user), on_turn_failure: None });
    }
    if has_input && has_turns {
        let message = "a case has either 'input' or 'turns', not both".to_owned();
        let help = "move the message of 'input' to the first of the 'turns'".to_owned();
        problems.push(&path.key("turns"), Subject::Key, message, Some(help));
        return None;
    }
    if !has_turns {
        reject_turn_failure(on_turn_failure, path, problems);
        let input = case.required("input", path, problems, read_input)?;
        return Some(Dialog { input: Some(input), turns: None, user: None, on_turn_failure: None });
    }
    let read = |value: &Value, path: &Path<'_>, problems: &mut Problems| read_turn(value, is_judged, path, problems);
    let turns = case.required("turns", path, problems, |value, path, problems| {
        let turns = read_array(value, path, problems, read)?;
        if turns.is_empty() {
            problems.at(path, "'turns' needs at least one turn");
            return None;
        }
        Some(turns)
    })?;
    Some(Dialog { input: None, turns: Some(turns), user: None, on_turn_failure })
}

fn reject_turn_failure(on_turn_failure: Option<OnTurnFailure>, path: &Path<'_>, problems: &mut Problems) {
    if on_turn_failure.is_some() {
        let message = "'onTurnFailure' needs 'turns'".to_owned();
        problems.push(&path.key("onTurnFailure"), Subject::Key, message, None);
    }
}

fn read_turn(value: &Value, is_judged: bool, path: &Path<'_>, problems: &mut Problems) -> Option<Turn> {
    let mut object = ObjectReader::open(value, path, problems)?;
    if !is_judged && value.get("expect").is_some() {
        let message = "a turn with 'expect' does not belong in a rubric file".to_owned();
        problems.push(&path.key("expect"), Subject::Key, message, None);
        return None;
    }
    let message = object.required("message", path, problems, read_non_empty_string);
    let stubs = object.optional("stubs", path, problems, read_object_map);
    let has_expect = is_judged && object.raw("expect").is_some();
    let expect = if has_expect { object.optional("expect", path, problems, read_turn_expectation) } else { None };
    object.close(path, problems);
    // An invalid expectation is a problem, not an absent one.
    Some(Turn { message: message?, expect: if has_expect { Some(expect?) } else { None }, stubs })
}

fn read_turn_expectation(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Expectation> {
    reject_state_of_turn(value, path, problems);
    read_expectation(value, path, problems)
}

fn read_input(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Input> {
    let mut input = ObjectReader::open(value, path, problems)?;
    let message = input.required("message", path, problems, read_string);
    input.close(path, problems);
    Some(Input { message: message? })
}
