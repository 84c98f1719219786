//! Reads which tools were called from result files, without loading the responses.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::result::{Cause, EarlierMetadata, Outcome};
use crate::shard::Shard;
use karat_cases::Tier;

/// The members of a result that precede its cases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultHead {
    pub run_id: String,
    pub timestamp: String,
    pub tier: Option<Tier>,
    /// The agent, if the result names one.
    pub agent: Option<String>,
    pub metadata: EarlierMetadata,
    /// The part of the run that this is, if it ran in shards.
    pub shard: Option<Shard>,
}

impl ResultHead {
    /// Parses the start of a result up to its cases. Returns `None` if they are not reached, or if it is not a result.
    pub fn read_start(bytes: &[u8]) -> Option<Self> {
        let mut reader = HeadReader { head: Self::default(), at_cases: false };
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        // Parsing always ends with an error: deliberately at the cases, or because the bytes end.
        deserializer.deserialize_map(&mut reader).ok();
        (reader.at_cases && !reader.head.run_id.is_empty()).then_some(reader.head)
    }

    /// Parses a whole result with its keys in any order.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct RawResult {
            run_id: String,
            #[serde(default)]
            timestamp: String,
            #[serde(default)]
            tier: Option<Tier>,
            #[serde(default)]
            agent_endpoint: Option<String>,
            #[serde(default)]
            metadata: EarlierMetadata,
            // Other runners may use this for something else.
            #[serde(default)]
            shard: Value,
            #[serde(rename = "cases")]
            _cases: Vec<IgnoredAny>,
        }

        let RawResult { run_id, timestamp, tier, agent_endpoint: agent, metadata, shard, .. } =
            serde_json::from_slice(bytes).ok()?;
        Some(Self { run_id, timestamp, tier, agent, metadata, shard: serde_json::from_value(shard).ok() })
    }
}

/// Fills a `ResultHead` and stops at the cases.
struct HeadReader {
    head: ResultHead,
    at_cases: bool,
}

impl<'de> Visitor<'de> for &mut HeadReader {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a result")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "runId" => self.head.run_id = map.next_value()?,
                "timestamp" => self.head.timestamp = map.next_value()?,
                "tier" => self.head.tier = map.next_value()?,
                "agentEndpoint" => self.head.agent = map.next_value()?,
                "metadata" => self.head.metadata = map.next_value()?,
                "shard" => self.head.shard = serde_json::from_value(map.next_value()?).ok(),
                "cases" => {
                    self.at_cases = true;
                    return Err(A::Error::custom("stopped at the cases"));
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The tools that an agent called in each trial of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseAnswers {
    pub case_id: String,
    /// The called tools per trial; `None` if the agent did not answer, or does not report its calls.
    pub trials: Vec<Option<Vec<String>>>,
}

/// Reads the tool calls of all cases of a result.
pub fn read_answers(bytes: &[u8]) -> Result<Vec<CaseAnswers>, serde_json::Error> {
    #[derive(serde::Deserialize)]
    struct RawResult {
        cases: Vec<CaseAnswers>,
    }

    serde_json::from_slice(bytes).map(|RawResult { cases }| cases)
}

impl<'de> Deserialize<'de> for CaseAnswers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct RawCase<'w> {
            id: String,
            #[serde(default)]
            outcome: Option<Outcome>,
            #[serde(borrow, default)]
            error: Option<Cow<'w, str>>,
            #[serde(borrow, default)]
            details: Option<&'w RawValue>,
            #[serde(borrow, default)]
            trials: Option<&'w RawValue>,
        }

        #[derive(serde::Deserialize)]
        struct RawTrials<'w> {
            #[serde(borrow, rename = "tries")]
            attempts: Vec<RawTrial<'w>>,
        }

        #[derive(serde::Deserialize)]
        struct RawTrial<'w> {
            outcome: Option<Outcome>,
            #[serde(borrow, default)]
            error: Option<Cow<'w, str>>,
            #[serde(borrow, default)]
            details: Option<&'w RawValue>,
        }

        let RawCase { id, outcome, error, details, trials } = RawCase::deserialize(deserializer)?;
        // Other runners may use `trials` for something else.
        let trials = trials.and_then(|trials| serde_json::from_str::<RawTrials<'_>>(trials.get()).ok());
        let trials = match trials {
            Some(RawTrials { attempts }) => attempts
                .into_iter()
                .map(|trial| called_tools(trial.outcome, trial.error.as_deref(), trial.details))
                .collect(),
            None => vec![called_tools(outcome, error.as_deref(), details)],
        };
        Ok(Self { case_id: id, trials })
    }
}

/// Returns the tools called in a trial, or `None` if they are not known.
fn called_tools(outcome: Option<Outcome>, error: Option<&str>, details: Option<&RawValue>) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Details {
        tools_called: Vec<String>,
        #[serde(default)]
        calls_unreported: bool,
    }

    // Other runners write no outcome, and report a timeout as a failure.
    let outcome = outcome.unwrap_or(Outcome::Failed);
    if outcome == Outcome::Errored || Cause::read(outcome, error) == Some(Cause::Timeout) {
        return None;
    }
    let details: Details = serde_json::from_str(details?.get()).ok()?;
    (!details.calls_unreported).then_some(details.tools_called)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_the_head_from_the_start_of_a_result() {
        let start = br#"{"runId": "r", "timestamp": "t", "tier": "golden", "agentEndpoint": "a", "x": [1],
            "metadata": {"evalFileHash": "h", "evalFile": "e.json"}, "cases": [{"id": "#;
        let head = ResultHead::read_start(start).expect("head");
        assert_eq!((head.run_id.as_str(), head.tier, head.agent.as_deref()), ("r", Some(Tier::Golden), Some("a")));
        assert_eq!(head.metadata.eval_file_hash, "h");
        assert_eq!(head.shard, None);
        let shard = br#"{"runId": "r", "shard": {"number": 2, "count": 4, "suite": 1}, "cases": []}"#;
        let expected = Some(Shard { number: 2, count: 4 });
        assert_eq!(ResultHead::read_start(shard).map(|head| head.shard), Some(expected));
        assert_eq!(ResultHead::read(shard).map(|head| head.shard), Some(expected));
        let other_runner = br#"{"runId": "r", "shard": "2/4", "cases": []}"#;
        assert_eq!(ResultHead::read_start(other_runner).map(|head| head.shard), Some(None));
        assert_eq!(ResultHead::read_start(&start[..40]), None);
        assert_eq!(ResultHead::read_start(b"[1]"), None);
        let other_order = br#"{"cases": [], "runId": "r", "metadata": {"evalFileHash": "h"}}"#;
        assert_eq!(ResultHead::read_start(other_order), None);
        assert_eq!(ResultHead::read(other_order).map(|head| head.run_id), Some("r".to_owned()));
        assert_eq!(ResultHead::read(br#"{"runId": "r"}"#), None);
    }

    #[test]
    fn reads_every_trial_and_no_answer_is_none() {
        let result = json!({"cases": [
            {"id": "a", "passed": true, "details": {"toolsCalled": ["x", "y"], "response": "long"}},
            {"id": "b", "passed": false, "outcome": "errored", "error": "HTTP 500", "details": {"toolsCalled": []}},
            {"id": "c", "passed": false, "error": "timeout", "details": {"toolsCalled": []}},
            {"id": "d", "passed": false, "details": {"toolsCalled": ["x"]}, "trials": {"tries": [
                {"outcome": "passed", "details": {"toolsCalled": ["x"]}},
                {"outcome": "errored", "error": "boom", "details": {"toolsCalled": []}},
            ]}},
            {"id": "e", "passed": true, "trials": 3},
            {"id": "f", "passed": true, "trials": 3, "details": {"toolsCalled": []}},
            {"id": "g", "passed": true, "details": {"toolsCalled": [], "callsUnreported": true}},
        ]});
        let answers = read_answers(result.to_string().as_bytes()).expect("valid result");
        let trials: Vec<_> = answers.iter().map(|answer| answer.trials.clone()).collect();
        let called = |tools: &[&str]| Some(tools.iter().map(|&tool| tool.to_owned()).collect::<Vec<_>>());
        assert_eq!(
            trials,
            [
                vec![called(&["x", "y"])],
                vec![None],
                vec![None],
                vec![called(&["x"]), None],
                vec![None],
                vec![called(&[])],
                vec![None],
            ]
        );
    }
}
