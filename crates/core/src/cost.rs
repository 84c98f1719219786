//! Amounts of money, as text.

/// Formats an amount in dollars; small amounts keep three significant digits.
pub fn dollars(sum: f64) -> String {
    let mut decimals = 2;
    // Tolerate rounding errors of sums: slightly less than ten cents is ten cents.
    let mut bound = 1.0 - 1e-9;
    while sum > 0.0 && sum < bound && decimals < 9 {
        bound /= 10.0;
        decimals += 1;
    }
    format!("${sum:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_keep_significant_digits() {
        let texts: Vec<String> = [0.0, 0.000_012, 0.001_2, 0.05, 0.5, 1.0, 12.345].into_iter().map(dollars).collect();
        assert_eq!(texts, ["$0.00", "$0.0000120", "$0.00120", "$0.0500", "$0.500", "$1.00", "$12.35"]);
        let noisy: f64 = std::iter::repeat_n(0.01, 10).sum();
        assert_eq!((noisy < 0.1, dollars(noisy).as_str()), (true, "$0.100"));
    }
}
