// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random plans, other writers and kills: what tailbound changed and nobody else touched is as it
//! was; what somebody else changed is as they left it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use tailbound_tune::journal::{self, Places};
use tailbound_tune::{Mode, Step, apply, undo};

use crate::mortal::Mortal;
use crate::played::{Played, plan, step};

/// Ends as a kill would: nothing behind it is done.
fn death() {
    std::panic::resume_unwind(Box::new("killed"));
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// What happens to a machine with two plans.
#[derive(Clone, Debug)]
struct Story {
    first: Vec<(usize, u8)>,
    second: Vec<(usize, u8)>,
    refuses: Option<usize>,
    dies_at: usize,
    undo_dies_at: usize,
    others: Vec<(usize, u8)>,
}

fn story() -> impl Strategy<Value = Story> {
    let steps = || prop::collection::vec((0usize..5, 0u8..4), 0..6);
    (
        steps(),
        steps(),
        prop::option::of(0usize..5),
        0usize..60,
        0usize..30,
        prop::collection::vec((0usize..5, 9u8..11), 0..3),
    )
        .prop_map(|(first, second, refuses, dies_at, undo_dies_at, others)| Story {
            first,
            second,
            refuses,
            dies_at,
            undo_dies_at,
            others,
        })
}

fn steps(machine: &Played, of: &[(usize, u8)]) -> Vec<Step> {
    of.iter().map(|(i, v)| step(NAMES[*i], machine.get(NAMES[*i]), &v.to_string())).collect()
}

/// Does `what` to the machine, killed at its call `dies_at` (0: never).
fn mortal(machine: &mut Played, dies_at: usize, what: impl FnOnce(&mut Mortal<'_>)) {
    let mut mortal = Mortal { machine, calls: std::cell::Cell::new(0), dies_at, death };
    let _ = catch_unwind(AssertUnwindSafe(|| what(&mut mortal)));
}

fn play(story: &Story) {
    // In memory where that is possible: every line of a journal waits for the disk.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let places = Places::below(dir.path());
    let mut machine = Played::with(&NAMES.map(|n| (n, "0")));
    if let Some(i) = story.refuses {
        machine.refuses.insert(NAMES[i].to_owned());
    }
    let before = machine.states.clone();
    for (which, of) in [&story.first, &story.second].into_iter().enumerate() {
        let plan = plan(steps(&machine, of));
        let dies_at = if which == 1 { story.dies_at } else { 0 };
        mortal(&mut machine, dies_at, |system| {
            let _ = apply(system, &places, &plan, "t", &mut |_, _| ());
        });
    }
    machine.refuses.clear();
    let mut foreign = BTreeMap::new();
    for (i, v) in &story.others {
        machine.set(NAMES[*i], &v.to_string());
        foreign.insert(NAMES[*i].to_owned(), Some(v.to_string()));
    }
    // The newest first, as a person undoes; killed once, then again until it is through.
    for round in 0..2 {
        for transaction in journal::all(&places).expect("readable").iter().rev() {
            if transaction.has_ended() {
                continue;
            }
            let dies_at = if round == 0 { story.undo_dies_at } else { 0 };
            mortal(&mut machine, dies_at, |system| {
                let _ = undo(system, &places, transaction, Mode::default(), "t");
            });
            // Undoing an older one before the newer is through is what nobody may do.
            let ended = |n| {
                journal::all(&places)
                    .expect("readable")
                    .iter()
                    .any(|t| t.number == n && t.has_ended())
            };
            if round == 0 && !ended(transaction.number) {
                break;
            }
        }
    }
    for name in NAMES {
        let want = foreign.get(name).unwrap_or(&before[name]);
        assert_eq!(&machine.states[name], want, "{name} {story:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_of_ours_stays_and_nothing_of_others_goes(story in story()) {
        play(&story);
    }
}
