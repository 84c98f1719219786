//! Tests of reports of whole runs.

mod coverage;
mod fixture;
mod github;
mod junit;
mod markdown;
mod matrix;
mod rubrics;
