// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest of each five minutes, over months: of a system's runs, put together as a picture needs it.
//!
//! Units: s since 1970, ns. A run without records of its seconds, or one that was added before there was the table
//! `maximum`, is a single point at its beginning: `store rebuild` reads such a run's file again.

use std::collections::BTreeMap;
use tailbound_core::order;

use tailbound_core::utc;

use crate::chosen::Since;
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

/// The latest over time of a workload.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LoadMaxima {
    /// `workload.id`.
    pub workload: String,
    /// Probe with its options.
    pub probe: String,
    /// Loads.
    pub loads: String,
    /// In the order of time.
    pub maxima: Vec<Maximum>,
}

/// The latest of all workloads together; in order.
#[must_use]
pub fn together(all: &[LoadMaxima]) -> Vec<Maximum> {
    let mut by: BTreeMap<i64, Maximum> = BTreeMap::new();
    for m in all.iter().flat_map(|l| &l.maxima) {
        let known = by.entry(m.began_s).or_insert(*m);
        known.max_ns = known.max_ns.max(m.max_ns);
        known.whole_runs |= m.whole_runs;
    }
    by.into_values().collect()
}

impl Store {
    /// The latest of a system since `since`, each workload by itself, put together to stretches of `step_s`, a multiple of five
    /// minutes; in order. Stretches without wake-ups are left out.
    ///
    /// # Errors
    /// The database refuses.
    pub fn maxima_of(
        &mut self,
        system: &str,
        since: &Since,
        step_s: i64,
    ) -> Result<Vec<LoadMaxima>, StoreError> {
        let step_s = step_s.max(SLOT_S) / SLOT_S * SLOT_S;
        let place = |at_s: i64| at_s.div_euclid(step_s) * step_s;
        let values: [Value; 2] = [system.into(), since.value()];
        let mut by: BTreeMap<String, BTreeMap<i64, (i64, bool)>> = BTreeMap::new();
        let mut note = |workload: &str, began_s: i64, max_ns: i64, whole: bool| {
            let of = by.entry(workload.to_owned()).or_default();
            let known = of.entry(place(began_s)).or_insert((max_ns, false));
            *known = (known.0.max(max_ns), known.1 || whole);
        };
        // As many rows as the picture has places, whatever the number of runs.
        let sql = format!(
            "SELECT run.workload, maximum.began_s / {step_s}, MAX(maximum.max_ns) FROM run JOIN maximum ON maximum.run = run.id \
             WHERE run.system = $1 AND run.started >= $2 GROUP BY 1, 2"
        );
        for row in all(self.db(), &sql, &values)? {
            let int = |at: usize| row.get(at).and_then(Value::int);
            if let (Some(workload), Some(at), Some(max_ns)) =
                (row.first().and_then(Value::text), int(1), int(2))
            {
                note(workload, at * step_s, max_ns, false);
            }
        }
        let sql = "SELECT run.workload, run.started, run.max_ns FROM run WHERE run.system = $1 AND run.started >= $2 AND run.max_ns IS NOT NULL \
             AND NOT EXISTS (SELECT 1 FROM maximum WHERE maximum.run = run.id)";
        for row in all(self.db(), sql, &values)? {
            let text = |at: usize| row.get(at).and_then(Value::text).unwrap_or_default();
            let started = text(1);
            let at_s = started
                .get(..10)
                .zip(started.get(11..19))
                .and_then(|(date, time)| utc::from_date_time(date, time));
            if let (Some(at_s), Some(max_ns)) = (at_s, row.get(2).and_then(Value::int)) {
                note(text(0), at_s, max_ns, true);
            }
        }
        let mut named: BTreeMap<String, [String; 2]> = BTreeMap::new();
        for row in all(self.db(), "SELECT id, probe, loads FROM workload", &[])? {
            let text = |at: usize| row.get(at).and_then(Value::text).unwrap_or_default().to_owned();
            named.insert(text(0), [text(1), text(2)]);
        }
        let one = |(began_s, (max_ns, whole_runs))| Maximum { began_s, max_ns, whole_runs };
        let of = |(workload, all): (String, BTreeMap<i64, (i64, bool)>)| {
            let [probe, loads] = named.remove(&workload).unwrap_or_default();
            LoadMaxima { workload, probe, loads, maxima: all.into_iter().map(one).collect() }
        };
        let mut all: Vec<LoadMaxima> = by.into_iter().map(of).collect();
        order::by(&mut all, |a, b| {
            (&a.loads, &a.probe, &a.workload).cmp(&(&b.loads, &b.probe, &b.workload))
        });
        Ok(all)
    }
}
