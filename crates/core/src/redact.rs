//! Redacts secrets from all output.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// Replaces a secret.
pub const MASK: &str = "***";

/// Minimum length of a secret; masking shorter values would garble ordinary text.
const MIN_SECRET_CHARS: usize = 4;

/// Minimum length of a database password that is masked everywhere: with characters of several kinds, and of any.
const MIN_MIXED_PASSWORD_CHARS: usize = 8;
const MIN_PASSWORD_CHARS: usize = 16;

/// The secrets of this process, shared by all clones.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret inside another one does not break it up.
    secrets: Arc<RwLock<Vec<String>>>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Redactor({} secrets)", self.secrets().len())
    }
}

impl Redactor {
    fn secrets(&self) -> RwLockReadGuard<'_, Vec<String>> {
        self.secrets.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a secret.
    pub fn add(&self, secret: &str) {
        let secret = secret.trim();
        if secret.chars().count() < MIN_SECRET_CHARS {
            return;
        }
        let mut secrets = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        if secrets.iter().all(|known| known != secret) {
            secrets.push(secret.to_owned());
            secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.secrets().is_empty()
    }

    /// Masks every secret in a string.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = Cow::Borrowed(text);
        for secret in self.secrets().iter() {
            if out.contains(secret.as_str()) {
                out = Cow::Owned(out.replace(secret.as_str(), MASK));
            }
        }
        out
    }

    pub fn string(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }

    /// Masks every secret in the strings, keys and numbers of a value.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => self.map(map),
            Value::Number(_) => {
                let text = value.to_string();
                if let Cow::Owned(masked) = self.text(&text) {
                    *value = Value::String(masked);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    pub fn map(&self, map: &mut Map<String, Value>) {
        if map.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
            *map = std::mem::take(map).into_iter().map(|(key, value)| (self.text(&key).into_owned(), value)).collect();
        }
        map.values_mut().for_each(|value| self.value(value));
    }

    /// Adds everything in a configuration value that looks like a secret.
    pub fn add_secrets_in(&self, name: &str, value: &Value) {
        match value {
            Value::String(text) => self.add_secrets_in_setting(name, text),
            Value::Array(items) => items.iter().for_each(|item| self.add_secrets_in(name, item)),
            Value::Object(map) => map.iter().for_each(|(key, item)| self.add_secrets_in(key, item)),
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    /// Adds everything that looks like a secret in a configuration that is not valid JSON.
    pub fn add_secrets_in_text(&self, text: &str) {
        let quoted: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
        for pair in quoted.windows(2) {
            self.add_secrets_in_setting(pair[0], pair[1]);
        }
        self.add_secrets_in_setting("", text);
    }

    /// Adds the secrets of a database URL. A password is often an ordinary word (`karat`, `postgres`) that would garble
    /// text if it were masked everywhere, so such a password is masked only inside URLs and settings.
    pub fn add_database_url(&self, url: &str) {
        let passwords = database_passwords(url);
        if !passwords.is_empty() {
            self.add(url);
        }
        for password in &passwords {
            self.add_database_password(password);
        }
    }

    fn add_database_password(&self, password: &str) {
        if is_distinctive(password) {
            self.add(password);
        }
        for context in [format!(":{password}@"), format!("password={password}"), format!("PASSWORD={password}")] {
            self.add(&context);
        }
    }

    fn add_secrets_in_setting(&self, name: &str, text: &str) {
        if is_database_password_name(name) {
            self.add_database_password(text);
        } else if is_secret_name(name) {
            // The value may start with a scheme: `Bearer abc`.
            self.add(text.rsplit(' ').next().unwrap_or(text));
            self.add(text);
        }
        for word in text.split(|character: char| character.is_whitespace() || "\"'=,;&?/@".contains(character)) {
            if is_secret_shape(word) {
                self.add(word);
            }
        }
        self.add_secrets_in_url(text);
    }

    /// Adds the password and secret query values of a URL.
    fn add_secrets_in_url(&self, text: &str) {
        let Some((scheme, rest)) = text.split_once("://") else {
            return;
        };
        if let Some(scheme) = DATABASE_SCHEMES.iter().find(|known| scheme.ends_with(**known)) {
            // In an unparsed file, more text follows the URL.
            let url = rest.split(['"', '\n']).next().unwrap_or(rest);
            self.add_database_url(&format!("{scheme}://{url}"));
            return;
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        if let Some((user, _)) = authority.rsplit_once('@') {
            self.add(user.split_once(':').map_or(user, |(_, password)| password));
        }
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        for (key, value) in query.split(['&', '#']).filter_map(|pair| pair.split_once('=')) {
            if is_secret_name(key) {
                self.add(value);
            }
        }
    }
}

/// URL schemes of databases.
const DATABASE_SCHEMES: [&str; 2] = ["postgresql", "postgres"];

/// Returns the passwords in a database URL, both encoded and decoded, since server messages may contain either.
pub fn database_passwords(url: &str) -> Vec<String> {
    let Some((_, rest)) = url.split_once("://") else {
        return Vec::new();
    };
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let user = location.split('/').next().and_then(|authority| authority.rsplit_once('@'));
    let user_password = user.and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password.to_owned());
    let pairs = query.split(['&', '#']).filter_map(|pair| pair.split_once('='));
    let query_passwords = pairs.filter(|(key, _)| matches!(*key, "password" | "sslpassword"));
    // Only in a query does a plus sign mean a space.
    let query_passwords = query_passwords.flat_map(|(_, value)| [value.to_owned(), value.replace('+', " ")]);
    let encoded: Vec<String> =
        user_password.into_iter().chain(query_passwords).filter(|password| !password.is_empty()).collect();
    let mut all: Vec<String> = encoded.iter().map(|password| percent_decode(password)).collect();
    all.extend(encoded);
    all.sort();
    all.dedup();
    all
}

fn percent_decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Whether a password is unlikely to occur in ordinary text.
fn is_distinctive(password: &str) -> bool {
    let has = |kind: fn(char) -> bool| password.chars().any(kind);
    let kinds = [
        has(char::is_lowercase),
        has(char::is_uppercase),
        has(char::is_numeric),
        has(|character| !character.is_alphanumeric()),
    ];
    let length = password.chars().count();
    length >= MIN_PASSWORD_CHARS
        || length >= MIN_MIXED_PASSWORD_CHARS && kinds.into_iter().filter(|kind| *kind).count() > 1
}

fn is_database_password_name(name: &str) -> bool {
    matches!(name, "PGPASSWORD" | "POSTGRES_PASSWORD")
}

/// Whether a setting or header of this name usually holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase().replace(['-', '_'], "");
    // The name of a variable is not a secret, and must be readable in messages about a missing variable.
    if name.ends_with("variable") {
        return false;
    }
    let markers = ["apikey", "secret", "password", "passwd", "authorization", "cookie", "credential", "accesskey"];
    markers.iter().any(|word| name.contains(word))
        || name.ends_with("token")
        || name.ends_with("key")
        || name == "auth"
        || name == "sig"
}

/// Whether a word has the format of a well-known service's API key.
pub fn is_secret_shape(word: &str) -> bool {
    let prefixes = [
        "sk-",
        "sk_",
        "pk-",
        "pk_",
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "AKIA",
        "AIza",
        "eyJ",
        "hf_",
    ];
    word.len() >= 16
        && prefixes.iter().any(|prefix| word.starts_with(prefix))
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"headers": {"Authorization": "Bearer abc-123-def"}}), "got abc-123-def", "got ***")]
    #[case(json!({"headers": {"x-api-key": "hunter2"}}), "hunter2!", "***!")]
    #[case(json!({"agentEndpoint": "https://me:p4ssword@host/chat?api_key=zzzz9&q=1"}), "p4ssword zzzz9 me q=1", "*** *** me q=1")]
    #[case(json!({"note": "use sk-proj-0123456789abcdef please"}), "sk-proj-0123456789abcdef", "***")]
    #[case(json!({"maxTokens": "plain words", "outputDir": "evals/results"}), "plain words evals/results", "plain words evals/results")]
    fn finds_secrets_in_configuration(#[case] config: Value, #[case] text: &str, #[case] expected: &str) {
        let redactor = Redactor::default();
        redactor.add_secrets_in("", &config);
        assert_eq!(redactor.text(text), expected);
    }

    #[rstest]
    #[case("postgres://karat:hunter2@localhost/db", &["hunter2"])]
    #[case("postgres://karat@localhost/db", &[])]
    #[case("postgres://karat:@localhost/db", &[])]
    #[case("postgres://localhost/a:b@c", &[])]
    #[case("postgres://u:p%40q@h:5432/db", &["p%40q", "p@q"])]
    #[case("postgres://u:100%@h:5432/db", &["100%"])]
    #[case("postgres://u@h/db?sslmode=require&password=hunter2%21", &["hunter2!", "hunter2%21"])]
    #[case("postgres://u@h/db?password=a+b", &["a b", "a+b"])]
    fn finds_database_passwords(#[case] url: &str, #[case] expected: &[&str]) {
        assert_eq!(database_passwords(url), expected);
    }

    #[rstest]
    #[case::word("postgres://me:karat@host/db", "karat stores karats in 'karat'", "karat stores karats in 'karat'")]
    #[case::word_in_its_url("postgres://me:karat@host/db", "at postgres://me:karat@host/db", "at ***")]
    #[case::word_in_another_url(
        "postgres://me:karat@host/db",
        "at postgres://me:karat@[::1]",
        "at postgres://me***[::1]"
    )]
    #[case::word_as_setting(
        "postgres://host/db?password=karat",
        "karat: host=host password=karat",
        "karat: host=host ***"
    )]
    #[case::number("postgres://me:2026@host/db", "2026-11-16", "2026-11-16")]
    #[case::mixed("postgres://me:k4rat-k4rat@host/db", "no k4rat-k4rat", "no ***")]
    #[case::long("postgres://me:correct-horse-battery@host/db", "no correct-horse-battery", "no ***")]
    #[case::encoded("postgresql://me:k4rat%40k4rat@host/db", "k4rat@k4rat k4rat%40k4rat", "*** ***")]
    fn masks_database_passwords_without_garbling_text(#[case] url: &str, #[case] text: &str, #[case] expected: &str) {
        let parsed = Redactor::default();
        parsed.add_secrets_in("store", &Value::from(url));
        let unparsed = Redactor::default();
        unparsed.add_secrets_in_text(&format!("{{\"store\": \"{url}\",, }}"));
        for redactor in [parsed, unparsed] {
            assert_eq!(redactor.text(text), expected);
        }
    }

    #[rstest]
    #[case("PGPASSWORD", "karat", "karat, PGPASSWORD=karat", "karat, PG***")]
    #[case("PGPASSWORD", "k4ratk4rat", "karat, k4ratk4rat", "karat, ***")]
    #[case("POSTGRES_PASSWORD", "Sw!ord-fish%top", "with Sw!ord-fish%top", "with ***")]
    #[case("DB_PASSWORD", "karat", "karat", "***")]
    fn masks_password_variables_without_garbling_text(
        #[case] name: &str,
        #[case] password: &str,
        #[case] text: &str,
        #[case] expected: &str,
    ) {
        let redactor = Redactor::default();
        redactor.add_secrets_in(name, &Value::from(password));
        assert_eq!(redactor.text(text), expected);
    }

    #[test]
    fn masks_values_keys_and_numbers() {
        let redactor = Redactor::default();
        redactor.add("12345678");
        redactor.add("1234");
        redactor.add("abc");
        let mut value = json!({"k12345678": [12_345_678, "x1234y", "abc"], "n": 5});
        redactor.value(&mut value);
        assert_eq!(value, json!({"k***": ["***", "x***y", "abc"], "n": 5}));
    }
}
