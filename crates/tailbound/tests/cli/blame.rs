// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run --blame` on this machine, whatever it does: parts that add up, remedies that exist, and a tracing of
//! others that is the same before and after.
//!
//! Which cause is named is not asserted here: that depends on the machine (`bench/culprits.sh`, the
//! stage `lab`).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tailbound_core::blame::{Cause, Remedy};

use crate::{PATIENCE, call, folder, is_root, read, skip, status, stderr};

const TRACEFS: &str = "/sys/kernel/tracing";
/// What others may have set, in the top instance and in any other.
const SETTINGS: [&str; 8] = [
    "tracing_on",
    "current_tracer",
    "buffer_size_kb",
    "trace_clock",
    "set_event",
    "set_event_pid",
    "trace_options",
    "tracing_cpumask",
];

/// Can `--blame` work here?
fn able() -> bool {
    let own = std::fs::read_link("/proc/self/ns/pid");
    // Source: include/linux/proc_ns.h, PROC_PID_INIT_INO.
    let first = own.is_ok_and(|own| own.as_os_str() == "pid:[4026531836]");
    let able = is_root() && first && Path::new(TRACEFS).join("instances").is_dir();
    if !able {
        skip("tracefs", "--blame needs root, a mounted tracefs and the first PID namespace");
    }
    able
}

fn run(folder: &Path, words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailbound"));
    command.args(["run", "-q", "-o", "r.jsonl", "--warm-up", "200ms", "-L", "none", "-i", "2ms"]);
    command.args(words).current_dir(folder).env("NO_COLOR", "1");
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The settings of an instance, by their files; the top one's where it is none.
fn settings(instance: Option<&str>) -> BTreeMap<String, String> {
    let folder = match instance {
        Some(name) => Path::new(TRACEFS).join("instances").join(name),
        None => Path::new(TRACEFS).to_path_buf(),
    };
    let read = |name: &&str| {
        let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        (format!("{instance:?} {name}"), text)
    };
    SETTINGS.iter().map(read).collect()
}

/// An instance of somebody else's, with settings of its own; removed when dropped.
struct Foreign(String);

impl Foreign {
    fn make() -> Self {
        let name = format!("not-tailbound-{}", std::process::id());
        let folder = Path::new(TRACEFS).join("instances").join(&name);
        std::fs::create_dir(&folder).unwrap();
        let set = |file: &str, value: &str| std::fs::write(folder.join(file), value).unwrap();
        set("tracing_on", "0");
        set("trace_clock", "boot");
        set("buffer_size_kb", "128");
        set("events/sched/sched_switch/enable", "1");
        Self(name)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        drop(std::fs::remove_dir(Path::new(TRACEFS).join("instances").join(&self.0)));
    }
}

/// Instances that runs of `pid` left.
fn left(pid: u32) -> usize {
    let own = format!("tailbound-{pid}-");
    let names = std::fs::read_dir(Path::new(TRACEFS).join("instances")).unwrap().flatten();
    names.filter(|n| n.file_name().to_string_lossy().starts_with(&own)).count()
}

#[test]
fn the_parts_of_each_sample_are_its_latency_to_the_nanosecond() {
    if !able() {
        return;
    }
    let folder = folder();
    // Above 1 ns: every wake-up is late enough.
    let ended = run(folder.path(), &["-D", "1s", "--blame=1ns"]).wait().unwrap();
    assert!(ended.code().is_some());
    let run = read(&folder.path().join("r.jsonl"));
    assert!(!run.blames.is_empty());
    for record in &run.blames {
        let sum: i64 = record.parts.iter().map(|p| p.ns).sum();
        assert_eq!(sum, record.latency_ns, "{record:#?}");
        let mut to_ns = 0;
        for part in &record.parts {
            assert!(part.from_ns == to_ns && part.ns > 0, "parts adjoin: {record:#?}");
            to_ns += part.ns;
        }
        let tracing = record.parts.iter().filter(|p| p.cause == Cause::Tracing);
        assert_eq!(tracing.map(|p| p.ns).sum::<i64>(), record.tracing_ns);
    }
    // And all of it can be told, by each way.
    for words in [["blame", "r.jsonl", "--color=never"], ["blame", "r.jsonl", "--json"]] {
        let out = call(folder.path(), &words);
        assert_eq!(status(&out), 0, "{}", stderr(&out));
    }
}

#[test]
fn remedies_name_checks_and_settings_that_exist() {
    let checks: Vec<&str> = tailbound_rules::catalogue().iter().map(|c| c.id).collect();
    for remedy in Remedy::all() {
        if let Some(id) = remedy.check {
            assert!(checks.contains(&id), "{id}: {}", remedy.text);
        }
        if let Some(setting) = remedy.setting {
            let (name, value) = setting.split_once('=').unwrap();
            let known = tailbound_tune::settings::named(name).unwrap_or_else(|e| panic!("{e}"));
            assert!(known.value(value).is_ok(), "{setting}");
        }
    }
}

#[test]
fn tracing_of_others_is_the_same_before_and_after_also_of_a_killed_run() {
    if !able() {
        return;
    }
    let foreign = Foreign::make();
    let all = || {
        let mut all = settings(None);
        all.extend(settings(Some(&foreign.0)));
        all
    };
    let before = all();
    let first = folder();
    assert!(run(first.path(), &["-D", "1s", "--blame"]).wait().unwrap().code().is_some());
    assert_eq!(all(), before);
    let second = folder();
    let mut child = run(second.path(), &["-D", "60s", "--blame"]);
    let begun = Instant::now();
    while left(child.id()) == 0 {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none() && begun.elapsed() < PATIENCE, "{ended:?}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(all(), before, "beside it");
    crate::send(child.id(), "KILL");
    assert!(child.wait().is_ok());
    let third = folder();
    assert!(run(third.path(), &["-D", "1s", "--blame"]).wait().unwrap().code().is_some());
    assert_eq!(left(child.id()), 0, "its guard or the next run removed it");
    assert_eq!(all(), before);
}

#[test]
fn without_tracefs_or_rights_it_says_what_is_missing() {
    let folder = folder();
    let words = ["run", "-q", "-D", "1s", "-o", "r.jsonl", "-L", "none", "--blame"];
    if !is_root() {
        let out = call(folder.path(), &words);
        assert_eq!(status(&out), 3);
        assert!(stderr(&out).contains("root"), "{}", stderr(&out));
        return;
    }
    // A tracefs that lies under something else is as good as none; of this process's mounts alone.
    let hidden = "for d in /sys/kernel/tracing /sys/kernel/debug; do \
                  [ ! -d $d ] || umount -l $d 2> /dev/null; done; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", hidden, "sh", env!("CARGO_BIN_EXE_tailbound")]).args(words);
    let Ok(out) = command.current_dir(folder.path()).output() else {
        skip("root", "unshare(1) is missing");
        return;
    };
    let said = stderr(&out);
    assert!(status(&out) == 3 && said.contains("mount -t tracefs"), "{said}");
    assert!(!folder.path().join("r.jsonl").exists());
}
