//! One of two databases, and what both can be asked.

use std::sync::Arc;

use karat_core::port::StoreError;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Sqlite, SqlitePool};

use crate::failure::failed;
use crate::row::Row;
use crate::statement::Statement;

/// The pools of one database.
#[derive(Clone)]
pub(crate) struct Database {
    pools: Pools,
    label: Arc<str>,
}

#[derive(Clone)]
enum Pools {
    Sqlite { writer: SqlitePool, readers: SqlitePool },
    Postgres(PgPool),
}

/// A transaction: everything that is done in it is kept when it is committed, and nothing otherwise.
pub(crate) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

impl Database {
    pub(crate) fn sqlite(writer: SqlitePool, readers: SqlitePool, label: &str) -> Self {
        Self { pools: Pools::Sqlite { writer, readers }, label: label.into() }
    }

    pub(crate) fn postgres(pool: PgPool, label: &str) -> Self {
        Self { pools: Pools::Postgres(pool), label: label.into() }
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Begins to write. There is one writer at a time: SQLite allows no other, and PostgreSQL is asked for the same, so
    /// that ratings, counts and contradictions cannot miss what another writer just added.
    pub(crate) async fn write(&self) -> Result<Transaction, StoreError> {
        match &self.pools {
            Pools::Sqlite { writer, .. } => {
                writer.begin_with("begin immediate").await.map(Transaction::Sqlite).map_err(failed)
            }
            Pools::Postgres(pool) => {
                // Each statement must see what others wrote before this one's turn came, whatever the server's default is.
                let begun = pool.begin_with("begin isolation level read committed").await.map_err(failed)?;
                let mut transaction = Transaction::Postgres(begun);
                transaction.execute(Statement::new(lock("'traces'::regclass::oid"))).await?;
                Ok(transaction)
            }
        }
    }

    /// Begins to read several things as they are at one moment.
    pub(crate) async fn read(&self) -> Result<Transaction, StoreError> {
        match &self.pools {
            Pools::Sqlite { readers, .. } => readers.begin().await.map(Transaction::Sqlite),
            Pools::Postgres(pool) => {
                pool.begin_with("begin isolation level repeatable read read only").await.map(Transaction::Postgres)
            }
        }
        .map_err(failed)
    }

    /// Reads what one statement finds.
    pub(crate) async fn rows(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        match &self.pools {
            Pools::Sqlite { readers, .. } => {
                let (text, values) = statement.for_sqlite().map_err(failed)?;
                let rows = sqlx::query_with(AssertSqlSafe(text), values).fetch_all(readers).await;
                Ok(rows.map_err(failed)?.into_iter().map(Row::from).collect())
            }
            Pools::Postgres(pool) => {
                let (text, values) = statement.for_postgres().map_err(failed)?;
                let rows = sqlx::query_with(AssertSqlSafe(text), values).fetch_all(pool).await;
                Ok(rows.map_err(failed)?.into_iter().map(Row::from).collect())
            }
        }
    }

    /// Reads the first of what one statement finds.
    pub(crate) async fn row(&self, statement: Statement) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// Reads the one number that a statement returns.
    pub(crate) async fn number(&self, statement: Statement) -> Result<u64, StoreError> {
        self.row(statement).await?.map_or(Ok(0), |mut row| row.number())
    }

    pub(crate) async fn close(&self) {
        match &self.pools {
            Pools::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Pools::Postgres(pool) => pool.close().await,
        }
    }

    /// Gives the one connection that writes to SQLite, for tests that take something away from it.
    #[cfg(test)]
    pub(crate) fn sqlite_writer(&self) -> Option<&SqlitePool> {
        match &self.pools {
            Pools::Sqlite { writer, .. } => Some(writer),
            Pools::Postgres(_) => None,
        }
    }
}

/// Returns the statement that waits for the writers' turn. Half of the key is the table's number, so that stores in
/// several schemas do not wait for each other; such a number takes all of 32 bits.
fn lock(table: &str) -> String {
    format!("select pg_advisory_xact_lock((711033::int8 << 32) | {table}::int8)")
}

impl Transaction {
    /// Reads what a statement finds.
    pub(crate) async fn rows(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        match self {
            Transaction::Sqlite(transaction) => {
                let (text, values) = statement.for_sqlite().map_err(failed)?;
                let rows = sqlx::query_with(AssertSqlSafe(text), values).fetch_all(&mut **transaction).await;
                Ok(rows.map_err(failed)?.into_iter().map(Row::from).collect())
            }
            Transaction::Postgres(transaction) => {
                let (text, values) = statement.for_postgres().map_err(failed)?;
                let rows = sqlx::query_with(AssertSqlSafe(text), values).fetch_all(&mut **transaction).await;
                Ok(rows.map_err(failed)?.into_iter().map(Row::from).collect())
            }
        }
    }

    pub(crate) async fn row(&mut self, statement: Statement) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// Runs a statement and returns how many rows it wrote.
    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError> {
        match self {
            Transaction::Sqlite(transaction) => {
                let (text, values) = statement.for_sqlite().map_err(failed)?;
                let done = sqlx::query_with(AssertSqlSafe(text), values).execute(&mut **transaction).await;
                Ok(done.map_err(failed)?.rows_affected())
            }
            Transaction::Postgres(transaction) => {
                let (text, values) = statement.for_postgres().map_err(failed)?;
                let done = sqlx::query_with(AssertSqlSafe(text), values).execute(&mut **transaction).await;
                Ok(done.map_err(failed)?.rows_affected())
            }
        }
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        match self {
            Transaction::Sqlite(transaction) => transaction.commit().await,
            Transaction::Postgres(transaction) => transaction.commit().await,
        }
        .map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, PgConnection};

    use super::*;

    #[tokio::test]
    #[ignore = "needs PostgreSQL"]
    async fn a_table_may_have_any_number() {
        let url = std::env::var("KARAT_TEST_POSTGRES")
            .expect("KARAT_TEST_POSTGRES is not set: scripts/test starts PostgreSQL");
        let mut connection = PgConnection::connect(&url).await.expect("PostgreSQL");
        for number in ["1", "2147483648", "4294967295"] {
            let statement = AssertSqlSafe(lock(&format!("{number}::oid")));
            sqlx::query(statement).execute(&mut connection).await.expect("a lock");
        }
    }
}
