//! Runs the hooks of a project.

use std::path::PathBuf;
use std::time::Duration;

use karat_core::port::{BoxFuture, Hook, HookError, Hooks};
use karat_http::post;
use serde_json::json;

use crate::call::{call_url, headers, run_command};
use crate::config::{HookConfig, HooksConfig};

/// Maximum size of the reply to a hook, which is not used.
const MAX_REPLY_BYTES: u64 = 1 << 20;

/// The hooks of a project, ready to be run: their variables are expanded.
#[derive(Debug)]
pub struct ProjectHooks {
    config: HooksConfig,
    /// The folder that programs run in.
    folder: PathBuf,
    /// The time limit of each hook.
    limit: Duration,
}

impl ProjectHooks {
    pub fn new(config: HooksConfig, folder: PathBuf, limit: Duration) -> Self {
        Self { config, folder, limit }
    }

    async fn call(&self, hook: Hook, case_id: Option<&str>) -> Result<(), String> {
        match self.config.get(hook) {
            None => {}
            Some(HookConfig::Command { command }) => {
                run_command(command, &self.folder, case_id, self.limit).await?;
            }
            Some(HookConfig::Url { url, headers: own }) => {
                let mut body = json!({ "hook": hook.name() });
                if let Some(id) = case_id {
                    body["caseId"] = id.into();
                }
                call_url(post(url, &headers(own), &body, MAX_REPLY_BYTES), self.limit).await?;
            }
        }
        Ok(())
    }
}

impl Hooks for ProjectHooks {
    fn run<'a>(&'a self, hook: Hook, case_id: Option<&'a str>) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            let called = self.call(hook, case_id).await;
            called.map_err(|message| HookError(format!("the hook {} failed: {message}", hook.name())))
        })
    }
}
