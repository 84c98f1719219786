//! Completes the URLs of presets. They may contain variables and placeholders, so they are not parsed as URLs.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// Removes the parameters of a preset from the query and returns their values.
pub(crate) fn take_parameters(url: &str, known: &BTreeMap<String, Value>) -> (String, BTreeMap<String, String>) {
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), BTreeMap::new()) };
    let mut taken = BTreeMap::new();
    let is_other = |pair: &&str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !known.contains_key(name) {
            return !pair.is_empty();
        }
        taken.insert(name.to_owned(), percent_decode_str(value).decode_utf8_lossy().into_owned());
        false
    };
    let others: Vec<&str> = query.split('&').filter(is_other).collect();
    let url = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
    (url, taken)
}

/// Completes a URL: adds the path of the product if the URL is only a base, and a final `/` if request URLs are relative
/// to it.
pub(super) fn complete(url: &str, path: Option<&str>, request_url: Option<&str>) -> String {
    let (base, query) = url.split_at(url.find('?').unwrap_or(url.len()));
    let (server, own_path) = base.split_at(path_start(base));
    let trimmed = own_path.trim_end_matches('/');
    let path = match (path, request_url) {
        (Some(path), _) => match overlap(trimmed, path) {
            Some(overlap) => format!("{}{path}", &trimmed[..trimmed.len() - overlap]),
            None => own_path.to_owned(),
        },
        (None, Some(request)) if !request.starts_with('/') => {
            let folder = trimmed.strip_suffix(request).and_then(|folder| folder.strip_suffix('/'));
            format!("{}/", folder.unwrap_or(trimmed))
        }
        (None, _) => own_path.to_owned(),
    };
    format!("{server}{path}{query}")
}

/// Whether a path starts with another one, compared by whole segments.
pub(crate) fn is_path_prefix(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn path_start(base: &str) -> usize {
    let host = base.find("://").map_or(0, |colon| colon + 3);
    base[host..].find('/').map_or(base.len(), |slash| host + slash)
}

/// Returns the length of the longest suffix of `own` that is a prefix of `path`, or `None` if there is none.
fn overlap(own: &str, path: &str) -> Option<usize> {
    if own.is_empty() {
        return Some(0);
    }
    let mut suffixes = own.match_indices('/').map(|(start, _)| &own[start..]);
    suffixes.find(|suffix| is_path_prefix(suffix, path)).map(str::len)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("http://host", "http://host/v1/chat/completions")]
    #[case("http://host/", "http://host/v1/chat/completions")]
    #[case("http://host/v1", "http://host/v1/chat/completions")]
    #[case("http://host/openai/v1/?a=1", "http://host/openai/v1/chat/completions?a=1")]
    #[case("http://host/v1/chat/completions", "http://host/v1/chat/completions")]
    #[case("http://host/my/agent", "http://host/my/agent")]
    #[case("http://host/v1x", "http://host/v1x")]
    #[case("${BASE}", "${BASE}/v1/chat/completions")]
    fn appends_the_path_to_a_base(#[case] url: &str, #[case] expected: &str) {
        assert_eq!(complete(url, Some("/v1/chat/completions"), None), expected);
    }

    #[rstest]
    #[case("http://host", Some("invoke"), "http://host/")]
    #[case("http://host/agent", Some("invoke"), "http://host/agent/")]
    #[case("http://host/agent/invoke", Some("invoke"), "http://host/agent/")]
    #[case("http://host/agent", None, "http://host/agent")]
    #[case("http://host/agent", Some("/run"), "http://host/agent")]
    fn ends_bases_of_relative_urls_with_a_slash(
        #[case] url: &str,
        #[case] request: Option<&str>,
        #[case] expected: &str,
    ) {
        assert_eq!(complete(url, None, request), expected);
    }

    #[test]
    fn takes_known_parameters() {
        let known = BTreeMap::from([("app".to_owned(), Value::Null)]);
        let (url, taken) = take_parameters("http://host/?a=1&app=my%20app&b", &known);
        assert_eq!(url, "http://host/?a=1&b");
        assert_eq!(taken, BTreeMap::from([("app".to_owned(), "my app".to_owned())]));
        assert_eq!(take_parameters("http://host?app=x", &known).0, "http://host");
    }
}
