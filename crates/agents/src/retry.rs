//! Whether and when a call is tried again.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBuilder};
use karat_core::port::{Wait, Waiting};
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};
use tokio::time::Instant;

use crate::throttle::Throttle;
use crate::wire::BodyError;

/// A longer wait than this is not worth it: the case is told instead.
const LONGEST_PAUSE: Duration = Duration::from_mins(2);

/// Why a try failed.
#[derive(Debug)]
pub(crate) struct TryError {
    pub(crate) message: String,
    pub(crate) kind: Trouble,
    /// How long all tries took, without the waits between them.
    pub(crate) elapsed: Duration,
}

/// What kind of failure it was, which decides whether another try may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The same would happen again.
    Lasting,
    /// No connection, or the server broke down.
    Passing { pause: Option<Duration> },
    /// The server was asked too much.
    Haste { pause: Option<Duration> },
}

impl TryError {
    pub(crate) fn new(message: impl Into<String>, kind: Trouble) -> Self {
        Self { message: message.into(), kind, elapsed: Duration::ZERO }
    }

    pub(crate) fn lasting(message: impl Into<String>) -> Self {
        Self::new(message, Trouble::Lasting)
    }

    pub(crate) fn unreached(message: String) -> Self {
        Self::new(message, Trouble::Passing { pause: None })
    }
}

impl From<BodyError> for TryError {
    fn from(error: BodyError) -> Self {
        let message = error.to_string();
        match error {
            BodyError::TooLarge(_) => Self::lasting(message),
            BodyError::Broken(_) => Self::unreached(message),
        }
    }
}

impl Trouble {
    /// Reads a reply that is not a good one.
    pub(crate) fn of(response: &Response) -> Self {
        let pause = asked_pause(response.headers());
        match response.status() {
            StatusCode::TOO_MANY_REQUESTS => Self::Haste { pause },
            status if status.is_server_error() => Self::Passing { pause },
            _ => Self::Lasting,
        }
    }
}

/// How often a call is tried again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retries {
    pub(crate) most: u32,
}

impl Retries {
    /// Tries until it works, until another try would not help, or until there were enough.
    ///
    /// Refusals for haste do not count while other calls are under way or get their answers: they slow us down, but say
    /// nothing of this call.
    pub(crate) async fn run<T, F: Future<Output = Result<T, TryError>>>(
        self,
        throttle: &Arc<Throttle>,
        waiting: &dyn Waiting,
        attempt: impl Fn() -> F,
    ) -> Result<T, TryError> {
        let turn = throttle.turn();
        let mut answered_before = None;
        let mut pauses = backoff();
        let mut left = self.most;
        let mut tries = 0;
        let mut elapsed = Duration::ZERO;
        loop {
            let wait = Wait::begin(waiting);
            let begun = turn.begin().await;
            drop(wait);
            let answered = *answered_before.get_or_insert(begun.answered_before());
            let answered_now = begun.answered_before();
            let start = Instant::now();
            let error = match attempt().await {
                Ok(value) => {
                    begun.succeeded();
                    return Ok(value);
                }
                Err(error) => error,
            };
            elapsed += start.elapsed();
            let error = TryError { elapsed, ..error };
            let (pause, counts) = match error.kind {
                Trouble::Lasting => return Err(error),
                Trouble::Passing { pause } => {
                    drop(begun);
                    (pause, true)
                }
                Trouble::Haste { pause } => {
                    let shared = pause.filter(|pause| *pause <= LONGEST_PAUSE);
                    (pause, !begun.refused(answered, shared))
                }
            };
            if let Some(pause) = pause.filter(|pause| *pause > LONGEST_PAUSE) {
                let message = format!("{} (asked to wait for {} s, which is too long)", error.message, pause.as_secs());
                return Err(TryError { message, ..error });
            }
            tries += 1;
            if self.most == 0 || counts && left == 0 {
                let message =
                    if tries == 1 { error.message } else { format!("{} (tried {tries} times)", error.message) };
                return Err(TryError { message, ..error });
            }
            left -= u32::from(counts);
            answered_before = Some(answered_now);
            let own = pauses.next().unwrap_or(LONGEST_BACKOFF);
            let wait = Wait::begin(waiting);
            // Who says "at once" is taken at its word once; then there is a pause all the same.
            let pause = pause.map_or(own, |pause| if tries == 1 { pause } else { pause.max(own / 4) });
            tokio::time::sleep(pause).await;
            drop(wait);
        }
    }
}

const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

fn backoff() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(LONGEST_BACKOFF)
        .with_jitter()
        .without_max_times()
        .build()
}

/// Reads how long the server wants to be left alone.
fn asked_pause(headers: &HeaderMap) -> Option<Duration> {
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
        // A wait leaves no trace in what is written, so that the real clock may be asked.
        .or_else(|| jiff::Timestamp::try_from(SystemTime::now()).ok())?;
    Some(Duration::try_from(until - now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use karat_core::port::Unwatched;
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
    fn a_pause_is_read(#[case] headers: &[(&'static str, &'static str)], #[case] millis: Option<u64>) {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let headers: HeaderMap = headers.iter().map(header).collect();
        assert_eq!(asked_pause(&headers), millis.map(Duration::from_millis));
    }

    async fn tried(most: u32, kinds: &[Trouble]) -> (Result<(), String>, usize, Duration) {
        let throttle = Arc::new(Throttle::new(1, None));
        let tries = Cell::new(0);
        let start = Instant::now();
        let attempt = || {
            let kind = kinds.get(tries.get()).copied();
            tries.set(tries.get() + 1);
            std::future::ready(kind.map_or(Ok(()), |kind| Err(TryError::new("no", kind))))
        };
        let result = Retries { most }.run(&throttle, &Unwatched, attempt).await;
        (result.map_err(|error| error.message), tries.get(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn is_tried_again_as_often_as_allowed() {
        let passing = Trouble::Passing { pause: None };
        assert_eq!(tried(2, &[passing; 2]).await.1, 3);
        let (result, tries, waited) = tried(2, &[passing; 3]).await;
        assert_eq!((result, tries), (Err("no (tried 3 times)".to_owned()), 3));
        assert!(waited >= Duration::from_millis(1_500), "{waited:?}");
        assert_eq!(tried(0, &[passing]).await.0, Err("no".to_owned()));
        assert_eq!(tried(5, &[Trouble::Lasting]).await.1, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_is_asked_for_is_kept_unless_it_is_too_long() {
        let asked = |seconds| Trouble::Haste { pause: Some(Duration::from_secs(seconds)) };
        let (result, tries, waited) = tried(2, &[asked(7)]).await;
        assert_eq!((result, tries), (Ok(()), 2));
        assert!((7_000..7_010).contains(&waited.as_millis()), "{waited:?}");
        let (result, tries, _) = tried(2, &[asked(3_600)]).await;
        assert_eq!(tries, 1);
        assert_eq!(result, Err("no (asked to wait for 3600 s, which is too long)".to_owned()));
    }
}
