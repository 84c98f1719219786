//! Creates the models that return structured output: judge, simulated users, drafter and rewriter.

use std::collections::BTreeMap;
use std::sync::Arc;

use karat_agents::{Api, CommandChatModel, KnownProvider, Parameters, ScriptedChatModel};
use karat_cases::Case;
use karat_core::chat::ChatModel;

use super::agents::invalid_script;
use super::models::{Models, is_model};
use crate::error::Error;
use crate::notice::Notices;
use crate::settings::{ChatModelConfig, Settings, WithBase};
use karat_project::read_text;

/// The role of a model.
#[derive(Debug, Clone, Copy)]
struct Role {
    /// The name in messages, such as `judge`.
    name: &'static str,
    /// Default maximum number of output tokens, for providers that require one.
    output_tokens: Option<u64>,
}

/// A judge's answers are short.
const JUDGE: Role = Role { name: "judge", output_tokens: None };

/// A user's messages are short.
const SIMULATED_USER: Role = Role { name: "simulated user", output_tokens: None };

/// Ten cases take about 5,000 tokens.
const DRAFTER: Role = Role { name: "drafter", output_tokens: Some(8192) };

/// Three functions of 200 lines take about 10,000 tokens.
const REWRITER: Role = Role { name: "rewriter", output_tokens: Some(16_384) };

/// Creates the model that scores rubric cases, if configured.
pub fn make_judge(
    models: &mut Models,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Option<Arc<dyn ChatModel>>, Error> {
    let judge = settings.judge.as_ref();
    judge.map(|judge| make_chat_model(judge, JUDGE, models, settings, notices)).transpose()
}

/// Creates the models that play the simulated users of these cases, by the `model` of the case.
pub fn make_simulated_users<'c>(
    cases: impl Iterator<Item = &'c Case>,
    models: &mut Models,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<BTreeMap<Option<String>, Arc<dyn ChatModel>>, Error> {
    let mut users = BTreeMap::new();
    for (case, user) in cases.filter_map(|case| Some((case, case.user.as_ref()?))) {
        if users.contains_key(&user.model) {
            continue;
        }
        let chosen = select_model(user.model.as_deref(), settings.simulated_user.as_ref(), settings).ok_or_else(|| {
            Error::invalid(format!("no model is configured for the simulated user of '{}'", case.id))
                .hint("set 'simulatedUser' in karat.json: {\"model\": \"PROVIDER:MODEL\"}, or 'model' in the case's 'user'")
        })?;
        users.insert(user.model.clone(), make_chat_model(&chosen, SIMULATED_USER, models, settings, notices)?);
    }
    Ok(users)
}

/// Creates the model that drafts cases: the requested or else the configured one.
pub fn make_drafter_model(
    requested: Option<&str>,
    models: &mut Models,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Arc<dyn ChatModel>, Error> {
    let chosen = select_model(requested, settings.forge.as_ref(), settings).ok_or_else(|| {
        Error::invalid("no model is configured to draft cases")
            .hint("pass --model PROVIDER:MODEL, or set 'forge' in karat.json: {\"model\": \"PROVIDER:MODEL\"}")
    })?;
    make_chat_model(&chosen, DRAFTER, models, settings, notices)
}

/// Returns the model that rewrites evals: the requested one, or else that of `refine` or `forge` in the settings.
pub fn select_rewriter(requested: Option<&str>, settings: &Settings) -> Result<WithBase<ChatModelConfig>, Error> {
    select_model(requested, settings.refine.as_ref().or(settings.forge.as_ref()), settings).ok_or_else(|| {
        Error::invalid("no model is configured to rewrite evals")
            .hint("pass --model PROVIDER:MODEL, or set 'refine' in karat.json: {\"model\": \"PROVIDER:MODEL\"}")
    })
}

/// Creates the model that rewrites evals.
pub fn make_rewriter(
    chosen: &WithBase<ChatModelConfig>,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Arc<dyn ChatModel>, Error> {
    let mut models = Models::new(settings, false);
    make_chat_model(chosen, REWRITER, &mut models, settings, notices)
}

fn select_model(
    requested: Option<&str>,
    configured: Option<&WithBase<ChatModelConfig>>,
    settings: &Settings,
) -> Option<WithBase<ChatModelConfig>> {
    match (requested, configured) {
        // A requested model keeps its configured parameters.
        (Some(model), Some(configured)) if configured.value.model == model => Some(configured.clone()),
        (Some(model), _) => {
            Some(WithBase { value: ChatModelConfig::new(model), base: settings.layout.current_dir.clone() })
        }
        (None, configured) => configured.cloned(),
    }
}

fn make_chat_model(
    configured: &WithBase<ChatModelConfig>,
    role: Role,
    models: &mut Models,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Arc<dyn ChatModel>, Error> {
    let WithBase { value: ChatModelConfig { model, temperature, seed, max_output_tokens }, base } = configured;
    let Role { name, output_tokens } = role;
    match model.split_once(':') {
        Some(("scripted", file)) if !file.is_empty() => {
            if temperature.is_some() || seed.is_some() || max_output_tokens.is_some() {
                let message = format!("a scripted {name} does not support 'temperature', 'seed' or 'maxOutputTokens'");
                return Err(Error::invalid(message));
            }
            let script = read_text(&base.join(file), &format!("the {name}'s script"))?;
            match ScriptedChatModel::parse(&script, model.clone()) {
                Ok(model) => Ok(Arc::new(model)),
                Err(error) => Err(invalid_script(file, script, error.findings)),
            }
        }
        Some(("command", command)) => {
            if temperature.is_some() || seed.is_some() || max_output_tokens.is_some() {
                let message = format!("a command {name} does not support 'temperature', 'seed' or 'maxOutputTokens'");
                return Err(Error::invalid(message));
            }
            let model = CommandChatModel::new(command, base)
                .map_err(|error| Error::invalid(format!("cannot use '{model}' as {name}: {error}")))?;
            Ok(Arc::new(model))
        }
        Some((provider, _)) if is_model(model, settings) => {
            let output_tokens = output_tokens.filter(|_| api_of(provider, settings) == Api::Anthropic);
            let max_output_tokens = max_output_tokens.or(output_tokens);
            let parameters = Parameters { temperature: *temperature, seed: *seed, max_output_tokens };
            Ok(Arc::new(models.client(model, parameters, settings, notices)?))
        }
        _ => Err(Error::invalid(format!("'{model}' is not a valid {name}"))
            .hint("expected PROVIDER:MODEL, command:PROGRAM or scripted:FILE")),
    }
}

fn api_of(provider: &str, settings: &Settings) -> Api {
    let configured = settings.model.providers.get(provider).and_then(|config| config.api);
    configured.or_else(|| KnownProvider::by_name(provider).map(|known| known.api)).unwrap_or(Api::Openai)
}
