// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs in this kernel: what they count of a thread of this test.
#![expect(clippy::disallowed_methods, reason = "threads and pauses of tests")]

use std::time::Duration;

use tailbound_host::Root;
use tailbound_trace::symbols::Symbols;

use super::*;

fn begun() -> Option<Tier> {
    let root = Root::real();
    if let Err(e) = crate::own_trace::first_namespace(&root) {
        tailbound_testing::skip("bpf", e);
        return None;
    }
    let symbols = Arc::new(Symbols::parse(&crate::blame::setup::kallsyms(&root)));
    match Tier::begin(&root, symbols) {
        Ok(tier) => Some(tier),
        Err(e) => {
            tailbound_testing::skip("bpf", e);
            None
        }
    }
}

#[test]
fn waits_of_a_sleeping_thread_are_counted_and_told_above_the_threshold() {
    let Some(mut tier) = begun() else { return };
    assert_eq!(tier.take_notes(), Vec::<String>::new());
    let tid = std::fs::read_link("/proc/thread-self").unwrap();
    let tid: i32 = tid.file_name().unwrap().to_str().unwrap().parse().unwrap();
    tier.watch(tid);
    // Every wait is over this threshold.
    tier.set_threshold(0).unwrap();
    (0..20).for_each(|_| std::thread::sleep(Duration::from_micros(300)));
    tier.poll(0);
    let waited = tier.waited().remove(&tid).unwrap();
    assert!(waited.n >= 20 && waited.max_ns > 0 && waited.mean_ns <= waited.max_ns, "{waited:?}");
    assert!(waited.p999_ns <= waited.max_ns, "{waited:?}");
    assert_eq!(tier.lost(), 0);
    let kinds = |k| tier.kept.iter().filter(|t| t.kind == k).count();
    assert!(kinds(tailbound_trace::blame::BlameNoteKind::Switch) >= 20);
    let stack = |t: &BlameNote| t.frames.iter().any(|f| f.contains("schedule"));
    assert!(tier.kept.iter().any(stack), "{:?}", tier.kept.first());
}

#[test]
fn a_record_that_is_not_wanted_is_not_made() {
    let Some(mut tier) = begun() else { return };
    std::thread::sleep(Duration::from_millis(2));
    tier.poll(0);
    assert!(tier.kept.is_empty() && tier.waited().is_empty());
    tier.limit(400_000);
    assert_eq!(tier.threshold_ns(), 100_000);
    tier.limit(1);
    assert_eq!(tier.threshold_ns(), LEAST_NS);
}

#[test]
fn classes_are_read_as_they_are_counted() {
    let mut value = vec![0u8; watched::BYTES];
    let mut put = |at: usize, n: u64| {
        value.get_mut(at..at + 8).unwrap().copy_from_slice(&n.to_ne_bytes());
    };
    put(8, 2000);
    put(16, 2_000_000);
    put(24, 90_000);
    // 1000 = 0b11_1110_1000: shifted by 7 it is 7, so class 4 * 7 + 3, up to 1023.
    put(usize::try_from(watched::CLASS).unwrap() + 31 * 8, 1999);
    let waited = waited(&value).unwrap();
    assert_eq!((waited.n, waited.mean_ns, waited.max_ns), (2000, 1000, 90_000));
    assert_eq!(waited.p999_ns, 1023);
}

fn own_tid() -> i32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

#[test]
fn the_owner_of_a_lock_with_inheritance_is_told() {
    use std::sync::atomic::{AtomicU32, Ordering};
    use tailbound_sys::futex::{Scope, WAITERS, lock_pi, unlock_pi};

    let Some(mut tier) = begun() else { return };
    tier.set_threshold(0).unwrap();
    let word = AtomicU32::new(0);
    let owner = own_tid();
    lock_pi(&word, owner, Scope::Private);
    let (send, tid_of_waiter) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let word = &word;
        scope.spawn(move || {
            let tid = own_tid();
            send.send(tid).unwrap();
            wait.recv().unwrap();
            lock_pi(word, tid, Scope::Private);
            unlock_pi(word, tid, Scope::Private).unwrap();
        });
        let tid = tid_of_waiter.recv().unwrap();
        tier.watch(tid);
        go.send(()).unwrap();
        // It waits for the lock once the kernel says so in its word, and sleeps once /proc says so.
        let stat = format!("/proc/self/task/{tid}/stat");
        let sleeps = || std::fs::read_to_string(&stat).is_ok_and(|s| s.contains(") S "));
        while word.load(Ordering::Acquire) & WAITERS == 0 || !sleeps() {
            std::thread::sleep(Duration::from_millis(1));
        }
        unlock_pi(word, owner, Scope::Private).unwrap();
    });
    tier.poll(0);
    let owners: Vec<&BlameNote> = tier.locks().iter().filter(|l| !l.owners.is_empty()).collect();
    let suffix = format!("-{owner}");
    let told = owners.iter().any(|l| l.owners.first().unwrap().ends_with(&suffix));
    assert!(told, "{owners:?}");
}
