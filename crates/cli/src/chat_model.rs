//! Models that are asked for an answer of a given shape: one judges, one drafts.

use std::sync::Arc;

use karat_agents::{Api, CommandChatModel, KnownProvider, Parameters, ScriptedChatModel};
use karat_core::chat::ChatModel;
use karat_core::exit::ExitStatus;
use karat_core::redact::Redactor;
use karat_json::{ObjectReader, Path, Problems, read_positive_count, read_string};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::config::{read_seed, read_temperature};
use crate::diagnostic::print_findings;
use crate::failure::Failure;
use crate::load::read_text;
use crate::model::{Models, is_model};
use crate::printer::Printer;
use crate::settings::{Anchored, Settings, read_flag};

/// A model, and how it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChatModelConfig {
    /// `KIND:MODEL`; `command:PROGRAM` asks a program; `scripted:FILE` answers from a file, for examples and tests.
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

/// What a model is there for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Role {
    /// What it is called in messages: `judge`.
    pub(crate) name: &'static str,
    /// The most tokens that an answer may have where nobody says, for providers that want to be told.
    pub(crate) output_tokens: Option<u64>,
}

impl ChatModelConfig {
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

    /// Reads what a flag says: a model alone, or with how it is asked.
    pub(crate) fn flag(name: &str, text: Option<&str>, redactor: &mut Redactor) -> Result<Option<Self>, Failure> {
        match text.map(str::trim) {
            Some(text) if text.starts_with('{') => read_flag(name, text, Self::read, redactor).map(Some),
            Some(model) => {
                redactor.learn(name, &Value::from(model));
                Ok(Some(Self::named(model)))
            }
            None => Ok(None),
        }
    }
}

/// Prepares a model to be asked.
pub(crate) fn make_chat_model(
    configured: &Anchored<ChatModelConfig>,
    role: Role,
    models: &mut Models,
    settings: &mut Settings,
    printer: &Printer,
) -> Result<Arc<dyn ChatModel>, Failure> {
    let Anchored { value: ChatModelConfig { model, temperature, seed, max_output_tokens }, base } = configured;
    let Role { name, output_tokens } = role;
    match model.split_once(':') {
        Some(("scripted", file)) if !file.is_empty() => {
            if temperature.is_some() || seed.is_some() || max_output_tokens.is_some() {
                let message = format!("a scripted {name} has no 'temperature', 'seed' or 'maxOutputTokens'");
                return Err(Failure::invalid(message));
            }
            let script = read_text(&base.join(file), &format!("the {name}'s script"))?;
            match ScriptedChatModel::read(&script, model.clone()) {
                Ok(model) => Ok(Arc::new(model)),
                Err(error) => {
                    print_findings(file, &script, &error.findings, printer);
                    Err(Failure::reported(ExitStatus::Invalid))
                }
            }
        }
        Some(("command", command)) => {
            if temperature.is_some() || seed.is_some() || max_output_tokens.is_some() {
                let message = format!("a {name} that is a program has no 'temperature', 'seed' or 'maxOutputTokens'");
                return Err(Failure::invalid(message));
            }
            let model = CommandChatModel::new(command, base)
                .map_err(|error| Failure::invalid(format!("cannot use '{model}' as {name}: {error}")))?;
            Ok(Arc::new(model))
        }
        Some((kind, _)) if is_model(model, settings) => {
            let output_tokens = output_tokens.filter(|_| api_of(kind, settings) == Api::Anthropic);
            let max_output_tokens = max_output_tokens.or(output_tokens);
            let parameters = Parameters { temperature: *temperature, seed: *seed, max_output_tokens };
            Ok(Arc::new(models.client(model, parameters, settings, printer)?))
        }
        _ => Err(Failure::invalid(format!("'{model}' is not a valid {name}"))
            .hint("expected KIND:MODEL, command:PROGRAM or scripted:FILE")),
    }
}

fn api_of(kind: &str, settings: &Settings) -> Api {
    let configured = settings.model.providers.get(kind).and_then(|provider| provider.api);
    configured.or_else(|| KnownProvider::named(kind).map(|known| known.api)).unwrap_or(Api::Openai)
}
