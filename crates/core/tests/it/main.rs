//! Tests of the core's public API: files in, verdicts out.

mod assertions;
mod bfcl;
mod model_turns;
mod rubrics;
mod vectors;
