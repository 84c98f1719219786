//! The project that a verb works on: its settings and what is known of its tools.

use karat_core::registry::{Gap, GapKind, Registry};
use tokio::runtime::Runtime;

use crate::args::ConfigArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use karat_workflows::context::tools::list_tools;
use karat_workflows::settings::Settings;

pub(crate) struct Project {
    pub(crate) settings: Settings,
    pub(crate) registry: Option<Registry>,
    /// Listens for Ctrl-C as long as the verb works.
    _runtime: Runtime,
}

impl Project {
    /// Resolves the settings and reads the tools, from wherever they are; says which of their parts are broken.
    pub(crate) fn open(args: &ConfigArgs, environment: &Environment, printer: &Printer) -> Result<Self, Failure> {
        let settings = resolve_settings(args, &[], environment, printer)?;
        let runtime = runtime_that_ends()?;
        let registry = runtime.block_on(list_tools(&settings, printer))?;
        let project = Self { settings, registry, _runtime: runtime };
        project.broken().for_each(|gap| printer.warn_of_gap(gap));
        Ok(project)
    }

    /// Returns the parts of the registry that somebody has to mend.
    pub(crate) fn broken(&self) -> impl Iterator<Item = &Gap> {
        let gaps = self.registry.iter().flat_map(Registry::gaps);
        gaps.filter(|gap| gap.kind == GapKind::Broken)
    }
}
