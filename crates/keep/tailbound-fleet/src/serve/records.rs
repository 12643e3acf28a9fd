// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was read of each system for the pages about all of them, kept as long as it holds.
//!
//! Each question reads which systems changed since (`tailbound-store/src/versions.rs`, counted in the transaction of the change) and
//! reads those again: what is answered is as new as the store, whoever wrote to it. Days begin anew at midnight UTC.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tailbound_store::{
    ConditionChange, Since, Store, StoreError, SystemName, SystemRow, SystemVersion, Whose,
};

use crate::regressions::{RegressionSearch, kept};

/// Where more than one of so many systems changed, all are read together, which costs half as much a system.
const ONE_OF: usize = 2;

/// A system, with its days since some day.
#[derive(Debug, Serialize)]
pub(super) struct SystemRecord {
    /// What the store has of it.
    #[serde(flatten)]
    pub(super) row: SystemRow,
    /// What was found of its series.
    #[serde(skip)]
    pub(super) found: RegressionSearch,
    /// On which days kernel, configuration or method changed.
    pub(super) changes: Vec<ConditionChange>,
}

/// Since when it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordSpan {
    /// Days.
    pub(super) shown: Since,
    /// What became worse.
    pub(super) searched: Since,
}

#[derive(Debug, Default)]
struct Kept {
    span: RecordSpan,
    /// By identity, with the version at which it was read.
    records: HashMap<String, (i64, Arc<SystemRecord>)>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SystemRecords(Mutex<Kept>);

impl SystemRecords {
    /// All systems by name, as they are now.
    pub(super) fn current(
        &self,
        store: &mut Store,
        span: &RecordSpan,
    ) -> Result<Vec<Arc<SystemRecord>>, StoreError> {
        // Who else asks waits, and finds it read.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.span != *span {
            *kept = Kept { span: span.clone(), records: HashMap::new() };
        }
        // Read before the tables: what comes in between is read again next time.
        let versions = store.system_versions()?;
        let changed: Vec<&SystemVersion> = versions
            .iter()
            .filter(|v| kept.records.get(&v.system.id).is_none_or(|(at, _)| *at != v.version))
            .collect();
        if changed.len() * ONE_OF > versions.len() {
            let mut all = all(store, span)?;
            kept.records = versions
                .iter()
                .filter_map(|v| {
                    let record = all.remove(&v.system.id)?;
                    Some((v.system.id.clone(), (v.version, Arc::new(record))))
                })
                .collect();
        } else {
            for SystemVersion { system, version } in changed {
                match one(store, &system.id, span)? {
                    Some(record) => {
                        kept.records.insert(system.id.clone(), (*version, Arc::new(record)));
                    }
                    // Its last run went meanwhile.
                    None => {
                        kept.records.remove(&system.id);
                    }
                }
            }
        }
        let record = |v: &SystemVersion| Some(Arc::clone(&kept.records.get(&v.system.id)?.1));
        Ok(versions.iter().filter_map(record).collect())
    }
}

/// One system, by identity or name.
pub(super) fn one(
    store: &mut Store,
    which: &str,
    span: &RecordSpan,
) -> Result<Option<SystemRecord>, StoreError> {
    let Some(row) = store.system(which, &span.shown)? else { return Ok(None) };
    let named = SystemName { id: row.id.clone(), name: row.name.clone() };
    let found = kept(store, &span.searched, Some(&named))?;
    let changes = store.condition_changes(Whose::System(&row.id), &span.shown)?;
    let changes = changes.into_values().next().unwrap_or_default();
    Ok(Some(SystemRecord { row, found, changes }))
}

/// All systems by identity, in one reading.
pub(super) fn all(
    store: &mut Store,
    span: &RecordSpan,
) -> Result<BTreeMap<String, SystemRecord>, StoreError> {
    let found = kept(store, &span.searched, None)?;
    let mut changes = store.condition_changes(Whose::All, &span.shown)?;
    let mut by: BTreeMap<String, RegressionSearch> = BTreeMap::new();
    for regression in found.regressions {
        by.entry(regression.system.clone()).or_default().regressions.push(regression);
    }
    for system in found.waiting_of {
        by.entry(system).or_default().waiting += 1;
    }
    let record = |row: SystemRow| {
        let found = by.remove(&row.id).unwrap_or_default();
        let changes = changes.remove(&row.id).unwrap_or_default();
        (row.id.clone(), SystemRecord { row, found, changes })
    };
    Ok(store.systems(&span.shown)?.into_iter().map(record).collect())
}
