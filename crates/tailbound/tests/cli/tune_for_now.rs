// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes for a while: of a run, of an experiment, of `tune apply --keep`. Nothing of them stays, however they end.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tailbound_sys::process::{self, Pid};
use tailbound_sys::sched;

use crate::journals::Journals;
use crate::killed_starts::{Instants, is_worked_in, kills};
use crate::tune::{Kept, Sleeper, alone, answer, awaited, harmless, is, states, told};
use crate::{PATIENCE, call, folder, read, status, stderr, stdout};

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// A profile in the folder of `journals` that gives `kept` another value, which is the second.
fn profile(journals: &Journals, kept: &Kept, more: &str) -> String {
    let new = kept.other();
    let text = format!("name = \"p\"\n[settings]\ndirty-writeback = {new}\n{more}");
    std::fs::write(journals.folder().join("p.toml"), text).unwrap();
    new
}

fn begin(journals: &Journals, words: &[&str]) -> Child {
    let all = [&[env!("CARGO_BIN_EXE_tailbound")], words].concat();
    let mut command = journals.command(&[], &all);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn signal(child: &Child, signal: i32) {
    process::kill(Pid(child.id().cast_signed()), signal).unwrap();
}

#[test]
fn a_profile_of_a_run_is_undone_when_the_run_ends_and_when_it_is_killed() {
    let _alone = alone();
    let Some((journals, back, _dirty)) = harmless() else { return };
    let new = profile(&journals, &back, "");
    let words = ["run", "--tune", "p.toml", "-L", "none", "-q", "-o", "r.tailbound.jsonl", "-D"];
    let out = journals.tailbound(&[&words[..], &["100ms"]].concat());
    assert!([0, 5].contains(&status(&out)), "{}", stderr(&out));
    assert_eq!(back.now(), back.old);
    assert_eq!(states(&journals, "history"), [is(1, "undone")]);
    let run = read(&journals.folder().join("r.tailbound.jsonl"));
    let plan = run.header.plan.tune.as_ref().expect("the profile is in the file");
    assert!(plan.profile.contains(&format!("dirty-writeback = {new}")), "{plan:?}");
    assert!(run.findings.iter().any(|f| f.id == "tuned"), "{:?}", run.findings);

    let mut child = begin(&journals, &[&words[..], &["10m", "--force"]].concat());
    awaited("the change", || back.now() == new);
    signal(&child, SIGKILL);
    child.wait().unwrap();
    awaited("the undo", || back.now() == back.old);
    awaited("its end", || states(&journals, "status").is_empty());
}

/// Half of the kills come at instants from a seed, half just after the change was written: the guard stands before it.
#[test]
fn a_kill_while_it_is_applied_leaves_nothing() {
    let _alone = alone();
    let Some((journals, back, _dirty)) = harmless() else { return };
    let new = profile(&journals, &back, "swappiness = 11\n");
    let run = ["run", "--tune", "p.toml", "-L", "none", "-q", "--force", "-D", "10m"];
    let confirm = ["tune", "apply", "--profile", "p.toml", "--confirm", "50ms"];
    let mut instants = Instants::of("tune");
    for words in [&run[..], &confirm] {
        let mut length = Duration::ZERO;
        let mut left = Vec::new();
        for i in 0..kills() {
            let mut child = begin(&journals, words);
            let begun = Instant::now();
            if i % 2 == 1 {
                std::thread::sleep(instants.within(length * 2));
            } else {
                while back.now() != new && child.try_wait().unwrap().is_none() {
                    assert!(begun.elapsed() < PATIENCE, "the change does not come: kill {i}");
                }
                length = begun.elapsed();
                std::thread::sleep(instants.within(Duration::from_millis(3)));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            // Guards of tests beside this one are in other folders.
            while is_worked_in(journals.folder()) {
                assert!(begun.elapsed() < PATIENCE, "a guard never ends: kill {i}");
                std::thread::sleep(Duration::from_millis(1));
            }
            let (now, states) = (back.now(), states(&journals, "status"));
            if now != back.old || !states.is_empty() {
                left.push((i, now, states));
                journals.tailbound(&["tune", "undo"]);
            }
        }
        assert!(left.is_empty(), "{words:?}: left of {} kills: {left:?}", kills());
    }
}

#[test]
fn what_appears_later_is_changed_too_and_all_of_it_is_undone_at_the_end() {
    let _alone = alone();
    let Some((journals, back, _dirty)) = harmless() else { return };
    let rule = "[[thread]]\nname = \"tune-sleeper\"\npolicy = \"fifo:1\"\n";
    let new = profile(&journals, &back, rule);
    let policy = |thread: &Sleeper| sched::get(thread.tid).unwrap().policy;
    let early = Sleeper::begin();
    let before = sched::get(early.tid).unwrap();
    let mut child = begin(&journals, &["tune", "apply", "--profile", "p.toml", "--keep"]);
    awaited("the change", || back.now() == new && policy(&early) == sched::SCHED_FIFO);
    // Another program's wish counts: what was there before is not changed twice.
    sched::set(early.tid, &before).unwrap();
    let late = Sleeper::begin();
    awaited("the change of the new thread", || policy(&late) == sched::SCHED_FIFO);
    assert_eq!(policy(&early), sched::SCHED_OTHER);
    assert_eq!(states(&journals, "status").len(), 2);
    signal(&child, SIGTERM);
    assert!(child.wait().unwrap().success(), "what is as before already is not left");
    assert_eq!((back.now(), policy(&late)), (back.old.clone(), sched::SCHED_OTHER));
    assert!(states(&journals, "status").is_empty());
}

#[test]
fn an_experiment_that_is_interrupted_or_killed_leaves_nothing() {
    let _alone = alone();
    let Some((journals, back, _dirty)) = harmless() else { return };
    let new = profile(&journals, &back, "");
    let words = ["tune", "auto", "-p", "p.toml", "-L", "none", "-o", "auto", "--budget", "3min"];
    for number in [SIGINT, SIGKILL] {
        let mut child = begin(&journals, &words);
        awaited("a run with the change", || back.now() == new);
        signal(&child, number);
        let code = child.wait().unwrap().code();
        assert!(number == SIGKILL || code == Some(5), "{code:?}");
        awaited("the undo", || back.now() == back.old);
        awaited("its end", || states(&journals, "status").is_empty());
    }
    let short = [&words[..8], &["--budget", "3s", "--force"]].concat();
    let short = journals.tailbound(&short);
    assert_eq!(status(&short), 2, "{}", stderr(&short));
    assert!(stderr(&short).contains("too short for 1 change:"), "{}", stderr(&short));
}

#[test]
fn a_unit_applies_the_same_at_each_start() {
    let _alone = alone();
    let Some((journals, back, _dirty)) = harmless() else { return };
    profile(&journals, &back, "");
    let text = told(&journals, 0, &["plan", "--profile", "p.toml", "--systemd-unit"]);
    let whole = journals.folder().join("p.toml");
    let start = text.lines().find_map(|l| l.strip_prefix("ExecStart=")).expect("a command");
    let end = format!("tune apply --keep --profile {}", whole.display());
    assert!(start.ends_with(&end), "{start}");
    // What the unit starts is a command that there is.
    let words: Vec<&str> = start.split(' ').skip(1).collect();
    let out = journals.tailbound(&[&words[..], &["--help"]].concat());
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let refused =
        told(&journals, 2, &["plan", "--set", "swappiness=10", "--boot", "--systemd-unit"]);
    assert!(refused.contains("leave out --boot"), "{refused}");
    assert_eq!(answer(&journals, 0, &["status"])["changes"].as_array().unwrap().len(), 0);
}

#[test]
fn experiments_that_cannot_be_are_refused_before_anything_is_measured() {
    let folder = folder();
    for (words, why) in [
        (&["tune", "auto", "--lab"][..], "--kernel"),
        (&["tune", "auto", "--try-append", "threadirqs"], "--lab"),
        (&["tune", "auto", "-p", "nosuch"], "nosuch"),
        (&["tune", "auto", "--set", "nosuch=1", "--no-apply"], "nosuch"),
        (&["tune", "auto", "--set", "swappiness=9", "--budget", "soon"], "--budget"),
        (&["tune", "auto", "--require-equivalent"], "--require-equivalent"),
        (&["run", "--tune", "nosuch", "-D", "1s"], "nosuch"),
        (&["run", "--rt-cpus", "0", "-D", "1s"], "--tune"),
    ] {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}: {}{}", stdout(&out), stderr(&out));
        assert!(stderr(&out).contains(why), "{words:?}: {}", stderr(&out));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
