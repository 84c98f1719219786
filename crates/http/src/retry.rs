//! Decides whether and when to retry a request.

use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};
use tracing::debug;

/// Maximum wait that a server may request; beyond it the request fails.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(2);

/// Maximum wait without a request of the server.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// The kind of a failure, which determines whether to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryClass {
    /// A retry would fail again.
    Permanent,
    /// Connection failure or server error.
    Transient { retry_after: Option<Duration> },
    /// Too many requests.
    RateLimited { retry_after: Option<Duration> },
}

impl RetryClass {
    /// A connection that failed or was interrupted.
    pub const UNREACHABLE: Self = Self::Transient { retry_after: None };

    /// Classifies a response by its status and `Retry-After`.
    pub fn of(response: &Response) -> Self {
        let retry_after = retry_after(response.headers());
        match response.status() {
            StatusCode::TOO_MANY_REQUESTS => Self::RateLimited { retry_after },
            status if status.is_server_error() => Self::Transient { retry_after },
            _ => Self::Permanent,
        }
    }

    fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Permanent => None,
            Self::Transient { retry_after } | Self::RateLimited { retry_after } => retry_after,
        }
    }
}

/// How often and how fast to retry a request.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    pub max_retries: u32,
    /// The wait before the first retry, doubled for each further one, unless the server sends `Retry-After`.
    pub first_delay: Duration,
}

impl RetryPolicy {
    /// Allows this many retries with the default delays.
    pub fn new(max_retries: u32) -> Self {
        Self { max_retries, first_delay: Duration::from_millis(500) }
    }
}

/// The reason to stop retrying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUp {
    Permanent,
    /// The server requests a wait beyond the maximum.
    TooLong {
        retry_after: Duration,
    },
    Exhausted {
        attempts: u32,
    },
}

/// The retries of one request.
#[derive(Debug)]
pub struct Retry {
    max_retries: u32,
    retries_left: u32,
    attempts: u32,
    delays: ExponentialBackoff,
}

impl Retry {
    pub fn new(policy: RetryPolicy) -> Self {
        let delays = ExponentialBuilder::default()
            .with_min_delay(policy.first_delay)
            .with_max_delay(MAX_BACKOFF)
            .with_jitter()
            .without_max_times()
            .build();
        Self { max_retries: policy.max_retries, retries_left: policy.max_retries, attempts: 0, delays }
    }

    /// Returns the wait before the next attempt, after a failed one.
    ///
    /// If `counts` is false, the failure uses up no retry, as long as retries are enabled.
    pub fn next_delay(&mut self, class: RetryClass, counts: bool) -> Result<Duration, GiveUp> {
        let next = self.decide(class, counts);
        match &next {
            Ok(delay) => debug!(attempt = self.attempts, ?class, ?delay, "retrying"),
            Err(reason) => debug!(attempt = self.attempts, ?class, ?reason, "not retrying"),
        }
        next
    }

    fn decide(&mut self, class: RetryClass, counts: bool) -> Result<Duration, GiveUp> {
        if class == RetryClass::Permanent {
            return Err(GiveUp::Permanent);
        }
        let retry_after = class.retry_after();
        if let Some(retry_after) = retry_after.filter(|wait| !Self::accepts(*wait)) {
            return Err(GiveUp::TooLong { retry_after });
        }
        self.attempts += 1;
        if self.max_retries == 0 || counts && self.retries_left == 0 {
            return Err(GiveUp::Exhausted { attempts: self.attempts });
        }
        self.retries_left -= u32::from(counts);
        let backoff = self.delays.next().unwrap_or(MAX_BACKOFF);
        Ok(match retry_after {
            None => backoff,
            // A short `Retry-After` is honoured the first time; later there is a minimum wait.
            Some(wait) if self.attempts == 1 => wait,
            Some(wait) => wait.max(backoff / 4),
        })
    }

    /// Whether a wait requested by a server is within the maximum.
    pub fn accepts(retry_after: Duration) -> bool {
        retry_after <= MAX_RETRY_AFTER
    }
}

/// Parses `Retry-After` in seconds or as a date, or the non-standard `retry-after-ms`.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let text = text("retry-after")?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let now = headers
        .get("date")
        .and_then(|date| date.to_str().ok())
        .and_then(|date| jiff::fmt::rfc2822::parse(date).ok())
        .map(|date| date.timestamp())
        // Use the real clock: waits do not affect results.
        .or_else(|| jiff::Timestamp::try_from(SystemTime::now()).ok())?;
    Some(Duration::try_from(until - now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[("retry-after", "2")], Some(2_000))]
    #[case(&[("retry-after", " 0.5 ")], Some(500))]
    #[case(&[("retry-after-ms", "20"), ("retry-after", "9")], Some(20))]
    #[case(&[("retry-after", "Wed, 21 Oct 2015 07:28:07 GMT"), ("date", "Wed, 21 Oct 2015 07:28:00 GMT")], Some(7_000))]
    #[case(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], Some(0))]
    #[case(&[("retry-after", "-3")], None)]
    #[case(&[("retry-after", "soon")], None)]
    #[case(&[], None)]
    fn parses_retry_after(#[case] headers: &[(&'static str, &'static str)], #[case] millis: Option<u64>) {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let headers: HeaderMap = headers.iter().map(header).collect();
        assert_eq!(retry_after(&headers), millis.map(Duration::from_millis));
    }

    #[test]
    fn counts_retries() {
        let mut retry = Retry::new(RetryPolicy::new(2));
        for _ in 0..2 {
            assert!(retry.next_delay(RetryClass::UNREACHABLE, true).is_ok());
            assert!(retry.next_delay(RetryClass::RateLimited { retry_after: None }, false).is_ok());
        }
        assert_eq!(retry.next_delay(RetryClass::UNREACHABLE, true), Err(GiveUp::Exhausted { attempts: 5 }));
        let mut none = Retry::new(RetryPolicy::new(0));
        let limited = RetryClass::RateLimited { retry_after: None };
        assert_eq!(none.next_delay(limited, false), Err(GiveUp::Exhausted { attempts: 1 }));
        assert_eq!(retry.next_delay(RetryClass::Permanent, true), Err(GiveUp::Permanent));
    }

    #[test]
    fn delays_double_up_to_a_limit() {
        let mut retry = Retry::new(RetryPolicy::new(100));
        let delays: Vec<Duration> =
            (0..20).map(|_| retry.next_delay(RetryClass::UNREACHABLE, true).expect("retries left")).collect();
        assert!((500..=1_000).contains(&delays[0].as_millis()), "{delays:?}");
        assert!((1_000..=2_000).contains(&delays[1].as_millis()), "{delays:?}");
        assert!(delays[19] >= MAX_BACKOFF && delays[19] <= 2 * MAX_BACKOFF, "{delays:?}");
    }

    #[test]
    fn honours_retry_after() {
        let after = |millis| RetryClass::Transient { retry_after: Some(Duration::from_millis(millis)) };
        let mut retry = Retry::new(RetryPolicy::new(10));
        assert_eq!(retry.next_delay(after(0), true), Ok(Duration::ZERO));
        assert!(retry.next_delay(after(0), true).expect("retries left") >= Duration::from_millis(250));
        assert_eq!(retry.next_delay(after(60_000), true), Ok(Duration::from_mins(1)));
        let too_long = GiveUp::TooLong { retry_after: Duration::from_secs(121) };
        assert_eq!(retry.next_delay(after(121_000), true), Err(too_long));
    }
}
