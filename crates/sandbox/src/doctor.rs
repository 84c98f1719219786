//! Tries everything that the sandbox promises, for real.
//!
//! The functions here are what nobody should write. They are not validated first: what is tried is what holds when
//! validation misses something.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::judgement::{Conclusion, ErrorKind, Judgement, Limits};
use karat_core::port::EvalFunctions as _;
use serde_json::json;

use crate::Isolation;
use crate::engine::Sandbox;
use crate::error::SandboxError;
use crate::function::Function;
use crate::functions::Functions;

/// What came of trying one promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// What is promised, in a few words.
    pub promise: &'static str,
    /// What happened instead; none when the promise held.
    pub broken: Option<String>,
    pub elapsed: Duration,
}

/// A promise, and a function that would break it.
struct Promise {
    name: &'static str,
    /// The source of `eval_it`.
    source: &'static str,
    /// Whether Python stays as it is after a trace, which is what isolation is about.
    leaves_no_trace: bool,
    isolation: Isolation,
    holds: fn(&[Judgement]) -> bool,
}

impl Promise {
    const fn new(name: &'static str, source: &'static str, holds: fn(&[Judgement]) -> bool) -> Self {
        Self { name, source, leaves_no_trace: false, isolation: Isolation::Namespace, holds }
    }
}

/// What a function may use while it is tried: little, so that it does not take long.
const LIMITS: Limits = Limits { time: Duration::from_millis(250), memory_bytes: 16 << 20 };

/// The longest that a function may go on after its time on a machine that has much else to do.
const LATE: Duration = Duration::from_secs(5);

/// What is printed and not cut, with the words that say that it was.
const MOST_OUTPUT: usize = (64 << 10) + 64;

/// How often a function is run, so that what one trace leaves to the next shows.
const RUNS: usize = 2;

/// Stands before sources that want more than the three modules: this is how one gets at the others.
macro_rules! with_os {
    ($source:literal) => {
        concat!("import json\nsystem = json.codecs.sys\nload = json.codecs.builtins.__import__\n", $source)
    };
}

const PROMISES: &[Promise] = &[
    Promise::new(
        "verdict and reason arrive",
        "def eval_it(trace): return trace['n'] == 1, f\"n is {trace['n']}\"",
        |runs| all(runs, |run| verdict(run) == Some((true, "n is 1"))),
    ),
    Promise::new("time: a loop", "def eval_it(trace):\n    while True: pass", timed_out),
    Promise::new(
        "time: a loop that catches everything",
        "def eval_it(trace):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass",
        timed_out,
    ),
    Promise::new(
        "time: a regular expression",
        "import re\ndef eval_it(trace): return bool(re.match(r'(a+)+$', 'a' * 64 + 'b')), ''",
        timed_out,
    ),
    Promise::new("time: a loop in C", "def eval_it(trace): return sum(range(10 ** 12)) > 0, ''", timed_out),
    Promise::new("time: a loop outside of the function", "while True: pass\ndef eval_it(trace): pass", timed_out),
    Promise::new(
        "memory: many small pieces",
        "def eval_it(trace):\n    kept = []\n    while True: kept.append('x' * 10000 + str(len(kept)))",
        |runs| all(runs, |run| kind(run) == Some(ErrorKind::Memory)),
    ),
    Promise::new("memory: one large piece", "def eval_it(trace): return len(bytearray(1 << 30)) > 0, ''", |runs| {
        all(runs, |run| kind(run) == Some(ErrorKind::Memory))
    }),
    Promise::new(
        "recursion: in Python",
        "def deeper(n): return deeper(n + 1)\ndef eval_it(trace): return deeper(0), ''",
        |runs| all(runs, |run| raised(run, &["RecursionError"])),
    ),
    Promise::new(
        "recursion: in C",
        "import json\ndef eval_it(trace): return bool(json.loads('[' * 100000)), ''",
        |runs| all(runs, |run| raised(run, &["RecursionError"])),
    ),
    Promise::new(
        "output is cut, and says so",
        "def eval_it(trace):\n    for _ in range(100): print('x' * 9999)\n    return True, 'printed'",
        |runs| {
            all(runs, |run| {
                let is_cut =
                    (64 << 10..MOST_OUTPUT).contains(&run.stdout.len()) && run.stdout.contains("[cut after 64 KB]");
                is_cut && verdict(run) == Some((true, "printed"))
            })
        },
    ),
    Promise::new(
        "a verdict cannot be printed",
        with_os!(
            "def eval_it(trace):\n    for out in (system.stdout, system.stderr): out.write('P\\x01\\0\\0\\0' + '{\"passed\": true}')\n    return False, 'no'"
        ),
        |runs| all(runs, |run| verdict(run) == Some((false, "no"))),
    ),
    Promise::new("an exit is an error", "def eval_it(trace): raise SystemExit(0)", |runs| {
        all(runs, |run| raised(run, &["SystemExit"]))
    }),
    Promise::new("only a bool and a text are a verdict", "def eval_it(trace): return 1, 'yes'", |runs| {
        all(runs, |run| kind(run) == Some(ErrorKind::Return))
    }),
    Promise::new(
        "no files: reading",
        with_os!("def eval_it(trace): return True, json.codecs.builtins.open('/etc/hosts').read()"),
        |runs| all(runs, is_denied),
    ),
    Promise::new(
        "no files: writing",
        with_os!(
            "def eval_it(trace): return True, str(json.codecs.builtins.open('/tmp/karat-doctor', 'w').write('x'))"
        ),
        |runs| all(runs, is_denied),
    ),
    Promise::new(
        "no files: listing",
        with_os!("def eval_it(trace): return True, str(load('posix').listdir('/'))"),
        |runs| all(runs, is_denied),
    ),
    Promise::new(
        "no environment",
        with_os!("def eval_it(trace): return len(load('posix').environ) == 0, str(load('posix').environ)"),
        |runs| all(runs, |run| verdict(run).is_some_and(|(is_empty, _)| is_empty)),
    ),
    Promise::new("no clock", with_os!("def eval_it(trace): return True, str(load('time').time())"), |runs| {
        all(runs, is_denied)
    }),
    Promise::new(
        "no network",
        with_os!("def eval_it(trace):\n    load('_socket').socket().connect(('127.0.0.1', 80))\n    return True, ''"),
        |runs| all(runs, is_denied),
    ),
    Promise::new("no processes", with_os!("def eval_it(trace): return True, str(load('posix').fork())"), |runs| {
        all(runs, is_denied)
    }),
    Promise::new(
        "no threads",
        with_os!("def eval_it(trace): return True, str(load('_thread').start_new_thread(print, ()))"),
        |runs| all(runs, is_denied),
    ),
    Promise::new(
        "no randomness",
        with_os!("def eval_it(trace): return True, load('posix').urandom(8).hex()"),
        |runs| all(runs, |run| verdict(run).is_some() && verdict(run) == verdict(&runs[0])),
    ),
    Promise::new("a trace leaves nothing behind", LEAVES_A_MARK, |runs| {
        all(runs, |run| verdict(run) == Some((true, "new")))
    }),
    Promise {
        leaves_no_trace: true,
        ..Promise::new(
            "a trace has names of its own",
            "seen = []\ndef eval_it(trace):\n    seen.append(1)\n    return len(seen) == 1, str(len(seen))",
            |runs| all(runs, |run| verdict(run) == Some((true, "1"))),
        )
    },
    Promise {
        leaves_no_trace: true,
        isolation: Isolation::Strict,
        ..Promise::new("strict: a trace has a Python of its own", LEAVES_A_MARK, |runs| {
            all(runs, |run| verdict(run) == Some((true, "new")))
        })
    },
];

const LEAVES_A_MARK: &str = "import json\ndef eval_it(trace):\n    is_new = not hasattr(json, 'mark')\n    \
                             json.mark = json.dumps = json.loads\n    return is_new, 'new' if is_new else 'marked'";

/// What is run after everything else, in the same place: it must not have noticed.
const AFTERWARDS: &str = "import json\ndef eval_afterwards(trace): return json.dumps(trace) == '{\"n\": 1}', 'fine'";

/// Tries every promise, one after the other, and tells of each as soon as it is known.
pub fn try_promises(sandbox: &Sandbox, mut told: impl FnMut(&Trial)) -> Result<Vec<Trial>, SandboxError> {
    PROMISES
        .iter()
        .map(|promise| {
            let trial = try_one(sandbox, promise)?;
            told(&trial);
            Ok(trial)
        })
        .collect()
}

fn try_one(sandbox: &Sandbox, promise: &Promise) -> Result<Trial, SandboxError> {
    let start = Instant::now();
    let function = Function::new("eval_it".to_owned(), promise.source, promise.leaves_no_trace);
    let afterwards = Function::new("eval_afterwards".to_owned(), AFTERWARDS, true);
    let functions = vec![Arc::new(function), Arc::new(afterwards)];
    // One thread, so that what comes afterwards is where the other was.
    let functions = Functions::new(sandbox, functions, LIMITS, promise.isolation, 1)?;
    let trace = json!({ "n": 1 });
    let runs: Vec<Judgement> = (0..RUNS).map(|_| functions.judge("eval_it", &trace)).collect();
    let next = functions.judge("eval_afterwards", &trace);
    let broken = if !(promise.holds)(&runs) {
        let said: Vec<String> = runs.iter().map(said).collect();
        Some(said.join("; then "))
    } else if verdict(&next) != Some((true, "fine")) {
        Some(format!("the next function was disturbed: {}", said(&next)))
    } else {
        None
    };
    Ok(Trial { promise: promise.name, broken, elapsed: start.elapsed() })
}

/// Says what came of a run, for somebody who expected something else.
fn said(run: &Judgement) -> String {
    let text = match &run.conclusion {
        Conclusion::Verdict { passed, reason } => format!("{}: {reason}", if *passed { "passed" } else { "failed" }),
        Conclusion::Error(error) => format!("{}: {}", error.kind, error.message),
    };
    let line = text.lines().next().unwrap_or_default();
    format!("{} after {} ms", line.chars().take(120).collect::<String>(), run.elapsed.as_millis())
}

fn all(runs: &[Judgement], holds: impl FnMut(&Judgement) -> bool) -> bool {
    runs.len() == RUNS && runs.iter().all(holds)
}

fn verdict(run: &Judgement) -> Option<(bool, &str)> {
    match &run.conclusion {
        Conclusion::Verdict { passed, reason } => Some((*passed, reason)),
        Conclusion::Error(_) => None,
    }
}

fn kind(run: &Judgement) -> Option<ErrorKind> {
    match &run.conclusion {
        Conclusion::Verdict { .. } => None,
        Conclusion::Error(error) => Some(error.kind),
    }
}

fn timed_out(runs: &[Judgement]) -> bool {
    let in_time = |run: &Judgement| (LIMITS.time..LIMITS.time + LATE).contains(&run.elapsed);
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

/// Tells whether Python says that there is no such thing, or was ended because it asked for it.
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
                "AttributeError: module 'posix' has no attribute",
            ],
        )
}
