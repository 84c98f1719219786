//! A trace gets the same judgement alone as after other traces, on any number of threads.

use std::sync::Arc;

use karat_sandbox::{Function, Isolation, validate};
use rstest::rstest;

use crate::comparison::{compare, outcomes};
use crate::generator::{TRACES, function, traces};
use crate::support::sandbox;

/// Number of generated functions. `scripts/bench isolation` tests more.
const FUNCTIONS: u64 = 300;

/// Compares a function's outcomes; returns whether they differ in shared isolation.
fn check(source: &str, lines: &str) -> bool {
    let comparison = compare(sandbox(), source, lines);
    if let Some(difference) = comparison.difference {
        panic!("{difference}");
    }
    comparison.differs_when_shared
}

#[test]
fn generated_functions_do_not_see_other_traces() {
    assert_eq!(traces(1).lines().count(), TRACES);
    let leaks = |seeds: std::ops::Range<u64>| seeds.filter(|seed| check(&function(*seed), &traces(*seed))).count();
    let leaks = std::thread::scope(|scope| {
        let first_half = scope.spawn(|| leaks(0..FUNCTIONS / 2));
        leaks(FUNCTIONS / 2..FUNCTIONS) + first_half.join().unwrap()
    });
    // Otherwise the generated functions would not detect a leak.
    assert!(
        leaks as u64 * 20 >= FUNCTIONS,
        "only {leaks} of {FUNCTIONS} functions depend on earlier traces when shared"
    );
}

/// Functions that an earlier check of the syntax classified as harmless.
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
fn isolates_functions_that_depend_on_memory_addresses(#[case] body: &str) {
    let source = format!(
        "import re\ndef helper(x):\n    return x\ndef eval_generated(trace):\n    text = trace['text']\n    kept = [object() for _ in range(trace['n'])]\n{body}\n    return reason < 'w2', reason\n"
    );
    assert!(validate(source.as_bytes()).is_ok(), "{source}");
    for seed in 0..3 {
        check(&source, &traces(seed));
    }
}

/// The source runs once, and each trace starts with the state after that.
#[rstest]
#[case::output(
    "print('loaded')\nSEEN = []\n",
    "SEEN.append(1)\n    print(len(SEEN))\n    return True, ''",
    "loaded\n1\n"
)]
#[case::an_error("1 / 0\n", "return True, ''", "")]
#[case::large_memory(
    "TABLE = [0] * 3_000_000\n",
    "TABLE.append(1)\n    return True, print(len(TABLE)) or ''",
    "3000001\n"
)]
fn each_trace_starts_with_the_state_after_the_source(#[case] before: &str, #[case] body: &str, #[case] expected: &str) {
    let source = format!("{before}def eval_generated(trace):\n    {body}\n");
    let function = Arc::new(Function::unvalidated("eval_generated", &source));
    for isolation in [Isolation::Fresh, Isolation::Shared] {
        let outcomes = outcomes(sandbox(), &function, &traces(1), isolation, 2);
        assert_eq!(outcomes.len(), TRACES);
        for outcome in &outcomes {
            assert_eq!((outcome, &*outcome.1), (&outcomes[0], expected));
        }
    }
}
