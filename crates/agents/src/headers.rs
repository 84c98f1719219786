//! Environment variables in header values.

/// A header refers to an environment variable that is not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} is not set")]
pub struct MissingVariable {
    pub name: String,
}

/// A header value with its variables expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandedValue {
    pub text: String,
    /// The values of the variables, to be redacted.
    pub secrets: Vec<String>,
}

/// Expands `${NAME}`; any other `$` is literal.
pub fn expand_variables(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<ExpandedValue, MissingVariable> {
    let mut expanded = ExpandedValue { text: String::with_capacity(text.len()), secrets: Vec::new() };
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let inner = &rest[start + 2..];
        let name = inner.split_once('}').map(|(name, _)| name).filter(|name| is_variable_name(name));
        let Some(name) = name else {
            expanded.text.push_str(&rest[..start + 2]);
            rest = inner;
            continue;
        };
        let value = lookup(name).ok_or_else(|| MissingVariable { name: name.to_owned() })?;
        expanded.text.push_str(&rest[..start]);
        expanded.text.push_str(&value);
        expanded.secrets.push(value);
        rest = &inner[name.len() + 1..];
    }
    expanded.text.push_str(rest);
    Ok(expanded)
}

pub(crate) fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_variables_and_returns_their_values() {
        let lookup = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        let expanded = expand_variables("Bearer ${TOKEN} $5 ${x y} ${", &lookup).expect("TOKEN is set");
        assert_eq!(expanded.text, "Bearer s3cret $5 ${x y} ${");
        assert_eq!(expanded.secrets, ["s3cret"]);
        let missing = expand_variables("${OTHER}", &lookup).expect_err("OTHER is not set");
        assert_eq!(missing.to_string(), "the environment variable OTHER is not set");
    }
}
