// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which systems changed: a number for each, one more with every run of it that comes or goes and every series that was looked at.
//!
//! Counted in the transaction of the change, whoever makes it, so that who keeps what he read of a system knows whether it
//! still holds. Numbers are never counted down or begun anew: the row stays when a system goes, and in a rebuild.

use crate::database::all;
use crate::error::StoreError;
use crate::store::Store;
use crate::value::Value;
use crate::views::SystemName;

/// A system and how often it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemVersion {
    /// Which.
    pub system: SystemName,
    /// How often what the tables say of it changed.
    pub version: i64,
}

impl Store {
    /// All systems by name, each with its version. Read before what is kept of a system, never after it.
    ///
    /// # Errors
    /// The database refuses.
    pub fn system_versions(&mut self) -> Result<Vec<SystemVersion>, StoreError> {
        let sql = "SELECT system.id, system.name, COALESCE(system_version.version, 0) FROM system \
            LEFT JOIN system_version ON system_version.system = system.id ORDER BY system.name";
        let text = |row: &[Value], at: usize| {
            row.get(at).and_then(Value::text).unwrap_or_default().to_owned()
        };
        let one = |row: &Vec<Value>| SystemVersion {
            system: SystemName { id: text(row, 0), name: text(row, 1) },
            version: row.get(2).and_then(Value::int).unwrap_or(0),
        };
        Ok(all(self.db(), sql, &[])?.iter().map(one).collect())
    }
}
