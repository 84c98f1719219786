//! The model that scores rubric cases.

use std::sync::Arc;

use karat_core::chat::ChatModel;

use crate::chat_model::{Role, make_chat_model};
use crate::failure::Failure;
use crate::model::Models;
use crate::printer::Printer;
use crate::settings::Settings;

const JUDGE: Role = Role { name: "judge", output_tokens: None };

/// Prepares the judge; without one, rubric cases are skipped.
pub(crate) fn make_judge(
    models: &mut Models,
    settings: &mut Settings,
    printer: &Printer,
) -> Result<Option<Arc<dyn ChatModel>>, Failure> {
    let judge = settings.judge.clone();
    judge.map(|judge| make_chat_model(&judge, JUDGE, models, settings, printer)).transpose()
}
