// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the farm's morning is made of: each system with its last night, what became worse, since when it is silent, and what is
//! known of it already. Page, API and `/metrics` show these and nothing else.
//!
//! Units: ns; times are RFC 3339 in UTC.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use tailbound_agent::wire::AgentStatus;
use tailbound_core::utc;
use tailbound_store::{Acknowledgement, Since, SystemRow, Verdict, Work, WorkState, acknowledged};

use super::app::App;
use super::overview::TREND_DAYS;
use super::problem::Problem;
use super::records::{self, RecordSpan, SystemRecord};
use super::work;
use crate::regressions::{self, Regression};

/// Without a run for so long a system is silent.
pub(super) const SILENT_S: i64 = 2 * 86_400;
/// An agent asks at least so often.
pub(super) const UNHEARD_S: i64 = 180;

/// A series that became worse.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Worse {
    /// What is known of it.
    #[serde(flatten)]
    pub(super) regression: Regression,
    /// Who knows it already.
    pub(super) acknowledged: Option<Acknowledgement>,
}

/// A workload that is not met, and who knows it already.
#[derive(Clone, Debug, Serialize)]
pub(super) struct KnownMiss {
    /// `workload.id`.
    pub(super) workload: String,
    /// Who knows it.
    pub(super) acknowledged: Acknowledgement,
}

/// A system on the morning page.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Board {
    /// What the store has of it.
    #[serde(flatten, serialize_with = "in_place")]
    pub(super) record: Arc<SystemRecord>,
    /// The state of its last night in words.
    pub(super) state: String,
    /// What is left of the deadline where it is least, of 1.
    pub(super) headroom: Option<f64>,
    /// Its newest run, where that is too long ago.
    pub(super) silent_since: Option<String>,
    /// What became worse, the newest first.
    pub(super) worse: Vec<Worse>,
    /// Series of it with runs that were not looked at yet.
    pub(super) waiting: usize,
    /// Workloads that are not met and known.
    pub(super) known: Vec<KnownMiss>,
}

fn in_place<S: Serializer>(record: &Arc<SystemRecord>, to: S) -> Result<S::Ok, S::Error> {
    record.as_ref().serialize(to)
}

impl Board {
    /// What the store has of it.
    pub(super) fn system(&self) -> &SystemRow {
        &self.record.row
    }

    /// Was a workload of the last night not met?
    pub(super) fn is_not_met(&self) -> bool {
        self.system().night.as_ref().is_some_and(|n| n.verdict == Verdict::NotMet)
    }

    /// Is every workload that is not met known already?
    pub(super) fn is_known(&self) -> bool {
        let misses = self.system().night.iter().flat_map(|n| &n.workloads);
        misses
            .filter(|w| w.verdict == Verdict::NotMet)
            .all(|w| self.known.iter().any(|k| k.workload == w.workload))
    }

    /// The first of what became worse that nobody acknowledged.
    pub(super) fn is_newly_worse(&self) -> bool {
        self.worse.iter().any(|w| w.acknowledged.is_none())
    }

    /// What needs a look first comes first.
    fn urgency(&self) -> (u8, String) {
        let verdict = self.system().night.as_ref().map(|n| n.verdict);
        let rank = match verdict {
            Some(Verdict::NotMet) if !self.is_known() => 0,
            Some(Verdict::NotMet) => 1,
            _ if self.is_newly_worse() => 2,
            _ if self.silent_since.is_some() => 3,
            Some(Verdict::Unfit | Verdict::Undecided | Verdict::Unknown) => 4,
            _ => 5,
        };
        (rank, self.system().name.clone())
    }
}

/// The farm in one line.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Morning {
    /// Systems in all.
    pub(super) systems: usize,
    /// Of them: a workload of the last night was not met.
    pub(super) not_met: usize,
    /// Something became worse.
    pub(super) worse: usize,
    /// Series with runs that were not looked at yet.
    pub(super) waiting: usize,
    /// Silent.
    pub(super) silent: usize,
    /// Since when the one that is silent for longest is.
    pub(super) silent_since: Option<String>,
    /// Agents that ask no more, by the names of their systems.
    pub(super) unheard: Vec<String>,
}

/// All systems, what needs a look first; and all of it in one line.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Boards {
    /// In one line.
    pub(super) morning: Morning,
    /// Each system.
    pub(super) systems: Vec<Board>,
}

/// Since when the pages about all systems show days.
pub(super) fn usual(app: &App) -> RecordSpan {
    span(app, Since::From(app.days_ago(TREND_DAYS - 1)))
}

/// Days since `shown`, and what became worse in the usual time.
pub(super) fn span(app: &App, shown: Since) -> RecordSpan {
    RecordSpan { shown, searched: Since::From(app.days_ago(regressions::DAYS)) }
}

/// Of the store's systems, with their days since `shown`.
pub(super) async fn all(app: &Arc<App>, shown: Since) -> Result<Boards, Problem> {
    let (span, usual, own) = (span(app, shown), usual(app), Arc::clone(app));
    let (records, known, handed_out, agents) = app
        .ask(move |store| {
            let records = if span == usual {
                own.records.current(store, &span)?
            } else {
                records::all(store, &span)?.into_values().map(Arc::new).collect()
            };
            let handed_out = store.all_work(work::LISTED)?;
            Ok((records, store.acknowledgements()?, handed_out, store.tokens()?))
        })
        .await?;
    let now_s = app.now_s();
    let mut systems: Vec<Board> =
        records.into_iter().map(|record| board(record, &known, now_s)).collect();
    systems.sort_by_cached_key(Board::urgency);
    let with_token: BTreeSet<&str> =
        agents.iter().filter(|t| t.revoked.is_none()).filter_map(|t| t.system.as_deref()).collect();
    let unheard = unheard(&app.agents.all(now_s), &handed_out, &with_token, now_s - app.began_s);
    Ok(Boards { morning: morning(&systems, unheard), systems })
}

/// One system.
pub(super) fn board(record: Arc<SystemRecord>, known: &[Acknowledgement], now_s: i64) -> Board {
    let row = &record.row;
    let newest = row.last.as_ref().map(|l| l.started.clone());
    let silent_since =
        newest.filter(|at| utc::from_rfc3339(at).is_some_and(|s| now_s - s > SILENT_S));
    let worse = record.found.regressions.iter().map(|regression| {
        let acknowledged =
            acknowledged(known, &row.id, &regression.workload, &regression.since).cloned();
        Worse { regression: regression.clone(), acknowledged }
    });
    let misses = row.night.iter().flat_map(|n| &n.workloads).filter_map(|w| {
        let since = w.not_met_since.as_deref()?;
        let acknowledged = acknowledged(known, &row.id, &w.workload, since)?.clone();
        Some(KnownMiss { workload: w.workload.clone(), acknowledged })
    });
    Board {
        state: row.night.as_ref().map_or_else(|| "no run".to_owned(), |n| n.words()),
        headroom: row.night.as_ref().and_then(|n| n.worst()?.headroom()),
        silent_since,
        worse: worse.collect(),
        waiting: record.found.waiting,
        known: misses.collect(),
        record,
    }
}

fn morning(systems: &[Board], unheard: Vec<String>) -> Morning {
    let count = |is: fn(&Board) -> bool| systems.iter().filter(|b| is(b)).count();
    Morning {
        systems: systems.len(),
        not_met: count(Board::is_not_met),
        worse: count(|b| !b.worse.is_empty()),
        waiting: systems.iter().map(|b| b.waiting).sum(),
        silent: count(|b| b.silent_since.is_some()),
        silent_since: systems.iter().filter_map(|b| b.silent_since.clone()).min(),
        unheard,
    }
}

/// Systems whose agents ask no more: those that asked since the server began, and those that ever had work. One that has work
/// now says how far it is, and does not ask.
fn unheard(
    asked: &[AgentStatus],
    handed_out: &[Work],
    with_token: &BTreeSet<&str>,
    up_s: i64,
) -> Vec<String> {
    let is_at = |system: &str, is: fn(WorkState) -> bool| {
        handed_out.iter().any(|w| w.system == system && is(w.state))
    };
    let has_work = |system: &str| is_at(system, |state| state == WorkState::Running);
    let late = |a: &&AgentStatus| i64::try_from(a.seen_s_ago).unwrap_or(i64::MAX) > UNHEARD_S;
    let mut all: BTreeSet<String> = asked.iter().filter(late).map(|a| a.system.clone()).collect();
    if up_s > UNHEARD_S {
        let never = with_token.iter().filter(|system| {
            asked.iter().all(|a| a.system != **system)
                && is_at(system, |state| state != WorkState::Waiting)
        });
        all.extend(never.map(|system| (*system).to_owned()));
    }
    all.retain(|system| !has_work(system));
    all.into_iter().collect()
}
