//! The model that drafts cases.

use std::sync::Arc;

use karat_core::port::ChatModel;
use karat_core::source::{Path, Problems};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::judge::{JudgeConfig, make_chat_model};
use crate::model::Models;
use crate::printer::Printer;
use crate::settings::{Anchored, Settings};

/// The model that drafts cases, and how it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ForgeConfig {
    /// `KIND:MODEL`; `scripted:FILE` answers from a file, for examples and tests.
    pub(crate) model: String,
    /// From 0: the higher, the more drafts vary.
    #[schemars(range(min = 0))]
    pub(crate) temperature: Option<f64>,
    /// For models that then try to answer the same to the same.
    pub(crate) seed: Option<i64>,
    /// The most tokens that an answer may have.
    #[schemars(range(min = 1))]
    pub(crate) max_output_tokens: Option<u64>,
}

impl ForgeConfig {
    pub(crate) fn named(model: &str) -> Self {
        Self { model: model.to_owned(), temperature: None, seed: None, max_output_tokens: None }
    }

    pub(crate) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let JudgeConfig { model, temperature, seed, max_output_tokens } = JudgeConfig::read(value, path, problems)?;
        Some(Self { model, temperature, seed, max_output_tokens })
    }
}

/// Prepares the model that drafts: the one that is named here, else that of the settings.
pub(crate) fn make_forge_model(
    named: Option<&str>,
    models: &mut Models,
    settings: &mut Settings,
    printer: &Printer,
) -> Result<Arc<dyn ChatModel>, Failure> {
    let configured = settings.forge.clone();
    let chosen = match (named, configured) {
        // How the model is asked stays as the settings say.
        (Some(model), Some(Anchored { value, .. })) if value.model == model => {
            Anchored { value, base: settings.here.clone() }
        }
        (Some(model), _) => Anchored { value: ForgeConfig::named(model), base: settings.here.clone() },
        (None, Some(configured)) => configured,
        (None, None) => {
            return Err(Failure::invalid("no model is named that could draft")
                .hint("give --model KIND:MODEL, or set 'forge' in karat.json: {\"model\": \"KIND:MODEL\"}"));
        }
    };
    let Anchored { value: ForgeConfig { model, temperature, seed, max_output_tokens }, base } = chosen;
    let config = JudgeConfig { model, temperature, seed, max_output_tokens };
    make_chat_model(&Anchored { value: config, base }, "drafter", models, settings, printer)
}
