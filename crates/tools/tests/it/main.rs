//! Coverage of tools by cases, through the public API.

mod coverage;
