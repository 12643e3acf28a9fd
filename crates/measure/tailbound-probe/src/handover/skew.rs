// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the clocks of sender and receiver can be apart, before and after the measurement.
//!
//! Context: SETUP; two threads spin for at most [`LONG_NS`], at the receiver's policy. Units: ns.
//! One clock is read on two CPUs; what keeps their readings together is the kernel's business.
//! A one-way latency is worth no more than their agreement.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tailbound_core::number::Real as _;
use tailbound_core::policy::Policy;
use tailbound_core::record::FigureRecord;
use tailbound_core::units::format_ns_i64;
use tailbound_core::{Context, Finding, Impact};
use tailbound_host::clock_id;
use tailbound_rt::skew::{self, Skew, Table};
use tailbound_sys::{clock, thread};

use super::group::Group;
use crate::kind::Setup;
use crate::thread_group::{ProbeOutput, ThreadResult, thread_spec};

const ROUNDS: u64 = 4000;
const LONG_NS: i64 = 20_000_000;

/// A pair of CPUs and the limits of their offset; `None`: not found out.
type Looked = ((u32, u32), Option<Skew>);

/// Looks at each pair of CPUs with a hand-over between them.
pub(super) fn look(groups: &[Group], setup: &Setup<'_>) -> Vec<Looked> {
    pairs(groups, clock_id(setup.plan.clock), setup.plan.policy)
}

fn pairs(groups: &[Group], clock: i32, policy: Policy) -> Vec<Looked> {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for group in groups {
        let mut from = group.sender;
        for &to in &group.receivers {
            // Around a ring each hands to the next; of a broadcast it is one way to the same.
            all.push((from.min(to), from.max(to)));
            all.push((group.sender.min(to), group.sender.max(to)));
            from = to;
        }
    }
    all.retain(|(a, b)| a != b);
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(|(a, b)| ((a, b), between(a, b, clock, policy))).collect()
}

/// The answerer sits on `to`.
fn between(from: u32, to: u32, clock: i32, policy: Policy) -> Option<Skew> {
    let table = Arc::new(Table::default());
    let other = Arc::clone(&table);
    let gate = Arc::new(Gate::default());
    let same = Arc::clone(&gate);
    let until = move || clock::now_ns(clock).saturating_add(LONG_NS);
    let asker = thread::spawn(thread_spec(policy, vec![from]), move || {
        let met = meet(&gate);
        met.then(|| skew::ask(&table, ROUNDS, until(), &mut || clock::now_ns(clock))).flatten()
    });
    let answerer = thread::spawn(thread_spec(policy, vec![to]), move || {
        if meet(&same) {
            skew::answer(&other, until(), &mut || clock::now_ns(clock));
        }
    });
    let skew = asker.and_then(thread::Thread::join);
    answerer.and_then(thread::Thread::join).ok()?;
    skew.ok().flatten()
}

type Gate = (Mutex<u32>, Condvar);

/// Neither spins before the other is there: it might keep this thread from making it. Waits in
/// vain for one that could not be made, but not for ever.
fn meet((here, changed): &Gate) -> bool {
    let mut n = here.lock().unwrap_or_else(PoisonError::into_inner);
    *n += 1;
    changed.notify_all();
    let (n, _) = changed
        .wait_timeout_while(n, Duration::from_millis(500), |n| *n < 2)
        .unwrap_or_else(PoisonError::into_inner);
    *n >= 2
}

/// Looks again, and compares with the first look.
pub(super) fn probe_output(
    groups: &[Group],
    before: Vec<Looked>,
    results: &[ThreadResult],
    clock: i32,
    policy: Policy,
) -> ProbeOutput {
    let mut output = ProbeOutput::default();
    if before.is_empty() {
        return output;
    }
    let after = pairs(groups, clock, policy);
    let mut worst: Option<((u32, u32), i64, i64)> = None;
    for ((pair, first), (_, second)) in before.into_iter().zip(after) {
        let (Some(first), Some(second)) = (first, second) else {
            output.findings.push(unknown(pair));
            continue;
        };
        let low = first.low_ns.min(second.low_ns);
        let high = first.high_ns.max(second.high_ns);
        if first.low_ns > first.high_ns || second.low_ns > second.high_ns {
            output.findings.push(unsteady(pair));
        }
        let bound = low.saturating_abs().max(high.saturating_abs());
        let known = worst.map_or(-1, |(_, l, h)| l.saturating_abs().max(h.saturating_abs()));
        if bound > known {
            worst = Some((pair, low, high));
        }
    }
    let Some((pair, low, high)) = worst else { return output };
    output.figures.push(figure(pair, low, high));
    let shortest = results
        .iter()
        .filter(|r| r.slot.context == Context::User)
        .filter_map(|r| r.recorders.measured.wakeups().min_ns)
        .min();
    let bound = low.saturating_abs().max(high.saturating_abs());
    if let Some(shortest) = shortest
        && bound > shortest
    {
        output.findings.push(too_large(pair, bound, shortest));
    }
    output
}

fn figure((a, b): (u32, u32), low: i64, high: i64) -> FigureRecord {
    FigureRecord {
        name: "clock-skew".to_owned(),
        value: low.midpoint(high).real(),
        unit: "ns".to_owned(),
        low: Some(low.real()),
        high: Some(high.real()),
        confidence: None,
        note: format!(
            "the clock read on CPU {b} minus the same on CPU {a}, by {ROUNDS} questions over a cache line before and after; of all pairs the widest"
        ),
    }
}

fn unknown((a, b): (u32, u32)) -> Finding {
    Finding::listed(
        "clock-skew-unknown",
        Impact::Doubt,
        format!("the offset between the clocks of CPU {a} and CPU {b} could not be measured"),
    )
}

fn unsteady((a, b): (u32, u32)) -> Finding {
    Finding::listed(
        "clock-skew-unsteady",
        Impact::Doubt,
        format!("the clocks of CPU {a} and CPU {b} contradict each other within milliseconds"),
    )
}

fn too_large((a, b): (u32, u32), bound: i64, shortest: i64) -> Finding {
    Finding::listed(
        "clock-skew",
        Impact::Doubt,
        format!(
            "the clocks of CPU {a} and CPU {b} may be {} apart, and the shortest hand-over took {}",
            format_ns_i64(bound),
            format_ns_i64(shortest)
        ),
    )
}
