// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab with real kernels: the same bytes twice, exact figures, failures that explain
//! themselves, and the ARM boards.
//!
//! Figures are asserted here and only here: virtual time is the same on every host.

mod across;
mod answered;
mod bisected;
mod blamed;
mod boards;
mod booted;
mod farmed;
mod golden;
mod hunted;
mod monitored;
mod paths;
mod provers;
mod queue;
mod repeated;
mod theory;
mod tuned;
mod tutorials;
mod walls;
mod why;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use self::boards::BOARDS;
use self::queue::Check;
use super::tally::Tally;
use super::ways;
use crate::cross::Target;
use crate::{exec, root, schema};

/// The longest any of these runs may take, on a loaded machine.
const LIMIT: Duration = Duration::from_secs(600);

/// The file of a snapshot that is written anew whenever a run goes on from it.
const MARK: &str = "check.json";

/// Kernels of one source, with and without PREEMPT_RT.
const STOCK: &str = "debian:6.12";
const RT: &str = "debian:6.12-rt";

/// A load whose paths in the kernel a stock kernel does not leave for anyone.
const LOAD: &str = "mmap";

/// A run of the first check, and the checks that look at it.
const FIRST_RUN: &str = "a.jsonl";
const OF_THE_FIRST_RUN: [&str; 5] = [
    RESTLESS,
    DAMAGED,
    "its run file",
    "repeated from its own record",
    "an altered record is another run",
];

const SAME_BYTES: &str = "the same bytes from power-on, and from a snapshot on a loaded host";
const RESTLESS: &str = "the same bytes with a main loop that never rests";
const DAMAGED: &str = "a damaged snapshot is noticed and made again";
const FARM: &str = "a farm finds the regression that was planted";
const TUTORIALS: &str = "the tutorials' commands";
const HUNT: &str = "a hunt repeats, goes on, and leaves a command that shows the same";
const PROVERS: &str = "probes that prove a property";

/// The tool alone, and what it does in real kernels.
struct Lab {
    program: PathBuf,
    folder: PathBuf,
}

/// Why a command failed, in one line: its first, or where it answered as JSON what that says for people.
fn reason(said: &str) -> String {
    let is_telling = |line: &&str| ["\"sentence\":", "\"note\":"].iter().any(|k| line.contains(k));
    let telling: Vec<&str> = said.lines().map(str::trim).filter(is_telling).collect();
    match said.trim_start().starts_with('{') {
        true if !telling.is_empty() => telling.join(" "),
        _ => {
            let first = said.lines().find(|line| !line.trim().is_empty());
            first.unwrap_or("it said nothing").to_owned()
        }
    }
}

/// The names of its checks.
pub(crate) fn names(project: &Path) -> Vec<&'static str> {
    let none = Lab { program: PathBuf::new(), folder: PathBuf::new() };
    none.alone(project).iter().chain(&none.checks(project)).map(|(name, _)| *name).collect()
}

/// Those that measure this machine, and want it for themselves.
pub(crate) const ON_THIS_MACHINE: &[&str] = &[FARM];

/// Those of more than a minute on a machine of two cores, which only CI runs unasked (`stages::extent`).
pub(crate) const LONG: [&str; 17] = [
    FARM,
    HUNT,
    PROVERS,
    "aarch64",
    "arm",
    "an initramfs on a board of aarch64",
    "an initramfs on a board of arm",
    "the same bytes each time while all cores are busy",
    "two CPUs in short slices",
    "an experiment keeps the change that helps",
    "culprits are named",
    "a planted section is named at its instant",
    "the monitor beside a CPU that goes",
    "edges of a simulated GPIO chip are answered",
    "the boot option that made it later is found among 17",
    "the commit that made it later",
    TUTORIALS,
];

/// The names of those that run beside other stages.
pub(crate) fn beside_others(project: &Path) -> Vec<&'static str> {
    let all = names(project).into_iter();
    all.filter(|name| !ON_THIS_MACHINE.contains(name)).collect()
}

/// The stage: all checks, or those whose name has one of `parts` in it.
pub(crate) fn some(project: &Path, parts: &[&str]) -> anyhow::Result<Tally> {
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
    let (mut alone, mut checks) = (lab.alone(project), lab.checks(project));
    let names = names(project);
    let asked =
        |name: &str| parts.is_empty() || parts.iter().any(|part| is_asked(name, part, &names));
    alone.retain(|(name, _)| asked(name));
    checks.retain(|(name, _)| asked(name));
    let chosen = alone.iter().chain(&checks);
    let makes_it = alone.first().is_some_and(|(name, _)| *name == SAME_BYTES);
    if !makes_it && chosen.into_iter().any(|(name, _)| OF_THE_FIRST_RUN.contains(name)) {
        lab.run(RT, FIRST_RUN, &[])?;
    }
    for check in alone {
        tally.absorb(queue::side_by_side(&[check]));
    }
    tally.absorb(queue::side_by_side(&checks));
    Ok(tally)
}

/// A whole name asks for one check, a word for all that have it in theirs.
fn is_asked(name: &str, part: &str, names: &[&str]) -> bool {
    if names.contains(&part) { name == part } else { name.contains(part) }
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
            one(SAME_BYTES, Lab::same_bytes),
            one(RESTLESS, Lab::restless),
            one("the same bytes each time while all cores are busy", Lab::repeated),
            ("two CPUs in short slices", Box::new(|| self.in_slices())),
            one(DAMAGED, Lab::mended),
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
            (TUTORIALS, Box::new(move || Tally::one(TUTORIALS, self.tutorials(project)))),
            one("a planted section is named at its instant", Lab::why),
            ("the monitor beside a CPU that goes", Box::new(|| self.monitored())),
            one("paths of a run are exact", Lab::paths),
            one(HUNT, Lab::hunted),
            one("the theoretical bound holds", Lab::theory),
            (
                "the bound from a kernel's own events",
                Box::new(move || some(self.recorded_theory(project))),
            ),
            (
                "edges of a simulated GPIO chip are answered",
                Box::new(move || some(self.answered(project))),
            ),
            one("the boot option that made it later is found among 17", Lab::option_found),
            ("the commit that made it later", Box::new(|| self.commits())),
            ("golden figures", Box::new(move || some(self.golden(project)))),
            (PROVERS, Box::new(move || some(self.provers()))),
            one("a CPU that is isolated is left alone, and all is undone", Lab::isolated),
            one("timerlat and tracepoints agree within what they cost", Lab::ways),
            one("a matrix goes on where it was", Lab::matrix),
            one("a seed is another run, the same each time", Lab::seeds),
            one("a guest that dies says why", Lab::deaths),
            one("a guest that does not end is ended", Lab::hang),
            one("a QEMU that was killed is started once more", Lab::killed),
            one("snapshots stay within their limit while runs go on", Lab::limited),
            ("an ordinary user without network", Box::new(|| self.ordinary_user())),
            one("a board boots, measures, hands in over its console and powers off", Lab::booted),
            one("a board hands in by HTTP", Lab::handed_in),
            one("a board that is refused hands in over its console", Lab::refused),
            one("a running QEMU has no rights", Lab::walls),
            one("repeated from its own record", Lab::recorded),
            ("its run file", Box::new(move || Tally::one("its run file", self.checked(project)))),
            one("an altered record is another run", Lab::altered),
        ];
        for board in BOARDS {
            all.insert(0, (board.0, Box::new(move || some(self.board(project, board)))));
            let name = match board.0 {
                "arm" => "an initramfs on a board of arm",
                _ => "an initramfs on a board of aarch64",
            };
            all.push((name, Box::new(move || some(self.booted_on_arm(project, board)))));
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
                bail!("`{line}`: {s}, expected {status}: {}\n{said}", reason(&said))
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
        self.run(RT, FIRST_RUN, &["--no-snapshot"])?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_name_asks_for_one_check() {
        let names = ["arm", FARM, "aarch64"];
        let of = |part| names.into_iter().filter(|n| is_asked(n, part, &names)).collect::<Vec<_>>();
        assert_eq!(of("arm"), ["arm"]);
        assert_eq!(of("regression"), [FARM]);
        assert_eq!(of("ar"), ["arm", FARM, "aarch64"]);
        let project = root::project().unwrap();
        assert!(!beside_others(&project).contains(&FARM));
    }
}
