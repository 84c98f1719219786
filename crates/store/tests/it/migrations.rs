//! Released migrations must not change, or existing stores could not be opened any more.

use std::path::Path;

use karat_json::hash::short_hash;

/// Every migration and its hash. A new migration adds a line; released lines never change.
const RELEASED: [(&str, &str); 4] = [
    ("postgres/0001_store.sql", "f99d065be98f"),
    ("postgres/0002_eval_options.sql", "aa62b29cd8ea"),
    ("sqlite/0001_store.sql", "d9622df20dda"),
    ("sqlite/0002_eval_options.sql", "76613ce7ccd1"),
];

#[test]
fn released_migrations_are_unchanged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut migrations = Vec::new();
    for database in ["postgres", "sqlite"] {
        for entry in std::fs::read_dir(folder.join(database)).expect("a folder") {
            let path = entry.expect("an entry").path();
            let hash = short_hash(&std::fs::read(&path).expect("a file"));
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            migrations.push((format!("{database}/{name}"), hash));
        }
    }
    migrations.sort();
    let migrations: Vec<(&str, &str)> = migrations.iter().map(|(name, hash)| (name.as_str(), hash.as_str())).collect();
    assert_eq!(migrations, RELEASED, "a migration was changed, or a new one is not listed");
}

#[test]
fn both_databases_have_the_same_migrations() {
    let names = |database: &str| {
        let released = RELEASED.iter().filter_map(|(name, _)| name.strip_prefix(database));
        released.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names("sqlite/"), names("postgres/"));
}
