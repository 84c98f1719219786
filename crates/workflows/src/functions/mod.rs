//! Python eval functions on disk: those of the project, those that arguments name, and those that cases name.

mod cases;
mod lookup;
mod project;

pub use cases::{names_of, pointer_to_cases, start_functions};
pub use lookup::{
    FoundFile, LoadedFunction, find_function_files, is_written_as_path, load_functions, no_functions, paths_among,
};
pub use project::{FunctionFile, ProjectFunctions, find_functions};
