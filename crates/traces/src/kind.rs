//! The kinds of sources.

use std::fmt;

/// What wrote the traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Documents in the shape for eval functions, one on each line.
    Karat,
    /// OpenTelemetry, as JSON or protobuf; Tempo's exports too.
    Otlp,
    /// Jaeger's JSON.
    Jaeger,
    Langfuse,
    LangSmith,
    /// Logs of OpenAI's chat messages.
    OpenAi,
    /// Logs of Anthropic's messages.
    Anthropic,
    /// τ-bench's trajectories.
    TauBench,
}

impl Kind {
    pub const ALL: [Kind; 8] = [
        Kind::Karat,
        Kind::Otlp,
        Kind::Jaeger,
        Kind::Langfuse,
        Kind::LangSmith,
        Kind::OpenAi,
        Kind::Anthropic,
        Kind::TauBench,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Karat => "karat",
            Kind::Otlp => "otlp",
            Kind::Jaeger => "jaeger",
            Kind::Langfuse => "langfuse",
            Kind::LangSmith => "langsmith",
            Kind::OpenAi => "openai",
            Kind::Anthropic => "anthropic",
            Kind::TauBench => "tau-bench",
        }
    }

    /// Tells whether its traces come in spans, of which more may come; else each comes whole.
    pub fn comes_in_spans(self) -> bool {
        matches!(self, Kind::Otlp | Kind::Jaeger | Kind::LangSmith)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}
