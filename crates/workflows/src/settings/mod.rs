//! Settings, resolved once from flags, environment variables, `karat.json` and defaults.

mod agent_section;
mod chat_model;
mod config;
mod live_tools;
mod overrides;
mod recording;
mod secrets;
mod state;
mod store_location;
mod variables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use karat_agents::{KnownProvider, Parameters, Price, ProviderConfig};
use karat_core::gate::Gates;
use karat_core::judgement::{DEFAULT_THRESHOLD, LowerLimits, ReturnForm};
use karat_core::redact::Redactor;
use karat_core::tokenizer::Tokenizer;
use karat_evals::agreement::Thresholds;
use karat_json::InvalidFile;
use karat_project::{Baseline, Layout, PathSetting, read_text};
use karat_registry::RegistryCommand;
use karat_store::Location;
use karat_tools::contract::Silence;
use serde_json::Value;

pub use self::agent_section::AgentSection;
pub use self::chat_model::ChatModelConfig;
pub use self::config::{AllowTools, Config, SnapshotSource, ToolExecutor};
pub use self::live_tools::LiveTools;
pub(crate) use self::live_tools::UnusableServer;
pub use self::overrides::{FlagValue, Flags};
use self::overrides::{VARIABLE_PREFIX, suggested_variable};
pub use self::recording::{RecordingSetting, Replay};
pub(crate) use self::secrets::{fill_headers, redact_arguments};
pub use self::state::StateSettings;
use self::store_location::store_location;
pub use self::variables::Variables;
pub(crate) use self::variables::is_on_search_path;
use crate::error::Error;
use crate::notice::Notices;

/// Minimum length of a provider's API key; shorter values are not redacted.
pub(crate) const MIN_KEY_LENGTH: usize = 8;

const CONFIG_NAME: &str = "karat.json";

/// Maximum number of trials; more would not add confidence.
const MAX_TRIALS: usize = 10_000;

/// The resolved settings of a command.
#[derive(Debug)]
pub struct Settings {
    /// The locations of the project's files.
    pub layout: Layout,
    /// The configuration file, which need not exist.
    pub config_file: PathBuf,
    /// The agents, in order; empty if none is configured.
    pub agent_endpoints: Vec<WithBase<String>>,
    /// Boxed, since it is large and contexts are part of futures.
    pub agent: Box<AgentSection>,
    pub seed_manifest: PathSetting,
    pub tool_registry: PathSetting,
    /// The program that lists the tools; replaces `tool_registry`.
    pub registry_command: Option<WithBase<RegistryCommand>>,
    pub overlap_map: PathSetting,
    /// The folder of Python eval functions.
    pub eval_functions: PathSetting,
    pub silence: SilenceSetting,
    /// The source of the snapshot, if enabled.
    pub snapshot: Option<WithBase<SnapshotSource>>,
    pub baseline: Option<Baseline>,
    pub concurrency: usize,
    pub timeout: Duration,
    /// The model that scores rubric cases.
    pub judge: Option<WithBase<ChatModelConfig>>,
    /// The model that plays simulated users.
    pub simulated_user: Option<WithBase<ChatModelConfig>>,
    /// The model that drafts cases.
    pub forge: Option<WithBase<ChatModelConfig>>,
    /// The model that rewrites evals.
    pub refine: Option<WithBase<ChatModelConfig>>,
    pub tokenizer: Tokenizer,
    pub strict: bool,
    pub all_failures: bool,
    pub fail_fast: bool,
    pub trials: usize,
    pub gates: Option<Gates>,
    pub recording: RecordingSetting,
    /// Maximum number of retries, if configured.
    pub max_retries: Option<u32>,
    pub max_cost_usd: Option<f64>,
    pub model: ModelOptions,
    pub live: LiveTools,
    /// State sources and hooks.
    pub state: StateSettings,
    /// Limits of eval functions below the built-in maximum.
    pub eval_limits: LowerLimits,
    /// The optional features that eval functions may use.
    pub eval_rules: EvalRules,
    /// Thresholds of the agreement alert.
    pub agreement: Thresholds,
    pub store: Location,
    /// Variables for headers and keys.
    pub variables: Variables,
    /// Secrets to mask in all output; grows when variables are expanded.
    pub redactor: Redactor,
}

/// A value with the folder that its paths are relative to.
#[derive(Debug, Clone)]
pub struct WithBase<T> {
    pub value: T,
    pub base: PathBuf,
}

/// The optional features that eval functions may use.
#[derive(Debug, Clone)]
pub struct EvalRules {
    /// Modules of the standard library that they may import.
    pub imports: Vec<String>,
    pub returns: ReturnForm,
    /// Minimum score to pass.
    pub threshold: f64,
}

/// The silenced rules, and the file that declares them, if any.
#[derive(Debug, Default)]
pub struct SilenceSetting {
    pub silence: Silence,
    pub file: Option<PathBuf>,
}

/// Options of models.
#[derive(Debug, Default)]
pub struct ModelOptions {
    pub system_prompt_path: Option<PathBuf>,
    pub parameters: Parameters,
    pub providers: BTreeMap<String, ProviderConfig>,
    pub prices: BTreeMap<String, Price>,
}

impl Settings {
    /// Finds the project and resolves every key. Registers secrets with the redactor.
    pub fn resolve(
        flags: &Flags,
        paths: &[PathBuf],
        process_env: &ProcessEnv,
        redactor: &Redactor,
        notices: &dyn Notices,
    ) -> Result<Self, Error> {
        let current_dir = &process_env.current_dir;
        let explicit = flags.config.clone().or_else(|| process_env.config.clone());
        let config_path = match explicit {
            Some(path) => Some(current_dir.join(path)),
            None => find_config(paths, current_dir),
        };
        let root = config_path.as_deref().and_then(Path::parent).unwrap_or(current_dir).to_path_buf();
        let variables = read_variables(&root, redactor, notices)?;
        let overrides = flags.merge_variables(&|name| variables.get(name), redactor)?;
        let file = match &config_path {
            Some(path) => read_config(path, current_dir, redactor)?,
            None => Config::default(),
        };
        let resolver = Resolver { root: &root, current_dir };
        let agent_endpoints = agent_endpoints(&overrides, &file, &resolver)?;
        for endpoint in &agent_endpoints {
            redactor.add_secrets_in("agentEndpoint", &Value::from(endpoint.value.as_str()));
        }
        mask_provider_keys(&variables, redactor);
        let path = |flag: &Option<String>, file: &Option<String>, default: &str| {
            resolver.path(flag.as_deref(), file.as_deref(), default)
        };
        let recording = RecordingSetting::new(
            path(&overrides.record, &file.record, "evals/recordings"),
            overrides.replay.or(file.replay),
            process_env.ci,
        );
        let overlap_map = path(&overrides.overlap_map_path, &file.overlap_map_path, "evals/overlap-map.json");
        let timeout_ms = overrides.timeout_ms.or(file.timeout_ms).unwrap_or(60_000);
        Ok(Self {
            layout: Layout {
                output_dir: path(&overrides.output_dir, &file.output_dir, "evals/results").path,
                recordings: recording.folder.clone(),
                overlap_map: overlap_map.path.clone(),
                current_dir: current_dir.clone(),
                root: root.clone(),
            },
            config_file: config_path.clone().unwrap_or_else(|| root.join(CONFIG_NAME)),
            silence: match overrides.silence.clone() {
                Some(silence) => SilenceSetting { silence, file: None },
                None => SilenceSetting { silence: file.silence.clone().unwrap_or_default(), file: config_path },
            },
            judge: resolver.with_base(overrides.judge.clone(), file.judge.clone()),
            simulated_user: resolver.with_base(overrides.simulated_user.clone(), file.simulated_user.clone()),
            forge: resolver.with_base(overrides.forge.clone(), file.forge.clone()),
            refine: resolver.with_base(overrides.refine.clone(), file.refine.clone()),
            agent_endpoints,
            agent: Box::new(overrides.agent.clone().or_else(|| file.agent.clone()).unwrap_or_default()),
            seed_manifest: path(&overrides.seed_manifest_path, &file.seed_manifest_path, "evals/seed-manifest.json"),
            tool_registry: path(&overrides.tool_registry_path, &file.tool_registry_path, "tools/tools.exports.ts"),
            registry_command: registry_command(&overrides, &file, &resolver, redactor)?,
            overlap_map,
            eval_functions: path(&overrides.eval_functions_path, &file.eval_functions_path, "evals/functions"),
            snapshot: snapshot_source(&overrides, &file, &resolver)?,
            baseline: baseline_setting(&overrides, &file, &resolver)?,
            concurrency: to_usize("concurrency", overrides.concurrency.or(file.concurrency).unwrap_or(1))?,
            timeout: Duration::from_millis(timeout_ms),
            tokenizer: overrides.tokenizer.or(file.tokenizer).unwrap_or_default(),
            strict: overrides.strict.or(file.strict).unwrap_or_default(),
            all_failures: overrides.all_failures.or(file.all_failures).unwrap_or_default(),
            fail_fast: overrides.fail_fast.or(file.fail_fast).unwrap_or_default(),
            trials: trials(overrides.trials.or(file.trials).unwrap_or(1))?,
            gates: overrides.gates.clone().or_else(|| file.gates.clone()),
            recording,
            max_retries: overrides
                .max_retries
                .or(file.max_retries)
                .map(|retries| u32::try_from(retries).map_err(|_| Error::invalid("--max-retries is too large")))
                .transpose()?,
            max_cost_usd: overrides.max_cost_usd.or(file.max_cost_usd),
            live: LiveTools::resolve(&overrides, &file, &resolver, redactor)?,
            state: StateSettings::resolve(&overrides, &file, &resolver, redactor),
            eval_limits: overrides.eval_limits.or(file.eval_limits).unwrap_or_default(),
            eval_rules: EvalRules {
                imports: overrides.eval_imports.clone().or_else(|| file.eval_imports.clone()).unwrap_or_default(),
                returns: overrides.eval_returns.or(file.eval_returns).unwrap_or_default(),
                threshold: overrides.eval_threshold.or(file.eval_threshold).unwrap_or(DEFAULT_THRESHOLD),
            },
            agreement: Thresholds::from(overrides.agreement.or(file.agreement).unwrap_or_default()),
            store: store_location(overrides.store.as_deref(), file.store.as_deref(), &resolver, redactor)?,
            model: model_options(overrides, file, &resolver),
            variables,
            redactor: redactor.clone(),
        })
    }

    /// Returns a path for display, relative to the current directory if possible.
    pub fn display_path(&self, path: &Path) -> String {
        self.layout.display_path(path)
    }

    /// Returns the location of the store for display, without a password.
    pub fn display_store(&self) -> String {
        match &self.store {
            Location::File(path) => self.display_path(path),
            location @ Location::Postgres(_) => location.to_string(),
        }
    }
}

/// The parts of the process environment that affect workflows.
#[derive(Debug, Clone, Default)]
pub struct ProcessEnv {
    pub current_dir: PathBuf,
    /// The configuration file, from `KARAT_CONFIG`.
    pub config: Option<PathBuf>,
    /// The sandbox guest, from `KARAT_GUEST`.
    pub guest: Option<PathBuf>,
    /// The user's name, from `GIT_AUTHOR_NAME` or the operating system.
    pub user_name: Option<String>,
    /// Whether karat runs in CI.
    pub ci: bool,
}

/// Finds the nearest configuration, upwards from the common ancestor of all paths, else from the current directory.
fn find_config(paths: &[PathBuf], current_dir: &Path) -> Option<PathBuf> {
    let nearest = |folder: &Path| folder.ancestors().map(|folder| folder.join(CONFIG_NAME)).find(|path| path.is_file());
    let mut folders = paths.iter().map(|path| {
        let path = current_dir.join(path);
        // For a file or a glob, start at its parent.
        let skipped = usize::from(!path.is_dir());
        path.ancestors().skip(skipped).find(|folder| folder.is_dir()).unwrap_or(current_dir).to_path_buf()
    });
    let common = folders.next().map(|first| {
        folders.fold(first, |common, folder| {
            common.ancestors().find(|ancestor| folder.starts_with(ancestor)).unwrap_or(current_dir).to_path_buf()
        })
    });
    common.as_deref().and_then(nearest).or_else(|| nearest(current_dir))
}

fn read_variables(root: &Path, redactor: &Redactor, notices: &dyn Notices) -> Result<Variables, Error> {
    let variables = Variables::load(root)?;
    variables.register_secrets(redactor);
    for name in variables.names_with_prefix(VARIABLE_PREFIX) {
        if let Some(suggestion) = suggested_variable(&name) {
            notices.warn(&format!("{name} has no effect: did you mean {suggestion}?"));
        }
    }
    if variables.is_in_file("KARAT_CONFIG") {
        notices.warn("KARAT_CONFIG in .env has no effect: it determines which .env is read");
    }
    if variables.is_in_file("KARAT_LOG") {
        notices.warn("KARAT_LOG in .env has no effect: logging starts before .env is read");
    }
    Ok(variables)
}

fn read_config(path: &Path, current_dir: &Path, redactor: &Redactor) -> Result<Config, Error> {
    let text = read_text(path, "the configuration")?;
    match Config::read(&text) {
        Ok((config, value)) => {
            redactor.add_secrets_in("", &value);
            Ok(config)
        }
        Err(findings) => {
            redactor.add_secrets_in_text(&text);
            let name = path.strip_prefix(current_dir).unwrap_or(path).display().to_string();
            Err(Error::invalid_files(vec![InvalidFile { name, text, findings }]))
        }
    }
}

pub struct Resolver<'r> {
    /// Paths of the configuration are relative to this.
    root: &'r Path,
    /// Paths of flags and variables are relative to this.
    current_dir: &'r Path,
}

impl Resolver<'_> {
    pub fn path(&self, flag: Option<&str>, file: Option<&str>, default: &str) -> PathSetting {
        match (flag, file) {
            (Some(path), _) => PathSetting { path: self.current_dir.join(path), is_explicit: true },
            (None, Some(path)) => PathSetting { path: self.root.join(path), is_explicit: true },
            (None, None) => PathSetting { path: self.root.join(default), is_explicit: false },
        }
    }

    pub fn with_base<T>(&self, flag: Option<T>, file: Option<T>) -> Option<WithBase<T>> {
        match (flag, file) {
            (Some(value), _) => Some(WithBase { value, base: self.current_dir.to_path_buf() }),
            (None, Some(value)) => Some(WithBase { value, base: self.root.to_path_buf() }),
            (None, None) => None,
        }
    }
}

/// Returns the agents: one, or all of a matrix.
fn agent_endpoints(overrides: &Config, file: &Config, resolver: &Resolver<'_>) -> Result<Vec<WithBase<String>>, Error> {
    let configured = |config: &Config| match (&config.matrix, &config.agent_endpoint) {
        (Some(matrix), _) => Some(matrix.clone()),
        (None, Some(endpoint)) => Some(vec![endpoint.clone()]),
        (None, None) => None,
    };
    let from_flags = configured(overrides);
    if from_flags.is_none() && file.matrix.is_some() && file.agent_endpoint.is_some() {
        return Err(Error::invalid("karat.json has both 'matrix' and 'agentEndpoint': keep one"));
    }
    let is_matrix = overrides.matrix.is_some() || from_flags.is_none() && file.matrix.is_some();
    let Some(WithBase { value: endpoints, base }) = resolver.with_base(from_flags, configured(file)) else {
        return Ok(Vec::new());
    };
    for (index, name) in endpoints.iter().enumerate().filter(|_| is_matrix) {
        if name.is_empty() {
            return Err(Error::invalid(format!("agent {} of 'matrix' is empty", index + 1)));
        }
        if endpoints[..index].contains(name) {
            return Err(Error::invalid(format!("duplicate agent '{name}' in 'matrix'")));
        }
    }
    if endpoints.is_empty() {
        return Err(Error::invalid("'matrix' has no agents"));
    }
    Ok(endpoints.into_iter().map(|value| WithBase { value, base: base.clone() }).collect())
}

fn snapshot_source(
    overrides: &Config,
    file: &Config,
    resolver: &Resolver<'_>,
) -> Result<Option<WithBase<SnapshotSource>>, Error> {
    // A source on the command line enables the snapshot; one in the file needs 'snapshotEnabled'.
    let by_default = overrides.snapshot.is_some() || file.snapshot_enabled.unwrap_or(false);
    let is_enabled = overrides.snapshot_enabled.unwrap_or(by_default);
    match resolver.with_base(overrides.snapshot.clone(), file.snapshot.clone()) {
        Some(source) if is_enabled => Ok(Some(source)),
        None if is_enabled => Err(Error::invalid("'snapshotEnabled' is true, but 'snapshot' is missing").hint(
            "set 'snapshot' in karat.json to {\"command\": […]}, {\"url\": …} or {\"file\": …}, or pass --snapshot-file",
        )),
        _ => Ok(None),
    }
}

/// Returns the program that lists the tools, unless a path takes precedence: flags override the file.
fn registry_command(
    overrides: &Config,
    file: &Config,
    resolver: &Resolver<'_>,
    redactor: &Redactor,
) -> Result<Option<WithBase<RegistryCommand>>, Error> {
    if overrides.tool_registry.is_none() {
        if overrides.tool_registry_path.is_some() {
            return Ok(None);
        }
        if file.tool_registry.is_some() && file.tool_registry_path.is_some() {
            return Err(Error::invalid("karat.json has both 'toolRegistry' and 'toolRegistryPath': keep one"));
        }
    }
    let command = resolver.with_base(overrides.tool_registry.clone(), file.tool_registry.clone());
    if let Some(command) = &command {
        redact_arguments(&command.value.command, redactor);
    }
    Ok(command)
}

fn model_options(overrides: Config, file: Config, resolver: &Resolver<'_>) -> ModelOptions {
    let prompt = resolver.path(overrides.system_prompt_path.as_deref(), file.system_prompt_path.as_deref(), "");
    let overrides_retries = overrides.max_retries.is_some() && overrides.providers.is_none();
    let mut providers = overrides.providers.or(file.providers).unwrap_or_default();
    if overrides_retries {
        // The flag also overrides the retries of providers in the file.
        for provider in providers.values_mut() {
            provider.max_retries = None;
        }
    }
    ModelOptions {
        system_prompt_path: prompt.is_explicit.then_some(prompt.path),
        parameters: Parameters {
            temperature: overrides.temperature.or(file.temperature),
            seed: overrides.seed.or(file.seed),
            max_output_tokens: overrides.max_output_tokens.or(file.max_output_tokens),
        },
        providers,
        prices: overrides.prices.or(file.prices).unwrap_or_default(),
    }
}

/// Registers the keys of all providers with the redactor: programs that karat starts inherit them and may print them.
fn mask_provider_keys(variables: &Variables, redactor: &Redactor) {
    let keys = KnownProvider::ALL.iter().filter_map(|known| variables.get(known.key_variable));
    keys.filter(|key| key.len() >= MIN_KEY_LENGTH).for_each(|key| redactor.add(&key));
}

fn baseline_setting(overrides: &Config, file: &Config, resolver: &Resolver<'_>) -> Result<Option<Baseline>, Error> {
    let named = |name: &String, base: &Path| Some(Baseline::Named { name: name.clone(), path: base.join(name) });
    if let Some(name) = &overrides.baseline {
        return Ok(named(name, resolver.current_dir));
    }
    if let Some(id) = &overrides.baseline_run_id {
        return Ok(Some(Baseline::Run(id.clone())));
    }
    match (&file.baseline, &file.baseline_run_id) {
        (Some(_), Some(_)) => Err(Error::invalid("karat.json has both 'baseline' and 'baselineRunId': keep one")),
        (Some(name), None) => Ok(named(name, resolver.root)),
        (None, Some(id)) => Ok(Some(Baseline::Run(id.clone()))),
        (None, None) => Ok(None),
    }
}

fn to_usize(name: &str, value: u64) -> Result<usize, Error> {
    usize::try_from(value).map_err(|_| Error::invalid(format!("'{name}' is too large")))
}

fn trials(value: u64) -> Result<usize, Error> {
    let trials = to_usize("trials", value)?;
    if trials > MAX_TRIALS {
        return Err(Error::invalid(format!("--trials must be at most {MAX_TRIALS}")));
    }
    Ok(trials)
}
