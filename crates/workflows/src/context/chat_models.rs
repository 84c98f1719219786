//! Models that are asked for an answer of a given shape: one judges, one drafts.

use std::sync::Arc;

use karat_agents::{Api, CommandChatModel, KnownProvider, Parameters, ScriptedChatModel};
use karat_core::chat::ChatModel;

use super::agents::invalid_script;
use super::models::{Models, is_model};
use crate::error::Error;
use crate::notice::Notices;
use crate::settings::{Anchored, ChatModelConfig, Settings};
use karat_project::read_text;

/// What a model is there for.
#[derive(Debug, Clone, Copy)]
struct Role {
    /// What it is called in messages: `judge`.
    name: &'static str,
    /// The most tokens that an answer may have where nobody says, for providers that want to be told.
    output_tokens: Option<u64>,
}

/// A judge's answers are short.
const JUDGE: Role = Role { name: "judge", output_tokens: None };

/// Ten cases take some five thousand tokens.
const DRAFTER: Role = Role { name: "drafter", output_tokens: Some(8192) };

/// Three functions of two hundred lines take some ten thousand tokens.
const REWRITER: Role = Role { name: "rewriter", output_tokens: Some(16_384) };

/// Prepares the model that scores rubric cases; without one they are skipped.
pub fn make_judge(
    models: &mut Models,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Option<Arc<dyn ChatModel>>, Error> {
    let judge = settings.judge.as_ref();
    judge.map(|judge| make_chat_model(judge, JUDGE, models, settings, notices)).transpose()
}

/// Prepares the model that drafts cases: the named one, else that of the settings.
pub fn make_drafter_model(
    named: Option<&str>,
    models: &mut Models,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Arc<dyn ChatModel>, Error> {
    let chosen = chosen_model(named, settings.forge.as_ref(), settings).ok_or_else(|| {
        Error::invalid("no model is named that could draft")
            .hint("give --model KIND:MODEL, or set 'forge' in karat.json: {\"model\": \"KIND:MODEL\"}")
    })?;
    make_chat_model(&chosen, DRAFTER, models, settings, notices)
}

/// Returns the model that rewrites evals: the named one, else that of the settings' `refine`, else of `forge`.
pub fn chosen_rewriter(named: Option<&str>, settings: &Settings) -> Result<Anchored<ChatModelConfig>, Error> {
    chosen_model(named, settings.refine.as_ref().or(settings.forge.as_ref()), settings).ok_or_else(|| {
        Error::invalid("no model is named that could rewrite an eval")
            .hint("give --model KIND:MODEL, or set 'refine' in karat.json: {\"model\": \"KIND:MODEL\"}")
    })
}

/// Prepares the model that rewrites evals.
pub fn make_rewriter(
    chosen: &Anchored<ChatModelConfig>,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Arc<dyn ChatModel>, Error> {
    let mut models = Models::new(settings, false);
    make_chat_model(chosen, REWRITER, &mut models, settings, notices)
}

fn chosen_model(
    named: Option<&str>,
    configured: Option<&Anchored<ChatModelConfig>>,
    settings: &Settings,
) -> Option<Anchored<ChatModelConfig>> {
    match (named, configured) {
        // Parameters stay as the settings say.
        (Some(model), Some(configured)) if configured.value.model == model => Some(configured.clone()),
        (Some(model), _) => Some(Anchored { value: ChatModelConfig::named(model), base: settings.layout.here.clone() }),
        (None, configured) => configured.cloned(),
    }
}

/// Prepares a model to be asked.
fn make_chat_model(
    configured: &Anchored<ChatModelConfig>,
    role: Role,
    models: &mut Models,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Arc<dyn ChatModel>, Error> {
    let Anchored { value: ChatModelConfig { model, temperature, seed, max_output_tokens }, base } = configured;
    let Role { name, output_tokens } = role;
    match model.split_once(':') {
        Some(("scripted", file)) if !file.is_empty() => {
            if temperature.is_some() || seed.is_some() || max_output_tokens.is_some() {
                let message = format!("a scripted {name} has no 'temperature', 'seed' or 'maxOutputTokens'");
                return Err(Error::invalid(message));
            }
            let script = read_text(&base.join(file), &format!("the {name}'s script"))?;
            match ScriptedChatModel::read(&script, model.clone()) {
                Ok(model) => Ok(Arc::new(model)),
                Err(error) => Err(invalid_script(file, script, error.findings)),
            }
        }
        Some(("command", command)) => {
            if temperature.is_some() || seed.is_some() || max_output_tokens.is_some() {
                let message = format!("a {name} that is a program has no 'temperature', 'seed' or 'maxOutputTokens'");
                return Err(Error::invalid(message));
            }
            let model = CommandChatModel::new(command, base)
                .map_err(|error| Error::invalid(format!("cannot use '{model}' as {name}: {error}")))?;
            Ok(Arc::new(model))
        }
        Some((kind, _)) if is_model(model, settings) => {
            let output_tokens = output_tokens.filter(|_| api_of(kind, settings) == Api::Anthropic);
            let max_output_tokens = max_output_tokens.or(output_tokens);
            let parameters = Parameters { temperature: *temperature, seed: *seed, max_output_tokens };
            Ok(Arc::new(models.client(model, parameters, settings, notices)?))
        }
        _ => Err(Error::invalid(format!("'{model}' is not a valid {name}"))
            .hint("expected KIND:MODEL, command:PROGRAM or scripted:FILE")),
    }
}

fn api_of(kind: &str, settings: &Settings) -> Api {
    let configured = settings.model.providers.get(kind).and_then(|provider| provider.api);
    configured.or_else(|| KnownProvider::named(kind).map(|known| known.api)).unwrap_or(Api::Openai)
}
