//! Rows of either database.

use jiff::Timestamp;
use karat_core::port::StoreError;
use karat_core::rating::Rating;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Column as _, Row as _, TypeInfo as _};

use crate::failure::{invalid_data, query_error};

/// A row whose columns are read in order.
pub(crate) struct Row {
    columns: Columns,
    next: usize,
}

enum Columns {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

macro_rules! read {
    ($row:expr, $kind:ty) => {{
        let column = $row.next;
        $row.next += 1;
        match &$row.columns {
            Columns::Sqlite(columns) => columns.try_get_unchecked::<Option<$kind>, _>(column),
            Columns::Postgres(columns) => columns.try_get_unchecked::<Option<$kind>, _>(column),
        }
        .map_err(query_error)?
    }};
}

impl Row {
    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        self.text_or_null()?.ok_or_else(|| invalid_data("expected text, found null"))
    }

    pub(crate) fn text_or_null(&mut self) -> Result<Option<String>, StoreError> {
        Ok(read!(self, String))
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        self.bytes_or_null()?.ok_or_else(|| invalid_data("expected bytes, found null"))
    }

    pub(crate) fn bytes_or_null(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(read!(self, Vec<u8>))
    }

    pub(crate) fn real_or_null(&mut self) -> Result<Option<f64>, StoreError> {
        Ok(read!(self, f64))
    }

    pub(crate) fn number(&mut self) -> Result<u64, StoreError> {
        self.number_or_null()?.ok_or_else(|| invalid_data("expected a number, found null"))
    }

    pub(crate) fn number_or_null(&mut self) -> Result<Option<u64>, StoreError> {
        let number = match &self.columns {
            Columns::Sqlite(_) => read!(self, i64),
            Columns::Postgres(columns) => {
                match columns.columns().get(self.next).map(|column| column.type_info().name()) {
                    Some("INT2") => read!(self, i16).map(i64::from),
                    Some("INT4") => read!(self, i32).map(i64::from),
                    _ => read!(self, i64),
                }
            }
        };
        number
            .map(|number| u64::try_from(number).map_err(|_| invalid_data("expected a non-negative number")))
            .transpose()
    }

    pub(crate) fn boolean(&mut self) -> Result<bool, StoreError> {
        Ok(self.number()? != 0)
    }

    pub(crate) fn boolean_or_null(&mut self) -> Result<Option<bool>, StoreError> {
        Ok(self.number_or_null()?.map(|number| number != 0))
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.time_or_null()?.ok_or_else(|| invalid_data("expected a time, found null"))
    }

    pub(crate) fn time_or_null(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let text = self.text_or_null()?;
        text.map(|text| text.parse().map_err(|_| invalid_data(&format!("expected a time, found '{text}'")))).transpose()
    }

    pub(crate) fn rating(&mut self) -> Result<Rating, StoreError> {
        self.rating_or_null()?.ok_or_else(|| invalid_data("expected a rating, found null"))
    }

    pub(crate) fn rating_or_null(&mut self) -> Result<Option<Rating>, StoreError> {
        self.named("a rating", Rating::from_name)
    }

    /// Reads a string and converts it with `find`; `expected` describes the values.
    pub(crate) fn named<T>(
        &mut self,
        expected: &str,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        let text = self.text_or_null()?;
        text.map(|text| find(&text).ok_or_else(|| invalid_data(&format!("expected {expected}, found '{text}'"))))
            .transpose()
    }
}

impl From<SqliteRow> for Row {
    fn from(row: SqliteRow) -> Self {
        Self { columns: Columns::Sqlite(row), next: 0 }
    }
}

impl From<PgRow> for Row {
    fn from(row: PgRow) -> Self {
        Self { columns: Columns::Postgres(row), next: 0 }
    }
}
