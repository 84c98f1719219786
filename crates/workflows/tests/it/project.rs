//! A temporary project with the context for workflows.

use std::path::PathBuf;
use std::sync::Mutex;

use karat_cases::registry::Gap;
use karat_core::redact::Redactor;
use karat_testkit::clock::FixedClock;
use karat_testkit::ids::FixedIds;
use karat_testkit::project::{Content, TempProject};
use karat_workflows::settings::{Flags, ProcessEnv, Settings};
use karat_workflows::{Context, Notices};

pub(crate) struct TestProject {
    pub(crate) files: TempProject,
    process_env: ProcessEnv,
    clock: FixedClock,
    ids: FixedIds,
    notices: CollectedNotices,
}

impl TestProject {
    pub(crate) fn new() -> Self {
        // No binary: workflows are called directly.
        let files = TempProject::new("");
        let current_dir = files.path();
        let guest = std::env::var_os("KARAT_GUEST").map(PathBuf::from);
        Self {
            process_env: ProcessEnv { current_dir, guest, ..ProcessEnv::default() },
            files,
            clock: FixedClock::default(),
            ids: FixedIds::new(),
            notices: CollectedNotices::default(),
        }
    }

    #[must_use]
    pub(crate) fn file(self, path: &str, content: impl Content) -> Self {
        self.files.write(path, content);
        self
    }

    pub(crate) fn context(&self) -> Context<'_> {
        let redactor = Redactor::default();
        let settings = Settings::resolve(&Flags::default(), &[], &self.process_env, &redactor, &self.notices);
        Context {
            settings: settings.expect("valid settings"),
            process_env: &self.process_env,
            clock: &self.clock,
            ids: &self.ids,
            notices: &self.notices,
        }
    }

    /// Returns the warnings and notes so far.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.notices.0.lock().unwrap().clone()
    }
}

#[derive(Default)]
struct CollectedNotices(Mutex<Vec<String>>);

impl CollectedNotices {
    fn add(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Notices for CollectedNotices {
    fn warn(&self, text: &str) {
        self.add(format!("warning: {text}"));
    }

    fn note(&self, text: &str) {
        self.add(format!("note: {text}"));
    }

    fn gap(&self, gap: &Gap) {
        self.add(format!("gap: {}: {}", gap.location, gap.message));
    }
}
