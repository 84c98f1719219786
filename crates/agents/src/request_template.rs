//! Requests with placeholders, compiled once.

use karat_http::header::{HeaderName, HeaderValue};
use karat_http::{ClientError, Url, parse_url, redact_url};
use serde_json::Value;

use crate::http_config::Method;
use crate::json_template::Node;
use crate::placeholder::{Placeholder, Scope, TemplateError, Values};
use crate::template::{Environment, Template};

/// A request to the agent's server.
#[derive(Debug)]
pub(crate) struct RequestTemplate {
    pub(crate) method: karat_http::Method,
    url: UrlTemplate,
    /// The query parameter for the message.
    query: Option<String>,
    /// Headers with placeholders, and headers of this request alone.
    headers: Vec<(HeaderName, Template)>,
    body: Option<Node>,
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct RenderedRequest {
    pub(crate) url: Url,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<String>,
}

#[derive(Debug)]
enum UrlTemplate {
    Endpoint,
    Fixed(Url),
    /// Relative to the endpoint.
    Template(Template),
}

/// The endpoint's URL, which may have placeholders.
#[derive(Debug)]
pub(crate) struct Endpoint {
    template: Template,
    /// The URL with dummy values in place of placeholders. Every request uses its server and credentials.
    pub(crate) base: Url,
}

impl Endpoint {
    pub(crate) fn new(url: &str, environment: &mut Environment<'_>) -> Result<Self, RequestError> {
        let template = Template::parse(url, Scope::Request, environment)?;
        let base = parse_url(&template.render_dummy())?;
        Ok(Self { template, base })
    }

    /// Returns the URL for a message.
    fn resolve(&self, values: &Values<'_>) -> Result<Url, String> {
        match self.template.as_constant() {
            Some(_) => Ok(self.base.clone()),
            None => self.resolve_on_server(&self.template.render_url(values)?),
        }
    }

    /// Resolves a URL, which must be on the endpoint's server: headers may contain secrets.
    fn resolve_on_server(&self, reference: &str) -> Result<Url, String> {
        let redacted = || redact_url(reference);
        let mut url = self.base.join(reference).map_err(|error| format!("'{}' is not a URL: {error}", redacted()))?;
        if url.origin() != self.base.origin() {
            return Err(format!("'{}' is not on the server of the endpoint", redacted()));
        }
        // Setting them fails only for URLs without a host.
        let _ = url.set_username(self.base.username());
        let _ = url.set_password(self.base.password());
        Ok(url)
    }
}

/// The parts of a request template.
pub(crate) struct Parts<'p> {
    pub(crate) method: Method,
    pub(crate) url: Option<&'p str>,
    pub(crate) query: Option<&'p str>,
    pub(crate) headers: Vec<(&'p String, &'p String)>,
    pub(crate) body: Option<&'p Value>,
    pub(crate) scope: Scope,
}

impl RequestTemplate {
    pub(crate) fn new(
        parts: &Parts<'_>,
        endpoint: &Endpoint,
        environment: &mut Environment<'_>,
    ) -> Result<Self, RequestError> {
        let url = match parts.url {
            None => UrlTemplate::Endpoint,
            Some(url) => {
                let template = Template::parse(url, parts.scope, environment)?;
                match template.as_constant() {
                    Some(url) => UrlTemplate::Fixed(endpoint.resolve_on_server(url).map_err(RequestError::Url)?),
                    None => UrlTemplate::Template(template),
                }
            }
        };
        let mut headers = Vec::new();
        for &(name, text) in &parts.headers {
            let header = HeaderName::from_bytes(name.as_bytes())
                .map_err(|error| ClientError::Header { name: name.clone(), reason: error.to_string() })?;
            headers.push((header, Template::parse(text, Scope::Request, environment)?));
        }
        let body = parts.body.filter(|_| parts.method.has_body());
        let body = body.map(|body| Node::compile(body, parts.scope, environment)).transpose()?;
        let (method, query) = (parts.method.into(), parts.query.map(str::to_owned));
        Ok(Self { method, url, query, headers, body })
    }

    pub(crate) fn render(&self, endpoint: &Endpoint, values: &Values<'_>) -> Result<RenderedRequest, String> {
        let mut url = match &self.url {
            UrlTemplate::Endpoint => endpoint.resolve(values)?,
            UrlTemplate::Fixed(url) => url.clone(),
            UrlTemplate::Template(template) => endpoint.resolve_on_server(&template.render_url(values)?)?,
        };
        if let Some(parameter) = &self.query {
            url.query_pairs_mut().append_pair(parameter, values.message);
        }
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, template) in &self.headers {
            if let Some(text) = template.render_optional(values)? {
                let mut value = HeaderValue::from_str(&text)
                    .map_err(|_| format!("cannot send the header '{name}': its value contains forbidden characters"))?;
                value.set_sensitive(true);
                headers.push((name.clone(), value));
            }
        }
        let body = self.body.as_ref().map(|body| body.render(values)).transpose()?;
        Ok(RenderedRequest { url, headers, body })
    }

    pub(crate) fn uses(&self, is_used: &dyn Fn(&Placeholder) -> bool) -> bool {
        let in_url = matches!(&self.url, UrlTemplate::Template(template) if template.uses(is_used));
        in_url
            || self.headers.iter().any(|(_, template)| template.uses(is_used))
            || self.body.as_ref().is_some_and(|body| body.uses(is_used))
    }
}

/// Why a request cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{0}")]
    Url(String),
}

impl From<Method> for karat_http::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Patch => Self::PATCH,
            Method::Get => Self::GET,
            Method::Delete => Self::DELETE,
        }
    }
}
