//! Finds and loads Python eval functions: those of the project, of arguments and of cases.

mod cases;
mod lookup;
mod project;

pub use cases::{eval_names, cases_pointer, start_functions};
pub use lookup::{
    FoundFile, LoadedFunction, find_function_files, looks_like_path, load_functions, no_functions, path_arguments,
};
pub use project::{FunctionFile, ProjectFunctions, find_functions};
