// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times beyond January 2038, where seconds need more than 31 bits. The stage `boards` runs this on 32-bit ARM too.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tailbound_rt::{Port, Wake};
use tailbound_sys::clock::{CLOCK_MONOTONIC, CLOCK_REALTIME, Nanosleep, now_ns};
use tailbound_sys::futex::{self, Scope, Waited};
use tailbound_sys::sched::gettid;
use tailbound_sys::signal::nudge;
use tailbound_sys::timer::{PosixTimer, Timerfd};

const SECOND_NS: i64 = 1_000_000_000;
/// 1 January 2040.
const IN_2040_S: u64 = 2_208_988_800;
const IN_2040_NS: i64 = 2_208_988_800 * SECOND_NS;
/// An hour; a sleep that ends before its time does so at once.
const INTERVAL_NS: i64 = 3600 * SECOND_NS;

/// What ends a sleep until 2040, when this thread interrupts it after a tenth of a second.
fn interrupted<P: Port>(port: impl FnOnce() -> P + Send + 'static) -> Wake {
    let (tid, is_over) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicBool::new(false)));
    let sleeper = {
        let (tid, is_over) = (Arc::clone(&tid), Arc::clone(&is_over));
        thread::spawn(move || {
            let mut port = port();
            tid.store(gettid(), Ordering::Release);
            let wake = port.sleep_until(IN_2040_NS);
            is_over.store(true, Ordering::Release);
            wake
        })
    };
    // A nudge before it sleeps would be lost.
    while !is_over.load(Ordering::Acquire) {
        thread::park_timeout(Duration::from_millis(100));
        match tid.load(Ordering::Acquire) {
            0 => {}
            tid => nudge(tid),
        }
    }
    sleeper.join().expect("it sleeps")
}

#[test]
fn sleeps_and_timers_until_2040_do_not_end_at_once() {
    assert_eq!(interrupted(|| Nanosleep(CLOCK_REALTIME)), Wake::Interrupted);
    let timerfd = || Timerfd::new(CLOCK_REALTIME, IN_2040_NS, INTERVAL_NS).expect("a timerfd");
    assert_eq!(interrupted(timerfd), Wake::Interrupted);
    let posix = || PosixTimer::new(CLOCK_REALTIME, IN_2040_NS, INTERVAL_NS).expect("a timer");
    assert_eq!(interrupted(posix), Wake::Interrupted);
}

#[test]
fn a_wait_of_seventy_years_lasts_until_it_is_woken() {
    let word = Arc::new(AtomicU32::new(1));
    let other = Arc::clone(&word);
    let until_ns = now_ns(CLOCK_MONOTONIC).saturating_add(70 * 365 * 24 * INTERVAL_NS);
    let waiter = thread::spawn(move || futex::wait(&other, 1, Some(until_ns), Scope::Private));
    while !waiter.is_finished() && futex::wake(&word, 1, Scope::Private) == 0 {
        thread::yield_now();
    }
    assert_eq!(waiter.join().expect("it waits"), Waited::Woken);
}

#[test]
fn the_clock_here_is_that_of_the_standard_library() {
    let before = now_ns(CLOCK_REALTIME);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    let ns = i64::try_from(since.as_nanos()).expect("a clock before 2262");
    let after = now_ns(CLOCK_REALTIME);
    assert!((before..=after).contains(&ns), "{before} {ns} {after}");
}

#[test]
fn a_file_of_2040_is_one_of_2040() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    let time = UNIX_EPOCH + Duration::from_secs(IN_2040_S);
    File::create(&path).and_then(|f| f.set_modified(time)).expect("a time of a file");
    let modified = path.metadata().and_then(|m| m.modified()).expect("a time of a file");
    assert_eq!(modified, time);
}
