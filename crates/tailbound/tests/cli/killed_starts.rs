// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs that trace are killed while they start: no trace instance, no guard and no changed setting is left.
//!
//! Half of the kills come at instants from a seed (`TAILBOUND_FAULT_SEED`), from the beginning up to twice the
//! time after which the instance is there; half just after the instance has appeared, which is when a guard that is
//! started too late is not there yet. Half of each kill the whole process group. Where in the program an instant falls
//! depends on the host; what is asserted holds wherever it falls: once no guard is there any more, no instance is.
//! Not here: kills while a run measures (`observe.rs`, `../faults`).

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use tailbound_sys::{boot, private};

use crate::observe::able;
use crate::{PATIENCE, folder, skip, tailbound};

const TRACING: &str = "/sys/kernel/tracing";
/// Kills of each verb; `TAILBOUND_FAULTS` makes it another number.
const KILLS: u32 = 40;
/// What is shared by all instances, or the machine's own.
const SETTINGS: [&str; 8] = [
    "tracing_on",
    "current_tracer",
    "trace_clock",
    "trace_options",
    "buffer_size_kb",
    "tracing_cpumask",
    "set_event",
    "dynamic_events",
];

/// Instants from a seed: SplitMix64.
pub(crate) struct Instants(u64);

impl Instants {
    pub(crate) fn of(name: &str) -> Self {
        let seed = std::env::var("TAILBOUND_FAULT_SEED").ok().and_then(|v| v.parse().ok());
        let seed: u64 = seed.unwrap_or(10);
        Self(name.bytes().fold(seed, |s, b| s.wrapping_mul(31).wrapping_add(u64::from(b))))
    }

    /// Up to `length`.
    pub(crate) fn within(&mut self, length: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        length.mul_f64(f64::from(u32::try_from((z ^ (z >> 31)) >> 32).unwrap()) / 4_294_967_296.0)
    }
}

/// Kills process groups at once: a shell that has it built in, and waits for numbers.
struct Killer(Child, ChildStdin);

impl Killer {
    fn begin() -> Self {
        let words = "while read -r group; do kill -s KILL -- \"-$group\"; done";
        let mut sh = Command::new("sh");
        let sh = sh.args(["-c", words]).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut sh = sh.spawn().unwrap();
        let numbers = sh.stdin.take().unwrap();
        Self(sh, numbers)
    }

    fn kill_group(&mut self, of: &mut Child) {
        writeln!(self.1, "{}", of.id()).unwrap();
        of.wait().unwrap();
    }

    fn end(mut self) {
        drop(self.1);
        self.0.wait().unwrap();
    }
}

pub(crate) fn kills() -> u32 {
    std::env::var("TAILBOUND_FAULTS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS)
}

/// A command that makes an instance and would go on for long.
struct Verb {
    name: &'static str,
    words: Vec<String>,
}

fn verbs() -> Vec<Verb> {
    let own = std::process::id();
    let run = "run -q -L none -i 2ms -D 5min --warm-up 1min --force -o r.jsonl";
    let all = [
        ("interruptions", "interruptions -D 5min".to_owned()),
        ("monitor", "monitor --by instance -D 5min".to_owned()),
        ("recorder", "monitor --threshold 10s --record late -D 5min".to_owned()),
        ("run --blame", format!("{run} --blame")),
        ("run --observe", format!("{run} --observe auto")),
        ("watch", format!("watch -q --pid {own} -D 5min")),
        ("blame", format!("blame {own} -D 5min")),
    ];
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    all.map(|(name, line)| Verb { name, words: words(&line) }).into()
}

impl Verb {
    fn start(&self, folder: &Path, errors: Stdio) -> Child {
        let mut command = tailbound();
        command.args(&self.words).current_dir(folder).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap()
    }

    /// After what time its instance is there; where it makes none, why.
    fn undisturbed(&self, folder: &Path, killer: &mut Killer) -> Result<Duration, String> {
        let begun = Instant::now();
        let mut child = self.start(folder, Stdio::piped());
        let appeared = appears(&mut child).then(|| begun.elapsed());
        killer.kill_group(&mut child);
        let pid = child.id();
        let out = child.wait_with_output().unwrap();
        left(pid);
        appeared.ok_or_else(|| String::from_utf8_lossy(&out.stderr).into_owned())
    }

    /// How many of its kills came when an instance was there, and what they left.
    fn kill(&self, folder: &Path, killer: &mut Killer, length: Duration) -> (u32, Vec<String>) {
        let mut instants = Instants::of(self.name);
        let (mut met, mut found) = (0, Vec::new());
        for i in 0..kills() {
            let mut child = self.start(folder, Stdio::null());
            if i % 2 == 0 {
                std::thread::sleep(instants.within(length * 2));
            } else {
                assert!(appears(&mut child), "{}: it ends before it traces", self.name);
                std::thread::sleep(instants.within(Duration::from_millis(3)));
            }
            met += u32::from(!instances(child.id()).is_empty());
            if i % 4 < 2 {
                child.kill().unwrap();
                child.wait().unwrap();
            } else {
                killer.kill_group(&mut child);
            }
            found.extend(left(child.id()));
        }
        (met, found)
    }
}

/// Waits for an instance of `child`; does one come before it ends?
fn appears(child: &mut Child) -> bool {
    let begun = Instant::now();
    while instances(child.id()).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "no trace instance ever came");
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    true
}

fn names(folder: &str) -> Vec<String> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    found.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn instances(pid: u32) -> Vec<String> {
    let own = format!("tailbound-{pid}-");
    let mut all = names(&format!("{TRACING}/instances"));
    all.retain(|n| n.starts_with(&own));
    all
}

/// Does a process run whose words have these, with a zero before each?
fn runs(words: &str) -> bool {
    let has = |process: &String| {
        // Whatever has no command line is no process.
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.windows(words.len()).any(|w| w == words.as_bytes())
    };
    names("/proc").iter().any(has)
}

/// Is any process at work in `folder`, whatever its mounts? One that is just started has no command line yet, but is there already.
pub(crate) fn is_worked_in(folder: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|at| (at.dev(), at.ino()));
    let folder = identity(folder);
    assert!(folder.is_some(), "the folder is gone");
    // By device and number: within another root, a path of other mounts reads differently.
    names("/proc")
        .iter()
        .any(|process| identity(&Path::new("/proc").join(process).join("cwd")) == folder)
}

/// Instances of `pid`, which was killed, that nobody is about to remove. They are removed here.
fn left(pid: u32) -> Vec<String> {
    let begun = Instant::now();
    // Guards first: one goes only after its instance has gone.
    while runs(&format!("\0trace-guard\0tailbound-{pid}-")) {
        assert!(begun.elapsed() < PATIENCE, "the guard of {pid} never ends");
        std::thread::sleep(Duration::from_millis(1));
    }
    let left = instances(pid);
    for name in &left {
        fs::remove_dir(format!("{TRACING}/instances/{name}")).unwrap_or_default();
    }
    left
}

/// Settings that are not an instance's own.
fn settings() -> Vec<(String, String)> {
    let shared = names(&format!("{TRACING}/osnoise"));
    let shared = shared.into_iter().map(|n| format!("osnoise/{n}"));
    let read = |name: String| {
        let text = fs::read_to_string(format!("{TRACING}/{name}")).unwrap_or_default();
        (name, text)
    };
    let mut all: Vec<_> = SETTINGS.map(str::to_owned).into_iter().chain(shared).map(read).collect();
    all.sort();
    all
}

/// Gives this thread, and what it starts, a tracefs where the machine has mounted none.
fn see_tracefs() {
    if !Path::new(TRACING).join("instances").is_dir() {
        private::own_mounts().unwrap();
        boot::mount("tracefs", TRACING, "").unwrap();
    }
}

#[test]
fn a_kill_while_it_starts_leaves_nothing() {
    if !able() {
        return;
    }
    see_tracefs();
    let before = settings();
    let disturb = |verb: &Verb| {
        see_tracefs();
        let (folder, mut killer) = (folder(), Killer::begin());
        let length = verb.undisturbed(folder.path(), &mut killer);
        let done = length.map(|length| verb.kill(folder.path(), &mut killer, length));
        killer.end();
        done
    };
    let all = verbs();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let begun: Vec<_> = all.iter().map(|v| (v.name, scope.spawn(|| disturb(v)))).collect();
        begun.into_iter().map(|(name, t)| (name, t.join().unwrap())).collect()
    });
    let mut wrong = Vec::new();
    for (name, outcome) in outcomes {
        match outcome {
            Ok((met, left)) if met == 0 || !left.is_empty() => {
                let (kills, n) = (kills(), left.len());
                let what = format!("{kills} kills, {met} with an instance, {n} left: {left:?}");
                wrong.push(format!("{name}: {what}"));
            }
            Ok(_) => {}
            Err(why) => skip("tracefs", format!("{name}: {}", why.trim())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A test beside this one may have changed one for a while.
    let begun = Instant::now();
    while settings() != before {
        assert!(begun.elapsed() < PATIENCE, "{:?}, were {before:?}", settings());
        std::thread::sleep(Duration::from_millis(100));
    }
}
