// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows that a person's query gave, and runs in a list, for people, scripts and spreadsheets.

use serde_json::{Map, Value as Json};
use tailbound_core::csv;
use tailbound_core::units::{format_ns_i64, grouped};

use crate::error::StoreError;
use crate::store::{Listed, Store};
use crate::value::Value;

/// Letters of an identity that people are shown.
const SHOWN: usize = 12;

/// The first letters of an identity.
#[must_use]
pub fn short(id: &str) -> &str {
    id.get(..SHOWN).unwrap_or(id)
}

impl Listed {
    /// What stands over its cells.
    pub const HEADS: [&str; 8] =
        ["run", "began", "system", "kernel", "loads", "activations", "latest", "verdict"];
    /// Which of them are words, and no numbers.
    pub const WORDS: [usize; 6] = [0, 1, 2, 3, 4, 7];

    /// Its row in a table.
    #[must_use]
    pub fn cells(&self) -> Vec<String> {
        let unknown = || "unknown".to_owned();
        let began = self.started.get(..16).unwrap_or(&self.started).replace('T', " ");
        // Ordered by its arrival.
        let wrong =
            |said: &str| format!("{began}, clock wrong: {}", said.get(..10).unwrap_or(said));
        vec![
            short(&self.id).to_owned(),
            self.clock_said.as_deref().map_or_else(|| began.clone(), wrong),
            self.system.clone(),
            self.kernel.clone().unwrap_or_else(unknown),
            if self.loads.is_empty() { "none".to_owned() } else { self.loads.clone() },
            grouped(self.activations.unsigned_abs()),
            self.max_ns.map_or_else(unknown, format_ns_i64),
            self.outcome.clone(),
        ]
    }
}

/// All rows of a query.
#[derive(Clone, Debug, Default)]
pub struct QueryRows {
    /// What the columns are called.
    pub names: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl QueryRows {
    /// What `store` answers to `sql` within so many seconds.
    ///
    /// # Errors
    /// The database's words; the statement would change something; it took too long.
    pub fn of(store: &mut Store, sql: &str, seconds: u32) -> Result<Self, StoreError> {
        let mut rows: Vec<Vec<Value>> = Vec::new();
        let names = store.query(sql, seconds, &mut |_, row| {
            rows.push(row.to_vec());
            Ok(())
        })?;
        Ok(Self { names, rows })
    }

    /// An object a row.
    #[must_use]
    pub fn json(&self) -> Json {
        let of = |row: &Vec<Value>| {
            let named = self.names.iter().cloned().zip(row.iter().map(Value::json));
            Json::Object(named.collect::<Map<_, _>>())
        };
        self.rows.iter().map(of).collect::<Vec<_>>().into()
    }

    /// RFC 4180.
    #[must_use]
    pub fn csv(&self) -> String {
        let names: Vec<_> = self.names.iter().map(|n| csv::field(n)).collect();
        let mut text = names.join(",") + "\r\n";
        let line = |row: &Vec<Value>| row.iter().map(Value::csv).collect::<Vec<_>>().join(",");
        self.rows.iter().for_each(|row| text.push_str(&(line(row) + "\r\n")));
        text
    }

    /// Which columns are words, and no numbers.
    #[must_use]
    pub fn words(&self) -> Vec<usize> {
        let is_text =
            |at: &usize| self.rows.iter().any(|row| matches!(row.get(*at), Some(Value::Text(_))));
        (0..self.names.len()).filter(is_text).collect()
    }

    /// The cells of each row, for people.
    pub fn cells(&self) -> impl Iterator<Item = Vec<String>> + '_ {
        self.rows.iter().map(|row| row.iter().map(Value::shown).collect())
    }
}
