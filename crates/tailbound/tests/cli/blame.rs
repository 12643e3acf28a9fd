// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run --blame` on this machine, whatever it does: parts that add up, remedies that exist, and a tracing of
//! others that is the same before and after.
//!
//! Which cause is named is not asserted here: that depends on the machine (`bench/culprits.sh`, the
//! stage `lab`).

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tailbound_core::blame::{Cause, Remedy};
use tailbound_core::rules::Rule;

use crate::observe::{able, instances, tracing};
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

fn run(folder: &Path, words: &[&str]) -> Child {
    let always =
        [env!("CARGO_BIN_EXE_tailbound"), "run", "-q", "-o", "r.jsonl", "--warm-up", "200ms"];
    let load = ["-L", "none", "-i", "2ms"];
    let all: Vec<&str> = always.iter().chain(&load).chain(words).copied().collect();
    let mut command = tracing(&all);
    command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// What a shell says that sees tracefs.
fn shell(text: &str) -> String {
    let out = tracing(&["sh", "-c", text]).output().unwrap();
    assert!(out.status.success(), "{text}: {}", stderr(&out));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The settings of an instance, by their files; the top one's where it is none.
fn settings(instance: &str) -> String {
    let files = SETTINGS.join(" ");
    shell(&format!("cd {TRACEFS}/{instance} && for f in {files}; do echo \"$f: $(cat $f)\"; done"))
}

/// An instance of somebody else's, with settings of its own; removed when dropped.
struct Foreign(String);

impl Foreign {
    fn make() -> Self {
        let name = format!("instances/not-tailbound-{}", std::process::id());
        shell(&format!(
            "cd {TRACEFS} && mkdir {name} && cd {name} && echo 0 > tracing_on && echo boot > trace_clock && \
             echo 128 > buffer_size_kb && echo 1 > events/sched/sched_switch/enable"
        ));
        Self(name)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        drop(tracing(&["rmdir", &format!("{TRACEFS}/{}", self.0)]).status());
    }
}

/// Instances that runs of `pid` left.
fn left(pid: u32) -> usize {
    instances(pid).len()
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
    let rules = Rule::ALL.iter().filter_map(Rule::remedy);
    for remedy in Remedy::all().into_iter().chain(rules) {
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
    let all = || settings(".") + &settings(&foreign.0);
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

/// Takes tracefs and debugfs away, for what it starts alone, and tells its mounts before and after that.
const HIDDEN: &str = "for d in /sys/kernel/tracing /sys/kernel/debug; do \
    while [ -d $d ] && umount -l $d 2> /dev/null; do :; done; done; \
    cat /proc/self/mountinfo > before; \"$@\" & echo $! > pid; wait $!; s=$?; cat /proc/self/mountinfo > after; exit $s";

fn hidden(folder: &Path, words: &[&str]) -> Option<std::process::Output> {
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", HIDDEN, "sh"]).args(words).current_dir(folder);
    command.output().ok().filter(|out| folder.join("after").exists() || out.status.success())
}

#[test]
fn a_tracefs_that_nobody_mounted_is_mounted_for_the_run_alone() {
    if !able() {
        return;
    }
    let folder = folder();
    let words = ["run", "-q", "-D", "1s", "-o", "r.jsonl", "-L", "none", "--blame"];
    let all = [&[env!("CARGO_BIN_EXE_tailbound")][..], &words].concat();
    let Some(out) = hidden(folder.path(), &all) else {
        skip("root", "unshare(1) is missing, or may not");
        return;
    };
    assert!([0, 5].contains(&status(&out)), "{}", stderr(&out));
    let run = read(&folder.path().join("r.jsonl"));
    let tracer = run.header.machine.get("kernel.tracer").and_then(|f| f.as_str());
    assert!(tracer.is_some(), "read from it, too");
    let mounts = |when| std::fs::read_to_string(folder.path().join(when)).unwrap();
    assert!(!mounts("before").contains(TRACEFS) && mounts("before") == mounts("after"));
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    assert_eq!(left(pid.trim().parse().unwrap()), 0);
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
    // As docker gives it to root.
    let exe = env!("CARGO_BIN_EXE_tailbound");
    let few = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", exe];
    let Some(out) = hidden(folder.path(), &[&few[..], &words].concat()) else {
        skip("root", "unshare(1) or setpriv(1) is missing, or may not");
        return;
    };
    let said = stderr(&out);
    assert!(status(&out) == 3 && said.contains("--cap-add SYS_ADMIN"), "{said}");
    assert!(!folder.path().join("r.jsonl").exists());
}
