//! The model that drafts cases.

use std::sync::Arc;

use karat_core::port::ChatModel;

use crate::chat_model::{Role, make_chat_model};
use crate::failure::Failure;
use crate::model::Models;
use crate::printer::Printer;
use crate::settings::Settings;

/// Ten cases take some five thousand tokens.
const DRAFTER: Role = Role { name: "drafter", output_tokens: Some(8192) };

/// Prepares the model that drafts; without one, cases are drafted otherwise.
#[expect(dead_code, reason = "the verb that asks for drafts is not there yet")]
pub(crate) fn make_drafter_model(
    models: &mut Models,
    settings: &mut Settings,
    printer: &Printer,
) -> Result<Option<Arc<dyn ChatModel>>, Failure> {
    let drafter = settings.forge.clone();
    drafter.map(|drafter| make_chat_model(&drafter, DRAFTER, models, settings, printer)).transpose()
}
