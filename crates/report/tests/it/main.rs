//! Tests of reports of whole runs.

mod console;
mod coverage;
mod fixture;
mod github;
mod junit;
mod markdown;
mod matrix;
mod rubrics;
