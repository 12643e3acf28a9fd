// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structure-aware mutation: a real file, one value replaced by one that means harm, through the
//! reader and everything that makes pages. Nothing panics, memory stays bounded, and what comes out
//! holds no control character and no markup that the file brought.
//!
//! Every mutant goes through its reader; of those that are read a sample goes on to the
//! pages, drawn from a seed (`TAILBOUND_FUZZ_SEED`, printed). `TAILBOUND_FUZZ=all` takes all of them.
//!
//! ```text
//! mutate.rs  the values, and where they are put
//! pages.rs   everything that is made of a run, and what is looked for in it
//! many.rs    damage without structure, to files of every kind
//! ```
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "seeds are said on standard output")]

mod damage;
mod kinds;
mod many;
mod mutate;
mod pages;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use mutate::{Random, json_mutants, token_mutants, toml_mutants};
use tailbound_core::Run;
use tailbound_core::campaign::CampaignFile;
use tailbound_core::plan::RunConfig;
use tailbound_core::printable;
use tailbound_core::runfile::{read_run, write_run};

const RUN: &str = include_str!("data/run.tailbound.jsonl");
const LAB: &str = include_str!("data/lab.tailbound.jsonl");
/// Mutants of a file that are taken to the pages.
const SAMPLE: usize = 96;
/// Most memory of the whole test program.
const CEILING_KB: u64 = 768 << 10;
/// Most processor time that one mutant may take.
const PATIENCE: Duration = Duration::from_secs(20);

static HOOK: Once = Once::new();
thread_local! {
    /// Is a mutant being tried? Then a panic is noted instead of being printed.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
    static SAID: Cell<String> = const { Cell::new(String::new()) };
}

/// Panics of mutants are noted from here on.
fn note_panics() {
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if WITHIN.get() {
                SAID.set(info.to_string());
            } else {
                usual(info);
            }
        }));
    });
}

/// What was found, and what must not be said again and again.
struct Findings {
    all: Vec<String>,
    of: String,
    seed: u64,
    pages: usize,
}

impl Findings {
    fn new(of: &str) -> Self {
        let given = std::env::var("TAILBOUND_FUZZ_SEED").ok().and_then(|s| s.parse().ok());
        let seed = given.unwrap_or(7);
        println!("{of}: TAILBOUND_FUZZ_SEED={seed}");
        note_panics();
        Self { all: Vec::new(), of: of.to_owned(), seed, pages: 0 }
    }

    /// Runs `work` on one mutant.
    fn of<T>(&mut self, what: &str, work: impl FnOnce() -> Result<T, String>) -> Option<T> {
        let begun = processor_time();
        WITHIN.set(true);
        let got = catch_unwind(AssertUnwindSafe(work));
        WITHIN.set(false);
        let took = processor_time().saturating_sub(begun);
        if took > PATIENCE {
            self.all.push(format!("{what}: took {took:?}"));
        }
        match got {
            Ok(Ok(value)) => Some(value),
            Ok(Err(why)) => {
                self.all.push(format!("{what}: {why}"));
                None
            }
            Err(_) => {
                self.all.push(format!("{what}: panic: {}", SAID.take()));
                None
            }
        }
    }

    fn end(self) {
        let peak = peak_kb();
        println!("{}: {} through the pages, {peak} kB", self.of, self.pages);
        let shown: Vec<&str> = self.all.iter().take(40).map(String::as_str).collect();
        assert!(self.all.is_empty(), "{} of {}:\n{}", self.all.len(), self.of, shown.join("\n"));
        assert!(peak < CEILING_KB, "{peak} kB for small files");
    }
}

/// What this thread has used of a processor: a machine that does much else does not count.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split_whitespace().next().and_then(|w| w.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

/// The process's highest resident size so far.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// An error that is shown as it is: one plain line of bounded length.
fn plain(error: &str) -> Result<(), String> {
    match error {
        e if e.contains(printable::is_harmful) => Err(format!("the error is not plain: {e:?}")),
        e if e.len() > 4000 => Err(format!("the error has {} bytes", e.len())),
        _ => Ok(()),
    }
}

fn sample<T>(mut all: Vec<T>, most: usize, random: &mut Random) -> Vec<T> {
    if std::env::var("TAILBOUND_FUZZ").is_ok_and(|v| v == "all") || all.len() <= most {
        return all;
    }
    let mut taken = Vec::with_capacity(most);
    while taken.len() < most && !all.is_empty() {
        let at = random.below(all.len());
        taken.push(all.swap_remove(at));
    }
    taken
}

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of)
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut out: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.is_file())
        .map(|p| {
            (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap())
        })
        .collect();
    out.sort();
    out
}

fn base() -> Run {
    read_run(RUN.as_bytes()).unwrap()
}

fn campaign() -> CampaignFile {
    let text = include_str!("../../../../campaigns/osadl-farm.toml");
    CampaignFile::parse(text).unwrap()
}

/// All hostile mutants of a run file through everything.
fn run_file(name: &str, file: &str) {
    let mut found = Findings::new(name);
    let mut random = Random::new(found.seed);
    let (base, campaign) = (base(), campaign());
    let known = pages::Known::of(&base, &campaign);
    let mut read = Vec::new();
    let mut refused = 0;
    for (what, text) in json_mutants(file) {
        let run = found.of(&what, || match read_run(text.as_bytes()) {
            Ok(run) => Ok(Some(run)),
            Err(e) => plain(&e.to_string()).map(|()| None),
        });
        match run {
            Some(Some(run)) => read.push((what, run)),
            _ => refused += 1,
        }
    }
    assert!(read.len() > 300 && refused > 300, "{} read, {refused} refused", read.len());
    for (i, (what, run)) in sample(read, SAMPLE, &mut random).into_iter().enumerate() {
        found.pages += 1;
        found.of(&what, || known.check(&run, i));
    }
    found.end();
}

#[test]
fn a_run_file_with_one_value_replaced() {
    run_file("run file", RUN);
}

#[test]
fn a_run_file_of_the_lab_with_one_value_replaced() {
    run_file("run file of the lab", LAB);
}

#[test]
fn files_of_other_tools_with_one_value_replaced() {
    let mut found = Findings::new("other tools' files");
    let mut random = Random::new(found.seed);
    let (base, campaign) = (base(), campaign());
    let known = pages::Known::of(&base, &campaign);
    let mut all = files(&folder("../measure/tailbound-import/tests/fixtures"));
    all.retain(|(name, bytes)| name != "README.md" && bytes.len() < 60_000);
    assert!(all.len() > 25, "{} files", all.len());
    let mut read = Vec::new();
    for (name, bytes) in &all {
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        for (what, text) in sample(token_mutants(text), 16, &mut random) {
            let what = format!("{name}, {what}");
            let run = found.of(&what, || match tailbound_import::import("f", text.as_bytes()) {
                Ok(run) => Ok(Some(run)),
                Err(e) => plain(&e.to_string()).map(|()| None),
            });
            read.extend(run.flatten().map(|run| (what, run)));
        }
    }
    assert!(read.len() > 100, "{} read", read.len());
    for (what, run) in &read {
        // What was imported is a run file that is read back.
        found.of(what, || {
            let file = write_run(run, Vec::new()).map_err(|e| e.to_string())?;
            if let Some(c) =
                String::from_utf8_lossy(&file).chars().find(|c| printable::is_harmful(*c))
            {
                return Err(format!("the run file holds {c:?}"));
            }
            read_run(file.as_slice()).map(drop).map_err(|e| format!("is not read back: {e}"))
        });
    }
    for (i, (what, run)) in sample(read, SAMPLE, &mut random).into_iter().enumerate() {
        found.pages += 1;
        found.of(&what, || known.check(&run, i));
    }
    found.end();
}

#[test]
fn campaigns_with_one_value_replaced() {
    let mut found = Findings::new("campaigns");
    let mut random = Random::new(found.seed);
    let base = base();
    let mut read = Vec::new();
    for (name, bytes) in files(&folder("../../campaigns")) {
        let text = String::from_utf8(bytes).unwrap();
        if !name.ends_with(".toml") {
            continue;
        }
        for (what, text) in sample(toml_mutants(&text), 400, &mut random) {
            let what = format!("{name}, {what}");
            let file = found.of(&what, || Ok(CampaignFile::parse(&text).ok()));
            read.extend(file.flatten().map(|file| (what, file)));
        }
    }
    assert!(read.len() > 50, "{} read", read.len());
    for (what, file) in sample(read, SAMPLE / 4, &mut random) {
        found.pages += 1;
        found.of(&what, || pages::of_campaign(&base, &file, "evil"));
    }
    // The words of a run, which become a plan or are refused.
    let words = "name = \"n\"\ndeadline = \"100us\"\nclass = \"safe\"\nrate = \"1/24h\"\ninterval = \"1ms\"\n\
                 duration = \"1s\"\nloops = 5\nwarm-up = \"1ms\"\ncpus = \"0\"\npolicy = \"other\"\n\
                 interval-spread = \"50%:7\"\nload = [\"hackbench:groups=4\"]\ntasks = 4\nwork = [\"messages\"]\n\
                 repeat = 3\nuntil = \"precision\"\nprecision = \"1%\"\nconfidence = 0.9\n";
    for (what, text) in toml_mutants(words) {
        found.of(&what, || {
            let Ok(words) = RunConfig::parse(&text) else { return Ok(()) };
            let asked =
                tailbound_run::Request { config: words, ..tailbound_run::Request::default() };
            drop(tailbound_run::resolve(&asked, &tailbound_host::Root::real()));
            Ok(())
        });
    }
    found.end();
}
