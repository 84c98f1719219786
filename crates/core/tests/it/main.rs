//! The core as the rest of karat sees it: files in, verdicts out.

mod bfcl;
mod vectors;
