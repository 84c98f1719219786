//! Connections and transactions for either database.

use std::sync::Arc;

use karat_core::port::StoreError;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Sqlite, SqlitePool};

use crate::failure::query_error;
use crate::row::Row;
use crate::statement::Statement;

/// The connection pools of one database.
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

    /// Starts a write transaction. There is one writer at a time: SQLite allows no other, and for PostgreSQL a lock
    /// does the same, so that ratings, counts and contradictions include what another writer just added.
    pub(crate) async fn write(&self) -> Result<Transaction, StoreError> {
        match &self.pools {
            Pools::Sqlite { writer, .. } => begin_sqlite(writer).await.map(Transaction::Sqlite).map_err(query_error),
            Pools::Postgres(pool) => {
                // Statements must see what others wrote before the lock was acquired, regardless of the server's default.
                let started = pool.begin_with("begin isolation level read committed").await.map_err(query_error)?;
                let mut transaction = Transaction::Postgres(started);
                transaction.execute(Statement::new(lock_statement("'traces'::regclass::oid"))).await?;
                Ok(transaction)
            }
        }
    }

    /// Starts a read transaction with a consistent snapshot.
    pub(crate) async fn read(&self) -> Result<Transaction, StoreError> {
        match &self.pools {
            Pools::Sqlite { readers, .. } => readers.begin().await.map(Transaction::Sqlite),
            Pools::Postgres(pool) => {
                pool.begin_with("begin isolation level repeatable read read only").await.map(Transaction::Postgres)
            }
        }
        .map_err(query_error)
    }

    /// Returns the rows of a query.
    pub(crate) async fn rows(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        match &self.pools {
            Pools::Sqlite { readers, .. } => {
                let (text, values) = statement.for_sqlite().map_err(query_error)?;
                let rows = sqlx::query_with(AssertSqlSafe(text), values).fetch_all(readers).await;
                Ok(rows.map_err(query_error)?.into_iter().map(Row::from).collect())
            }
            Pools::Postgres(pool) => {
                let (text, values) = statement.for_postgres().map_err(query_error)?;
                let rows = sqlx::query_with(AssertSqlSafe(text), values).fetch_all(pool).await;
                Ok(rows.map_err(query_error)?.into_iter().map(Row::from).collect())
            }
        }
    }

    /// Returns the first row of a query.
    pub(crate) async fn row(&self, statement: Statement) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// Returns the number that a query selects.
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

    /// Returns SQLite's writer pool, for tests that limit it.
    #[cfg(test)]
    pub(crate) fn sqlite_writer(&self) -> Option<&SqlitePool> {
        match &self.pools {
            Pools::Sqlite { writer, .. } => Some(writer),
            Pools::Postgres(_) => None,
        }
    }
}

/// Starts a write transaction. If the disk is full, SQLite ends a transaction by itself, but its connection still counts
/// it as open and cannot start another. Such a connection is replaced.
async fn begin_sqlite(writer: &SqlitePool) -> Result<sqlx::Transaction<'static, Sqlite>, sqlx::Error> {
    const BEGIN: &str = "begin immediate";
    match writer.begin_with(BEGIN).await {
        Err(sqlx::Error::InvalidSavePointStatement) => {
            // The next connection reports what is wrong with the file.
            writer.acquire().await?.close().await.ok();
            writer.begin_with(BEGIN).await
        }
        begun => begun,
    }
}

/// Returns the statement that acquires the writers' lock. Half of the key is the table's OID, an unsigned 32-bit
/// number, so that stores in different schemas do not wait for each other.
fn lock_statement(table: &str) -> String {
    format!("select pg_advisory_xact_lock((711033::int8 << 32) | {table}::int8)")
}

impl Transaction {
    /// Returns the rows of a query.
    pub(crate) async fn rows(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        match self {
            Transaction::Sqlite(transaction) => {
                let (text, values) = statement.for_sqlite().map_err(query_error)?;
                let rows = sqlx::query_with(AssertSqlSafe(text), values).fetch_all(&mut **transaction).await;
                Ok(rows.map_err(query_error)?.into_iter().map(Row::from).collect())
            }
            Transaction::Postgres(transaction) => {
                let (text, values) = statement.for_postgres().map_err(query_error)?;
                let rows = sqlx::query_with(AssertSqlSafe(text), values).fetch_all(&mut **transaction).await;
                Ok(rows.map_err(query_error)?.into_iter().map(Row::from).collect())
            }
        }
    }

    pub(crate) async fn row(&mut self, statement: Statement) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// Runs a statement and returns the number of affected rows.
    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError> {
        match self {
            Transaction::Sqlite(transaction) => {
                let (text, values) = statement.for_sqlite().map_err(query_error)?;
                let result = sqlx::query_with(AssertSqlSafe(text), values).execute(&mut **transaction).await;
                Ok(result.map_err(query_error)?.rows_affected())
            }
            Transaction::Postgres(transaction) => {
                let (text, values) = statement.for_postgres().map_err(query_error)?;
                let result = sqlx::query_with(AssertSqlSafe(text), values).execute(&mut **transaction).await;
                Ok(result.map_err(query_error)?.rows_affected())
            }
        }
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        match self {
            Transaction::Sqlite(transaction) => transaction.commit().await,
            Transaction::Postgres(transaction) => transaction.commit().await,
        }
        .map_err(query_error)
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, PgConnection};

    use super::*;

    #[tokio::test]
    #[ignore = "needs PostgreSQL"]
    async fn lock_accepts_any_table_oid() {
        let url = std::env::var("KARAT_TEST_POSTGRES")
            .expect("KARAT_TEST_POSTGRES is not set: scripts/test starts PostgreSQL");
        let mut connection = PgConnection::connect(&url).await.expect("PostgreSQL");
        for oid in ["1", "2147483648", "4294967295"] {
            let statement = AssertSqlSafe(lock_statement(&format!("{oid}::oid")));
            sqlx::query(statement).execute(&mut connection).await.expect("a lock");
        }
    }
}
