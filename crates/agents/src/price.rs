//! Prices of model tokens.

use std::collections::BTreeMap;

use karat_core::trace::Usage;
use karat_json::{ObjectReader, Path, Problems, read_object_map, read_string, type_name};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// List prices by model, each with the date on which it was valid.
const PRICE_TABLE: &str = include_str!("prices.json");

/// Prices of a model in US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    #[schemars(range(min = 0))]
    pub input_usd_per_million: f64,
    #[schemars(range(min = 0))]
    pub output_usd_per_million: f64,
    /// Price of cached input; the input price by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub cached_input_usd_per_million: Option<f64>,
    /// The date on which this price was valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
}

impl Price {
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let input = object.required("inputUsdPerMillion", path, problems, read_amount);
        let output = object.required("outputUsdPerMillion", path, problems, read_amount);
        let cached = object.nullable("cachedInputUsdPerMillion", path, problems, read_amount);
        let as_of = object.nullable("asOf", path, problems, read_string);
        object.close(path, problems);
        Some(Self {
            input_usd_per_million: input?,
            output_usd_per_million: output?,
            cached_input_usd_per_million: cached,
            as_of,
        })
    }

    /// Reads a map of prices by `PROVIDER:MODEL`.
    pub fn read_all(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<BTreeMap<String, Self>> {
        let map = read_object_map(value, path, problems)?;
        let prices: Vec<Option<(String, Self)>> = map
            .iter()
            .map(|(model, price)| Some((model.clone(), Self::read(price, &path.key(model), problems)?)))
            .collect();
        prices.into_iter().collect()
    }

    /// Returns the list price of a model. The name must match exactly, since similar models have different prices.
    pub fn list_price(identity: &str) -> Option<Self> {
        let table: Value = serde_json::from_str(PRICE_TABLE).ok()?;
        let mut problems = Problems::default();
        Self::read(table.get("models")?.get(identity)?, &Path::Root, &mut problems)
    }

    /// Returns the cost of an answer, or `None` if its token counts are unknown.
    pub(crate) fn cost(&self, usage: &Usage) -> Option<f64> {
        let (input, output) = (usage.input_tokens?, usage.output_tokens?);
        let cached = usage.cached_input_tokens.unwrap_or(0).min(input);
        let cached_price = self.cached_input_usd_per_million.unwrap_or(self.input_usd_per_million);
        let cost = millions(input - cached) * self.input_usd_per_million
            + millions(cached) * cached_price
            + millions(output) * self.output_usd_per_million;
        Some(cost)
    }
}

fn read_amount(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<f64> {
    let amount = value.as_f64().filter(|amount| *amount >= 0.0);
    if amount.is_none() {
        let actual = if value.is_number() { value.to_string() } else { type_name(value).to_owned() };
        problems.at(path, format!("expected a non-negative amount in US dollars, found {actual}"));
    }
    amount
}

fn millions(tokens: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
    let tokens = tokens as f64;
    tokens / 1_000_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_price_is_valid_and_dated() {
        let table: Value = serde_json::from_str(PRICE_TABLE).expect("JSON");
        let models = table["models"].as_object().expect("models");
        assert!(models.len() > 10);
        for identity in models.keys() {
            let price = Price::list_price(identity).unwrap_or_else(|| panic!("{identity}"));
            assert!(price.as_of.is_some_and(|date| date.parse::<jiff::civil::Date>().is_ok()), "{identity}");
            assert!(price.output_usd_per_million >= price.input_usd_per_million, "{identity}");
        }
        assert_eq!(Price::list_price("openai:no-such-model"), None);
    }

    #[test]
    fn cached_input_costs_less_and_unknown_usage_has_no_cost() {
        let price = Price {
            input_usd_per_million: 2.0,
            output_usd_per_million: 8.0,
            cached_input_usd_per_million: Some(0.5),
            as_of: None,
        };
        let usage = |input, output, cached| Usage {
            input_tokens: input,
            output_tokens: output,
            cached_input_tokens: cached,
            cost_usd: None,
        };
        assert_eq!(price.cost(&usage(Some(1_000_000), Some(500_000), None)), Some(6.0));
        assert_eq!(price.cost(&usage(Some(1_000_000), Some(0), Some(400_000))), Some(1.4));
        assert_eq!(price.cost(&usage(Some(1), None, None)), None);
    }
}
