//! JSON that people write: strict reading with every problem at its place, edits that leave all other bytes alone, the
//! text form of values, and hashes.
//!
//! Values are decoded from an ordinary tree. A problem remembers its JSON pointer, and only when there is a problem is the
//! text searched for the pointer's place, so that good files cost nothing extra.
//!
//! Owns no format: what an eval file or a configuration looks like is for others. Touches no files.

pub mod canonical;
mod decode;
mod edit;
pub mod hash;
mod invalid_file;
mod json;
mod layout;
mod locate;
mod nearest;
mod place;
mod severity;
pub mod text;

pub use decode::{
    ObjectReader, Path, Problem, Problems, Subject, pointer_key, read_array, read_bool, read_count, read_object_map,
    read_positive_count, read_positive_number, read_string, read_string_map, read_strings, read_word, type_name,
};
pub use edit::{EditError, JsonText, Side};
pub use invalid_file::{InvalidFile, without_bom};
pub use json::{SyntaxError, parse};
pub use locate::{Located, locate};
pub use nearest::nearest;
pub use place::{Finding, Place, Position, locate_values};
pub use severity::Severity;
