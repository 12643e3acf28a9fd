// SPDX-License-Identifier: MIT OR Apache-2.0
//! A storm of interrupts that software can make: CPUs that interrupt each other, threads that
//! change CPU, packets whose arrival is a softirq, timers.
//!
//! Context: the threads are the load; SETUP elsewhere. Units: triggers, each of which is one of
//!
//! - ipi: a CPU that was seen at work before and after a barrier, which so interrupted it;
//! - moves: a thread moved to another CPU, by the migration thread of the one it leaves;
//! - packets: a packet over loopback, received in the softirq of the CPU it was sent from;
//! - timers: an expiration, of four timers of 1 ms on each CPU.
//!
//! Interrupts of devices need the device: `disk`, or `ping-flood` and `download` from elsewhere.
//! Threads that change CPU are SCHED_IDLE: a fair scheduler takes each arrival for a task that has
//! waited long enough, so that ordinary ones would keep everything else from running for seconds
//! (the supervisor of the run, other loads), and what they do is done by the migration threads.
//! Source: membarrier(2), sched_setaffinity(2), sched(7), udp(7).

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tailbound_sys::ipc::SharedCounters;
use tailbound_sys::sched::Attributes;
use tailbound_sys::{membarrier, sched};

use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::options::Reader;
use crate::spin::Threads;
use crate::timers;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "interrupts",
    unit: "triggers",
    about: "makes the CPUs interrupt each other and themselves, as fast as they can",
    options: &[
        (
            "kind",
            "all (default), ipi (barriers all CPUs must answer), moves (threads that change CPU), packets (loopback: network softirqs) or timers (4 kHz on each CPU)",
        ),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Kinds::read(r)?, start)),
};

/// Triggers between two additions to the count.
const BATCH: u64 = 16;
/// Barriers from one CPU before the next.
const TURN: u32 = 1024;

/// Which interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    /// As many as the machine can have.
    All,
    Ipi,
    Moves,
    Packets,
    Timers,
}

impl Kinds {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let words = [
            ("all", Self::All),
            ("ipi", Self::Ipi),
            ("moves", Self::Moves),
            ("packets", Self::Packets),
            ("timers", Self::Timers),
        ];
        Ok(r.word("kind", &words)?.unwrap_or(Self::All))
    }
}

fn start(kinds: Kinds, note: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?;
    let mut chosen = match kinds {
        Kinds::All => vec![Kinds::Ipi, Kinds::Moves, Kinds::Packets, Kinds::Timers],
        one => vec![one],
    };
    if cpus.len() < 2 {
        if matches!(kinds, Kinds::Ipi | Kinds::Moves) {
            let option = if kinds == Kinds::Ipi { "kind=ipi" } else { "kind=moves" };
            return Err(Failure::TooFewCpus { option, why: "choose packets or timers" });
        }
        chosen.retain(|k| !matches!(k, Kinds::Ipi | Kinds::Moves));
        note("one CPU: neither interrupts from CPU to CPU nor moves".into());
    }
    if chosen.contains(&Kinds::Ipi)
        && let Err(e) = membarrier::register()
    {
        if kinds == Kinds::Ipi {
            return Err(Failure::from(e).remedy("kind=ipi needs a kernel with CONFIG_MEMBARRIER"));
        }
        chosen.retain(|k| *k != Kinds::Ipi);
        note(format!("no interrupts from CPU to CPU: {e}"));
    }
    // One more: the thread that asks the others for barriers.
    let threads = Threads::new(cpus.len() * chosen.len() + 1)?;
    let seen = Arc::new(SharedCounters::new(cpus.len())?);
    let mut slot = 0;
    for kind in &chosen {
        for (n, cpu) in cpus.iter().copied().enumerate() {
            let all = cpus.clone();
            match kind {
                Kinds::Moves => threads.spawn(slot, None, move |count| moves(&all, n, count))?,
                Kinds::Packets => threads.spawn(slot, Some(cpu), packets)?,
                Kinds::Timers => threads.spawn(slot, Some(cpu), timers::default_storm)?,
                Kinds::Ipi | Kinds::All => {
                    let seen = Arc::clone(&seen);
                    threads.spawn(slot, Some(cpu), move |_| be_seen(seen.slot(n)))?;
                }
            }
            slot += 1;
        }
        if *kind == Kinds::Ipi {
            let (all, seen) = (cpus.clone(), Arc::clone(&seen));
            let last = cpus.len() * chosen.len();
            threads.spawn(last, None, move |count| barriers(&all, &seen, count))?;
        }
    }
    Ok(Box::new(threads))
}

/// A CPU at work, which can be seen to be.
fn be_seen(at: &AtomicU64) -> Result<(), Failure> {
    for n in 0u64.. {
        at.store(n, Ordering::Relaxed);
    }
    Ok(())
}

/// Barriers from each CPU in turn. A single thread: the kernel makes one barrier at a time, and
/// those who wait for it run nowhere and would be interrupted by none. A barrier interrupts the
/// CPUs alone that run a thread of ours: what others run is left in peace, and not counted.
fn barriers(cpus: &[u32], seen: &SharedCounters, count: &dyn Fn(u64)) -> Result<(), Failure> {
    let look =
        || -> Vec<u64> { (0..cpus.len()).map(|n| seen.slot(n).load(Ordering::Relaxed)).collect() };
    for cpu in cpus.iter().cycle() {
        sched::set_affinity(0, &[*cpu])?;
        let mut before = look();
        for _ in 0..TURN {
            membarrier::barrier()?;
            let after = look();
            count(before.iter().zip(&after).filter(|(b, a)| b != a).count() as u64);
            before = after;
        }
    }
    Ok(())
}

/// From CPU to CPU, beginning with number `at`.
fn moves(cpus: &[u32], at: usize, count: &dyn Fn(u64)) -> Result<(), Failure> {
    let idle = Attributes { policy: sched::SCHED_IDLE, ..Attributes::default() };
    sched::set(0, &idle)?;
    for cpu in cpus.iter().cycle().skip(at) {
        sched::set_affinity(0, &[*cpu])?;
        count(1);
    }
    Ok(())
}

/// To itself, over loopback.
fn packets(count: &dyn Fn(u64)) -> Result<(), Failure> {
    let on = "loopback";
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).on(on)?;
    socket.connect(socket.local_addr().on(on)?).on(on)?;
    let mut packet = [0u8; 64];
    loop {
        for _ in 0..BATCH {
            socket.send(&packet).on(on)?;
            socket.recv(&mut packet).on(on)?;
        }
        count(BATCH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        assert_eq!(read("interrupts:kind=moves", Kinds::read), Kinds::Moves);
        assert_eq!(read("interrupts", Kinds::read), Kinds::All);
    }
}
