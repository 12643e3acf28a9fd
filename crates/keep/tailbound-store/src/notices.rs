// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was told of regressions, and to whom it is still to be told.
//!
//! Units: s since 1970 for what the server waits for, RFC 3339 for what people read.
//!
//! A change point moves by a run or two as runs are added, so a regression has no name that lasts. What lasts is how far one has looked:
//! a change that lies within the runs that were known when the series was told of last is the one that was told.
//! A receiver is kept as a number made of its address, as addresses may contain secrets.

use crate::database::{all, one, whole};
use crate::error::StoreError;
use crate::store::Store;
use crate::value::Value;

/// Something that is told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Which.
    pub id: String,
    /// Of which system (`system.id`).
    pub system: String,
    /// Of which series of it (`workload.id`).
    pub workload: String,
    /// When the newest run began that was looked at.
    pub newest: String,
    /// When it was found.
    pub made: String,
    /// What is sent.
    pub json: String,
}

/// A receiver's number.
pub type Receiver = String;

/// A notice that is to be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Which.
    pub id: String,
    /// What is sent.
    pub json: String,
    /// How often that was tried before.
    pub tries: i64,
    /// When it was found.
    pub made: String,
}

/// How many deliveries there are in each state.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DeliveryCount {
    /// `waiting`, `sent` or `given-up`.
    pub state: String,
    /// How many.
    pub n: i64,
}

impl Store {
    /// How far the series was looked at when it was told of last.
    ///
    /// # Errors
    /// The database refuses.
    pub fn told_until(
        &mut self,
        system: &str,
        workload: &str,
    ) -> Result<Option<String>, StoreError> {
        let sql = "SELECT MAX(newest) FROM notice WHERE system = $1 AND workload = $2";
        let found = one(self.db(), sql, &[system.into(), workload.into()])?;
        Ok(found.as_ref().and_then(Value::text).map(str::to_owned))
    }

    /// Keeps a notice, to be sent to `receivers`. `false`: it was kept before, and nobody is told again.
    ///
    /// # Errors
    /// The database refuses.
    pub fn keep_notice(
        &mut self,
        new: &Notice,
        receivers: &[Receiver],
        now_s: i64,
    ) -> Result<bool, StoreError> {
        whole(self.db(), |db| {
            let sql = "INSERT INTO notice (id, system, workload, newest, made, json) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
            let values = [&new.id, &new.system, &new.workload, &new.newest, &new.made, &new.json];
            if db.execute(sql, &values.map(|v| Value::from(v.as_str())))? == 0 {
                return Ok(false);
            }
            for receiver in receivers {
                let sql = "INSERT INTO delivery (notice, receiver, state, tries, next_s) VALUES ($1, $2, 'waiting', 0, $3) ON CONFLICT DO NOTHING";
                let values = [new.id.as_str().into(), receiver.as_str().into(), Value::Int(now_s)];
                db.execute(sql, &values)?;
            }
            Ok(true)
        })
    }

    /// The notice for `receiver` that waits longest, if its time has come; until `until_s` it is nobody else's to send. Who is killed
    /// meanwhile has perhaps sent it: it is sent again then.
    ///
    /// # Errors
    /// The database refuses.
    pub fn take_due(
        &mut self,
        receiver: &str,
        now_s: i64,
        until_s: i64,
    ) -> Result<Option<Due>, StoreError> {
        let sql = "SELECT notice.id, notice.json, delivery.tries, notice.made FROM delivery JOIN notice ON notice.id = delivery.notice \
            WHERE delivery.receiver = $1 AND delivery.state = 'waiting' AND delivery.next_s <= $2 ORDER BY delivery.next_s, notice.made, notice.id LIMIT 1";
        let rows = all(self.db(), sql, &[receiver.into(), Value::Int(now_s)])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let text = |at: usize| row.get(at).and_then(Value::text).unwrap_or_default().to_owned();
        let (id, tries) = (text(0), row.get(2).and_then(Value::int).unwrap_or(0));
        let sql = "UPDATE delivery SET next_s = $1, tries = $2 WHERE notice = $3 AND receiver = $4 AND state = 'waiting' AND tries = $5";
        let values = [
            Value::Int(until_s),
            Value::Int(tries + 1),
            id.as_str().into(),
            receiver.into(),
            Value::Int(tries),
        ];
        // Another server of the same store was quicker.
        let taken = self.db().execute(sql, &values)? > 0;
        Ok(taken.then(|| Due { id, json: text(1), tries, made: text(3) }))
    }

    /// When the next notice for `receiver` is due.
    ///
    /// # Errors
    /// The database refuses.
    pub fn next_due_s(&mut self, receiver: &str) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT MIN(next_s) FROM delivery WHERE receiver = $1 AND state = 'waiting'";
        Ok(one(self.db(), sql, &[receiver.into()])?.as_ref().and_then(Value::int))
    }

    /// It was sent, or will never be: `state`, and why.
    ///
    /// # Errors
    /// The database refuses.
    pub fn end_delivery(
        &mut self,
        notice: &str,
        receiver: &str,
        gave_up: Option<&str>,
        at: &str,
    ) -> Result<(), StoreError> {
        let state = if gave_up.is_some() { "given-up" } else { "sent" };
        let sql = "UPDATE delivery SET state = $1, reason = $2, ended = $3 WHERE notice = $4 AND receiver = $5";
        let values = [state.into(), gave_up.into(), at.into(), notice.into(), receiver.into()];
        self.db().execute(sql, &values).map(|_| ())
    }

    /// It was not sent: why, and when it is tried again.
    ///
    /// # Errors
    /// The database refuses.
    pub fn put_off(
        &mut self,
        notice: &str,
        receiver: &str,
        next_s: i64,
        reason: &str,
    ) -> Result<(), StoreError> {
        let sql =
            "UPDATE delivery SET next_s = $1, reason = $2 WHERE notice = $3 AND receiver = $4";
        let values = [Value::Int(next_s), reason.into(), notice.into(), receiver.into()];
        self.db().execute(sql, &values).map(|_| ())
    }

    /// How many deliveries there are in each state.
    ///
    /// # Errors
    /// The database refuses.
    pub fn deliveries(&mut self) -> Result<Vec<DeliveryCount>, StoreError> {
        let sql = "SELECT state, COUNT(*) FROM delivery GROUP BY state ORDER BY state";
        let rows = all(self.db(), sql, &[])?;
        let one = |row: &Vec<Value>| DeliveryCount {
            state: row.first().and_then(Value::text).unwrap_or_default().to_owned(),
            n: row.get(1).and_then(Value::int).unwrap_or(0),
        };
        Ok(rows.iter().map(one).collect())
    }
}
