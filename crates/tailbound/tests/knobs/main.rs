// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every setting that this machine lets root change is changed and undone, by itself and in the profiles that come
//! with the program: the machine is as before, to the byte.
//!
//! A program of its own, because nothing else may be measured or changed meanwhile. Journals are those of the test.
//! Threads of the kernel are compared one by one, for they come and go; counters are passed over by name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "what was changed is said")]
#![expect(clippy::disallowed_methods, reason = "children of the test, waited for at once")]

#[path = "../cli/journals.rs"]
mod journals;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use journals::{Journals, entries};

/// One at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The program with journals of its own.
struct Apart(Journals);

impl Apart {
    fn new() -> Option<Self> {
        Journals::new().map(Self)
    }

    /// The answer as JSON, with its exit status.
    fn json(&self, words: &[&str]) -> (Value, i32) {
        let out = self.0.tailbound(&[words, &["--json"]].concat());
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let code = out.status.code().unwrap_or(-1);
        let value = serde_json::from_str(&text);
        let why = String::from_utf8_lossy(&out.stderr);
        assert!(value.is_ok() || code != 0, "{words:?}: {code}: {text} {why}");
        (value.unwrap_or_default(), code)
    }

    /// Settings, groups and threads' CPUs and policies, by name; no counters.
    fn captured(&self) -> BTreeMap<String, String> {
        let out = self.0.tailbound(&["capture", "--out", "machine", "--force"]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let all: BTreeMap<String, String> = entries(&self.0.folder().join("machine"))
            .into_iter()
            .filter(|(name, _)| !is_counter(name))
            .map(|(name, bytes)| (name, String::from_utf8_lossy(&bytes).into_owned()))
            .collect();
        assert!(all.keys().any(|n| n.contains("proc/sys/vm/")), "{:?}", all.keys());
        all
    }
}

/// Is this a file that alters by itself?
fn is_counter(name: &str) -> bool {
    const COUNTERS: [&str; 8] =
        ["uptime", "stat", "status", "loadavg", "meminfo", "interrupts", "softirqs", "spurious"];
    let last = name.rsplit('/').next().unwrap_or_default();
    COUNTERS.contains(&last)
        || ["pressure/", "cpuidle/state", "random/", "kmsg", "/time", "thermal"].iter().any(|w| name.contains(w))
        || ["scaling_cur_freq", "cpuinfo_cur_freq"].contains(&last)
        // Which of the allowed CPUs has an interrupt is the kernel's choice of the moment.
        || last.starts_with("effective_affinity")
        // Of recorders, which are no settings: one of a process that was killed stays until the next command removes it.
        || name.starts_with("sys/kernel/tracing/instances/")
        // The process that looks has mounts of its own, numbered anew each time.
        || name.starts_with("proc/self/")
        // Folders and links of threads that came or went.
        || name.split('/').any(|w| w.parse::<u32>().is_ok() && name.starts_with("proc/") && !name.contains("irq"))
}

/// CPUs and policy of each thread of the kernel, by number and start; programs choose theirs themselves.
fn threads(apart: &Apart) -> BTreeMap<(u64, u64), String> {
    let (shown, code) = apart.json(&["tune", "show", "threads", "--kernel", "-i", "0"]);
    assert_eq!(code, 0);
    let of = |t: &Value| {
        let number = |key: &str| t.get(key).and_then(Value::as_u64).unwrap_or_default();
        let word = |key: &str| t.get(key).map(ToString::to_string).unwrap_or_default();
        let placed = format!("{} {}", word("affinity"), word("policy"));
        ((number("tid"), number("start_ticks")), placed)
    };
    shown.get("threads").and_then(Value::as_array).unwrap().iter().map(of).collect()
}

fn the_same(what: &str, before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    for (name, text) in before {
        assert_eq!(after.get(name), Some(text), "after {what}: {name}");
    }
}

/// The last CPU, for real-time work, where there is another.
fn rt_cpu() -> Option<String> {
    let n = std::thread::available_parallelism().map_or(1, usize::from);
    if n < 2 {
        println!("skipped: settings for chosen CPUs: there is one CPU only");
        return None;
    }
    Some((n - 1).to_string())
}

/// What a setting may be, one of each kind: its words, and the least of its numbers.
fn values(text: &str) -> Vec<String> {
    let least = |word: &str| word.split(" to ").next().unwrap_or_default().to_owned();
    text.split('|').map(least).collect()
}

#[test]
fn each_setting_is_undone_exactly() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(apart) = Apart::new() else { return };
    let cpus: Vec<String> = rt_cpu().map(|c| format!("--rt-cpus={c}")).into_iter().collect();
    let (catalogue, _) = apart.json(&["tune", "settings"]);
    let (mut changed, before) = (Vec::new(), apart.captured());
    for setting in catalogue.get("settings").and_then(Value::as_array).unwrap() {
        let word = |key: &str| setting.get(key).and_then(Value::as_str).unwrap();
        let needs_cpus = setting.get("needs_cpus").and_then(Value::as_bool).unwrap();
        if needs_cpus && cpus.is_empty() {
            continue;
        }
        for value in values(word("values")) {
            let set = format!("{}={value}", word("name"));
            let cpus = cpus.iter().map(String::as_str).collect::<Vec<_>>();
            let (applied, code) = apart.json(&[&["tune", "set", &set][..], &cpus].concat());
            assert!([0, 1, 3].contains(&code), "{set}: {code}: {applied}");
            let made = applied.get("made").and_then(Value::as_u64).unwrap_or(0);
            if made > 0 {
                let (undone, code) = apart.json(&["tune", "undo"]);
                assert_eq!(code, 0, "{set}: {undone}");
                changed.push(set);
            }
        }
    }
    the_same(&changed.join(", "), &before, &apart.captured());
    println!("changed and undone: {}", changed.join(", "));
    assert!(changed.len() > 5, "hardly anything could be changed: {changed:?}");
}

#[test]
fn each_profile_is_undone_exactly() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (Some(apart), Some(cpu)) = (Apart::new(), rt_cpu()) else { return };
    let (profiles, _) = apart.json(&["tune", "profiles"]);
    for profile in profiles.get("profiles").and_then(Value::as_array).unwrap() {
        let name = profile.get("name").and_then(Value::as_str).unwrap();
        let (before, was) = (apart.captured(), threads(&apart));
        let (applied, code) = apart.json(&["tune", "apply", "--profile", name, "--rt-cpus", &cpu]);
        assert_eq!(code, 0, "{name}: {applied}");
        let (undone, code) = apart.json(&["tune", "undo"]);
        assert_eq!(code, 0, "{name}: {undone}");
        the_same(name, &before, &apart.captured());
        let now = threads(&apart);
        for (id, text) in was {
            assert!(
                now.get(&id).is_none_or(|n| *n == text),
                "{name}: {text} is {:?}",
                now.get(&id)
            );
        }
    }
}
