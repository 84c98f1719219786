//! The rules for cases, in eval files and in drafts.

use karat_json::Severity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! rules {
    ($($variant:ident $name:literal $file:ident $draft:ident $summary:literal $example:literal)*) => {
        /// A rule for cases.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Rule {
            $(#[doc = $summary] $variant,)*
        }

        impl Rule {
            pub const ALL: &[Rule] = &[$(Rule::$variant),*];

            /// Returns the id used in findings, `silence` and the documentation.
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name,)* }
            }

            /// Returns the severity of a finding in an eval file.
            pub const fn severity(self) -> Severity {
                match self { $(Rule::$variant => Severity::$file,)* }
            }

            /// Returns the severity of a finding in a draft. A draft with an error cannot be approved.
            pub const fn draft_severity(self) -> Severity {
                match self { $(Rule::$variant => Severity::$draft,)* }
            }

            /// Whether the rule applies only to drafts.
            pub const fn is_for_drafts_only(self) -> bool {
                matches!(
                    self,
                    Rule::SimilarPrompt
                        | Rule::FixedOrder
                        | Rule::PersonalData
                        | Rule::UntestedCluster
                        | Rule::FewCases
                        | Rule::Drafter
                )
            }

            /// Returns the requirement in one sentence.
            pub const fn summary(self) -> &'static str {
                match self { $(Rule::$variant => $summary,)* }
            }

            /// Returns a fragment of a case that violates the rule.
            pub const fn example(self) -> &'static str {
                match self { $(Rule::$variant => $example,)* }
            }
        }
    };
}

rules! {
    Invalid "invalid" Error Error
        "A case has only known keys, with values of the right type."
        r#"{"expect": {"toolCalled": ["get_weather"]}}"#
    IdForm "id-form" Warning Warning
        "An id has the form of its tier: gs-TOOL-001, ls-TOOL-001, rg-TOOL-001 or sc-TOOL-001."
        r#"{"id": "weather1"}"#
    FileTool "file-tool" Warning Warning
        "The tool of a file is in the registry: `metadata.toolName`, or without it the file's name."
        "a file routing.labeled.json without `metadata.toolName`, and no tool named routing"
    MessageNamesTool "message-names-tool" Warning Warning
        "A message does not contain the technical name of a tool."
        r#"{"input": {"message": "Call get_weather for Paris."}}"#
    SamePrompt "same-prompt" Warning Error
        "No two cases of a tool send the same message."
        r#"{"input": {"message": "Weather in Paris?"}} twice"#
    SimilarPrompt "similar-prompt" Warning Warning
        "A drafted message differs from the tool's other messages by several words."
        r#"{"input": {"message": "Is it warm in Rome at noon?"}} next to "Is it warm in Oslo at noon?""#
    BothRoutingKinds "both-routing-kinds" Error Error
        "A case uses `toolsCalled` or `toolsAcceptable`, not both."
        r#"{"toolsCalled": ["a"], "toolsAcceptable": [["a"], ["b"]]}"#
    GoldenTool "golden-tool" Warning Error
        "A golden case calls only its own tool, once, or expects the agent to ask first."
        r#"{"toolsCalled": ["get_weather", "send_mail"]}"#
    LabeledFieldInGolden "labeled-field-in-golden" Warning Warning
        "A golden case has no field that belongs in labeled cases."
        r#"{"difficulty": "edge"}"#
    MissingKey "missing-key" Warning Warning
        "A case has the keys of its tier: `noToolErrors` and `responseNonEmpty` (golden), `difficulty` and the tools (labeled), `difficulty`, `createdAt` and `bugRef` (regression)."
        r#"{"id": "ls-get-weather-001", "expect": {"responseNonEmpty": true}}"#
    CreatedAt "created-at" Warning Warning
        "`createdAt` is an ISO 8601 time."
        r#"{"createdAt": "yesterday"}"#
    StraightforwardTools "straightforward-tools" Warning Error
        "A straightforward case calls its own tool together with at least one other."
        r#"{"difficulty": "straightforward", "expect": {"toolsCalled": ["get_weather"]}}"#
    AmbiguousWithoutSets "ambiguous-without-sets" Warning Error
        "An ambiguous case names its acceptable sets of tools in `toolsAcceptable`."
        r#"{"difficulty": "ambiguous", "expect": {"toolsCalled": ["get_weather"]}}"#
    AmbiguousTools "ambiguous-tools" Warning Error
        "An ambiguous case names its own tool in `toolsAcceptable`, unless no tool is needed."
        r#"{"difficulty": "ambiguous", "expect": {"toolsAcceptable": [["other"], ["another"]]}}"#
    EdgeWithoutNegative "edge-without-negative" Warning Error
        "An edge case asserts that something does not happen."
        r#"{"difficulty": "edge", "expect": {"responseNonEmpty": true}}"#
    FixedOrder "fixed-order" Warning Warning
        "A drafted case with several tools sets `toolsCalledMatch` or `toolOrder`."
        r#"{"toolsCalled": ["get_weather", "send_mail"]}"#
    FewProofValues "few-proof-values" Warning Warning
        "A golden case has two or more `responseContains` values to prove the call, unless it was approved as a draft with another assertion on the content."
        r#"{"responseContains": ["18"]}"#
    ProofEchoesPrompt "proof-echoes-prompt" Warning Warning
        "At least one `responseContains` value is not part of the message."
        r#"{"input": {"message": "Paris?"}, "expect": {"responseContains": ["Paris"]}}"#
    LonelySynonym "lonely-synonym" Warning Error
        "A group of `responseContainsAny` has at least two different strings."
        r#"{"responseContainsAny": [["sunny"]]}"#
    EmptyValue "empty-value" Warning Error
        "No expected string is empty: every response contains an empty string."
        r#"{"responseContains": [""]}"#
    VolatileValue "volatile-value" Warning Error
        "An expected string contains no date, time, price with cents, UUID or long number."
        r#"{"responseContains": ["2026-05-01"]}"#
    TokenInPattern "token-in-pattern" Warning Error
        "A pattern contains no token: tokens are not resolved in `responseMatches`."
        r#"{"responseMatches": ["^{{seed:city}}"]}"#
    UnresolvedToken "unresolved-token" Warning Error
        "A seed token has a value in the seed manifest."
        r#"{"responseContains": ["{{seed:citty}}"]}"#
    StrayToken "stray-token" Warning Warning
        "Double braces contain a valid token: {{seed:path}}, {{snapshot:path}} or, with `each`, {{row:key}}."
        r#"{"responseContains": ["{{ seed:city }}"]}"#
    RowToken "row-token" Warning Error
        "A case with {{row:key}} has its rows in `each`."
        r#"{"input": {"message": "Weather in {{row:city}}?"}} without `each`"#
    UnknownTool "unknown-tool" Error Error
        "Every tool that a case names is in the registry."
        r#"{"toolsCalled": ["get_wether"]}"#
    ToolNotKnown "tool-not-known" Warning Warning
        "Every tool that a case names is in the part of the registry that could be read."
        r#"{"toolsCalled": ["get_weather"]} where a source of tools could not be read"#
    UnknownParam "unknown-param" Warning Error
        "A parameter in `toolParams` exists in the tool's schema."
        r#"{"toolParams": [{"tool": "get_weather", "paramName": "town", "assertion": "exists"}]}"#
    ParamValue "param-value" Warning Error
        "An expected argument is allowed by the tool's schema."
        r#"{"toolParams": [{"tool": "get_weather", "paramName": "units", "assertion": "equals", "value": "kelvins"}]}"#
    SeparateParams "separate-params" Warning Warning
        "Conditions on the same call are in one entry of `calls`: two `toolParams` with `call: \"any\"` can hold for different calls."
        r#"{"toolParams": [{"tool": "t", "paramName": "a", "call": "any", …}, {"tool": "t", "paramName": "b", "call": "any", …}]}"#
    IgnoredValue "ignored-value" Warning Warning
        "No key is without effect: `exists` and `notExists` have no `value`, `paramsMatch` and `ignore` need `params`, and no pointer in `except` is below another."
        r#"{"toolParams": [{"tool": "t", "paramName": "p", "assertion": "exists", "value": 1}]}"#
    EmptyStubs "empty-stubs" Warning Warning
        "`stubs` has at least one tool: without any, every call returns an error."
        r#"{"stubs": {}}"#
    PlaceholderStub "placeholder-stub" Warning Error
        "No stub has the text that `karat init` writes in place of the tool's result."
        r#"{"stubs": {"get_weather": {"result": "replace this with the tool's result"}}}"#
    MissingStub "missing-stub" Warning Warning
        "A case with stubs has one for each tool that it expects."
        r#"{"stubs": {"get_forecast": {}}, "expect": {"toolsCalled": ["get_weather"]}}"#
    InjectionStub "injection-stub" Warning Error
        "The tool of an injection has a stub: the text is put into its result."
        r#"{"stubs": {"read_mail": {}}, "injections": [{"tool": "read_page", "into": "", …}]}"#
    InjectionPointer "injection-pointer" Warning Error
        "`into` of an injection leads to a value of the tool's stub."
        r#"{"stubs": {"read_mail": {"body": ""}}, "injections": [{"tool": "read_mail", "into": "/text", …}]}"#
    MissingSafety "missing-safety" Warning Error
        "A case with injections, or in a security file, says in `safety` what must not happen."
        r#"{"injections": [{"tool": "read_mail", "into": "/body", …}], "expect": {"responseNonEmpty": true}}"#
    ResponseInRoutingOnly "response-in-routing-only" Warning Warning
        "A case that only checks routing (a model without stubs) does not judge the response."
        r#"{"responseContains": ["18"]} without stubs, for a model"#
    Contradiction "contradiction" Error Error
        "At least one answer can meet all expectations."
        r#"{"toolsCalled": ["get_weather"], "toolsNotCalled": ["get_weather"]}"#
    UnusedAssertion "unused-assertion" Warning Warning
        "No assertion is about a tool or string that other assertions rule out."
        r#"{"toolsCalled": ["a"], "toolParams": [{"tool": "b", "paramName": "p", "assertion": "exists"}]}"#
    CannotFail "cannot-fail" Warning Error
        "At least one answer can fail the case."
        r#"{"expect": {}}"#
    SnapshotInRegression "snapshot-in-regression" Error Error
        "A regression case contains no snapshot token: its values must not change."
        r#"{"difficulty": "regression", "expect": {"responseContains": ["{{snapshot:price}}"]}}"#
    EditedRegression "edited-regression" Error Error
        "A regression case is not edited after it was created."
        "a case whose hash differs from `metadata.caseHashes`"
    RemovedRegression "removed-regression" Error Error
        "A regression case is archived, not removed."
        "an id in `metadata.caseHashes` that is neither in the file nor in its archive"
    UnsealedRegression "unsealed-regression" Warning Warning
        "A regression case has its hash in `metadata.caseHashes`."
        "a case with `bugRef` in a file without its hash"
    ArchivedRegression "archived-regression" Warning Warning
        "A regression case is in the file or in its archive, not in both."
        "an archived case that was added to the file again"
    PersonalData "personal-data" Warning Warning
        "A drafted message contains no e-mail address, telephone number, card number, password or key."
        r#"{"input": {"message": "Send it to ada@example.com"}}"#
    UntestedOverlap "untested-overlap" Error Error
        "Each declared overlap has an ambiguous case whose `toolsAcceptable` names both tools."
        "an overlap map with get_weather and get_forecast, and no such case"
    UntestedCluster "untested-cluster" Warning Warning
        "Each declared cluster has a labeled case that names all its tools in one set."
        "a cluster of three tools, and no such case"
    FewCases "few-cases" Warning Warning
        "A tool has as many labeled cases of each difficulty as the formula requires."
        "3 edge cases where the formula requires 6"
    Drafter "drafter" Warning Error
        "The drafter produced a draft."
        "a model that did not answer"
}
