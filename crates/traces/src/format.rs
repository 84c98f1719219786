//! The supported trace formats.

use std::fmt;

/// A format of traces, named after the program or API that writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TraceFormat {
    /// Trace documents, one per line.
    Karat,
    /// OpenTelemetry as JSON or protobuf, including Tempo exports.
    Otlp,
    /// Jaeger JSON.
    Jaeger,
    Langfuse,
    LangSmith,
    /// Message logs of the OpenAI API.
    OpenAi,
    /// Message logs of the Anthropic API.
    Anthropic,
    /// τ-bench trajectories.
    TauBench,
    /// τ²-bench results.
    Tau2Bench,
    /// Inspect logs, as JSON or `.eval` files.
    Inspect,
    /// `Trace.to_json()` of `MLflow`.
    Mlflow,
    /// Items that the OpenAI Agents SDK exports.
    OpenAiAgents,
    /// Session files of Claude Code.
    ClaudeCode,
    /// Session files of Codex.
    Codex,
    /// Sessions and eval sets of Google ADK.
    Adk,
    /// SWE-agent trajectories.
    SweAgent,
    /// Test cases, test runs and traces of `DeepEval`.
    DeepEval,
}

impl TraceFormat {
    pub const ALL: [TraceFormat; 17] = [
        TraceFormat::Karat,
        TraceFormat::Otlp,
        TraceFormat::Jaeger,
        TraceFormat::Langfuse,
        TraceFormat::LangSmith,
        TraceFormat::OpenAi,
        TraceFormat::Anthropic,
        TraceFormat::TauBench,
        TraceFormat::Tau2Bench,
        TraceFormat::Inspect,
        TraceFormat::Mlflow,
        TraceFormat::OpenAiAgents,
        TraceFormat::ClaudeCode,
        TraceFormat::Codex,
        TraceFormat::Adk,
        TraceFormat::SweAgent,
        TraceFormat::DeepEval,
    ];

    pub fn name(self) -> &'static str {
        match self {
            TraceFormat::Karat => "karat",
            TraceFormat::Otlp => "otlp",
            TraceFormat::Jaeger => "jaeger",
            TraceFormat::Langfuse => "langfuse",
            TraceFormat::LangSmith => "langsmith",
            TraceFormat::OpenAi => "openai",
            TraceFormat::Anthropic => "anthropic",
            TraceFormat::TauBench => "tau-bench",
            TraceFormat::Tau2Bench => "tau2-bench",
            TraceFormat::Inspect => "inspect",
            TraceFormat::Mlflow => "mlflow",
            TraceFormat::OpenAiAgents => "openai-agents",
            TraceFormat::ClaudeCode => "claude-code",
            TraceFormat::Codex => "codex",
            TraceFormat::Adk => "adk",
            TraceFormat::SweAgent => "swe-agent",
            TraceFormat::DeepEval => "deepeval",
        }
    }

    /// Whether traces arrive as spans that are merged. Otherwise each trace arrives whole.
    pub fn is_span_based(self) -> bool {
        matches!(self, TraceFormat::Otlp | TraceFormat::Jaeger | TraceFormat::LangSmith | TraceFormat::OpenAiAgents)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}
