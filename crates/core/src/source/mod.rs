//! Reading JSON that people write: every problem at once, each with its place in the text.
//!
//! Values are decoded from an ordinary tree. A problem remembers its JSON pointer, and only when there is
//! a problem is the text searched for the pointer's place, so that good files cost nothing extra.

mod decode;
mod edit;
mod json;
mod layout;
mod locate;
mod nearest;
mod place;

pub use decode::{
    ObjectReader, Path, Problem, Problems, Subject, pointer_key, read_array, read_bool, read_count, read_object_map,
    read_positive_count, read_positive_number, read_string, read_string_map, read_strings, read_word, type_name,
};
pub use edit::{EditError, JsonText, Side};
pub use json::{SyntaxError, parse};
pub use locate::{Located, locate};
pub use nearest::nearest;
pub use place::{Finding, Place, Position, locate_values};
