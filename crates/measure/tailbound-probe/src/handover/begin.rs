// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks and begins any hand-over: who sits where, what is between them, who records what.
//!
//! Context: SETUP. Units: ns.

use std::sync::Arc;
use tailbound_core::Context;
use tailbound_host::clock_id;

use tailbound_rt::handover::Block;
use tailbound_sys::handover::{Channel, own_ipc_namespace};
use tailbound_sys::shared::Shared;

use super::group::{Group, groups};
use super::local::{BACK, Receiving, Sending};
use super::options::{self, Arrangement, arrangement, sender_policy};
use super::{remote, skew};
use crate::error::ProbeError;
use crate::kind::{Prepared, ProbeKind, Setup};
use crate::peer::{Guardian, Peer};
use crate::thread_group::{RecordSlot, Recorders, Running, ThreadGroup, thread_spec};

/// What all hand-overs say of themselves alike; each has its own name and its own two ends.
pub(super) const HAND_OVER: ProbeKind = ProbeKind {
    name: "",
    about: "",
    from: "",
    to: "",
    replaces: &[],
    options: options::COMMON,
    interval: "1ms",
    policy: None,
    event: Some("hand-over"),
    property: None,
    hog: false,
    takes: &[],
    prepare,
};

/// What must live as long as the threads.
#[derive(Default)]
struct HandoverResources {
    channels: Vec<Channel>,
    peers: Vec<Peer>,
    guardians: Vec<Guardian>,
}

fn open(
    arrangement: &Arrangement,
    memory: &Arc<Shared<Block>>,
) -> Result<Vec<Channel>, ProbeError> {
    let hops = if arrangement.round_trip { BACK + 1 } else { arrangement.hops as usize };
    let open = |hop| {
        let Arrangement { medium, scope, receivers, .. } = *arrangement;
        Ok(Channel::open(medium, memory, hop, scope, receivers)?)
    };
    (0..hops).map(open).collect()
}

/// Refuses words that mean nothing, places this machine has not, media this kernel has not.
fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let arrangement = arrangement(setup)?;
    let groups = groups(setup, &arrangement)?;
    let memory = Arc::new(Shared::<Block>::new()?);
    open(&arrangement, &memory)?;
    Ok(Prepared::with((arrangement, groups), begin))
}

/// Begins it.
fn begin(
    setup: &Setup<'_>,
    (arrangement, groups): (Arrangement, Vec<Group>),
) -> Result<Running, ProbeError> {
    // Objects of a namespace of our own end with the last process in it, killed or not.
    let in_namespace = arrangement.medium.is_ipc() && own_ipc_namespace().is_ok();
    let before = skew::look(&groups, setup);
    let mut threads = setup.threads()?;
    let mut held = HandoverResources::default();
    let mut slots = Slots { next: 0 };
    for group in &groups {
        let memory = Arc::new(Shared::<Block>::new()?);
        let channels = open(&arrangement, &memory)?;
        if !in_namespace {
            for id in channels.iter().filter_map(Channel::left_behind) {
                held.guardians.push(Guardian::start(setup.exe, id)?);
            }
        }
        receivers(setup, &mut threads, &arrangement, group, (&memory, &channels), &mut slots)?;
        sender(
            setup,
            &mut threads,
            &arrangement,
            group,
            (&memory, &channels),
            &mut slots,
            &mut held,
        )?;
        held.channels.extend(channels);
    }
    let clock = clock_id(setup.plan.clock);
    let policy = setup.plan.policy;
    threads.after(move |results| {
        drop(held);
        skew::probe_output(&groups, before, results, clock, policy)
    });
    threads.release()
}

/// Numbers of slots.
struct Slots {
    next: u32,
}

impl Slots {
    fn slot(&mut self, cpu: u32, phase_ns: i64, context: Context) -> RecordSlot {
        let thread = self.next;
        self.next += 1;
        RecordSlot { thread, cpu: Some(cpu), phase_ns, context }
    }
}

type Between<'a> = (&'a Arc<Shared<Block>>, &'a [Channel]);

fn channel(channels: &[Channel], at: usize) -> Result<&Channel, ProbeError> {
    channels.get(at).ok_or(ProbeError::NoChannel { at })
}

fn receivers(
    setup: &Setup<'_>,
    threads: &mut ThreadGroup,
    arrangement: &Arrangement,
    group: &Group,
    (memory, channels): Between<'_>,
    slots: &mut Slots,
) -> Result<(), ProbeError> {
    let last = group.receivers.len() - 1;
    let in_ring = arrangement.hops > 1;
    for (i, &cpu) in group.receivers.iter().enumerate() {
        let line = if in_ring { i } else { 0 };
        let next = match (in_ring && i < last, arrangement.round_trip) {
            (true, _) => Some(i + 1),
            (_, true) => Some(BACK),
            _ => None,
        };
        let onward = match next {
            Some(next) => Some((channel(channels, next)?.giver()?, next)),
            None => None,
        };
        let mut receiver = threads.thread(slots.slot(cpu, group.phase_ns, Context::User))?;
        let whole = (in_ring && i == last)
            .then(|| receiver.beside(slots.slot(cpu, group.phase_ns, Context::Ring)))
            .transpose()?;
        let receiving = Receiving {
            memory: Arc::clone(memory),
            clock: clock_id(setup.plan.clock),
            inlet: channel(channels, line)?.taker()?,
            onward,
            line,
            taken: i,
            whole,
        };
        let spec = thread_spec(setup.plan.policy, vec![cpu]);
        receiver.start(spec, move |thread| receiving.run(thread))?;
    }
    Ok(())
}

fn sender(
    setup: &Setup<'_>,
    threads: &mut ThreadGroup,
    arrangement: &Arrangement,
    group: &Group,
    (memory, channels): Between<'_>,
    slots: &mut Slots,
    held: &mut HandoverResources,
) -> Result<(), ProbeError> {
    let mut sender = threads.thread(slots.slot(group.sender, group.phase_ns, Context::Send))?;
    let beside: Option<[Arc<Recorders>; 2]> = if arrangement.round_trip {
        let mut more = |context| sender.beside(slots.slot(group.sender, group.phase_ns, context));
        Some([more(Context::RoundTrip)?, more(Context::Return)?])
    } else {
        None
    };
    // Of a ring, the receipt by the last; of a broadcast, that by each.
    let n = group.receivers.len();
    let taken: Vec<usize> = if arrangement.hops > 1 { vec![n - 1] } else { (0..n).collect() };
    if arrangement.is_between_processes() {
        let remote = remote::Sender {
            cpu: group.sender,
            taken,
            rehearse_ns: arrangement.rehearse_ns(group),
            arrangement: *arrangement,
        };
        held.peers.push(remote.begin(setup, sender, beside, (memory, channels))?);
        return Ok(());
    }
    let answers =
        if arrangement.round_trip { Some(channel(channels, BACK)?.taker()?) } else { None };
    let sending = Sending {
        memory: Arc::clone(memory),
        clock: clock_id(setup.plan.clock),
        outlet: channel(channels, 0)?.giver()?,
        answers,
        taken,
        rehearse_ns: arrangement.rehearse_ns(group),
        stall: arrangement.stall,
    };
    let spec = thread_spec(sender_policy(setup.plan), vec![group.sender]);
    sender.start(spec, move |thread| sending.run(thread, beside.as_ref()))
}
