// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lab's folder holds, in words and for scripts.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cache::{self, Item, Limits};
use crate::error::LabError;
use crate::store::Store;

/// The folder, and what was done about it.
#[derive(Clone, Debug)]
pub struct CacheReport {
    folder: PathBuf,
    limits: Limits,
    items: Vec<Item>,
    removed: Vec<Item>,
    /// What is not what it was, and why; none where nobody looked.
    damaged: Option<Vec<(PathBuf, String)>>,
}

impl CacheReport {
    /// The folder as it is now, after `removed` went.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn of(store: &Store, limits: Limits, removed: Vec<Item>) -> Result<Self, LabError> {
        let items = cache::items(store)?;
        Ok(Self { folder: store.folder().to_owned(), limits, items, removed, damaged: None })
    }

    /// Holds everything that has a hash against it.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn verify(&mut self, store: &Store) -> Result<(), LabError> {
        self.damaged = Some(cache::damaged(store)?);
        Ok(())
    }

    /// Something is not what it was.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.damaged.as_ref().is_some_and(|d| !d.is_empty())
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        let one = |(path, why): &(PathBuf, String)| json!({"path": path, "why": why});
        let damaged: Option<Vec<Value>> =
            self.damaged.as_ref().map(|all| all.iter().map(one).collect());
        json!({
            "folder": self.folder, "items": self.items, "removed": self.removed,
            "damaged": damaged,
            "limit_bytes": self.limits.bytes, "limit_age_s": self.limits.age.as_secs(),
        })
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text: String = self.items.iter().map(line).collect();
        let (all, removed) = (size(sum(&self.items)), size(sum(&self.removed)));
        text.push_str(&format!("{all:>9}  in {}\n", self.folder.display()));
        if !self.removed.is_empty() {
            text.push_str(&format!("{removed:>9}  removed: {}\n", names(&self.removed)));
        }
        for (path, why) in self.damaged.iter().flatten() {
            text.push_str(&format!("damaged: {}: {why}\n", path.display()));
        }
        text.push_str(match &self.damaged {
            None => "",
            Some(none) if none.is_empty() => "Everything that has a hash is what it was.\n",
            Some(_) => {
                "What is damaged is removed and made again when it is used; a build is to be built again.\n"
            }
        });
        text
    }
}

fn line(item: &Item) -> String {
    let days = item.unused_s / (24 * 3600);
    let unused = if days == 0 { String::new() } else { format!(", unused for {days} days") };
    format!("{:>9}  {}/{}{unused}\n", size(item.bytes), item.kind, short(&item.name))
}

fn names(items: &[Item]) -> String {
    let all: Vec<String> = items.iter().map(|i| format!("{}/{}", i.kind, short(&i.name))).collect();
    all.join(", ")
}

/// A hash by its beginning.
fn short(name: &str) -> &str {
    let hash = name.len() >= 64 && name.bytes().all(|b| b.is_ascii_hexdigit());
    if hash { name.get(..12).unwrap_or(name) } else { name }
}

fn sum(items: &[Item]) -> u64 {
    items.iter().map(|i| i.bytes).sum()
}

fn size(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_damaged_is_told_and_what_nobody_looked_at_is_not_called_sound() {
        let item = Item {
            kind: "snapshots",
            name: "0123456789abcdef".repeat(4),
            path: PathBuf::from("/lab/s"),
            bytes: (1 << 20) + 1,
            unused_s: 3 * 24 * 3600,
            remade: true,
        };
        let limits = Limits { bytes: 1, age: Duration::from_secs(2) };
        let folder = PathBuf::from("/lab");
        let mut report =
            CacheReport { folder, limits, items: vec![item], removed: Vec::new(), damaged: None };
        let listed = "    2 MiB  snapshots/0123456789ab, unused for 3 days\n    2 MiB  in /lab\n";
        assert_eq!(report.text(), listed);
        assert!(!report.is_damaged() && report.json()["damaged"].is_null());
        report.damaged = Some(Vec::new());
        assert!(!report.is_damaged() && report.text().contains("is what it was"));
        assert_eq!(report.json()["damaged"], json!([]));
        report.damaged = Some(vec![(PathBuf::from("/lab/s"), "other bytes".to_owned())]);
        assert!(report.is_damaged() && report.text().contains("damaged: /lab/s: other bytes\n"));
    }
}
