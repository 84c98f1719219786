//! One suite for both databases.

mod comparison;
mod evals;
mod feedback;
mod opening;
mod runs;
mod traces;

/// Makes a test of each case for each database: `contract!(name, |place, store| { … })`.
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

use crate::support::{Kind, Place};

/// What a test is given.
pub(crate) struct Case<'c> {
    pub(crate) store: &'c Store,
    pub(crate) place: &'c Place,
}

pub(crate) async fn run<F>(kind: Kind, test: F)
where
    F: for<'c> FnOnce(Case<'c>) -> Pin<Box<dyn Future<Output = ()> + 'c>>,
{
    let place = Place::new(kind).await;
    let store = place.open().await;
    test(Case { store: &store, place: &place }).await;
    place.remove(store).await;
}
