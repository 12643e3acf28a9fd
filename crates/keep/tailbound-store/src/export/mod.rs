// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of a store for other programs: CSV, Parquet, and the reports of KCIDB.
//!
//! Units: in the names of columns. Rows are written as the database gives them: memory does not grow with the store.

mod kcidb;
mod parquet;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use tailbound_core::{csv, utc};

pub use kcidb::Origin;

use crate::buckets;
use crate::error::StoreError;
use crate::schema::{self, Kind};
use crate::store::{Filter, Store};
use crate::value::Value;

/// What there is a row for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A run, with what its system, kernel and workload are.
    Runs,
    /// A bucket of a histogram.
    Buckets,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// RFC 4180.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// What a column of the answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Int,
    Real,
    Text,
    /// A text of RFC 3339, which a format that has times gets as one.
    Time,
}

/// A column of the answer.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    holds: Holds,
}

/// Where rows go.
trait Rows {
    fn row(&mut self, row: &[Value]) -> io::Result<()>;
    /// What stands behind the last row.
    fn end(&mut self) -> io::Result<()>;
}

struct Csv<W: Write>(W);

impl<W: Write> Csv<W> {
    fn begin(mut out: W, columns: &[Column]) -> io::Result<Self> {
        let names: Vec<String> = columns.iter().map(|c| csv::field(&c.name)).collect();
        write!(out, "{}\r\n", names.join(","))?;
        Ok(Self(out))
    }
}

impl<W: Write> Rows for Csv<W> {
    fn row(&mut self, row: &[Value]) -> io::Result<()> {
        let fields: Vec<String> = row.iter().map(Value::csv).collect();
        write!(self.0, "{}\r\n", fields.join(","))
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// µs since 1970 of a time in UTC; `None`: it is none.
fn us_of(rfc3339: &str) -> Option<i64> {
    let (date, time) = rfc3339.strip_suffix('Z')?.split_once('T')?;
    utc::from_date_time(date, time)?.checked_mul(1_000_000)
}

/// Columns of tables whose text is a time.
const TIMES: [&str; 2] = ["started", "added"];

/// Columns of the table of runs, and the words of SQL that choose them. A column of another table is called `TABLE_COLUMN`.
fn of_runs() -> (Vec<Column>, String) {
    let (mut columns, mut words) = (Vec::new(), Vec::new());
    let typed = schema::typed();
    for table in ["run", "system", "kernel", "workload"] {
        let of_run = table == "run";
        for (column, kind) in typed.iter().filter(|(name, _)| *name == table).flat_map(|(_, c)| c) {
            let holds = match kind {
                Kind::Int => Holds::Int,
                Kind::Real => Holds::Real,
                Kind::Text if TIMES.contains(column) => Holds::Time,
                Kind::Text => Holds::Text,
                Kind::Bytes => continue,
            };
            // The identities of the others are columns of the run.
            if of_run || *column != "id" {
                let name = if of_run { (*column).to_owned() } else { format!("{table}_{column}") };
                columns.push(Column { name, holds });
                words.push(format!("{table}.{column}"));
            }
        }
    }
    (columns, words.join(", "))
}

/// What a run has beside it.
const JOINED: &str = "FROM run JOIN system ON system.id = run.system JOIN kernel ON kernel.id = run.kernel \
    JOIN workload ON workload.id = run.workload";

fn of_buckets() -> Vec<Column> {
    use Holds::{Int, Text, Time};
    let all = [
        ("run", Text),
        ("started", Time),
        ("system_name", Text),
        ("thread", Int),
        ("cpu", Int),
        ("context", Text),
        ("low_ns", Int),
        ("high_ns", Int),
        ("count", Int),
    ];
    all.map(|(name, holds)| Column { name: name.to_owned(), holds }).into()
}

impl Store {
    /// Writes a row for each run that `filter` chooses, or for each bucket of their histograms. How many rows that were.
    ///
    /// # Errors
    /// The database refuses, a row is damaged, or writing fails.
    pub fn export(
        &mut self,
        of: Of,
        format: TableFormat,
        filter: &Filter,
        to: &mut (dyn Write + Send),
    ) -> Result<u64, StoreError> {
        let (columns, chosen) = match of {
            Of::Runs => of_runs(),
            Of::Buckets => (of_buckets(), String::new()),
        };
        let mut rows: Box<dyn Rows + '_> = match format {
            TableFormat::Csv => Box::new(Csv::begin(to, &columns)?),
            TableFormat::Parquet => Box::new(parquet::Parquet::begin(to, &columns)?),
        };
        let mut n = 0;
        match of {
            Of::Runs => {
                let (which, values) = filter.chosen();
                let sql = format!("SELECT {chosen} {JOINED} {which}");
                self.db().rows(&sql, &values, &mut |_, row| {
                    n += 1;
                    Ok(rows.row(row)?)
                })?;
            }
            Of::Buckets => self.each_bucket(filter, &mut |row| {
                n += 1;
                rows.row(row)
            })?,
        }
        rows.end()?;
        Ok(n)
    }

    fn each_bucket(
        &mut self,
        filter: &Filter,
        each: &mut dyn FnMut(&[Value]) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let (which, values) = filter.chosen();
        let sql = format!(
            "SELECT chosen.id, chosen.started, chosen.name, histogram.thread, histogram.cpu, histogram.context, histogram.buckets \
             FROM (SELECT run.id, run.started, system.name FROM run JOIN system ON system.id = run.system {which}) AS chosen \
             JOIN histogram ON histogram.run = chosen.id \
             ORDER BY chosen.started DESC, chosen.id, histogram.thread, histogram.context"
        );
        self.db().rows(&sql, &values, &mut |_, row| {
            let Some((Value::Bytes(bytes), of)) = row.split_last() else { return Ok(()) };
            let all = buckets::unpacked(bytes).ok_or_else(|| StoreError::Damaged {
                id: of.first().map(Value::shown).unwrap_or_default(),
                reason: buckets::UNREADABLE.to_owned(),
            })?;
            let mut whole = of.to_vec();
            for b in all {
                whole.truncate(of.len());
                whole.extend(
                    [b.low_ns, b.low_ns.saturating_add(b.width_ns), b.count].map(Value::from),
                );
                each(&whole)?;
            }
            Ok(())
        })?;
        Ok(())
    }
}
