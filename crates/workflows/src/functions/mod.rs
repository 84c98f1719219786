//! Finds and loads Python eval functions: those of the project, of arguments and of cases.

mod cases;
mod lookup;
mod project;

pub use cases::{eval_names, start_functions};
pub use lookup::{
    LoadedFunction, MatchedFile, find_function_files, load_functions, looks_like_path, no_functions, path_arguments,
};
pub use project::{FunctionFile, ProjectFunctions, find_functions};
