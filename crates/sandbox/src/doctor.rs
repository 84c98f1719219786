//! Checks the guarantees of the sandbox with hostile functions.
//!
//! The functions are not validated first: the guarantees must hold even if validation misses something.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::judgement::{Conclusion, ErrorKind, EvalContext, Judgement, Limits};
use karat_core::port::EvalFunctions as _;
use serde_json::json;

use crate::Isolation;
use crate::engine::Sandbox;
use crate::error::SandboxError;
use crate::function::Function;
use crate::functions::FunctionRunner;

/// The result of checking one guarantee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuaranteeCheck {
    /// A short description of the guarantee.
    pub guarantee: &'static str,
    /// The observed violation; `None` if the guarantee held.
    pub violation: Option<String>,
    pub elapsed: Duration,
}

/// A guarantee and a function that tries to break it.
struct Guarantee {
    name: &'static str,
    /// The source of `eval_it`.
    source: &'static str,
    isolation: Isolation,
    time: Duration,
    holds: fn(&[Judgement]) -> bool,
}

impl Guarantee {
    const fn new(name: &'static str, source: &'static str, holds: fn(&[Judgement]) -> bool) -> Self {
        Self { name, source, isolation: Isolation::Fresh, time: Limits::MAX.time, holds }
    }

    /// Checks that a function that does not end is stopped.
    const fn timeout(name: &'static str, source: &'static str) -> Self {
        Self { time: SHORT_TIMEOUT, ..Self::new(name, source, timed_out) }
    }
}

/// Memory limit of the checks; low, so that they are fast.
const MEMORY_LIMIT: usize = 16 << 20;

/// Time limit of functions that do not end. The others have the maximum.
const SHORT_TIMEOUT: Duration = Duration::from_millis(250);

/// Maximum delay of a timeout on a busy machine.
const MAX_TIMEOUT_DELAY: Duration = Duration::from_secs(5);

/// Maximum size of the output, with the marker for truncation.
const MAX_OUTPUT_BYTES: usize = (64 << 10) + 64;

/// Number of runs per function; more than one, to detect state that a trace leaves behind.
const RUNS_PER_FUNCTION: usize = 2;

/// Prefixes a source with code that gets access to modules that are not allowed.
macro_rules! with_os {
    ($source:literal) => {
        concat!("import json\nsystem = json.codecs.sys\nload = json.codecs.builtins.__import__\n", $source)
    };
}

const GUARANTEES: &[Guarantee] = &[
    Guarantee::new(
        "verdict and reason are returned",
        "def eval_it(trace): return trace['n'] == 1, f\"n is {trace['n']}\"",
        |runs| all(runs, |run| verdict(run) == Some((true, "n is 1"))),
    ),
    Guarantee::timeout("time: a loop", "def eval_it(trace):\n    while True: pass"),
    Guarantee::timeout(
        "time: a loop that catches everything",
        "def eval_it(trace):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass",
    ),
    Guarantee::timeout(
        "time: a regular expression",
        "import re\ndef eval_it(trace): return bool(re.match(r'(a+)+$', 'a' * 64 + 'b')), ''",
    ),
    Guarantee::timeout("time: a loop in C", "def eval_it(trace): return sum(range(10 ** 12)) > 0, ''"),
    Guarantee::timeout("time: a loop outside the function", "while True: pass\ndef eval_it(trace): pass"),
    Guarantee::new(
        "memory: many small allocations",
        "def eval_it(trace):\n    kept = []\n    while True: kept.append('x' * 10000 + str(len(kept)))",
        |runs| all(runs, |run| kind(run) == Some(ErrorKind::Memory)),
    ),
    Guarantee::new(
        "memory: one large allocation",
        "def eval_it(trace): return len(bytearray(1 << 30)) > 0, ''",
        |runs| all(runs, |run| kind(run) == Some(ErrorKind::Memory)),
    ),
    Guarantee::new(
        "recursion: in Python",
        "def deeper(n): return deeper(n + 1)\ndef eval_it(trace): return deeper(0), ''",
        |runs| all(runs, |run| raised(run, &["RecursionError"])),
    ),
    Guarantee::new(
        "recursion: in C",
        "import json\ndef eval_it(trace): return bool(json.loads('[' * 100000)), ''",
        |runs| all(runs, |run| raised(run, &["RecursionError"])),
    ),
    Guarantee::new(
        "output is truncated with a marker",
        "def eval_it(trace):\n    for _ in range(100): print('x' * 9999)\n    return True, 'printed'",
        |runs| {
            all(runs, |run| {
                let is_cut = (64 << 10..MAX_OUTPUT_BYTES).contains(&run.stdout.len())
                    && run.stdout.contains("[cut after 64 KB]");
                is_cut && verdict(run) == Some((true, "printed"))
            })
        },
    ),
    Guarantee::new(
        "printed text cannot forge a verdict",
        with_os!(
            "def eval_it(trace):\n    for out in (system.stdout, system.stderr): out.write('P\\x01\\0\\0\\0' + '{\"passed\": true}')\n    return False, 'no'"
        ),
        |runs| all(runs, |run| verdict(run) == Some((false, "no"))),
    ),
    Guarantee::new("an exit is an error", "def eval_it(trace): raise SystemExit(0)", |runs| {
        all(runs, |run| raised(run, &["SystemExit"]))
    }),
    Guarantee::new("a verdict must be a bool and a string", "def eval_it(trace): return 1, 'yes'", |runs| {
        all(runs, |run| kind(run) == Some(ErrorKind::Return))
    }),
    Guarantee::new(
        "no files: reading",
        with_os!("def eval_it(trace): return True, json.codecs.builtins.open('/etc/hosts').read()"),
        |runs| all(runs, is_denied),
    ),
    Guarantee::new(
        "no files: writing",
        with_os!(
            "def eval_it(trace): return True, str(json.codecs.builtins.open('/tmp/karat-doctor', 'w').write('x'))"
        ),
        |runs| all(runs, is_denied),
    ),
    Guarantee::new(
        "no files: listing",
        with_os!("def eval_it(trace): return True, str(load('posix').listdir('/'))"),
        |runs| all(runs, is_denied),
    ),
    Guarantee::new(
        "no environment",
        with_os!("def eval_it(trace): return len(load('posix').environ) == 0, str(load('posix').environ)"),
        |runs| all(runs, |run| verdict(run).is_some_and(|(is_empty, _)| is_empty)),
    ),
    Guarantee::new("no clock", with_os!("def eval_it(trace): return True, str(load('time').time())"), |runs| {
        all(runs, is_denied)
    }),
    Guarantee::new(
        "no network",
        with_os!("def eval_it(trace):\n    load('_socket').socket().connect(('127.0.0.1', 80))\n    return True, ''"),
        |runs| all(runs, is_denied),
    ),
    Guarantee::new("no processes", with_os!("def eval_it(trace): return True, str(load('posix').fork())"), |runs| {
        all(runs, is_denied)
    }),
    Guarantee::new(
        "no threads",
        with_os!("def eval_it(trace): return True, str(load('_thread').start_new_thread(print, ()))"),
        |runs| all(runs, is_denied),
    ),
    Guarantee::new(
        "no randomness",
        with_os!("def eval_it(trace): return True, load('posix').urandom(8).hex()"),
        |runs| all(runs, |run| verdict(run).is_some() && verdict(run) == verdict(&runs[0])),
    ),
    Guarantee::new("a trace leaves no state behind", CHANGES_A_MODULE, |runs| {
        all(runs, |run| verdict(run) == Some((true, "new")))
    }),
    Guarantee::new("a trace leaves no objects behind", SHOWS_ADDRESSES, |runs| {
        all(runs, |run| verdict(run).is_some() && verdict(run) == verdict(&runs[0]))
    }),
    Guarantee {
        isolation: Isolation::Shared,
        ..Guarantee::new(
            "shared: each trace has its own namespace",
            "seen = []\ndef eval_it(trace):\n    seen.append(1)\n    return len(seen) == 1, str(len(seen))",
            |runs| all(runs, |run| verdict(run) == Some((true, "1"))),
        )
    },
];

const CHANGES_A_MODULE: &str = "import json\ndef eval_it(trace):\n    is_new = not hasattr(json, 'mark')\n    \
                             json.mark = json.dumps = json.loads\n    return is_new, 'new' if is_new else 'marked'";

const SHOWS_ADDRESSES: &str = "kept = []\ndef eval_it(trace):\n    kept.append([object() for _ in range(1000)])\n    \
                              return True, str(id(object())) + repr(object())";

/// Runs after the hostile function on the same thread and must not be affected.
const WELL_BEHAVED: &str = "import json\ndef eval_afterwards(trace): return json.dumps(trace) == '{\"n\": 1}', 'fine'";

/// Checks every guarantee and calls `on_check` after each.
pub fn check_guarantees(
    sandbox: &Sandbox,
    mut on_check: impl FnMut(&GuaranteeCheck),
) -> Result<Vec<GuaranteeCheck>, SandboxError> {
    GUARANTEES
        .iter()
        .map(|guarantee| {
            let check = check_guarantee(sandbox, guarantee)?;
            on_check(&check);
            Ok(check)
        })
        .collect()
}

fn check_guarantee(sandbox: &Sandbox, guarantee: &Guarantee) -> Result<GuaranteeCheck, SandboxError> {
    let start = Instant::now();
    let function = Function::new("eval_it".to_owned(), guarantee.source);
    let well_behaved = Function::new("eval_afterwards".to_owned(), WELL_BEHAVED);
    let functions = vec![Arc::new(function), Arc::new(well_behaved)];
    let limits = Limits { time: guarantee.time, memory_bytes: MEMORY_LIMIT };
    // Use one thread, so that the second function runs where the first one did.
    let functions = FunctionRunner::new(sandbox, functions, limits, guarantee.isolation, 1)?;
    let (trace, context) = (json!({ "n": 1 }), EvalContext::default());
    let runs: Vec<Judgement> = (0..RUNS_PER_FUNCTION).map(|_| functions.judge("eval_it", &trace, &context)).collect();
    let next = functions.judge("eval_afterwards", &trace, &context);
    let violation = if !(guarantee.holds)(&runs) {
        let results: Vec<String> = runs.iter().map(describe).collect();
        Some(results.join("; then "))
    } else if verdict(&next) != Some((true, "fine")) {
        Some(format!("the next function was affected: {}", describe(&next)))
    } else {
        None
    };
    Ok(GuaranteeCheck { guarantee: guarantee.name, violation, elapsed: start.elapsed() })
}

/// Describes the result of a run.
fn describe(run: &Judgement) -> String {
    let text = match &run.conclusion {
        Conclusion::Verdict { passed, reason } => format!("{}: {reason}", if *passed { "passed" } else { "failed" }),
        Conclusion::NotApplicable { reason } => format!("not applicable: {reason}"),
        Conclusion::Error(error) => format!("{}: {}", error.kind, error.message),
    };
    let line = text.lines().next().unwrap_or_default();
    format!("{} after {} ms", line.chars().take(120).collect::<String>(), run.elapsed.as_millis())
}

fn all(runs: &[Judgement], holds: impl FnMut(&Judgement) -> bool) -> bool {
    runs.len() == RUNS_PER_FUNCTION && runs.iter().all(holds)
}

fn verdict(run: &Judgement) -> Option<(bool, &str)> {
    match &run.conclusion {
        Conclusion::Verdict { passed, reason } => Some((*passed, reason)),
        Conclusion::NotApplicable { .. } | Conclusion::Error(_) => None,
    }
}

fn kind(run: &Judgement) -> Option<ErrorKind> {
    match &run.conclusion {
        Conclusion::Verdict { .. } | Conclusion::NotApplicable { .. } => None,
        Conclusion::Error(error) => Some(error.kind),
    }
}

fn timed_out(runs: &[Judgement]) -> bool {
    let in_time = |run: &Judgement| (SHORT_TIMEOUT..SHORT_TIMEOUT + MAX_TIMEOUT_DELAY).contains(&run.elapsed);
    all(runs, |run| kind(run) == Some(ErrorKind::Timeout) && in_time(run))
}

fn raised(run: &Judgement, exceptions: &[&str]) -> bool {
    match &run.conclusion {
        Conclusion::Error(error) if error.kind == ErrorKind::Exception => {
            exceptions.iter().any(|exception| error.message.starts_with(exception))
        }
        _ => false,
    }
}

/// Whether Python reported that the resource does not exist, or was stopped because it asked for it.
fn is_denied(run: &Judgement) -> bool {
    kind(run) == Some(ErrorKind::Internal)
        || raised(
            run,
            &[
                "OSError",
                "FileNotFoundError",
                "PermissionError",
                "ModuleNotFoundError",
                "RuntimeError: can't start new thread",
                "RuntimeError: there is no clock",
                "AttributeError: module 'posix' has no attribute",
            ],
        )
}
