//! The model that rewrites eval functions.

use std::sync::Arc;

use karat_core::chat::ChatModel;

use crate::chat_model::{ChatModelConfig, Role, make_chat_model};
use crate::failure::Failure;
use crate::model::Models;
use crate::printer::Printer;
use crate::settings::{Anchored, Settings};

/// Three functions of two hundred lines take some ten thousand tokens.
const REWRITER: Role = Role { name: "rewriter", output_tokens: Some(16_384) };

/// Returns the model that is named here, else that of the settings: of `refine`, else of `forge`.
pub(crate) fn chosen_rewriter(named: Option<&str>, settings: &Settings) -> Result<Anchored<ChatModelConfig>, Failure> {
    let configured = settings.refine.clone().or_else(|| settings.forge.clone());
    match (named, configured) {
        // How it is asked stays as the settings say.
        (Some(model), Some(configured)) if configured.value.model == model => Ok(configured),
        (Some(model), _) => Ok(Anchored { value: ChatModelConfig::named(model), base: settings.here.clone() }),
        (None, Some(configured)) => Ok(configured),
        (None, None) => Err(Failure::invalid("no model is named that could rewrite an eval")
            .hint("give --model KIND:MODEL, or set 'refine' in karat.json: {\"model\": \"KIND:MODEL\"}")),
    }
}

/// Prepares the model that rewrites.
pub(crate) fn make_rewriter(
    chosen: &Anchored<ChatModelConfig>,
    settings: &mut Settings,
    printer: &Printer,
) -> Result<Arc<dyn ChatModel>, Failure> {
    let mut models = Models::new(settings, false);
    make_chat_model(chosen, REWRITER, &mut models, settings, printer)
}
