//! Tests of reading eval files.

mod eval_files;
