// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work: handed out once, taken once, never silently again.
//!
//! Context: tests. On both databases.

use tailbound_store::{By, Finished, Step, Store, Work, WorkRun, WorkState};

use crate::{NOW, on_both};

const BY: By<'static> = By { who: "operator desk", at: NOW };

fn work(id: &str, system: &str) -> Work {
    Work {
        id: id.to_owned(),
        system: system.to_owned(),
        name: "short".to_owned(),
        campaign: "name = \"short\"\n".to_owned(),
        parts: vec!["one".to_owned()],
        scale: 0.5,
        cpus: None,
        handed_out_by: BY.who.to_owned(),
        created: NOW.to_owned(),
        state: WorkState::Waiting,
        reason: None,
        lease: None,
        began: None,
        ended: None,
        progress: None,
        runs: Vec::new(),
        batch: None,
    }
}

/// A store with `a` and `b` for the press, and what it says of each.
fn filled(place: &tailbound_store::StoreLocation) -> Store {
    let mut store = Store::open_or_make(place, NOW).unwrap_or_else(|e| panic!("{e}"));
    for id in ["b", "a"] {
        assert!(store.hand_out(&work(id, "press"), BY).unwrap_or_else(|e| panic!("{e}")));
    }
    store
}

fn state(store: &mut Store, id: &str) -> WorkState {
    let work = store.work(id).unwrap_or_else(|e| panic!("{e}"));
    work.unwrap_or_else(|| panic!("{id} is not there")).state
}

fn ok<T>(it: Result<T, tailbound_store::StoreError>) -> T {
    it.unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn work_is_taken_in_its_order_by_one_and_ended_by_that_one() {
    on_both(|place| {
        let mut store = filled(place);
        assert!(!ok(store.hand_out(&work("a", "press"), BY)), "the same twice is one");
        assert_eq!(ok(store.next_work("lathe")), None);
        let next = ok(store.next_work("press")).unwrap_or_else(|| panic!("nothing waits"));
        assert_eq!(next, work("b", "press"));
        assert_eq!(ok(store.take_work("b", "L1", 100, BY)), Step::Done);
        assert_eq!(ok(store.take_work("b", "L1", 100, BY)), Step::Done, "its answer was lost");
        assert_eq!(ok(store.take_work("b", "L2", 100, BY)), Step::Not(WorkState::Running));
        // One at a time.
        assert_eq!(ok(store.next_work("press")), None);
        assert_eq!(ok(store.take_work("a", "L2", 100, BY)), Step::Not(WorkState::Waiting));
        assert_eq!(ok(store.renew_work("b", "L2", 200, None)), Step::Not(WorkState::Running));
        assert_eq!(ok(store.renew_work("b", "L1", 200, Some("half"))), Step::Done);
        assert_eq!(ok(store.renew_work("b", "L1", 300, None)), Step::Done);
        let runs = [WorkRun { part: "one".to_owned(), run: "ff".to_owned() }];
        let how = Finished { complete: true, reason: None, runs: &runs };
        assert_eq!(ok(store.end_work("b", "L2", &how, BY)), Step::Not(WorkState::Running));
        assert_eq!(ok(store.end_work("b", "L1", &how, BY)), Step::Done);
        assert_eq!(ok(store.end_work("b", "L1", &how, BY)), Step::Done, "its answer was lost");
        let done = ok(store.work("b")).unwrap_or_else(|| panic!("it is gone"));
        assert_eq!((done.state, done.progress.as_deref()), (WorkState::Done, Some("half")));
        assert_eq!(done.runs, runs);
        assert_eq!(ok(store.next_work("press")).map(|w| w.id).as_deref(), Some("a"));
        assert_eq!(ok(store.take_work("z", "L", 1, BY)), Step::Missing);
    });
}

#[test]
fn work_of_a_silent_agent_is_lost_and_never_done_again() {
    on_both(|place| {
        let mut store = filled(place);
        ok(store.take_work("b", "L1", 100, BY));
        assert_eq!(ok(store.lose_work(100, BY)), 0);
        // A server that begins gives each its time anew.
        ok(store.keep_leases(500));
        assert_eq!(ok(store.lose_work(400, BY)), 0);
        assert_eq!(ok(store.lose_work(501, BY)), 1);
        assert_eq!(state(&mut store, "b"), WorkState::Lost);
        assert_eq!(ok(store.next_work("press")).map(|w| w.id).as_deref(), Some("a"));
        assert_eq!(ok(store.renew_work("b", "L1", 900, None)), Step::Not(WorkState::Lost));
        let runs = [WorkRun { part: "one".to_owned(), run: "ff".to_owned() }];
        let how = Finished { complete: true, reason: None, runs: &runs };
        // What comes late is noted, and stays lost.
        assert_eq!(ok(store.end_work("b", "L1", &how, BY)), Step::Not(WorkState::Lost));
        let late = ok(store.work("b")).unwrap_or_else(|| panic!("it is gone"));
        assert_eq!((late.state, late.runs.len()), (WorkState::Lost, 1));
        let audit = ok(store.audited(50));
        assert!(audit.iter().any(|l| l.what.contains("work b is lost")), "{audit:?}");
    });
}

#[test]
fn a_refusal_and_an_operator_end_it_with_a_reason() {
    on_both(|place| {
        let mut store = filled(place);
        assert_eq!(ok(store.refuse_work("b", "no loads", BY)), Step::Done);
        assert_eq!(ok(store.refuse_work("b", "no loads", BY)), Step::Done);
        assert_eq!(ok(store.take_work("b", "L", 1, BY)), Step::Not(WorkState::Refused));
        assert_eq!(ok(store.cancel_work("b", BY)), Step::Not(WorkState::Refused));
        ok(store.take_work("a", "L", 100, BY));
        assert_eq!(ok(store.cancel_work("a", BY)), Step::Done);
        assert_eq!(ok(store.renew_work("a", "L", 200, None)), Step::Not(WorkState::Cancelled));
        let listed = ok(store.all_work(10));
        let short: Vec<_> = listed.iter().map(|w| (w.id.as_str(), w.state)).collect();
        assert_eq!(short, [("a", WorkState::Cancelled), ("b", WorkState::Refused)]);
        assert_eq!(listed[1].reason.as_deref(), Some("no loads"));
        assert!(listed.iter().all(|w| w.campaign.is_empty()));
    });
}
