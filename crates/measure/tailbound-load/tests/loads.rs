// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads for real: each works, counts what it says it counts, stops, and leaves nothing
//! behind, also when the process that started it is killed.
//!
//! The parent process is the example `load`, which `cargo test` builds (with
//! `--test loads` alone it does not: then an old one would be tested); its descendants are
//! found by a variable in their environment.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tailbound_core::Impact;
use tailbound_core::Spec;
use tailbound_load::{CATALOGUE, LoadEnd, LoadError, Loads, StartOptions};
use tailbound_sys::process::{self, Pid, is_root};
use tailbound_sys::{ipc, sched};
use tailbound_testing::skip;

const MARK: &str = "TAILBOUND_LOAD_TEST";
/// Nobody's user and group.
const NOBODY: u32 = 65_534;
/// One of each load, and the variants that start in their own way.
const SPECS: [&str; 42] = [
    "hackbench:groups=1",
    "hackbench:groups=1,ipc=pipe,mode=thread",
    "hackbench:groups=1,ipc=inet,fds=5",
    "memory:block=4M",
    "ping-flood:flows=2",
    "ping-flood:veth=yes,flows=2",
    "clock",
    "cpu:cpus=0",
    "fork:tasks=3",
    "fork:exec=yes,tasks=2,cpus=0",
    "mmap:size=4M,tasks=2",
    "mmap:shootdown=yes,size=1M",
    "file:size=1M,tasks=2",
    "disk:size=1M,tasks=2",
    "tlb:size=4M",
    "timers:timers=10",
    "timers:kind=posix,timers=5",
    "interrupts",
    "syscalls",
    "syscalls:call=getppid,cpus=0",
    "calls",
    "calls:tasks=2,do=map.m0.64K+touch.m0+fork+sleep.100us",
    "ping-pong:pairs=1",
    "ping-pong:ipc=inet,pairs=1",
    "ping-pong:ipc=futex,mode=thread,place=same",
    "compile:jobs=1",
    "download:flows=2,size=64K",
    "stress-ng:stressor=cpu,workers=1,slice=1s",
    "culprit:kind=higher-priority",
    "culprit:kind=fair-server",
    "culprit:kind=long-call,busy=50us",
    "culprit:kind=kworker,busy=200us",
    "culprit:kind=softirq,busy=100us",
    "culprit:kind=interrupts-off,busy=100us",
    "culprit:kind=lock-spin,busy=100us",
    "culprit:kind=console,interval=500ms",
    "culprit:kind=inversion",
    "culprit:kind=inversion-pi",
    "culprit:kind=page-faults",
    "cmd:line=sleep 1000",
    "cmd:line=(setsid sleep 1001 & sleep 1002 &) ; sleep 1003",
    "cmd:repeat=yes,line=true",
];

fn example() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let path = path.join("examples/load");
    assert!(path.exists(), "build it first: cargo build -p tailbound-load --example load");
    path
}

/// Loads that an ordinary user cannot have.
fn takes_rights(spec: &str) -> bool {
    let kinds = [
        "kind=higher-priority",
        "kind=fair-server",
        "kind=console",
        "kind=inversion",
        "kind=page-faults",
    ];
    spec.starts_with("ping-flood") || kinds.iter().any(|kind| spec.contains(kind))
}

fn spec_works_here(spec: &str) -> bool {
    if takes_rights(spec) && !is_root() {
        let what = if spec.starts_with("ping-flood") { "net" } else { "root" };
        skip(what, format!("{spec} needs root"));
        return false;
    }
    let fifo = sched::Attributes { policy: sched::SCHED_FIFO, priority: 1, ..Default::default() };
    let tried = || std::thread::spawn(move || sched::set(0, &fifo)).join().unwrap();
    let realtime = ["-priority", "fair-server", "inversion", "page-faults"];
    if realtime.iter().any(|kind| spec.contains(kind))
        && let Err(e) = tried()
    {
        skip("rt", e);
        return false;
    }
    let one_cpu = std::thread::available_parallelism().is_ok_and(|n| n.get() < 2);
    if spec.contains("kind=lock-spin") && one_cpu {
        skip("cpus", "a lock is spun for by another CPU, and this machine has one");
        return false;
    }
    if spec.contains("page-faults")
        && let Err(e) = tailbound_sys::paging::Paged::new(1)
    {
        skip("userfaultfd", e);
        return false;
    }
    let file = |path| fs::read_to_string(path).unwrap_or_default();
    if spec.contains("kind=console") && file("/proc/consoles").is_empty() {
        skip("console", "this machine has none");
        return false;
    }
    if spec.contains("kind=fair-server") && file("/proc/sys/kernel/sched_rt_runtime_us") == "-1\n" {
        skip("rt-throttling", "kernel.sched_rt_runtime_us is -1");
        return false;
    }
    let needed = match spec.split([':', ',']).next().unwrap_or_default() {
        "compile" | "download" => "cc",
        "stress-ng" => "stress-ng",
        _ => return true,
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(needed).is_file());
    if !found {
        skip(needed, format!("{needed} is not installed"));
    }
    found
}

#[expect(clippy::disallowed_methods, reason = "the parent whose death is under test")]
fn load_command(mark: &str) -> Command {
    let mut command = Command::new(example());
    command.env(MARK, mark).stdin(Stdio::null());
    command
}

/// Processes that have `mark` in their environment, dead ones excepted.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|b| *b == 0).any(|v| v == wanted.as_bytes()) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.push(format!("{}: {line}", entry.file_name().display()));
        }
    }
    found
}

fn wait_ms(ms: i32) {
    ipc::wait_readable(&[], ms).unwrap();
}

/// How long a test waits for what must come: no statement about this machine, however busy.
const PATIENCE: Duration = Duration::from_secs(180);

fn eventually(mut true_yet: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if true_yet() {
            return true;
        }
        if start.elapsed() > PATIENCE {
            return false;
        }
        wait_ms(20);
    }
}

fn nothing_left(mark: &str, spec: &str) {
    // SIGKILL works at once, but a busy machine takes its time to run the dying.
    eventually(|| marked(mark).is_empty());
    assert_eq!(marked(mark), Vec::<String>::new(), "left behind by {spec}");
    let devices = fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!devices.contains("wire0") && !devices.contains("peer0"), "{spec}: {devices}");
}

fn kill_while_working(mut parent: Child, mark: &str, spec: &str, tasks: usize) {
    let working = eventually(|| marked(mark).len() >= tasks);
    wait_ms(300);
    process::kill(Pid(parent.id().cast_signed()), process::SIGKILL).unwrap();
    parent.wait().unwrap();
    assert!(working, "{spec} never had {tasks} processes");
    nothing_left(mark, spec);
}

/// Parent, worker, and what the load starts.
fn tasks_of(spec: &str) -> usize {
    match spec {
        "hackbench:groups=1" => 42,
        s if s.contains("fds=5") => 12,
        s if s.contains("setsid") => 6,
        "fork:tasks=3" | "download:flows=2,size=64K" => 5,
        s if s.starts_with("compile") || s.starts_with("stress-ng") => 3,
        s if s.contains("tasks=2") || s.contains("ping-pong:pairs=1") => 4,
        s if s.starts_with("cmd:line") => 3,
        _ => 2,
    }
}

fn start(spec: &str) -> Loads {
    let spec: Spec = spec.parse().unwrap();
    Loads::start(&[spec], &StartOptions::new(example())).unwrap()
}

fn stop(loads: &mut Loads) -> LoadEnd {
    loads.stop().remove(0)
}

#[test]
fn a_benchmark_ends_is_timed_and_leaves_nothing_when_interrupted() {
    let how = StartOptions::new(example());
    let cases = [
        ("arithmetic:loops=2000,cpus=0", 2000),
        ("messages:groups=1,fds=5,loops=20", 500),
        ("file:loops=2,size=64K,tasks=1", 256),
        ("switch:loops=50,cpus=0", 50),
        ("pipe:loops=50,pairs=2", 100),
        ("socket:loops=50,pairs=1", 50),
        ("syscall:loops=1234,cpus=0", 1234),
        ("cmd:sleep 0.1", 1),
    ];
    for (text, count) in cases {
        let spec = tailbound_load::benchmark(text).unwrap();
        let done = tailbound_load::run_benchmark(&spec, 7, &how, &mut || false).unwrap().unwrap();
        assert_eq!((done.failed, done.count, done.repetition), (None, count, 7), "{text}");
        let told: u64 = done.intervals.iter().map(|i| i.count).sum();
        assert_eq!(told, count, "{text}");
        assert!(done.real_ns > 0 && done.user_ns >= 0 && done.sys_ns >= 0, "{text}");
        if text.starts_with("arithmetic") {
            assert!(done.user_ns + done.sys_ns > 0, "{text}");
        }
        if text.starts_with("cmd") {
            assert!(done.real_ns >= 100_000_000, "{text}: {}", done.real_ns);
        }
    }
    let failing = tailbound_load::benchmark("cmd:exit 3").unwrap();
    let failed = tailbound_load::run_benchmark(&failing, 1, &how, &mut || false).unwrap().unwrap();
    assert!(failed.failed.is_some_and(|why| why.contains("exit status 3")));
    let long = tailbound_load::benchmark("cmd:sleep 1017 & sleep 1017").unwrap();
    let interrupted = tailbound_load::run_benchmark(&long, 1, &how, &mut || true);
    assert_eq!(interrupted, Ok(None));
    let left = || {
        fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            fs::read(entry.path().join("cmdline")).unwrap_or_default() == b"sleep\x001017\0"
        })
    };
    assert!(eventually(|| !left()), "sleep 1017 lives on");
}

#[test]
fn every_load_works_counts_and_stops() {
    for spec in SPECS {
        if !spec_works_here(spec) {
            continue;
        }
        let mut loads = start(spec);
        loads.ready(PATIENCE).unwrap();
        let mut done = 0;
        assert!(
            eventually(|| {
                for sample in loads.poll() {
                    assert!(sample.span_ns > 0, "{spec}");
                    assert_eq!(sample.record(sample.at_ns).t_ns, 0);
                    done += sample.count;
                }
                done > 0
            }),
            "{spec} counted nothing"
        );
        let end = stop(&mut loads);
        assert_eq!((end.failure, end.ended), (None, None), "{spec}");
        assert!(end.total >= done, "{spec}");
        let name = spec.split(':').next().unwrap();
        let kind = CATALOGUE.iter().find(|k| k.name == name).unwrap();
        assert_eq!(end.unit, kind.unit);
        assert!(loads.findings().iter().all(|f| f.impact == Impact::Notice), "{spec}");
    }
}

#[test]
fn every_load_of_the_catalogue_is_tried() {
    let tried = |name| SPECS.iter().any(|spec| spec.split(':').next() == Some(name));
    for kind in CATALOGUE {
        assert!(tried(kind.name), "SPECS has no {}", kind.name);
    }
}

#[test]
fn nothing_is_left_after_a_normal_end() {
    for spec in SPECS {
        if !spec_works_here(spec) {
            continue;
        }
        let mark = format!("end-{}-{spec}", std::process::id());
        let out: Output = load_command(&mark).args(["--duration", "600ms", spec]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        // Beside the storms of the other tests a load may not get to anything in this time; it
        // says so, and has to clean up all the same.
        assert!(out.status.success() || said.contains("load-idle"), "{spec}: {said}");
        // Not eventually where the kernel ends a namespace as a whole: once it has ended, everything
        // has. Without that right, what was killed may still be on its way out.
        if is_root() {
            assert_eq!(marked(&mark), Vec::<String>::new(), "left behind by {spec}");
        }
        nothing_left(&mark, spec);
    }
}

#[test]
fn nothing_is_left_when_the_parent_is_killed() {
    for spec in SPECS {
        if !spec_works_here(spec) {
            continue;
        }
        let mark = format!("kill-{}-{spec}", std::process::id());
        let parent = load_command(&mark).arg(spec).stdout(Stdio::null()).spawn().unwrap();
        kill_while_working(parent, &mark, spec, tasks_of(spec));
    }
}

#[test]
fn no_file_is_left_in_the_folder_of_a_killed_load() {
    let dir = std::env::temp_dir().join(format!("tailbound-file-load-{}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    let spec = format!("file:path={},size=300K,tasks=2,sync=no", dir.display());
    let mark = format!("file-{}", std::process::id());
    let parent = load_command(&mark).arg(&spec).stdout(Stdio::null()).spawn().unwrap();
    kill_while_working(parent, &mark, &spec, 4);
    let left: Vec<_> = fs::read_dir(&dir).unwrap().flatten().map(|e| e.path()).collect();
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(left, Vec::<PathBuf>::new());
}

/// Without the right to a PID namespace the worker itself must find and end them all.
#[test]
fn nothing_is_left_when_an_unprivileged_parent_is_killed() {
    if !is_root() {
        skip("root", "only root can become another user");
        return;
    }
    for spec in SPECS.iter().filter(|s| !takes_rights(s) && spec_works_here(s)) {
        let mark = format!("user-{}-{spec}", std::process::id());
        let mut command = load_command(&mark);
        command.arg(spec).stdout(Stdio::null()).uid(NOBODY).gid(NOBODY);
        match command.spawn() {
            Ok(parent) => kill_while_working(parent, &mark, spec, tasks_of(spec)),
            Err(e) => return skip("root", format!("user {NOBODY} cannot run the example: {e}")),
        }
    }
}

#[test]
fn a_culprit_without_the_right_to_it_says_what_it_needs() {
    if !is_root() {
        skip("root", "only root can become another user");
        return;
    }
    for kind in ["higher-priority", "fair-server", "console", "inversion", "page-faults"] {
        let spec = format!("culprit:kind={kind}");
        if !spec_works_here(&spec) {
            continue;
        }
        let mut command = load_command("culprit");
        command.args(["--duration", "1s", &spec]).uid(NOBODY).gid(NOBODY);
        match command.output() {
            Ok(out) => {
                let text = String::from_utf8_lossy(&out.stdout);
                assert!(text.contains("load-failed") && text.contains("root"), "{kind}: {text}");
            }
            Err(e) => return skip("root", format!("user {NOBODY} cannot run the example: {e}")),
        }
    }
}

/// The worker of an unprivileged load dies with what it started still running.
#[test]
fn nothing_is_left_when_an_unprivileged_worker_is_killed() {
    if !is_root() {
        skip("root", "only root can become another user");
        return;
    }
    let spec = "cmd:line=sleep 1004 & sleep 1005";
    let mark = format!("worker-{}", std::process::id());
    let mut command = load_command(&mark);
    command.arg(spec).stdout(Stdio::piped()).uid(NOBODY).gid(NOBODY);
    let parent = match command.spawn() {
        Ok(parent) => parent,
        Err(e) => return skip("root", format!("user {NOBODY} cannot run the example: {e}")),
    };
    let working = eventually(|| marked(&mark).len() >= 5);
    assert!(working, "{:?}", marked(&mark));
    process::kill(worker_of(Pid(parent.id().cast_signed()), spec), process::SIGKILL).unwrap();
    let out = parent.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("load-failed") && text.contains("signal 9"), "{text}");
    nothing_left(&mark, spec);
}

#[test]
fn an_unprivileged_user_is_refused_in_clear_words() {
    if !is_root() {
        skip("root", "only root can become another user");
        return;
    }
    let mark = format!("refused-{}", std::process::id());
    let said = |script: &str, spec: &str| {
        #[expect(clippy::disallowed_methods, reason = "a shell that lowers a limit first")]
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("{script} exec \"$0\" --duration 2s \"$1\""));
        command.arg(example()).arg(spec).env(MARK, &mark).uid(NOBODY).gid(NOBODY);
        let out = command.output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let (probe, text) = said("", "cpu");
    if probe != Some(0) {
        return skip("root", format!("user {NOBODY} cannot run the example: {text}"));
    }
    let (code, text) = said("ulimit -n 100;", "hackbench:mode=thread,groups=2");
    assert!(code == Some(1) && text.contains("ulimit -n"), "{text}");
    let (code, text) = said("", "ping-flood:veth=yes");
    assert!(code == Some(1) && text.contains("not permitted"), "{text}");
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/ping_group_range").unwrap_or_default();
    let range: Vec<u32> = allowed.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let (code, text) = said("", "ping-flood");
    if range.first() <= Some(&NOBODY) && range.get(1) >= Some(&NOBODY) {
        assert!(code == Some(0) && text.contains("ping sockets"), "{text}");
    } else {
        assert!(code == Some(1) && text.contains("ping_group_range"), "{text}");
    }
    nothing_left(&mark, "refused loads");
}

#[test]
fn a_finite_hackbench_passes_exactly_its_messages() {
    for ipc in ["socketpair", "pipe", "inet"] {
        for mode in ["process", "thread"] {
            let spec = format!("hackbench:ipc={ipc},mode={mode},groups=2,fds=3,loops=7,size=5000");
            let mut loads = start(&spec);
            assert!(eventually(|| !loads.any_running()), "{spec}");
            let end = stop(&mut loads);
            assert_eq!((end.total, end.failure), (2 * 3 * 3 * 7, None), "{spec}");
            assert!(end.elapsed_ns.is_some_and(|ns| ns > 0), "{spec}");
            assert_eq!(loads.findings().first().map(|f| f.id.as_str()), Some("load-ended"));
        }
    }
}

#[test]
fn a_load_that_is_none_is_a_finding() {
    for (spec, id, words) in [
        ("cmd:line=echo why not >&2; exit 3", "load-failed", "exit status 3"),
        ("cmd:line=echo why not >&2; exit 3", "load-failed", "why not"),
        ("cmd:line=true", "load-ended", "exit status 0"),
        ("memory:block=1024G", "load-failed", "block="),
        ("mmap:size=1024G", "load-failed", "size="),
        ("file:size=100000G", "load-failed", "size="),
        ("file:path=/nonexistent", "load-failed", "/nonexistent"),
        ("file:path=/proc", "load-failed", "a folder you may write to"),
    ] {
        let mut loads = start(spec);
        assert!(eventually(|| !loads.any_running()), "{spec}");
        stop(&mut loads);
        let findings = loads.findings();
        let found = findings.iter().find(|f| f.id == id);
        assert!(found.is_some_and(|f| f.title.contains(words)), "{spec}: {findings:?}");
        assert!(found.is_some_and(|f| f.impact == Impact::Doubt), "{spec}: {findings:?}");
    }
}

/// The worker of `spec`, a child of this process.
fn worker(spec: &str) -> Pid {
    worker_of(process::own_pid(), spec)
}

fn worker_of(parent: Pid, spec: &str) -> Pid {
    let children = process::descendants(parent);
    let is_it = |pid: &Pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|b| *b == 0).any(|word| word == spec.as_bytes())
    };
    children.into_iter().find(is_it).unwrap()
}

#[test]
fn a_killed_worker_is_a_finding() {
    let spec = "cpu:cpus=0";
    let mut loads = start(spec);
    loads.ready(PATIENCE).unwrap();
    process::kill(worker(spec), process::SIGKILL).unwrap();
    assert!(eventually(|| !loads.any_running()));
    assert!(loads.findings().iter().any(|f| f.id == "load-failed" && f.title.contains("signal 9")));
}

/// A value of /proc/PID/status.
fn status(pid: Pid, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':')).unwrap_or("");
    value.trim().to_owned()
}

#[test]
fn nothing_of_a_real_time_parent_is_handed_down() {
    let own = sched::get(0).unwrap();
    let fifo = sched::Attributes { policy: sched::SCHED_FIFO, priority: 7, ..own };
    if let Err(e) = sched::set(0, &fifo) {
        return skip("rt", e);
    }
    let locked = tailbound_sys::mem::lock_all();
    let spec = "hackbench:groups=1,fds=2,size=77";
    let mut loads = start(spec);
    let ready = loads.ready(PATIENCE);
    sched::set(0, &own).unwrap();
    ready.unwrap();
    if let Err(e) = locked {
        skip("rt", e);
    }
    let supervisor = worker(spec);
    let tasks = process::descendants(supervisor);
    assert_eq!(tasks.len(), 4);
    for pid in tasks.iter().copied().chain([supervisor]) {
        let it = sched::get(pid.0).unwrap();
        assert_eq!(it.policy, sched::SCHED_OTHER);
        assert!(it.nice == 0 || pid == supervisor, "nice {}", it.nice);
        assert_eq!(status(pid, "VmLck"), "0 kB");
        let adj = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        assert_eq!(adj.trim(), "500");
    }
    for pid in tasks {
        assert_eq!(status(pid, "SigBlk"), "0000000000000000");
    }
    // Session leader: field 6 of the line, 4 after the name.
    let stat = fs::read_to_string(format!("/proc/{supervisor}/stat")).unwrap();
    let session = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap();
    assert_eq!(session, supervisor.to_string(), "Ctrl-C at the terminal must not reach it");
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let how = StartOptions::new(example());
    let refused = |spec: &str| {
        Loads::start(&[spec.parse().unwrap()], &how).map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused("cpu:cpus=0,8000").contains("8000 is not online"));
    assert!(refused("hackbench:ipc=doves").contains("socketpair"));
    let nowhere = StartOptions::new("/nonexistent/tailbound");
    let error = Loads::start(&["cpu".parse().unwrap()], &nowhere).map(|_| ()).unwrap_err();
    assert!(matches!(&error, LoadError::Start { .. }), "{error}");
    assert!(error.to_string().contains("/nonexistent/tailbound"), "{error}");
}

#[test]
fn a_default_hackbench_and_others_run_side_by_side() {
    let specs: Vec<Spec> =
        ["hackbench", "memory:block=1M", "clock"].iter().map(|s| s.parse().unwrap()).collect();
    let mut loads = Loads::start(&specs, &StartOptions::new(example())).unwrap();
    loads.ready(PATIENCE).unwrap();
    let ends = loads.stop();
    assert!(ends.iter().all(|e| e.total > 0 && e.failure.is_none()), "{ends:?}");
    assert_eq!(ends.iter().map(|e| e.load).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(loads.stop(), ends, "stopping twice changes nothing");
}

/// Interrupts of a kind that every CPU has had, by the kernel's count.
fn interrupts(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/interrupts").unwrap_or_default();
    let line = text.lines().find_map(|l| l.trim().strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().map_while(|w| w.parse::<u64>().ok()).sum()
}

/// A voluntary or involuntary switch of any thread of `pid`.
fn switches(pid: Pid) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |text: String| -> u64 {
        let lines = text.lines().filter(|l| l.contains("ctxt_switches"));
        lines.filter_map(|l| l.split_whitespace().last()?.parse::<u64>().ok()).sum()
    };
    tasks.filter_map(|t| fs::read_to_string(t.path().join("status")).ok()).map(of).sum()
}

/// The kernel's own counters see what a load says it does.
#[test]
fn what_a_load_counts_is_what_the_kernel_sees() {
    let counted = |spec: &str, kernel: &dyn Fn(Pid) -> u64, share: f64| {
        let mut loads = start(spec);
        loads.ready(PATIENCE).unwrap();
        let supervisor = worker(spec);
        // From one report to another, each fresh: a busy machine may bring them late.
        let fresh = |loads: &mut Loads| loads.poll().iter().map(|s| s.count).sum::<u64>();
        loads.poll();
        assert!(eventually(|| fresh(&mut loads) > 0), "{spec}");
        let before = kernel(supervisor);
        // Long against the time from one report to the next: both windows are nearly one.
        let (mut count, since) = (0, Instant::now());
        assert!(eventually(|| {
            let more = fresh(&mut loads);
            count += more;
            more > 0 && count > 500 && since.elapsed() > Duration::from_secs(2)
        }));
        let seen = kernel(supervisor) - before;
        stop(&mut loads);
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let ratio = seen as f64 / count as f64;
        assert!(ratio >= share, "{spec}: {count} counted, {seen} seen by the kernel");
    };
    // A look at the kernel and one at the load are not at one moment: half is enough.
    counted("ping-pong:ipc=futex,mode=thread,place=same,pairs=1", &switches, 0.5);
    counted("ping-pong:mode=thread,place=same,pairs=1,cpus=0", &switches, 0.5);
    if cfg!(target_arch = "x86_64") {
        let timer = |_| interrupts("LOC:");
        counted("timers:timers=10,interval=2ms,cpus=0", &timer, 0.3);
        if sched::affinity(0).is_ok_and(|cpus| cpus.len() > 1) {
            let function = |_| interrupts("CAL:");
            counted("interrupts:kind=ipi", &function, 0.3);
            // Two for a walk of 1024 pages, where both threads run at the time: beside other
            // tests they seldom do, but they do.
            let mut loads = start("tlb:size=4M");
            loads.ready(PATIENCE).unwrap();
            let before = interrupts("TLB:");
            assert!(eventually(|| interrupts("TLB:") > before), "no shoot-down was seen");
            stop(&mut loads);
        }
    }
}

#[test]
fn a_disk_load_reaches_the_disk_and_refuses_memory() {
    let mut loads = start("disk:path=/dev/shm");
    assert!(eventually(|| !loads.any_running()));
    stop(&mut loads);
    let said = loads.findings().first().map(|f| f.title.clone()).unwrap_or_default();
    assert!(said.contains("lies in memory") && said.contains("path="), "{said}");
}

#[test]
fn a_load_is_where_it_is_pinned() {
    let Some(last) = sched::affinity(0).ok().and_then(|cpus| cpus.last().copied()) else { return };
    for name in [
        "syscalls",
        "timers",
        "tlb:size=1M",
        "ping-pong",
        "disk:size=1M",
        "interrupts:kind=packets",
        "culprit:kind=kworker",
    ] {
        let spec = format!("{name}{}cpus={last}", if name.contains(':') { "," } else { ":" });
        let mut loads = start(&spec);
        loads.ready(PATIENCE).unwrap();
        let supervisor = worker(&spec);
        for pid in process::descendants(supervisor).into_iter().chain([supervisor]) {
            for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
                let tid: i32 = task.file_name().to_string_lossy().parse().unwrap();
                assert_eq!(sched::affinity(tid).ok(), Some(vec![last]), "{spec}");
            }
        }
        stop(&mut loads);
    }
}

#[test]
fn threads_that_change_cpu_leave_it_to_whoever_wants_it() {
    let cpus = sched::affinity(0).unwrap().len();
    if cpus < 2 {
        return skip("cpus", "one CPU: nothing to move to");
    }
    let mut loads = start("interrupts:kind=moves");
    loads.ready(PATIENCE).unwrap();
    let id = worker("interrupts:kind=moves");
    let idle = || {
        let tasks = fs::read_dir(format!("/proc/{id}/task")).unwrap();
        let tids = tasks.flatten().filter_map(|t| t.file_name().to_string_lossy().parse().ok());
        tids.filter(|tid| sched::get(*tid).is_ok_and(|a| a.policy == sched::SCHED_IDLE)).count()
    };
    assert!(eventually(|| idle() == cpus), "{} of {cpus}", idle());
    stop(&mut loads);
}

#[test]
fn a_load_with_phases_begins_pauses_and_begins_again() {
    let spec: Spec = "cpu:cpus=0,from=1s,for=1s,every=2s".parse().unwrap();
    let always: Spec = "clock:cpus=0".parse().unwrap();
    let how = StartOptions::new(example());
    let mut loads = Loads::start(&[spec, always], &how).unwrap();
    loads.ready(PATIENCE).unwrap();
    let second = 1_000_000_000;
    let changes = |loads: &mut Loads, t| -> Vec<(u32, bool)> {
        loads.keep_phases(t, i64::MAX).into_iter().map(|c| (c.load, c.began)).collect()
    };
    let running = || {
        process::descendants(process::own_pid())
            .into_iter()
            .filter(|p| {
                let line = fs::read(format!("/proc/{p}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).contains("cpu:cpus=0,from=1s")
            })
            .count()
    };
    assert_eq!((changes(&mut loads, 0), running()), (vec![], 0));
    assert_eq!(loads.next_change_ns(0), Some(second));
    let mut total = 0;
    for begun in [second, 3 * second] {
        assert_eq!(changes(&mut loads, begun), [(0, true)]);
        assert_eq!(changes(&mut loads, begun + 1), []);
        let mut fresh = 0;
        assert!(eventually(|| {
            fresh += loads.poll().iter().filter(|s| s.load == 0).map(|s| s.count).sum::<u64>();
            fresh > 0
        }));
        let id = worker("cpu:cpus=0,from=1s,for=1s,every=2s");
        assert_eq!(changes(&mut loads, begun + second), [(0, false)]);
        // A process loses its command line when it begins to end; it begins again when it is collected.
        assert!(eventually(|| {
            assert_eq!(changes(&mut loads, begun + second + 1), []);
            !fs::exists(format!("/proc/{id}")).unwrap()
        }));
        assert_eq!(running(), 0);
        fresh += loads.poll().iter().filter(|s| s.load == 0).map(|s| s.count).sum::<u64>();
        total += fresh;
        assert!(loads.any_running());
    }
    let end = stop(&mut loads);
    assert_eq!((end.total, end.failure), (total, None), "what each phase did adds up");
    assert!(loads.findings().is_empty(), "{:?}", loads.findings());
    // Whoever looks late says so by name, and begins nothing after the end.
    let mut late = start("cpu:cpus=0,from=1s,for=1s,every=3s");
    assert_eq!((changes(&mut late, 0), changes(&mut late, 12 * second)), (vec![], vec![]));
    let title =
        |loads: &Loads| loads.findings().iter().map(|f| f.title.clone()).collect::<String>();
    assert!(title(&late).contains("never began: 4 of its phases were over"), "{}", title(&late));
    assert!(!title(&late).contains("run ended before"));
    assert_eq!(late.keep_phases(13 * second + 1, 13 * second), []);
    assert_eq!(changes(&mut late, 16 * second + second * 6 / 10), [(0, true)]);
    stop(&mut late);
    assert!(title(&late).contains("began up to 600 ms after its time"), "{}", title(&late));
    let mut never = start("cpu:from=1h");
    never.ready(PATIENCE).unwrap();
    assert_eq!(stop(&mut never).total, 0);
    assert!(never.findings().iter().any(|f| f.title.contains("never began")));
}

/// A folder of its own for a test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("tailbound-{name}-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_tree_is_built_again_and_again_and_not_touched() {
    if !is_root() {
        return skip("root", "a layer over a folder needs the right to mount");
    }
    if !spec_works_here("compile") {
        return;
    }
    let tree = Folder::new("tree");
    let path = tree.0.display();
    fs::write(tree.0.join("a.c"), "int a(void) { return 1; }\n").unwrap();
    fs::write(tree.0.join("b.c"), "int b(void) { return 2; }\n").unwrap();
    let refused = |spec: String| {
        let mut loads = start(&spec);
        assert!(eventually(|| !loads.any_running()), "{spec}");
        stop(&mut loads);
        loads.findings().first().map(|f| f.title.clone()).unwrap_or_default()
    };
    assert!(refused(format!("compile:tree={path}")).contains("no Makefile"));
    fs::write(tree.0.join("Makefile"), "all: a.o b.o\nbad:\n\t@echo broken >&2; false\n").unwrap();
    let said = refused(format!("compile:tree={path},make=bad"));
    assert!(said.contains("make ended with exit status 2") && said.contains("Error 1"), "{said}");
    let mut loads = start(&format!("compile:tree={path},jobs=2,loops=3"));
    assert!(eventually(|| !loads.any_running()));
    let end = stop(&mut loads);
    assert_eq!((end.total, end.failure), (6, None), "two objects of three builds");
    let mark = format!("tree-{}", std::process::id());
    let spec = format!("compile:tree={path}");
    let parent = load_command(&mark).arg(&spec).stdout(Stdio::null()).spawn().unwrap();
    kill_while_working(parent, &mark, &spec, 3);
    let mut left: Vec<_> =
        fs::read_dir(&tree.0).unwrap().flatten().map(|e| e.file_name()).collect();
    left.sort();
    assert_eq!(left, ["Makefile", "a.c", "b.c"]);
    assert!(!fs::read_to_string("/proc/mounts").unwrap().contains("lowerdir=/tmp/tailbound-tree"));
}

/// As below a make: with its variables, which once made the tree's make print where it was and ask
/// for a job server that was closed.
#[test]
fn what_a_make_above_says_is_not_for_a_tree() {
    if !is_root() {
        return skip("root", "a layer over a folder needs the right to mount");
    }
    if !spec_works_here("compile") {
        return;
    }
    let tree = Folder::new("above");
    fs::write(tree.0.join("a.c"), "int a(void) { return 1; }\n").unwrap();
    // A level other than 0, words of a make above, somebody's compiler flags: each is an error.
    let rule = "all: a.o\n\ttest $(MAKELEVEL) = 0 && test -z \"$$CARGO_ABOVE$$CPATH\"\n";
    fs::write(tree.0.join("Makefile"), rule).unwrap();
    let spec = format!("compile:tree={},jobs=1,loops=2", tree.0.display());
    let out = load_command("above")
        .arg(&spec)
        .envs([("MAKELEVEL", "1"), ("MAKEFLAGS", "w --jobserver-auth=98,99 -n"), ("MFLAGS", "-w")])
        .envs([("CARGO_ABOVE", "yes"), ("CPATH", "/nowhere")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains("compile: 2 "), "{said}");
}

#[test]
fn a_stressor_that_cannot_be_says_why() {
    if !spec_works_here("stress-ng") {
        return;
    }
    let mut loads = start("stress-ng:stressor=no-such-thing");
    assert!(eventually(|| !loads.any_running()));
    stop(&mut loads);
    let said = loads.findings().first().map(|f| f.title.clone()).unwrap_or_default();
    assert!(said.contains("no-such-thing") && said.contains("--stressors"), "{said}");
}

/// What stress-ng puts on the disk and into System V memory is gone however it ends.
#[test]
fn a_killed_stressor_leaves_neither_files_nor_objects() {
    if !is_root() {
        return skip("root", "namespaces of its own need root");
    }
    if !spec_works_here("stress-ng") {
        return;
    }
    let objects = || {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/sysvipc/{name}")).unwrap_or_default();
        [read("shm"), read("sem"), read("msg")].map(|text| text.lines().count())
    };
    let files = || {
        let all = fs::read_dir("/tmp").unwrap().flatten();
        all.filter(|e| e.file_name().to_string_lossy().contains("stress-ng")).count()
    };
    let before = (objects(), files());
    for stressor in ["shm-sysv", "hdd"] {
        let spec = format!("stress-ng:stressor={stressor},workers=1,slice=60s");
        let mark = format!("{stressor}-{}", std::process::id());
        let parent = load_command(&mark).arg(&spec).stdout(Stdio::null()).spawn().unwrap();
        // Its workers write their names over their environment: nobody finds them by it.
        wait_ms(1000);
        kill_while_working(parent, &mark, &spec, 2);
        assert_eq!((objects(), files()), before, "{spec}");
    }
}

#[test]
fn a_slow_download_is_as_slow_as_it_is_told_to_be() {
    if !spec_works_here("download") {
        return;
    }
    let begun = Instant::now();
    let mut loads = start("download:flows=2,size=1M,rate=100K,build=no");
    loads.ready(PATIENCE).unwrap();
    wait_ms(3000);
    let end = stop(&mut loads);
    // Never faster; how much slower is the machine's affair. The whole time, because a first report
    // may come late. KiB of both, and a few chunks of 64 KiB each under way.
    let most = 200 * (begun.elapsed().as_millis() as u64) / 1000 + 2 * 3 * 64;
    assert!(end.failure.is_none() && end.total < most, "{} KiB, at most {most}", end.total);
}
