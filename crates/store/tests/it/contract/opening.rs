//! Opening and closing.

use karat_core::port::TraceStore;
use karat_store::Store;

use super::{Case, contract};
use crate::support::{at, trace};

contract! {
    data_persists_after_reopening
    concurrent_opens_migrate_once
    rejects_a_newer_schema
    detects_a_changed_migration
    rejects_databases_of_other_programs
}

async fn data_persists_after_reopening(Case { store, database }: Case<'_>) {
    store.put_traces(&[trace("a", "x")], at(0)).await.expect("stored");
    let again = database.open().await;
    assert!(again.trace("a").await.expect("read").is_some());
    again.close().await;
    let debug = format!("{store:?} {:?}", database.location);
    assert!(!debug.contains("password"), "{debug}");
}

async fn concurrent_opens_migrate_once(Case { database, .. }: Case<'_>) {
    // This test's own store is already migrated.
    let other = crate::support::TestDatabase::new(database.kind()).await;
    let open = async || {
        let store = Store::open(&other.location).await.expect("a store");
        store.put_traces(&[trace("a", "x")], at(0)).await.expect("stored");
        store
    };
    let stores = tokio::join!(open(), open(), open(), open());
    stores.0.close().await;
    stores.1.close().await;
    stores.2.close().await;
    other.remove(stores.3).await;
}

async fn rejects_a_newer_schema(Case { database, .. }: Case<'_>) {
    database
        .execute(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time) \
             select 9999, 'later', success, checksum, 0 from _sqlx_migrations where version = 1",
        )
        .await
        .expect("a newer schema");
    let error = Store::open(&database.location).await.expect_err("an error");
    assert!(error.message.ends_with("was created by a newer version of karat"), "{error}");
    assert!(error.hint.expect("a hint").contains("update karat"));
}

async fn detects_a_changed_migration(Case { database, .. }: Case<'_>) {
    let zero = if database.kind() == crate::support::Kind::Sqlite { "x'00'" } else { "'\\x00'" };
    let change = format!("update _sqlx_migrations set checksum = {zero} where version = 1");
    database.execute(&change).await.expect("a change");
    let error = Store::open(&database.location).await.expect_err("an error");
    assert!(error.message.contains("has a different schema"), "{error}");
}

async fn rejects_databases_of_other_programs(Case { database, .. }: Case<'_>) {
    let tables = "create table feedback (mine bigint)";
    let migrations = "create table _sqlx_migrations (version bigint primary key, description text not null, \
                      installed_on timestamp, success boolean not null, checksum bytea not null, \
                      execution_time bigint not null); \
                      insert into _sqlx_migrations values (1, 'orders', null, true, 'x', 0)";
    for statements in [tables, migrations] {
        let other = crate::support::TestDatabase::new(database.kind()).await;
        if let karat_store::Location::File(path) = &other.location {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, "").expect("an empty database");
        }
        other.execute(statements).await.expect("tables of another program");
        let error = Store::open(&other.location).await.expect_err("an error");
        assert!(error.message.ends_with("contains tables of another program"), "{error}");
        assert!(error.hint.is_some());
        other.execute("create table traces (still_free bigint)").await.expect("no table was created");
        other.drop_schema().await;
    }
}
