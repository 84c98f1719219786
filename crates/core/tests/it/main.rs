//! Tests of the core's public API: files in, verdicts out.

mod assertions;
mod bfcl;
mod eval_files;
mod lints;
mod model_turns;
mod rubrics;
mod vectors;
