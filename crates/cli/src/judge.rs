//! The model that scores rubric cases.

use std::sync::Arc;

use karat_agents::{Parameters, ScriptedChatModel};
use karat_core::exit::ExitStatus;
use karat_core::port::ChatModel;
use karat_core::source::{ObjectReader, Path, Problems, read_positive_count, read_string};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::config::{read_seed, read_temperature};
use crate::diagnostic::print_findings;
use crate::failure::Failure;
use crate::load::read_text;
use crate::model::{Models, is_model};
use crate::printer::Printer;
use crate::settings::{Anchored, Settings};

/// The model that scores rubric cases, and how it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct JudgeConfig {
    /// `KIND:MODEL`; `scripted:FILE` answers from a file, for examples and tests.
    pub(crate) model: String,
    /// From 0: the higher, the more answers vary.
    #[schemars(range(min = 0))]
    pub(crate) temperature: Option<f64>,
    /// For models that then try to answer the same to the same.
    pub(crate) seed: Option<i64>,
    /// The most tokens that an answer may have.
    #[schemars(range(min = 1))]
    pub(crate) max_output_tokens: Option<u64>,
}

impl JudgeConfig {
    pub(crate) fn named(model: &str) -> Self {
        Self { model: model.to_owned(), temperature: None, seed: None, max_output_tokens: None }
    }

    pub(crate) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let model = object.required("model", path, problems, read_string);
        let temperature = object.nullable("temperature", path, problems, read_temperature);
        let seed = object.nullable("seed", path, problems, read_seed);
        let max_output_tokens = object.nullable("maxOutputTokens", path, problems, read_positive_count);
        object.close(path, problems);
        Some(Self { model: model?, temperature, seed, max_output_tokens })
    }
}

/// Prepares the judge; without one, rubric cases are skipped.
pub(crate) fn make_judge(
    models: &mut Models,
    settings: &mut Settings,
    printer: &Printer,
) -> Result<Option<Arc<dyn ChatModel>>, Failure> {
    match &settings.judge.clone() {
        Some(judge) => make_chat_model(judge, "judge", models, settings, printer).map(Some),
        None => Ok(None),
    }
}

/// Prepares a model that is asked for answers of a given shape, for what it does: a judge, a drafter.
pub(crate) fn make_chat_model(
    named: &Anchored<JudgeConfig>,
    role: &str,
    models: &mut Models,
    settings: &mut Settings,
    printer: &Printer,
) -> Result<Arc<dyn ChatModel>, Failure> {
    let JudgeConfig { model, temperature, seed, max_output_tokens } = &named.value;
    match model.split_once(':') {
        Some(("scripted", file)) if !file.is_empty() => {
            if temperature.is_some() || seed.is_some() || max_output_tokens.is_some() {
                let what = format!("a scripted {role} has no 'temperature', 'seed' or 'maxOutputTokens'");
                return Err(Failure::invalid(what));
            }
            let script = read_text(&named.base.join(file), &format!("the {role}'s script"))?;
            match ScriptedChatModel::read(&script, model.clone()) {
                Ok(scripted) => Ok(Arc::new(scripted)),
                Err(error) => {
                    print_findings(file, &script, &error.findings, printer);
                    Err(Failure::reported(ExitStatus::Invalid))
                }
            }
        }
        _ if is_model(model, settings) => {
            let parameters =
                Parameters { temperature: *temperature, seed: *seed, max_output_tokens: *max_output_tokens };
            Ok(Arc::new(models.client(model, parameters, settings, printer)?))
        }
        _ => Err(Failure::invalid(format!("'{model}' is no {role}: expected a model (KIND:MODEL) or scripted:FILE"))),
    }
}
