// SPDX-License-Identifier: MIT OR Apache-2.0
//! A backup is a consistent store whoever writes meanwhile, and comes back on either database.
//!
//! Context: tests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_store::{Filter, Store, StoreError, StoreLocation, Value};
use tailbound_sys::new_file::Existing;

use crate::server::Server;
use crate::{NOW, added, asked, file, incoming, on_both};

fn opened(place: &StoreLocation) -> Store {
    Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{place}: {e}"))
}

/// Rows of every table, and every file.
type Whole = (Vec<Vec<Vec<Value>>>, BTreeMap<String, Vec<u8>>);

/// Everything that the store says of its runs, with their files.
fn all(store: &mut Store) -> Whole {
    // A query tells bytes by their number only, and not the same way on both.
    let plain = |value| match value {
        Value::Bytes(bytes) => Value::Int(bytes.len() as i64),
        other => other,
    };
    let table = |(name, _): &(&str, Vec<&str>)| -> Vec<Vec<Value>> {
        let rows = asked(store, &format!("SELECT * FROM {name} ORDER BY 1, 2"));
        let rows = rows.unwrap_or_else(|e| panic!("{name}: {e}"));
        rows.into_iter().map(|row| row.into_iter().map(plain).collect()).collect()
    };
    let rows = tailbound_store::tables().iter().map(table).collect();
    let list = store.list(&Filter::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut file = |id: String| {
        let bytes = store.file(&id).unwrap_or_else(|e| panic!("{id}: {e}"));
        (id, bytes)
    };
    (rows, list.into_iter().map(|l| file(l.id)).collect())
}

/// A backup into `folder` is one file; as a store.
fn backed_up(store: &mut Store, folder: &Path, name: &str) -> (Store, std::path::PathBuf) {
    let to = folder.join(name);
    let n = store.backup(&to, NOW).unwrap_or_else(|e| panic!("{e}"));
    let beside: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{e}"))
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with(&format!("{name}-")))
        .collect();
    assert!(beside.is_empty(), "{beside:?}");
    let copy = folder.join(format!("opened {name}"));
    std::fs::copy(&to, &copy).unwrap_or_else(|e| panic!("{e}"));
    let mut copy = opened(&StoreLocation::File(copy));
    assert_eq!(copy.count().ok(), Some(n));
    (copy, to)
}

#[test]
fn nobody_else_reads_a_backup_and_none_is_overwritten() {
    use std::os::unix::fs::PermissionsExt as _;

    on_both(|place| {
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let to = folder.path().join("backup");
        let mut store = opened(place);
        store.backup(&to, NOW).unwrap_or_else(|e| panic!("{place}: {e}"));
        let mode = std::fs::metadata(&to).unwrap_or_else(|e| panic!("{e}")).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{place}");
        assert!(store.backup(&to, NOW).is_err(), "{place}");
        // The verb's way, over a file that everybody could read as well.
        let by_verb = folder.path().join("verb");
        std::fs::write(&by_verb, "old").unwrap_or_else(|e| panic!("{e}"));
        let wide = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&by_verb, wide).unwrap_or_else(|e| panic!("{e}"));
        for (name, existing) in [("verb", Existing::Replace), ("new", Existing::Keep)] {
            let to = folder.path().join(name);
            store.backup_file(&to, existing, NOW).unwrap_or_else(|e| panic!("{place}: {e}"));
            let mode = std::fs::metadata(&to).map(|m| m.permissions().mode() & 0o777);
            assert_eq!(mode.ok(), Some(0o600), "{place}: {name}");
        }
    });
}

#[test]
fn a_backup_beside_a_writer_is_whole() {
    on_both(|place| {
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let mut store = opened(place);
        added(&mut store, &[file("2026-01-01T00:00:00Z", "6.12.0", 5_000)], None);
        let over = AtomicBool::new(false);
        let written = std::thread::scope(|s| {
            let writer = s.spawn(|| {
                let mut theirs = opened(place);
                let mut written = BTreeMap::new();
                for nth in 0.. {
                    // Two at a time: both are in a backup, or none.
                    let two = [1, 2].map(|n| {
                        file(&format!("2026-02-01T00:00:0{n}Z"), &format!("6.12.{nth}"), 6_000)
                    });
                    added(&mut theirs, &two, Some("writer"));
                    written.extend(two.map(|f| (incoming(&f).packed.id, f)));
                    if over.load(Ordering::Relaxed) {
                        return written;
                    }
                }
                written
            });
            let mut counts = Vec::new();
            let mut backups = Vec::new();
            for nth in 0.. {
                let (mut copy, _) = backed_up(&mut store, folder.path(), &format!("b{nth}"));
                counts.push(copy.count().unwrap_or_else(|e| panic!("{e}")));
                backups.push(all(&mut copy).1);
                // The writer has written while backups were made.
                if nth >= 2 && counts.first() < counts.last() {
                    break;
                }
                assert!(nth < 500, "the writer wrote nothing");
            }
            over.store(true, Ordering::Relaxed);
            let written = writer.join().unwrap_or_else(|_| panic!("the writer failed"));
            assert!(counts.iter().all(|n| n % 2 == 1), "{place}: {counts:?}");
            for (id, bytes) in backups.iter().flatten() {
                assert!(written.get(id).is_none_or(|w| w == bytes), "{place}: {id}");
            }
            let known =
                backups.last().map(|b| b.keys().filter(|id| written.contains_key(*id)).count());
            assert_eq!(known.map(|n| n as u64 + 1), counts.last().copied());
            written.len() as u64
        });
        assert_eq!(store.count().ok(), Some(written + 1));
    });
}

#[test]
fn a_backup_is_restored_into_either_database_and_only_into_an_empty_one() {
    let server = Server::start();
    on_both(|place| {
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let mut store = opened(place);
        let files = [
            file("2026-01-01T00:00:00Z", "6.12.1", 50_000),
            file("2026-01-02T00:00:00Z", "6.12.2", 170_000),
        ];
        added(&mut store, &files, Some("press 7"));
        let first = incoming(&files[0]).packed.id;
        store.note(&first, NOW, "a person", "a note").unwrap_or_else(|e| panic!("{e}"));
        let before = all(&mut store);
        let (mut copy, backup) = backed_up(&mut store, folder.path(), "b");
        assert_eq!(all(&mut copy), before, "{place}");
        let plain = std::fs::read(&backup).ok();
        let mut targets = vec![StoreLocation::File(folder.path().join("new"))];
        if let Some(server) = &server {
            let kind = if matches!(place, StoreLocation::File(_)) { "file" } else { "server" };
            targets.push(server.database(kind).parse().unwrap_or_else(|e| panic!("{e}")));
        }
        for target in &targets {
            let mut new = opened(target);
            assert_eq!(
                new.restore(&backup).map_err(|e| e.to_string()),
                Ok(2),
                "{place} to {target}"
            );
            assert_eq!(all(&mut new), before, "{place} to {target}");
            let again = new.restore(&backup);
            assert!(matches!(again, Err(StoreError::NotEmpty { n: 2, .. })), "{again:?}");
            // It works on: rows point to each other as before.
            assert_eq!(new.rebuild(&mut |_, _| {}).ok(), Some(2));
        }
        assert_eq!(std::fs::read(&backup).ok(), plain, "a backup is only read");
        assert!(store.backup(&backup, NOW).is_err(), "a file that is there stays");
    });
}

#[test]
fn what_is_no_backup_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let mut store = opened(&StoreLocation::File(folder.path().join("store")));
    added(&mut store, &[file("2026-01-01T00:00:00Z", "6.12.1", 50_000)], None);
    let (_, backup) = backed_up(&mut store, folder.path(), "b");
    let mut bytes = std::fs::read(&backup).unwrap_or_else(|e| panic!("{e}"));
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0x55);
    let damaged = folder.path().join("damaged");
    std::fs::write(&damaged, &bytes).unwrap_or_else(|e| panic!("{e}"));
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap_or_else(|e| panic!("{e}"));
    let text = folder.path().join("text");
    std::fs::write(&text, "no database at all, but long enough to be looked at as one")
        .unwrap_or_else(|e| panic!("{e}"));
    let mut new = opened(&StoreLocation::File(folder.path().join("new")));
    for from in [&damaged, &empty, &text, &folder.path().join("missing")] {
        assert!(new.restore(from).is_err(), "{}", from.display());
        assert_eq!(new.count().ok(), Some(0));
    }
}
