//! The core as the rest of karat sees it: files in, verdicts out.

mod bfcl;
mod judging;
mod lints;
mod reading;
mod rubrics;
mod turns;
mod vectors;
