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
}

impl TraceFormat {
    pub const ALL: [TraceFormat; 8] = [
        TraceFormat::Karat,
        TraceFormat::Otlp,
        TraceFormat::Jaeger,
        TraceFormat::Langfuse,
        TraceFormat::LangSmith,
        TraceFormat::OpenAi,
        TraceFormat::Anthropic,
        TraceFormat::TauBench,
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
        }
    }

    /// Whether traces arrive as spans that are merged. Otherwise each trace arrives whole.
    pub fn is_span_based(self) -> bool {
        matches!(self, TraceFormat::Otlp | TraceFormat::Jaeger | TraceFormat::LangSmith)
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
