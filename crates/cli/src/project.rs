//! The project that a verb works on: its settings and what is known of its tools.

use karat_core::registry::Registry;

use crate::args::ConfigArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::end_when_asked;
use crate::printer::Printer;
use crate::registry::list_tools;
use crate::settings::Settings;

pub(crate) struct Project {
    pub(crate) settings: Settings,
    pub(crate) registry: Option<Registry>,
}

impl Project {
    /// Resolves the settings and reads the tools, from wherever they are.
    pub(crate) fn open(args: &ConfigArgs, environment: &Environment, printer: &Printer) -> Result<Self, Failure> {
        let mut settings = Settings::resolve(args, &[], environment, printer)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
        end_when_asked(&runtime);
        let registry = runtime.block_on(list_tools(&mut settings, printer))?;
        Ok(Self { settings, registry })
    }
}
