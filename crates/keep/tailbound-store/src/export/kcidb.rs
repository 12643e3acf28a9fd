// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs as a report for KCIDB, the database of kernel test results.
//!
//! Units: s, as that schema has them; ns within `misc`. A property that is not known is left out: the schema has no null.
//! Source: schema 5.0 of kcidb-io, <https://github.com/kernelci/kcidb-io>.

use std::collections::BTreeMap;
use std::io::Write;
use std::str::FromStr;

use serde_json::{Map, Value as Json, json};
use tailbound_core::number::Real as _;

use super::{JOINED, us_of};
use crate::error::StoreError;
use crate::store::{Filter, Store};
use crate::value::Value;

const NS_PER_S: f64 = 1e9;

/// Who sends reports: the name that KCIDB gave a CI system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

/// A text that is no such name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}`: lower-case letters, digits and underscores")]
pub struct OriginError(String);

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if text.is_empty() || !text.chars().all(ok) {
            return Err(OriginError(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

/// The columns that a report is made of, in the order of [`Row`].
const COLUMNS: &str = "run.id, run.name, run.started, run.outcome, run.reasons, run.measured_ns, run.deadline_ns, run.activations, \
    run.missed, run.p50_ns, run.p99_ns, run.p999_ns, run.p9999_ns, run.p99999_ns, run.max_ns, run.tool, run.command, system.name, \
    system.model, system.cpu_model, system.architecture, kernel.id, kernel.release, kernel.version, kernel.preempt, \
    kernel.command_line, kernel.config_fingerprint, workload.probe, workload.loads, workload.interval_ns, workload.cpus, \
    workload.policy, workload.virtual_time";

/// A row, asked by the name of its column.
struct Row<'a>(BTreeMap<&'a str, &'a Value>);

impl<'a> Row<'a> {
    fn of(row: &'a [Value]) -> Self {
        Self(COLUMNS.split(',').map(str::trim).zip(row).collect())
    }

    fn text(&self, column: &str) -> &str {
        self.0.get(column).and_then(|v| v.text()).unwrap_or_default()
    }

    fn int(&self, column: &str) -> Option<i64> {
        self.0.get(column).and_then(|v| v.int())
    }

    /// Those of `columns` that are known, without the names of their tables.
    fn known(&self, columns: &[&'static str]) -> Map<String, Json> {
        let of = |column: &&'static str| {
            let value = self.0.get(column).filter(|v| !matches!(v, Value::Null))?;
            let name = column.split_once('.').map_or(*column, |(_, name)| name);
            Some((name.to_owned(), value.json()))
        };
        columns.iter().filter_map(of).collect()
    }
}

/// A judgement as that schema has it. What is open is no pass, and what could not be measured is an error of the test.
fn status(outcome: &str) -> &'static str {
    match outcome {
        "met" => "PASS",
        "not-met" => "FAIL",
        "measured" | "undecided" => "DONE",
        _ => "ERROR",
    }
}

/// A text as a part of a test's path.
fn path_part(text: &str) -> String {
    let word = text.split([':', ' ', ',']).next().unwrap_or_default();
    let ok = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    word.chars().map(ok).collect()
}

/// Removes what is not known: texts that are empty.
fn without_empty(json: Json) -> Json {
    match json {
        Json::Object(map) => {
            let map = map.into_iter().map(|(name, v)| (name, without_empty(v)));
            Json::Object(
                map.filter(|(_, v)| !v.is_null() && *v != json!("") && *v != json!({})).collect(),
            )
        }
        other => other,
    }
}

impl Origin {
    fn id(&self, what: &str) -> String {
        format!("{}:tailbound:{what}", self.0)
    }

    fn build_id(&self, row: &Row<'_>) -> String {
        self.id(&format!("{}:{}", row.text("kernel.id"), row.text("system.architecture")))
    }

    fn test(&self, row: &Row<'_>) -> Json {
        let started = row.text("run.started");
        let seconds = |column: &str| row.int(column).map(|ns| ns.real() / NS_PER_S);
        let loads = row.text("workload.loads");
        let beside =
            if loads.is_empty() { "without load".to_owned() } else { format!("beside {loads}") };
        let latest = seconds("run.max_ns")
            .map_or(Json::Null, |s| json!({"value": s, "unit": "s", "prefix": "metric"}));
        without_empty(json!({
            "id": self.id(row.text("run.id")),
            "origin": self.0,
            "build_id": self.build_id(row),
            "path": format!("tailbound.{}", path_part(row.text("workload.probe"))),
            "comment": format!("latest activation of {}, {beside}", row.text("workload.probe")),
            "status": status(row.text("run.outcome")),
            "number": latest,
            "start_time": us_of(started).map_or("", |_| started),
            "duration": seconds("run.measured_ns"),
            "environment": {
                "comment": row.text("system.name"),
                "misc": row.known(&["system.name", "system.model", "system.cpu_model", "system.architecture"]),
            },
            "misc": {"tailbound": row.known(&[
                "run.name", "run.outcome", "run.reasons", "run.deadline_ns", "run.activations", "run.missed", "run.p50_ns", "run.p99_ns",
                "run.p999_ns", "run.p9999_ns", "run.p99999_ns", "run.max_ns", "run.tool", "run.command", "workload.probe",
                "workload.loads", "workload.interval_ns", "workload.cpus", "workload.policy", "workload.virtual_time",
                "kernel.command_line",
            ])},
        }))
    }

    fn build(&self, row: &Row<'_>) -> Json {
        let architecture = row.text("system.architecture");
        let ok =
            architecture.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        without_empty(json!({
            "id": self.build_id(row),
            "checkout_id": self.id(row.text("kernel.id")),
            "origin": self.0,
            "comment": row.text("kernel.version"),
            "architecture": if ok { architecture } else { "" },
            "misc": {"tailbound": row.known(&["kernel.release", "kernel.preempt", "kernel.config_fingerprint"])},
        }))
    }

    fn checkout(&self, row: &Row<'_>) -> Json {
        without_empty(json!({
            "id": self.id(row.text("kernel.id")),
            "origin": self.0,
            "comment": row.text("kernel.release"),
        }))
    }
}

fn list(to: &mut dyn Write, name: &str, all: &BTreeMap<String, Json>) -> Result<(), StoreError> {
    write!(to, ",\"{name}\":[")?;
    for (at, one) in all.values().enumerate() {
        write!(to, "{}{one}", if at == 0 { "" } else { ",\n" })?;
    }
    write!(to, "]")?;
    Ok(())
}

impl Store {
    /// Writes the runs that `filter` chooses as one report of schema 5.0. How many there are.
    ///
    /// # Errors
    /// The database refuses, or writing fails.
    pub fn export_kcidb(
        &mut self,
        origin: &Origin,
        filter: &Filter,
        to: &mut dyn Write,
    ) -> Result<u64, StoreError> {
        // What tests refer to stands behind them, so that one walk over the runs is enough.
        let (mut builds, mut checkouts) = (BTreeMap::new(), BTreeMap::new());
        let mut n = 0u64;
        write!(to, "{{\"version\":{{\"major\":5,\"minor\":0}},\"tests\":[")?;
        let (which, values) = filter.chosen();
        let sql = format!("SELECT {COLUMNS} {JOINED} {which}");
        self.db().rows(&sql, &values, &mut |_, row| {
            let row = Row::of(row);
            write!(to, "{}{}", if n == 0 { "\n" } else { ",\n" }, origin.test(&row))?;
            n += 1;
            builds.entry(origin.build_id(&row)).or_insert_with(|| origin.build(&row));
            checkouts
                .entry(row.text("kernel.id").to_owned())
                .or_insert_with(|| origin.checkout(&row));
            Ok(())
        })?;
        write!(to, "]")?;
        list(to, "builds", &builds)?;
        list(to, "checkouts", &checkouts)?;
        writeln!(to, "}}")?;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_no_pass_and_what_is_unknown_is_an_error() {
        let all = ["met", "not-met", "measured", "undecided", "unfit", "a later word"].map(status);
        assert_eq!(all, ["PASS", "FAIL", "DONE", "DONE", "ERROR", "ERROR"]);
    }

    #[test]
    fn origins_and_paths_have_the_letters_of_the_schema() {
        assert!("my_lab2".parse::<Origin>().is_ok());
        for wrong in ["", "My", "a:b", "a b", "\u{e9}"] {
            assert!(wrong.parse::<Origin>().is_err(), "{wrong}");
        }
        assert_eq!(path_part("scheduling:trials=4"), "scheduling");
        assert_eq!(path_part("hand.over/\u{fc}"), "hand_over__");
    }
}
