//! The model that drafts cases.

use std::sync::Arc;

use karat_core::chat::ChatModel;

use crate::chat_model::{ChatModelConfig, Role, make_chat_model};
use crate::failure::Failure;
use crate::model::Models;
use crate::printer::Printer;
use crate::settings::{Anchored, Settings};

/// Ten cases take some five thousand tokens.
const DRAFTER: Role = Role { name: "drafter", output_tokens: Some(8192) };

/// Prepares the model that drafts: the one that is named here, else that of the settings.
pub(crate) fn make_drafter_model(
    named: Option<&str>,
    models: &mut Models,
    settings: &mut Settings,
    printer: &Printer,
) -> Result<Arc<dyn ChatModel>, Failure> {
    let chosen = match (named, settings.forge.clone()) {
        // How it is asked stays as the settings say.
        (Some(model), Some(configured)) if configured.value.model == model => configured,
        (Some(model), _) => Anchored { value: ChatModelConfig::named(model), base: settings.here.clone() },
        (None, Some(configured)) => configured,
        (None, None) => {
            return Err(Failure::invalid("no model is named that could draft")
                .hint("give --model KIND:MODEL, or set 'forge' in karat.json: {\"model\": \"KIND:MODEL\"}"));
        }
    };
    make_chat_model(&chosen, DRAFTER, models, settings, printer)
}
