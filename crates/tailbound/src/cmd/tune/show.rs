// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune show`: threads and interrupts as tables, JSON, or an interactive view.
//!
//! Nothing is written; the interactive view asks before it changes anything.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use tailbound_core::CpuSet;
use tailbound_core::units;
use tailbound_host::{Cpus, CpusError, Root};
use tailbound_report::machine::{self, Choice, Kind, Look, MachineView, Sort, Which};
use tailbound_sys::clock;
use tailbound_sys::signal::Signals;

use super::hands::OwnHands;
use super::look::look;
use super::view::{self, Start};
use crate::cli_tune_show::{Table, TuneShowArgs};
use crate::say::{self, Failure};

/// Shortest time between two looks, in ns: a shorter one counts single events.
const INTERVAL_MIN_NS: i64 = 10_000_000;
/// Longest, in ns.
const INTERVAL_MAX_NS: i64 = 86_400_000_000_000;
/// Ended by a signal before there was an answer: undecided.
const CUT_OFF: u8 = 5;

/// `tailbound tune show`
pub(crate) fn show(args: &TuneShowArgs) -> Result<ExitCode, Failure> {
    let asked = Asked::of(args)?;
    let root = Root::real();
    if args.live {
        return live(asked, &root, say::style(&args.color.when).color);
    }
    let before = now(&root, asked.which)?;
    let shown = match asked.interval_ns {
        0 => before.totals(),
        interval_ns => {
            let signals = Signals::block_and_open().map_err(Failure::cannot)?;
            let ms = i32::try_from(interval_ns / 1_000_000).unwrap_or(i32::MAX);
            if signals.wait(ms).is_some() {
                return Ok(ExitCode::from(CUT_OFF));
            }
            now(&root, asked.which)?.since(&before)
        }
    };
    let shown = asked.chosen(shown);
    if args.json {
        say::answer_json(&machine::json(&shown, asked.which))?;
    } else {
        let style = say::style(&args.color.when);
        // Into a pipe nothing is cut.
        let narrow = io::stdout().is_terminal() || std::env::var_os("COLUMNS").is_some();
        say::answer_in(&machine::text(&shown, asked.which, style, narrow), style)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The interactive view.
fn live(asked: Asked, root: &Root, color: bool) -> Result<ExitCode, Failure> {
    let start = Start {
        choice: asked.choice,
        sort: asked.sort,
        interrupts: asked.which == Which::Interrupts,
        interval_ns: asked.interval_ns,
        color,
    };
    let look = || now(root, Which::Both);
    view::run(start, &look, &mut OwnHands::default())?;
    Ok(ExitCode::SUCCESS)
}

/// The arguments, understood.
struct Asked {
    which: Which,
    choice: Choice,
    sort: Sort,
    /// 0 for totals.
    interval_ns: i64,
}

impl Asked {
    fn of(args: &TuneShowArgs) -> Result<Self, Failure> {
        let which = match args.table {
            None => Which::Both,
            Some(Table::Threads) => Which::Threads,
            Some(Table::Irqs) => Which::Interrupts,
        };
        let of_threads =
            [(args.realtime, "--realtime"), (args.kernel, "--kernel"), (args.user, "--user")];
        if let Some((_, word)) = of_threads.iter().find(|(given, _)| *given && !which.threads()) {
            return Err(Failure::usage(format!(
                "{word} selects threads: leave it out, or write `tune show threads`"
            )));
        }
        let cpus = match &args.cpus {
            None => CpuSet::default(),
            Some(text) => chosen_cpus(&read_cpus()?, text).map_err(Failure::usage)?,
        };
        Ok(Self {
            which,
            choice: Choice {
                text: args.filter.clone().unwrap_or_default(),
                cpus,
                kind: match (args.kernel, args.user) {
                    (true, _) => Kind::Kernel,
                    (_, true) => Kind::User,
                    _ => Kind::Any,
                },
                realtime: args.realtime,
            },
            sort: match &args.sort {
                None => Sort::default(),
                Some(text) => text.parse().map_err(|e| Failure::usage(format!("--sort: {e}")))?,
            },
            interval_ns: interval(&args.interval)?,
        })
    }

    fn chosen(&self, mut shown: MachineView) -> MachineView {
        self.choice.apply(&mut shown);
        self.sort.apply(&mut shown);
        shown
    }
}

/// A look at the machine as it is now.
fn now(root: &Root, which: Which) -> Result<Look, Failure> {
    Ok(look(root, &read_cpus()?, clock::now_ns(clock::CLOCK_MONOTONIC), which))
}

fn read_cpus() -> Result<Cpus, Failure> {
    Cpus::read(&Root::real()).map_err(Failure::cannot)
}

/// The CPUs that `text` means. Any that is there may be looked at, also one that this process may not use:
/// an isolated one is taken from the cpuset of all others.
fn chosen_cpus(cpus: &Cpus, text: &str) -> Result<CpuSet, CpusError> {
    let chosen = match text.trim() {
        "all" => cpus.present.clone(),
        "isolated" if cpus.isolated.is_empty() => return Err(CpusError::NoneIsolated),
        "isolated" => cpus.isolated.clone(),
        list => list.parse()?,
    };
    let absent = chosen.minus(&cpus.present);
    if chosen.is_empty() {
        Err(CpusError::Empty)
    } else if absent.is_empty() {
        Ok(chosen)
    } else {
        Err(CpusError::Absent { cpus: absent, present: cpus.present.clone() })
    }
}

fn interval(text: &str) -> Result<i64, Failure> {
    let ns = match text.trim() {
        "0" => 0,
        text => units::parse_ns(text).map_err(|e| Failure::usage(format!("--interval: {e}")))?,
    };
    if ns == 0 || (INTERVAL_MIN_NS..=INTERVAL_MAX_NS).contains(&ns) {
        return Ok(ns);
    }
    Err(Failure::usage(format!(
        "--interval {}: rates take between {} and {}; 0 shows totals since boot",
        tailbound_core::printable::excerpt(text, 40),
        units::spaced(INTERVAL_MIN_NS),
        units::spaced(INTERVAL_MAX_NS)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cpu_that_is_there_may_be_looked_at() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap_or_default();
        let cpus = Cpus {
            present: set("0-3"),
            online: set("0-3"),
            allowed: set("0-1"),
            cpuset: Some(set("0-1")),
            isolated: set("3"),
        };
        let of = |text: &str| chosen_cpus(&cpus, text).map(|c| c.to_string()).ok();
        assert_eq!(of("2-3").as_deref(), Some("2-3"));
        assert_eq!(of("isolated").as_deref(), Some("3"));
        assert_eq!(of("all").as_deref(), Some("0-3"));
        for wrong in ["4", "", "x", "3-1"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn intervals_are_times_within_reason() {
        let of = |text| interval(text).map_err(|e| e.kind.exit_status());
        assert_eq!(of("0"), Ok(0));
        assert_eq!(of("0s"), Ok(0));
        assert_eq!(of("250ms"), Ok(250_000_000));
        for wrong in ["1", "1us", "-1s", "2d", "soon", ""] {
            assert_eq!(of(wrong), Err(2), "{wrong}");
        }
    }
}
