// SPDX-License-Identifier: MIT OR Apache-2.0
//! One of the two systems: everything its runs, or a published table, tell.
//!
//! Units: seconds of work, ns of latency.

use serde::Serialize;
use tailbound_core::Run;
use tailbound_core::number::Real as _;
use tailbound_core::record::BenchmarkRecord;

use super::latency::{self, Latency};
use super::rates::{self, Rate};
use super::sample::Sample;
use super::sleepers::{self, Sleepers};

/// What one benchmark costs on one system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchmarkCost {
    /// Its name: `compile`.
    pub work: String,
    /// The whole specification; only like ones are compared.
    pub spec: String,
    /// Elapsed time of each repetition; empty where only mean and deviation are told.
    pub real_s: Vec<f64>,
    /// Processor time in user mode.
    pub user_s: Vec<f64>,
    /// Processor time in the kernel.
    pub sys_s: Vec<f64>,
    /// Mean and deviation of the first.
    pub real: Option<Sample>,
    /// Of the second.
    pub user: Option<Sample>,
    /// Of the third.
    pub sys: Option<Sample>,
    /// Repetitions that failed.
    pub failed: u32,
}

/// One of the two systems.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Side {
    /// What people call it.
    pub name: String,
    /// Files it is known from.
    pub sources: Vec<String>,
    /// Start latency, where it was measured.
    pub latency: Option<Latency>,
    /// Benchmarks, in the order in which they first ran.
    #[serde(rename = "works")]
    pub benchmarks: Vec<BenchmarkCost>,
    /// Work done over time, of the benchmarks that count.
    pub rates: Vec<Rate>,
    /// Parallel sleepers, by their number.
    pub sleepers: Vec<Sleepers>,
}

/// The side that `runs` of one system describe, each with its file's name.
#[must_use]
pub fn of_runs(name: &str, runs: &[(&str, &Run)], deadline_ns: Option<i64>) -> Side {
    let all: Vec<&Run> = runs.iter().map(|(_, run)| *run).collect();
    // Sleepers are a question of their own: what they do to each other is not the start latency.
    let alone: Vec<&Run> = all.iter().copied().filter(|r| r.header.plan.tasks.is_none()).collect();
    let records: Vec<&BenchmarkRecord> = all.iter().flat_map(|r| &r.benchmarks).collect();
    Side {
        name: name.to_owned(),
        sources: runs.iter().map(|(file, _)| (*file).to_owned()).collect(),
        latency: latency::latency(&alone, deadline_ns),
        benchmarks: costs(&records),
        rates: rates::rates(&records),
        sleepers: sleepers::sleepers(&all),
    }
}

/// Costs by specification.
fn costs(records: &[&BenchmarkRecord]) -> Vec<BenchmarkCost> {
    let mut specs: Vec<&str> = Vec::new();
    for r in records {
        if !specs.contains(&r.spec.as_str()) {
            specs.push(&r.spec);
        }
    }
    specs
        .into_iter()
        .filter_map(|spec| {
            let of: Vec<&&BenchmarkRecord> = records.iter().filter(|r| r.spec == spec).collect();
            let ended = || of.iter().filter(|r| r.failed.is_none());
            let seconds = |ns: fn(&BenchmarkRecord) -> i64| -> Vec<f64> {
                ended().map(|r| ns(r).real() / 1e9).collect()
            };
            let [real_s, user_s, sys_s] =
                [seconds(|r| r.real_ns), seconds(|r| r.user_ns), seconds(|r| r.sys_ns)];
            Some(BenchmarkCost {
                work: of.first()?.work.clone(),
                spec: spec.to_owned(),
                real: Sample::of(&real_s),
                user: Sample::of(&user_s),
                sys: Sample::of(&sys_s),
                failed: u32::try_from(of.len() - ended().count()).unwrap_or(u32::MAX),
                real_s,
                user_s,
                sys_s,
            })
        })
        .collect()
}
