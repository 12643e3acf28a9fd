// SPDX-License-Identifier: MIT OR Apache-2.0
//! One transaction after another, as a person sees them.

use std::fs;

use tailbound_tune::journal::{self, Places, Undone};
use tailbound_tune::{ApplyError, Mode, accept, apply, find, undo};

use crate::played::{Played, plan, step};

struct Room {
    _dir: tempfile::TempDir,
    places: Places,
}

fn room() -> Room {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let places = Places::below(dir.path());
    Room { _dir: dir, places }
}

#[test]
fn applied_and_undone_is_as_before() {
    let room = room();
    let mut machine = Played::with(&[("a", "1"), ("b", "x"), ("c", "3")]);
    let before = machine.states.clone();
    let plan = plan(vec![step("a", "1", "2"), step("b", "x", "x"), step("c", "3", "4")]);
    let mut seen = Vec::new();
    let applied = apply(&mut machine, &room.places, &plan, "now", &mut |i, _| seen.push(i))
        .expect("nothing refuses");
    assert_eq!((applied.made, applied.already, seen.len()), (2, 1, 3));
    assert_eq!((machine.get("a"), machine.get("c")), ("2", "4"));

    let transaction = find(&room.places, applied.number).expect("readable").expect("there");
    assert!(transaction.is_applied() && !transaction.has_ended());
    let report = undo(&mut machine, &room.places, &transaction, Mode::default(), "later")
        .expect("the journal can be written");
    assert_eq!(report.left(), 0);
    let order: Vec<&str> = report.outcomes.iter().map(|(s, _)| s.setting.as_str()).collect();
    assert_eq!(order, ["c", "a"], "in reverse");
    assert_eq!(machine.states, before);
    let kept = find(&room.places, applied.number).expect("readable").expect("in the history");
    assert!(kept.has_ended() && kept.path.starts_with(&room.places.lasting));
    assert_eq!(fs::read_dir(&room.places.volatile).expect("there").count(), 0);
}

#[test]
fn a_refused_step_undoes_those_before_it() {
    for (refused, stubborn) in [(true, false), (false, true)] {
        let room = room();
        let mut machine = Played::with(&[("a", "1"), ("b", "1"), ("c", "1")]);
        if refused {
            machine.refuses.insert("c".to_owned());
        }
        if stubborn {
            machine.stubborn.insert("b".to_owned(), "1".to_owned());
        }
        let before = machine.states.clone();
        let plan = plan(vec![step("a", "1", "2"), step("b", "1", "2"), step("c", "1", "2")]);
        let failed = apply(&mut machine, &room.places, &plan, "now", &mut |_, _| ());
        let Err(e @ ApplyError::Step { .. }) = failed else { panic!("{failed:?}") };
        assert!(e.to_string().contains("undone"), "{e}");
        assert_eq!(machine.states, before);
        assert!(journal::all(&room.places).expect("readable").iter().all(|t| t.has_ended()));
    }
}

#[test]
fn what_may_fail_is_passed_over() {
    let room = room();
    let mut machine = Played::with(&[("a", "1"), ("b", "1")]);
    machine.gone.insert("a".to_owned());
    let mut first = step("a", "1", "2");
    first.may_fail = true;
    let plan = plan(vec![first, step("b", "1", "2")]);
    let applied =
        apply(&mut machine, &room.places, &plan, "now", &mut |_, _| ()).expect("may fail");
    assert_eq!((applied.made, applied.skipped.len()), (1, 1));
}

#[test]
fn what_another_program_changed_is_left_and_said() {
    let room = room();
    let mut machine = Played::with(&[("a", "1"), ("b", "1")]);
    let plan = plan(vec![step("a", "1", "2"), step("b", "1", "2")]);
    let number = apply(&mut machine, &room.places, &plan, "now", &mut |_, _| ())
        .expect("nothing refuses")
        .number;
    machine.set("a", "7");
    let of = |places: &Places| find(places, number).expect("readable").expect("there");
    let report = undo(&mut machine, &room.places, &of(&room.places), Mode::default(), "t")
        .expect("writable");
    assert_eq!((machine.get("a"), machine.get("b")), ("7", "1"));
    assert!(
        matches!(&report.outcomes[1].1, Undone::Foreign { now, .. } if now.as_deref() == Some("7"))
    );
    assert!(!of(&room.places).has_ended(), "it can still be forced");
    let forced = Mode { force: true, ..Mode::default() };
    undo(&mut machine, &room.places, &of(&room.places), forced, "t").expect("writable");
    assert_eq!(machine.get("a"), "1");
    assert!(of(&room.places).has_ended());
}

#[test]
fn what_was_left_can_be_accepted() {
    let room = room();
    let mut machine = Played::with(&[("a", "1")]);
    let number =
        apply(&mut machine, &room.places, &plan(vec![step("a", "1", "2")]), "t", &mut |_, _| ())
            .expect("nothing refuses")
            .number;
    let transaction = find(&room.places, number).expect("readable").expect("there");
    accept(&room.places, &transaction, "t").expect("writable");
    assert_eq!(machine.get("a"), "2");
    assert!(find(&room.places, number).expect("readable").expect("there").has_ended());
}

/// The fault of a tool that remembers one state for all threads: each gets its own back.
#[test]
fn each_thread_gets_back_what_it_had() {
    let room = room();
    let mut machine = Played::with(&[("t1", "0"), ("t2", "1"), ("t3", "0-1")]);
    let before = machine.states.clone();
    let steps = ["t1", "t2", "t3"].map(|t| step(t, machine.get(t), "0")).to_vec();
    let number = apply(&mut machine, &room.places, &plan(steps), "t", &mut |_, _| ())
        .expect("nothing refuses")
        .number;
    let transaction = find(&room.places, number).expect("readable").expect("there");
    undo(&mut machine, &room.places, &transaction, Mode::default(), "t").expect("writable");
    assert_eq!(machine.states, before);
}

#[test]
fn after_a_reboot_what_ended_with_it_is_gone() {
    let room = room();
    let mut machine = Played::with(&[("a", "1")]);
    let number =
        apply(&mut machine, &room.places, &plan(vec![step("a", "1", "2")]), "t", &mut |_, _| ())
            .expect("nothing refuses")
            .number;
    machine.set("a", "2");
    let transaction = find(&room.places, number).expect("readable").expect("there");
    let mode = Mode { rebooted: true, ..Mode::default() };
    let report = undo(&mut machine, &room.places, &transaction, mode, "t").expect("writable");
    assert!(matches!(report.outcomes[0].1, Undone::Gone(_)));
    assert_eq!(machine.get("a"), "2", "what the new boot has is not touched");
}

#[test]
fn a_line_cut_off_by_a_kill_counts_as_not_written() {
    let room = room();
    let mut machine = Played::with(&[("a", "1"), ("b", "1")]);
    let plan = plan(vec![step("a", "1", "2"), step("b", "1", "2")]);
    let number = apply(&mut machine, &room.places, &plan, "t", &mut |_, _| ())
        .expect("nothing refuses")
        .number;
    let path = find(&room.places, number).expect("readable").expect("there").path;
    let whole = fs::read(&path).expect("readable");
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).expect("writable");
        let mut after = machine.clone();
        let Some(transaction) = find(&room.places, number).expect("readable") else { continue };
        if transaction.plan().is_none() {
            assert!(transaction.has_ended());
            continue;
        }
        let made = transaction.made();
        undo(&mut after, &room.places, &transaction, Mode::default(), "t").expect("writable");
        for m in made {
            assert_eq!(after.get(["a", "b"][m.step]), "1", "cut at {cut}");
        }
        let _ = fs::remove_dir_all(&room.places.lasting);
    }
}
