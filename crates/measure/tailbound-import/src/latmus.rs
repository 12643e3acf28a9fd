// SPDX-License-Identifier: MIT OR Apache-2.0
//! EVL's latmus `-g`.
//!
//! Units: µs. Layout: `# key: value` lines (sampling period, context, thread
//! priority and affinity, duration, overruns, min/avg/max latency, sample count), of which the
//! pasted kernel version may run over lines without `#`; then `cell count` from the first to
//! the last cell that is not empty, the last marked `199+` when it also holds all beyond.
//! Source: libevl r27 and r47, as described; output of EVL (ABI 32) on Linux 5.10.

use tailbound_core::number::Real as _;
use tailbound_core::plan::{Clock, Means};
use tailbound_core::record::Fact;
use tailbound_core::{Context, Policy};

use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::missed;
use crate::text::{self, Lines};
use tailbound_core::utc::hms;

#[derive(Default)]
struct Found {
    context: Option<Context>,
    cpu: Option<u32>,
    stated: Stated,
    overruns: u64,
    ended: bool,
    /// Head start of the timers in the interrupt, kernel and user context.
    gravity: [i64; 3],
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Draft, Fault> {
    let mut draft = Draft::new("latmus", "gnuplot");
    let mut found = Found::default();
    let mut d = coarse();
    let (mut outliers, mut last) = (None::<(i64, u64)>, None);
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if let Some(rest) = line.strip_prefix('#') {
            head(&mut draft, &mut found, rest.trim(), n)?;
            continue;
        }
        // Before the figures, an unmarked line is more of the kernel's version.
        let Some((cell, count)) = line.split_once(' ').filter(|_| found.ended) else {
            if found.ended && !line.is_empty() {
                return Err(Fault::line(
                    n,
                    format!("`{}` is not a cell and a count", excerpt(line)),
                ));
            }
            continue;
        };
        let low = text::ns(cell.trim_end_matches('+'), 1000, n, "the cell")?;
        let count = text::count(count, n, "the count")?;
        if last.is_some_and(|l| low <= l) || outliers.is_some() {
            return Err(Fault::line(n, "the cell does not follow the one above"));
        }
        last = Some(low);
        if cell.ends_with('+') {
            outliers = Some((low, count));
        } else {
            d.add_many(low, count);
        }
    }
    let kept = d.n.saturating_add(outliers.map_or(0, |o| o.1));
    if let Some(n) = found.stated.n.filter(|n| *n != kept) {
        draft.doubt(
            "source-inconsistent",
            format!("The cells hold {kept} values, `sample count` says {n}."),
            "Lines are missing or were changed.",
            "Import the file as latmus wrote it.",
        );
    }
    draft.cut_off = last.is_none();
    let stated = Stated {
        n: Some(found.stated.n.unwrap_or(kept).max(kept)),
        resolution_ns: 1000,
        beyond_ns: outliers.map(|o| o.0),
        ..found.stated
    };
    let d = draft.settle("The task", d, stated);
    let context = found.context.unwrap_or_default();
    draft.thread(0, found.cpu, context, d)?;
    let [irq, kernel, user] = found.gravity;
    let head_start_ns = match context {
        Context::Irq => irq,
        Context::Thread => kernel,
        _ => user,
    };
    if head_start_ns != 0 {
        let head_start = tailbound_core::units::format_ns_i64(head_start_ns);
        draft.doubt(
            "source-gravity",
            format!(
                "The core's timers fired {head_start} before their time on purpose (clock gravity)."
            ),
            "Each wake-up is later than it looks by up to that much.",
            "Write `0i 0k 0u` to the clock's `gravity` and measure again.",
        );
    }
    draft.clock = Some(Clock::Monotonic);
    draft.means = Some(Means::Timerfd);
    draft.warm_up_ns = 1_000_000_000;
    draft.lose("The first second is discarded by the tool and is not in the file.");
    missed::counted(&mut draft, found.overruns);
    Ok(draft)
}

fn head(draft: &mut Draft, found: &mut Found, line: &str, n: u64) -> Result<(), Fault> {
    let Some((key, value)) = line.split_once(':') else {
        if line.starts_with("Linux version") {
            draft.machine.insert("kernel.version".to_owned(), Fact::of(excerpt(line)));
        } else if line.starts_with("C-state restricted") {
            draft.lose("latmus says that idle states were restricted; it says so even when the kernel refused.");
        } else if line.contains("latmus") && draft.command.is_empty() {
            draft.command = line.split_whitespace().map(str::to_owned).collect();
        }
        return Ok(());
    };
    let value = value.trim();
    match key {
        "libevl version" => draft.version = Some(format!("(libevl {})", excerpt(value))),
        "sampling period" => {
            let us = value.split_whitespace().next().unwrap_or("");
            draft.interval_ns = Some(text::ns(us, 1000, n, "the period")?).filter(|i| *i > 0);
        }
        "clock gravity" => {
            for (slot, letter) in found.gravity.iter_mut().zip(['i', 'k', 'u']) {
                let mut words = value.split_whitespace();
                let number = words.find_map(|w| w.strip_suffix(letter)?.parse().ok());
                *slot = number.unwrap_or(0);
            }
        }
        "clocksource" => draft.fact("clock.source", Some(value)),
        "context" => {
            found.context = Some(match value {
                "kernel" => Context::Thread,
                "sirq" | "irq" => Context::Irq,
                other => Context::of(&excerpt(other)),
            });
        }
        "thread priority" => {
            let p = value.parse().ok().filter(|p| (1..=99).contains(p));
            draft.policy = p.map(Policy::Fifo);
        }
        "thread affinity" => {
            let digits: String =
                value.trim_start_matches("CPU").chars().take_while(char::is_ascii_digit).collect();
            found.cpu = digits.parse().ok().filter(|c| *c <= tailbound_core::cpus::MAX_CPU);
        }
        "OVERRUNS" => found.overruns = text::count(value, n, key)?,
        "IN-BAND SWITCHES" => {
            draft.lose(format!("{} switches to the Linux side were counted.", excerpt(value)))
        }
        "min latency" => found.stated.min_ns = Some(text::ns(value, 1000, n, key)?),
        "max latency" => found.stated.max_ns = Some(text::ns(value, 1000, n, key)?),
        "avg latency" => found.stated.mean_ns = Some(text::ns(value, 1000, n, key)?.real()),
        "sample count" => {
            found.stated.n = Some(text::count(value, n, key)?);
            found.ended = true;
        }
        _ if key.starts_with("duration") => {
            // The key itself holds no colon: `duration (hhmmss): 00:01:00`.
            draft.duration_ns = hms(value).map(|s| s.saturating_mul(1_000_000_000));
        }
        _ => {}
    }
    Ok(())
}
