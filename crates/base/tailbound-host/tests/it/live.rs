// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine itself: what can really be made to happen, happens.
//!
//! Needs root for real-time threads and control groups; says so otherwise.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tailbound_core::plan::Clock;
use tailbound_core::record::Fact;
use tailbound_core::{Impact, Policy};
use tailbound_host::{Cpus, Root, Switches, Watch, WatchPlan, inventory};
use tailbound_sys::sched;

use tailbound_testing::skip;

const GROUP: &str = "TAILBOUND_TEST_GROUP";

fn begun(root: &Root, plan: &WatchPlan) -> Watch {
    Watch::begin(root, plan, inventory(root), Switches::now(root))
}

#[test]
fn this_machine_is_read() {
    let facts = inventory(&Root::real());
    let release = facts.get("kernel.release").and_then(Fact::as_str).unwrap_or_default();
    assert!(!release.is_empty());
    assert!(matches!(facts.get("clock.resolution_ns"), Some(Fact::Value(_))), "{facts:?}");
    assert!(matches!(facts.get("cpu.online"), Some(Fact::Value(_))));
}

#[test]
fn this_machines_cpus_resolve() {
    let cpus = Cpus::read(&Root::real()).expect("CPUs");
    let all = cpus.resolve("all").expect("some CPU");
    let kernel = sched::affinity(0).expect("the affinity of this thread");
    assert_eq!(all, kernel.into_iter().collect());
    assert!(cpus.resolve("8191").is_err());
}

#[test]
fn a_sleeping_thread_of_higher_priority_is_found() {
    let (ready, is_ready) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let sleeper = std::thread::spawn(move || {
        let fifo =
            sched::Attributes { policy: sched::SCHED_FIFO, priority: 98, ..Default::default() };
        let set = sched::set(0, &fifo).map(|()| sched::gettid());
        let _ = ready.send(set);
        let _ = ended.recv();
    });
    match is_ready.recv().expect("the thread's word") {
        Err(e) => skip("root", e),
        Ok(tid) => {
            let root = Root::real();
            let cpus = Cpus::read(&root).and_then(|c| c.resolve("all")).expect("CPUs");
            let plan = WatchPlan {
                cpus,
                policy: Policy::Fifo(95),
                clock: Clock::Monotonic,
                threads: Vec::new(),
            };
            let found = begun(&root, &plan).tick();
            let found_it = found.iter().find(|f| f.id == "higher-priority").expect("the finding");
            assert_eq!(found_it.impact, Impact::Notice);
            // Others may run on this machine as well, and only some are named.
            let named = found_it.title.contains(&format!("(fifo:98) thread {tid}:"));
            assert!(named || found_it.title.contains(" more"), "{}", found_it.title);
        }
    }
    drop(end);
    sleeper.join().expect("the thread ends");
}

/// A control group with a quota of a tenth of a CPU, removed when dropped.
struct Group(PathBuf);

impl Group {
    fn make() -> Result<Self, String> {
        let info = fs::read_to_string("/proc/self/mountinfo").map_err(|e| e.to_string())?;
        let mount = |kind: &str, option: &str| {
            info.lines()
                .filter(|l| {
                    l.contains(kind)
                        && l.rsplit(' ').next().is_some_and(|o| o.split(',').any(|o| o == option))
                })
                .find_map(|l| l.split(' ').nth(4).map(PathBuf::from))
        };
        let name = format!("tailbound-test-{}", std::process::id());
        let say = |e: std::io::Error| format!("a control group cannot be made: {e}");
        if let Some(v1) = mount(" - cgroup ", "cpu") {
            let dir = v1.join(name);
            fs::create_dir(&dir).map_err(say)?;
            let group = Self(dir);
            fs::write(group.0.join("cpu.cfs_period_us"), "20000").map_err(say)?;
            fs::write(group.0.join("cpu.cfs_quota_us"), "2000").map_err(say)?;
            return Ok(group);
        }
        let v2 = PathBuf::from("/sys/fs/cgroup");
        let on = fs::read_to_string(v2.join("cgroup.subtree_control")).map_err(say)?;
        if !on.split_whitespace().any(|c| c == "cpu") {
            return Err("the cpu controller is not enabled for groups".to_owned());
        }
        let dir = v2.join(name);
        fs::create_dir(&dir).map_err(say)?;
        let group = Self(dir);
        fs::write(group.0.join("cpu.max"), "2000 20000").map_err(say)?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_real_quota_is_found() {
    let group = match Group::make() {
        Ok(group) => group,
        Err(why) => return skip("root", why),
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "this very test again, in the group; it ends by itself and is waited for"
    )]
    let child = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "live::in_the_group", "--ignored", "--nocapture"])
        .env(GROUP, &group.0)
        .output()
        .expect("the child runs");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "started by a_real_quota_is_found inside a control group"]
fn in_the_group() {
    let group = PathBuf::from(std::env::var_os(GROUP).expect("the group's directory"));
    fs::write(group.join("cgroup.procs"), "0").expect("this process enters the group");
    let plan = WatchPlan {
        cpus: tailbound_core::CpuSet::default(),
        policy: Policy::Other,
        clock: Clock::Monotonic,
        threads: Vec::new(),
    };
    let root = Root::real();
    let mut watch = begun(&root, &plan);
    let deadline = Instant::now() + Duration::from_secs(180);
    loop {
        let burnt = (0..2_000_000u64).fold(0, |a, b| a ^ std::hint::black_box(b));
        let found = watch.tick();
        if let Some(f) = found.iter().find(|f| f.id == "cgroup-quota") {
            assert!(f.title.contains("tailbound-test-"), "{} {burnt}", f.title);
            return;
        }
        assert!(Instant::now() < deadline, "never held back");
    }
}
