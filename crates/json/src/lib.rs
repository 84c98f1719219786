//! JSON that people write: strict decoding with the position of each problem, edits that leave all other bytes
//! unchanged, the text form of values, and hashes.
//!
//! Values are decoded from a plain tree. A problem records its JSON pointer; the text is searched for its position only
//! when there is one, so that valid files have no overhead.
//!
//! The crate is independent of karat's formats and does no I/O.

pub mod canonical;
mod decode;
mod edit;
pub mod hash;
mod invalid_file;
mod json;
mod layout;
mod locate;
mod location;
mod nearest;
mod number;
mod pretty;
mod severity;
pub mod text;

pub use decode::{
    ObjectReader, Path, Problem, Problems, Subject, member, pointer_key, read_array, read_bool, read_count, read_enum,
    read_object_map, read_pointer, read_positive_count, read_positive_number, read_string, read_string_map,
    read_strings, type_name,
};
pub use edit::{EditError, JsonText, Side};
pub use invalid_file::{InvalidFile, without_bom};
pub use json::{SyntaxError, parse};
pub use locate::{MemberRange, locate};
pub use location::{Finding, Location, Position, locate_values};
pub use nearest::nearest;
pub use number::{Decimal, equal_json, number_text};
pub use pretty::write_pretty;
pub use severity::Severity;
