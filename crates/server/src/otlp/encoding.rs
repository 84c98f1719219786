//! How a request is written.

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};

/// How messages are encoded; the answer is encoded as the request was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Protobuf,
    Json,
}

impl Encoding {
    /// Returns what the request says it is; of another type, its name.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, String> {
        let named = headers.get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or("?"));
        let essence = named.split(';').next().unwrap_or_default().trim();
        [Self::Protobuf, Self::Json]
            .into_iter()
            .find(|encoding| essence.eq_ignore_ascii_case(encoding.media_type()))
            .ok_or_else(|| essence.to_owned())
    }

    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// How a request is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    /// In zlib's frame.
    Deflate,
}

impl Packing {
    /// Returns what the request says it is; of another packing, its name.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, String> {
        let mut named = headers.get_all(CONTENT_ENCODING).iter();
        let name = named.next().map_or("", |value| value.to_str().unwrap_or("?")).trim();
        if named.next().is_some() {
            return Err("several at once".to_owned());
        }
        match name.to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Plain),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "deflate" => Ok(Self::Deflate),
            _ => Err(name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};
    use rstest::rstest;

    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers
    }

    #[rstest]
    #[case("application/x-protobuf", Ok(Encoding::Protobuf))]
    #[case("Application/JSON ; charset=utf-8", Ok(Encoding::Json))]
    #[case("text/plain", Err("text/plain".to_owned()))]
    #[case("application/json, application/x-protobuf", Err("application/json, application/x-protobuf".to_owned()))]
    fn a_type_is_read(#[case] value: &'static str, #[case] expected: Result<Encoding, String>) {
        assert_eq!(Encoding::of(&headers(&[(CONTENT_TYPE, value)])), expected);
    }

    #[test]
    fn no_type_is_another_type() {
        assert_eq!(Encoding::of(&HeaderMap::new()), Err(String::new()));
    }

    #[rstest]
    #[case(&["GZIP"], Ok(Packing::Gzip))]
    #[case(&["deflate"], Ok(Packing::Deflate))]
    #[case(&["identity"], Ok(Packing::Plain))]
    #[case(&[], Ok(Packing::Plain))]
    #[case(&["br"], Err("br".to_owned()))]
    #[case(&["gzip, gzip"], Err("gzip, gzip".to_owned()))]
    #[case(&["gzip", "gzip"], Err("several at once".to_owned()))]
    fn a_packing_is_read(#[case] values: &[&'static str], #[case] expected: Result<Packing, String>) {
        let pairs: Vec<_> = values.iter().map(|value| (CONTENT_ENCODING, *value)).collect();
        assert_eq!(Packing::of(&headers(&pairs)), expected);
    }
}
