// SPDX-License-Identifier: MIT OR Apache-2.0
//! The coverage studies: of the worst-case bound, of changes within a run and of half-widths.
//! `cargo xtask coverage` runs them.
//!
//! Context: COLD, two threads for the bound. Options: `--repetitions N` (300), `--seed N` (1), `--extrapolate H`
//! (10), `--json`. The answer goes to standard output, progress to standard error. Exit
//! status 0: every target is met; 1: one is not; 2: wrong words.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tailbound_stats::bound::study::{CASES, Case, Outcome, Row};
use tailbound_stats::change::study as changes;
use tailbound_stats::precision::study as widths;

struct Options {
    repetitions: usize,
    seed: u64,
    extrapolate: f64,
    json: bool,
}

fn words() -> Result<Options, String> {
    let mut out = Options { repetitions: 300, seed: 1, extrapolate: 10.0, json: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().ok_or_else(|| format!("{word} needs a number"))?;
            text.parse::<u32>().map_err(|_| format!("`{text}` is not a number for {word}"))
        };
        match word.as_str() {
            "--repetitions" => out.repetitions = number()?.max(1) as usize,
            "--seed" => out.seed = u64::from(number()?),
            "--extrapolate" => out.extrapolate = f64::from(number()?.max(1)),
            "--json" => out.json = true,
            _ => {
                return Err(format!(
                    "`{word}` is not known: --repetitions, --seed, --extrapolate, --json"
                ));
            }
        }
    }
    Ok(out)
}

/// All outcomes of a case, drawn on two threads; each repetition has its own seed.
fn outcomes(case: Case, number: u64, words: &Options, done: &AtomicUsize) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let draw = || {
        let mut drawn = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= words.repetitions {
                return drawn;
            }
            let seed =
                words.seed.wrapping_mul(1_000_003).wrapping_add(number * 100_000_007 + i as u64);
            drawn.push((i, case.once(seed, words.extrapolate)));
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut all = std::thread::scope(|s| {
        let other = s.spawn(draw);
        let mut mine = draw();
        mine.extend(other.join().unwrap_or_default());
        mine
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, o)| o).collect()
}

fn main() -> ExitCode {
    let words = match words() {
        Ok(words) => words,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::from(2);
        }
    };
    let begun = Instant::now();
    let mut told = begun;
    let done = AtomicUsize::new(0);
    let total = CASES.len() * words.repetitions;
    let mut rows = Vec::new();
    for (case, number) in CASES.into_iter().zip(0u64..) {
        let outcomes = outcomes(case, number, &words, &done);
        rows.push(Row::of(case, &outcomes));
        if told.elapsed() > Duration::from_secs(2) {
            told = Instant::now();
            let done = done.load(Ordering::Relaxed);
            eprintln!("{done} of {total} series in {} s", begun.elapsed().as_secs());
        }
    }
    eprintln!("changes within a run, and half-widths");
    let seen = DetectionShares::all(&words);
    let held = held(&words);
    let good = rows.iter().all(Row::good) && seen.iter().all(DetectionShares::good);
    if words.json {
        let answer = serde_json::json!({
            "schema": "tailbound-coverage/1",
            "repetitions": words.repetitions,
            "seed": words.seed,
            "extrapolate": words.extrapolate,
            "rows": rows,
            "changes": seen,
            "half_widths": held,
            "met": good,
        });
        println!("{answer:#}");
    } else {
        print!("{}", table(&rows));
        print!("{}", DetectionShares::table(&seen));
        print!("{}", widths_table(&held));
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The table as Markdown.
fn table(rows: &[Row]) -> String {
    let mut out = "| series | refused | holds, of those answered | bound / truth: median (5–95 %) | target |\n\
                   |---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let name = match row.case.fault {
            Some(fault) => format!("{}: {}", fault.name(), row.case.tail.name()),
            None => row.case.tail.name(),
        };
        let faulty = row.case.fault.is_some();
        let holds = match row.holds() {
            Some(_) if faulty => "–".to_owned(),
            Some(share) => format!("{:.1} %", share * 100.0),
            None => "–".to_owned(),
        };
        let ratio = match row.ratio {
            Some([low, middle, high]) if !faulty => {
                format!("{middle:.2} ({low:.2}–{high:.2})")
            }
            _ => "–".to_owned(),
        };
        let good = if row.good() { "met" } else { "**missed**" };
        let refused = row.refusals() * 100.0;
        out.push_str(&format!("| {name} | {refused:.1} % | {holds} | {ratio} | {good} |\n"));
    }
    out
}

/// In how many hours a change is seen: of one family at one rate, after each event.
#[derive(serde::Serialize)]
struct DetectionShares {
    family: changes::Family,
    rate: u32,
    shares: [f64; changes::EVENTS.len()],
}

impl DetectionShares {
    fn all(words: &Options) -> Vec<Self> {
        let seed = words.seed.wrapping_mul(1_000_003);
        let share = |family, rate, event| {
            changes::share(family, rate, event, seed, words.repetitions as u64)
        };
        let families = changes::FAMILIES.into_iter();
        families
            .flat_map(|family| changes::RATES.map(|rate| (family, rate)))
            .map(|(family, rate)| Self {
                family,
                rate,
                shares: changes::EVENTS.map(|event| share(family, rate, event)),
            })
            .collect()
    }

    /// At most 1 % of steady hours, as far as a few hundred of them tell.
    fn good(&self) -> bool {
        self.shares[0] <= 0.02
    }

    fn table(rows: &[Self]) -> String {
        let mut out =
            "\nA change within a run (`changed`), of steady hours and of hours with one:\n\n\
                       | values | a second |"
                .to_owned();
        for event in changes::EVENTS {
            out.push_str(&format!(" {} |", event.name()));
        }
        out.push_str(&format!("\n|---|---|{}\n", "---|".repeat(changes::EVENTS.len())));
        for row in rows {
            let share = |s: f64| format!(" {:.1} % |", s * 100.0);
            let shares: String = row.shares.into_iter().map(share).collect();
            out.push_str(&format!("| {} | {} |{shares}\n", row.family.name(), row.rate));
        }
        out
    }
}

/// Half as many runs as of the bound: each takes longer.
fn held(words: &Options) -> Vec<widths::Row> {
    let repetitions = (words.repetitions as u64 / 2).max(1);
    let seed = words.seed.wrapping_mul(7_000_003);
    let row = |case| {
        let runs: Vec<widths::IntervalCoverage> =
            (0..repetitions).map(|i| widths::once(case, seed + i)).collect();
        widths::Row::of(case, &runs)
    };
    widths::CASES.into_iter().map(row).collect()
}

fn widths_table(rows: &[widths::Row]) -> String {
    let mut out = "\n`95 % ±` where a state of the machine lasts: share of runs in which it holds, and median \
                   half-width over truth:\n\n\
                   | run | mean length of a state | mean | p50 | p99 | p99.9 | said to be a lower limit |\n\
                   |---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let cell = |(holds, half): (f64, f64)| {
            format!(" {:.1} % (±{:.1} %) |", holds * 100.0, half * 100.0)
        };
        let cells: String = row.holds.into_iter().zip(row.half).map(cell).collect();
        let state = match row.case.state_s {
            s if s > 0.0 => format!("{s} s"),
            _ => "independent".to_owned(),
        };
        out.push_str(&format!(
            "| {} s | {state} |{cells} {:.1} % |\n",
            row.case.seconds,
            row.lasting * 100.0
        ));
    }
    out
}
