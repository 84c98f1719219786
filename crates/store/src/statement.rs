//! Statements that both databases understand.
//!
//! A placeholder is `?`, and `column among ?` means that the column is one of a list of strings. PostgreSQL gets numbered
//! placeholders, and each database its own syntax for lists. SQLite keeps unnumbered placeholders: it looks up numbered
//! ones by their text, which dominates the time for thousands of them.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use sqlx::Arguments;
use sqlx::postgres::PgArguments;
use sqlx::sqlite::SqliteArguments;

use crate::text;

/// The value of a placeholder.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(Option<Arc<str>>),
    Number(Option<i64>),
    Real(Option<f64>),
    Bytes(Option<Vec<u8>>),
    Texts(Vec<String>),
}

impl Value {
    fn is_null(&self) -> bool {
        matches!(self, Self::Text(None) | Self::Number(None) | Self::Real(None) | Self::Bytes(None))
    }
}

/// A statement and the values of its placeholders.
#[derive(Debug, Default)]
pub(crate) struct Statement {
    text: Cow<'static, str>,
    values: Vec<Value>,
}

impl Statement {
    pub(crate) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), values: Vec::new() }
    }

    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.add(value);
        self
    }

    pub(crate) fn add(&mut self, value: impl Into<Value>) {
        self.values.push(value.into());
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.to_mut().push_str(text);
    }

    /// Appends another statement's text and values.
    pub(crate) fn append(&mut self, other: Statement) {
        self.text.to_mut().push_str(&other.text);
        self.values.extend(other.values);
    }

    /// Appends placeholders for rows of values, as in `values (?, ?), (?, ?)`.
    pub(crate) fn push_rows(&mut self, rows: usize, columns: usize) {
        self.values.reserve(rows * columns);
        let text = self.text.to_mut();
        for row in 0..rows {
            text.push_str(if row == 0 { "(" } else { ", (" });
            for column in 0..columns {
                text.push_str(if column == 0 { "?" } else { ", ?" });
            }
            text.push(')');
        }
    }

    /// Appends rows of values, as in `values (?, null), (?, null)`. A column without values needs no placeholders.
    pub(crate) fn push_values(&mut self, columns: usize, values: Vec<Value>) {
        let is_empty = |column| values.iter().skip(column).step_by(columns).all(Value::is_null);
        let empty: Vec<bool> = (0..columns).map(is_empty).collect();
        let text = self.text.to_mut();
        let mut row = String::from("(");
        for (column, is_empty) in empty.iter().enumerate() {
            row.push_str(if column == 0 { "" } else { ", " });
            row.push_str(if *is_empty { "null" } else { "?" });
        }
        row.push(')');
        for number in 0..values.len() / columns {
            text.push_str(if number == 0 { "" } else { ", " });
            text.push_str(&row);
        }
        let used = values.into_iter().zip(empty.into_iter().cycle()).filter(|(_, is_empty)| !is_empty);
        self.values.extend(used.map(|(value, _)| value));
    }

    pub(crate) fn for_sqlite(self) -> Result<(String, SqliteArguments), sqlx::Error> {
        let text = self.text.replace(" among ?", " in (select value from json_each(?))");
        let mut arguments = SqliteArguments::default();
        arguments.reserve(self.values.len(), 0);
        for value in self.values {
            match value {
                Value::Text(value) => arguments.add(value),
                Value::Number(value) => arguments.add(value),
                Value::Real(value) => arguments.add(value),
                Value::Bytes(value) => arguments.add(value),
                Value::Texts(values) => arguments.add(serde_json::to_string(&values).unwrap_or_default()),
            }
            .map_err(sqlx::Error::Encode)?;
        }
        Ok((text, arguments))
    }

    pub(crate) fn for_postgres(self) -> Result<(String, PgArguments), sqlx::Error> {
        let mut text = String::with_capacity(self.text.len() + self.values.len() * 4);
        let list = " among ";
        for (number, part) in self.text.split('?').enumerate() {
            if number > 0 {
                let among = text.ends_with(list);
                if among {
                    text.truncate(text.len() - list.len());
                    text.push_str(" = any(");
                }
                text.push('$');
                text.push_str(&number.to_string());
                if among {
                    text.push(')');
                }
            }
            text.push_str(part);
        }
        let mut arguments = PgArguments::default();
        for value in self.values {
            match value {
                Value::Text(value) => arguments.add(value),
                Value::Number(value) => arguments.add(value),
                Value::Real(value) => arguments.add(value),
                Value::Bytes(value) => arguments.add(value),
                Value::Texts(values) => arguments.add(values),
            }
            .map_err(sqlx::Error::Encode)?;
        }
        Ok((text, arguments))
    }
}

/// Splits a list into parts whose lengths are powers of two, largest first, so that few distinct statements need to be
/// prepared for lists of any length.
pub(crate) fn parts<T>(list: &[T], largest: usize) -> impl Iterator<Item = &[T]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let mut size = largest;
        while size > rest.len() && size > 1 {
            size /= 2;
        }
        let (part, after) = rest.split_at_checked(size)?;
        rest = after;
        Some(part)
    })
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(Some(text::replace_nul(value).as_ref().into()))
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Self {
        value.as_str().into()
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        value.as_str().into()
    }
}

/// Shares the text.
impl From<&Arc<str>> for Value {
    fn from(value: &Arc<str>) -> Self {
        match text::replace_nul(value) {
            Cow::Borrowed(_) => Value::Text(Some(Arc::clone(value))),
            Cow::Owned(text) => Value::Text(Some(text.into())),
        }
    }
}

impl From<Option<&str>> for Value {
    fn from(value: Option<&str>) -> Self {
        Value::Text(value.map(|value| text::replace_nul(value).as_ref().into()))
    }
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Self {
        Value::Text(Some(text::time(value).into()))
    }
}

impl From<Option<Timestamp>> for Value {
    fn from(value: Option<Timestamp>) -> Self {
        Value::Text(value.map(|value| text::time(value).into()))
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Some(value).into()
    }
}

impl From<Option<u64>> for Value {
    fn from(value: Option<u64>) -> Self {
        Value::Number(value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Number(Some(value))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Some(value).into()
    }
}

impl From<Option<bool>> for Value {
    fn from(value: Option<bool>) -> Self {
        Value::Number(value.map(i64::from))
    }
}

/// NaN and infinity become null: SQLite does not support them.
impl From<Option<f64>> for Value {
    fn from(value: Option<f64>) -> Self {
        Value::Real(value.filter(|value| value.is_finite()))
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Value::Bytes(Some(value))
    }
}

impl From<Option<Vec<u8>>> for Value {
    fn from(value: Option<Vec<u8>>) -> Self {
        Value::Bytes(value)
    }
}

impl From<Vec<String>> for Value {
    fn from(values: Vec<String>) -> Self {
        Value::Texts(values.into_iter().map(|value| text::replace_nul(&value).into_owned()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_placeholders_for_each_database() {
        let statement = || {
            Statement::new("select 1 where a = ? and b among ? and c < ?")
                .bind("a")
                .bind(vec!["b".to_owned()])
                .bind(3_u64)
        };
        let (text, arguments) = statement().for_postgres().expect("arguments");
        assert_eq!((text.as_str(), arguments.len()), ("select 1 where a = $1 and b = any($2) and c < $3", 3));
        let (text, arguments) = statement().for_sqlite().expect("arguments");
        assert_eq!(text, "select 1 where a = ? and b in (select value from json_each(?)) and c < ?");
        assert_eq!(arguments.len(), 3);
    }

    #[test]
    fn writes_placeholders_for_rows() {
        let mut statement = Statement::new("values ");
        statement.push_rows(2, 3);
        assert_eq!(statement.text, "values (?, ?, ?), (?, ?, ?)");
    }

    #[test]
    fn a_column_without_values_needs_no_placeholders() {
        let mut statement = Statement::new("values ");
        let rows: [(&str, Option<u64>, Option<&str>); 2] = [("a", None, Some("x")), ("b", None, None)];
        let values = rows.into_iter().flat_map(|(first, second, third)| [first.into(), second.into(), third.into()]);
        statement.push_values(3, values.collect());
        assert_eq!(statement.text, "values (?, null, ?), (?, null, ?)");
        assert_eq!(statement.values.len(), 4);
    }

    #[test]
    fn splits_a_list_into_powers_of_two() {
        let list = [0; 300];
        let sizes: Vec<usize> = parts(&list, 128).map(<[i32]>::len).collect();
        assert_eq!(sizes, [128, 128, 32, 8, 4]);
        assert_eq!(parts(&list[..0], 128).count(), 0);
        assert_eq!(parts(&list[..1], 128).count(), 1);
    }
}
