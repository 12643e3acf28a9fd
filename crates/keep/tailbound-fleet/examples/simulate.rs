// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fills a store with the years of a farm that never was: `simulate STORE SYSTEMS DAYS WHOLE RUN…`.
//!
//! Every simulated run is drawn from one of the RUNs (run files of the lab, say): each bucket of its histograms is drawn
//! again around its count, shifted by what is the machine's own. Every twentieth system (with SIMULATE_WORSE=all every one) becomes a quarter later on some
//! day of the last third. Runs of the last WHOLE days are written as files and go through the same reading, judging and packing as uploads do; of the
//! days before them the store gets all rows, made by the same code, but not the file, which costs ten times as much to make and
//! which no table needs. `docs/results/scale.md` says what it is for.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::record::{Fact, ThreadRecord};
use tailbound_core::{Distribution, Run, runfile, utc};
use tailbound_stats::random::Random;
use tailbound_store::{Incoming, Rows, RunSubmission, Store, Way};

/// The last day: 2026-11-25.
const LAST_S: i64 = 1_795_564_800;
/// The runs of a day have arrived so long after its beginning: all began in its first three hours.
const ARRIVES_S: i64 = 4 * 3_600;
/// Runs of a transaction: the wait for the disk is the same for one.
const TOGETHER: usize = 1000;
const S_PER_DAY: i64 = 86_400;

/// How many normal numbers there are to draw from.
const NORMALS: usize = 4096;

/// Normal numbers, each the sum of twelve uniforms (Irwin-Hall): good enough for counts, and drawn once.
fn normals() -> &'static [f64] {
    static ALL: std::sync::OnceLock<Vec<f64>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| {
        let mut random = Random::new(1);
        let mut one = || (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
        (0..NORMALS).map(|_| one()).collect()
    })
}

fn normal(random: &mut Random) -> f64 {
    let at = usize::try_from((random.uniform() * NORMALS.real()).whole_u64()).unwrap_or(0);
    normals().get(at).copied().unwrap_or(0.0)
}

/// A distribution drawn anew around `of`, everything `factor` times as late.
fn drawn(of: &Distribution, factor: f64, random: &mut Random) -> Distribution {
    let mut new = Distribution::default();
    for b in of.late.buckets() {
        let n = b.count.real();
        let n = (n + n.sqrt() * normal(random)).round().max(0.0).whole_u64();
        let value = (b.low_ns.real() + b.width_ns.real() * random.uniform()) * factor;
        if n > 0 {
            new.add_many(value.whole_i64(), n);
        }
    }
    new
}

/// One run of a system on a day.
fn one(base: &Run, system: usize, day: i64, worse: bool, random: &mut Random) -> Run {
    let mut run = Run::new(base.header.clone());
    let at = LAST_S - day * S_PER_DAY + 3_600 * 2 + i64::try_from(system % 3_600).unwrap_or(0);
    run.header.started = utc::rfc3339(at);
    // As if a machine had measured it: its days are those of the simulation.
    run.header.lab = None;
    run.header.id = format!("simulated-{system}-{day}");
    let release = if worse { "6.12.50" } else { "6.12.40" };
    run.header.machine.insert("kernel.release".to_owned(), Fact::of(release));
    run.header
        .machine
        .insert("machine.model".to_owned(), Fact::of(format!("Board {}", system % 17).as_str()));
    let own = 0.7 + (system * 7919 % 100).real() / 100.0;
    let factor = own * if worse { 1.25 } else { 1.0 } * (1.0 + 0.01 * normal(random));
    for thread in &base.threads {
        run.threads.push(ThreadRecord {
            wakeup: drawn(&thread.wakeup, factor, random),
            cpu: thread.cpu,
            context: thread.context,
            ended: thread.ended.clone(),
            thread: thread.thread,
            ..ThreadRecord::default()
        });
    }
    run.end.clone_from(&base.end);
    run
}

/// A run that goes into the store.
enum SimulatedRun {
    Whole(String, Box<Incoming>),
    Rows(Rows),
}

fn filled(words: &[String]) -> Result<(), String> {
    let [place, systems, days, whole, bases @ ..] = words else {
        return Err("simulate STORE SYSTEMS DAYS WHOLE RUN…".to_owned());
    };
    let number = |text: &String| text.parse::<i64>().map_err(|e| format!("{text}: {e}"));
    let (systems, days, whole) = (number(systems)?, number(days)?, number(whole)?);
    let read = |path: &String| {
        let file = File::open(path).map_err(|e| format!("{path}: {e}"))?;
        runfile::read_run(BufReader::new(file)).map_err(|e| format!("{path}: {e}"))
    };
    let bases: Vec<Run> = bases.iter().map(read).collect::<Result<_, String>>()?;
    let place = place.parse().map_err(|e: tailbound_store::LocationError| e.to_string())?;
    let mut store =
        Store::open_or_make(&place, &utc::rfc3339(LAST_S)).map_err(|e| e.to_string())?;
    let all: Vec<usize> = (0..usize::try_from(systems).unwrap_or(0)).collect();
    let begun = Instant::now();
    let mut done = 0u64;
    for day in (0..days).rev() {
        for some in all.chunks(TOGETHER) {
            let made = together(some, &bases, (day, days), day < whole)?;
            added(&mut store, &made, &utc::rfc3339(LAST_S - day * S_PER_DAY + ARRIVES_S))
                .map_err(|e| e.to_string())?;
            done += made.len() as u64;
        }
        if day % 30 == 0 {
            let rate = done.real() / begun.elapsed().as_secs_f64();
            eprintln!("{day} days to go, {done} runs, {rate:.0} runs a second");
        }
    }
    println!("{done} runs in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

fn added(
    store: &mut Store,
    made: &[SimulatedRun],
    now: &str,
) -> Result<(), tailbound_store::StoreError> {
    let (mut given, mut rows) = (Vec::new(), Vec::new());
    for one in made {
        match one {
            SimulatedRun::Whole(name, incoming) => given.push(RunSubmission {
                incoming,
                system: Some(name),
                who: None,
                way: Way::Archive,
            }),
            SimulatedRun::Rows(of) => rows.push(of),
        }
    }
    store.add_given(&given, now)?;
    store.add_rows(&rows)?;
    Ok(())
}

/// The runs of some systems on one day, made on all CPUs.
fn together(
    some: &[usize],
    bases: &[Run],
    (day, days): (i64, i64),
    whole: bool,
) -> Result<Vec<SimulatedRun>, String> {
    let everywhere = std::env::var("SIMULATE_WORSE").is_ok_and(|v| v == "all");
    let make = |system: usize| -> Result<SimulatedRun, String> {
        let base = bases.get(system % bases.len().max(1)).ok_or("no RUN was given")?;
        let seed = (system as u64) << 32 | day.unsigned_abs();
        let mut random = Random::new(seed);
        let since = days / 3 * i64::try_from(system % 97).unwrap_or(0) / 97;
        let worse = everywhere || system % 20 == 7;
        let mut run = one(base, system, day, worse && day < since, &mut random);
        let name = format!("system {system:04}");
        if whole {
            let bytes = runfile::write_run(&run, Vec::new()).map_err(|e| e.to_string())?;
            let incoming = Incoming::read(bytes.as_slice()).map_err(|e| e.to_string())?;
            return Ok(SimulatedRun::Whole(name, Box::new(incoming)));
        }
        tailbound_stats::judge(&mut run);
        let id: String =
            Sha256::digest(run.header.id.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
        Ok(SimulatedRun::Rows(tailbound_store::rows(&run, &id, &name, &run.header.started)))
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let parts: Vec<Result<Vec<_>, String>> = std::thread::scope(|scope| {
        let part = |part: Vec<usize>| scope.spawn(move || part.into_iter().map(make).collect());
        let threads: Vec<_> =
            some.chunks(some.len().div_ceil(cores).max(1)).map(|c| part(c.to_vec())).collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err("a panic".to_owned())))
            .collect()
    });
    parts.into_iter().collect::<Result<Vec<_>, _>>().map(|all| all.into_iter().flatten().collect())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match filled(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("simulate: {e}");
            ExitCode::from(2)
        }
    }
}
