// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sender in a process of its own, and the thread that keeps its books in this one.
//!
//! Context: SETUP in `begin`; the peer's sender thread is HOT; the bookkeeper is an ordinary
//! thread that looks 50 times a second. Units: ns.
//! What the sender sees goes through rings in the shared memory into the recorders of its slots
//! here. It dies with its parent, and a parent that loses it ends the run.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_core::policy::Policy;
use tailbound_core::{Finding, Impact};
use tailbound_host::clock_id;
use tailbound_rt::cyclic::{LoopEnd, Port as _, Schedule};
use tailbound_rt::handover::line::{Close, Control, Phase};
use tailbound_rt::handover::{Block, Give, Log, relayed};
use tailbound_rt::recorder::{Recorder, Writer};
use tailbound_sys::clock::{self, CLOCK_MONOTONIC, Nanosleep};
use tailbound_sys::error::SysError;
use tailbound_sys::futex::{self, Scope};
use tailbound_sys::handover::{Channel, Medium};
use tailbound_sys::shared::Shared;
use tailbound_sys::{limits, mem, sched, signal, thread};

use super::local::{BACK, Logs, Sending, of_phase};
use super::options::{Arrangement, sender_policy};
use crate::error::ProbeError;
use crate::kind::Setup;
use crate::peer::{Peer, Role, number};
use crate::thread_group::{Finished, Recorders, RecordingThread, ThreadContext, thread_spec};

/// States of a peer, in order.
const READY: u32 = 1;
const GO: u32 = 2;
/// The warm-up is over; the measurement is, one more.
const DONE: u32 = 3;
const FAILED: u32 = u32::MAX;
/// In place of a pause after a rehearsal.
const NO_REHEARSAL: i64 = -1;

const LOOK_NS: i64 = 20_000_000;
const START_NS: i64 = 10_000_000_000;
/// EIO: what the bookkeeper says of a sender that is gone.
const GONE: i32 = 5;

pub(crate) const ROLE: Role = Role { name: "handover-sender", run };

/// What a remote sender is begun with.
pub(super) struct Sender {
    pub(super) cpu: u32,
    pub(super) taken: Vec<usize>,
    pub(super) rehearse_ns: Option<i64>,
    pub(super) arrangement: Arrangement,
}

fn sleep(ns: i64) {
    let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(ns);
    Nanosleep(CLOCK_MONOTONIC).sleep_until(until);
}

impl Sender {
    /// Starts the process, waits until it is ready, and starts its bookkeeper.
    pub(super) fn begin(
        self,
        setup: &Setup<'_>,
        bookkeeper: RecordingThread<'_>,
        beside: Option<[Arc<Recorders>; 2]>,
        (memory, channels): (&Arc<Shared<Block>>, &[Channel]),
    ) -> Result<Peer, ProbeError> {
        let plan = setup.plan;
        let (every, long) = self.arrangement.stall.unwrap_or((0, 0));
        let mut fds = vec![memory.as_fd()];
        let mut ids = Vec::new();
        // The way there, and the way back of a round trip: rings go on without the sender.
        let of_sender = if self.arrangement.round_trip { 2 } else { 1 };
        for channel in channels.iter().take(of_sender) {
            let (its, id) = channel.handed_down();
            fds.extend(its);
            ids.push(id.to_string());
        }
        let mut words: Vec<String> = vec![
            self.arrangement.medium.word().to_owned(),
            sender_policy(plan).to_string(),
            self.cpu.to_string(),
            clock_id(plan.clock).to_string(),
            plan.interval_ns.to_string(),
            (plan.warm_up_ns / plan.interval_ns.max(1)).to_string(),
            plan.activations.to_string(),
            every.to_string(),
            long.to_string(),
            self.taken.first().copied().unwrap_or(0).to_string(),
            self.taken.len().to_string(),
            self.rehearse_ns.unwrap_or(NO_REHEARSAL).to_string(),
        ];
        words.extend(ids);
        let mut peer = Peer::start(setup.exe, ROLE.name, &words, &fds)?;
        let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(START_NS);
        while memory.control.state.load(Ordering::Acquire) != READY {
            let late = clock::now_ns(CLOCK_MONOTONIC) > until;
            if let Some(how) = peer.ended().or_else(|| late.then(|| "not ready in 10 s".to_owned()))
            {
                return Err(ProbeError::Sender { cpu: self.cpu, how });
            }
            sleep(1_000_000);
        }
        let books = Books {
            memory: Arc::clone(memory),
            pid: peer.pid().0,
            beside,
            last: channels.first().map(Channel::giver).transpose()?,
            medium: self.arrangement.medium,
        };
        bookkeeper
            .start(thread_spec(Policy::Other, Vec::new()), move |thread| books.keep(thread))?;
        Ok(peer)
    }
}

/// The bookkeeper of a remote sender.
struct Books {
    memory: Arc<Shared<Block>>,
    pid: i32,
    beside: Option<[Arc<Recorders>; 2]>,
    /// To free the receivers if the sender is gone.
    last: Option<Box<dyn Give + Send>>,
    medium: Medium,
}

impl Books {
    fn keep(mut self, thread: &ThreadContext) -> Result<Finished, SysError> {
        let memory = Arc::clone(&self.memory);
        let control = &memory.control;
        control.first_ns.store(thread.warm_up().first_ns, Ordering::Relaxed);
        control.state.store(GO, Ordering::Release);
        futex::wake(&control.state, 1, Scope::Shared);
        let mut phase = 0;
        let finished = thread.phases(|schedule, recorder| {
            let ended = self.phase(control, phase, schedule, recorder, thread.stop());
            phase += 1;
            ended
        });
        let dropped: u64 = memory
            .phases
            .iter()
            .map(|p| p.send.dropped() + p.round_trip.dropped() + p.back.dropped())
            .sum();
        if dropped > 0 {
            let finding = Finding::listed(
                "sender-records-dropped",
                Impact::Notice,
                format!("{dropped} records of the sender's process were lost"),
            );
            thread.output(|output| output.findings.push(finding));
        }
        // What keeping the books costs is not what sending costs.
        finished.map(|f| Finished { usage: limits::Usage::default(), ..f })
    }

    fn phase(
        &mut self,
        control: &Control,
        number: u32,
        schedule: &Schedule,
        recorder: &Recorder,
        stop: &AtomicBool,
    ) -> LoopEnd {
        let memory = Arc::clone(&self.memory);
        let at = number as usize;
        let Some(phase) = memory.phases.get(at) else { return LoopEnd::Failed(GONE, 0) };
        let writer = |r| Writer::new(r, schedule.first_ns, schedule.interval_ns);
        let mut send = writer(recorder);
        let beside = self.beside.clone();
        let mut round_trip = beside
            .as_ref()
            .map(|[there, back]| (writer(of_phase(there, at)), writer(of_phase(back, at))));
        let mut told = false;
        let ended = loop {
            // The state first: what was sent before it changed is in the rings.
            let state = control.state.load(Ordering::Acquire);
            relayed(&phase.send, &mut send);
            if let Some((there, back)) = &mut round_trip {
                relayed(&phase.round_trip, there);
                relayed(&phase.back, back);
            }
            if state == FAILED {
                stop.store(true, Ordering::Relaxed);
                break LoopEnd::Failed(control.failed.load(Ordering::Relaxed).cast_signed(), 0);
            }
            if state >= DONE + number {
                break self.accounted(control, at, schedule);
            }
            if stop.load(Ordering::Relaxed) && !told {
                told = true;
                control.stop.store(1, Ordering::Release);
                futex::wake(&control.stop, 1, Scope::Shared);
            }
            if is_gone(self.pid) {
                stop.store(true, Ordering::Relaxed);
                self.free_receivers(phase);
                break LoopEnd::Failed(GONE, 0);
            }
            sleep(LOOK_NS);
        };
        send.finish();
        if let Some((there, back)) = &mut round_trip {
            there.finish();
            back.finish();
        }
        ended
    }

    fn accounted(&self, control: &Control, at: usize, schedule: &Schedule) -> LoopEnd {
        let n = control.accounted.get(at).map_or(0, |n| n.load(Ordering::Relaxed));
        if n >= schedule.activations { LoopEnd::Complete } else { LoopEnd::Stopped(n) }
    }

    /// Receivers that no signal interrupts would wait for ever.
    fn free_receivers(&mut self, phase: &Phase) {
        if !self.medium.is_interruptible()
            && self.medium != Medium::PiFutex
            && let (Some(line), Some(last)) = (phase.lines.first(), &mut self.last)
        {
            line.close(&Close::default());
            let _freed = last.give();
        }
    }
}

/// A process that has ended and was not yet collected has no memory any more.
fn is_gone(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/statm"))
        .map_or(true, |text| text.split_whitespace().next() == Some("0"))
}

// ---- the peer's side ----

fn run(words: &[String], descriptors: Vec<OwnedFd>) -> Result<(), SysError> {
    let wrong = |what: String| SysError::code("peer", what, 22);
    let word = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
    let medium: Medium = word(0).parse().map_err(|e| wrong(format!("{e}")))?;
    let policy: Policy = word(1).parse().map_err(|e| wrong(format!("{e}")))?;
    let cpu: u32 = number(words, 2)?;
    let clock: i32 = number(words, 3)?;
    let interval_ns: i64 = number(words, 4)?;
    let warm: u64 = number(words, 5)?;
    let activations: u64 = number(words, 6)?;
    let stall = (number::<u64>(words, 7)? > 0).then_some((number(words, 7)?, number(words, 8)?));
    let (from, n): (usize, usize) = (number(words, 9)?, number(words, 10)?);
    let mut descriptors = descriptors.into_iter();
    let Some(memory) = descriptors.next() else { return Err(wrong("no memory".to_owned())) };
    let memory = Arc::new(Shared::<Block>::from_fd(memory)?);
    let there_fds: Vec<OwnedFd> = descriptors.by_ref().take(2).collect();
    let there = Channel::adopt(medium, &memory, 0, there_fds, number(words, 12)?)?;
    let back = match words.get(13) {
        Some(_) => {
            Some(Channel::adopt(medium, &memory, BACK, descriptors.collect(), number(words, 13)?)?)
        }
        None => None,
    };
    let sending = Sending {
        memory: Arc::clone(&memory),
        clock,
        outlet: there.giver()?,
        answers: back.as_ref().map(Channel::taker).transpose()?,
        taken: (from..from.saturating_add(n)).collect(),
        rehearse_ns: number(words, 11).ok().filter(|ns: &i64| *ns >= 0),
        stall,
    };
    limits::guard_realtime(0)?;
    // Where it is not allowed, the first process says so of itself.
    drop(mem::lock_all());
    let sender = thread::spawn(thread_spec(policy, vec![cpu]), move || {
        send(sending, interval_ns, [warm, activations]);
    })?;
    attend(&memory.control);
    sender.join()
}

/// Waits for the end, and passes the stop flag on.
fn attend(control: &Control) {
    loop {
        if control.stop.load(Ordering::Acquire) != 0 {
            limits::STOP.store(true, Ordering::Relaxed);
            let tid = control.tid.load(Ordering::Relaxed).cast_signed();
            if tid > 0 {
                signal::nudge(tid);
            }
        }
        let state = control.state.load(Ordering::Acquire);
        if state > DONE {
            return;
        }
        if limits::STOP.load(Ordering::Relaxed) {
            sleep(LOOK_NS);
        } else {
            let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(200_000_000);
            futex::wait(&control.stop, 0, Some(until), Scope::Shared);
        }
    }
}

/// The sender's thread.
fn send(mut sending: Sending, interval_ns: i64, activations: [u64; 2]) {
    let memory = Arc::clone(&sending.memory);
    let control = &memory.control;
    control.tid.store(sched::gettid().cast_unsigned(), Ordering::Relaxed);
    let tell = |state: u32| {
        control.state.store(state, Ordering::Release);
        futex::wake(&control.state, 1, Scope::Shared);
    };
    tell(READY);
    while control.state.load(Ordering::Acquire) == READY {
        futex::wait(&control.state, READY, None, Scope::Shared);
        if limits::STOP.load(Ordering::Relaxed) {
            break;
        }
    }
    let mut first_ns = control.first_ns.load(Ordering::Relaxed);
    let mut ended = LoopEnd::Complete;
    for ((phase, n), state) in memory.phases.iter().zip(activations).zip([DONE, DONE + 1]) {
        let schedule = Schedule { first_ns, interval_ns, activations: n };
        first_ns = first_ns.saturating_add(interval_ns.saturating_mul(n.cast_signed()));
        if ended == LoopEnd::Complete {
            let logs = Logs {
                send: Log::Relay(&phase.send),
                round_trip: Log::Relay(&phase.round_trip),
                back: Log::Relay(&phase.back),
            };
            ended = sending.phase(phase, &schedule, logs, &limits::STOP);
        }
        let accounted = match ended {
            LoopEnd::Complete => n,
            LoopEnd::Stopped(n) => n,
            LoopEnd::Failed(errno, _) => {
                control.failed.store(errno.unsigned_abs(), Ordering::Relaxed);
                return tell(FAILED);
            }
        };
        if let Some(place) = control.accounted.get((state - DONE) as usize) {
            place.store(accounted, Ordering::Relaxed);
        }
        tell(state);
    }
}
