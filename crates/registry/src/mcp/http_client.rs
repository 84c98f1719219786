//! The HTTP client of the streamable HTTP transport. The client of the protocol library reads replies of any size.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use karat_http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use karat_http::{BodyError, Client, Response, StatusCode, read_body};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::message_limit::{MAX_MESSAGE_BYTES, MessageLimit};

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

/// The headers that the transport sets.
const RESERVED_HEADERS: [&str; 3] = ["accept", SESSION_ID, LAST_EVENT_ID];

/// Maximum length of the part of an unexpected reply that an error quotes, in characters.
const MAX_QUOTED_CHARS: usize = 300;

type Failure = StreamableHttpError<karat_http::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// A client that refuses replies above the size limit of messages.
#[derive(Debug, Clone)]
pub(super) struct LimitedClient(pub(super) Client);

impl StreamableHttpClient for LimitedClient {
    type Error = karat_http::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut request = self.0.post(uri.as_ref()).header(ACCEPT, format!("{EVENT_STREAM}, {JSON}"));
        for (name, value) in custom_headers {
            if RESERVED_HEADERS.contains(&name.as_str()) {
                return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        if let Some(token) = auth_header {
            request = request.bearer_auth(token);
        }
        if let Some(session_id) = &session_id {
            request = request.header(SESSION_ID, session_id.as_ref());
        }
        let response = request.json(&message).send().await.map_err(StreamableHttpError::Client)?;
        let has_session = session_id.is_some();
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if has_session => Err(StreamableHttpError::SessionExpired),
            status if status.is_success() => read_reply(response, &message).await,
            _ => read_refusal(response, &message, has_session).await,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failure> {
        self.0.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, Failure> {
        // The library limits the size of each event.
        let max_bytes = MAX_MESSAGE_BYTES;
        self.0
            .get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, custom_headers, max_bytes)
            .await
    }
}

/// Reads the reply of a request that succeeded.
async fn read_reply(response: Response, message: &ClientJsonRpcMessage) -> Result<StreamableHttpPostResponse, Failure> {
    let content_type = header(&response, CONTENT_TYPE);
    let session_id = header(&response, HeaderName::from_static(SESSION_ID));
    let has_type = |expected: &str| content_type.as_deref().is_some_and(|actual| actual.starts_with(expected));
    if has_type(EVENT_STREAM) {
        return Ok(StreamableHttpPostResponse::Sse(events(response), session_id));
    }
    // Nothing waits for a reply to other messages.
    let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
    if !is_request && !has_type(JSON) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if !has_type(JSON) {
        return Err(StreamableHttpError::UnexpectedContentType(content_type));
    }
    let body = body(response).await?;
    match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(reply) => Ok(StreamableHttpPostResponse::Json(reply, session_id)),
        Err(_) if !is_request => Ok(StreamableHttpPostResponse::Accepted),
        Err(error) => Err(unexpected(format!("the reply is not a JSON-RPC message ({error}): {}", quoted(&body)))),
    }
}

/// Reads the reply of a request that failed. It may contain the reason as a message.
async fn read_refusal(
    response: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, Failure> {
    let status = response.status();
    let retry_after = header(&response, RETRY_AFTER);
    let session_id = header(&response, HeaderName::from_static(SESSION_ID));
    let body = body(response).await?;
    let reason = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    // A server of an older protocol version may refuse this request in any way; the handshake then falls back.
    if let Some(id) = discovery_id(message)
        && !has_session
        && status.is_client_error()
        && !is_denied
    {
        let error = reason.map_or_else(
            || ErrorData::invalid_request(format!("HTTP {status}: {}", quoted(&body)), None),
            |reason| reason.error,
        );
        return Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(id)), None));
    }
    match reason {
        Some(reason) if !is_denied && status != StatusCode::TOO_MANY_REQUESTS => {
            Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(reason), session_id))
        }
        _ if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
            Err(HttpStatusError::new(status.as_u16(), retry_after).into())
        }
        _ => Err(unexpected(format!("HTTP {status}: {}", quoted(&body)))),
    }
}

/// Returns the id of the request that asks for the server's protocol versions.
fn discovery_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => {
            matches!(request.request, ClientRequest::DiscoverRequest(_)).then(|| request.id.clone())
        }
        _ => None,
    }
}

async fn body(response: Response) -> Result<Vec<u8>, Failure> {
    read_body(response, MAX_MESSAGE_BYTES as u64).await.map_err(|error| {
        unexpected(match error {
            BodyError::TooLarge { .. } => format!("a message {}", MessageLimit::Size),
            BodyError::Interrupted(reason) => reason,
        })
    })
}

/// Returns the events of a reply, with a limit on its size.
fn events(response: Response) -> Events {
    let mut bytes = 0;
    let limited = response.bytes_stream().map_err(std::io::Error::other).map(move |chunk| {
        let chunk = chunk?;
        bytes += chunk.len();
        if bytes > MAX_MESSAGE_BYTES { Err(std::io::Error::other(MessageLimit::Size)) } else { Ok(chunk) }
    });
    SseStream::from_bytes_stream(limited).boxed()
}

fn header(response: &Response, name: HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn unexpected(message: String) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(message))
}

fn quoted(body: &[u8]) -> String {
    karat_json::text::shorten(String::from_utf8_lossy(body).trim(), MAX_QUOTED_CHARS).into_owned()
}
