// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latch, in every execution that the memory model permits.
//!
//! The model is that of C++ and Rust for relaxed, release and acquire accesses and fences: each
//! word has the history of its values, each value the view that its writer released with it, and
//! a reader may meet any value that its own view does not rule out. The writer reads nothing that
//! readers write, so it is run to its end first; what a reader may meet at any moment of the
//! writing is then a choice at each of its loads, and all choices are made in turn.
//! Source: Kang, Hur, Lahav, Vafeiadis, Dreyer, "A promising semantics for relaxed-memory
//! concurrency", 2017 (its views, without promises).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use tailbound_rt::latch::{Latch, Word};

const WORDS: usize = 2;
/// The sequence number and two copies.
const PLACES: usize = 1 + 2 * WORDS;
const PUBLISHED: u64 = 2;

/// Of each word, the oldest value that may still be met.
type View = [usize; PLACES];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// The store of an odd or an even number is relaxed.
    Store(u64),
    /// The fence after it is left out.
    Fence(u64),
    /// The reader's first load is relaxed.
    Load,
    /// The reader's fence is left out.
    ReadFence,
}

#[derive(Default)]
struct Thread {
    view: View,
    /// What an acquire fence adds to the view.
    met: View,
    /// What a release fence has made part of every later store.
    fenced: View,
}

#[derive(Default)]
struct Memory {
    history: [Vec<(u64, View)>; PLACES],
    thread: Thread,
    flaw: Option<Flaw>,
    /// Which value each load took, and out of how many.
    choices: Vec<(usize, usize)>,
    loads: usize,
    /// Every load takes the newest: the reader runs where the writer was stopped.
    newest: bool,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
}

fn with<R>(work: impl FnOnce(&mut Memory) -> R) -> R {
    MEMORY.with_borrow_mut(work)
}

fn join(a: &mut View, b: &View) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = (*a).max(*b));
}

/// A word by its number.
struct Modelled(usize);

impl Word for Modelled {
    fn load(&self, order: Ordering) -> u64 {
        with(|m| {
            let order = if m.flaw == Some(Flaw::Load) { Relaxed } else { order };
            let oldest = m.thread.view[self.0];
            let options = m.history[self.0].len() - oldest;
            let at = if m.newest {
                options - 1
            } else {
                if m.loads == m.choices.len() {
                    m.choices.push((0, options));
                }
                m.choices[m.loads].0
            };
            m.loads += 1;
            let (value, view) = m.history[self.0][oldest + at];
            m.thread.view[self.0] = oldest + at;
            join(&mut m.thread.met, &view);
            if order == Acquire {
                join(&mut m.thread.view, &view);
            }
            value
        })
    }

    fn store(&self, value: u64, order: Ordering) {
        with(|m| {
            let flawed = self.0 == 0 && m.flaw == Some(Flaw::Store(value % 2));
            let at = m.history[self.0].len();
            m.thread.view[self.0] = at;
            let mut view =
                if order == Release && !flawed { m.thread.view } else { m.thread.fenced };
            view[self.0] = at;
            m.history[self.0].push((value, view));
        });
    }

    fn fence(order: Ordering) {
        with(|m| {
            let sequence = m.history[0].last().map_or(0, |(value, _)| *value);
            if order == Release && m.flaw != Some(Flaw::Fence(sequence % 2)) {
                m.thread.fenced = m.thread.view;
            }
            if order == Acquire && m.flaw != Some(Flaw::ReadFence) {
                let met = m.thread.met;
                join(&mut m.thread.view, &met);
            }
        });
    }
}

fn latch() -> Latch<Modelled, WORDS> {
    Latch::of(Modelled(0), [[Modelled(1), Modelled(2)], [Modelled(3), Modelled(4)]])
}

/// The writer, from the first store to the last.
fn written(flaw: Option<Flaw>) {
    with(|m| *m = Memory { flaw, newest: true, ..Memory::default() });
    with(|m| m.history.iter_mut().for_each(|h| h.push((0, [0; PLACES]))));
    for n in 1..=PUBLISHED {
        latch().publish(&[n; WORDS]);
    }
}

/// All pairs of answers that a reader who asks twice can have.
fn answers(flaw: Option<Flaw>) -> BTreeSet<[[u64; WORDS]; 2]> {
    written(flaw);
    let mut all = BTreeSet::new();
    loop {
        with(|m| {
            (m.thread, m.loads, m.newest) = (Thread::default(), 0, false);
        });
        all.insert([latch().read(), latch().read()]);
        // The next of all choices: the last one that has another option takes it.
        let done = with(|m| {
            while m.choices.last().is_some_and(|(at, of)| at + 1 == *of) {
                m.choices.pop();
            }
            m.choices.last_mut().map(|(at, _)| *at += 1).is_none()
        });
        if done {
            return all;
        }
    }
}

fn whole_and_in_order(&[first, second]: &[[u64; WORDS]; 2]) -> bool {
    let whole = |words: [u64; WORDS]| words.iter().all(|w| *w == words[0]);
    whole(first) && whole(second) && first[0] <= second[0]
}

#[test]
fn a_reader_sees_what_was_published_whole_and_never_goes_back() {
    let all = answers(None);
    assert!(all.iter().all(whole_and_in_order), "{all:?}");
    let possible = (0..=PUBLISHED).flat_map(|a| (a..=PUBLISHED).map(move |b| [[a; 2], [b; 2]]));
    assert_eq!(all, possible.collect(), "each state can be met");
}

#[test]
fn each_ordering_is_needed() {
    use Flaw::{Fence, Load, ReadFence, Store};
    for flaw in [Store(1), Store(0), Fence(1), Fence(0), Load, ReadFence] {
        let all = answers(Some(flaw));
        assert!(!all.iter().all(whole_and_in_order), "{flaw:?} changes nothing");
    }
}

#[test]
fn a_reader_who_preempts_the_writer_has_its_answer_at_once() {
    written(None);
    let whole = with(|m| m.history.clone());
    // The writer's stores in their order: the number, the first copy, the number, the second.
    let order = [&[0][..], &[1, 2], &[0], &[3, 4]].concat();
    let stores = order.repeat(usize::try_from(PUBLISHED).unwrap());
    let mut last = 0;
    for done in 0..=stores.len() {
        with(|m| {
            *m = Memory { newest: true, history: whole.clone(), ..Memory::default() };
            for (place, history) in m.history.iter_mut().enumerate() {
                history.truncate(1 + stores[..done].iter().filter(|p| **p == place).count());
            }
        });
        let words = latch().read();
        assert_eq!(with(|m| m.loads), 2 + WORDS, "one attempt, after {done} stores");
        assert!(words[0] == words[1] && words[0] >= last, "{words:?} after {done} stores");
        last = words[0];
    }
    assert_eq!(last, PUBLISHED);
}

/// The same on real threads; Miri and `ThreadSanitizer` run it too.
#[test]
fn threads_agree_with_the_model() {
    let latch = Latch::<AtomicU64, 22>::new();
    let (over, rounds) = (AtomicBool::new(false), if cfg!(miri) { 60 } else { 20_000 });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=rounds {
                latch.publish(&[n; 22]);
            }
            over.store(true, Release);
        });
        let mut last = 0;
        loop {
            let ended = over.load(Acquire);
            let words = latch.read();
            assert!(words.iter().all(|w| *w == words[0]), "{words:?}");
            assert!(words[0] >= last);
            last = words[0];
            if ended {
                break;
            }
        }
        assert_eq!(last, rounds);
    });
}
