//! Opening and closing.

use karat_core::port::TraceStore;
use karat_store::Store;

use super::{Case, contract};
use crate::support::{at, trace};

contract! {
    what_was_kept_is_there_when_opened_again
    many_can_open_it_at_once
    a_newer_schema_is_left_alone
    a_changed_migration_is_noticed
    another_programs_database_is_left_alone
}

async fn what_was_kept_is_there_when_opened_again(Case { store, place }: Case<'_>) {
    store.put_traces(&[trace("a", "x")], at(0)).await.expect("stored");
    let again = place.open().await;
    assert!(again.trace("a").await.expect("read").is_some());
    again.close().await;
    let debug = format!("{store:?} {:?}", place.location);
    assert!(!debug.contains("password"), "{debug}");
}

async fn many_can_open_it_at_once(Case { place, .. }: Case<'_>) {
    // The store of this test is migrated already: theirs is not.
    let other = crate::support::Place::new(place.kind()).await;
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

async fn a_newer_schema_is_left_alone(Case { place, .. }: Case<'_>) {
    place
        .execute(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time) \
             select 9999, 'later', success, checksum, 0 from _sqlx_migrations where version = 1",
        )
        .await
        .expect("a newer schema");
    let refused = Store::open(&place.location).await.expect_err("refused");
    assert!(refused.message.ends_with("was written by a newer karat"), "{refused}");
    assert!(refused.hint.expect("a hint").contains("update karat"));
}

async fn a_changed_migration_is_noticed(Case { place, .. }: Case<'_>) {
    let zero = if place.kind() == crate::support::Kind::Sqlite { "x'00'" } else { "'\\x00'" };
    let change = format!("update _sqlx_migrations set checksum = {zero} where version = 1");
    place.execute(&change).await.expect("a change");
    let refused = Store::open(&place.location).await.expect_err("refused");
    assert!(refused.message.contains("has another schema than this karat"), "{refused}");
}

async fn another_programs_database_is_left_alone(Case { place, .. }: Case<'_>) {
    let tables = "create table feedback (mine bigint)";
    let migrations = "create table _sqlx_migrations (version bigint primary key, description text not null, \
                      installed_on timestamp, success boolean not null, checksum bytea not null, \
                      execution_time bigint not null); \
                      insert into _sqlx_migrations values (1, 'orders', null, true, 'x', 0)";
    for theirs in [tables, migrations] {
        let other = crate::support::Place::new(place.kind()).await;
        if let karat_store::Location::File(path) = &other.location {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, "").expect("an empty database");
        }
        other.execute(theirs).await.expect("another program");
        let refused = Store::open(&other.location).await.expect_err("refused");
        assert!(refused.message.ends_with("holds another program's tables"), "{refused}");
        assert!(refused.hint.is_some());
        other.execute("create table traces (nothing_was_made bigint)").await.expect("it is as it was");
        other.take_away().await;
    }
}
