//! `KARAT_…` variables: every key of the configuration has one.

use std::path::PathBuf;
use std::str::FromStr;

use crate::args::{ConfigArgs, ModelArgs, ToolArgs};
use crate::failure::Failure;
use crate::recordings::Replay;

/// Looks a variable up.
type Lookup<'l> = &'l dyn Fn(&str) -> Option<String>;

impl ConfigArgs {
    /// Returns these flags with the variables under them: a flag wins, also over the variable of its rival.
    pub(crate) fn over_variables(&self, lookup: Lookup<'_>) -> Result<Self, Failure> {
        let flags = self.clone();
        // An empty variable is what build servers set for "none".
        let text = |name: &str| lookup(&format!("KARAT_{name}")).filter(|value| !value.is_empty());
        let path = |name: &str| text(name).map(PathBuf::from);
        let has_snapshot = flags.snapshot.is_some() || flags.snapshot_file.is_some();
        let has_baseline = flags.baseline.is_some() || flags.baseline_run_id.is_some();
        let has_registry = flags.tool_registry_path.is_some() || flags.tool_registry.is_some();
        let has_agent = flags.agent_endpoint.is_some() || flags.matrix.is_some();
        Ok(Self {
            config: flags.config,
            agent_endpoint: flags.agent_endpoint.or_else(|| text("AGENT_ENDPOINT").filter(|_| !has_agent)),
            matrix: flags.matrix.or_else(|| text("MATRIX").filter(|_| !has_agent)),
            agent: flags.agent.or_else(|| text("AGENT")),
            seed_manifest_path: flags.seed_manifest_path.or_else(|| path("SEED_MANIFEST_PATH")),
            snapshot_enabled: flags
                .snapshot_enabled
                .map_or_else(|| boolean("SNAPSHOT_ENABLED", &text), |flag| Ok(Some(flag)))?,
            snapshot: flags.snapshot.or_else(|| text("SNAPSHOT").filter(|_| !has_snapshot)),
            snapshot_file: flags.snapshot_file.or_else(|| path("SNAPSHOT_FILE").filter(|_| !has_snapshot)),
            output_dir: flags.output_dir.or_else(|| path("OUTPUT_DIR")),
            baseline_run_id: flags.baseline_run_id.or_else(|| text("BASELINE_RUN_ID").filter(|_| !has_baseline)),
            baseline: flags.baseline.or_else(|| path("BASELINE").filter(|_| !has_baseline)),
            concurrency: flags.concurrency.map_or_else(|| number("CONCURRENCY", &text), |flag| Ok(Some(flag)))?,
            timeout_ms: flags.timeout_ms.map_or_else(|| number("TIMEOUT_MS", &text), |flag| Ok(Some(flag)))?,
            tool_registry_path: flags
                .tool_registry_path
                .or_else(|| path("TOOL_REGISTRY_PATH").filter(|_| !has_registry)),
            tool_registry: flags.tool_registry.or_else(|| text("TOOL_REGISTRY").filter(|_| !has_registry)),
            overlap_map_path: flags.overlap_map_path.or_else(|| path("OVERLAP_MAP_PATH")),
            eval_functions_path: flags.eval_functions_path.or_else(|| path("EVAL_FUNCTIONS_PATH")),
            silence: flags.silence.or_else(|| text("SILENCE")),
            judge: flags.judge.or_else(|| text("JUDGE")),
            forge: flags.forge.or_else(|| text("FORGE")),
            refine: flags.refine.or_else(|| text("REFINE")),
            tokenizer: flags.tokenizer.or_else(|| text("TOKENIZER")),
            strict: flags.strict.map_or_else(|| boolean("STRICT", &text), |flag| Ok(Some(flag)))?,
            all_failures: flags.all_failures.map_or_else(|| boolean("ALL_FAILURES", &text), |flag| Ok(Some(flag)))?,
            fail_fast: flags.fail_fast.map_or_else(|| boolean("FAIL_FAST", &text), |flag| Ok(Some(flag)))?,
            trials: flags.trials.map_or_else(|| number("TRIALS", &text), |flag| Ok(Some(flag)))?,
            gates: flags.gates.or_else(|| text("GATES")),
            record: flags.record.or_else(|| path("RECORD")),
            replay: flags.replay.map_or_else(|| replay(&text), |flag| Ok(Some(flag)))?,
            max_retries: flags.max_retries.map_or_else(|| number("MAX_RETRIES", &text), |flag| Ok(Some(flag)))?,
            max_cost_usd: flags.max_cost_usd.map_or_else(|| number("MAX_COST_USD", &text), |flag| Ok(Some(flag)))?,
            store: flags.store.or_else(|| text("STORE")),
            agreement: flags.agreement.or_else(|| text("AGREEMENT")),
            eval_limits: flags.eval_limits.or_else(|| text("EVAL_LIMITS")),
            model: flags.model.over_variables(&text)?,
            tools: ToolArgs {
                mcp_servers: flags.tools.mcp_servers.or_else(|| text("MCP_SERVERS")),
                tool_execution: flags.tools.tool_execution.or_else(|| text("TOOL_EXECUTION")),
                allow_tools: flags.tools.allow_tools.or_else(|| text("ALLOW_TOOLS")),
            },
        })
    }
}

impl ModelArgs {
    fn over_variables(self, text: Lookup<'_>) -> Result<Self, Failure> {
        Ok(Self {
            system_prompt_path: self.system_prompt_path.or_else(|| text("SYSTEM_PROMPT_PATH").map(PathBuf::from)),
            temperature: self.temperature.map_or_else(|| number("TEMPERATURE", text), |flag| Ok(Some(flag)))?,
            seed: self.seed.map_or_else(|| number("SEED", text), |flag| Ok(Some(flag)))?,
            max_output_tokens: self
                .max_output_tokens
                .map_or_else(|| number("MAX_OUTPUT_TOKENS", text), |flag| Ok(Some(flag)))?,
            providers: self.providers.or_else(|| text("PROVIDERS")),
            prices: self.prices.or_else(|| text("PRICES")),
        })
    }
}

fn boolean(name: &str, text: Lookup<'_>) -> Result<Option<bool>, Failure> {
    match text(name).as_deref() {
        None => Ok(None),
        Some("true" | "1") => Ok(Some(true)),
        Some("false" | "0") => Ok(Some(false)),
        Some(other) => Err(Failure::invalid(format!("KARAT_{name} must be true or false, found '{other}'"))),
    }
}

fn replay(text: Lookup<'_>) -> Result<Option<Replay>, Failure> {
    let Some(value) = text("REPLAY") else {
        return Ok(None);
    };
    let replay = Replay::from_name(&value)
        .ok_or_else(|| Failure::invalid(format!("KARAT_REPLAY must be on, auto, strict or off, found '{value}'")))?;
    Ok(Some(replay))
}

fn number<N: FromStr>(name: &str, text: Lookup<'_>) -> Result<Option<N>, Failure> {
    let Some(value) = text(name) else {
        return Ok(None);
    };
    let number =
        value.parse().map_err(|_| Failure::invalid(format!("KARAT_{name} must be a number, found '{value}'")))?;
    Ok(Some(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(flags: &ConfigArgs, variables: &[(&str, &str)]) -> Result<ConfigArgs, Failure> {
        let lookup = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        flags.over_variables(&lookup)
    }

    #[test]
    fn a_flag_wins_over_its_variable_and_over_its_rivals() {
        let flags = ConfigArgs { baseline: Some("file".into()), concurrency: Some(2), ..ConfigArgs::default() };
        let variables = [
            ("KARAT_BASELINE_RUN_ID", "x"),
            ("KARAT_CONCURRENCY", "9"),
            ("KARAT_STRICT", "1"),
            ("KARAT_TIMEOUT_MS", ""),
        ];
        let merged = over(&flags, &variables).expect("valid");
        assert_eq!((merged.baseline_run_id, merged.concurrency), (None, Some(2)));
        assert_eq!((merged.strict, merged.timeout_ms), (Some(true), None));
    }

    #[test]
    fn a_variable_that_is_no_such_thing_is_an_error() {
        let failure = over(&ConfigArgs::default(), &[("KARAT_STRICT", "maybe")]).expect_err("no boolean");
        assert_eq!(failure.message, "KARAT_STRICT must be true or false, found 'maybe'");
        assert!(over(&ConfigArgs::default(), &[("KARAT_CONCURRENCY", "many")]).is_err());
        assert!(over(&ConfigArgs::default(), &[("KARAT_REPLAY", "yes")]).is_err());
    }
}
