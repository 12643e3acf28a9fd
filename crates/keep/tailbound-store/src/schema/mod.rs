// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables, and how a store of an earlier version becomes one of this.
//!
//! Units: in the names of columns. Everything but `run_file`, `annotation`, `acknowledgement`, `token`, `audit`, `work`, `batch`,
//! `notice`, `delivery` and `system_version` follows from the run files and can be made again (`Store::rebuild`). Described for people in `docs/store.md`, which a test holds to this.

use crate::database::{Database, Dialect, all, one, whole};
use crate::error::StoreError;
use crate::value::Value;

/// How a store differs from the one before it: what it is for, and its statements.
const MIGRATIONS: &[(&str, &str)] = &[
    ("runs, their files, what they measured and where", RUNS),
    ("who may hand in and read over the network, and what they did", ACCESS),
    ("campaigns handed out to machines, and what became of them", WORK),
    ("a run by its name, and the worst of each day, without a walk over all runs", MANY),
    ("the latest of each five minutes of a run", MAXIMA),
    ("of what a piece of work is a part", BATCHES),
    ("what was told of regressions, and to whom it is still to be told", TOLD),
    ("runs whose clock is wrong, and all figures of a series", STARTS),
    ("what people know already", ACKNOWLEDGED),
    ("of each series whether it became worse, found when a run arrives", SERIES),
    ("which systems changed since somebody read them", VERSIONS),
];

const RUNS: &str = "
CREATE TABLE system (
    id {text} PRIMARY KEY,
    name {text} NOT NULL,
    model {text},
    cpu_model {text},
    architecture {text}
){strict};
CREATE UNIQUE INDEX system_name ON system (name);
CREATE TABLE kernel (
    id {text} PRIMARY KEY,
    release {text},
    version {text},
    preempt {text},
    command_line {text},
    config_fingerprint {text}
){strict};
CREATE TABLE facts (
    id {text} PRIMARY KEY,
    json {text} NOT NULL
){strict};
CREATE TABLE workload (
    id {text} PRIMARY KEY,
    probe {text} NOT NULL,
    interval_ns {int},
    cpus {text} NOT NULL,
    policy {text} NOT NULL,
    loads {text} NOT NULL,
    virtual_time {int} NOT NULL
){strict};
CREATE TABLE run (
    id {text} PRIMARY KEY,
    name {text} NOT NULL,
    system {text} NOT NULL REFERENCES system (id),
    kernel {text} NOT NULL REFERENCES kernel (id),
    facts {text} NOT NULL REFERENCES facts (id),
    workload {text} NOT NULL REFERENCES workload (id),
    started {text} NOT NULL,
    added {text} NOT NULL,
    tool {text} NOT NULL,
    command {text} NOT NULL,
    measured_ns {int} NOT NULL,
    ended {text} NOT NULL,
    outcome {text} NOT NULL,
    reasons {text} NOT NULL,
    deadline_ns {int},
    context {text},
    activations {int} NOT NULL,
    missed {int} NOT NULL,
    over_range {int} NOT NULL,
    min_ns {int},
    mean_ns {real},
    p50_ns {int},
    p99_ns {int},
    p999_ns {int},
    p9999_ns {int},
    p99999_ns {int},
    max_ns {int}
){strict};
CREATE INDEX run_of_system ON run (system, workload, started);
CREATE INDEX run_started ON run (started);
CREATE TABLE run_file (
    run {text} PRIMARY KEY REFERENCES run (id),
    bytes {int} NOT NULL,
    zstd {bytes} NOT NULL
){strict};
CREATE TABLE histogram (
    run {text} NOT NULL REFERENCES run (id),
    thread {int} NOT NULL,
    cpu {int},
    context {text} NOT NULL,
    n {int} NOT NULL,
    min_ns {int},
    max_ns {int},
    buckets {bytes} NOT NULL,
    PRIMARY KEY (run, thread, context)
){strict};
CREATE TABLE finding (
    run {text} NOT NULL REFERENCES run (id),
    id {text} NOT NULL,
    impact {text} NOT NULL,
    message {text} NOT NULL,
    PRIMARY KEY (run, id)
){strict};
CREATE TABLE culprit (
    run {text} NOT NULL REFERENCES run (id),
    cause {text} NOT NULL,
    who {text} NOT NULL,
    wakeups {int} NOT NULL,
    total_ns {int} NOT NULL,
    longest_ns {int} NOT NULL,
    PRIMARY KEY (run, cause, who)
){strict};
CREATE TABLE annotation (
    run {text} NOT NULL,
    at {text} NOT NULL,
    author {text} NOT NULL,
    message {text} NOT NULL,
    PRIMARY KEY (run, at, author)
){strict};
";

const ACCESS: &str = "
CREATE INDEX run_latest ON run (system, started);
CREATE TABLE token (
    id {text} PRIMARY KEY,
    name {text} NOT NULL,
    role {text} NOT NULL,
    system {text},
    sha256 {text} NOT NULL,
    created {text} NOT NULL,
    revoked {text}
){strict};
CREATE UNIQUE INDEX token_sha256 ON token (sha256);
CREATE TABLE audit (
    at {text} NOT NULL,
    who {text} NOT NULL,
    what {text} NOT NULL
){strict};
CREATE INDEX audit_at ON audit (at);
";

const WORK: &str = "
CREATE TABLE work (
    id {text} PRIMARY KEY,
    number {int} NOT NULL,
    system {text} NOT NULL,
    name {text} NOT NULL,
    campaign {text} NOT NULL,
    parts {text} NOT NULL,
    scale {real} NOT NULL,
    cpus {text},
    handed_out_by {text} NOT NULL,
    created {text} NOT NULL,
    state {text} NOT NULL,
    reason {text},
    lease {text},
    lease_until_s {int},
    began {text},
    ended {text},
    progress {text},
    runs {text} NOT NULL
){strict};
CREATE INDEX work_of_system ON work (system, state, number);
CREATE INDEX work_number ON work (number);
";

// What the overview asks of each day is in the indexes: a row of `run` is ten times as long.
const MANY: &str = "
CREATE INDEX run_name ON run (name);
CREATE INDEX run_day ON run (started, system, max_ns, outcome);
CREATE INDEX run_day_of_system ON run (system, started, max_ns, outcome);
DROP INDEX run_started;
DROP INDEX run_latest;
";

const MAXIMA: &str = "
CREATE TABLE maximum (
    run {text} NOT NULL REFERENCES run (id),
    began_s {int} NOT NULL,
    wakeups {int} NOT NULL,
    max_ns {int} NOT NULL,
    PRIMARY KEY (run, began_s)
){strict};
";

const BATCHES: &str = "
CREATE TABLE batch (
    work {text} PRIMARY KEY REFERENCES work (id),
    id {text} NOT NULL,
    place {int} NOT NULL,
    pieces {int} NOT NULL
){strict};
CREATE INDEX batch_id ON batch (id);
";

const TOLD: &str = "
CREATE TABLE notice (
    id {text} PRIMARY KEY,
    system {text} NOT NULL,
    workload {text} NOT NULL,
    newest {text} NOT NULL,
    made {text} NOT NULL,
    json {text} NOT NULL
){strict};
CREATE INDEX notice_of_series ON notice (system, workload);
CREATE TABLE delivery (
    notice {text} NOT NULL REFERENCES notice (id),
    receiver {text} NOT NULL,
    state {text} NOT NULL,
    tries {int} NOT NULL,
    next_s {int} NOT NULL,
    reason {text},
    ended {text},
    PRIMARY KEY (notice, receiver)
){strict};
CREATE INDEX delivery_next ON delivery (receiver, state, next_s);
";

// What an earlier version kept is looked at by whole days, as SQL cannot count seconds in both databases alike.
const STARTS: &str = "
ALTER TABLE run ADD COLUMN clock_said {text};
ALTER TABLE run ADD COLUMN arrival {text};
ALTER TABLE run ADD COLUMN p90_ns {int};
ALTER TABLE run ADD COLUMN block_max_ns {int};
UPDATE run SET clock_said = started, started = added WHERE substr(started, 1, 10) > substr(added, 1, 10) OR started < '2001';
DELETE FROM maximum WHERE run IN (SELECT id FROM run WHERE clock_said IS NOT NULL);
UPDATE notice SET newest = made WHERE substr(newest, 1, 10) > substr(made, 1, 10);
CREATE INDEX run_conditions ON run (system, started, workload, kernel, facts, tool);
";

const ACKNOWLEDGED: &str = "
CREATE TABLE acknowledgement (
    system {text} NOT NULL,
    workload {text} NOT NULL,
    newest {text} NOT NULL,
    at {text} NOT NULL,
    author {text} NOT NULL,
    message {text} NOT NULL,
    PRIMARY KEY (system, workload, at)
){strict};
";

// Whatever is there already is still to be looked at.
const SERIES: &str = "
CREATE TABLE series (
    system {text} NOT NULL REFERENCES system (id),
    workload {text} NOT NULL REFERENCES workload (id),
    newest {text} NOT NULL,
    due {int} NOT NULL,
    state {text},
    json {text},
    looked {text},
    PRIMARY KEY (system, workload)
){strict};
CREATE INDEX series_due ON series (due);
INSERT INTO series (system, workload, newest, due) SELECT system, workload, MAX(started), COUNT(*) FROM run GROUP BY system, workload;
";

// A system without a row has version 0.
const VERSIONS: &str = "
CREATE TABLE system_version (
    system {text} PRIMARY KEY,
    version {int} NOT NULL
){strict};
";

/// The schema of this version.
pub const SCHEMA: i64 = MIGRATIONS.len() as i64;

/// Tables that follow from the run files, those first that others point to last.
pub(crate) const DERIVED: [&str; 10] = [
    "series",
    "culprit",
    "finding",
    "histogram",
    "maximum",
    "run",
    "system",
    "kernel",
    "facts",
    "workload",
];

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Real,
    Text,
    Bytes,
}

impl Kind {
    /// From a migration's word.
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "int" => Self::Int,
            "real" => Self::Real,
            "text" => Self::Text,
            "bytes" => Self::Bytes,
            _ => return None,
        })
    }
}

/// A table's name, and its columns with what they hold.
type Typed = (&'static str, Vec<(&'static str, Kind)>);

/// All tables, in order.
pub(crate) fn typed() -> Vec<Typed> {
    typed_at(SCHEMA)
}

/// All tables of a schema, in order.
fn typed_at(number: i64) -> Vec<Typed> {
    let mut all: Vec<Typed> = Vec::new();
    let steps = MIGRATIONS.iter().take(usize::try_from(number).unwrap_or(0));
    for line in steps.flat_map(|(_, sql)| sql.lines()) {
        if let Some(name) = line.strip_prefix("CREATE TABLE ") {
            all.push((name.trim_end_matches(" ("), Vec::new()));
        } else if let Some((table, column)) =
            line.strip_prefix("ALTER TABLE ").and_then(|rest| rest.split_once(" ADD COLUMN "))
        {
            let to = all.iter_mut().find(|(name, _)| *name == table);
            if let (Some((_, columns)), Some(column)) = (to, column_of(column)) {
                columns.push(column);
            }
        } else if let (Some(column), Some((_, columns))) =
            (line.strip_prefix("    ").and_then(column_of), all.last_mut())
        {
            columns.push(column);
        }
    }
    all
}

/// `name {kind}`, and what follows.
fn column_of(words: &'static str) -> Option<(&'static str, Kind)> {
    let (name, rest) = words.split_once(" {")?;
    Some((name, rest.split('}').next().and_then(Kind::of)?))
}

/// The names of all tables and their columns, in order.
#[must_use]
pub fn tables() -> Vec<(&'static str, Vec<&'static str>)> {
    let names =
        |columns: Vec<(&'static str, Kind)>| columns.iter().map(|(name, _)| *name).collect();
    typed().into_iter().map(|(name, columns)| (name, names(columns))).collect()
}

/// The schema of the store behind `db`; `None`: it has none.
pub(crate) fn found(db: &mut dyn Database) -> Result<Option<i64>, StoreError> {
    let there = match db.dialect() {
        Dialect::Sqlite => {
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'tailbound_schema'"
        }
        Dialect::Postgres => {
            "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'tailbound_schema'"
        }
    };
    if one(db, there, &[])?.is_none() {
        return Ok(None);
    }
    Ok(one(db, "SELECT MAX(number) FROM tailbound_schema", &[])?.and_then(|v| v.int()))
}

/// Is the way by which the store came to its schema the one that is known here?
fn way_checked(db: &mut dyn Database, place: &str) -> Result<(), StoreError> {
    let steps = all(db, "SELECT number, what FROM tailbound_schema ORDER BY number", &[])?;
    for step in &steps {
        let number = step.first().and_then(Value::int).unwrap_or(0);
        let what = step.get(1).and_then(Value::text).unwrap_or_default();
        let known = usize::try_from(number - 1).ok().and_then(|at| MIGRATIONS.get(at));
        if let Some((known, _)) = known.filter(|(known, _)| *known != what) {
            let (place, found) = (place.to_owned(), what.to_owned());
            return Err(StoreError::OtherSchema { place, number, found, known });
        }
    }
    Ok(())
}

/// Makes the tables, or those that are missing. Each step is done whole or not at all.
pub(crate) fn migrate(db: &mut dyn Database, place: &str, now: &str) -> Result<(), StoreError> {
    if let Some(at) = found(db)? {
        if at > SCHEMA {
            return Err(StoreError::Later { place: place.to_owned(), found: at, known: SCHEMA });
        }
        way_checked(db, place)?;
        if at == SCHEMA {
            return Ok(());
        }
    }
    migrate_to(db, SCHEMA, now)
}

/// Makes the tables of a schema that are missing.
fn migrate_to(db: &mut dyn Database, last: i64, now: &str) -> Result<(), StoreError> {
    whole(db, |db| {
        let dialect = db.dialect();
        if dialect == Dialect::Postgres {
            // Two that begin at the same time: the second one finds it done.
            db.script("SELECT pg_advisory_xact_lock(7811887110)")?;
        }
        db.script(&dialect.of_types(
            "CREATE TABLE IF NOT EXISTS tailbound_schema (number {int} PRIMARY KEY, what {text} NOT NULL, applied {text} NOT NULL){strict}",
        ))?;
        let at = one(db, "SELECT COALESCE(MAX(number), 0) FROM tailbound_schema", &[])?;
        let at = at.and_then(|v| v.int()).unwrap_or(0);
        let missing = (1i64..=last).zip(MIGRATIONS).filter(|(number, _)| *number > at);
        for (number, (what, sql)) in missing {
            db.script(&dialect.of_types(sql))?;
            let row = [Value::Int(number), (*what).into(), now.into()];
            db.execute(
                "INSERT INTO tailbound_schema (number, what, applied) VALUES ($1, $2, $3)",
                &row,
            )?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests;
