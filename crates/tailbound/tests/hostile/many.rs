// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged files of every kind, by the ten thousand: none makes a reader panic, search without end or take memory
//! by a number that it read, and what is read is no answer that contradicts itself.
//!
//! Each kind has a process of its own, which reads one file after the other under a ceiling of memory
//! (its address space) and of processor time. Damage follows from kind and seed alone: what fails is told with both, and written
//! to a file. `TAILBOUND_MUTATIONS=N` makes N in all instead of the usual number, `TAILBOUND_SEED=N` the one of
//! that seed of each kind. The stage `fuzz` makes 30,000.
//!
//! ```text
//! damage.rs  what is done to a file
//! kinds/     the files, and who reads them
//! ```

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::damage::damaged;
use crate::kinds::{KINDS, Kind};
use crate::mutate::Random;
use crate::{SAID, WITHIN, note_panics, processor_time};

/// Files of all kinds in an ordinary run of the tests.
const FILES: u64 = 3_000;
/// Most processor time that one file may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Address space of the whole process: program, stacks and what a file makes it take.
const SPACE_KB: u64 = 512 << 10;
/// Processor time of a process, beside a hundredth of a second for each file: one that searches without end is ended.
const SECONDS: u64 = 60;
/// Findings that a kind tells, and times that its process is begun again after it died.
const FOUND_MAX: usize = 12;
/// What a worker is told.
const WORK: &str = "TAILBOUND_MUTANTS";

fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|v| v.parse().ok())
}

/// The damaged file of a seed.
fn file(samples: &[Vec<u8>], kind: &Kind, seed: u64) -> (Vec<u8>, Random) {
    // Kinds have courses of their own.
    let salt = kind.name.bytes().fold(0u64, |n, b| n.wrapping_mul(131).wrapping_add(u64::from(b)));
    let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ salt);
    (damaged(samples, kind.texts, &mut random), random)
}

/// What was read, what was refused, and what must not be.
#[derive(Default)]
struct Tally {
    read: u64,
    refused: u64,
    slowest: Duration,
    found: Vec<(u64, String)>,
}

/// Reads the files of these seeds, within this process.
fn read(kind: &Kind, seeds: std::ops::Range<u64>, progress: &File) -> Tally {
    let samples = (kind.samples)();
    let mut reader = (kind.reader)();
    let mut tally = Tally::default();
    for seed in seeds {
        progress.write_all_at(&seed.to_le_bytes(), 0).unwrap();
        let (bytes, mut random) = file(&samples, kind, seed);
        let begun = processor_time();
        WITHIN.set(true);
        let got = catch_unwind(AssertUnwindSafe(|| reader(&bytes, &mut random)));
        WITHIN.set(false);
        let took = processor_time().saturating_sub(begun);
        tally.slowest = tally.slowest.max(took);
        let why = match got {
            Ok(Ok(is_read)) => {
                tally.read += u64::from(is_read);
                tally.refused += u64::from(!is_read);
                None
            }
            Ok(Err(why)) => Some(why),
            Err(_) => {
                // Whatever it was in the midst of.
                reader = (kind.reader)();
                Some(format!("panic: {}", SAID.take()))
            }
        };
        let why = why.or((took > PATIENCE).then(|| format!("it took {took:?}")));
        tally.found.extend(why.map(|why| (seed, why)));
        if tally.found.len() >= FOUND_MAX {
            break;
        }
    }
    tally
}

/// The process of one kind: its words are the kind, the first seed, the one behind the last, and the file for its progress.
#[test]
#[ignore = "started by the tests of the kinds, in a process of its own"]
fn worker() {
    note_panics();
    let told = std::env::var(WORK).unwrap();
    let words: Vec<&str> = told.splitn(4, ' ').collect();
    let kind = KINDS.iter().find(|k| k.name == words[0]).unwrap();
    let seeds = words[1].parse().unwrap()..words[2].parse().unwrap();
    let progress = File::options().write(true).open(words[3]).unwrap();
    let tally = read(kind, seeds, &progress);
    // Behind the name of the test, which stands there alone.
    println!();
    for (seed, why) in &tally.found {
        println!("found: {seed} {}", why.replace('\n', " "));
    }
    println!("read: {} {} {}", tally.read, tally.refused, tally.slowest.as_millis());
}

/// Starts a worker and waits for its end.
#[expect(clippy::disallowed_methods, reason = "this test program itself, which ends by its limits")]
fn work(kind: &Kind, from: u64, to: u64, progress: &Path) -> (bool, String) {
    let seconds = SECONDS + (to - from) / 100;
    let limits =
        format!("ulimit -v {SPACE_KB} && ulimit -t {seconds} && ulimit -c 0 && exec \"$0\" \"$@\"");
    let out = Command::new("sh")
        .args(["-c", &limits])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "many::worker", "--ignored", "--nocapture", "--test-threads=1"])
        .env(WORK, format!("{} {from} {to} {}", kind.name, progress.display()))
        // Each of glibc's own heaps takes 64 MiB of address space.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr);
    let whole = said.lines().any(|l| l.starts_with("read: "));
    (whole, if whole { said } else { format!("{said}{errors}{}", out.status) })
}

/// Everything of one kind.
fn all(kind: &Kind) {
    let shares: u64 = KINDS.iter().map(|k| k.share).sum();
    let one = given("TAILBOUND_SEED");
    let files = given("TAILBOUND_MUTATIONS").unwrap_or(FILES);
    let last = (files * kind.share).div_ceil(shares);
    let (mut from, to) = one.map_or((1, last + 1), |seed| (seed, seed + 1));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
    fs::create_dir_all(&folder).unwrap();
    let progress = folder.join(format!("{}-{}.progress", kind.name, std::process::id()));
    let begun = Instant::now();
    let mut tally = Tally::default();
    while from < to && tally.found.len() < FOUND_MAX {
        fs::write(&progress, [0; 8]).unwrap();
        let (whole, said) = work(kind, from, to, &progress);
        for line in said.lines() {
            if let Some((seed, why)) = line.strip_prefix("found: ").and_then(|l| l.split_once(' '))
            {
                tally.found.push((seed.parse().unwrap(), why.to_owned()));
            }
            if let Some(figures) = line.strip_prefix("read: ") {
                let all: Vec<u64> = figures.split(' ').filter_map(|w| w.parse().ok()).collect();
                tally.read += all[0];
                tally.refused += all[1];
                tally.slowest = tally.slowest.max(Duration::from_millis(all[2]));
            }
        }
        if whole {
            break;
        }
        let mut seed = [0; 8];
        File::open(&progress).unwrap().read_exact(&mut seed).unwrap();
        let seed = u64::from_le_bytes(seed);
        let last: Vec<&str> = said.lines().rev().take(8).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        assert!(seed > 0, "{}: its process did not begin: {}", kind.name, last.join("\n"));
        tally.found.push((seed, format!("its process died: {}", last.join(" "))));
        from = seed + 1;
    }
    fs::remove_file(&progress).unwrap();
    println!(
        "{}: {} damaged files, {} read, {} refused; at most {:?} of a processor, {:?} in all",
        kind.name,
        to.saturating_sub(one.unwrap_or(1)),
        tally.read,
        tally.refused,
        tally.slowest,
        begun.elapsed()
    );
    let told: Vec<String> =
        tally.found.iter().map(|(seed, why)| told(kind, *seed, why, &folder)).collect();
    assert!(told.is_empty(), "{} of {}:\n{}", told.len(), kind.name, told.join("\n"));
    // Damage that is refused at the door, each and every time, tries nothing behind it.
    let enough = one.is_some() || tally.read * 50 >= tally.read + tally.refused;
    assert!(enough, "{}: {} of them were read", kind.name, tally.read);
}

/// A finding, with how to have it again.
fn told(kind: &Kind, seed: u64, why: &str, folder: &Path) -> String {
    let (bytes, _) = file(&(kind.samples)(), kind, seed);
    let path: PathBuf = folder.join(format!("{}-{seed}", kind.name));
    let kept = File::create(&path).and_then(|mut f| f.write_all(&bytes));
    let where_ = kept.map_or_else(|e| e.to_string(), |()| path.display().to_string());
    let short: String = why.chars().take(600).collect();
    format!("TAILBOUND_SEED={seed} {}: {short} ({where_})", kind.name)
}

macro_rules! tests {
    ($names:ident: $($name:ident),*) => {
        const $names: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            all(KINDS.iter().find(|k| k.name == stringify!($name)).unwrap());
        })*
    };
}

tests!(
    ALWAYS: trace_file,
    trace_pages,
    perf_file,
    trace_texts,
    captures,
    captured_files,
    plans,
    campaigns,
    models_of_tasks,
    profiles,
    files_of_other_tools,
    run_files,
    logs_of_boards,
    plans_of_tuning,
    journals_of_tuning,
    journals_of_bisections,
    corpora_of_hunts,
    records_of_bounds
);
#[cfg(feature = "server")]
tests!(FARM: targets, systems_of_the_lab, policies);
#[cfg(not(feature = "server"))]
const FARM: &[&str] = &[];

#[test]
fn every_kind_has_its_test() {
    assert_eq!(KINDS.iter().map(|k| k.name).collect::<Vec<_>>(), [ALWAYS, FARM].concat());
}
