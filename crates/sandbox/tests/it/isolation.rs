//! A trace gets the same judgement alone as after other traces, on any number of threads.

use std::sync::Arc;

use karat_core::judgement::{Conclusion, Judgement};
use karat_sandbox::{Function, Isolation, Task, validate};
use rstest::rstest;

use crate::generator::{TRACES, function, traces};
use crate::support::{judge, sandbox, task};

/// Number of generated functions. `scripts/bench isolation` tests more.
const FUNCTIONS: u64 = 300;

/// Everything that the function determines: verdict or error, and output.
type Outcome = (Conclusion, String, String);

fn outcome(judgement: Judgement) -> Outcome {
    (judgement.conclusion, judgement.stdout, judgement.stderr)
}

fn outcomes(function: &Arc<Function>, lines: &str, isolation: Isolation, jobs: usize) -> Vec<Outcome> {
    let task = Task { jobs, ..task(&[Arc::clone(function)], isolation) };
    let judged = judge(sandbox(), &task, lines);
    judged.into_iter().flat_map(|judged| judged.judgements).map(outcome).collect()
}

/// Compares the last trace alone with the same trace after the others, and all traces on 1, 2 and 8 threads. Returns
/// whether shared isolation gives the last trace another outcome.
fn check(source: &str, lines: &str) -> bool {
    let function = validate(source.as_bytes()).unwrap_or_else(|_| Function::unvalidated("eval_generated", source));
    let function = Arc::new(function);
    let last = lines.lines().last().unwrap();
    let alone = outcomes(&function, last, Isolation::Fresh, 1);
    let on_one_thread = outcomes(&function, lines, Isolation::Fresh, 1);
    assert_eq!(on_one_thread.last(), alone.last(), "after the other traces:\n{source}");
    for jobs in [2, 8] {
        let outcomes = outcomes(&function, lines, Isolation::Fresh, jobs);
        for (number, (outcome, expected)) in outcomes.iter().zip(&on_one_thread).enumerate() {
            assert_eq!(outcome, expected, "trace {number} on {jobs} threads:\n{source}");
        }
        assert_eq!(outcomes.len(), on_one_thread.len());
    }
    outcomes(&function, lines, Isolation::Shared, 1).last() != alone.last()
}

#[test]
fn generated_functions_do_not_see_other_traces() {
    assert_eq!(traces(1).lines().count(), TRACES);
    let half = |rest: u64| {
        (0..FUNCTIONS).filter(|seed| seed % 2 == rest).filter(|seed| check(&function(*seed), &traces(*seed))).count()
    };
    let leaks = std::thread::scope(|scope| {
        let even = scope.spawn(|| half(0));
        half(1) + even.join().unwrap()
    });
    // Otherwise the generated functions would show nothing.
    assert!(
        leaks as u64 * 20 >= FUNCTIONS,
        "only {leaks} of {FUNCTIONS} functions depend on earlier traces when shared"
    );
}

/// Functions that a check of syntax took for harmless.
#[rstest]
#[case::set_of_matches(
    "    found = {re.search(p, text) for p in [r'w\\d', r'\\d+', r'w[1-5]+', r'[a-z]']}\n    reason = ', '.join(m.group() if m else 'none' for m in found)"
)]
#[case::set_of_exceptions(
    "    caught = set()\n    for kind in (ValueError, KeyError, TypeError, IndexError):\n        try:\n            raise kind(kind.__name__)\n        except Exception as error:\n            caught.add(error)\n    reason = ' '.join(str(error) for error in caught)"
)]
#[case::set_of_an_iterator(
    "    reason = ' '.join(m.group() for m in set(re.finditer(r'\\w\\d*', text + ' w1 w2 w3')))"
)]
#[case::set_of_tuples(
    "    found = {(i, re.search(p, text + 'w1')) for i, p in enumerate([r'w\\d', r'\\w', r'.'])}\n    reason = str([i for i, _ in found])"
)]
#[case::address_of_an_iterator("    m = map\n    reason = f'{m(len, text)}'.split('0x')[1]")]
#[case::address_of_a_method("    str = text\n    reason = f'{str.upper}'")]
#[case::address_of_a_match_method("    match = re.search('.', text + 'x')\n    reason = f'{match.end}'")]
#[case::address_of_an_argument("    reason = (lambda key: f'{key}')(key=helper)")]
#[case::not_a_number("    reason = str([x if x == x else 'nan' for x in {float('nan'), 1.0, 2.0, 3.0, float('nan')}])")]
fn functions_that_leaked_do_not_any_more(#[case] body: &str) {
    let source = format!(
        "import re\ndef helper(x):\n    return x\ndef eval_generated(trace):\n    text = trace['text']\n    kept = [object() for _ in range(trace['n'])]\n{body}\n    return reason < 'w2', reason\n"
    );
    assert!(validate(source.as_bytes()).is_ok(), "{source}");
    for seed in 0..3 {
        check(&source, &traces(seed));
    }
}

/// The source of a function runs once, and each trace sees the state after that, as if it had run for it.
#[rstest]
#[case::output(
    "print('loaded')\nSEEN = []\n",
    "SEEN.append(1)\n    print(len(SEEN))\n    return True, ''",
    "loaded\n1\n"
)]
#[case::an_error("1 / 0\n", "return True, ''", "")]
#[case::much_memory(
    "TABLE = [0] * 3_000_000\n",
    "TABLE.append(1)\n    return True, print(len(TABLE)) or ''",
    "3000001\n"
)]
fn the_source_runs_as_if_for_each_trace(#[case] before: &str, #[case] body: &str, #[case] expected: &str) {
    let source = format!("{before}def eval_generated(trace):\n    {body}\n");
    let function = Arc::new(Function::unvalidated("eval_generated", &source));
    for isolation in [Isolation::Fresh, Isolation::Shared] {
        let outcomes = outcomes(&function, &traces(1), isolation, 2);
        assert_eq!(outcomes.len(), TRACES);
        for outcome in &outcomes {
            assert_eq!((outcome, &*outcome.1), (&outcomes[0], expected));
        }
    }
}
