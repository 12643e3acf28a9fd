// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest of each five minutes, over months: of a system's runs, put together as a picture needs it.
//!
//! Units: s since 1970, ns. A run without records of its seconds, or one that was added before there was the table
//! `maximum`, is a single point at its beginning: `store rebuild` reads such a run's file again.

use std::collections::BTreeMap;

use tailbound_core::utc;

use crate::database::all;
use crate::error::StoreError;
use crate::store::Store;
pub use crate::summary::SLOT_S;
use crate::value::Value;

/// The latest of some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Maximum {
    /// When that time began.
    pub began_s: i64,
    /// The latest wake-up in it.
    pub max_ns: i64,
    /// It contains runs of which only the latest of all is known, not when it was.
    pub whole_runs: bool,
}

impl Store {
    /// The latest of a system since `since`, put together to stretches of `step_s`, a multiple of five minutes; in order. Stretches
    /// without wake-ups are left out.
    ///
    /// # Errors
    /// The database refuses.
    pub fn maxima_of(
        &mut self,
        system: &str,
        since: &str,
        step_s: i64,
    ) -> Result<Vec<Maximum>, StoreError> {
        let step_s = step_s.max(SLOT_S) / SLOT_S * SLOT_S;
        let place = |at_s: i64| at_s.div_euclid(step_s) * step_s;
        let values: [Value; 2] = [system.into(), since.into()];
        let mut by: BTreeMap<i64, (i64, bool)> = BTreeMap::new();
        let mut note = |began_s: i64, max_ns: i64, whole: bool| {
            let known = by.entry(place(began_s)).or_insert((max_ns, false));
            *known = (known.0.max(max_ns), known.1 || whole);
        };
        // As many rows as the picture has places, whatever the number of runs.
        let sql = format!(
            "SELECT maximum.began_s / {step_s}, MAX(maximum.max_ns) FROM run JOIN maximum ON maximum.run = run.id \
             WHERE run.system = $1 AND run.started >= $2 GROUP BY 1"
        );
        for row in all(self.db(), &sql, &values)? {
            let int = |at: usize| row.get(at).and_then(Value::int);
            if let (Some(at), Some(max_ns)) = (int(0), int(1)) {
                note(at * step_s, max_ns, false);
            }
        }
        let sql = "SELECT run.started, run.max_ns FROM run WHERE run.system = $1 AND run.started >= $2 AND run.max_ns IS NOT NULL \
             AND NOT EXISTS (SELECT 1 FROM maximum WHERE maximum.run = run.id)";
        for row in all(self.db(), sql, &values)? {
            let started = row.first().and_then(Value::text).unwrap_or_default();
            let at_s = started
                .get(..10)
                .zip(started.get(11..19))
                .and_then(|(date, time)| utc::from_date_time(date, time));
            if let (Some(at_s), Some(max_ns)) = (at_s, row.get(1).and_then(Value::int)) {
                note(at_s, max_ns, true);
            }
        }
        let one = |(began_s, (max_ns, whole_runs))| Maximum { began_s, max_ns, whole_runs };
        Ok(by.into_iter().map(one).collect())
    }
}
