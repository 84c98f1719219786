//! Flags, variables, `karat.json` and defaults, resolved once: what the rest works with.

mod chat_model;
mod config;
mod live_tools;
mod overrides;
mod recording;
mod secrets;
mod store_location;
mod variables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use karat_agents::{HttpConfig, KnownProvider, Parameters, Price, ProviderConfig};
use karat_core::gate::Gates;
use karat_core::judgement::LowerLimits;
use karat_core::redact::Redactor;
use karat_core::tokenizer::Tokenizer;
use karat_evals::agreement::Thresholds;
use karat_json::InvalidFile;
use karat_project::{Baseline, Layout, PathSetting, read_text};
use karat_registry::RegistryCommand;
use karat_store::Location;
use karat_tools::contract::Silence;
use serde_json::Value;

pub use self::chat_model::ChatModelConfig;
pub use self::config::{AllowTools, Config, SnapshotSource, ToolExecutor};
pub use self::live_tools::LiveTools;
pub(crate) use self::live_tools::UnusableServer;
pub use self::overrides::Flags;
pub use self::recording::{RecordingSetting, Replay};
pub(crate) use self::secrets::{fill_headers, learn_arguments};
use self::store_location::store_location;
pub use self::variables::Variables;
pub(crate) use self::variables::is_on_search_path;
use crate::error::Error;
use crate::notice::Notices;

/// No provider gives out shorter keys.
pub(crate) const MIN_KEY_LENGTH: usize = 8;

const CONFIG_NAME: &str = "karat.json";

/// How often a case may be tried; more would not make anybody surer.
const MAX_TRIALS: usize = 10_000;

/// How this command is to work.
#[derive(Debug)]
pub struct Settings {
    /// Where the project's files are.
    pub layout: Layout,
    /// The agents, in the order in which they were named; none where nothing names one.
    pub agent_endpoints: Vec<Anchored<String>>,
    pub agent: HttpConfig,
    pub seed_manifest: PathSetting,
    pub tool_registry: PathSetting,
    /// The program that lists the tools, where one does instead of the path.
    pub registry_command: Option<Anchored<RegistryCommand>>,
    pub overlap_map: PathSetting,
    /// The folder of Python eval functions.
    pub eval_functions: PathSetting,
    pub silence: SilenceSetting,
    /// Where to take a snapshot from, if one is wanted.
    pub snapshot: Option<Anchored<SnapshotSource>>,
    pub baseline: Option<Baseline>,
    pub concurrency: usize,
    pub timeout: Duration,
    /// The model that scores rubric cases.
    pub judge: Option<Anchored<ChatModelConfig>>,
    /// The model that drafts cases.
    pub forge: Option<Anchored<ChatModelConfig>>,
    /// The model that rewrites evals.
    pub refine: Option<Anchored<ChatModelConfig>>,
    pub tokenizer: Tokenizer,
    pub strict: bool,
    pub all_failures: bool,
    pub fail_fast: bool,
    pub trials: usize,
    pub gates: Option<Gates>,
    pub recording: RecordingSetting,
    /// How often a call is tried again, where somebody said.
    pub max_retries: Option<u32>,
    pub max_cost_usd: Option<f64>,
    pub model: ModelOptions,
    pub live: LiveTools,
    /// What eval functions may use, where that is less than the largest.
    pub eval_limits: LowerLimits,
    /// When verdicts agree too little with people.
    pub agreement: Thresholds,
    /// Where things are kept between commands.
    pub store: Location,
    /// What headers and keys name.
    pub variables: Variables,
    /// What must not be written anywhere; grows when header variables are filled in.
    pub redactor: Redactor,
}

/// A value whose paths are relative to a folder.
#[derive(Debug, Clone)]
pub struct Anchored<T> {
    pub value: T,
    pub base: PathBuf,
}

/// What is silenced, and the file that says so, if it was a file.
#[derive(Debug, Default)]
pub struct SilenceSetting {
    pub silence: Silence,
    pub file: Option<PathBuf>,
}

/// How models are driven.
#[derive(Debug, Default)]
pub struct ModelOptions {
    pub system_prompt_path: Option<PathBuf>,
    pub parameters: Parameters,
    pub providers: BTreeMap<String, ProviderConfig>,
    pub prices: BTreeMap<String, Price>,
}

impl Settings {
    /// Finds the project and resolves every key. Secrets are registered with the redactor.
    pub fn resolve(
        flags: &Flags,
        paths: &[PathBuf],
        surroundings: &Surroundings,
        redactor: &Redactor,
        notices: &dyn Notices,
    ) -> Result<Self, Error> {
        let here = &surroundings.current_dir;
        let named = flags.config.clone().or_else(|| surroundings.config.clone());
        let config_path = match named {
            Some(path) => Some(here.join(path)),
            None => find_config(paths, here),
        };
        let root = config_path.as_deref().and_then(Path::parent).unwrap_or(here).to_path_buf();
        let variables = read_variables(&root, redactor, notices)?;
        let given = flags.over_variables(&|name| variables.get(name), redactor)?;
        let file = match &config_path {
            Some(path) => read_config(path, redactor)?,
            None => Config::default(),
        };
        let resolver = Resolver { root: &root, here };
        let agent_endpoints = agent_endpoints(&given, &file, &resolver)?;
        for endpoint in &agent_endpoints {
            redactor.learn("agentEndpoint", &Value::from(endpoint.value.as_str()));
        }
        mask_provider_keys(&variables, redactor);
        let path = |given: &Option<String>, file: &Option<String>, default: &str| {
            resolver.path(given.as_deref(), file.as_deref(), default)
        };
        let recording = RecordingSetting::new(
            path(&given.record, &file.record, "evals/recordings"),
            given.replay.or(file.replay),
            surroundings.ci,
        );
        let overlap_map = path(&given.overlap_map_path, &file.overlap_map_path, "evals/overlap-map.json");
        let timeout_ms = given.timeout_ms.or(file.timeout_ms).unwrap_or(60_000);
        Ok(Self {
            layout: Layout {
                output_dir: path(&given.output_dir, &file.output_dir, "evals/results").path,
                recordings: recording.folder.clone(),
                overlap_map: overlap_map.path.clone(),
                here: here.clone(),
                root: root.clone(),
            },
            silence: match given.silence.clone() {
                Some(silence) => SilenceSetting { silence, file: None },
                None => SilenceSetting { silence: file.silence.clone().unwrap_or_default(), file: config_path },
            },
            judge: resolver.anchored(given.judge.clone(), file.judge.clone()),
            forge: resolver.anchored(given.forge.clone(), file.forge.clone()),
            refine: resolver.anchored(given.refine.clone(), file.refine.clone()),
            agent_endpoints,
            agent: given.agent.clone().or_else(|| file.agent.clone()).unwrap_or_default(),
            seed_manifest: path(&given.seed_manifest_path, &file.seed_manifest_path, "evals/seed-manifest.json"),
            tool_registry: path(&given.tool_registry_path, &file.tool_registry_path, "tools/tools.exports.ts"),
            registry_command: registry_command(&given, &file, &resolver, redactor)?,
            overlap_map,
            eval_functions: path(&given.eval_functions_path, &file.eval_functions_path, "evals/functions"),
            snapshot: snapshot_source(&given, &file, &resolver)?,
            baseline: baseline_setting(&given, &file, &resolver)?,
            concurrency: size("concurrency", given.concurrency.or(file.concurrency).unwrap_or(1))?,
            timeout: Duration::from_millis(timeout_ms),
            tokenizer: given.tokenizer.or(file.tokenizer).unwrap_or_default(),
            strict: given.strict.or(file.strict).unwrap_or_default(),
            all_failures: given.all_failures.or(file.all_failures).unwrap_or_default(),
            fail_fast: given.fail_fast.or(file.fail_fast).unwrap_or_default(),
            trials: trials(given.trials.or(file.trials).unwrap_or(1))?,
            gates: given.gates.clone().or_else(|| file.gates.clone()),
            recording,
            max_retries: given
                .max_retries
                .or(file.max_retries)
                .map(|retries| u32::try_from(retries).map_err(|_| Error::invalid("--max-retries is too large")))
                .transpose()?,
            max_cost_usd: given.max_cost_usd.or(file.max_cost_usd),
            live: LiveTools::resolve(&given, &file, &resolver, redactor)?,
            eval_limits: given.eval_limits.or(file.eval_limits).unwrap_or_default(),
            agreement: Thresholds::from(given.agreement.or(file.agreement).unwrap_or_default()),
            store: store_location(given.store.as_deref(), file.store.as_deref(), &resolver, redactor)?,
            model: model_options(given, file, &resolver),
            variables,
            redactor: redactor.clone(),
        })
    }

    /// Returns a path as the user would type it.
    pub fn shown(&self, path: &Path) -> String {
        self.layout.shown(path)
    }

    /// Returns the store as the user would name it, without a password.
    pub fn shown_store(&self) -> String {
        match &self.store {
            Location::File(path) => self.shown(path),
            location @ Location::Postgres(_) => location.to_string(),
        }
    }
}

/// What the process was started in, as far as it changes what a workflow does.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub current_dir: PathBuf,
    /// The configuration that `KARAT_CONFIG` names.
    pub config: Option<PathBuf>,
    /// The Python for eval functions that `KARAT_GUEST` names.
    pub guest: Option<PathBuf>,
    /// The user's name, as `GIT_AUTHOR_NAME` and the system say.
    pub user_name: Option<String>,
    /// Runs unattended, on a build server.
    pub ci: bool,
}

/// Finds the nearest configuration upwards from what all paths have in common, else from here.
fn find_config(paths: &[PathBuf], here: &Path) -> Option<PathBuf> {
    let nearest = |folder: &Path| folder.ancestors().map(|folder| folder.join(CONFIG_NAME)).find(|path| path.is_file());
    let mut folders = paths.iter().map(|path| {
        let path = here.join(path);
        // Of a file or a glob, what is above it.
        let is_folder = path.is_dir();
        path.ancestors().skip(usize::from(!is_folder)).find(|folder| folder.is_dir()).unwrap_or(here).to_path_buf()
    });
    let common = folders.next().map(|first| {
        folders.fold(first, |common, folder| {
            common.ancestors().find(|above| folder.starts_with(above)).unwrap_or(here).to_path_buf()
        })
    });
    common.as_deref().and_then(nearest).or_else(|| nearest(here))
}

fn read_variables(root: &Path, redactor: &Redactor, notices: &dyn Notices) -> Result<Variables, Error> {
    let variables = Variables::of_project(root)?;
    variables.learn(redactor);
    if variables.is_in_file("KARAT_CONFIG") {
        notices.warn("KARAT_CONFIG in .env has no effect: where .env is depends on it");
    }
    if variables.is_in_file("KARAT_LOG") {
        notices.warn("KARAT_LOG in .env has no effect: logging starts before .env is read");
    }
    Ok(variables)
}

fn read_config(path: &Path, redactor: &Redactor) -> Result<Config, Error> {
    let text = read_text(path, "the configuration")?;
    match Config::read(&text) {
        Ok((config, value)) => {
            redactor.learn("", &value);
            Ok(config)
        }
        Err(findings) => {
            redactor.learn_unparsed(&text);
            let name = path.display().to_string();
            Err(Error::invalid_files(vec![InvalidFile { name, text, findings }]))
        }
    }
}

pub struct Resolver<'r> {
    /// What paths of the configuration are relative to.
    root: &'r Path,
    /// What paths of flags and variables are relative to.
    here: &'r Path,
}

impl Resolver<'_> {
    pub fn path(&self, given: Option<&str>, file: Option<&str>, default: &str) -> PathSetting {
        match (given, file) {
            (Some(path), _) => PathSetting { path: self.here.join(path), given: true },
            (None, Some(path)) => PathSetting { path: self.root.join(path), given: true },
            (None, None) => PathSetting { path: self.root.join(default), given: false },
        }
    }

    pub fn anchored<T>(&self, flag: Option<T>, file: Option<T>) -> Option<Anchored<T>> {
        match (flag, file) {
            (Some(value), _) => Some(Anchored { value, base: self.here.to_path_buf() }),
            (None, Some(value)) => Some(Anchored { value, base: self.root.to_path_buf() }),
            (None, None) => None,
        }
    }
}

/// Returns one agent, or the several of a matrix.
fn agent_endpoints(given: &Config, file: &Config, resolver: &Resolver<'_>) -> Result<Vec<Anchored<String>>, Error> {
    let named = |config: &Config| match (&config.matrix, &config.agent_endpoint) {
        (Some(matrix), _) => Some(matrix.clone()),
        (None, Some(endpoint)) => Some(vec![endpoint.clone()]),
        (None, None) => None,
    };
    let of_flags = named(given);
    if of_flags.is_none() && file.matrix.is_some() && file.agent_endpoint.is_some() {
        return Err(Error::invalid("karat.json has both 'matrix' and 'agentEndpoint': keep one"));
    }
    let is_matrix = given.matrix.is_some() || of_flags.is_none() && file.matrix.is_some();
    let Some(Anchored { value: endpoints, base }) = resolver.anchored(of_flags, named(file)) else {
        return Ok(Vec::new());
    };
    for (place, name) in endpoints.iter().enumerate().filter(|_| is_matrix) {
        if name.is_empty() {
            return Err(Error::invalid(format!("agent {} of 'matrix' is empty", place + 1)));
        }
        if endpoints[..place].contains(name) {
            return Err(Error::invalid(format!("'matrix' names '{name}' twice")));
        }
    }
    if endpoints.is_empty() {
        return Err(Error::invalid("'matrix' names no agent"));
    }
    Ok(endpoints.into_iter().map(|value| Anchored { value, base: base.clone() }).collect())
}

fn snapshot_source(
    given: &Config,
    file: &Config,
    resolver: &Resolver<'_>,
) -> Result<Option<Anchored<SnapshotSource>>, Error> {
    // A source on the command line is wanted; one in the file waits for 'snapshotEnabled'.
    let by_default = given.snapshot.is_some() || file.snapshot_enabled.unwrap_or(false);
    let wanted = given.snapshot_enabled.unwrap_or(by_default);
    match resolver.anchored(given.snapshot.clone(), file.snapshot.clone()) {
        Some(source) if wanted => Ok(Some(source)),
        None if wanted => Err(Error::invalid("'snapshotEnabled' is true, but nothing says where the snapshot comes from")
            .hint("set 'snapshot' in karat.json to {\"command\": […]}, {\"url\": …} or {\"file\": …}, or give --snapshot-file")),
        _ => Ok(None),
    }
}

/// Returns the program that lists the tools, unless a path is nearer: a flag beats the file, whichever it is.
fn registry_command(
    given: &Config,
    file: &Config,
    resolver: &Resolver<'_>,
    redactor: &Redactor,
) -> Result<Option<Anchored<RegistryCommand>>, Error> {
    if given.tool_registry.is_none() {
        if given.tool_registry_path.is_some() {
            return Ok(None);
        }
        if file.tool_registry.is_some() && file.tool_registry_path.is_some() {
            return Err(Error::invalid("karat.json has both 'toolRegistry' and 'toolRegistryPath': keep one"));
        }
    }
    let command = resolver.anchored(given.tool_registry.clone(), file.tool_registry.clone());
    if let Some(command) = &command {
        learn_arguments(&command.value.command, redactor);
    }
    Ok(command)
}

fn model_options(given: Config, file: Config, resolver: &Resolver<'_>) -> ModelOptions {
    let prompt = resolver.path(given.system_prompt_path.as_deref(), file.system_prompt_path.as_deref(), "");
    let has_own_retries = given.max_retries.is_some() && given.providers.is_none();
    let mut providers = given.providers.or(file.providers).unwrap_or_default();
    if has_own_retries {
        // A flag ranks above the file, whatever the file says of a provider.
        for provider in providers.values_mut() {
            provider.max_retries = None;
        }
    }
    ModelOptions {
        system_prompt_path: prompt.given.then_some(prompt.path),
        parameters: Parameters {
            temperature: given.temperature.or(file.temperature),
            seed: given.seed.or(file.seed),
            max_output_tokens: given.max_output_tokens.or(file.max_output_tokens),
        },
        providers,
        prices: given.prices.or(file.prices).unwrap_or_default(),
    }
}

/// Takes note of every key that is at hand: programs that karat starts see them too, and may print them.
fn mask_provider_keys(variables: &Variables, redactor: &Redactor) {
    let keys = KnownProvider::ALL.iter().filter_map(|known| variables.get(known.key_variable));
    keys.filter(|key| key.len() >= MIN_KEY_LENGTH).for_each(|key| redactor.add(&key));
}

fn baseline_setting(given: &Config, file: &Config, resolver: &Resolver<'_>) -> Result<Option<Baseline>, Error> {
    if let Some(path) = &given.baseline {
        return Ok(Some(Baseline::File(resolver.here.join(path))));
    }
    if let Some(id) = &given.baseline_run_id {
        return Ok(Some(Baseline::RunId(id.clone())));
    }
    match (&file.baseline, &file.baseline_run_id) {
        (Some(_), Some(_)) => Err(Error::invalid("karat.json has both 'baseline' and 'baselineRunId': keep one")),
        (Some(path), None) => Ok(Some(Baseline::File(resolver.root.join(path)))),
        (None, Some(id)) => Ok(Some(Baseline::RunId(id.clone()))),
        (None, None) => Ok(None),
    }
}

fn size(name: &str, value: u64) -> Result<usize, Error> {
    usize::try_from(value).map_err(|_| Error::invalid(format!("'{name}' is too large")))
}

fn trials(value: u64) -> Result<usize, Error> {
    let trials = size("trials", value)?;
    if trials > MAX_TRIALS {
        return Err(Error::invalid(format!("--trials must be at most {MAX_TRIALS}")));
    }
    Ok(trials)
}
