//! `{{seed:path}}` and `{{snapshot:path}}` in assertion values.

use serde_json::Value;

use karat_json::nearest;
use karat_json::text::text_form;

/// The values of tokens.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenSources {
    pub seed: Option<Value>,
    pub snapshot: Option<Value>,
}

/// A string with its tokens resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    Text(String),
    /// The tokens without a value; one is enough to leave the whole text unresolved.
    Unresolved(Vec<String>),
}

/// A list with its tokens resolved, and the tokens without a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResolvedList {
    pub values: Vec<Value>,
    pub unresolved: Vec<String>,
}

/// A token found in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'t> {
    /// The whole token with its braces.
    pub text: &'t str,
    /// Byte offset of its start.
    pub start: usize,
    pub source: Source,
    pub path: &'t str,
}

/// The source of a token's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Stable values.
    Seed,
    /// Values recorded at the time of a run.
    Snapshot,
}

impl Token<'_> {
    /// Whether its path is syntactically valid.
    pub fn is_well_formed(&self) -> bool {
        self.path.split('.').all(|segment| split_segment(segment).is_some())
    }
}

impl TokenSources {
    /// Replaces every token in `text` with the text form of its value.
    pub fn resolve(&self, text: &str) -> Resolved {
        let mut out = String::with_capacity(text.len());
        let mut unresolved = Vec::new();
        let mut end = 0;
        for token in tokens(text) {
            out.push_str(&text[end..token.start]);
            end = token.start + token.text.len();
            match self.lookup(token) {
                Some(value) => out.push_str(&text_form(value)),
                None => unresolved.push(token.text.to_owned()),
            }
        }
        if !unresolved.is_empty() {
            return Resolved::Unresolved(unresolved);
        }
        out.push_str(&text[end..]);
        Resolved::Text(out)
    }

    /// Resolves the tokens in every string of a value, or returns those without a value. A string that is a single token
    /// becomes its value, with the value's type.
    pub fn resolve_value(&self, value: &Value) -> Result<Value, Vec<String>> {
        let mut unresolved = Vec::new();
        let resolved = self.replace_tokens(value, &mut unresolved);
        if unresolved.is_empty() { Ok(resolved) } else { Err(unresolved) }
    }

    fn replace_tokens(&self, value: &Value, unresolved: &mut Vec<String>) -> Value {
        match value {
            Value::String(text) => {
                if let Some(value) = single_token(text).and_then(|token| self.lookup(token)) {
                    return value.clone();
                }
                match self.resolve(text) {
                    Resolved::Text(text) => Value::String(text),
                    Resolved::Unresolved(tokens) => {
                        unresolved.extend(tokens);
                        Value::Null
                    }
                }
            }
            Value::Array(items) => items.iter().map(|item| self.replace_tokens(item, unresolved)).collect(),
            Value::Object(map) => {
                map.iter().map(|(key, item)| (key.clone(), self.replace_tokens(item, unresolved))).collect()
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => value.clone(),
        }
    }

    /// Resolves a list element by element. An element that is a single token for an array is replaced by its elements.
    pub fn resolve_list(&self, value: &Value) -> ResolvedList {
        let mut list = ResolvedList::default();
        let single = std::slice::from_ref(value);
        for element in value.as_array().map_or(single, Vec::as_slice) {
            match self.resolve_value(element) {
                Ok(Value::Array(items)) if element.is_string() => list.values.extend(items),
                Ok(value) => list.values.push(value),
                Err(tokens) => list.unresolved.extend(tokens),
            }
        }
        list
    }

    /// Returns the value of a token; `None` if it is empty, since an assertion on it would prove nothing.
    pub fn lookup(&self, token: Token<'_>) -> Option<&Value> {
        walk(self.root(token.source)?, token.path).filter(|value| !is_empty(value))
    }

    /// Suggests a path for a token without a value: one that has a value and differs in one key.
    pub fn nearest_path(&self, token: Token<'_>) -> Option<String> {
        let root = self.root(token.source)?;
        let segments: Vec<&str> = token.path.split('.').collect();
        // The first segment that does not resolve.
        let unresolved = (0..segments.len()).find(|&index| walk(root, &segments[..=index].join(".")).is_none())?;
        let parent = if unresolved == 0 { root } else { walk(root, &segments[..unresolved].join("."))? };
        let (key, _) = split_segment(segments[unresolved])?;
        let keys: Vec<&str> = parent.as_object()?.keys().map(String::as_str).collect();
        let suggestion = format!("{}{}", nearest(key, &keys)?, &segments[unresolved][key.len()..]);
        let path = segments[..unresolved]
            .iter()
            .copied()
            .chain([suggestion.as_str()])
            .chain(segments[unresolved + 1..].iter().copied());
        let path = path.collect::<Vec<_>>().join(".");
        walk(root, &path).filter(|value| !is_empty(value)).map(|_| path)
    }

    fn root(&self, source: Source) -> Option<&Value> {
        match source {
            Source::Seed => self.seed.as_ref(),
            Source::Snapshot => self.snapshot.as_ref(),
        }
    }
}

/// Whether a value is null or an empty string, array or object.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a string contains a token.
pub fn contains_token(text: &str) -> bool {
    tokens(text).next().is_some()
}

/// Whether a string contains a snapshot token.
pub fn contains_snapshot_token(text: &str) -> bool {
    tokens(text).any(|token| token.source == Source::Snapshot)
}

/// Whether a string is exactly one token.
pub fn is_single_token(text: &str) -> bool {
    single_token(text).is_some()
}

fn single_token(text: &str) -> Option<Token<'_>> {
    tokens(text).next().filter(|token| token.text.len() == text.len())
}

/// Finds the tokens of a string; other `{{…}}` are plain text.
pub fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    // Almost all texts have no brace; a search for one character is much faster than for two.
    let mut from = text.find('{').unwrap_or(text.len());
    std::iter::from_fn(move || {
        while let Some(offset) = text[from..].find("{{") {
            let start = from + offset;
            let token = token_at(text, start);
            // An opening brace may belong to the next token: `{{{seed:a}}`.
            from = token.map_or(start + 1, |token| start + token.text.len());
            if token.is_some() {
                return token;
            }
        }
        None
    })
}

/// Whether a string contains a malformed or misspelt token, such as `{{ seed:x }}`, `{{Row:x}}` or `{{snapshop:x}}`.
pub fn looks_like_token(text: &str) -> bool {
    // Almost all texts have no brace.
    text.contains('{')
        && text.match_indices("{{").any(|(start, _)| {
            let inner = &text[start + 2..];
            let name = inner.split_once(':').map_or("", |(name, _)| name.trim());
            // Many short words are similar to `row`, so only its spelling variants count.
            let is_row = ["row", "rows"].iter().any(|word| name.eq_ignore_ascii_case(word));
            name.chars().all(char::is_alphabetic)
                && (is_row || nearest(name, &["seed", "snapshot"]).is_some())
                && token_at(text, start).is_none()
                && !is_row_token(inner)
        })
}

/// Whether the text after two opening braces is the rest of `{{row:key}}`.
fn is_row_token(inner: &str) -> bool {
    inner.starts_with("row:") && inner.find('}').is_some_and(|close| inner[close..].starts_with("}}"))
}

fn token_at(text: &str, start: usize) -> Option<Token<'_>> {
    let inner = &text[start + 2..];
    let (source, name) = if inner.starts_with("seed:") {
        (Source::Seed, "seed:")
    } else if inner.starts_with("snapshot:") {
        (Source::Snapshot, "snapshot:")
    } else {
        return None;
    };
    let close = inner.find('}')?;
    // The path may be invalid; the token then has no value, which is reported.
    let path = &inner[name.len()..close];
    inner[close..].starts_with("}}").then(|| Token { text: &text[start..start + 2 + close + 2], start, source, path })
}

/// Splits `key[0][1]` into its key and indices.
fn split_segment(segment: &str) -> Option<(&str, impl Iterator<Item = usize>)> {
    let key_end = segment.find('[').unwrap_or(segment.len());
    let (key, brackets) = segment.split_at(key_end);
    let mut rest = brackets;
    while !rest.is_empty() {
        let (digits, after) = rest.strip_prefix('[')?.split_once(']')?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        rest = after;
    }
    if key.is_empty() || key.contains(']') {
        return None;
    }
    // An index beyond usize is out of range like any other.
    let indexes = brackets.split(['[', ']']).filter(|part| !part.is_empty());
    Some((key, indexes.map(|digits| digits.parse().unwrap_or(usize::MAX))))
}

fn walk<'v>(root: &'v Value, path: &str) -> Option<&'v Value> {
    let mut value = root;
    for segment in path.split('.') {
        let (key, indexes) = split_segment(segment)?;
        value = value.as_object()?.get(key)?;
        for index in indexes {
            value = value.as_array()?.get(index)?;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn sources() -> TokenSources {
        TokenSources {
            seed: Some(json!({
                "a": {"b": [{"c": "deep"}, [7, 8.50]]}, "n": null, "big": 1e21, "flag": false,
                "é-x y": "odd key", "list": [1, "b"], "empty": "", "none": {"list": [], "map": {}},
                "id": 9_007_199_254_740_993_u64,
            })),
            snapshot: Some(json!({"price": 181.20})),
        }
    }

    #[rstest]
    #[case("plain", "plain")]
    #[case("{{seed:a.b[0].c}}", "deep")]
    #[case("{{seed:a.b[1][1]}} and {{snapshot:price}}", "8.5 and 181.2")]
    #[case("{{seed:é-x y}}!", "odd key!")]
    #[case("{{seed:flag}}{{seed:big}}", "false1e+21")]
    #[case("{{seed:list}}", "[1,\"b\"]")]
    #[case("{{seed:id}}", "9007199254740993")]
    #[case("{{{seed:flag}}}", "{false}")]
    #[case("{{other:a}} {{seed a}} {{seed:a} {{seed:a", "{{other:a}} {{seed a}} {{seed:a} {{seed:a")]
    fn resolves_tokens(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(sources().resolve(text), Resolved::Text(expected.to_owned()));
    }

    #[rstest]
    #[case("{{seed:n}}", &["{{seed:n}}"])]
    #[case("{{seed:a.b[2]}} x {{seed:flag}} {{snapshot:none}}", &["{{seed:a.b[2]}}", "{{snapshot:none}}"])]
    #[case("<{{seed:empty}}>", &["{{seed:empty}}"])]
    #[case("{{seed:none.list}}{{seed:none.map}}", &["{{seed:none.list}}", "{{seed:none.map}}"])]
    #[case("{{seed:a[0]}}", &["{{seed:a[0]}}"])]
    #[case("{{seed:a.b.c}}", &["{{seed:a.b.c}}"])]
    #[case("{{seed:}} {{seed:a..b}} {{seed:list[-1]}}", &["{{seed:}}", "{{seed:a..b}}", "{{seed:list[-1]}}"])]
    #[case("{{seed:list[99999999999999999999999]}}", &["{{seed:list[99999999999999999999999]}}"])]
    fn reports_unresolved_tokens(#[case] text: &str, #[case] tokens: &[&str]) {
        let tokens = tokens.iter().map(|&token| token.to_owned()).collect();
        assert_eq!(sources().resolve(text), Resolved::Unresolved(tokens));
    }

    #[rstest]
    #[case("{{seed:a.c[0].c}}", Some("a.b[0].c"))]
    #[case("{{seed:lisst[1]}}", Some("list[1]"))]
    #[case("{{seed:a.b[0].d}}", Some("a.b[0].c"))]
    #[case("{{seed:lisst[7]}}", None)]
    #[case("{{seed:weather}}", None)]
    #[case("{{seed:a..b}}", None)]
    #[case("{{seed:list.x}}", None)]
    #[case("{{snapshot:prise}}", Some("price"))]
    fn suggests_the_nearest_path(#[case] text: &str, #[case] expected: Option<&str>) {
        let token = tokens(text).next().expect("token");
        assert_eq!(sources().nearest_path(token).as_deref(), expected);
        assert_eq!(TokenSources::default().nearest_path(token), None);
        assert_eq!(token.is_well_formed(), text != "{{seed:a..b}}");
    }

    #[test]
    fn lists_resolve_by_element_and_expand() {
        let list = sources().resolve_list(&json!(["{{seed:n}}", 5.0, "{{seed:flag}}"]));
        assert_eq!(list.values, [json!(5.0), json!(false)]);
        assert_eq!(list.unresolved, ["{{seed:n}}"]);
        assert_eq!(sources().resolve_list(&json!("{{seed:list}}")).values, [json!(1), json!("b")]);
        assert_eq!(sources().resolve_list(&json!("{{seed:list}} ")).values, [json!("[1,\"b\"] ")]);
        assert_eq!(sources().resolve_list(&json!([[1]])).values, [json!([1])]);
    }

    #[test]
    fn values_resolve_with_their_type() {
        let value = json!({"a": ["{{seed:flag}}", "is {{seed:flag}}"], "b": {"{{seed:n}}": 1}});
        let expected = json!({"a": [false, "is false"], "b": {"{{seed:n}}": 1}});
        assert_eq!(sources().resolve_value(&value), Ok(expected));
        assert_eq!(sources().resolve_value(&json!([["{{seed:n}}"]])), Err(vec!["{{seed:n}}".to_owned()]));
    }

    #[rstest]
    #[case("{{ seed:x }}", true)]
    #[case("{{Seed:x}}", true)]
    #[case("{{seed:x}", true)]
    #[case("{{sed:x}}", true)]
    #[case("{{snapshots: x}}", true)]
    #[case("{{ row:x }}", true)]
    #[case("{{Row:x}}", true)]
    #[case("{{rows:x}}", true)]
    #[case("{{row:x}", true)]
    #[case("{{row :x}}", true)]
    #[case("{{row:x}} {{{row:x}}} {{raw:x}} {{now:x}} {{row}}", false)]
    #[case("{{seed:x}} {{{seed:x}}}", false)]
    #[case("{{other:x}} {{seed}} {{:x}} seed:x", false)]
    fn finds_misspelt_tokens(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(looks_like_token(text), expected);
    }

    proptest! {
        #[test]
        fn resolves_any_string(text in "[{}:a-z.\\[\\]0-9é ]{0,40}|(\\{\\{seed:[a-z.\\[\\]0-9]{0,8}\\}\\}){0,3}") {
            match sources().resolve(&text) {
                Resolved::Text(out) => if !contains_token(&text) { prop_assert_eq!(out, text) },
                Resolved::Unresolved(tokens) => prop_assert!(tokens.iter().all(|token| text.contains(token.as_str()))),
            }
        }

        #[test]
        fn resolves_any_key(key in "[^.\\[\\]}]{1,8}", value in "[a-z]{1,6}") {
            let sources = TokenSources { seed: Some(json!({&key: [value]})), snapshot: None };
            prop_assert_eq!(sources.resolve(&format!("{{{{seed:{key}[0]}}}}")), Resolved::Text(value));
        }
    }
}
