// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune`: changes are made as a whole, looked after, undone exactly, and refused with the reason.
//!
//! What is changed is harmless (how often changed pages are written, by a hundredth of a second) or the test's own; where it is the
//! machine's, it is so for a moment. Journals are the test's own: mounts keep them apart from the machine's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tailbound_sys::sched;

use crate::journals::{Journals, own_mounts_lack};
use crate::{PATIENCE, call, folder, folder_for_everybody, is_root, skip, status, stderr, stdout};

/// One test at a time: they change the same settings.
static ALONE: Mutex<()> = Mutex::new(());

pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The two settings of memory that are changed: what few others ever touch.
pub(crate) const WRITEBACK: &str = "/proc/sys/vm/dirty_writeback_centisecs";
const DIRTY: &str = "/proc/sys/vm/dirty_background_ratio";

/// A file of the machine that is as it was when the test ends, however it ends.
pub(crate) struct Kept {
    path: &'static str,
    pub(crate) old: String,
}

impl Kept {
    pub(crate) fn now(&self) -> String {
        std::fs::read_to_string(self.path).unwrap().trim().to_owned()
    }

    /// As another program would.
    pub(crate) fn write(&self, value: &str) {
        std::fs::write(self.path, value).unwrap();
    }

    /// Another value than the one it has, hardly another.
    pub(crate) fn other(&self) -> String {
        (self.old.parse::<u32>().unwrap() + 1).to_string()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.now() != self.old {
            self.write(&self.old);
        }
    }
}

/// Two settings that may be changed, and journals; `None` with a word why.
pub(crate) fn harmless() -> Option<(Journals, Kept, Kept)> {
    let journals = Journals::new()?;
    let kept = |path| {
        let old = std::fs::read_to_string(path).ok()?.trim().to_owned();
        // 0 stands for "elsewhere" or "off".
        let usable = old != "0" && std::fs::File::options().write(true).open(path).is_ok();
        usable.then_some(Kept { path, old })
    };
    let (Some(back), Some(dirty)) = (kept(WRITEBACK), kept(DIRTY)) else {
        skip("root", "settings of memory cannot be written here");
        return None;
    };
    Some((journals, back, dirty))
}

pub(crate) fn json(out: &Output) -> Value {
    serde_json::from_str(&stdout(out)).unwrap_or_else(|e| panic!("{e}: {}", stdout(out)))
}

/// Runs `tune` and its answer as JSON, with the exit status that is expected.
pub(crate) fn answer(journals: &Journals, exit: i32, words: &[&str]) -> Value {
    let out = journals.tailbound(&[&["tune"], words, &["--json"]].concat());
    assert_eq!(status(&out), exit, "{words:?}: {} {}", stdout(&out), stderr(&out));
    json(&out)
}

/// The same as text, both streams.
pub(crate) fn told(journals: &Journals, exit: i32, words: &[&str]) -> String {
    let out = journals.tailbound(&[&["tune"], words].concat());
    let text = format!("{}{}", stdout(&out), stderr(&out));
    assert_eq!(status(&out), exit, "{words:?}: {text}");
    assert!(!text.contains("panicked"), "{text}");
    text
}

pub(crate) fn states(journals: &Journals, what: &str) -> Vec<(u64, String)> {
    let all = answer(journals, 0, &[what]);
    let row = |c: &Value| (c["number"].as_u64().unwrap(), c["state"].as_str().unwrap().to_owned());
    all["changes"].as_array().unwrap().iter().map(row).collect()
}

pub(crate) fn is(number: u64, state: &str) -> (u64, String) {
    (number, state.to_owned())
}

#[test]
fn a_change_is_made_looked_after_and_undone_but_for_what_others_changed() {
    let _alone = alone();
    let Some((journals, back, dirty)) = harmless() else { return };
    let (new, also) = (back.other(), dirty.other());
    let set = [format!("dirty-writeback={new}"), format!("dirty-background-ratio={also}")];

    let dry = answer(&journals, 0, &["set", &set[0], &set[1], "--dry-run"]);
    assert_eq!(dry["applied"], false);
    assert_eq!((back.now(), journals.files()), (back.old.clone(), 0), "nothing was changed");

    let applied = answer(&journals, 0, &["apply", "--set", &set[0], "--set", &set[1]]);
    assert_eq!((&applied["applied"], &applied["number"]), (&true.into(), &1.into()));
    assert_eq!(
        (applied["made"].as_u64(), applied["skipped"].as_array().unwrap().len()),
        (Some(2), 0)
    );
    assert_eq!((back.now(), dirty.now()), (new.clone(), also));
    assert_eq!(states(&journals, "status"), [is(1, "applied")]);
    assert_eq!(answer(&journals, 0, &["verify"])["changed"], 0);
    assert!(told(&journals, 0, &["status"]).contains("applied"));

    // Looking at a change needs nothing that can be written to.
    for words in [&["tune", "status"][..], &["tune", "verify", "--json"], &["tune", "history"]] {
        let out = journals.looking(words);
        assert_eq!(status(&out), 0, "{words:?}: {}", stderr(&out));
    }
    // What is so already is no change.
    let text = told(&journals, 0, &["set", &set[0]]);
    assert!(text.contains("Nothing to change"), "{text}");
    assert_eq!(journals.files(), 1);

    back.write("611");
    let seen = answer(&journals, 1, &["verify"]);
    let steps = seen["steps"].as_array().unwrap();
    let drifted: Vec<&Value> = steps.iter().filter(|s| s["state"] == "changed").collect();
    assert_eq!((drifted.len(), &seen["changed"]), (1, &1.into()), "{seen}");
    assert_eq!(drifted[0]["step"]["target"]["path"], WRITEBACK);
    assert_eq!(
        (&drifted[0]["more"]["now"], &drifted[0]["more"]["ours"]),
        (&"611".into(), &new.clone().into())
    );
    let text = told(&journals, 1, &["verify"]);
    assert!(
        text.contains(WRITEBACK) && text.contains(&format!("is 611 instead of {new}")),
        "{text}"
    );

    let text = told(&journals, 1, &["undo"]);
    assert!(text.contains(WRITEBACK) && text.contains("left as it is"), "{text}");
    assert!(text.contains("--force") && text.contains("--forget"), "{text}");
    assert_eq!((back.now(), dirty.now()), ("611".to_owned(), dirty.old.clone()));
    assert_eq!(states(&journals, "status"), [is(1, "partly undone")]);

    let undone = answer(&journals, 0, &["undo", "--force"]);
    assert_eq!(undone["changes"][0]["left"], 0);
    assert_eq!(back.now(), back.old);
    assert!(told(&journals, 0, &["status"]).contains("Nothing is changed"));

    assert!(told(&journals, 2, &["undo"]).contains("nothing is applied"));
    assert!(told(&journals, 2, &["undo", "1"]).contains("change 1 was undone already"));
    assert!(told(&journals, 2, &["undo", "9"]).contains("there is no change 9"));
    assert!(told(&journals, 2, &["verify"]).contains("nothing is applied"));
    assert!(told(&journals, 2, &["confirm"]).contains("nothing is applied"));

    // A second one, which is to be forgotten: it stays, and so does the history of both.
    answer(&journals, 0, &["set", &set[0]]);
    assert!(told(&journals, 0, &["undo", "--forget"]).contains("forgotten"));
    assert_eq!(back.now(), new);
    assert_eq!(states(&journals, "history"), [is(1, "undone"), is(2, "undone")]);
    let text = told(&journals, 0, &["history"]);
    assert_eq!(text.lines().filter(|l| l.contains("undone")).count(), 2, "{text}");
}

#[test]
fn changes_on_top_of_each_other_are_undone_in_their_order() {
    let _alone = alone();
    let Some((journals, back, _dirty)) = harmless() else { return };
    let first = back.other();
    answer(&journals, 0, &["set", &format!("dirty-writeback={first}")]);
    answer(&journals, 0, &["set", "dirty-writeback=612"]);
    let text = told(&journals, 3, &["undo", "1"]);
    assert!(text.contains("change 2 came later") && text.contains(WRITEBACK), "{text}");
    assert_eq!(back.now(), "612");
    let text = told(&journals, 0, &["undo"]);
    assert!(text.contains("Change 2"), "{text}");
    assert_eq!(back.now(), first);
    answer(&journals, 0, &["set", "dirty-writeback=613"]);
    let all = answer(&journals, 0, &["undo", "--all"]);
    assert_eq!(all["changes"].as_array().unwrap().len(), 2, "{all}");
    assert_eq!(back.now(), back.old);
    let three = ["undone"; 3].map(str::to_owned);
    assert_eq!(states(&journals, "history").into_iter().map(|s| s.1).collect::<Vec<_>>(), three);
}

/// Looks until it is so.
pub(crate) fn awaited(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_change_that_nobody_confirms_is_undone_by_itself() {
    let _alone = alone();
    let Some((journals, back, _dirty)) = harmless() else { return };
    let set = format!("dirty-writeback={}", back.other());
    let text = told(&journals, 0, &["apply", "--set", &set, "--confirm", "1017ms"]);
    assert!(text.contains("undone in 1017ms unless") && text.contains("tune confirm"), "{text}");
    awaited("the undo", || back.now() == back.old);
    awaited("its end", || states(&journals, "status").is_empty());
    // The guard has the journal's lock until it ends.
    awaited("the end of the guard", || with_argument("1017") == 0);
    assert_eq!(states(&journals, "history"), [is(1, "undone")]);
    assert!(told(&journals, 2, &["confirm"]).contains("nothing is applied"));
    for wrong in ["1", "soon", "-1s", "0s", "0"] {
        let confirm = format!("--confirm={wrong}");
        let text = told(&journals, 2, &["apply", "--set", &set, &confirm]);
        assert!(text.contains("--confirm") && !text.contains("Applied"), "{text}");
        assert_eq!(back.now(), back.old, "{wrong}: nothing is changed without a guard");
    }
}

/// Processes of the machine with this word among their arguments.
fn with_argument(word: &str) -> usize {
    let numbers = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    numbers
        .filter(|e| {
            let line = std::fs::read(e.path().join("cmdline")).unwrap_or_default();
            line.split(|b| *b == 0).any(|w| w == word.as_bytes())
        })
        .count()
}

#[test]
fn a_change_that_is_confirmed_stays() {
    let _alone = alone();
    let Some((journals, back, _dirty)) = harmless() else { return };
    let new = back.other();
    let set = format!("dirty-writeback={new}");
    // Where the machine stands still for longer than the first, confirming comes too late: once more.
    for ms in ["4321", "43217"] {
        answer(&journals, 0, &["set", &set, "--confirm", &format!("{ms}ms")]);
        assert!(with_argument(ms) > 0 || back.now() == back.old, "somebody guards it");
        let out = journals.tailbound(&["tune", "confirm"]);
        awaited("the end of the guard", || with_argument(ms) == 0);
        if status(&out) != 0 {
            continue;
        }
        assert!(stdout(&out).contains("stays"), "{}", stdout(&out));
        assert_eq!(back.now(), new, "nobody undid it");
        let now = states(&journals, "status");
        assert_eq!(now.last().unwrap().1, "applied and confirmed");
        assert!(told(&journals, 0, &["undo"]).contains("as before"));
        assert_eq!(back.now(), back.old);
        return;
    }
    panic!("it could not be confirmed in time");
}

#[test]
fn a_plan_as_a_script_does_the_same_and_its_undo_restores() {
    let _alone = alone();
    let Some((journals, back, dirty)) = harmless() else { return };
    let (new, also) = (back.other(), dirty.other());
    let profile = journals.folder().join("p.toml");
    let settings = format!(
        "name = \"p\"\n[settings]\ndirty-writeback = {new}\ndirty-background-ratio = {also}\n"
    );
    let thread = Sleeper::begin();
    let named = format!("[[thread]]\nnumber = {}\npolicy = \"fifo:1\"\n", thread.tid);
    let has = |name: &str| Command::new(name).arg("--version").output().is_ok();
    let with_threads = has("chrt") && has("taskset");
    std::fs::write(&profile, if with_threads { settings + &named } else { settings }).unwrap();
    let plan = ["plan", "--profile", "p.toml"];
    let script = |flag: &str| told(&journals, 0, &[&plan[..], &[flag]].concat());
    let (there, again) = (script("--script"), script("--undo-script"));
    assert!(there.starts_with("#!/bin/sh\n") && there.contains(WRITEBACK), "{there}");
    let run = |text: &str| {
        let out = Command::new("sh").args(["-c", text]).output().unwrap();
        assert!(out.status.success(), "{text}: {}", stderr(&out));
    };
    let policy = || sched::get(thread.tid).unwrap().policy;
    run(&there);
    let scripted = (back.now(), dirty.now(), policy());
    assert_eq!((&scripted.0, &scripted.1), (&new, &also));
    // The program agrees that nothing is left to be done.
    assert_eq!(answer(&journals, 0, &plan)["steps"].as_array().unwrap().len(), 0);
    run(&again);
    assert_eq!((back.now(), dirty.now()), (back.old.clone(), dirty.old.clone()));
    assert_eq!(policy(), sched::SCHED_OTHER);
    answer(&journals, 0, &["apply", "--profile", "p.toml"]);
    assert_eq!((back.now(), dirty.now(), policy()), scripted, "the same as the script");
    answer(&journals, 0, &["undo"]);
    assert_eq!((back.now(), dirty.now()), (back.old.clone(), dirty.old.clone()));
    assert_eq!(policy(), sched::SCHED_OTHER);
}

#[test]
fn a_saved_plan_is_applied_here_now_and_as_it_was_or_refused() {
    let _alone = alone();
    let Some((journals, back, _dirty)) = harmless() else { return };
    let new = back.other();
    let file = journals.folder().join("plan.json");
    let make = ["plan", "--set", &format!("dirty-writeback={new}"), "--out", "plan.json"];
    assert!(told(&journals, 0, &make).contains("plan.json"));
    assert_eq!((back.now(), journals.files()), (back.old.clone(), 0), "a plan changes nothing");
    assert!(told(&journals, 2, &make).contains("--force"));
    answer(&journals, 0, &["apply", "--plan", "plan.json"]);
    assert_eq!(back.now(), new);
    answer(&journals, 0, &["undo"]);
    assert_eq!(back.now(), back.old);

    back.write("611");
    let text = told(&journals, 3, &["apply", "--plan", "plan.json"]);
    assert!(text.contains("has changed since") && text.contains(WRITEBACK), "{text}");
    assert_eq!(back.now(), "611");
    back.write(&back.old);

    let plan: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let target = journals.folder().join("target");
    std::fs::write(&target, "1\n").unwrap();
    let alterations: [(&str, Value, &str); 6] = [
        ("/machine/boot_id", "00000000-0000-0000-0000-000000000000".into(), "another machine"),
        ("/machine/release", "5.10.0".into(), "another machine"),
        ("/machine/online", "0-63".into(), "another machine"),
        ("/format", 99.into(), "format 99"),
        ("/steps/0/new", "703".into(), "has changed since"),
        // A file cannot name what is written to.
        ("/steps/0/target/path", target.display().to_string().into(), "has changed since"),
    ];
    for (place, value, why) in alterations {
        let mut altered = plan.clone();
        *altered.pointer_mut(place).unwrap() = value;
        std::fs::write(&file, altered.to_string()).unwrap();
        let text = told(&journals, 3, &["apply", "--plan", "plan.json"]);
        assert!(text.contains(why), "{place}: {text}");
        assert_eq!((back.now(), journals.files()), (back.old.clone(), 1), "{place}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "1\n", "{place}");
    }
    let mut altered = plan;
    altered["recipe"]["profile"] = "name = \"x\"\n[settings]\nno-such = 1".into();
    std::fs::write(&file, altered.to_string()).unwrap();
    let text = told(&journals, 3, &["apply", "--plan", "plan.json"]);
    assert!(text.contains("plan.json") && text.contains("no-such"), "{text}");
    for text in ["", "{}", "[1, 2", "x = 1"] {
        std::fs::write(&file, text).unwrap();
        assert!(told(&journals, 2, &["apply", "--plan", "plan.json"]).contains("plan.json"));
    }
    assert!(told(&journals, 2, &["apply", "--plan", "missing.json"]).contains("missing.json"));
}

/// A thread of the test that sleeps until it is dropped.
pub(crate) struct Sleeper {
    pub(crate) tid: i32,
    end: Option<Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Sleeper {
    pub(crate) fn begin() -> Self {
        let (end, ended) = channel::<()>();
        let (say, said) = channel();
        let name = "tune-sleeper".to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            say.send(sched::gettid()).unwrap();
            // Until the other end is gone.
            let _ended = ended.recv();
        });
        let thread = Some(thread.unwrap());
        Self { tid: said.recv().unwrap(), end: Some(end), thread }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        drop(self.end.take());
        drop(self.thread.take().map(std::thread::JoinHandle::join));
    }
}

#[test]
fn threads_get_cpus_and_policies_and_their_own_ones_back() {
    let _alone = alone();
    let Some(journals) = Journals::new() else { return };
    let thread = Sleeper::begin();
    let (tid, number) = (thread.tid, thread.tid.to_string());
    let batch = sched::Attributes { policy: sched::SCHED_BATCH, nice: 5, ..Default::default() };
    sched::set(tid, &batch).unwrap();
    let before = sched::affinity(tid).unwrap();
    let last = *before.last().unwrap();
    let policy = || sched::get(tid).map(|a| (a.policy, a.nice, a.priority)).unwrap();

    answer(&journals, 0, &["set", &number, "--policy", "fifo:1"]);
    assert_eq!((policy().0, policy().2), (sched::SCHED_FIFO, 1));
    if before.len() > 1 {
        answer(&journals, 0, &["move", "tune-sleeper", "--cpus", &last.to_string()]);
        assert_eq!(sched::affinity(tid).unwrap(), [last]);
        assert_eq!(answer(&journals, 0, &["verify", "2"])["changed"], 0);
        // Another program moves it.
        sched::set_affinity(tid, &before[..1]).unwrap();
        let text = told(&journals, 1, &["verify"]);
        assert!(text.contains("tune-sleeper") && text.contains("changed"), "{text}");
        assert!(told(&journals, 1, &["undo"]).contains("left as it is"));
        assert_eq!(sched::affinity(tid).unwrap(), before[..1]);
        answer(&journals, 0, &["undo", "--force"]);
        assert_eq!(sched::affinity(tid).unwrap(), before);
    }
    answer(&journals, 0, &["undo"]);
    assert_eq!(policy(), (sched::SCHED_BATCH, 5, 0), "the nice value too");

    // One that ended is gone, and with it the change.
    answer(&journals, 0, &["set", &number, "--policy", "rr:1"]);
    drop(thread);
    assert_eq!(answer(&journals, 0, &["verify"])["gone"], 1);
    let undone = answer(&journals, 0, &["undo"]);
    assert!(undone.to_string().contains("has ended"), "{undone}");

    // What is not there is told, and is no change.
    let text = told(&journals, 0, &["move", "no-such-thread-*", "--cpus", "0"]);
    assert!(text.contains("there is no thread no-such-thread-*"), "{text}");
    for (words, why) in [
        (&["set", "tune-sleeper", "--policy", "fifo:100"][..], "1 to 99"),
        (&["set", "tune-sleeper", "--policy", "prayer"], "prayer"),
        (&["move", "tune-sleeper", "--cpus", "x"], "x"),
        (&["move", "tune-sleeper", "--cpus", "9999"], "9999"),
    ] {
        let text = told(&journals, 2, words);
        assert!(text.contains(why), "{words:?}: {text}");
    }
}

#[test]
fn wrong_words_are_refused_with_what_was_meant() {
    let folder = folder();
    for (words, hints) in [
        (&["set", "stat-intreval=7"][..], &["stat-intreval", "did you mean `stat-interval`?"][..]),
        (&["apply", "--set", "swapiness=7"], &["did you mean `swappiness`?"]),
        (&["set", "stat-interval"], &["SETTING=VALUE", "tune settings"]),
        (&["set", "stat-interval=0"], &["1 to 3600"]),
        (&["set", "transparent-hugepages=sometimes"], &["never|madvise|always"]),
        (&["apply", "--profile", "cylic"], &["cylic", "cyclic", "polling"]),
        (&["plan", "--profile", "cylic"], &["cylic", "cyclic", "polling"]),
        (&["profiles", "cylic"], &["cylic", "cyclic"]),
        (&["plan", "--profile", "missing.toml"], &["missing.toml"]),
        (&["plan"], &["--profile", "--set"]),
        (&["plan", "--profile", "cyclic"], &["--rt-cpus"]),
        (&["plan", "--profile", "cyclic", "-c", "9999999"], &["--rt-cpus"]),
        (&["plan", "--profile", "cyclic", "-c", "8000"], &["--rt-cpus", "8000"]),
        (&["plan", "--profile", "cyclic", "-c", "3-1"], &["--rt-cpus", "backwards"]),
        (&["plan", "--set", "swappiness=7", "--without", "swapiness"], &["swappiness"]),
        (&["plan", "--set", "swappiness=7", "--script", "--json"], &["cannot be used with"]),
        (&["isolate", "8000"], &["8000"]),
        (&["isolate"], &["LIST"]),
        (&["irq", "9999"], &["--cpus"]),
        (&["exec"], &["COMMAND"]),
        (&["frobnicate"], &["frobnicate"]),
    ] {
        let out = call(folder.path(), &[&["tune"], words].concat());
        let said = stderr(&out);
        assert_eq!(status(&out), 2, "{words:?}: {said}");
        for hint in hints {
            assert!(said.contains(hint), "{words:?} lacks `{hint}`: {said}");
        }
        assert!(!said.contains("panicked") && stdout(&out).is_empty(), "{words:?}: {said}");
    }
}

#[test]
fn cpus_that_cannot_be_isolated_are_refused_with_the_reason() {
    let _alone = alone();
    let Some(journals) = Journals::new() else { return };
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let online = online.trim();
    for words in [
        &["isolate", online][..],
        &["isolate", online, "--allow-cpu0"],
        &["isolate", online, "--dry-run"],
        &["plan", "--profile", "cyclic", "-c", online],
        &["apply", "--profile", "cyclic", "-c", online, "--allow-cpu0"],
    ] {
        let text = told(&journals, 3, words);
        assert!(text.contains("at least one must be left"), "{words:?}: {text}");
    }
    if online != "0" {
        for words in [&["isolate", "0"][..], &["plan", "--profile", "cyclic", "-c", "0"]] {
            let text = told(&journals, 3, words);
            assert!(text.contains("CPU 0 cannot be isolated"), "{words:?}: {text}");
        }
        told(&journals, 0, &["isolate", "0", "--allow-cpu0", "--dry-run"]);
    }
    assert_eq!(journals.files(), 0);
}

#[test]
fn an_ordinary_user_may_look_and_plan_and_change_nothing() {
    if !is_root() {
        return skip("root", "becoming another user needs root");
    }
    let (folder, exe) = folder_for_everybody();
    let tune = |words: &[&str]| {
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .args(["--inh-caps=-all", "--bounding-set=-all", "--"])
            .arg(&exe)
            .arg("tune")
            .args(words)
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    for words in [
        &["set", "stat-interval=7"][..],
        &["apply", "--set", "stat-interval=7"],
        &["undo"],
        &["undo", "--all"],
        &["confirm"],
        &["status"],
        &["verify"],
        &["history", "--json"],
        &["exec", "true"],
    ] {
        let out = tune(words);
        // On a machine where it is 7 there is nothing to change.
        if stdout(&out).contains("Nothing to change") {
            continue;
        }
        assert_eq!(status(&out), 3, "{words:?}: {} {}", stdout(&out), stderr(&out));
        assert!(stderr(&out).contains("only root"), "{words:?}: {}", stderr(&out));
    }
    for words in [
        &["plan", "--set", "stat-interval=7", "--json"][..],
        &["show", "--json", "-i0"],
        &["settings"],
        &["profiles"],
        &["set", "stat-interval=7", "--dry-run"],
    ] {
        let out = tune(words);
        assert_eq!(status(&out), 0, "{words:?}: {}", stderr(&out));
    }
}

/// A CPU that may be isolated for a moment: not CPU 0, and not the only one.
fn spare_cpu() -> Option<String> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let last = list.trim().rsplit([',', '-']).next()?.to_owned();
    (last != "0").then_some(last)
}

/// In a PID namespace, so that threads of other tests stay where they are: its first process makes the change,
/// looks, and takes it back, also where it is told to end. `$1` is the program, `$2` the CPU.
const ISOLATED_FOR_A_MOMENT: &str = r#"
mount -t proc proc /proc
sleep 600 & sleeper=$!
trap '"$1" tune undo --all --force >/dev/null 2>&1; kill $sleeper' EXIT
files() {
    for f in /proc/irq/*/smp_affinity_list /proc/irq/default_smp_affinity \
        /proc/sys/kernel/watchdog_cpumask /sys/devices/virtual/workqueue/cpumask \
        /sys/devices/virtual/workqueue/*/cpumask /sys/fs/cgroup/cgroup.subtree_control \
        /sys/fs/cgroup/cpuset.cpus* /sys/fs/cgroup/*/cpuset.cpus* \
        /sys/fs/cgroup/unified/cgroup.subtree_control; do
        test -r "$f" && echo "$f $(cat "$f" 2>/dev/null | tr '\n' ' ')"
    done > "$1"
    "$2" tune show --json -i0 > "$1.json"
}
files before "$1"
"$1" tune isolate "$2" --confirm 30s --json > applied.json 2> applied.err
echo $? > applied.status
files during "$1"
"$1" tune status --json > status.json
"$1" tune verify --json > verify.json
"$1" tune exec true 2> exec.err
echo $? > exec.status
"$1" tune exec --cpus "$2" --policy fifo:1 cat /proc/self/status /proc/self/stat > exec.out 2>> exec.err
"$1" tune undo --json > undone.json 2> undone.err
echo $? > undone.status
files after "$1"
exit 0
"#;

/// Threads (but those of the program itself) and interrupts with their CPUs and policies.
fn placed(path: &Path) -> BTreeMap<String, String> {
    let shown: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let threads = shown["threads"].as_array().unwrap().iter();
    let threads = threads.filter(|t| t["name"] != "tailbound").map(|t| {
        let key = format!("thread {} {}", t["tid"], t["name"]);
        (key, format!("{} {} {}", t["affinity"], t["policy"], t["nice"]))
    });
    let lines = shown["interrupts"].as_array().unwrap().iter();
    let lines = lines.map(|i| (format!("interrupt {}", i["number"]), i["affinity"].to_string()));
    threads.chain(lines).collect()
}

#[test]
fn isolated_cpus_are_left_by_all_and_everything_comes_back() {
    let _alone = alone();
    let Some(journals) = Journals::new() else { return };
    let Some(cpu) = spare_cpu() else {
        return skip("cpus", "isolating one CPU takes two");
    };
    let exe = env!("CARGO_BIN_EXE_tailbound");
    let words = ["sh", "-c", ISOLATED_FOR_A_MOMENT, "sh", exe, &cpu];
    let out = journals.command(&["-p", "-f"], &words).output().unwrap();
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let at = |name: &str| journals.folder().join(name);
    let text = |name: &str| std::fs::read_to_string(at(name)).unwrap().trim().to_owned();
    let json = |name: &str| -> Value { serde_json::from_str(&text(name)).unwrap() };
    assert_eq!(text("applied.status"), "0", "{}", text("applied.err"));
    assert_eq!(text("undone.status"), "0", "{} {}", text("undone.json"), text("undone.err"));

    // In force: the only program there, and what the plan says.
    let (before, during, after) =
        (placed(&at("before.json")), placed(&at("during.json")), placed(&at("after.json")));
    let sleeper = during.iter().find(|(k, _)| k.contains("sleep")).unwrap();
    let own: tailbound_core::CpuSet = sleeper.1.split('"').nth(1).unwrap().parse().unwrap();
    assert!(!own.contains(cpu.parse().unwrap()), "{sleeper:?}");
    assert_ne!(before.get(sleeper.0), Some(sleeper.1));
    assert_eq!(json("status.json")["changes"][0]["state"], "applied");
    assert_eq!(json("status.json")["changes"][0]["rt_cpus"], cpu.as_str());
    let verified = json("verify.json");
    assert_eq!(verified["changed"], 0, "{verified}");
    let plan = &json("applied.json")["plan"];
    let partition = plan["steps"].as_array().unwrap().iter().any(|s| s["setting"] == "partition");
    let left = plan["left_out"].as_array().unwrap();
    assert!(partition || left.iter().any(|l| l["setting"] == "partition"), "{plan}");
    if partition {
        assert_eq!(text("exec.status"), "0", "{}", text("exec.err"));
        let ran = text("exec.out");
        let list = ran.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap();
        assert_eq!(list.trim(), cpu);
        // Fields 40 and 41 of stat: priority and policy.
        let stat: Vec<&str> = ran.lines().last().unwrap().split(' ').collect();
        assert_eq!((stat[39], stat[40]), ("1", "1"), "{ran}");
    } else {
        assert_eq!(text("exec.status"), "3");
        assert!(text("exec.err").contains("tune isolate LIST"), "{}", text("exec.err"));
    }

    // As before, each file and each thread that was there all the time.
    assert_eq!(text("before"), text("after"));
    assert_ne!(text("before"), text("during"), "something was changed");
    let there = |(key, _): &(&String, &String)| after.contains_key(*key);
    let (was, is): (Vec<_>, Vec<_>) = (
        before.iter().filter(there).collect(),
        after.iter().filter(|(key, _)| before.contains_key(*key)).collect(),
    );
    assert_eq!(was, is);
    assert!(states(&journals, "status").is_empty());
}

/// Kernel threads with their CPUs.
fn kernel_threads(folder: &Path) -> BTreeMap<(u64, String), String> {
    let out = call(folder, &["tune", "show", "threads", "--kernel", "--json", "-i0"]);
    let shown = json(&out);
    let key = |t: &Value| (t["tid"].as_u64().unwrap(), t["name"].as_str().unwrap().to_owned());
    let all = shown["threads"].as_array().unwrap().iter();
    // Workers of the kernel are renamed and moved all the time.
    all.map(|t| (key(t), t["affinity"].to_string()))
        .filter(|(key, _)| !key.1.starts_with("kworker"))
        .collect()
}

#[test]
fn kernel_threads_leave_a_cpu_and_return() {
    let _alone = alone();
    let Some(journals) = Journals::new() else { return };
    let Some(cpu) = spare_cpu() else {
        return skip("cpus", "isolating one CPU takes two");
    };
    let before = kernel_threads(journals.folder());
    let words = ["apply", "-c", &cpu, "--set", "kernel-threads=housekeeping", "--confirm", "30s"];
    let applied = answer(&journals, 0, &words);
    let during = kernel_threads(journals.folder());
    if applied["applied"] == true {
        let undone = answer(&journals, 0, &["undo"]);
        assert_eq!(undone["changes"][0]["left"], 0, "{undone}");
        assert_ne!(before, during, "{applied}");
    }
    let after = kernel_threads(journals.folder());
    let common: BTreeSet<_> = before.keys().filter(|k| after.contains_key(*k)).collect();
    assert!(!common.is_empty() || before.is_empty());
    for key in common {
        assert_eq!(before[key], after[key], "{key:?}");
    }
}

#[test]
fn a_program_is_run_on_isolated_cpus_only_where_there_are_some() {
    if let Some(why) = own_mounts_lack() {
        return skip("root", why);
    }
    // What the machine's own partition is, if it has one, is not touched; without one it is told how to get it.
    if tailbound_host_has_a_partition() {
        return skip("cgroup", "somebody has isolated CPUs of this machine");
    }
    let folder = folder();
    let mark = folder.path().join("ran");
    let mark = mark.display().to_string();
    let out = call(folder.path(), &["tune", "exec", "--policy", "fifo:1", "touch", &mark]);
    assert_eq!(status(&out), 3, "{}", stderr(&out));
    assert!(stderr(&out).contains("run `tailbound tune isolate LIST` first"), "{}", stderr(&out));
    assert!(!PathBuf::from(mark).exists(), "it did not run elsewhere");
}

fn tailbound_host_has_a_partition() -> bool {
    ["/sys/fs/cgroup/tailbound", "/sys/fs/cgroup/unified/tailbound"]
        .iter()
        .any(|p| Path::new(p).exists())
}

#[test]
fn settings_cure_checks_that_there_are_and_every_fix_names_a_setting_that_there_is() {
    let folder = folder();
    let listed = json(&call(folder.path(), &["tune", "settings", "--json"]));
    let checked = json(&call(folder.path(), &["check", "--json"]));
    let ids: BTreeSet<&str> =
        checked["checks"].as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap()).collect();
    let mut names = BTreeSet::new();
    for setting in listed["settings"].as_array().unwrap() {
        names.insert(setting["name"].as_str().unwrap());
        for cured in setting["cures"].as_array().unwrap() {
            assert!(ids.contains(cured.as_str().unwrap()), "{setting}");
        }
    }
    // And the other way round: what a fix tells people to set can be set.
    for check in tailbound_rules::catalogue() {
        let words = format!("{} {}", check.now, check.for_good);
        for (_, rest) in
            words.match_indices("tune set ").map(|(at, w)| (at, &words[at + w.len()..]))
        {
            let Some((name, value)) = rest.split(' ').next().and_then(|w| w.split_once('=')) else {
                continue;
            };
            assert!(names.contains(name), "{}: {words}", check.id);
            let setting = tailbound_tune::settings::named(name).unwrap();
            let value = value.trim_end_matches([',', ';', '.']);
            assert!(setting.value(value).is_ok(), "{}: {name}={value}", check.id);
        }
    }
}
