//! Expands values with secrets and registers the secrets with the redactor.

use std::collections::BTreeMap;

use karat_agents::expand_variables;
use karat_core::redact::Redactor;
use serde_json::Value;

use super::variables::Variables;
use crate::error::Error;

/// Registers secrets of a command line: `--api-key VALUE`, `--api-key=VALUE`, `API_KEY=VALUE`.
pub(crate) fn redact_arguments(arguments: &[String], redactor: &Redactor) {
    let add = |name: &str, value: &str| redactor.add_secrets_in(name, &Value::from(value));
    for argument in arguments {
        if let Some((name, value)) = argument.split_once('=') {
            add(name, value);
        }
    }
    for pair in arguments.windows(2).filter(|pair| pair[0].starts_with('-') && !pair[1].starts_with('-')) {
        add(&pair[0], &pair[1]);
    }
}

pub(crate) fn fill_headers(
    headers: &BTreeMap<String, String>,
    variables: &Variables,
    redactor: &Redactor,
) -> Result<Vec<(String, String)>, Error> {
    let fill = |(name, value): (&String, &String)| {
        let expanded = expand_variables(value, &|name| variables.get(name))
            .map_err(|error| Error::invalid(format!("cannot send the header '{name}': {error}")))?;
        expanded.secrets.iter().for_each(|secret| redactor.add(secret));
        Ok((name.clone(), expanded.text))
    };
    headers.iter().map(fill).collect()
}
