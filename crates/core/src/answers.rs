//! Which tools were called in stored results, and nothing else of them: results hold whole responses.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::case::Tier;
use crate::result::{Cause, EarlierMetadata, Outcome};

/// What a result says before its cases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultHead {
    pub run_id: String,
    pub timestamp: String,
    pub tier: Option<Tier>,
    /// Who answered, where it is said.
    pub agent: Option<String>,
    pub metadata: EarlierMetadata,
}

impl ResultHead {
    /// Reads the beginning of a result, as far as its cases; none where they are not reached, or where it is no result.
    pub fn read_start(bytes: &[u8]) -> Option<Self> {
        let mut reader = HeadReader { head: Self::default(), at_cases: false };
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        // Reading always ends with an error: on purpose at the cases, or for want of bytes.
        deserializer.deserialize_map(&mut reader).ok();
        (reader.at_cases && !reader.head.run_id.is_empty()).then_some(reader.head)
    }

    /// Reads a whole result whose keys may stand in any order.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Written {
            run_id: String,
            #[serde(default)]
            timestamp: String,
            #[serde(default)]
            tier: Option<Tier>,
            #[serde(default)]
            agent_endpoint: Option<String>,
            #[serde(default)]
            metadata: EarlierMetadata,
            #[serde(rename = "cases")]
            _cases: Vec<IgnoredAny>,
        }

        let Written { run_id, timestamp, tier, agent_endpoint, metadata, .. } = serde_json::from_slice(bytes).ok()?;
        Some(Self { run_id, timestamp, tier, agent: agent_endpoint, metadata })
    }
}

/// Fills a head until the cases begin.
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
                "cases" => {
                    self.at_cases = true;
                    return Err(A::Error::custom("the cases are not read"));
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// What an agent called in all tries of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseAnswers {
    pub case_id: String,
    /// For each try the tools that were called; none where no answer came.
    pub tries: Vec<Option<Vec<String>>>,
}

/// Reads the calls of all cases of a result.
pub fn read_answers(bytes: &[u8]) -> Result<Vec<CaseAnswers>, serde_json::Error> {
    #[derive(serde::Deserialize)]
    struct Written {
        cases: Vec<CaseAnswers>,
    }

    serde_json::from_slice(bytes).map(|Written { cases }| cases)
}

impl<'de> Deserialize<'de> for CaseAnswers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Written<'w> {
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
        struct WrittenTrials<'w> {
            #[serde(borrow)]
            tries: Vec<WrittenTry<'w>>,
        }

        #[derive(serde::Deserialize)]
        struct WrittenTry<'w> {
            outcome: Option<Outcome>,
            #[serde(borrow, default)]
            error: Option<Cow<'w, str>>,
            #[serde(borrow, default)]
            details: Option<&'w RawValue>,
        }

        let Written { id, outcome, error, details, trials } = Written::deserialize(deserializer)?;
        // Another runner may mean something else by the word.
        let trials = trials.and_then(|trials| serde_json::from_str::<WrittenTrials<'_>>(trials.get()).ok());
        let tries = match trials {
            Some(WrittenTrials { tries }) => {
                tries.into_iter().map(|one| called(one.outcome, one.error.as_deref(), one.details)).collect()
            }
            None => vec![called(outcome, error.as_deref(), details)],
        };
        Ok(Self { case_id: id, tries })
    }
}

/// Returns the tools that were called in a try, if an answer came.
fn called(outcome: Option<Outcome>, error: Option<&str>, details: Option<&RawValue>) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Details {
        tools_called: Vec<String>,
    }

    // Other runners say no outcome, and call a timeout a failure too.
    let outcome = outcome.unwrap_or(Outcome::Failed);
    if outcome == Outcome::Errored || Cause::read(outcome, error) == Some(Cause::Timeout) {
        return None;
    }
    serde_json::from_str(details?.get()).ok().map(|Details { tools_called }| tools_called)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_head_of_a_result_is_read_from_its_beginning() {
        let start = br#"{"runId": "r", "timestamp": "t", "tier": "golden", "agentEndpoint": "a", "x": [1],
            "metadata": {"evalFileHash": "h", "evalFile": "e.json"}, "cases": [{"id": "#;
        let head = ResultHead::read_start(start).expect("a head");
        assert_eq!((head.run_id.as_str(), head.tier, head.agent.as_deref()), ("r", Some(Tier::Golden), Some("a")));
        assert_eq!(head.metadata.eval_file_hash, "h");
        assert_eq!(ResultHead::read_start(&start[..40]), None);
        assert_eq!(ResultHead::read_start(b"[1]"), None);
        let other_order = br#"{"cases": [], "runId": "r", "metadata": {"evalFileHash": "h"}}"#;
        assert_eq!(ResultHead::read_start(other_order), None);
        assert_eq!(ResultHead::read(other_order).map(|head| head.run_id), Some("r".to_owned()));
        assert_eq!(ResultHead::read(br#"{"runId": "r"}"#), None);
    }

    #[test]
    fn every_try_counts_and_what_never_came_is_none() {
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
        ]});
        let answers = read_answers(result.to_string().as_bytes()).expect("a result");
        let tries: Vec<_> = answers.iter().map(|answer| answer.tries.clone()).collect();
        let called = |tools: &[&str]| Some(tools.iter().map(|&tool| tool.to_owned()).collect::<Vec<_>>());
        assert_eq!(
            tries,
            [
                vec![called(&["x", "y"])],
                vec![None],
                vec![None],
                vec![called(&["x"]), None],
                vec![None],
                vec![called(&[])],
            ]
        );
    }
}
