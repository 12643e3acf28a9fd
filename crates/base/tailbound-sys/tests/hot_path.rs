// SPDX-License-Identifier: MIT OR Apache-2.0
//! The restrictions of the hot path, each with a test that it catches something out:
//! no allocation while the loop runs, no system call that is not on the list, no page
//! fault, and one context switch per sample.
#![expect(
    unsafe_code,
    reason = "a counting allocator, and a forbidden system call made on purpose"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_rt::cyclic::{self, LoopEnd, Port, Schedule, Wake};
use tailbound_rt::recorder::Recorder;
use tailbound_sys::clock::{self, CLOCK_MONOTONIC, Nanosleep, NanosleepRelative};
use tailbound_sys::mem::Prefaulted;
use tailbound_sys::sleep::{Epoll, Left, PlainNanosleep, Poll, Select, UntilDue, Usleep};
use tailbound_sys::timer::{PosixTimer, Timerfd};
use tailbound_sys::{limits, seccomp};
use tailbound_testing::skip;

thread_local! {
    static HOT: Cell<bool> = const { Cell::new(false) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Gate;

impl Gate {
    fn pass() {
        if HOT.try_with(Cell::get).unwrap_or(false) {
            ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        }
    }
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Gate {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::pass();
        // SAFETY: the caller's promise, handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        Self::pass();
        // SAFETY: the caller's promise, handed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static GATE: Gate = Gate;

const INTERVAL_NS: i64 = 200_000;
const ACTIVATIONS: u64 = 500;

fn schedule() -> Schedule {
    Schedule {
        first_ns: clock::now_ns(CLOCK_MONOTONIC) + 2_000_000,
        interval_ns: INTERVAL_NS,
        activations: ACTIVATIONS,
    }
}

fn run_hot<P: Port>(port: &mut P, schedule: &Schedule) -> (Prefaulted<Recorder>, limits::Usage) {
    let recorder = Prefaulted::<Recorder>::new().expect("memory");
    run_hot_into(recorder, port, schedule)
}

fn run_hot_into<P: Port>(
    recorder: Prefaulted<Recorder>,
    port: &mut P,
    schedule: &Schedule,
) -> (Prefaulted<Recorder>, limits::Usage) {
    recorder.set_threshold_ns(0);
    recorder.record_raw();
    let stop = AtomicBool::new(false);
    let before = limits::thread_usage();
    HOT.set(true);
    let ended = cyclic::run(port, schedule, &recorder, &stop);
    HOT.set(false);
    let usage = limits::thread_usage().since(&before);
    assert_eq!(ended, LoopEnd::Complete);
    assert_eq!(recorder.wakeups().n + recorder.missed().n, ACTIVATIONS);
    assert!(
        recorder.wakeups().min_ns.expect("woke") >= 0,
        "never early: a stale expiration would be"
    );
    (recorder, usage)
}

fn check_every_means(mut check: impl FnMut(&str, &Recorder, limits::Usage)) {
    let s = schedule();
    let (r, u) = run_hot(&mut Nanosleep(CLOCK_MONOTONIC), &s);
    check("nanosleep", &r, u);
    let s = schedule();
    let (r, u) = run_hot(&mut NanosleepRelative(CLOCK_MONOTONIC), &s);
    check("nanosleep-relative", &r, u);
    let s = schedule();
    let (r, u) =
        run_hot(&mut Timerfd::new(CLOCK_MONOTONIC, s.first_ns, INTERVAL_NS).expect("timerfd"), &s);
    check("timerfd", &r, u);
    let s = schedule();
    let mut port = PosixTimer::new(CLOCK_MONOTONIC, s.first_ns, INTERVAL_NS).expect("timer");
    let (r, u) = run_hot(&mut port, &s);
    check("posix-timer", &r, u);
    let (r, u) = run_hot(&mut Left(CLOCK_MONOTONIC, PlainNanosleep), &schedule());
    check("nanosleep-plain", &r, u);
    let (r, u) = run_hot(&mut UntilDue(CLOCK_MONOTONIC, Usleep), &schedule());
    check("usleep", &r, u);
    let (r, u) = run_hot(&mut Left(CLOCK_MONOTONIC, Poll), &schedule());
    check("poll", &r, u);
    let (r, u) = run_hot(&mut Left(CLOCK_MONOTONIC, Select), &schedule());
    check("select", &r, u);
    match Epoll::new() {
        Ok(epoll) => {
            let (r, u) = run_hot(&mut Left(CLOCK_MONOTONIC, epoll), &schedule());
            check("epoll", &r, u);
        }
        Err(e) => skip("epoll", format!("epoll: {e}")),
    }
    // The interval timer's signal goes to the whole process, whose first thread is the harness's
    // here: its test is tests/cli/measure.rs of the program.
}

#[test]
fn the_loop_allocates_nothing_faults_nothing_and_switches_once_a_sample() {
    check_every_means(|name, recorder, usage| {
        assert_eq!(ALLOCATIONS.get(), 0, "{name}: an allocation in the loop");
        let n = recorder.wakeups().n;
        assert!(
            usage.voluntary_switches <= n,
            "{name}: {} sleeps for {n} samples",
            usage.voluntary_switches
        );
        assert_eq!(usage.major_faults, 0, "{name}");
    });
}

#[test]
fn the_gate_catches_an_allocation() {
    struct Allocates(Nanosleep);
    impl Port for Allocates {
        fn sleep_until(&mut self, due_ns: i64) -> Wake {
            std::hint::black_box(Box::new(due_ns));
            self.0.sleep_until(due_ns)
        }
        fn now_ns(&mut self) -> i64 {
            self.0.now_ns()
        }
    }
    run_hot(&mut Allocates(Nanosleep(CLOCK_MONOTONIC)), &schedule());
    let caught = ALLOCATIONS.get();
    assert!(caught > 0, "the gate is open");
}

/// Runs `inner` of this very test binary in a process of its own.
fn in_a_child(inner: &str) -> std::process::ExitStatus {
    let exe = std::env::current_exe().expect("own path");
    #[expect(clippy::disallowed_methods, reason = "waited for right here")]
    std::process::Command::new(exe)
        .args(["--exact", inner, "--ignored", "--nocapture"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .expect("child")
}

#[test]
#[ignore = "run by `the_list_of_system_calls_holds` in a process of its own"]
fn inner_confined_loop() {
    confined(|s| Timerfd::new(CLOCK_MONOTONIC, s.first_ns, INTERVAL_NS).expect("timerfd"));
    confined(|s| PosixTimer::new(CLOCK_MONOTONIC, s.first_ns, INTERVAL_NS).expect("timer"));
    confined(|_| NanosleepRelative(CLOCK_MONOTONIC));
    confined(|_| Nanosleep(CLOCK_MONOTONIC));
    confined(|_| Left(CLOCK_MONOTONIC, PlainNanosleep));
    confined(|_| UntilDue(CLOCK_MONOTONIC, Usleep));
    confined(|_| Left(CLOCK_MONOTONIC, Poll));
    confined(|_| Left(CLOCK_MONOTONIC, Select));
    if Epoll::new().is_ok() {
        confined(|_| Left(CLOCK_MONOTONIC, Epoll::new().expect("tried above")));
    }
}

/// Runs the loop in a confined thread; all memory is there before the door closes.
fn confined<P: Port>(port: impl FnOnce(&Schedule) -> P + Send + 'static) {
    std::thread::spawn(move || {
        let recorder = Prefaulted::<Recorder>::new().expect("memory");
        let schedule = schedule();
        let mut port = port(&schedule);
        seccomp::confine().expect("seccomp");
        std::mem::drop(run_hot_into(recorder, &mut port, &schedule));
    })
    .join()
    .expect("ran");
}

#[test]
#[ignore = "run by `the_list_of_system_calls_holds` in a process of its own"]
fn inner_forbidden_call() {
    struct Calls(Nanosleep);
    impl Port for Calls {
        fn sleep_until(&mut self, due_ns: i64) -> Wake {
            // SAFETY: no arguments.
            unsafe { libc::getppid() };
            self.0.sleep_until(due_ns)
        }
        fn now_ns(&mut self) -> i64 {
            self.0.now_ns()
        }
    }
    confined(|_| Calls(Nanosleep(CLOCK_MONOTONIC)));
}

#[test]
fn the_list_of_system_calls_holds() {
    assert!(
        in_a_child("inner_confined_loop").success(),
        "the loop needs a call that is not on the list"
    );
    let forbidden = in_a_child("inner_forbidden_call");
    assert_eq!(
        forbidden.signal(),
        Some(libc::SIGSYS),
        "{forbidden:?}: a call that is not on the list went through"
    );
}

#[test]
fn the_guard_stops_a_real_time_loop_that_never_sleeps() {
    if !in_a_child("inner_runaway").success() {
        skip("rt", "the guard did not stop the loop: no permission for real-time priority");
    }
}

#[test]
#[ignore = "run by `the_guard_stops_a_real_time_loop_that_never_sleeps` in a process of its own"]
fn inner_runaway() {
    use tailbound_sys::sched::{Attributes, SCHED_FIFO};
    use tailbound_sys::thread::{ThreadSpec, spawn};
    limits::guard_realtime(0).expect("limit");
    let spec = ThreadSpec {
        attributes: Attributes { policy: SCHED_FIFO, priority: 1, ..Attributes::default() },
        cpus: Vec::new(),
        group: None,
        stack_bytes: 256 << 10,
    };
    spawn(spec, || {
        // At most a second, should the guard not fire: then the assertion says so.
        let begun = clock::now_ns(CLOCK_MONOTONIC);
        while !limits::STOP.load(Ordering::Relaxed)
            && clock::now_ns(CLOCK_MONOTONIC) - begun < 1_000_000_000
        {
            std::hint::spin_loop();
        }
    })
    .expect("allowed")
    .join()
    .expect("ran");
    assert!(limits::RUNAWAY.load(Ordering::Relaxed));
}

#[test]
fn answers_to_pulses_allocate_nothing() {
    use tailbound_rt::answer::datagram::PulsePacket;
    use tailbound_rt::answer::sequence::Sequences;
    use tailbound_rt::answer::{self, Logs};
    use tailbound_sys::answer::By;
    use tailbound_sys::answer::udp::Udp;

    for by in [By::Poll, By::Read, By::IoUring, By::Busy] {
        let at = ([127, 0, 0, 1], 0).into();
        let mut line = match Udp::open(at, None, by, CLOCK_MONOTONIC) {
            Err(e) if by == By::IoUring => {
                tailbound_testing::skip("io_uring", e);
                continue;
            }
            line => line.expect("a port"),
        };
        line.attach().expect("attached");
        let sender = std::net::UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
        sender.connect(line.at().expect("its port")).expect("loopback");
        // All of them wait in its queue: what is late then does not matter.
        for number in 0..50 {
            let pulse = PulsePacket { sender: 1, number, token: 0 };
            sender.send(&pulse.bytes()).expect("sent");
            sender.send(b"no pulse").expect("sent");
        }
        let [whole, start, work] =
            std::array::from_fn(|_| Prefaulted::<Recorder>::new().expect("memory"));
        let logs = Logs { whole: &whole, start: &start, work: &work };
        let stop = AtomicBool::new(false);
        let (mut sequences, mut kept) = (Sequences::default(), Box::default());
        let before = ALLOCATIONS.get();
        HOT.set(true);
        let (ended, tally) =
            answer::run(&mut line, &schedule(), &logs, &mut sequences, &mut kept, &mut None, &stop);
        HOT.set(false);
        assert_eq!(ended, LoopEnd::Complete);
        assert_eq!((tally.answered, tally.foreign, tally.lost()), (50, 50, 0), "{by:?}");
        assert_eq!(ALLOCATIONS.get(), before, "{by:?}");
    }
}

#[test]
fn pulses_to_another_machine_allocate_nothing() {
    use tailbound_rt::answer::sender::{self, SAMPLES, SenderLogs, SenderPlan};
    use tailbound_rt::answer::slots::{PulseSlot, SLOTS, Slots};
    use tailbound_rt::ring::Ring;
    use tailbound_rt::spread::Spread;
    use tailbound_sys::answer::sender::SenderUdp;

    let mut line = SenderUdp::open_to_itself(CLOCK_MONOTONIC).expect("loopback");
    let [answered, at_least, lateness] =
        std::array::from_fn(|_| Prefaulted::<Recorder>::new().expect("memory"));
    let samples = Prefaulted::<Ring<3, SAMPLES>>::new().expect("memory");
    let logs = SenderLogs {
        answered: &answered,
        at_least: &at_least,
        lateness: &lateness,
        samples: &samples,
    };
    let mut slots = Slots::over(vec![PulseSlot::default(); SLOTS]);
    let plan = SenderPlan {
        schedule: schedule(),
        spread: Spread::default(),
        sender: 1,
        first_number: 0,
        patience_ns: 20_000_000_000,
    };
    let stop = AtomicBool::new(false);
    let before = ALLOCATIONS.get();
    HOT.set(true);
    let (ended, tally) = sender::run(&mut line, &plan, &logs, &mut slots, &stop);
    HOT.set(false);
    assert_eq!(ended, LoopEnd::Complete);
    // What a thread that waits for its CPU is late for is left out.
    assert_eq!(tally.sent + tally.held + tally.refused, schedule().activations);
    assert_eq!(tally.answered + tally.unanswered, tally.sent);
    assert!(tally.answered > 0, "{tally:?}");
    assert_eq!(ALLOCATIONS.get(), before);
}
