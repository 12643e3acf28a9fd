// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune show`: threads and interrupts as tables, JSON, or an interactive view.
//!
//! Nothing is written; the interactive view asks before it changes anything.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use tailbound_core::CpuSet;
use tailbound_host::{Cpus, Root};
use tailbound_report::Style;
use tailbound_report::machine::{self, Choice, Fit, Kind, MachineView, Sort, Which};
use tailbound_sys::signal::Signals;
use tailbound_tune::view::{self, Start};
use tailbound_tune::{chosen_cpus, look_interval_ns, look_now};

use crate::cli_tune_show::{Table, TuneShowArgs};
use crate::flags;
use crate::say::{self, Failure, Form};

/// Ended by a signal before there was an answer: undecided.
const CUT_OFF: u8 = 5;

/// `tailbound tune show`
pub(crate) fn show(args: &TuneShowArgs) -> Result<ExitCode, Failure> {
    let asked = Asked::of(args)?;
    let root = Root::real();
    if args.live {
        return live(asked, say::style(args.color.when));
    }
    let before = look_now(&root, asked.which)?;
    let shown = match asked.interval_ns {
        0 => before.totals(),
        interval_ns => {
            let signals = Signals::block_and_open().map_err(Failure::cannot)?;
            let ms = i32::try_from(interval_ns / 1_000_000).unwrap_or(i32::MAX);
            if signals.wait(ms).is_some() {
                return Ok(ExitCode::from(CUT_OFF));
            }
            look_now(&root, asked.which)?.since(&before)
        }
    };
    let shown = asked.chosen(shown);
    // Into a pipe nothing is cut.
    let has_width = io::stdout().is_terminal() || std::env::var_os("COLUMNS").is_some();
    let fit = if has_width { Fit::Terminal } else { Fit::Whole };
    Form::of(args.json, args.color.when).answer(
        || machine::json(&shown, asked.which),
        |style| machine::text(&shown, asked.which, style, fit),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The interactive view.
fn live(asked: Asked, style: Style) -> Result<ExitCode, Failure> {
    let start = Start {
        choice: asked.choice,
        sort: asked.sort,
        interrupts: asked.which == Which::Interrupts,
        interval_ns: asked.interval_ns,
        color: style.color,
    };
    view::run(start)?;
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
            Some(text) => {
                let cpus = Cpus::read(&Root::real()).map_err(Failure::cannot)?;
                chosen_cpus(&cpus, text)?
            }
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
                Some(text) => text.parse().map_err(flags::refused("--sort"))?,
            },
            interval_ns: look_interval_ns(&args.interval)?,
        })
    }

    fn chosen(&self, mut shown: MachineView) -> MachineView {
        self.choice.apply(&mut shown);
        self.sort.apply(&mut shown);
        shown
    }
}
