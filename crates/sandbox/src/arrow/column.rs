//! Text columns in any of Arrow's string and binary types.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema};

use super::ArrowError;

/// A string column of one record batch.
#[derive(Debug, Clone)]
pub struct TextColumn(ArrayRef);

impl TextColumn {
    pub(super) fn new(column: &ArrayRef) -> Self {
        Self(ArrayRef::clone(column))
    }

    /// Returns a row's bytes; `None` for null. They may not be UTF-8, since the column may be binary.
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

    /// Returns a row's text; `None` for null and for invalid UTF-8.
    pub fn text(&self, row: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes(row)?).ok()
    }
}

/// Finds a string column by name. If several columns have the name, returns the last, as for keys in JSON.
pub(super) fn find(schema: &Schema, name: &str) -> Result<usize, ArrowError> {
    let Some(index) = schema.fields().iter().rposition(|field| field.name() == name) else {
        let columns = schema.fields().iter().map(|field| field.name().clone()).collect();
        return Err(ArrowError::MissingColumn { name: name.to_owned(), columns });
    };
    let found = schema.field(index).data_type();
    match found {
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        // Some engines use this type for a column that contains only nulls.
        | DataType::Null => Ok(index),
        other => Err(ArrowError::NotText { name: name.to_owned(), found: type_name(other) }),
    }
}

/// Returns the name of a type without its fields.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Struct(_) => "a struct".to_owned(),
        DataType::Map(..) => "a map".to_owned(),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => "a list".to_owned(),
        DataType::Dictionary(_, values) => format!("a dictionary of {values}"),
        other => other.to_string(),
    }
}
