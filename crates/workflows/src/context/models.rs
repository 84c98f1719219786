//! Creates the models of the settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use karat_agents::{
    Budget, ExchangeObserver, KnownProvider, Language, ModelAgent, ModelClient, ModelSettings, Parameters, Preset,
    Price, Provider, ProviderConfig, Throttle, ToolExecution,
};
use karat_cases::registry::Registry;
use karat_json::nearest;

use crate::error::Error;
use crate::notice::Notices;
use crate::settings::{MIN_KEY_LENGTH, Settings, fill_headers};
use karat_project::read_text;

/// Default number of retries: calls of a model API have no side effects.
const DEFAULT_MAX_RETRIES: u32 = 2;

/// Creates models that share rate limits and the budget of a run.
pub struct Models {
    /// By provider: all its models share the limits.
    throttles: BTreeMap<String, Arc<Throttle>>,
    budget: Arc<Budget>,
    /// No calls are made, so no key is needed.
    offline: bool,
    observer: Option<Arc<dyn ExchangeObserver>>,
}

impl Models {
    pub fn new(settings: &Settings, offline: bool) -> Self {
        Self {
            throttles: BTreeMap::new(),
            budget: Arc::new(Budget::new(settings.max_cost_usd)),
            offline,
            observer: None,
        }
    }

    /// Sets the observer of the exchanges with all agents.
    pub fn observe(&mut self, observer: Arc<dyn ExchangeObserver>) {
        self.observer = Some(observer);
    }

    pub fn observer(&self) -> Option<&Arc<dyn ExchangeObserver>> {
        self.observer.as_ref()
    }

    /// Returns the budget of the run.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Returns the throttles of the providers, by name.
    pub fn throttles(&self) -> Vec<(String, Arc<Throttle>)> {
        self.throttles.iter().map(|(name, throttle)| (name.clone(), Arc::clone(throttle))).collect()
    }

    /// Creates a model agent with the tools of the registry.
    pub fn agent(
        &mut self,
        endpoint: &str,
        settings: &Settings,
        registry: Option<&Registry>,
        execution: ToolExecution,
        notices: &dyn Notices,
    ) -> Result<ModelAgent, Error> {
        let parameters = settings.model.parameters;
        let client = self.client(endpoint, parameters, settings, notices)?;
        let prompt = settings.model.system_prompt_path.as_deref();
        let prompt = prompt.map(|path| read_text(path, "the system prompt")).transpose()?;
        let tools = registry.map(Registry::tools).unwrap_or_default();
        if tools.is_empty() {
            let reason =
                if registry.is_some() { "the tool registry is empty" } else { "no tool registry is configured" };
            notices.warn(&format!("{endpoint} has no tools: {reason} ('toolRegistryPath')"));
        }
        ModelAgent::new(client, prompt, tools, execution).map_err(|error| Error::invalid(error.to_string()))
    }

    /// Creates a client for a model.
    pub fn client(
        &mut self,
        endpoint: &str,
        parameters: Parameters,
        settings: &Settings,
        notices: &dyn Notices,
    ) -> Result<ModelClient, Error> {
        let (kind, model) = endpoint.split_once(':').unwrap_or((endpoint, ""));
        if model.is_empty() {
            return Err(Error::invalid(format!("missing model in '{endpoint}': expected {kind}:MODEL")));
        }
        let config = settings.model.providers.get(kind).cloned().unwrap_or_default();
        let provider = self.provider(kind, &config, settings)?;
        let price = settings.model.prices.get(endpoint).cloned().or_else(|| Price::list_price(endpoint));
        if price.is_none() {
            let unknown = format!("unknown price of {endpoint}");
            let hint = "set 'prices' in karat.json: {\"PROVIDER:MODEL\": {\"inputUsdPerMillion\": …, …}}";
            if settings.max_cost_usd.is_some() {
                return Err(Error::invalid(format!("{unknown}: 'maxCostUsd' cannot be enforced")).hint(hint));
            }
            if !provider.is_local() {
                notices.warn(&format!("{unknown}: its cost is not counted (set 'prices')"));
            }
        }
        let throttle = self.throttles.entry(kind.to_owned()).or_insert_with(|| {
            let max_concurrency = config.max_concurrency.and_then(|max| usize::try_from(max).ok());
            Arc::new(Throttle::new(max_concurrency.unwrap_or(settings.concurrency), config.requests_per_minute))
        });
        let retries = config.max_retries.and_then(|retries| u32::try_from(retries).ok());
        let model_settings = ModelSettings {
            parameters,
            max_retries: retries.or(settings.max_retries).unwrap_or(DEFAULT_MAX_RETRIES),
            max_response_bytes: settings.agent.config.max_response_bytes,
            price,
            throttle: Arc::clone(throttle),
            budget: Arc::clone(&self.budget),
        };
        if parameters.seed.is_some() && provider.api == karat_agents::Api::Anthropic {
            notices.warn(&format!("{endpoint} does not support 'seed': it is ignored"));
        }
        let client = ModelClient::new(provider, model.to_owned(), model_settings)
            .map_err(|error| Error::invalid(error.to_string()))?;
        Ok(match &self.observer {
            Some(observer) => client.with_observer(Arc::clone(observer)),
            None => client,
        })
    }

    fn provider(&self, name: &str, config: &ProviderConfig, settings: &Settings) -> Result<Provider, Error> {
        let known = KnownProvider::by_name(name);
        let non_empty = |variable: &str| settings.variables.get(variable).filter(|value| !value.is_empty());
        let other_base = config.base_url.clone().or_else(|| known.and_then(|known| non_empty(known.base_url_variable)));
        let default_base = known.and_then(|known| known.base_url);
        let base_url = other_base.or_else(|| default_base.map(str::to_owned)).ok_or_else(|| {
            let variable = known.map_or("", |known| known.base_url_variable);
            Error::invalid(format!("no base URL for provider '{name}'"))
                .hint(format!("set {variable}, or 'providers' in karat.json: {{\"{name}\": {{\"baseUrl\": …}}}}"))
        })?;
        if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
            let from = config.base_url.as_ref().map_or_else(
                || known.map_or("", |known| known.base_url_variable).to_owned(),
                |_| format!("'baseUrl' of '{name}'"),
            );
            return Err(Error::invalid(format!(
                "{from} is not a valid URL: '{base_url}' does not start with http:// or https://"
            )));
        }
        let key_variable = config.api_key_variable.as_deref().or(known.map(|known| known.key_variable));
        let key = key_variable.and_then(non_empty);
        // An explicitly configured variable must be set.
        let needs_key = config.api_key_variable.is_some() || known.is_some_and(|known| known.needs_key);
        if let (None, Some(variable), true, false) = (&key, key_variable, needs_key, self.offline) {
            return Err(Error::invalid(format!("{variable} is not set, but '{name}' requires a key"))
                .hint("set it in the environment, or in a .env file next to karat.json")
                .hint("openai-compatible:MODEL, ollama:MODEL and vllm:MODEL do not require a key"));
        }
        // A short key is a placeholder for servers without authentication; masking it would garble every text.
        if let Some(key) = key.as_ref().filter(|key| key.len() >= MIN_KEY_LENGTH) {
            settings.redactor.add(key);
        }
        settings.redactor.add_secrets_in("baseUrl", &base_url.as_str().into());
        let headers = match fill_headers(&config.headers, &settings.variables, &settings.redactor) {
            Err(_) if self.offline => Vec::new(),
            filled => filled?,
        };
        let api = config.api.or(known.map(|known| known.api)).unwrap_or(karat_agents::Api::Openai);
        let is_base_url_configured = config.base_url.is_some();
        Ok(Provider { name: name.to_owned(), api, base_url, is_base_url_configured, key, headers })
    }
}

/// The configured providers by name.
type Providers = BTreeMap<String, ProviderConfig>;

/// Whether the endpoint is a model.
pub fn is_model(endpoint: &str, settings: &Settings) -> bool {
    is_model_of(endpoint, &settings.model.providers)
}

fn is_model_of(endpoint: &str, providers: &Providers) -> bool {
    endpoint.split_once(':').is_some_and(|(kind, _)| provider_names(providers).any(|name| name == kind))
}

fn provider_names(providers: &Providers) -> impl Iterator<Item = &str> {
    KnownProvider::ALL.iter().map(|known| known.name).chain(providers.keys().map(String::as_str))
}

/// Checks that the endpoint has one of the forms of an agent. Does not look for the agent.
pub fn check_agent_form(endpoint: &str, providers: &Providers) -> Result<(), Error> {
    let has_form = match endpoint.split_once(':') {
        Some(("http" | "https", rest)) => rest.starts_with("//"),
        Some(("scripted", file)) => !file.is_empty(),
        Some(("command", _)) => true,
        Some((kind, _)) if Language::from_kind(kind).is_some() => true,
        _ => Preset::split(endpoint).is_some() || is_model_of(endpoint, providers),
    };
    if has_form { Ok(()) } else { Err(invalid_agent_error(endpoint, providers)) }
}

/// Returns the error for an invalid agent endpoint.
pub fn invalid_agent_error(endpoint: &str, providers: &Providers) -> Error {
    let failure = Error::invalid(format!(
        "'{endpoint}' is not a valid agent: expected a URL (http://…, https://…), PRESET:URL, PROVIDER:MODEL, \
         python:MODULE:FUNCTION, node:FILE#EXPORT, command:PROGRAM or scripted:FILE"
    ));
    let (kind, rest) = endpoint.split_once(':').unwrap_or((endpoint, ""));
    let mut names: Vec<&str> = provider_names(providers).chain(["command", "node", "python", "scripted"]).collect();
    for kind in Preset::kinds() {
        names.push(kind);
    }
    let example = |kind: &str| match kind {
        preset if Preset::by_name(preset).is_some() => {
            format!("{preset}:{}", if rest.starts_with("http") { rest } else { "http://…" })
        }
        "command" => "command:PROGRAM".to_owned(),
        "node" => "node:FILE#EXPORT".to_owned(),
        "python" => "python:MODULE:FUNCTION".to_owned(),
        "scripted" => "scripted:FILE".to_owned(),
        provider if rest.is_empty() => format!("{provider}:MODEL"),
        provider => format!("{provider}:{rest}"),
    };
    let is_address = rest.starts_with(|first: char| first.is_ascii_digit()) || endpoint.starts_with("localhost");
    if let Some(scheme) = nearest(kind, &["http", "https"]).filter(|_| rest.starts_with("//")) {
        return failure.hint(format!("did you mean '{scheme}:{rest}'?"));
    }
    match nearest(kind, &names) {
        _ if is_address => failure.hint(format!("did you mean 'http://{endpoint}'?")),
        Some(near) => failure.hint(format!("did you mean '{}'?", example(near))),
        None => failure.hint("add your own providers to 'providers' in karat.json"),
    }
}
