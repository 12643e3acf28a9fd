// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes of the scheduler and of locks with inheritance: every due trial is accounted
//! for, a sound kernel passes, and a planted fault is proven and fails the run.

use std::path::Path;

use tailbound_core::Impact;
use tailbound_core::Run;

use crate::{call, folder, read, skip, status, stderr};

/// May this process have real-time threads? Otherwise says why nothing can be tried.
fn realtime() -> bool {
    let own = folder();
    let out = call(own.path(), &["measure", "pi", "-q", "-D", "20ms", "--warm-up", "10ms"]);
    let can = status(&out) != 3;
    if !can {
        skip("rt", stderr(&out).lines().next().unwrap_or("no real-time threads"));
    }
    can
}

fn measure(folder: &Path, words: &str) -> (i32, Run) {
    let mut all = vec!["measure"];
    all.extend(words.split(' '));
    all.extend(["-q", "--force", "--warm-up", "100ms", "-o", "run.jsonl"]);
    let out = call(folder, &all);
    assert!([0, 1, 5].contains(&status(&out)), "{words}: {}", stderr(&out));
    (status(&out), read(&folder.join("run.jsonl")))
}

fn figure(run: &Run, name: &str) -> f64 {
    run.figures.iter().find(|f| f.name == name).map_or(f64::NAN, |f| f.value)
}

fn violations(run: &Run) -> Vec<&str> {
    run.findings.iter().filter(|f| f.impact == Impact::Violation).map(|f| f.id.as_str()).collect()
}

/// Every judged record slot accounts for every due trial.
fn accounted(run: &Run, slots: usize, words: &str) {
    let planned = run.header.plan.activations;
    let judged: Vec<_> =
        run.threads.iter().filter(|t| t.context == tailbound_core::Context::User).collect();
    assert_eq!(judged.len(), slots, "{words}");
    for t in judged {
        assert_eq!(t.wakeup.n + t.missed.n, planned, "{words}: slot {}", t.thread);
    }
}

/// What is run, and the record slots that are judged on one and on two CPUs.
const SOUND: [&str; 10] = [
    "sched-football -D 1s",
    "pi -D 500ms",
    "pi -D 500ms --chain 4",
    "pi-process -D 500ms --deaths 5",
    "ptrace -D 200ms",
    "prio-preempt -D 300ms",
    "prio-wake -D 400ms",
    "prio-wake -D 400ms --by lock",
    "prio-wake -D 400ms --by one",
    "prio-wake -D 400ms --by broadcast",
];

#[test]
fn every_trial_is_accounted_for_and_a_sound_kernel_passes() {
    if !realtime() {
        return;
    }
    let own = folder();
    for words in SOUND {
        let (code, run) = measure(own.path(), words);
        let cpus = run.header.plan.cpus.len();
        let per_cpu = ["pi", "pi-process", "ptrace", "prio-preempt"]
            .iter()
            .any(|p| words.split(' ').next() == Some(p));
        accounted(&run, if per_cpu { cpus } else { 1 }, words);
        // That this machine's kernel is sound is no more than likely; what it is accused of
        // must be proven.
        assert_eq!(violations(&run).is_empty(), code != 1, "{words}");
        let told = |f: &&tailbound_core::Finding| f.meaning.is_empty();
        assert!(!run.findings.iter().filter(|f| f.impact == Impact::Violation).any(|f| told(&f)));
        assert!(run.verdict.is_some_and(|v| !v.sentence.is_empty()), "{words}");
    }
}

#[test]
fn the_most_urgent_tasks_have_a_slot_each() {
    if !realtime() {
        return;
    }
    let own = folder();
    let (code, run) = measure(own.path(), "rt-migrate -D 500ms --extra 2");
    let cpus = run.header.plan.cpus.len();
    accounted(&run, cpus, "rt-migrate");
    assert_eq!(violations(&run).is_empty(), code != 1);
    let n = run.threads.first().map_or(0, |t| t.wakeup.n) as f64;
    assert!((figure(&run, "releases") - n).abs() < 0.5, "{n}");
}

#[test]
fn a_planted_fault_is_proven_and_fails_the_run() {
    if !realtime() {
        return;
    }
    let own = folder();
    for (words, id) in [
        ("sched-football -D 1s --plant demoted", "ball-moved"),
        ("pi -D 300ms --plant no-inheritance", "priority-inversion"),
        ("pi-process -D 400ms --plant no-inheritance", "shared-lock"),
        ("ptrace -D 200ms --plant signal", "step-wrong"),
        ("prio-preempt -D 200ms --plant falling", "not-preempted"),
        ("prio-wake -D 300ms --plant exchanged", "wrong-order"),
        ("prio-wake -D 300ms --by lock --plant exchanged", "wrong-order"),
        ("prio-wake -D 300ms --by one --plant exchanged", "wrong-order"),
        ("prio-wake -D 300ms --by broadcast --plant exchanged", "wrong-order"),
        ("rt-migrate -D 300ms --plant reversed", "wrong-task-began"),
    ] {
        let (code, run) = measure(own.path(), words);
        assert_eq!(code, 1, "{words}");
        assert_eq!(violations(&run), [id], "{words}");
        let proof = run.findings.iter().find(|f| f.id == id).map(|f| f.meaning.as_str());
        assert!(proof.is_some_and(|p| p.starts_with("trial ")), "{words}: {proof:?}");
    }
}

#[test]
fn an_inversion_shows_with_and_without_inheritance_and_is_drawn() {
    if !realtime() {
        return;
    }
    let own = folder();
    let (_, run) = measure(own.path(), "pi -D 400ms --control 2 --hold 300us --spin 600us");
    let (controls, shown) = (figure(&run, "controls"), figure(&run, "control-inversions"));
    assert!(controls >= 1.0, "{controls}");
    // The control waits for the spinner's whole time: that is no latency of this machine.
    let (waited, _) = run.total("no-inheritance");
    if shown >= controls {
        assert!(waited.min_ns.is_some_and(|ns| ns >= 600_000), "{waited:?}");
    }
    assert_eq!(run.timelines.len(), 2, "with and without");
    for timeline in &run.timelines {
        let names: Vec<&str> = timeline.lanes.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names, ["urgent", "spinner", "holder"]);
        for lane in &timeline.lanes {
            let in_order = lane.spans.windows(2).all(|w| w[0].to_ns <= w[1].from_ns);
            assert!(in_order && lane.spans.iter().all(|s| s.from_ns < s.to_ns), "{lane:?}");
        }
    }
    let states = |i: usize| -> Vec<&str> {
        run.timelines[i].lanes.iter().flat_map(|l| &l.spans).map(|s| s.state.as_str()).collect()
    };
    assert!(states(0).contains(&"boosted") && !states(1).contains(&"boosted"));
    let out = call(own.path(), &["show", "run.jsonl"]);
    assert!(crate::stdout(&out).contains("Task timeline"), "{}", crate::stdout(&out));
    assert_eq!(status(&call(own.path(), &["report", "run.jsonl", "-o", "run.html"])), 0);
    let page = std::fs::read_to_string(own.path().join("run.html")).unwrap();
    assert!(page.contains("lanes-1") && page.contains("waits for the lock"));
}

#[test]
fn an_inversion_across_two_cpus_ends_by_an_interrupt() {
    if !realtime() {
        return;
    }
    let own = folder();
    let words = "pi -D 500ms --where other --control 5";
    let out = call(own.path(), &[&["measure"][..], &words.split(' ').collect::<Vec<_>>()].concat());
    if status(&out) == 3 && stderr(&out).contains("no other CPU") {
        return skip("cpus", "there is one CPU");
    }
    let (code, run) = measure(own.path(), words);
    accounted(&run, run.header.plan.cpus.len(), words);
    assert_eq!(violations(&run).is_empty(), code != 1, "{words}");
    // No boost before it was asked for.
    let (boost, _) = run.total("user");
    assert!(boost.min_ns.is_none_or(|ns| ns > 0), "{boost:?}");
    for timeline in &run.timelines {
        let cpu = |i: usize| timeline.lanes[i].note.rsplit(' ').next().map(str::to_owned);
        assert!(cpu(0) != cpu(1) && cpu(1) == cpu(2), "{:?}", timeline.lanes);
    }
    let (code, run) = measure(own.path(), &format!("{words} --plant no-inheritance"));
    assert_eq!((code, violations(&run)), (1, vec!["priority-inversion"]));
}

#[test]
fn what_cannot_be_played_is_refused_with_the_remedy() {
    if !realtime() {
        return;
    }
    let own = folder();
    for (words, hint) in [
        ("sched-football --game 200ms -i 210ms", "--interval"),
        ("sched-football --game 1s", "at most"),
        ("sched-football --offence 40", "below --defence"),
        ("pi --hold 5ms", "--interval at least"),
        ("pi -p other", "fifo:"),
        ("pi --plant nonsense", "choose no-inheritance"),
        ("pi --where far", "choose same, other"),
        ("rt-migrate --busy 20ms", "--busy shorter"),
        ("prio-wake --by magic", "choose condition"),
    ] {
        let mut all = vec!["measure"];
        all.extend(words.split(' '));
        let out = call(own.path(), &all);
        assert_eq!(status(&out), 2, "{words}: {}", stderr(&out));
        assert!(stderr(&out).contains(hint), "{words}: {}", stderr(&out));
    }
}
