// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab with real kernels: the same bytes twice, exact figures, failures that explain
//! themselves, and the ARM boards.
//!
//! Context: COLD. Figures are asserted here and only here: virtual time is the same on every
//! host. `golden.json` pins them to kernel images, QEMU and our own program by hash. With all
//! three the same they must be equal. Another build of our program moves the shortest way
//! from timer to thread by some instructions (seen: 39 of 3465), so then it may differ by 2 %.
//! When the archive has moved on to other kernels, that is said and counted as skipped, and
//! everything else is still checked.

mod bisected;
mod blamed;
mod farmed;
mod hunted;
mod paths;
mod queue;
mod repeated;
mod theory;
mod tuned;
mod why;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use self::queue::Check;
use super::tally::Tally;
use super::ways;
use crate::cross::Target;
use crate::{exec, root, schema};

/// How often a run is made with a main loop that never rests.
const RESTLESS_RUNS: u32 = 8;
/// The longest any of these runs may take, on a loaded machine.
const LIMIT: Duration = Duration::from_secs(900);

/// The file of a snapshot that is written anew whenever a run goes on from it.
const MARK: &str = "check.json";

/// Kernels of one source, with and without PREEMPT_RT.
const STOCK: &str = "debian:6.12";
const RT: &str = "debian:6.12-rt";

/// A load whose paths in the kernel a stock kernel does not leave for anyone.
const LOAD: &str = "mmap";

/// Architecture, emulator, kernel, the program's build.
type Board = (&'static str, &'static str, &'static str, fn() -> Target);
const BOARDS: &[Board] = &[
    ("aarch64", "qemu-system-aarch64", "debian:6.1-rt", Target::arm64),
    ("arm", "qemu-system-arm", "debian:6.1-rt-armmp", Target::arm32),
];

/// Probes that prove a property: the probe, a fault that can be planted, and how much.
const PROVERS: &[(&str, &str, &str)] = &[
    ("sched-football:game=5ms", "demoted", "-i 20ms -l 5 --warm-up 20ms"),
    ("pi", "no-inheritance", "-l 100"),
    ("pi-process", "no-inheritance", "-l 20"),
    ("prio-preempt", "falling", "-l 20"),
    ("prio-wake", "exchanged", "-l 20"),
    ("rt-migrate", "reversed", "-l 20"),
    ("ptrace", "signal", "-l 60"),
    ("periodic-load", "overrun", "-l 200"),
    ("deadline", "", "-l 20"),
    ("queue", "", "-l 20"),
    ("clocks", "", "-l 20"),
];

const FARM: &str = "a farm finds the regression that was planted";

/// The tool alone, and what it does in real kernels.
struct Lab {
    program: PathBuf,
    folder: PathBuf,
}

/// The stage.
pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let program = Target::native().trial(project);
    if !program.is_file() {
        tally.skip("lab", "static", "there is no static program: run the stage `static` first");
        return Ok(tally);
    }
    if !exec::exists("qemu-system-x86_64") {
        let why = "there is no qemu-system-x86_64 (Debian package qemu-system-x86)";
        tally.skip("lab", "lab", why);
        return Ok(tally);
    }
    let folder = root::target(project).join("xtask/lab");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let lab = Lab { program, folder };
    if let Err(e) = lab.fetch(&["lab", "kernel", "fetch", STOCK, RT]) {
        tally.skip("lab", "kernels", &format!("Debian's kernels cannot be had: {e:#}"));
        return Ok(tally);
    }
    for check in lab.alone(project) {
        tally.absorb(queue::side_by_side(&[check]));
    }
    tally.absorb(queue::side_by_side(&lab.checks(project)));
    Ok(tally)
}

/// A check that passes or fails as a whole.
type Whole = fn(&Lab) -> anyhow::Result<()>;

fn one<'a>(name: &'static str, lab: &'a Lab, check: Whole) -> Check<'a> {
    (name, Box::new(move || Tally::one(name, check(lab))))
}

impl Lab {
    /// What wants the host's cores, or damages something that all use.
    fn alone<'a>(&'a self, project: &'a Path) -> Vec<Check<'a>> {
        let one = |name, check| one(name, self, check);
        vec![
            one(
                "the same bytes from power-on, and from a snapshot on a loaded host",
                Lab::same_bytes,
            ),
            one("the same bytes with a main loop that never rests", Lab::restless),
            one("the same bytes each time while all cores are busy", Lab::repeated),
            ("two CPUs in short slices", Box::new(|| self.in_slices())),
            one("a damaged snapshot is noticed and made again", Lab::mended),
            // This machine is one of its systems, and is measured.
            (FARM, Box::new(move || Tally::one(FARM, self.farmed(project)))),
        ]
    }

    /// What can be done side by side, what takes longest first.
    fn checks<'a>(&'a self, project: &'a Path) -> Vec<Check<'a>> {
        let one = |name, check| one(name, self, check);
        let some = |r: anyhow::Result<Tally>| r.unwrap_or_else(|e| Tally::one("lab", Err(e)));
        let mut all: Vec<Check<'a>> = vec![
            one("an experiment keeps the change that helps", Lab::experiment),
            ("culprits are named", Box::new(|| self.culprits())),
            one("a planted section is named at its instant", Lab::why),
            one("paths of a run are exact", Lab::paths),
            one("a hunt repeats, goes on, and leaves a command that shows the same", Lab::hunted),
            one("the theoretical bound holds", Lab::theory),
            one("the boot option that made it later is found among 17", Lab::option_found),
            ("the commit that made it later", Box::new(|| self.commits())),
            ("golden figures", Box::new(move || some(self.golden(project)))),
            ("probes that prove a property", Box::new(move || some(self.provers()))),
            one("a CPU that is isolated is left alone, and all is undone", Lab::isolated),
            one("timerlat and tracepoints agree within what they cost", Lab::ways),
            one("a matrix goes on where it was", Lab::matrix),
            one("a seed is another run, the same each time", Lab::seeds),
            one("a guest that dies says why", Lab::deaths),
            one("a guest that does not end is ended", Lab::hang),
            ("an ordinary user without network", Box::new(|| self.ordinary_user())),
            one("a running QEMU has no rights", Lab::walls),
            one("repeated from its own record", Lab::recorded),
            ("its run file", Box::new(move || Tally::one("its run file", self.checked(project)))),
            one("an altered record is another run", Lab::altered),
        ];
        for board in BOARDS {
            all.insert(0, (board.0, Box::new(move || some(self.board(project, board)))));
        }
        all
    }

    fn recorded(&self) -> anyhow::Result<()> {
        self.answers(&["lab", "repeat", "a.jsonl"], 0).map(drop)
    }

    fn checked(&self, project: &Path) -> anyhow::Result<()> {
        let run = self.folder.join("a.jsonl");
        // In virtual time nothing else may have caused them: one is a fault of the program.
        let text = fs::read_to_string(&run)?;
        ensure!(!text.contains("\"id\":\"page-faults\""), "page faults inside the measuring loop");
        schema::check_run(project, &run).map(drop)
    }

    fn commits(&self) -> Tally {
        let name = "the commit that made it later is found among 64";
        if exec::exists("git") {
            return Tally::one(name, self.commit_found());
        }
        let mut tally = Tally::default();
        tally.skip(name, "git", "there is no git");
        tally
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut c = exec::command(&self.program);
        c.args(words).current_dir(&self.folder);
        c
    }

    /// Runs it; wants this exit status; yields what it said.
    fn answers(&self, words: &[&str], status: i32) -> anyhow::Result<String> {
        self.ends(&mut self.command(words), status)
    }

    fn ends(&self, c: &mut Command, status: i32) -> anyhow::Result<String> {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let nth = CALLS.fetch_add(1, Ordering::Relaxed);
        let log = self.folder.join(format!("output-{nth}.txt"));
        let line = exec::shown(c);
        let ended = exec::limited(c, &log, LIMIT)?;
        let said = fs::read_to_string(&log).unwrap_or_default();
        fs::remove_file(&log)?;
        match ended {
            Some(s) if s.code() == Some(status) => Ok(said),
            Some(s) => {
                // The list of what failed has the first line of this.
                let first =
                    said.lines().find(|l| !l.trim().is_empty()).unwrap_or("it said nothing");
                bail!("`{line}`: {s}, expected {status}: {first}\n{said}")
            }
            None => bail!("`{line}` still ran after {} s:\n{said}", LIMIT.as_secs()),
        }
    }

    fn fetch(&self, words: &[&str]) -> anyhow::Result<()> {
        self.answers(words, 0).map(drop)
    }

    fn run(&self, kernel: &str, out: &str, more: &[&str]) -> anyhow::Result<()> {
        let words = ["lab", "run", "--quiet", "-k", kernel, "-l", "1000", "-o", out];
        self.answers(&[&words, more].concat(), 0).map(drop)
    }

    fn same_bytes(&self) -> anyhow::Result<()> {
        self.run(RT, "a.jsonl", &["--no-snapshot"])?;
        let busy = Busy::start()?;
        // The first makes the snapshot and goes on from it, the second begins there.
        self.run(RT, "b.jsonl", &[])?;
        self.run(RT, "c.jsonl", &[])?;
        drop(busy);
        let read = |name: &str| fs::read(self.folder.join(name));
        let a = read("a.jsonl")?;
        ensure!(a == read("b.jsonl")?, "the run that made a snapshot differs: a.jsonl, b.jsonl");
        ensure!(a == read("c.jsonl")?, "the run from a snapshot differs: a.jsonl, c.jsonl");
        Ok(())
    }

    /// A snapshot with one byte changed, and one that is cut off: said, made again, the same run.
    fn mended(&self) -> anyhow::Result<()> {
        let words = ["lab", "run", "-k", RT, "-l", "1000", "-o"];
        // The one it goes on from has the newest mark then, whatever ran before.
        self.answers(&[&words[..], &["undamaged.jsonl"]].concat(), 0)?;
        let text = self.answers(&["lab", "cache", "--json"], 0)?;
        let value: Value =
            serde_json::from_str(text.get(text.find('{').unwrap_or(0)..).unwrap_or_default())?;
        let items = value.get("items").and_then(Value::as_array).context("no items")?;
        let marked = |folder: &str| fs::metadata(Path::new(folder).join(MARK))?.modified();
        let newest = items
            .iter()
            .filter(|i| i.get("kind").and_then(Value::as_str) == Some("snapshots"))
            .filter_map(|i| i.get("path").and_then(Value::as_str))
            .max_by_key(|folder| marked(folder).ok())
            .context("no snapshot")?;
        let state = Path::new(newest).join("state");
        let mut bytes = fs::read(&state)?;
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 1;
        }
        fs::write(&state, &bytes)?;
        let said = self.answers(&["lab", "cache", "--verify"], 1)?;
        ensure!(said.contains("damaged"), "{said}");
        let said = self.answers(&[&words[..], &["mended.jsonl"]].concat(), 0)?;
        ensure!(said.contains("made again"), "{said}");
        let same =
            fs::read(self.folder.join("mended.jsonl"))? == fs::read(self.folder.join("a.jsonl"))?;
        ensure!(same, "the run after mending differs: a.jsonl, mended.jsonl");
        self.answers(&["lab", "cache", "--verify"], 0).map(drop)
    }

    /// What /proc says of QEMU while it runs: a filter, no new rights, and for root another user.
    fn walls(&self) -> anyhow::Result<()> {
        let words = ["lab", "run", "-q", "-k", RT, "-l", "4000000", "-o", "walls.jsonl"];
        let mut tool = self.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let status = qemu_of(&tool);
        // Its QEMU ends with it.
        let _gone = (tool.kill(), tool.wait());
        let (_, status) = status?;
        let field = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name));
            line.map(|l| l.trim().to_owned()).unwrap_or_default()
        };
        ensure!(field("NoNewPrivs:") == "1" && field("CapEff:") == "0".repeat(16), "{status}");
        let root = fs::metadata("/proc/self")?.uid() == 0;
        ensure!(!root || !field("Uid:").starts_with("0\t"), "{status}");
        Ok(())
    }

    /// Signals that QEMU's main loop takes and forgets wake it all the time: half of the runs
    /// whose virtual CPU is not kept from it are others then.
    fn restless(&self) -> anyhow::Result<()> {
        for i in 1..=RESTLESS_RUNS {
            let out = format!("restless-{i}.jsonl");
            let words = ["lab", "run", "-q", "-k", RT, "-l", "1000", "-o", &out];
            let quiet = self.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let mut tool = quiet?;
            let woken = qemu_of(&tool).and_then(|(pid, _)| {
                let wake = format!("while kill -ALRM {pid}; do :; done 2> /dev/null");
                Ok(exec::command("sh").args(["-c", &wake]).status()?)
            });
            ensure!(tool.wait()?.success(), "{out}: the run failed");
            woken?;
            let same = fs::read(self.folder.join(&out))? == fs::read(self.folder.join("a.jsonl"))?;
            ensure!(same, "a run whose main loop was woken all the time differs: a.jsonl, {out}");
        }
        Ok(())
    }

    fn altered(&self) -> anyhow::Result<()> {
        let text = fs::read_to_string(self.folder.join("a.jsonl"))?;
        let altered = text.replacen("\"seed\":1,", "\"seed\":2,", 1);
        ensure!(altered != text, "the record has no seed");
        fs::write(self.folder.join("altered.jsonl"), altered)?;
        let said = self.answers(&["lab", "repeat", "--quiet", "altered.jsonl"], 1)?;
        ensure!(said.contains("Different, from line"), "{said}");
        // A record of a later version asks for what this one cannot do: never taken for the same.
        let later = text.replacen("\"seed\":1,", "\"seed\":1,\"tomorrow\":1,", 1);
        fs::write(self.folder.join("later.jsonl"), later)?;
        let said = self.answers(&["lab", "repeat", "--quiet", "later.jsonl"], 3)?;
        ensure!(said.contains("tomorrow") && said.contains("does not know"), "{said}");
        Ok(())
    }

    /// Pinned figures of two kernels, idle and under a load that tells them apart.
    fn golden(&self, project: &Path) -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
        let path = project.join("xtask/src/stages/golden.json");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let golden: Value = serde_json::from_str(&text)?;
        let mut now = serde_json::Map::new();
        for kernel in [STOCK, RT] {
            let mut found = json!({});
            for load in ["none", LOAD] {
                let out = format!("golden-{}-{load}.jsonl", kernel.replace(':', "-"));
                if let Err(e) = self.run(kernel, &out, &["-L", load]) {
                    tally.add(kernel, Err(e));
                    return Ok(tally);
                }
                figures(&self.folder.join(&out), load, &mut found)?;
            }
            now.insert(kernel.to_owned(), found);
        }
        let kept = self.folder.join("golden.json");
        fs::write(&kept, format!("{:#}\n", Value::Object(now.clone())))?;
        for (kernel, found) in &now {
            let wanted = golden.get(kernel).cloned().unwrap_or_default();
            let name = format!("golden figures of {kernel}");
            if wanted.get("kernel_sha256") == found.get("kernel_sha256") {
                tally.add(&name, golden_same(&wanted, found));
            } else {
                let package = |v: &Value| {
                    v.get("package").and_then(Value::as_str).unwrap_or("no package").to_owned()
                };
                let why = format!(
                    "the archive has moved on from {} to {}; copy {} to xtask/src/stages to pin the new figures",
                    package(&wanted),
                    package(found),
                    kept.display()
                );
                tally.skip(&name, "golden", &why);
            }
        }
        tally.add("PREEMPT_RT bounds what the stock kernel does not", shape(&now));
        Ok(tally)
    }

    /// Both ways to see where a wake-up loses its time, and the run without either.
    fn ways(&self) -> anyhow::Result<()> {
        let mut files = Vec::new();
        for way in ["none", "timerlat", "tracepoints"] {
            let campaign = "ways.toml";
            let out = format!("ways-{way}.jsonl");
            let observe = match way {
                "none" => String::new(),
                tracer => format!("observe = \"{tracer}\"\n"),
            };
            fs::write(self.folder.join(campaign), observe)?;
            // Stock kernels of the archive have no timerlat.
            self.run(RT, &out, &["-L", "none", "--config", campaign])?;
            files.push(fs::read_to_string(self.folder.join(&out))?);
        }
        let [bare, timerlat, tracepoints] = files.as_slice() else { bail!("three runs") };
        print!("{}", ways::agree(bare, timerlat, tracepoints)?);
        Ok(())
    }

    /// Every probe that proves something, in a kernel that has the property, and again with a planted
    /// fault: one that always accuses, always refuses or never accuses fails here.
    fn provers(&self) -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
        for (probe, fault, more) in PROVERS {
            let run = |probe: &str, status: i32, says: &str| {
                let out = format!("{}.jsonl", probe.replace([':', ',', '='], "-"));
                let words = ["lab", "run", "--quiet", "-k", RT, "-L", "none", "--probe", probe];
                let more: Vec<&str> = more.split_whitespace().chain(["-o", &out]).collect();
                let said = self.answers(&[&words[..], &more].concat(), status)?;
                ensure!(said.contains(says), "{says} is missing: {said}");
                Ok(())
            };
            tally.add(&format!("{probe} is met in a kernel"), run(probe, 0, "Met: "));
            if !fault.is_empty() {
                let between = if probe.contains(':') { "," } else { ":" };
                let planted = format!("{probe}{between}plant={fault}");
                tally.add(&format!("{planted} is found"), run(&planted, 1, "Not met: "));
            }
        }
        Ok(tally)
    }

    fn matrix(&self) -> anyhow::Result<()> {
        let words =
            ["lab", "matrix", "-k", RT, "-k", STOCK, "-L", "none", "-l", "200", "-o", "matrix"];
        self.answers(&words, 0)?;
        let first = fs::read(self.folder.join("matrix/matrix.html"))?;
        fs::remove_file(self.folder.join("matrix/lab-debian-6.12-none.tailbound.jsonl"))?;
        let said = self.answers(&words, 0)?;
        ensure!(said.contains("1 of 2 cells were made before"), "{said}");
        ensure!(first == fs::read(self.folder.join("matrix/matrix.html"))?, "the report differs");
        Ok(())
    }

    fn deaths(&self) -> anyhow::Result<()> {
        let cases: [(&[&str], &str); 3] = [
            (&["--append", "rdinit=/nothing"], "Unable to mount root fs"),
            (&["--memory", "64"], "--memory"),
            (&["--append", "tailbound.results=/dev/ttyS7"], "results line is missing"),
        ];
        for (more, meaning) in cases {
            let words = ["lab", "run", "--quiet", "--no-snapshot", "-k", RT, "-o", "dead.jsonl"];
            let said = self.answers(&[&words, more].concat(), 3)?;
            ensure!(said.contains(meaning), "{more:?} does not explain itself:\n{said}");
            ensure!(!self.folder.join("dead.jsonl").exists(), "{more:?} left a run file");
        }
        Ok(())
    }

    fn hang(&self) -> anyhow::Result<()> {
        let words = [
            "lab",
            "run",
            "--quiet",
            "-k",
            RT,
            "-l",
            "4000000",
            "--host-limit",
            "4",
            "-o",
            "h.jsonl",
        ];
        let said = self.answers(&words, 3)?;
        ensure!(said.contains("--host-limit"), "{said}");
        Ok(())
    }

    /// Everything without network and without rights.
    fn ordinary_user(&self) -> Tally {
        let name = "an ordinary user without network";
        let user = ["unshare", "-n", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut try_it = exec::command(user[0]);
        let can = exec::output(try_it.args(&user[1..]).arg("true"));
        if !can.is_ok_and(|o| o.status.success()) {
            let mut tally = Tally::default();
            tally.skip(name, "root", "only root can become somebody else without network");
            return tally;
        }
        Tally::one(name, self.as_user(&user))
    }

    fn as_user(&self, user: &[&str]) -> anyhow::Result<()> {
        // A store and a program that anyone may use: this checkout may be root's alone.
        let open = tempfile::Builder::new().prefix("tailbound-lab").tempdir()?;
        let folder = open.path();
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
        let program = folder.join("tailbound");
        fs::copy(&self.program, &program)?;
        let out = self.answers(&["lab", "kernel", "fetch", "--quiet", "--json", RT], 0)?;
        let image = image_of(&out).context("`lab kernel fetch --json` names no image")?;
        fs::copy(image, folder.join("vmlinuz"))?;
        let mut c = exec::command(user[0]);
        c.args(&user[1..]).arg(&program).current_dir(folder);
        c.env("TAILBOUND_LAB", folder.join("store")).env("HOME", folder);
        c.args([
            "lab",
            "run",
            "--quiet",
            "-k",
            "path:vmlinuz",
            "-l",
            "200",
            "-L",
            "none",
            "-o",
            "u.jsonl",
        ]);
        self.ends(&mut c, 0).map(drop)
    }

    fn board(&self, project: &Path, board: &Board) -> anyhow::Result<Tally> {
        let (arch, emulator, kernel, target) = board;
        let mut tally = Tally::default();
        let name = format!("{kernel} on {arch}, twice");
        let program = target().trial(project);
        if !program.is_file() {
            let why = format!("{} is missing: run the stage `arm` first", program.display());
            tally.skip(&name, arch, &why);
        } else if !exec::exists(emulator) {
            let why = format!("there is no {emulator} (Debian package qemu-system-arm)");
            tally.skip(&name, "lab-arm", &why);
        } else if let Err(e) = self.fetch(&["lab", "kernel", "fetch", "--arch", arch, kernel]) {
            tally.skip(&name, "kernels", &format!("{kernel} for {arch} cannot be had: {e:#}"));
        } else {
            tally.add(&name, self.on_board(arch, kernel, &program));
            let told = self.paths_on_board(arch, kernel, &program.display().to_string());
            tally.add(&format!("paths of {kernel} on {arch} are exact"), told);
        }
        Ok(tally)
    }

    fn on_board(&self, arch: &str, kernel: &str, program: &Path) -> anyhow::Result<()> {
        let program = program.display().to_string();
        let out = format!("{arch}.jsonl");
        self.run(kernel, &out, &["--arch", arch, "--guest", &program, "-L", "none"])?;
        self.answers(&["lab", "repeat", "--guest", &program, &out], 0).map(drop)
    }
}

/// The QEMU that `tool` started, once it has all its threads and its filter of system calls, and what
/// /proc says of it.
fn qemu_of(tool: &Child) -> anyhow::Result<(u32, String)> {
    let begun = Instant::now();
    loop {
        let tasks = format!("/proc/{}/task", tool.id());
        let children = fs::read_dir(tasks)?
            .flatten()
            .filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
        let found = children
            .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .filter_map(|pid| {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
                Some((pid.parse().ok()?, status))
            })
            .find(|(pid, status): &(u32, String)| {
                let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
                threads > 3 && status.contains("qemu-system") && status.contains("Seccomp:\t2")
            });
        match found {
            Some(found) => return Ok(found),
            None if begun.elapsed() > LIMIT => bail!("no QEMU with a filter"),
            None => std::thread::park_timeout(Duration::from_millis(5)),
        }
    }
}

/// Adds what a run file says of kernel, QEMU, program, and the figures under `load`.
fn figures(path: &Path, load: &str, found: &mut Value) -> anyhow::Result<()> {
    let text = fs::read_to_string(path)?;
    for line in text.lines() {
        let value: Value = serde_json::from_str(line)?;
        let at = |pointer: &str| value.pointer(pointer).cloned().unwrap_or_default();
        match value.get("type").and_then(Value::as_str) {
            Some("header") => {
                found["package"] = at("/lab/kernel/package");
                found["kernel_sha256"] = at("/lab/kernel/sha256");
                found["guest_sha256"] = at("/lab/guest_sha256");
                found["qemu"] = at("/lab/qemu");
            }
            Some("thread") => {
                found[load] = json!({"n": at("/wakeup/n"), "missed": at("/missed/n"),
                    "min_ns": at("/wakeup/min_ns"), "median_ns": median_ns(&at("/wakeup/late")),
                    "max_ns": at("/wakeup/max_ns")});
            }
            _ => {}
        }
    }
    Ok(())
}

/// The least value of the bucket in which the median of a run file's histogram lies (docs/run-file.md).
fn median_ns(late: &Value) -> Option<u64> {
    let numbers = |key: &str| -> Option<Vec<u64>> {
        late.get(key)?.as_array()?.iter().map(Value::as_u64).collect()
    };
    let (index, count) = (numbers("index")?, numbers("count")?);
    let precision = late.get("precision").and_then(Value::as_u64)?;
    let half = count.iter().sum::<u64>().div_ceil(2);
    let mut before = 0;
    let reached = |(_, n): &(&u64, &u64)| {
        before += **n;
        before >= half
    };
    let (at, _) = index.iter().zip(&count).find(reached)?;
    let power = at >> precision;
    Some(if power < 2 { *at } else { (at - ((power - 1) << precision)) << (power - 1) })
}

fn golden_same(wanted: &Value, found: &Value) -> anyhow::Result<()> {
    let same = |key: &str| wanted.get(key) == found.get(key);
    if same("guest_sha256") && same("qemu") {
        ensure!(wanted == found, "pinned: {wanted}; now: {found}");
        return Ok(());
    }
    // Not the least: single wake-ups take a way that is a hundred instructions shorter, and whether one
    // does depends on the build.
    let usual = |v: &Value| v.pointer("/none/median_ns").and_then(Value::as_i64);
    let (before, now) = (usual(wanted).context("nothing pinned")?, usual(found).context("no run")?);
    ensure!(
        (before - now).abs() * 50 <= before,
        "the usual way from timer to thread was {before} instructions and is {now}"
    );
    Ok(())
}

/// What the papers found: without load both kernels alike, under load far apart.
fn shape(now: &serde_json::Map<String, Value>) -> anyhow::Result<()> {
    let latest = |kernel: &str, load: &str| {
        let found = now.get(kernel).and_then(|v| v.pointer(&format!("/{load}/max_ns")));
        found.and_then(Value::as_i64).with_context(|| format!("{kernel} under {load}: no figure"))
    };
    let (stock, rt) = (latest(STOCK, LOAD)?, latest(RT, LOAD)?);
    ensure!(stock > 10 * rt, "under {LOAD} the latest was {stock} ns stock, {rt} ns PREEMPT_RT");
    Ok(())
}

/// The image's path in what `lab kernel fetch --json` says.
fn image_of(text: &str) -> Option<PathBuf> {
    let value: Value = serde_json::from_str(text.get(text.find('[')?..)?).ok()?;
    value.pointer("/0/image").and_then(Value::as_str).map(PathBuf::from)
}

/// A loop on another core until dropped.
struct Busy(Child);

impl Busy {
    fn start() -> anyhow::Result<Self> {
        Ok(Self(exec::command("sh").args(["-c", "while :; do :; done"]).spawn()?))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // A child that is gone already is as ended as it can be.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
