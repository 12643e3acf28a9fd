// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a system: what its last night says, over all its workloads.
//!
//! Units: ns; times are RFC 3339 in UTC.
//! A night is the 24 hours that end with the system's newest run. A workload counts by the worst verdict of its runs in it: what
//! failed at midnight is not good again because something else was met half an hour later.

use std::collections::BTreeMap;

use tailbound_core::utc;

use crate::database::all;
use crate::error::StoreError;
use crate::run_row::{RUN, RunRow, run_row};
use crate::store::Store;
use crate::value::Value;

/// How long a night is.
pub const NIGHT_S: i64 = 86_400;
/// Runs of a night that are looked at; more are not made in a day.
const RUNS: i64 = 2000;
/// Runs of a workload that are read at once while one looks how long it is not met.
const CHUNK: i64 = 200;

/// A verdict, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Later than required.
    NotMet,
    /// The run cannot be judged by.
    Unfit,
    /// Not enough to tell.
    Undecided,
    /// A word of a later version.
    Unknown,
    /// As required.
    Met,
    /// Nothing was required.
    Measured,
}

impl Verdict {
    /// All of them, the worst first.
    pub const ALL: [Self; 6] =
        [Self::NotMet, Self::Unfit, Self::Undecided, Self::Unknown, Self::Met, Self::Measured];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotMet => "not-met",
            Self::Unfit => "unfit",
            Self::Undecided => "undecided",
            Self::Unknown => "unknown",
            Self::Met => "met",
            Self::Measured => "measured",
        }
    }

    /// What a run's outcome says.
    #[must_use]
    pub fn of(outcome: &str) -> Self {
        Self::ALL.into_iter().find(|v| v.as_str() == outcome).unwrap_or(Self::Unknown)
    }
}

/// What a workload's runs of the last night say.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct WorkloadState {
    /// `workload.id`.
    pub workload: String,
    /// Probe with its options.
    pub probe: String,
    /// Loads.
    pub loads: String,
    /// The worst verdict.
    pub verdict: Verdict,
    /// How many runs.
    pub runs: i64,
    /// The run that is nearest to its deadline, or beyond it.
    pub worst_run: String,
    /// When that began.
    pub worst_started: String,
    /// Its latest activation.
    pub max_ns: Option<i64>,
    /// Its deadline.
    pub deadline_ns: Option<i64>,
    /// Where it is not met: since which run, night after night.
    pub not_met_since: Option<String>,
}

impl WorkloadState {
    /// What is left of the deadline, of 1; negative: it was missed by so much. `None`: nothing was required or measured.
    #[must_use]
    pub fn headroom(&self) -> Option<f64> {
        headroom(self.max_ns, self.deadline_ns)
    }
}

fn headroom(max_ns: Option<i64>, deadline_ns: Option<i64>) -> Option<f64> {
    use tailbound_core::number::Real as _;
    let (max, deadline) = (max_ns?, deadline_ns.filter(|d| *d > 0)?);
    Some(1.0 - max.real() / deadline.real())
}

/// The last night of a system.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct NightState {
    /// After when its runs began.
    pub after: String,
    /// When the newest of them began.
    pub newest: String,
    /// How many runs.
    pub runs: i64,
    /// The worst verdict of all.
    pub verdict: Verdict,
    /// How many workloads were not met.
    pub not_met: usize,
    /// Since when at least one is not met, night after night.
    pub not_met_since: Option<String>,
    /// Each workload, the worst first.
    pub workloads: Vec<WorkloadState>,
}

impl NightState {
    /// Of the runs of a night, the newest first; `None`: there are none.
    #[must_use]
    pub fn of(runs: &[RunRow]) -> Option<Self> {
        let newest = runs.first()?;
        let mut by: BTreeMap<&str, Vec<&RunRow>> = BTreeMap::new();
        for run in runs {
            by.entry(&run.workload).or_default().push(run);
        }
        let mut workloads: Vec<WorkloadState> =
            by.values().filter_map(|runs| of_workload(runs)).collect();
        // The worst verdict, then who is nearest to the deadline.
        workloads.sort_by(|a, b| {
            let left = |w: &WorkloadState| w.headroom().unwrap_or(f64::INFINITY);
            a.verdict
                .cmp(&b.verdict)
                .then(left(a).total_cmp(&left(b)))
                .then(b.max_ns.cmp(&a.max_ns))
                .then_with(|| (&a.loads, &a.workload).cmp(&(&b.loads, &b.workload)))
        });
        Some(Self {
            after: night_before(&newest.started),
            newest: newest.started.clone(),
            runs: i64::try_from(runs.len()).unwrap_or(i64::MAX),
            verdict: workloads.first()?.verdict,
            not_met: workloads.iter().filter(|w| w.verdict == Verdict::NotMet).count(),
            not_met_since: None,
            workloads,
        })
    }

    /// The workload that came nearest to its deadline, or beyond it; without deadlines the latest.
    #[must_use]
    pub fn worst(&self) -> Option<&WorkloadState> {
        let left = |w: &&WorkloadState| w.headroom().unwrap_or(f64::INFINITY);
        self.workloads
            .iter()
            .min_by(|a, b| left(a).total_cmp(&left(b)).then(b.max_ns.cmp(&a.max_ns)))
    }

    /// How many workloads have this verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.workloads.iter().filter(|w| w.verdict == verdict).count()
    }

    /// In words: `1 of 4 not met, since 2026-11-03`.
    #[must_use]
    pub fn words(&self) -> String {
        let of = self.workloads.len();
        let since = self.not_met_since.as_deref().and_then(|s| s.get(..10));
        match (self.verdict, since) {
            (Verdict::NotMet, Some(day)) => {
                format!("{} of {of} not met, since {day}", self.not_met)
            }
            (Verdict::NotMet, None) => format!("{} of {of} not met", self.not_met),
            (verdict, _) => {
                format!("{} of {of} {}", self.count(verdict), verdict.as_str().replace('-', " "))
            }
        }
    }
}

fn of_workload(runs: &[&RunRow]) -> Option<WorkloadState> {
    let first = runs.first()?;
    let left = |r: &RunRow| headroom(r.max_ns(), r.deadline_ns).unwrap_or(f64::INFINITY);
    let worst =
        runs.iter().min_by(|a, b| left(a).total_cmp(&left(b)).then(b.max_ns().cmp(&a.max_ns())))?;
    Some(WorkloadState {
        workload: first.workload.clone(),
        probe: first.probe.clone(),
        loads: first.loads.clone(),
        verdict: runs.iter().map(|r| Verdict::of(&r.outcome)).min()?,
        runs: i64::try_from(runs.len()).unwrap_or(i64::MAX),
        worst_run: worst.id.clone(),
        worst_started: worst.started.clone(),
        max_ns: worst.max_ns(),
        deadline_ns: worst.deadline_ns,
        not_met_since: None,
    })
}

/// A night before a time; of what is no time the same.
fn night_before(rfc3339: &str) -> String {
    utc::from_rfc3339(rfc3339).map_or_else(|| rfc3339.to_owned(), |s| utc::rfc3339(s - NIGHT_S))
}

impl Store {
    /// The last night of a system; `None`: it has no run.
    ///
    /// # Errors
    /// The database refuses.
    pub fn last_night(&mut self, system: &str) -> Result<Option<NightState>, StoreError> {
        let newest = "SELECT started FROM run WHERE system = $1 ORDER BY started DESC LIMIT 1";
        let newest = all(self.db(), newest, &[system.into()])?;
        let Some(newest) = newest.first().and_then(|row| row.first()?.text().map(str::to_owned))
        else {
            return Ok(None);
        };
        let after = night_before(&newest);
        // A time that cannot be read is a night of its own.
        let compared = if after == newest { ">=" } else { ">" };
        let sql = format!(
            "{RUN} WHERE run.system = $1 AND run.started {compared} $2 ORDER BY run.started DESC, run.id LIMIT $3"
        );
        let values = [system.into(), after.as_str().into(), Value::Int(RUNS)];
        let runs: Vec<RunRow> =
            all(self.db(), &sql, &values)?.iter().map(|row| run_row(row)).collect();
        let Some(mut night) = NightState::of(&runs) else { return Ok(None) };
        for w in night.workloads.iter_mut().filter(|w| w.verdict == Verdict::NotMet) {
            w.not_met_since = self.not_met_since(system, &w.workload, &newest)?;
        }
        night.not_met_since = night.workloads.iter().filter_map(|w| w.not_met_since.clone()).min();
        Ok(Some(night))
    }

    /// Since which run a workload is not met, in each of its nights up to the one that ends with `newest`.
    fn not_met_since(
        &mut self,
        system: &str,
        workload: &str,
        newest: &str,
    ) -> Result<Option<String>, StoreError> {
        let Some(end_s) = utc::from_rfc3339(newest) else { return Ok(None) };
        let sql = "SELECT started, outcome FROM run WHERE system = $1 AND workload = $2 AND started <= $3 \
            ORDER BY started DESC, id LIMIT $4 OFFSET $5";
        let (mut since, mut skip) = (None, 0);
        // The night that is looked at, and its first run that was not met.
        let mut night: (i64, Option<String>) = (0, None);
        loop {
            let values = [
                system.into(),
                workload.into(),
                newest.into(),
                Value::Int(CHUNK),
                Value::Int(skip),
            ];
            let rows = all(self.db(), sql, &values)?;
            for row in &rows {
                let text = |at: usize| row.get(at).and_then(Value::text).unwrap_or_default();
                let Some(began_s) = utc::from_rfc3339(text(0)) else { continue };
                let at = (end_s - began_s).div_euclid(NIGHT_S);
                if at != night.0 {
                    match night.1.take() {
                        Some(first) => since = Some(first),
                        None => return Ok(since),
                    }
                    night.0 = at;
                }
                if Verdict::of(text(1)) == Verdict::NotMet {
                    night.1 = Some(text(0).to_owned());
                }
            }
            if i64::try_from(rows.len()).unwrap_or(0) < CHUNK {
                return Ok(night.1.or(since));
            }
            skip += CHUNK;
        }
    }
}
