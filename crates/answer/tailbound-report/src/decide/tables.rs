// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of a choice, in the shape of McKenney's: raw times of each repetition, mean and
//! deviation, and the real-fast advantage; start latency; break-even.

use tailbound_core::units::{format_ns, grouped};
use tailbound_stats::decide::choice::{BenchmarkChoice, Delay};
use tailbound_stats::decide::{Advantage, BenchmarkCost, Choice, Crossing, Sample, Side};

use super::benchmarks::seconds;
use crate::table::Table;

/// One benchmark on both systems: the three tables in one.
#[must_use]
pub fn benchmark(w: &BenchmarkChoice, choice: &Choice) -> Table {
    let mut table = Table::new(&["", "real", "user", "sys"]);
    cost(&mut table, &w.fast, &choice.fast.name);
    cost(&mut table, &w.real, &choice.real.name);
    let cells = |of: fn(&Advantage) -> String| {
        [&w.elapsed, &w.user, &w.sys].map(|a| a.as_ref().map_or_else(|| "–".to_owned(), of))
    };
    let mut row = vec!["real-fast advantage".to_owned()];
    row.extend(cells(|a| format!("{:+.1} %", a.percent)));
    table.row(row);
    let mut row = vec!["  95 % interval".to_owned()];
    row.extend(cells(interval));
    table.row(row);
    table
}

fn interval(a: &Advantage) -> String {
    match (a.ratio_low, a.ratio_high) {
        (Some(low), Some(high)) => {
            format!("{:+.1} … {:+.1} %", (low - 1.0) * 100.0, (high - 1.0) * 100.0)
        }
        _ => "none".to_owned(),
    }
}

fn cost(table: &mut Table, w: &BenchmarkCost, system: &str) {
    table.row(vec![system.to_owned(), String::new(), String::new(), String::new()]);
    for (i, real) in w.real_s.iter().enumerate() {
        let cell = |of: &[f64]| of.get(i).map_or(String::new(), |s| seconds(*s));
        table.row(vec![format!("  {}", i + 1), seconds(*real), cell(&w.user_s), cell(&w.sys_s)]);
    }
    let row = |name: &str, of: fn(&Sample) -> f64| {
        let cell = |s: &Option<Sample>| s.as_ref().map_or("–".to_owned(), |s| seconds(of(s)));
        vec![format!("  {name}"), cell(&w.real), cell(&w.user), cell(&w.sys)]
    };
    table.row(row("mean", |s| s.mean));
    table.row(row("σ", |s| s.sd));
}

/// What an advantage says, in a sentence.
#[must_use]
pub fn sentence(w: &BenchmarkChoice, choice: &Choice) -> String {
    let Some(a) = &w.elapsed else {
        return format!("{}: no repetition came to its end on one of the systems.", w.spec);
    };
    let (faster, slower) = if a.percent >= 0.0 {
        (&choice.fast.name, &choice.real.name)
    } else {
        (&choice.real.name, &choice.fast.name)
    };
    if a.shown {
        let by = a.percent.abs();
        let range = interval(a);
        return format!(
            "{}: {faster} is done sooner than {slower}, real-fast advantage {}{by:.1} % ({range} at 95 %).",
            w.work,
            if a.percent < 0.0 { "−" } else { "" },
        );
    }
    let n = w.fast.real.map_or(0, |s| s.n).min(w.real.real.map_or(0, |s| s.n));
    let more = match (&a.why_not, a.needed) {
        (Some(why), Some(n)) => format!("{why} (at least {n} times)"),
        (Some(why), None) => why.clone(),
        (None, Some(n)) => {
            format!("about {n} repetitions of each would, if the difference is what it looks like")
        }
        (None, None) => "no number of repetitions worth naming would".to_owned(),
    };
    let what = if n == 1 { "repetition does" } else { "repetitions do" };
    format!("{}: {n} {what} not show which system is faster: {more}.", w.work)
}

/// Start latency of both systems.
#[must_use]
pub fn latency(choice: &Choice) -> Table {
    let mut table =
        Table::new(&["start latency", choice.fast.name.as_str(), choice.real.name.as_str()]);
    let figures =
        |side: &Side| side.latency.as_ref().map(|l| l.figures.clone()).unwrap_or_default();
    let (fast, real) = (figures(&choice.fast), figures(&choice.real));
    let longer = if fast.len() >= real.len() { &fast } else { &real };
    for f in longer {
        let cell = |of: &[tailbound_stats::decide::Figure]| {
            of.iter().find(|o| o.statistic == f.statistic).map_or("not measured".to_owned(), one)
        };
        table.row(vec![f.statistic.clone(), cell(&fast), cell(&real)]);
    }
    let n = |side: &Side| {
        side.latency.as_ref().map_or("0".to_owned(), |l| match l.n {
            0 => "not known".to_owned(),
            n => grouped(n),
        })
    };
    table.row(vec!["activations".to_owned(), n(&choice.fast), n(&choice.real)]);
    table
}

fn one(f: &tailbound_stats::decide::Figure) -> String {
    match (f.ns, f.more) {
        (Some(ns), _) => match (f.low_ns, f.high_ns) {
            (Some(low), Some(high)) if high > low => {
                format!("{} ({} … {})", format_ns(ns), format_ns(low), format_ns(high))
            }
            _ => format_ns(ns),
        },
        (None, Some(more)) => format!("needs {} more", grouped(more)),
        (None, None) => "unknown: not in the data".to_owned(),
    }
}

/// Where total delays are equal: one row per benchmark, one column per statistic.
#[must_use]
pub fn breakeven(choice: &Choice) -> Table {
    let statistics: Vec<&str> = choice
        .benchmarks
        .iter()
        .map(|w| &w.delays)
        .max_by_key(|d| d.len())
        .map(|d| d.iter().map(|d| d.statistic.as_str()).collect())
        .unwrap_or_default();
    let mut head = vec!["break-even"];
    head.extend(&statistics);
    let mut table = Table::new(&head);
    for w in &choice.benchmarks {
        let mut row = vec![w.work.clone()];
        for s in &statistics {
            let delay = w.delays.iter().find(|d| d.statistic == *s);
            row.push(delay.map_or("–".to_owned(), crossing_short));
        }
        table.row(row);
    }
    table
}

/// A crossing in a few words, for a cell.
#[must_use]
pub fn crossing_short(d: &Delay) -> String {
    match d.crossing {
        Crossing::At { ns, low_ns, high_ns } => match (low_ns, high_ns) {
            (Some(low), Some(high)) => {
                format!("{} ({} … {})", format_ns(ns), format_ns(low), format_ns(high))
            }
            (Some(low), None) => format!("{} (from {})", format_ns(ns), format_ns(low)),
            (None, Some(high)) => format!("{} (to {})", format_ns(ns), format_ns(high)),
            (None, None) => format!("{} (open)", format_ns(ns)),
        },
        Crossing::Reversed { ns } => format!("{}, reversed", format_ns(ns)),
        Crossing::RealTimeAlways => "none: real time".to_owned(),
        Crossing::RealFastAlways => "none: real fast".to_owned(),
        Crossing::Equal => "none: equal".to_owned(),
    }
}

/// A crossing in a sentence.
#[must_use]
pub fn crossing(d: &Delay) -> String {
    let s = &d.statistic;
    match d.crossing {
        Crossing::At { ns, .. } => format!(
            "By the {s}, work items shorter than {} finish sooner on the real-time system, longer ones on the real-fast one.",
            format_ns(ns)
        ),
        Crossing::Reversed { ns } => format!(
            "By the {s}, work items shorter than {} finish sooner on the real-fast system and longer ones on the real-time one, which has the higher throughput here.",
            format_ns(ns)
        ),
        Crossing::RealTimeAlways => format!(
            "By the {s}, the real-time system finishes sooner at every length from 1 µs to 1 s: no break-even."
        ),
        Crossing::RealFastAlways => format!(
            "By the {s}, the real-fast system finishes sooner at every length from 1 µs to 1 s: no break-even."
        ),
        Crossing::Equal => format!("By the {s}, the systems are equal at every length."),
    }
}
