//! Which traces a model is told of.

use karat_core::hash::long_hash;

/// How many hex digits of a hash decide.
const DIGITS: usize = 8;

/// Tells whether a trace is kept from the model, given the share that is. This depends on the eval and the trace alone,
/// not on its rating nor on which other traces there are: a trace that is held out today is held out tomorrow, so that no
/// model was ever told of it. For the same reason every rating is parted by the same share.
pub fn is_held_out(eval_id: &str, trace_id: &str, share: f64) -> bool {
    let hash = long_hash([eval_id, trace_id].join("\0").as_bytes());
    let number = hash.get(..DIGITS).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default();
    f64::from(number) < share * (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn held_out(eval: &str, traces: std::ops::Range<u32>, share: f64) -> usize {
        traces.filter(|trace| is_held_out(eval, &format!("trace-{trace}"), share)).count()
    }

    proptest! {
        #[test]
        fn every_part_of_the_traces_is_parted_alike(start in 0_u32..1_000_000, eval in "eval_[a-z]{1,9}") {
            // Five standard deviations around the share.
            let count = held_out(&eval, start..start + 2000, 0.4);
            prop_assert!((690..=910).contains(&count), "{count} of 2000");
        }

        #[test]
        fn more_is_held_out_with_a_larger_share(trace in ".{0,20}", low in 0.0..1.0, high in 0.0..1.0) {
            let (low, high) = if low < high { (low, high) } else { (high, low) };
            prop_assert!(!is_held_out("eval_x", &trace, low) || is_held_out("eval_x", &trace, high));
            prop_assert!(is_held_out("eval_x", &trace, 1.0) && !is_held_out("eval_x", &trace, 0.0));
        }
    }

    #[test]
    fn the_side_is_the_same_for_ever() {
        let sides: String =
            (0..24).map(|trace| if is_held_out("eval_tone", &trace.to_string(), 0.4) { 'h' } else { 't' }).collect();
        insta::assert_snapshot!(sides, @"tttttthtthtttththhhhhtht");
    }
}
