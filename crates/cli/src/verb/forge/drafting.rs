//! Who drafts, and the asking of them.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use karat_forge::session::{Entry, Session};
use karat_forge::{Draft, Drafter, ModelDrafter, Request, Revision, Slot, TemplateDrafter};

use super::Forge;
use super::material::Material;
use super::reading::ReadTraces;
use crate::args::{DrafterName, ForgeArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use karat_workflows::context::chat_models::make_drafter_model;
use karat_workflows::context::models::{Models, is_model};
use karat_workflows::settings::Settings;

/// Chooses who drafts, and says so.
pub(super) async fn choose(
    args: &ForgeArgs,
    material: &Material,
    environment: &Environment,
    settings: &Settings,
    printer: &Printer,
) -> Result<Arc<dyn Drafter>, Failure> {
    let has_model = args.model.is_some() || settings.forge.is_some();
    let name = match args.drafter {
        Some(name) => name,
        None if !args.traces.is_empty() => DrafterName::Traces,
        None if has_model => DrafterName::Model,
        None => DrafterName::Template,
    };
    if name != DrafterName::Traces && !args.traces.is_empty() {
        return Err(Failure::invalid("--traces is for the drafter 'traces'").hint("leave --drafter out"));
    }
    if name != DrafterName::Traces && (args.since.is_some() || args.rating.is_some()) {
        return Err(Failure::invalid("--since and --rating are for traces of the store").hint("give --drafter traces"));
    }
    let template = || Arc::new(TemplateDrafter) as Arc<dyn Drafter>;
    let (drafter, how) = match name {
        DrafterName::Template => {
            (template(), "without a model: what takes an understanding of the tools stays open".to_owned())
        }
        DrafterName::Model => {
            let drafter = model_drafter(args, settings, printer)?;
            let how = format!("by {}", drafter.model().unwrap_or_default());
            (drafter, how)
        }
        DrafterName::Traces => {
            // What no trace fills is drafted as it would be without traces.
            let rest = if has_model { model_drafter(args, settings, printer)? } else { template() };
            let tool = &material.brief.tool.name;
            let read = if args.traces.is_empty() {
                ReadTraces::of_store(tool, args, settings).await?
            } else {
                ReadTraces::of_files(tool, &args.traces, environment)?
            };
            let mut drafter = read.into_drafter(tool, rest, printer);
            if settings.agent_endpoints.iter().any(|endpoint| is_model(&endpoint.value, settings)) {
                drafter = drafter.with_stubs();
            }
            (Arc::new(drafter) as Arc<dyn Drafter>, "from traces, as far as they go".to_owned())
        }
    };
    printer.note(&format!("cases are drafted {how}"));
    Ok(drafter)
}

/// A drafter at work for a session.
pub(super) struct Drafting<'d> {
    forge: &'d Forge<'d>,
    drafter: Arc<dyn Drafter>,
}

impl<'d> Drafting<'d> {
    pub(super) fn new(forge: &'d Forge<'d>) -> Result<Self, Failure> {
        let drafter = forge.drafter.clone().ok_or_else(|| Failure::errored("there is no drafter"))?;
        Ok(Self { forge, drafter })
    }

    pub(super) fn drafter(&self) -> &dyn Drafter {
        self.drafter.as_ref()
    }

    /// Drafts what the current batch has no drafts for.
    pub(super) fn fill(&self, session: &mut Session, material: &Material) -> Result<(), Failure> {
        let slots = session.batch().map(karat_forge::session::Batch::slots_without_draft).unwrap_or_default();
        self.draft(session, material, &slots, 0, None)
    }

    /// Drafts anew what was drafted before.
    pub(super) fn redraft(
        &self,
        session: &mut Session,
        material: &Material,
        entries: &[Entry],
        words: Option<&str>,
    ) -> Result<(), Failure> {
        let slots: Vec<Slot> = entries.iter().map(|entry| entry.slot.clone()).collect();
        let attempt = entries.iter().map(|entry| entry.attempts).max().unwrap_or_default();
        let drafts: Vec<Draft> = entries.iter().filter_map(|entry| entry.draft.clone()).collect();
        let revision = words.map(|words| Revision { drafts: &drafts, words });
        self.draft(session, material, &slots, attempt, revision)
    }

    fn draft(
        &self,
        session: &mut Session,
        material: &Material,
        slots: &[Slot],
        attempt: u32,
        revision: Option<Revision<'_>>,
    ) -> Result<(), Failure> {
        let so_far = session.others(&material.brief, slots);
        let request = Request { brief: &material.brief, slots, so_far: &so_far, attempt, revision };
        let spinner = Spinner::begin(self.forge, &self.drafter);
        let drafting = async {
            let drafts = self.drafter.draft(request).await;
            drafts.map_err(|error| Failure::errored(format!("cannot draft: {}", error.message)))
        };
        let drafts = self.forge.runtime.block_on(self.forge.interrupts.unless_asked(drafting));
        spinner.end(self.forge.printer);
        session.fill(&drafts?, self.drafter.name(), self.drafter.model().as_deref());
        Ok(())
    }
}

fn model_drafter(args: &ForgeArgs, settings: &Settings, printer: &Printer) -> Result<Arc<dyn Drafter>, Failure> {
    let mut models = Models::new(settings, false);
    let model = make_drafter_model(args.model.as_deref(), &mut models, settings, printer)?;
    Ok(Arc::new(ModelDrafter::new(model)))
}

/// Shows that a model is at work, where somebody is there to see it.
pub(super) struct Spinner(Option<ProgressBar>);

impl Spinner {
    fn begin(forge: &Forge<'_>, drafter: &Arc<dyn Drafter>) -> Self {
        match drafter.model() {
            Some(model) => Self::shown(forge, format!("{model} drafts")),
            None => Self(None),
        }
    }

    pub(super) fn shown(forge: &Forge<'_>, message: String) -> Self {
        if !forge.environment.stderr_is_terminal || forge.environment.process.ci {
            return Self(None);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style =
            ProgressStyle::with_template("{msg} {elapsed}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        bar.set_style(style);
        bar.set_message(message);
        bar.enable_steady_tick(Duration::from_millis(200));
        forge.printer.show_above(Some(bar.clone()));
        Self(Some(bar))
    }

    pub(super) fn end(self, printer: &Printer) {
        if let Some(bar) = self.0 {
            bar.finish_and_clear();
            printer.show_above(None);
        }
    }
}
