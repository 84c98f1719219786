//! JSON numbers. Integers of any size are exact.

use std::cmp::Ordering;

use num_bigint::BigInt;
use serde_json::{Number, Value};

/// Limits of exact comparison. Numbers beyond them are compared as doubles, since exact arithmetic would be slow.
const MAX_DIGITS: usize = 10_000;
const MAX_EXPONENT: i64 = 10_000;

/// Returns the text form of a number: the digits of an integer without fraction and exponent, and ECMAScript's
/// `String(number)` otherwise.
pub fn number_text(number: &Number) -> String {
    let source = number.as_str();
    let digits = source.strip_prefix('-').unwrap_or(source);
    if digits == "0" {
        return digits.to_owned();
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return source.to_owned();
    }
    match number.as_f64() {
        Some(float) => ryu_js::Buffer::new().format(float).to_owned(),
        None if source.starts_with('-') => "-Infinity".to_owned(),
        None => "Infinity".to_owned(),
    }
}

/// Whether two values are equal as JSON: numbers by value, objects in any order of their keys.
pub fn equal_json(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (Decimal::new(left), Decimal::new(right)) {
            (Some(left), Some(right)) => left == right,
            _ => number_text(left) == number_text(right),
        },
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal_json(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let is_in_right =
                |(key, left): (&String, &Value)| right.get(key).is_some_and(|right| equal_json(left, right));
            left.len() == right.len() && left.iter().all(is_in_right)
        }
        _ => left == right,
    }
}

/// A decimal number, without rounding.
#[derive(Debug, Clone)]
pub struct Decimal {
    coefficient: BigInt,
    /// The power of ten that the coefficient is multiplied by.
    exponent: i64,
}

impl Decimal {
    /// Returns `None` for a number beyond the range of doubles that is too long to compute with.
    pub fn new(number: &Number) -> Option<Self> {
        Self::parse(number.as_str()).or_else(|| Self::parse(&format!("{:e}", number.as_f64()?)))
    }

    fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
            None => (text, 0_i64),
        };
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        if text.len() > MAX_DIGITS || exponent.saturating_abs() > MAX_EXPONENT {
            return None;
        }
        Some(Self { coefficient: format!("{integer}{fraction}").parse().ok()?, exponent })
    }

    /// Returns the absolute difference of two numbers.
    #[must_use]
    pub fn abs_diff(&self, other: &Self) -> Self {
        let (left, right) = self.align(other);
        let coefficient = BigInt::from((left - right).into_parts().1);
        Self { coefficient, exponent: self.exponent.min(other.exponent) }
    }

    /// Returns both coefficients, scaled to the smaller exponent.
    fn align(&self, other: &Self) -> (BigInt, BigInt) {
        let exponent = self.exponent.min(other.exponent);
        let scale = |number: &Self| {
            let zeros = u32::try_from(number.exponent - exponent).unwrap_or_default();
            &number.coefficient * BigInt::from(10).pow(zeros)
        };
        (scale(self), scale(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let (left, right) = self.align(other);
        left.cmp(&right)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn number(text: &str) -> Number {
        text.parse().expect("a number")
    }

    #[rstest]
    #[case("5", "5")]
    #[case("-0", "0")]
    #[case("5.0", "5")]
    #[case("178.50", "178.5")]
    #[case("1e21", "1e+21")]
    #[case("1E-7", "1e-7")]
    #[case("9007199254740993", "9007199254740993")]
    #[case("-12345678901234567999", "-12345678901234567999")]
    #[case("123456789012345678901234567890", "123456789012345678901234567890")]
    #[case("9007199254740993.0", "9007199254740992")]
    #[case("-1e999", "-Infinity")]
    fn integers_keep_their_digits(#[case] source: &str, #[case] expected: &str) {
        assert_eq!(number_text(&number(source)), expected);
    }

    #[rstest]
    #[case("1", "1.0", true)]
    #[case("1e2", "100", true)]
    #[case("0.1", "0.10", true)]
    #[case("-0", "0.0", true)]
    #[case("1e21", "1000000000000000000000", true)]
    #[case("9007199254740993", "9007199254740992", false)]
    #[case("9007199254740993.0", "9007199254740992", false)]
    #[case("9007199254740993.0", "9007199254740993", true)]
    #[case("9007199254740993e0", "9007199254740992.0", false)]
    #[case("12345678901234567999", "12345678901234567000", false)]
    #[case("1e-999999999", "0", true)]
    #[case("1e999999999", "1e999999998", true)]
    fn compares_numbers_by_value(#[case] left: &str, #[case] right: &str, #[case] expected: bool) {
        let (left, right) = (Value::Number(number(left)), Value::Number(number(right)));
        assert_eq!(equal_json(&left, &right), expected);
        assert_eq!(equal_json(&right, &left), expected);
    }

    #[rstest]
    #[case(r#"{"a": 1, "b": [1.0, null]}"#, r#"{"b": [1, null], "a": 1}"#, true)]
    #[case(r#"{"a": 1}"#, r#"{"a": "1"}"#, false)]
    #[case(r#"{"a": 1}"#, r#"{"a": true}"#, false)]
    #[case(r#"{"a": 1}"#, r#"{"a": 1, "b": null}"#, false)]
    #[case("[1, 2]", "[2, 1]", false)]
    #[case("[1, 2]", "[1]", false)]
    fn ignores_the_order_of_keys(#[case] left: &str, #[case] right: &str, #[case] expected: bool) {
        let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(equal_json(&parse(left), &parse(right)), expected);
    }

    #[rstest]
    #[case("1.1", "1", "0.1")]
    #[case("-3", "4", "7")]
    #[case("1e3", "0.5", "999.5")]
    #[case("12345678901234567999", "12345678901234567000", "999")]
    fn computes_exact_differences(#[case] left: &str, #[case] right: &str, #[case] expected: &str) {
        let decimal = |text: &str| Decimal::new(&number(text)).expect("a decimal");
        assert_eq!(decimal(left).abs_diff(&decimal(right)), decimal(expected));
        assert!(decimal(left).abs_diff(&decimal(right)) > decimal("-1e-5"));
    }
}
