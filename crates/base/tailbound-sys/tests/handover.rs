// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every medium carries every hand-over, in the warm-up and in the measurement, there and back,
//! to one receiver and to several.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tailbound_rt::handover::{Block, Log, Onward, Receiver, Relay, ReturnLeg, Sender, relayed};
use tailbound_rt::recorder::{Recorder, Writer};
use tailbound_rt::{LoopEnd, Schedule, Wake};
use tailbound_sys::clock::{self, CLOCK_MONOTONIC, Nanosleep};
use tailbound_sys::futex::Scope;
use tailbound_sys::handover::{Carrier, Channel, Medium};
use tailbound_sys::shared::Shared;

const ALL: [Medium; 16] = [
    Medium::Signal,
    Medium::Futex,
    Medium::PiFutex,
    Medium::Condvar,
    Medium::Semaphore,
    Medium::SysvSemaphore,
    Medium::Mqueue,
    Medium::Pipe,
    Medium::Socket(Carrier::UnixStream),
    Medium::Socket(Carrier::UnixDatagram),
    Medium::Socket(Carrier::Tcp),
    Medium::Socket(Carrier::Udp),
    Medium::Eventfd,
    Medium::Epoll,
    Medium::IoUring,
    Medium::Barrier,
];

const N: u64 = 40;
static STOP: AtomicBool = AtomicBool::new(false);

fn open(
    medium: Medium,
    memory: &Arc<Shared<Block>>,
    hop: usize,
    scope: Scope,
    receivers: u32,
) -> Option<Channel> {
    match Channel::open(medium, memory, hop, scope, receivers) {
        Ok(channel) => Some(channel),
        Err(e) => {
            tailbound_testing::skip("media", e);
            None
        }
    }
}

fn schedules() -> [Schedule; 2] {
    let first_ns = clock::now_ns(CLOCK_MONOTONIC) + 2_000_000;
    let one = Schedule { first_ns, interval_ns: 200_000, activations: N };
    [one, Schedule { first_ns: first_ns + 200_000 * N.cast_signed(), ..one }]
}

#[test]
fn every_medium_carries_every_hand_over() {
    for medium in ALL {
        for scope in [Scope::Private, Scope::Shared] {
            for receivers in [1u32, 3] {
                if receivers == 1 || medium.broadcasts() {
                    one_way(medium, scope, receivers);
                }
            }
        }
    }
}

fn one_way(medium: Medium, scope: Scope, receivers: u32) {
    let memory = Arc::new(Shared::<Block>::new().expect("memory"));
    let Some(channel) = open(medium, &memory, 0, scope, receivers) else { return };
    let schedules = schedules();
    let mut threads = Vec::new();
    for i in 0..receivers as usize {
        let mut inlet = channel.taker().expect("an end");
        let memory = Arc::clone(&memory);
        threads.push(thread::spawn(move || {
            let mut port = Nanosleep(CLOCK_MONOTONIC);
            schedules
                .iter()
                .zip(&memory.phases)
                .map(|(schedule, phase)| {
                    let recorder = Box::new(Recorder::new());
                    let ended = Receiver {
                        port: &mut port,
                        inlet: &mut *inlet,
                        line: &phase.lines[0],
                        taken: &phase.taken[i],
                        onward: None,
                        log: Log::Own(Writer::new(&recorder, schedule.first_ns, 200_000)),
                        whole: Log::Nowhere,
                    }
                    .run(schedule, &STOP);
                    (ended, recorder.wakeups(), recorder.missed().n)
                })
                .collect::<Vec<_>>()
        }));
    }
    let mut outlet = channel.giver().expect("an end");
    let mut port = Nanosleep(CLOCK_MONOTONIC);
    for (schedule, phase) in schedules.iter().zip(&memory.phases) {
        let taken: Vec<_> = phase.taken.iter().take(receivers as usize).collect();
        let ended = Sender {
            port: &mut port,
            outlet: &mut *outlet,
            line: &phase.lines[0],
            taken: &taken,
            answer: None,
            log: Log::Relay(&phase.send),
            rehearse_ns: None,
            stall: None,
        }
        .run(schedule, &STOP);
        assert_eq!(ended, LoopEnd::Complete, "{medium:?} {scope:?}");
        let recorder = Box::new(Recorder::new());
        let mut writer = Writer::new(&recorder, schedule.first_ns, 200_000);
        relayed(&phase.send, &mut writer);
        assert_eq!(recorder.wakeups().n + recorder.missed().n, N, "{medium:?} {scope:?}");
    }
    for thread in threads {
        for (ended, made, missed) in thread.join().expect("it ran") {
            assert_eq!((ended, made.n + missed), (LoopEnd::Complete, N), "{medium:?} {scope:?}");
            assert!(
                made.min_ns.is_some_and(|ns| ns > 0),
                "{medium:?}: received before it was sent"
            );
        }
    }
}

#[test]
fn answers_come_back() {
    for medium in ALL.into_iter().filter(|m| !m.broadcasts()) {
        let memory = Arc::new(Shared::<Block>::new().expect("memory"));
        let (Some(there), Some(back)) = (
            open(medium, &memory, 0, Scope::Private, 1),
            open(medium, &memory, 1, Scope::Private, 1),
        ) else {
            continue;
        };
        let schedules = schedules();
        let (mut inlet, mut onward) = (there.taker().expect("end"), back.giver().expect("end"));
        let other = Arc::clone(&memory);
        let receiver = thread::spawn(move || {
            let mut port = Nanosleep(CLOCK_MONOTONIC);
            for (schedule, phase) in schedules.iter().zip(&other.phases) {
                let ended = Receiver {
                    port: &mut port,
                    inlet: &mut *inlet,
                    line: &phase.lines[0],
                    taken: &phase.taken[0],
                    onward: Some(Onward { outlet: &mut *onward, line: &phase.lines[1] }),
                    log: Log::Nowhere,
                    whole: Log::Nowhere,
                }
                .run(schedule, &STOP);
                assert_eq!(ended, LoopEnd::Complete, "{medium:?}");
            }
        });
        let (mut outlet, mut answer) = (there.giver().expect("end"), back.taker().expect("end"));
        let mut port = Nanosleep(CLOCK_MONOTONIC);
        let count = |relay: &Relay, schedule: &Schedule| {
            let recorder = Box::new(Recorder::new());
            let mut writer = Writer::new(&recorder, schedule.first_ns, 200_000);
            relayed(relay, &mut writer);
            recorder.wakeups().n + recorder.missed().n
        };
        for (schedule, phase) in schedules.iter().zip(&memory.phases) {
            let ended = Sender {
                port: &mut port,
                outlet: &mut *outlet,
                line: &phase.lines[0],
                taken: &[&phase.taken[0]],
                answer: Some(ReturnLeg {
                    inlet: &mut *answer,
                    line: &phase.lines[1],
                    round_trip: Log::Relay(&phase.round_trip),
                    back: Log::Relay(&phase.back),
                }),
                log: Log::Nowhere,
                rehearse_ns: None,
                stall: None,
            }
            .run(schedule, &STOP);
            assert_eq!(ended, LoopEnd::Complete, "{medium:?}");
            let (whole, back) = (count(&phase.round_trip, schedule), count(&phase.back, schedule));
            assert_eq!((whole, back), (N, N), "{medium:?}");
        }
        receiver.join().expect("it ran");
    }
}

#[test]
fn a_stop_ends_both_sides_of_every_medium() {
    for medium in ALL {
        let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let memory = Arc::new(Shared::<Block>::new().expect("memory"));
        let Some(channel) = open(medium, &memory, 0, Scope::Private, 1) else { continue };
        let schedule = Schedule { activations: 1_000_000, ..schedules()[0] };
        let mut inlet = channel.taker().expect("an end");
        let other = Arc::clone(&memory);
        let receiver = thread::spawn(move || {
            Receiver {
                port: &mut Nanosleep(CLOCK_MONOTONIC),
                inlet: &mut *inlet,
                line: &other.phases[1].lines[0],
                taken: &other.phases[1].taken[0],
                onward: None,
                log: Log::Nowhere,
                whole: Log::Nowhere,
            }
            .run(&schedule, stop)
        });
        let mut outlet = channel.giver().expect("an end");
        let watched = Arc::clone(&memory);
        let sender = thread::spawn(move || {
            Sender {
                port: &mut Nanosleep(CLOCK_MONOTONIC),
                outlet: &mut *outlet,
                line: &memory.phases[1].lines[0],
                taken: &[&memory.phases[1].taken[0]],
                answer: None,
                log: Log::Nowhere,
                rehearse_ns: None,
                stall: None,
            }
            .run(&schedule, stop)
        });
        // Until a message was received, whenever a busy machine gets to it, and a little longer.
        while watched.phases[1].taken[0].received_ns(0).is_some() {
            thread::yield_now();
        }
        let until = clock::now_ns(CLOCK_MONOTONIC) + 20_000_000;
        while clock::now_ns(CLOCK_MONOTONIC) < until {
            thread::yield_now();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let (sent, received) = (sender.join().expect("ended"), receiver.join().expect("ended"));
        assert!(matches!(sent, LoopEnd::Stopped(n) if n > 0), "{medium:?}: {sent:?}");
        assert_eq!(received, sent, "{medium:?}");
    }
}

#[test]
fn a_ring_reads_into_memory_that_is_never_freed() {
    // A read may be in flight when its ring is dropped, and the kernel ends it later: it must not
    // go into the block, which is unmapped when the last of its users is.
    let memory = Arc::new(Shared::<Block>::new().unwrap());
    let Some(channel) = open(Medium::IoUring, &memory, 0, Scope::Private, 1) else { return };
    let words = || (1..).zip(memory.words.iter().flat_map(|area| &area.0));
    words().for_each(|(n, word)| word.store(n, Ordering::Relaxed));
    let (mut to, mut from) = (channel.giver().unwrap(), channel.taker().unwrap());
    to.give().unwrap();
    assert_eq!(from.take(), Wake::Due);
    assert!(words().all(|(n, word)| word.load(Ordering::Relaxed) == n), "the block is written to");
}
