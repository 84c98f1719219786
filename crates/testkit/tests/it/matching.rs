use karat_testkit::conformance::mismatch;
use rstest::rstest;
use serde_json::{Value, json};

#[rstest]
#[case(json!({"$any": 1}), json!(null))]
#[case(json!({"$prefix": "ab"}), json!("abc"))]
#[case(json!({"$has": "b"}), json!("abc"))]
#[case(json!({"$has": ["a", "c"]}), json!("abc"))]
#[case(json!({"$has": "\"k\": [1, \"é\"]"}), json!({"k": [1, "é"]}))]
#[case(json!({"$lacks": "z"}), json!("abc"))]
#[case(json!({"$len": 2}), json!("éé"))]
#[case(json!({"$len": 2}), json!([1, 2]))]
#[case(json!({"$len": 1}), json!({"a": 1}))]
#[case(json!({"$set": ["b", "a"]}), json!(["a", "b"]))]
#[case(json!({"$set": []}), json!(null))]
#[case(json!({"$min": 1}), json!(1.0))]
#[case(json!({"$max": 1.5}), json!(1))]
#[case(json!({"$near": 0.3}), json!(0.300_000_000_1))]
#[case(json!({"$hex": 4}), json!("0a9f"))]
#[case(json!({"$either": ["a", {"$prefix": "b"}]}), json!("bc"))]
#[case(json!({"a": {"$absent": true}}), json!({"b": 1}))]
#[case(json!({"a": {"$absent": true}}), json!({"a": null}))]
#[case(json!({"a": {"b": 1}}), json!({"a": {"b": 1.0, "c": 2}, "d": 3}))]
#[case(json!([1, {"a": "x"}]), json!([1.0, {"a": "x", "b": "y"}]))]
#[case(json!({}), json!({"a": 1}))]
#[case(json!(null), json!(null))]
fn matches(#[case] want: Value, #[case] got: Value) {
    assert_eq!(mismatch(&want, &got, "$"), None);
}

#[rstest]
#[case(json!({"$prefix": "b"}), json!("abc"), r#"$: "abc" does not start with "b""#)]
#[case(json!({"$prefix": "1"}), json!(1), r#"$: 1 does not start with "1""#)]
#[case(json!({"$has": ["a", "z", "y"]}), json!("abc"), r#"$: "abc" lacks "z", "y""#)]
#[case(json!({"$lacks": "b"}), json!("abc"), r#"$: "abc" contains "b""#)]
#[case(json!({"$len": 1}), json!("éé"), r#"$: "éé" does not have length 1"#)]
#[case(json!({"$len": 0}), json!(null), "$: null does not have length 0")]
#[case(json!({"$set": ["a", "a"]}), json!(["a"]), r#"$: ["a"] is not the set ["a","a"]"#)]
#[case(json!({"$min": 2}), json!(1), "$: 1 is below 2")]
#[case(json!({"$min": 2}), json!("3"), r#"$: "3" is below 2"#)]
#[case(json!({"$max": 2}), json!(3), "$: 3 is above 2")]
#[case(json!({"$near": 0.3}), json!(0.31), "$: 0.31 is not near 0.3")]
#[case(json!({"$hex": 4}), json!("0A9F"), r#"$: "0A9F" is not hex of length 4"#)]
#[case(json!({"$hex": 4}), json!("0a9"), r#"$: "0a9" is not hex of length 4"#)]
#[case(json!({"$either": [1, 2]}), json!(3), "$: 3 matches none of [1,2]")]
#[case(json!({"a": {"$absent": true}}), json!({"a": 0}), "$.a: present: 0")]
#[case(json!({"$unknown": 1}), json!(1), "$: unknown operator '$unknown'")]
#[case(json!({"a": [{"b": 1}]}), json!({"a": [{"b": 2}]}), "$.a[0].b: 2 is not 1")]
#[case(json!({"a": 1}), json!({}), "$.a: missing")]
#[case(json!({"a": 1}), json!([]), "$: [] is not an object")]
#[case(json!([1]), json!([1, 2]), "$: [1,2] is not [1]")]
#[case(json!(1), json!(true), "$: true is not 1")]
#[case(json!("1"), json!(1), r#"$: 1 is not "1""#)]
#[case(json!(null), json!(false), "$: false is not null")]
fn reports_mismatches(#[case] want: Value, #[case] got: Value, #[case] problem: &str) {
    assert_eq!(mismatch(&want, &got, "$").as_deref(), Some(problem));
}
