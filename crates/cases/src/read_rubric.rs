//! Strict parser of the cases of rubric files.

use std::collections::HashSet;

use serde_json::Value;

use super::read::{read_id, read_non_empty_string, read_tags};
use super::read_turns::{Dialog, read_dialog};
use super::{Case, CaseLocation, Dimension, Expectation, Metadata, RubricCase, Tier};
use karat_json::{
    ObjectReader, Path, Problems, Subject, read_array, read_object_map, read_positive_count, read_string,
};

/// Rejects another tier in the metadata of a file that is a rubric file by name.
pub(super) fn reject_other_tier(metadata: &Metadata, problems: &mut Problems) {
    if let Some(tier) = metadata.tier.filter(|tier| *tier != Tier::Rubric) {
        let path = Path::Root;
        problems.at(&path.key("metadata").key("tier"), format!("'tier' of a rubric file cannot be '{tier}'"));
    }
}

pub(super) fn read_rubric_case(
    value: &Value,
    location: CaseLocation,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Option<RubricCase> {
    let mut object = ObjectReader::open(value, path, problems)?;
    if value.get("expect").is_some() {
        let message = "a case with 'expect' does not belong in a rubric file".to_owned();
        let help = "move it to an eval file, named x.golden.json, x.labeled.json or x.regression.json".to_owned();
        problems.push(&path.key("expect"), Subject::Key, message, Some(help));
        return None;
    }
    let id = object.required("id", path, problems, read_id);
    let description = object.optional("description", path, problems, read_string).unwrap_or_default();
    let dialog = read_dialog(&mut object, false, path, problems);
    let reference_data = object.optional("referenceData", path, problems, read_object_map);
    let stubs = object.optional("stubs", path, problems, read_object_map);
    let max_turns = object.optional("maxTurns", path, problems, read_positive_count);
    let rubric = object.required("rubric", path, problems, read_rubric);
    let tags = object.optional("tags", path, problems, read_tags).unwrap_or_default();
    let skip = object.optional("skip", path, problems, read_non_empty_string);
    // Read by `Tables`; listed here so that the key is known.
    object.raw("each");
    object.close(path, problems);
    let Dialog { input, turns, user, on_turn_failure } = dialog?;
    let case = Case {
        id: id?,
        description,
        difficulty: None,
        created_at: None,
        bug_ref: None,
        input,
        turns,
        user,
        on_turn_failure,
        stubs,
        injections: None,
        max_turns,
        expect: Expectation::default(),
        safety: None,
        tags,
        skip,
        location,
    };
    Some(RubricCase { case, reference_data, rubric: rubric? })
}

fn read_rubric(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<Dimension>> {
    let mut seen = HashSet::new();
    let rubric = read_array(value, path, problems, |value, path, problems| {
        let name = value.get("dimension").and_then(Value::as_str);
        if let Some(name) = name.filter(|name| !seen.insert(name.trim().to_owned())) {
            problems.at(&path.key("dimension"), format!("duplicate dimension '{name}'"));
        }
        read_dimension(value, path, problems)
    })?;
    if rubric.is_empty() {
        problems.at(path, "'rubric' needs at least one dimension");
        return None;
    }
    Some(rubric)
}

fn read_dimension(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Dimension> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let dimension = object.required("dimension", path, problems, read_non_empty_string);
    let max_score = object.required("maxScore", path, problems, read_positive_count);
    let criteria = object.required("criteria", path, problems, read_non_empty_string);
    object.close(path, problems);
    Some(Dimension { dimension: dimension?, max_score: max_score?, criteria: criteria? })
}
