//! Encoding and compression of requests.

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};

/// The encoding of a request and its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Protobuf,
    Json,
}

impl Encoding {
    /// Reads the `Content-Type`; the error is the name of an unsupported type.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Self, String> {
        let content_type = headers.get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or("?"));
        let essence = content_type.split(';').next().unwrap_or_default().trim();
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

/// The compression of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    /// With a zlib header.
    Deflate,
}

impl Compression {
    /// Reads the `Content-Encoding`; the error is the name of an unsupported compression.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Self, String> {
        let mut values = headers.get_all(CONTENT_ENCODING).iter();
        let name = values.next().map_or("", |value| value.to_str().unwrap_or("?")).trim();
        if values.next().is_some() {
            return Err("multiple values".to_owned());
        }
        match name.to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::None),
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
    fn reads_content_types(#[case] value: &'static str, #[case] expected: Result<Encoding, String>) {
        assert_eq!(Encoding::from_headers(&headers(&[(CONTENT_TYPE, value)])), expected);
    }

    #[test]
    fn a_missing_content_type_is_an_error() {
        assert_eq!(Encoding::from_headers(&HeaderMap::new()), Err(String::new()));
    }

    #[rstest]
    #[case(&["GZIP"], Ok(Compression::Gzip))]
    #[case(&["deflate"], Ok(Compression::Deflate))]
    #[case(&["identity"], Ok(Compression::None))]
    #[case(&[], Ok(Compression::None))]
    #[case(&["br"], Err("br".to_owned()))]
    #[case(&["gzip, gzip"], Err("gzip, gzip".to_owned()))]
    #[case(&["gzip", "gzip"], Err("multiple values".to_owned()))]
    fn reads_content_encodings(#[case] values: &[&'static str], #[case] expected: Result<Compression, String>) {
        let pairs: Vec<_> = values.iter().map(|value| (CONTENT_ENCODING, *value)).collect();
        assert_eq!(Compression::from_headers(&headers(&pairs)), expected);
    }
}
