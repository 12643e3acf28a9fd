// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that hand-overs share, and what they come to.
//!
//! Context: SETUP. Units: ns.

use tailbound_core::plan::Plan;
use tailbound_core::policy::Policy;
use tailbound_rt::handover::line::RECEIVERS_MAX;
use tailbound_sys::futex::Scope;
use tailbound_sys::handover::Medium;

use super::group::Group;
use crate::error::ProbeError;
use crate::kind::{ProbeOption, Setup};
use crate::place::Where;

pub(super) const BETWEEN: ProbeOption = ProbeOption::new(
    "between",
    "WHOM",
    "threads",
    "`threads` of one process, or `processes`: the sender is in one of its own",
);
pub(super) const WHERE: ProbeOption = ProbeOption::new(
    "where",
    "PLACE",
    "auto",
    "the sender's CPU, seen from the receiver's: `same`, its `sibling` (SMT), any `other`, another `node`; `auto`: other where there is one",
);
pub(super) const ROUND_TRIP: ProbeOption = ProbeOption::new(
    "round-trip",
    "YES|NO",
    "no",
    "`yes`: the receiver answers by the same means, and the sender times the whole way",
);
pub(super) const REHEARSE: ProbeOption = ProbeOption::new(
    "rehearse",
    "YES|NO",
    "no",
    "`yes`: before each hand-over one that is not timed, so that its code is in the caches",
);
pub(super) const SENDER: ProbeOption = ProbeOption::new(
    "sender",
    "WORD",
    "below",
    "the sender's priority: one `below` the receiver's, which then preempts it on one CPU, or the `same`",
);
pub(super) const RECEIVERS: ProbeOption = ProbeOption::new(
    "receivers",
    "N",
    "1",
    "number of receivers of one sender, each recorded; more than one: one group instead of a pair per CPU",
);
pub(super) const HOPS: ProbeOption = ProbeOption::new(
    "hops",
    "N",
    "1",
    "number of receivers in a ring that hands on from one to the next; each hop and the whole way are recorded; more than one: one ring instead of a pair per CPU",
);
pub(super) const CARRIER: ProbeOption = ProbeOption::new(
    "carrier",
    "WORD",
    "unix-stream",
    "what kind of socket: `unix-stream`, `unix-dgram`, `tcp` or `udp` over loopback",
);
pub(super) const PLANT: ProbeOption =
    ProbeOption::plant("`stall`: every 100th hand-over is held back for 5 ms after its stamp");

/// The options of a medium that has neither ring nor broadcast.
pub(super) const COMMON: &[ProbeOption] =
    &[BETWEEN, WHERE, SENDER, ROUND_TRIP, HOPS, REHEARSE, PLANT];

/// After a rehearsal, where the receiver does not preempt its sender.
const REHEARSED_NS: i64 = 50_000;

/// The options of a hand-over, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrangement {
    pub(super) medium: Medium,
    pub(super) scope: Scope,
    pub(super) place: Where,
    pub(super) round_trip: bool,
    pub(super) receivers: u32,
    pub(super) hops: u32,
    pub(super) rehearse: bool,
    /// The sender has the receiver's priority.
    pub(super) sender_is_level: bool,
    /// (Every n-th hand-over, stall in ns).
    pub(super) stall: Option<(u64, i64)>,
}

impl Arrangement {
    /// Threads that receive, of each sender.
    pub(super) fn receiving(&self) -> u32 {
        self.receivers.max(self.hops)
    }
    /// One group over the measured CPUs instead of a pair for each.
    pub(super) fn is_one_group(&self) -> bool {
        self.receiving() > 1
    }
    /// A sender on another CPU than its receiver gives it time to wait again.
    pub(super) fn rehearse_ns(&self, group: &Group) -> Option<i64> {
        let preempts = group.receivers == [group.sender] && !self.sender_is_level;
        self.rehearse.then_some(if preempts { 0 } else { REHEARSED_NS })
    }
    pub(super) fn is_between_processes(&self) -> bool {
        self.scope == Scope::Shared
    }
}

/// Reads them.
pub(super) fn arrangement(setup: &Setup<'_>) -> Result<Arrangement, ProbeError> {
    let options = setup.options();
    let has = |name: &str| options.text(name).is_some();
    let name = options.text("carrier").unwrap_or(&setup.plan.probe);
    let medium = match (name, setup.plan.probe.as_str()) {
        (carrier, "socket") => match carrier.parse() {
            Ok(medium @ Medium::Socket(_)) => medium,
            _ => return Err(options.wrong("carrier", "choose unix-stream, unix-dgram, tcp, udp")),
        },
        (_, probe) => probe.parse()?,
    };
    let count = |name| -> Result<u32, ProbeError> {
        if !has(name) {
            return Ok(1);
        }
        let n = options.count(name, 1..=RECEIVERS_MAX as u64)?;
        Ok(u32::try_from(n).unwrap_or(1))
    };
    let scope = match options.word("between", &["threads", "processes"])? {
        0 => Scope::Private,
        _ => Scope::Shared,
    };
    let place = match options.word("where", &["auto", "same", "sibling", "other", "node"])? {
        0 => Where::Auto,
        1 => Where::Same,
        2 => Where::Sibling,
        3 => Where::Other,
        _ => Where::Node,
    };
    let stall = match options.text("plant") {
        None => None,
        Some("stall") => Some((100, 5_000_000)),
        Some(_) => return Err(options.wrong("plant", "only `stall` can be planted")),
    };
    let arrangement = Arrangement {
        medium,
        scope,
        place,
        round_trip: has("round-trip") && options.flag("round-trip")?,
        receivers: count("receivers")?,
        hops: count("hops")?,
        rehearse: has("rehearse") && options.flag("rehearse")?,
        sender_is_level: options.word("sender", &["below", "same"])? == 1,
        stall,
    };
    if arrangement.round_trip && arrangement.is_one_group() {
        let name = if arrangement.hops > 1 { "hops" } else { "receivers" };
        return Err(options.wrong(name, "a round trip has one receiver: leave --round-trip out"));
    }
    if let policy @ Policy::Deadline { .. } = setup.plan.policy {
        return Err(ProbeError::Policy {
            probe: setup.plan.probe.clone(),
            policy,
            why: "SCHED_DEADLINE threads run in their own periods, not when something is handed to them; choose fifo:N, rr:N or other".to_owned(),
        });
    }
    Ok(arrangement)
}

/// The sender's policy: one priority below the receiver's, so that on one CPU the receiver
/// runs as soon as it is woken; or the same, as asked.
pub(super) fn sender_policy(plan: &Plan) -> Policy {
    if plan.options.get(SENDER.name).is_some_and(|word| word == "same") {
        return plan.policy;
    }
    match plan.policy {
        Policy::Fifo(p) => Policy::Fifo(p.saturating_sub(1).max(1)),
        Policy::Rr(p) => Policy::Rr(p.saturating_sub(1).max(1)),
        other => other,
    }
}
