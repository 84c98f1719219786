//! Selects the drafter.

use std::sync::Arc;

use jiff::Timestamp;
use karat_cases::registry::same_name;
use karat_core::rating::Rating;
use karat_forge::{Draft, DraftFile, Drafter, ModelDrafter, Plan, Slot, TemplateDrafter, golden_slots, labeled_slots};
use karat_json::text::counted;

use super::inputs::ForgeInputs;
use super::traces::{TraceInput, TraceSource};
use crate::context::Context;
use crate::context::chat_models::make_drafter_model;
use crate::context::models::{Models, is_model};
use crate::error::Error;
use crate::hint::Hint;

/// The source of drafts.
pub enum DraftsRequest {
    Drafter(DrafterRequest),
    /// A file of drafts: its name for display, and its text.
    File {
        name: String,
        text: String,
    },
}

#[derive(Default)]
pub struct DrafterRequest {
    /// Default: traces if any are given, else a model if one is configured, else the template.
    pub kind: Option<DrafterKind>,
    /// The model that drafts; overrides the settings.
    pub model: Option<String>,
    /// Traces to draft from; those of the store if empty.
    pub traces: Vec<TraceInput>,
    /// Only traces of the store that started at this time or later.
    pub since: Option<Timestamp>,
    /// Only traces of the store with this combined rating.
    pub rating: Option<Rating>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrafterKind {
    Template,
    Model,
    Traces,
}

/// A drafter, and its drafts if they come from a file.
pub(super) struct ChosenDrafter {
    pub(super) drafter: Arc<dyn Drafter>,
    pub(super) drafted: Option<FileDrafts>,
}

/// The drafts of a file, and the slots that they do not fill.
pub(super) struct FileDrafts {
    pub(super) drafts: Vec<Draft>,
    pub(super) open: Vec<Slot>,
}

/// Selects the drafter and notes the choice.
pub(super) async fn choose_drafter(
    request: DraftsRequest,
    inputs: &ForgeInputs,
    context: &Context<'_>,
) -> Result<ChosenDrafter, Error> {
    let request = match request {
        DraftsRequest::Drafter(request) => request,
        DraftsRequest::File { name, text } => return read_drafts(&name, &text, inputs, context),
    };
    let settings = &context.settings;
    let has_model = request.model.is_some() || settings.forge.is_some();
    let kind = match request.kind {
        Some(kind) => kind,
        None if !request.traces.is_empty() => DrafterKind::Traces,
        None if has_model => DrafterKind::Model,
        None => DrafterKind::Template,
    };
    if kind != DrafterKind::Traces && !request.traces.is_empty() {
        return Err(Error::invalid("--traces requires the drafter 'traces'").hint("remove --drafter"));
    }
    if kind != DrafterKind::Traces && (request.since.is_some() || request.rating.is_some()) {
        return Err(Error::invalid("--since and --rating require the drafter 'traces'").hint("pass --drafter traces"));
    }
    let (drafter, method) = match kind {
        DrafterKind::Template => {
            (template(), "from templates, without a model; slots that need one remain open".to_owned())
        }
        DrafterKind::Model => {
            let drafter = model_drafter(request.model.as_deref(), context)?;
            let method = format!("by {}", drafter.model().unwrap_or_default());
            (drafter, method)
        }
        DrafterKind::Traces => {
            // Slots that no trace fills are drafted as without traces.
            let rest = if has_model { model_drafter(request.model.as_deref(), context)? } else { template() };
            let tool = &inputs.brief.tool.name;
            let traces = if request.traces.is_empty() {
                TraceSource::from_store(tool, request.since, request.rating, context).await?
            } else {
                TraceSource::from_inputs(tool, request.traces)?
            };
            let mut drafter = traces.into_drafter(tool, rest, context.notices);
            if settings.agent_endpoints.iter().any(|endpoint| is_model(&endpoint.value, settings)) {
                drafter = drafter.with_stubs();
            }
            (Arc::new(drafter) as Arc<dyn Drafter>, "from traces where possible".to_owned())
        }
    };
    context.notices.note(&format!("cases are drafted {method}"));
    Ok(ChosenDrafter { drafter, drafted: None })
}

fn template() -> Arc<dyn Drafter> {
    Arc::new(TemplateDrafter)
}

fn model_drafter(model: Option<&str>, context: &Context<'_>) -> Result<Arc<dyn Drafter>, Error> {
    let mut models = Models::new(&context.settings, false);
    let model = make_drafter_model(model, &mut models, &context.settings, context.notices)?;
    Ok(Arc::new(ModelDrafter::new(model)))
}

/// Reads a file of drafts and assigns each draft to a slot.
fn read_drafts(name: &str, text: &str, inputs: &ForgeInputs, context: &Context<'_>) -> Result<ChosenDrafter, Error> {
    let (brief, notices) = (&inputs.brief, context.notices);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut file = DraftFile::read(name, text).map_err(|error| {
        Error::invalid(format!("{name}: {error}")).hint(Hint::ForgeBrief { tool: brief.tool.name.clone() })
    })?;
    if let Some(other) = file.tool.as_ref().filter(|other| !same_name(other, &brief.tool.name)) {
        let tool = &brief.tool.name;
        return Err(Error::invalid(format!("the drafts {name} are for '{other}', not for '{tool}'")));
    }
    match file.remove_existing(brief) {
        0 => {}
        count => notices.note(&format!("skipped {} of {name} already written", counted(count, "case"))),
    }
    let all = [golden_slots(brief), labeled_slots(brief, &Plan::new(brief))].concat();
    let (mut filled, drafter) = file.assign_slots(brief, &all);
    let is_wanted = |slot: &Slot| inputs.tiers.includes(slot.purpose.tier());
    let count = filled.len();
    filled.retain(is_wanted);
    if filled.len() < count {
        notices.note(&format!("skipped {} of another tier", counted(count - filled.len(), "draft")));
    }
    let is_open = |slot: &Slot| is_wanted(slot) && filled.iter().all(|other| other.id != slot.id);
    let open: Vec<Slot> = all.into_iter().filter(is_open).collect();
    let drafts = drafter.drafts(brief, &filled, &[]);
    notices.note(&format!("{} in {name}", counted(drafts.len(), "draft")));
    Ok(ChosenDrafter { drafter: Arc::new(drafter), drafted: Some(FileDrafts { drafts, open }) })
}
