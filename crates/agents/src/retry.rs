//! Retries a call, subject to the throttle.

use std::sync::Arc;
use std::time::Duration;

use karat_core::port::{AgentError, WaitGuard, WaitObserver};
use karat_http::{BodyError, Error, GiveUp, Retry, RetryClass, RetryPolicy, Throttle, error_chain};
use tokio::time::Instant;

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) struct AttemptError {
    pub(crate) message: String,
    pub(crate) class: RetryClass,
    /// Total time of all attempts, without the delays between them.
    pub(crate) elapsed: Duration,
    /// Number of attempts in a row, up to the last, that got no connection.
    pub(crate) connection_failures: u32,
}

impl AttemptError {
    pub(crate) fn new(message: impl Into<String>, class: RetryClass) -> Self {
        Self { message: message.into(), class, elapsed: Duration::ZERO, connection_failures: 0 }
    }

    pub(crate) fn permanent(message: impl Into<String>) -> Self {
        Self::new(message, RetryClass::Permanent)
    }

    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::new(message, RetryClass::UNREACHABLE)
    }

    /// A request without a response from `target`.
    pub(crate) fn not_sent(target: &str, error: Error) -> Self {
        let connection_failures = u32::from(error.is_connect());
        Self { connection_failures, ..Self::unreachable(format!("cannot reach {target}: {}", error_chain(error))) }
    }
}

impl From<BodyError> for AttemptError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge { .. } => Self::permanent(format!("{error} ('maxResponseBytes')")),
            BodyError::Interrupted(message) => Self::unreachable(message),
        }
    }
}

impl From<AttemptError> for AgentError {
    fn from(error: AttemptError) -> Self {
        match error.connection_failures {
            0 => Self::new(error.message, error.elapsed),
            attempts => Self::unreachable(error.message, error.elapsed, attempts),
        }
    }
}

/// Retries an attempt until it succeeds, fails permanently or exhausts its retries.
///
/// A rate limit does not count as a failed attempt while other calls are running or succeeding, since it affects all
/// calls of the provider.
pub(crate) async fn retry<T, F: Future<Output = Result<T, AttemptError>>>(
    policy: RetryPolicy,
    throttle: &Arc<Throttle>,
    wait_observer: &dyn WaitObserver,
    attempt: impl Fn() -> F,
) -> Result<T, AttemptError> {
    let call = throttle.enter();
    let mut answered_before = None;
    let mut retry = Retry::new(policy);
    let mut elapsed = Duration::ZERO;
    let mut connection_failures = 0;
    loop {
        let wait = WaitGuard::begin(wait_observer);
        let permit = call.permit().await;
        drop(wait);
        let answered_now = permit.answered_before();
        let start = Instant::now();
        let error = match attempt().await {
            Ok(value) => {
                permit.answered();
                return Ok(value);
            }
            Err(error) => error,
        };
        elapsed += start.elapsed();
        connection_failures = if error.connection_failures == 0 { 0 } else { connection_failures + 1 };
        let error = AttemptError { elapsed, connection_failures, ..error };
        let counts_as_attempt = match error.class {
            RetryClass::RateLimited { retry_after } => {
                let shared = retry_after.filter(|wait| Retry::accepts(*wait));
                !permit.rate_limited(answered_before.unwrap_or(answered_now), shared)
            }
            RetryClass::Permanent | RetryClass::Transient { .. } => {
                drop(permit);
                true
            }
        };
        answered_before = Some(answered_now);
        let delay =
            retry.next_delay(error.class, counts_as_attempt).map_err(|reason| add_give_up_reason(error, reason))?;
        let wait = WaitGuard::begin(wait_observer);
        tokio::time::sleep(delay).await;
        drop(wait);
    }
}

/// Adds the reason for giving up to an error message, unless it is obvious.
fn add_give_up_reason(error: AttemptError, reason: GiveUp) -> AttemptError {
    let message = match reason {
        GiveUp::Permanent | GiveUp::Exhausted { attempts: 1 } => return error,
        GiveUp::TooLong { retry_after } => {
            format!("{} (retry-after of {} s is too long)", error.message, retry_after.as_secs())
        }
        GiveUp::Exhausted { attempts } => format!("{} (tried {attempts} times)", error.message),
    };
    AttemptError { message, ..error }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use karat_core::port::{AgentErrorCause, IgnoreWaits};

    use super::*;

    async fn run_attempts(max_retries: u32, classes: &[RetryClass]) -> (Result<(), String>, usize, Duration) {
        let throttle = Arc::new(Throttle::new(1, None));
        let attempts = Cell::new(0);
        let start = Instant::now();
        let attempt = || {
            let class = classes.get(attempts.get()).copied();
            attempts.set(attempts.get() + 1);
            std::future::ready(class.map_or(Ok(()), |class| Err(AttemptError::new("no", class))))
        };
        let result = retry(RetryPolicy::new(max_retries), &throttle, &IgnoreWaits, attempt).await;
        (result.map_err(|error| error.message), attempts.get(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn retries_up_to_the_maximum() {
        let transient = RetryClass::UNREACHABLE;
        assert_eq!(run_attempts(2, &[transient; 2]).await.1, 3);
        let (result, attempts, waited) = run_attempts(2, &[transient; 3]).await;
        assert_eq!((result, attempts), (Err("no (tried 3 times)".to_owned()), 3));
        assert!(waited >= Duration::from_millis(1_500), "{waited:?}");
        assert_eq!(run_attempts(0, &[transient]).await.0, Err("no".to_owned()));
        assert_eq!(run_attempts(5, &[RetryClass::Permanent]).await.1, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn counts_connection_failures_in_a_row() {
        let throttle = Arc::new(Throttle::new(1, None));
        for (failures, expected) in [([1, 1, 1], 3), ([1, 0, 1], 1), ([1, 1, 0], 0)] {
            let attempts = Cell::new(0);
            let attempt = || {
                let connection_failures = failures[attempts.get()];
                attempts.set(attempts.get() + 1);
                let error = AttemptError { connection_failures, ..AttemptError::unreachable("no") };
                std::future::ready(Err::<(), _>(error))
            };
            let error = retry(RetryPolicy::new(2), &throttle, &IgnoreWaits, attempt).await.unwrap_err();
            assert_eq!(error.connection_failures, expected);
            let cause = AgentError::from(error).cause;
            assert_eq!(matches!(cause, AgentErrorCause::Unreachable { .. }), expected > 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn honours_retry_after_unless_it_is_too_long() {
        let limited = |seconds| RetryClass::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
        let (result, attempts, waited) = run_attempts(2, &[limited(7)]).await;
        assert_eq!((result, attempts), (Ok(()), 2));
        assert!((7_000..7_010).contains(&waited.as_millis()), "{waited:?}");
        let (result, attempts, _) = run_attempts(2, &[limited(3_600)]).await;
        assert_eq!(attempts, 1);
        assert_eq!(result, Err("no (retry-after of 3600 s is too long)".to_owned()));
    }
}
