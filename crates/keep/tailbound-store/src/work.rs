// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work: campaigns that an operator handed out, and what became of each on its machine.
//!
//! Units: s since 1970 for leases, RFC 3339 for what people read.
//!
//! ```text
//! waiting ─► running ─► done | failed      the machine's own word
//!    │          ├─────► lost               its agent was not heard of while it had the lease
//!    ├─► refused└─────► cancelled          by an operator
//!    └─► cancelled
//! ```
//! Each step is one statement that names the state it begins from, so that of two who try at the same time one does it.
//! The same step by the same lease again is done already: an answer may have been lost on its way.

use serde::{Deserialize, Serialize};

use crate::audit::{self, Audited};
use crate::database::{Database, all, one, whole};
use crate::error::StoreError;
use crate::store::Store;
use crate::value::Value;

/// What became of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkState {
    /// Nobody has taken it yet.
    Waiting,
    /// A machine has it.
    Running,
    /// The machine says that all its runs are complete.
    Done,
    /// The machine says that they are not.
    Failed,
    /// The machine's owner does not allow it.
    Refused,
    /// The agent was not heard of for the length of its lease.
    Lost,
    /// An operator took it back.
    Cancelled,
}

impl WorkState {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Waiting, "waiting"),
        (Self::Running, "running"),
        (Self::Done, "done"),
        (Self::Failed, "failed"),
        (Self::Refused, "refused"),
        (Self::Lost, "lost"),
        (Self::Cancelled, "cancelled"),
    ];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(s, _)| *s == self).map_or("unknown", |(_, word)| word)
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, w)| *w == word).map(|(s, _)| *s)
    }

    /// Does nothing change it any more?
    #[must_use]
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

/// A run that came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkRun {
    /// Which run of the campaign.
    pub part: String,
    /// Its identity in the store.
    pub run: String,
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Work {
    /// Which; who hands it out makes it, so that the same twice is one.
    pub id: String,
    /// The machine.
    pub system: String,
    /// The campaign's name.
    pub name: String,
    /// The campaign's text; empty in a list.
    pub campaign: String,
    /// Which of its runs; empty: all.
    pub parts: Vec<String>,
    /// Share of the campaign's lengths.
    pub scale: f64,
    /// Measured CPUs, instead of the campaign's.
    pub cpus: Option<String>,
    /// Who handed it out.
    pub handed_out_by: String,
    /// When, RFC 3339.
    pub created: String,
    /// What became of it.
    pub state: WorkState,
    /// Why it was refused, failed or was lost.
    pub reason: Option<String>,
    /// Who has it: known to the agent that took it alone.
    #[serde(skip)]
    pub lease: Option<String>,
    /// When it was taken.
    pub began: Option<String>,
    /// When it was over.
    pub ended: Option<String>,
    /// What the machine said last.
    pub progress: Option<String>,
    /// What came of it.
    pub runs: Vec<WorkRun>,
    /// Of what it is a part.
    pub batch: Option<Batch>,
}

/// All that one `fleet run` has made on a machine, and which piece of it this is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Batch {
    /// Which.
    pub id: String,
    /// Which piece, from 1.
    pub at: i64,
    /// Of how many.
    pub of: i64,
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was done, now or before.
    Done,
    /// It could not be: it is in this state, or somebody else's.
    Not(WorkState),
    /// There is no such work.
    Missing,
}

/// Who does something, and when.
#[derive(Clone, Copy, Debug)]
pub struct By<'a> {
    /// As the audit log names them.
    pub who: &'a str,
    /// RFC 3339.
    pub at: &'a str,
}

/// How a machine ended its work.
#[derive(Clone, Debug)]
pub struct Finished<'a> {
    /// All runs are complete.
    pub complete: bool,
    /// If not, why.
    pub reason: Option<&'a str>,
    /// What came of it, complete or not.
    pub runs: &'a [WorkRun],
}

const COLUMNS: &str = "work.id, system, name, campaign, parts, scale, cpus, handed_out_by, created, state, reason, lease, began, ended, progress, runs, batch.id, place, pieces";
/// Without the text, which may be long.
const LISTED: &str = "work.id, system, name, '', parts, scale, cpus, handed_out_by, created, state, reason, lease, began, ended, progress, runs, batch.id, place, pieces";
const FROM: &str = "FROM work LEFT JOIN batch ON batch.work = work.id";

/// A row; `None`: a state that this version does not know.
fn work(row: &[Value]) -> Option<Work> {
    let text = |at: usize| row.get(at).and_then(Value::text).map(str::to_owned);
    let scale = match row.get(5) {
        Some(Value::Real(r)) => *r,
        _ => 1.0,
    };
    Some(Work {
        id: text(0)?,
        system: text(1)?,
        name: text(2)?,
        campaign: text(3)?,
        parts: serde_json::from_str(&text(4)?).ok()?,
        scale,
        cpus: text(6),
        handed_out_by: text(7)?,
        created: text(8)?,
        state: WorkState::of(&text(9)?)?,
        reason: text(10),
        lease: text(11),
        began: text(12),
        ended: text(13),
        progress: text(14),
        runs: serde_json::from_str(&text(15)?).ok()?,
        batch: text(16).and_then(|id| {
            let int = |at: usize| row.get(at).and_then(Value::int);
            Some(Batch { id, at: int(17)?, of: int(18)? })
        }),
    })
}

fn found(db: &mut dyn Database, id: &str) -> Result<Option<Work>, StoreError> {
    let rows = all(db, &format!("SELECT {COLUMNS} {FROM} WHERE work.id = $1"), &[id.into()])?;
    Ok(rows.first().and_then(|row| work(row)))
}

fn list<T: Serialize>(items: &[T]) -> Value {
    Value::from(serde_json::to_string(items).unwrap_or_else(|_| "[]".to_owned()))
}

fn said(db: &mut dyn Database, by: By<'_>, what: String) -> Result<(), StoreError> {
    let (at, who) = (by.at.to_owned(), by.who.to_owned());
    audit::write_down(db, &Audited { at, who, what })
}

impl Store {
    /// Hands out `new`, which waits. `false`: it was handed out before.
    ///
    /// # Errors
    /// The database refuses.
    pub fn hand_out(&mut self, new: &Work, by: By<'_>) -> Result<bool, StoreError> {
        whole(self.db(), |db| {
            let last = one(db, "SELECT COALESCE(MAX(number), 0) FROM work", &[])?;
            let number = last.and_then(|v| v.int()).unwrap_or(0) + 1;
            let sql = "INSERT INTO work (id, number, system, name, campaign, parts, scale, cpus, handed_out_by, created, state, runs) \
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'waiting', '[]') ON CONFLICT DO NOTHING";
            let values = [
                new.id.as_str().into(),
                Value::Int(number),
                new.system.as_str().into(),
                new.name.as_str().into(),
                new.campaign.as_str().into(),
                list(&new.parts),
                new.scale.into(),
                new.cpus.as_deref().into(),
                by.who.into(),
                by.at.into(),
            ];
            let is_new = db.execute(sql, &values)? > 0;
            if is_new {
                if let Some(batch) = &new.batch {
                    let sql = "INSERT INTO batch (work, id, place, pieces) VALUES ($1, $2, $3, $4)";
                    let (work, id) = (new.id.as_str().into(), batch.id.as_str().into());
                    db.execute(sql, &[work, id, Value::Int(batch.at), Value::Int(batch.of)])?;
                }
                let what = format!("handed out work {}: {} to {}", new.id, new.name, new.system);
                said(db, by, what)?;
            }
            Ok(is_new)
        })
    }

    /// The piece of work `id`.
    ///
    /// # Errors
    /// The database refuses.
    pub fn work(&mut self, id: &str) -> Result<Option<Work>, StoreError> {
        found(self.db(), id)
    }

    /// The newest `most` pieces of work, without the campaigns' texts.
    ///
    /// # Errors
    /// The database refuses.
    pub fn all_work(&mut self, most: u32) -> Result<Vec<Work>, StoreError> {
        let sql = format!("SELECT {LISTED} {FROM} ORDER BY number DESC LIMIT $1");
        let rows = all(self.db(), &sql, &[Value::Int(most.into())])?;
        Ok(rows.iter().filter_map(|row| work(row)).collect())
    }

    /// What waits longest for `system`; nothing while the machine has other work.
    ///
    /// # Errors
    /// The database refuses.
    pub fn next_work(&mut self, system: &str) -> Result<Option<Work>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} {FROM} WHERE system = $1 AND state = 'waiting' AND NOT EXISTS \
             (SELECT 1 FROM work AS other WHERE other.system = $1 AND other.state = 'running') ORDER BY number LIMIT 1"
        );
        let rows = all(self.db(), &sql, &[system.into()])?;
        Ok(rows.first().and_then(|row| work(row)))
    }

    /// A machine takes it, until `until_s`.
    ///
    /// # Errors
    /// The database refuses.
    pub fn take_work(
        &mut self,
        id: &str,
        lease: &str,
        until_s: i64,
        by: By<'_>,
    ) -> Result<Step, StoreError> {
        whole(self.db(), |db| {
            let sql = "UPDATE work SET state = 'running', lease = $1, lease_until_s = $2, began = $3 \
                WHERE id = $4 AND state = 'waiting' AND NOT EXISTS (SELECT 1 FROM work AS other \
                WHERE other.system = work.system AND other.state = 'running')";
            let values = [lease.into(), Value::Int(until_s), by.at.into(), id.into()];
            if db.execute(sql, &values)? > 0 {
                said(db, by, format!("took work {id}"))?;
                return Ok(Step::Done);
            }
            Ok(match found(db, id)? {
                None => Step::Missing,
                Some(w) if w.state == WorkState::Running && w.lease.as_deref() == Some(lease) => {
                    Step::Done
                }
                Some(w) => Step::Not(w.state),
            })
        })
    }

    /// A machine's owner does not allow it.
    ///
    /// # Errors
    /// The database refuses.
    pub fn refuse_work(&mut self, id: &str, reason: &str, by: By<'_>) -> Result<Step, StoreError> {
        whole(self.db(), |db| {
            let sql = "UPDATE work SET state = 'refused', reason = $1, ended = $2 WHERE id = $3 AND state = 'waiting'";
            if db.execute(sql, &[reason.into(), by.at.into(), id.into()])? > 0 {
                said(db, by, format!("refused work {id}: {reason}"))?;
                return Ok(Step::Done);
            }
            Ok(match found(db, id)? {
                None => Step::Missing,
                Some(w) if w.state == WorkState::Refused => Step::Done,
                Some(w) => Step::Not(w.state),
            })
        })
    }

    /// The machine is still there; it keeps the work until `until_s`.
    ///
    /// # Errors
    /// The database refuses.
    pub fn renew_work(
        &mut self,
        id: &str,
        lease: &str,
        until_s: i64,
        progress: Option<&str>,
    ) -> Result<Step, StoreError> {
        let sql = "UPDATE work SET lease_until_s = $1, progress = COALESCE($2, progress) \
            WHERE id = $3 AND state = 'running' AND lease = $4";
        let values = [Value::Int(until_s), progress.into(), id.into(), lease.into()];
        if self.db().execute(sql, &values)? > 0 {
            return Ok(Step::Done);
        }
        Ok(found(self.db(), id)?.map_or(Step::Missing, |w| Step::Not(w.state)))
    }

    /// The machine ended it. Of work that was lost or cancelled meanwhile the runs are noted, and the state stays.
    ///
    /// # Errors
    /// The database refuses.
    pub fn end_work(
        &mut self,
        id: &str,
        lease: &str,
        how: &Finished<'_>,
        by: By<'_>,
    ) -> Result<Step, StoreError> {
        whole(self.db(), |db| {
            let state = if how.complete { WorkState::Done } else { WorkState::Failed };
            let sql = "UPDATE work SET state = $1, reason = $2, runs = $3, ended = $4 \
                WHERE id = $5 AND state = 'running' AND lease = $6";
            let values = [
                state.as_str().into(),
                how.reason.into(),
                list(how.runs),
                by.at.into(),
                id.into(),
                lease.into(),
            ];
            if db.execute(sql, &values)? > 0 {
                let why = how.reason.map_or_else(String::new, |r| format!(": {r}"));
                said(db, by, format!("ended work {id}, {}{why}", state.as_str()))?;
                return Ok(Step::Done);
            }
            let Some(w) = found(db, id)? else { return Ok(Step::Missing) };
            if w.lease.as_deref() != Some(lease) {
                return Ok(Step::Not(w.state));
            }
            if matches!(w.state, WorkState::Lost | WorkState::Cancelled) && w.runs != how.runs {
                let sql = "UPDATE work SET runs = $1 WHERE id = $2";
                db.execute(sql, &[list(how.runs), id.into()])?;
                said(db, by, format!("handed in work {id}, which was {}", w.state.as_str()))?;
            }
            Ok(if matches!(w.state, WorkState::Done | WorkState::Failed) {
                Step::Done
            } else {
                Step::Not(w.state)
            })
        })
    }

    /// An operator takes it back.
    ///
    /// # Errors
    /// The database refuses.
    pub fn cancel_work(&mut self, id: &str, by: By<'_>) -> Result<Step, StoreError> {
        whole(self.db(), |db| {
            let sql = "UPDATE work SET state = 'cancelled', ended = $1 WHERE id = $2 AND state IN ('waiting', 'running')";
            if db.execute(sql, &[by.at.into(), id.into()])? > 0 {
                said(db, by, format!("cancelled work {id}"))?;
                return Ok(Step::Done);
            }
            Ok(match found(db, id)? {
                None => Step::Missing,
                Some(w) if w.state == WorkState::Cancelled => Step::Done,
                Some(w) => Step::Not(w.state),
            })
        })
    }

    /// Work whose agent was not heard of is lost: it is said, and nobody does it again. How many there were.
    ///
    /// # Errors
    /// The database refuses.
    pub fn lose_work(&mut self, now_s: i64, by: By<'_>) -> Result<u64, StoreError> {
        let over = "SELECT id FROM work WHERE state = 'running' AND lease_until_s < $1";
        if all(self.db(), over, &[Value::Int(now_s)])?.is_empty() {
            return Ok(0);
        }
        whole(self.db(), |db| {
            let reason =
                "its agent was not heard of for the length of its lease; the run is invalid";
            let mut lost = 0;
            for row in all(db, over, &[Value::Int(now_s)])? {
                let Some(id) = row.first().and_then(Value::text) else { continue };
                let sql = "UPDATE work SET state = 'lost', reason = $1, ended = $2 \
                    WHERE id = $3 AND state = 'running' AND lease_until_s < $4";
                let values = [reason.into(), by.at.into(), id.into(), Value::Int(now_s)];
                if db.execute(sql, &values)? > 0 {
                    said(db, by, format!("work {id} is lost: {reason}"))?;
                    lost += 1;
                }
            }
            Ok(lost)
        })
    }

    /// Who could not be heard, as there was no server or no room, has not gone.
    ///
    /// # Errors
    /// The database refuses.
    pub fn keep_leases(&mut self, until_s: i64) -> Result<u64, StoreError> {
        let sql =
            "UPDATE work SET lease_until_s = $1 WHERE state = 'running' AND lease_until_s < $2";
        self.db().execute(sql, &[Value::Int(until_s), Value::Int(until_s)])
    }
}
