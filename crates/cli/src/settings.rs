//! Arguments, variables, `karat.json` and defaults, resolved: what the rest works with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use karat_agents::{HttpConfig, KnownProvider, Parameters, Price, ProviderConfig};
use karat_core::agreement::{self, Thresholds};
use karat_core::gate::Gates;
use karat_core::judgement::LowerLimits;
use karat_core::redact::Redactor;
use karat_core::tokenizer::Tokenizer;
use karat_json::{Problems, nearest, parse};
use karat_registry::RegistryCommand;
use karat_store::Location;
use karat_tools::contract::Silence;
use serde_json::Value;

use crate::agent::learn_arguments;
use crate::args::{ConfigArgs, ModelArgs};
use crate::chat_model::ChatModelConfig;
use crate::config::{ConfigFile, SnapshotSource};
use crate::diagnostic::print_findings;
use crate::environment::{Environment, Variables};
use crate::failure::Failure;
use crate::live::LiveTools;
use crate::load::read_text;
use crate::printer::Printer;
use crate::recordings::RecordingSetting;
use crate::store::store_location;

/// No provider gives out shorter keys.
pub(crate) const SHORTEST_KEY: usize = 8;

const CONFIG_NAME: &str = "karat.json";

/// How often a case may be tried; more would not make anybody surer.
const MOST_TRIALS: usize = 10_000;

/// How this command is to work.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The project's folder: where `karat.json` is, or the current one.
    pub(crate) root: PathBuf,
    /// Where the person is, whom paths are shown to.
    pub(crate) here: PathBuf,
    /// The agents, in the order in which they were named; none where nothing names one.
    pub(crate) agent_endpoints: Vec<Anchored<String>>,
    pub(crate) agent: HttpConfig,
    pub(crate) seed_manifest: PathSetting,
    pub(crate) tool_registry: PathSetting,
    /// The program that lists the tools, where one does instead of the path.
    pub(crate) registry_command: Option<Anchored<RegistryCommand>>,
    pub(crate) overlap_map: PathSetting,
    /// The folder of Python eval functions.
    pub(crate) eval_functions: PathSetting,
    pub(crate) silence: SilenceSetting,
    /// Where to take a snapshot from, if one is wanted.
    pub(crate) snapshot: Option<Anchored<SnapshotSource>>,
    pub(crate) output_dir: PathBuf,
    pub(crate) baseline: Option<BaselineSetting>,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Duration,
    /// The model that scores rubric cases.
    pub(crate) judge: Option<Anchored<ChatModelConfig>>,
    /// The model that drafts cases.
    pub(crate) forge: Option<Anchored<ChatModelConfig>>,
    /// The model that rewrites evals.
    pub(crate) refine: Option<Anchored<ChatModelConfig>>,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) strict: bool,
    pub(crate) all_failures: bool,
    pub(crate) fail_fast: bool,
    pub(crate) trials: usize,
    pub(crate) gates: Option<Gates>,
    pub(crate) recording: RecordingSetting,
    /// How often a call is tried again, where somebody said.
    pub(crate) max_retries: Option<u32>,
    pub(crate) max_cost_usd: Option<f64>,
    pub(crate) model: ModelOptions,
    pub(crate) live: LiveTools,
    /// What eval functions may use, where that is less than the largest.
    pub(crate) eval_limits: LowerLimits,
    /// When verdicts agree too little with people.
    pub(crate) agreement: Thresholds,
    /// Where things are kept between commands.
    pub(crate) store: Location,
    /// What headers and keys name.
    pub(crate) variables: Variables,
    /// What must not be written anywhere; grows when header variables are filled in.
    pub(crate) redactor: Redactor,
}

/// A value whose paths are relative to a folder.
#[derive(Debug, Clone)]
pub(crate) struct Anchored<T> {
    pub(crate) value: T,
    pub(crate) base: PathBuf,
}

/// A path, and whether somebody asked for it: one that was asked for must exist.
#[derive(Debug, Clone)]
pub(crate) struct PathSetting {
    pub(crate) path: PathBuf,
    pub(crate) given: bool,
}

/// What is silenced, and the file that says so, if it was a file.
#[derive(Debug, Default)]
pub(crate) struct SilenceSetting {
    pub(crate) silence: Silence,
    pub(crate) file: Option<PathBuf>,
}

/// How models are driven.
#[derive(Debug, Default)]
pub(crate) struct ModelOptions {
    pub(crate) system_prompt_path: Option<PathBuf>,
    pub(crate) parameters: Parameters,
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    pub(crate) prices: BTreeMap<String, Price>,
}

#[derive(Debug, Clone)]
pub(crate) enum BaselineSetting {
    RunId(String),
    File(PathBuf),
}

impl Settings {
    /// Finds the project and resolves every key.
    pub(crate) fn resolve(
        args: &ConfigArgs,
        paths: &[PathBuf],
        environment: &Environment,
        printer: &Printer,
    ) -> Result<Self, Failure> {
        let here = &environment.current_dir;
        let named = args.config.clone().or_else(|| environment.config.clone());
        let config_path = match named {
            Some(path) => Some(here.join(path)),
            None => find_config(paths, here),
        };
        let root = config_path.as_deref().and_then(Path::parent).unwrap_or(here).to_path_buf();
        let mut redactor = Redactor::default();
        let variables = read_variables(&root, &mut redactor, printer)?;
        let args = &args.over_variables(&|name| variables.get(name))?;
        let file = match &config_path {
            Some(path) => read_config(path, &mut redactor, printer)?,
            None => ConfigFile::default(),
        };
        let resolver = Resolver { root: &root, here };
        let agent = agent_config(args, &file, &mut redactor)?;
        let agent_endpoints = agent_endpoints(args, &file, &resolver)?;
        for endpoint in &agent_endpoints {
            redactor.learn("agentEndpoint", &Value::from(endpoint.value.as_str()));
        }
        let gates = gates(args, &file, &mut redactor)?;
        let agreement = thresholds(args, &file, &mut redactor)?;
        let eval_limits = eval_limits(args, &file, &mut redactor)?;
        let store = store_location(args.store.as_deref(), file.store.as_deref(), &resolver, &mut redactor)?;
        let snapshot = snapshot_source(args, &file, &resolver, &mut redactor)?;
        let registry_command = registry_command(args, &file, &resolver, &mut redactor)?;
        let live = LiveTools::resolve(args, &file, &resolver, &mut redactor)?;
        let mut model = model_options(&args.model, &file, &resolver, &mut redactor)?;
        if args.max_retries.is_some() && args.model.providers.is_none() {
            // A flag ranks above the file, whatever the file says of a provider.
            model.providers.values_mut().for_each(|provider| provider.max_retries = None);
        }
        mask_provider_keys(&variables, &mut redactor);
        let [judge, forge, refine] = chat_models(args, &mut redactor)?;
        printer.keep_secret(redactor.clone());
        Ok(Self {
            silence: silence_setting(args, &file, config_path, &mut redactor)?,
            judge: resolver.anchored(judge, file.judge.clone()),
            forge: resolver.anchored(forge, file.forge.clone()),
            refine: resolver.anchored(refine, file.refine.clone()),
            agent_endpoints,
            agent,
            seed_manifest: resolver.path(
                args.seed_manifest_path.as_deref(),
                file.seed_manifest_path.as_deref(),
                "evals/seed-manifest.json",
            ),
            tool_registry: resolver.path(
                args.tool_registry_path.as_deref(),
                file.tool_registry_path.as_deref(),
                "tools/tools.exports.ts",
            ),
            registry_command,
            overlap_map: resolver.path(
                args.overlap_map_path.as_deref(),
                file.overlap_map_path.as_deref(),
                "evals/overlap-map.json",
            ),
            eval_functions: resolver.path(
                args.eval_functions_path.as_deref(),
                file.eval_functions_path.as_deref(),
                "evals/functions",
            ),
            snapshot,
            output_dir: resolver.path(args.output_dir.as_deref(), file.output_dir.as_deref(), "evals/results").path,
            baseline: baseline_setting(args, &file, &resolver)?,
            concurrency: positive("concurrency", args.concurrency.or(file.concurrency), 1)?,
            timeout: Duration::from_millis(positive("timeout-ms", args.timeout_ms.or(file.timeout_ms), 60_000)? as u64),
            tokenizer: match &args.tokenizer {
                Some(name) => tokenizer(name)?,
                None => file.tokenizer.unwrap_or_default(),
            },
            strict: args.strict.or(file.strict).unwrap_or_default(),
            all_failures: args.all_failures.or(file.all_failures).unwrap_or_default(),
            fail_fast: args.fail_fast.or(file.fail_fast).unwrap_or_default(),
            trials: trials(args.trials.or(file.trials))?,
            gates,
            recording: RecordingSetting::new(
                resolver.path(args.record.as_deref(), file.record.as_deref(), "evals/recordings"),
                args.replay.or(file.replay),
                environment.ci,
            ),
            max_retries: args
                .max_retries
                .or(file.max_retries)
                .map(|retries| u32::try_from(retries).map_err(|_| Failure::invalid("--max-retries is too large")))
                .transpose()?,
            max_cost_usd: above_zero("max-cost-usd", args.max_cost_usd.or(file.max_cost_usd))?,
            model,
            live,
            eval_limits,
            agreement,
            store,
            variables,
            redactor,
            root,
            here: here.clone(),
        })
    }
}

impl Settings {
    /// Returns a path as the person would name it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.here).unwrap_or(path).display().to_string()
    }
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

fn read_variables(root: &Path, redactor: &mut Redactor, printer: &Printer) -> Result<Variables, Failure> {
    let variables = Variables::of_project(root)?;
    variables.learn(redactor);
    printer.keep_secret(redactor.clone());
    if variables.is_in_file("KARAT_CONFIG") {
        printer.warn("KARAT_CONFIG in .env has no effect: where .env is depends on it");
    }
    Ok(variables)
}

fn read_config(path: &Path, redactor: &mut Redactor, printer: &Printer) -> Result<ConfigFile, Failure> {
    let text = read_text(path, "the configuration")?;
    match ConfigFile::read(&text) {
        Ok((config, value)) => {
            redactor.learn("", &value);
            Ok(config)
        }
        Err(findings) => {
            redactor.learn_unparsed(&text);
            printer.keep_secret(redactor.clone());
            print_findings(&path.display().to_string(), &text, &findings, printer);
            Err(Failure::reported(karat_core::exit::ExitStatus::Invalid))
        }
    }
}

pub(crate) struct Resolver<'r> {
    /// What paths of the configuration are relative to.
    root: &'r Path,
    /// What paths of flags and variables are relative to.
    here: &'r Path,
}

impl Resolver<'_> {
    pub(crate) fn path(&self, flag: Option<&Path>, file: Option<&str>, default: &str) -> PathSetting {
        match (flag, file) {
            (Some(path), _) => PathSetting { path: self.here.join(path), given: true },
            (None, Some(path)) => PathSetting { path: self.root.join(path), given: true },
            (None, None) => PathSetting { path: self.root.join(default), given: false },
        }
    }

    pub(crate) fn anchored<T>(&self, flag: Option<T>, file: Option<T>) -> Option<Anchored<T>> {
        match (flag, file) {
            (Some(value), _) => Some(Anchored { value, base: self.here.to_path_buf() }),
            (None, Some(value)) => Some(Anchored { value, base: self.root.to_path_buf() }),
            (None, None) => None,
        }
    }
}

/// Returns one agent, or the several of a matrix.
fn agent_endpoints(
    args: &ConfigArgs,
    file: &ConfigFile,
    resolver: &Resolver<'_>,
) -> Result<Vec<Anchored<String>>, Failure> {
    let split = |text: &String| text.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
    let flag = match (&args.matrix, &args.agent_endpoint) {
        (Some(matrix), _) => Some(split(matrix)),
        (None, Some(endpoint)) => Some(vec![endpoint.clone()]),
        (None, None) => None,
    };
    if flag.is_none() && file.matrix.is_some() && file.agent_endpoint.is_some() {
        return Err(Failure::invalid("karat.json has both 'matrix' and 'agentEndpoint': keep one"));
    }
    let is_matrix = args.matrix.is_some() || flag.is_none() && file.matrix.is_some();
    let file = file.matrix.clone().or_else(|| file.agent_endpoint.clone().map(|endpoint| vec![endpoint]));
    let Some(Anchored { value: names, base }) = resolver.anchored(flag, file) else {
        return Ok(Vec::new());
    };
    for (place, name) in names.iter().enumerate().filter(|_| is_matrix) {
        if name.is_empty() {
            return Err(Failure::invalid(format!("agent {} of 'matrix' is empty", place + 1)));
        }
        if names[..place].contains(name) {
            return Err(Failure::invalid(format!("'matrix' names '{name}' twice")));
        }
    }
    if names.is_empty() {
        return Err(Failure::invalid("'matrix' names no agent"));
    }
    Ok(names.into_iter().map(|value| Anchored { value, base: base.clone() }).collect())
}

fn gates(args: &ConfigArgs, file: &ConfigFile, redactor: &mut Redactor) -> Result<Option<Gates>, Failure> {
    match &args.gates {
        Some(text) => read_flag("gates", text, Gates::read, redactor).map(Some),
        None => Ok(file.gates.clone()),
    }
}

fn thresholds(args: &ConfigArgs, file: &ConfigFile, redactor: &mut Redactor) -> Result<Thresholds, Failure> {
    let limits = match &args.agreement {
        Some(text) => read_flag("agreement", text, agreement::Limits::read, redactor)?,
        None => file.agreement.unwrap_or_default(),
    };
    Ok(limits.into())
}

/// Reads the models that flags name: that judges, that drafts, and that rewrites.
fn chat_models(args: &ConfigArgs, redactor: &mut Redactor) -> Result<[Option<ChatModelConfig>; 3], Failure> {
    Ok([
        ChatModelConfig::flag("judge", args.judge.as_deref(), redactor)?,
        ChatModelConfig::flag("forge", args.forge.as_deref(), redactor)?,
        ChatModelConfig::flag("refine", args.refine.as_deref(), redactor)?,
    ])
}

fn agent_config(args: &ConfigArgs, file: &ConfigFile, redactor: &mut Redactor) -> Result<HttpConfig, Failure> {
    match &args.agent {
        Some(text) => read_flag("agent", text, HttpConfig::read, redactor),
        None => Ok(file.agent.clone().unwrap_or_default()),
    }
}

fn eval_limits(args: &ConfigArgs, file: &ConfigFile, redactor: &mut Redactor) -> Result<LowerLimits, Failure> {
    match &args.eval_limits {
        Some(text) => read_flag("eval-limits", text, LowerLimits::read, redactor),
        None => Ok(file.eval_limits.unwrap_or_default()),
    }
}

fn silence_setting(
    args: &ConfigArgs,
    file: &ConfigFile,
    config_path: Option<PathBuf>,
    redactor: &mut Redactor,
) -> Result<SilenceSetting, Failure> {
    match &args.silence {
        Some(text) => Ok(SilenceSetting { silence: read_flag("silence", text, Silence::read, redactor)?, file: None }),
        None => Ok(SilenceSetting { silence: file.silence.clone().unwrap_or_default(), file: config_path }),
    }
}

fn snapshot_source(
    args: &ConfigArgs,
    file: &ConfigFile,
    resolver: &Resolver<'_>,
    redactor: &mut Redactor,
) -> Result<Option<Anchored<SnapshotSource>>, Failure> {
    let flag = match (&args.snapshot_file, &args.snapshot) {
        (Some(path), _) => Some(SnapshotSource::File { file: path.to_string_lossy().into_owned() }),
        (None, Some(text)) => Some(read_flag("snapshot", text, SnapshotSource::read, redactor)?),
        (None, None) => None,
    };
    // A source on the command line is wanted; one in the file waits for 'snapshotEnabled'.
    let wanted = args.snapshot_enabled.unwrap_or(flag.is_some() || file.snapshot_enabled.unwrap_or(false));
    let source = resolver.anchored(flag, file.snapshot.clone());
    match source {
        Some(source) if wanted => Ok(Some(source)),
        None if wanted => Err(Failure::invalid("'snapshotEnabled' is true, but nothing says where the snapshot comes from")
            .hint("set 'snapshot' in karat.json to {\"command\": […]}, {\"url\": …} or {\"file\": …}, or give --snapshot-file")),
        _ => Ok(None),
    }
}

/// Returns the program that lists the tools, unless a path is nearer: a flag beats the file, whichever it is.
fn registry_command(
    args: &ConfigArgs,
    file: &ConfigFile,
    resolver: &Resolver<'_>,
    redactor: &mut Redactor,
) -> Result<Option<Anchored<RegistryCommand>>, Failure> {
    let flag = match (&args.tool_registry, &args.tool_registry_path) {
        (Some(_), Some(_)) => {
            return Err(Failure::invalid("KARAT_TOOL_REGISTRY and KARAT_TOOL_REGISTRY_PATH are both set: keep one"));
        }
        (Some(text), None) => Some(read_flag("tool-registry", text, RegistryCommand::read, redactor)?),
        (None, Some(_)) => return Ok(None),
        (None, None) => None,
    };
    if flag.is_none() && file.tool_registry.is_some() && file.tool_registry_path.is_some() {
        return Err(Failure::invalid("karat.json has both 'toolRegistry' and 'toolRegistryPath': keep one"));
    }
    let command = resolver.anchored(flag, file.tool_registry.clone());
    if let Some(command) = &command {
        learn_arguments(&command.value.command, redactor);
    }
    Ok(command)
}

fn model_options(
    args: &ModelArgs,
    file: &ConfigFile,
    resolver: &Resolver<'_>,
    redactor: &mut Redactor,
) -> Result<ModelOptions, Failure> {
    let prompt = resolver.path(args.system_prompt_path.as_deref(), file.system_prompt_path.as_deref(), "");
    let temperature = args.temperature.or(file.temperature);
    if temperature.is_some_and(|temperature| !(temperature >= 0.0 && temperature.is_finite())) {
        return Err(Failure::invalid("--temperature must be a number from 0"));
    }
    if args.max_output_tokens == Some(0) {
        return Err(Failure::invalid("--max-output-tokens must be more than 0"));
    }
    Ok(ModelOptions {
        system_prompt_path: prompt.given.then_some(prompt.path),
        parameters: Parameters {
            temperature,
            seed: args.seed.or(file.seed),
            max_output_tokens: args.max_output_tokens.or(file.max_output_tokens),
        },
        providers: match &args.providers {
            Some(text) => read_flag("providers", text, ProviderConfig::read_all, redactor)?,
            None => file.providers.clone().unwrap_or_default(),
        },
        prices: match &args.prices {
            Some(text) => read_flag("prices", text, Price::read_all, redactor)?,
            None => file.prices.clone().unwrap_or_default(),
        },
    })
}

/// Takes note of every key that is at hand: programs that karat starts see them too, and may print them.
fn mask_provider_keys(variables: &Variables, redactor: &mut Redactor) {
    let keys = KnownProvider::ALL.iter().filter_map(|known| variables.get(known.key_variable));
    keys.filter(|key| key.len() >= SHORTEST_KEY).for_each(|key| redactor.add(&key));
}

fn above_zero(name: &str, value: Option<f64>) -> Result<Option<f64>, Failure> {
    match value {
        Some(value) if !(value > 0.0 && value.is_finite()) => {
            Err(Failure::invalid(format!("--{name} must be more than 0")))
        }
        value => Ok(value),
    }
}

fn baseline_setting(
    args: &ConfigArgs,
    file: &ConfigFile,
    resolver: &Resolver<'_>,
) -> Result<Option<BaselineSetting>, Failure> {
    if let Some(path) = &args.baseline {
        return Ok(Some(BaselineSetting::File(resolver.here.join(path))));
    }
    if let Some(id) = &args.baseline_run_id {
        return Ok(Some(BaselineSetting::RunId(id.clone())));
    }
    match (&file.baseline, &file.baseline_run_id) {
        (Some(_), Some(_)) => Err(Failure::invalid("karat.json has both 'baseline' and 'baselineRunId': keep one")),
        (Some(path), None) => Ok(Some(BaselineSetting::File(resolver.root.join(path)))),
        (None, Some(id)) => Ok(Some(BaselineSetting::RunId(id.clone()))),
        (None, None) => Ok(None),
    }
}

fn positive(name: &str, value: Option<u64>, default: u64) -> Result<usize, Failure> {
    let value = value.unwrap_or(default);
    usize::try_from(value)
        .ok()
        .filter(|value| *value > 0)
        .ok_or_else(|| Failure::invalid(format!("--{name} must be more than 0")))
}

fn trials(value: Option<u64>) -> Result<usize, Failure> {
    let trials = positive("trials", value, 1)?;
    if trials > MOST_TRIALS {
        return Err(Failure::invalid(format!("--trials must be at most {MOST_TRIALS}")));
    }
    Ok(trials)
}

fn tokenizer(name: &str) -> Result<Tokenizer, Failure> {
    Tokenizer::from_name(name).ok_or_else(|| {
        let names = Tokenizer::ALL.map(Tokenizer::name);
        let failure = Failure::invalid(format!("there is no tokenizer '{name}'"));
        match nearest(name, &names) {
            Some(near) => failure.hint(format!("did you mean '{near}'?")),
            None => failure.hint(format!("one of: {}", names.join(", "))),
        }
    })
}

/// Reads a key that is given as JSON on the command line.
pub(crate) fn read_flag<T>(
    name: &str,
    text: &str,
    read: impl FnOnce(&Value, &karat_json::Path<'_>, &mut Problems) -> Option<T>,
    redactor: &mut Redactor,
) -> Result<T, Failure> {
    let value = parse(text).map_err(|error| Failure::invalid(format!("--{name} is not JSON: {}", error.message)))?;
    redactor.learn(name, &value);
    let mut problems = Problems::default();
    let read = read(&value, &karat_json::Path::Root, &mut problems);
    if let Some(problem) = problems.into_list().into_iter().next() {
        let failure = Failure::invalid(format!("--{name}{}: {}", problem.pointer, problem.message));
        return Err(match problem.help {
            Some(help) => failure.hint(help),
            None => failure,
        });
    }
    read.ok_or_else(|| Failure::invalid(format!("--{name} cannot be read")))
}
