//! Contract tests that run with both databases.

mod comparison;
mod evals;
mod feedback;
mod opening;
mod runs;
mod traces;

/// Defines a test with each database for each named function.
macro_rules! contract {
    ($($name:ident)*) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() { $crate::contract::run($crate::support::Kind::Sqlite, |case| Box::pin(super::$name(case))).await; })*
        }
        mod postgres {
            $(#[tokio::test] #[ignore = "needs PostgreSQL"] async fn $name() { $crate::contract::run($crate::support::Kind::Postgres, |case| Box::pin(super::$name(case))).await; })*
        }
    };
}
pub(crate) use contract;

use std::future::Future;
use std::pin::Pin;

use karat_store::Store;

use crate::support::{Kind, TestDatabase};

/// The arguments of a contract test.
pub(crate) struct Case<'c> {
    pub(crate) store: &'c Store,
    pub(crate) database: &'c TestDatabase,
}

pub(crate) async fn run<F>(kind: Kind, test: F)
where
    F: for<'c> FnOnce(Case<'c>) -> Pin<Box<dyn Future<Output = ()> + 'c>>,
{
    let database = TestDatabase::new(kind).await;
    let store = database.open().await;
    test(Case { store: &store, database: &database }).await;
    database.remove(store).await;
}
