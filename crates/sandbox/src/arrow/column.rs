//! A column of texts, in any of the ways in which Arrow keeps them.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema};

use super::ArrowError;

/// The texts of one record batch's column.
#[derive(Debug, Clone)]
pub struct Texts(ArrayRef);

impl Texts {
    pub(super) fn new(column: &ArrayRef) -> Self {
        Self(ArrayRef::clone(column))
    }

    /// Returns a row's text, none for null. It need not be UTF-8: the column may be one of bytes.
    pub fn bytes(&self, row: usize) -> Option<&[u8]> {
        let column = &self.0;
        if row >= column.len() || column.is_null(row) {
            return None;
        }
        Some(match column.data_type() {
            DataType::Utf8 => column.as_string::<i32>().value(row).as_bytes(),
            DataType::LargeUtf8 => column.as_string::<i64>().value(row).as_bytes(),
            DataType::Utf8View => column.as_string_view().value(row).as_bytes(),
            DataType::Binary => column.as_binary::<i32>().value(row),
            DataType::LargeBinary => column.as_binary::<i64>().value(row),
            DataType::BinaryView => column.as_binary_view().value(row),
            _ => return None,
        })
    }

    /// Returns a row's text, none for null and for what is no text.
    pub fn text(&self, row: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes(row)?).ok()
    }
}

/// Finds a column of texts by its name; the last of several, as in JSON.
pub(super) fn find(schema: &Schema, name: &str) -> Result<usize, ArrowError> {
    let Some(index) = schema.fields().iter().rposition(|field| field.name() == name) else {
        let columns = schema.fields().iter().map(|field| field.name().clone()).collect();
        return Err(ArrowError::NoColumn { name: name.to_owned(), columns });
    };
    let found = schema.field(index).data_type();
    match found {
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        // What an engine makes of a column in which it has seen nothing but nulls.
        | DataType::Null => Ok(index),
        other => Err(ArrowError::NotText { name: name.to_owned(), found: kind(other) }),
    }
}

/// Names a type as its engine does, without all that is in it.
fn kind(data_type: &DataType) -> String {
    match data_type {
        DataType::Struct(_) => "a struct".to_owned(),
        DataType::Map(..) => "a map".to_owned(),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => "a list".to_owned(),
        DataType::Dictionary(_, values) => format!("a dictionary of {values}"),
        other => other.to_string(),
    }
}
