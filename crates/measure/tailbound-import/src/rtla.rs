// SPDX-License-Identifier: MIT OR Apache-2.0
//! rtla `timerlat hist` and `osnoise hist`.
//!
//! Layout: three `#` lines (tool, unit, duration `days hh:mm:ss`), `Index` and a
//! column per CPU and context (`IRQ-000`, `Thr-000`, `Usr-000`; `CPU-000` for osnoise), rows
//! `lower-edge counts…` without those of zeros, then `over:`, `count:`, `min:`, `avg:`, `max:`
//! with `-` where there is no sample. 7.2 adds a block `ALL:` of the same rows, which is
//! passed over. Columns exist only for CPUs with samples.
//! The bucket's width is not written: the greatest common divisor of the indices is never less.
//! Source: rtla-timerlat-hist(1), rtla-osnoise-hist(1); output of rtla 6.1.

use tailbound_core::number::Real as _;
use tailbound_core::plan::Clock;
use tailbound_core::record::Event;
use tailbound_core::{Context, Finding, Impact, Policy};

use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::read::Options;
use crate::rtla_analysis;
use crate::text::{self, Lines, THREADS_MAX, gcd};
use crate::{fields, missed};
use tailbound_core::utc::hms;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Timerlat,
    Osnoise,
}

#[derive(Default)]
struct Column {
    cpu: u32,
    context: Context,
    buckets: Vec<(i64, u64)>,
    over: Option<u64>,
    count: Option<u64>,
    min: Option<i64>,
    avg: Option<i64>,
    max: Option<i64>,
}

#[derive(Default)]
struct Table {
    unit_ns: Option<u64>,
    /// The line `Index` was there, with columns or without.
    headed: bool,
    columns: Vec<Column>,
    width_ns: u64,
    last_ns: Option<i64>,
    ended: bool,
}

pub(crate) fn parse(bytes: &[u8], kind: Kind, options: &Options) -> Result<Draft, Fault> {
    let (name, title) = match kind {
        Kind::Timerlat => ("rtla timerlat", "# RTLA timerlat histogram"),
        Kind::Osnoise => ("rtla osnoise", "# RTLA osnoise histogram"),
    };
    let mut draft = Draft::new(name, "hist text");
    let mut table = Table::default();
    let (mut inside, mut skip) = (false, false);
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if line.starts_with("# RTLA ") {
            if inside {
                fields::run_without_figures(&mut draft, n);
                break;
            }
            inside = line.starts_with(title);
        } else if !inside {
            continue;
        } else if line.starts_with("ALL:") {
            skip = true;
        } else if let Some(rest) = line.strip_prefix("# Duration:") {
            draft.duration_ns = Some(duration(rest, n)?);
        } else if line.starts_with("# Time unit is") {
            table.unit_ns = Some(if line.contains("(ns)") { 1 } else { 1000 });
        } else if line.contains("hit stop tracing") {
            draft.events.push(Event::new(0, "stopped", excerpt(line)));
            draft.lose(
                "The run was stopped by a latency above the threshold; when is not in the file.",
            );
        } else if line.contains("events missed") {
            draft.doubt(
                "source-samples-lost",
                format!("{name} says: {}.", excerpt(line)),
                "The trace buffer overflowed: samples are missing, perhaps the latest.",
                "Measure again with a larger buffer, or with BPF.",
            );
        } else if !skip {
            table.line(line, n)?;
        }
    }
    if !inside {
        return Err(Fault::file(format!("there is no line `{title}`")));
    }
    finish(&mut draft, table, kind, options)?;
    rtla_analysis::beside(&mut draft, bytes)?;
    Ok(draft)
}

fn duration(rest: &str, n: u64) -> Result<i64, Fault> {
    let mut words = rest.split_whitespace();
    let days =
        words.next().and_then(|w| w.parse::<i64>().ok()).filter(|d| (0..100_000).contains(d));
    let s = words.next().and_then(hms);
    days.zip(s)
        .and_then(|(d, s)| d.checked_mul(86_400)?.checked_add(s)?.checked_mul(1_000_000_000))
        .ok_or_else(|| Fault::line(n, format!("`{}` is not days and hh:mm:ss", excerpt(rest))))
}

impl Table {
    fn line(&mut self, line: &str, n: u64) -> Result<(), Fault> {
        let (label, rest) =
            line.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((line, ""));
        if label == "Index" {
            self.headed = true;
            return self.header(rest, n);
        }
        if self.columns.is_empty() {
            self.ended |= self.headed && label == "max:";
            return Ok(());
        }
        let number = label.bytes().all(|b| b.is_ascii_digit());
        let known = ["over:", "count:", "min:", "avg:", "max:"].contains(&label);
        if !(number || known) || self.ended {
            return Ok(());
        }
        let fields: Vec<&str> = rest.split_whitespace().take(self.columns.len() + 1).collect();
        if fields.len() != self.columns.len() {
            return Err(Fault::line(
                n,
                format!("{} values for {} columns", fields.len(), self.columns.len()),
            ));
        }
        let unit = self.unit_ns.ok_or_else(|| Fault::line(n, "no `# Time unit` line above"))?;
        if number {
            let low = text::ns(label, unit, n, "the index")?;
            if self.last_ns.is_some_and(|last| low <= last) {
                return Err(Fault::line(n, format!("index {label} does not follow the one above")));
            }
            self.last_ns = Some(low);
            self.width_ns = gcd(self.width_ns, low.unsigned_abs());
            for (c, f) in self.columns.iter_mut().zip(fields) {
                let count = text::count(f, n, "the count")?;
                if count > 0 {
                    c.buckets.push((low, count));
                }
            }
            return Ok(());
        }
        for (c, f) in self.columns.iter_mut().zip(fields).filter(|(_, f)| *f != "-") {
            match label {
                "over:" => c.over = Some(text::count(f, n, label)?),
                "count:" => c.count = Some(text::count(f, n, label)?),
                "min:" => c.min = Some(text::ns(f, unit, n, label)?),
                "avg:" => c.avg = Some(text::ns(f, unit, n, label)?),
                _ => c.max = Some(text::ns(f, unit, n, label)?),
            }
        }
        self.ended = label == "max:";
        Ok(())
    }

    fn header(&mut self, rest: &str, n: u64) -> Result<(), Fault> {
        if !self.columns.is_empty() {
            return Err(Fault::line(n, "a second `Index` line"));
        }
        for word in rest.split_whitespace() {
            let (kind, cpu) = word.split_once('-').unwrap_or((word, ""));
            let context = match kind {
                "IRQ" => Context::Irq,
                "Thr" | "CPU" => Context::Thread,
                "Usr" => Context::User,
                _ => return Err(Fault::line(n, format!("an unknown column `{}`", excerpt(word)))),
            };
            let cpu = cpu.parse::<u32>().ok().filter(|c| *c <= tailbound_core::cpus::MAX_CPU);
            let cpu = cpu.ok_or_else(|| {
                Fault::line(n, format!("column `{}` names no CPU", excerpt(word)))
            })?;
            if self.columns.len() >= THREADS_MAX {
                return Err(Fault::line(n, format!("more than {THREADS_MAX} columns")));
            }
            self.columns.push(Column { cpu, context, ..Column::default() });
        }
        Ok(())
    }
}

/// No CPU has a column: osnoise records only what is above its threshold, timerlat every activation.
fn without_samples(draft: &mut Draft, table: &Table, kind: Kind) -> Result<(), Fault> {
    match kind {
        Kind::Osnoise if table.headed && table.ended => draft.nothing_found(
            Context::Osnoise,
            "rtla osnoise found no noise above its threshold on any CPU".to_owned(),
        ),
        Kind::Osnoise => Ok(()),
        Kind::Timerlat if table.headed => Err(Fault::file(
            "no CPU has a column: timerlat took no sample. Its threads never ran: look at the CPUs it was given and at the kernel's log",
        )),
        Kind::Timerlat => Ok(()),
    }
}

fn finish(draft: &mut Draft, table: Table, kind: Kind, options: &Options) -> Result<(), Fault> {
    let unit = table.unit_ns.unwrap_or(1000);
    let greatest = table.columns.iter().filter_map(|c| c.max).max().unwrap_or(0);
    // Only the bucket of 0 is filled: how wide it is is bounded by the greatest value alone.
    let width = match table.width_ns {
        0 => greatest.unsigned_abs().saturating_add(unit),
        w => w,
    };
    draft.cut_off = !table.ended;
    if table.columns.is_empty() {
        without_samples(draft, &table, kind)?;
    }
    if width != unit && table.last_ns.is_some() {
        draft.lose("The width of the buckets is not in the file; it was taken as the greatest that fits their lower edges.");
    }
    let step = i64::try_from(unit).unwrap_or(1);
    for c in table.columns {
        let mut d = coarse();
        for (low, n) in &c.buckets {
            d.add_many(*low, *n);
        }
        let who = format!("CPU {} ({})", c.cpu, c.context);
        let binned = d.n;
        let over = c.over.map(|o| binned.saturating_add(o));
        let stated = Stated {
            n: c.count.or(over),
            min_ns: c.min,
            max_ns: c.max,
            mean_ns: c.avg.map(|a| a.real()),
            resolution_ns: width,
            beyond_ns: table.last_ns.map(|l| l.saturating_add(step)),
        };
        if let (Some(count), Some(over)) = (c.count, over.filter(|o| Some(*o) != c.count)) {
            draft.doubt(
                "source-inconsistent",
                format!("{who}: the rows and `over:` hold {over} values, `count:` says {count}."),
                "Rows are missing or were changed.",
                "Import the text as rtla wrote it.",
            );
        }
        let d = draft.settle(&who, d, stated);
        draft.thread(c.cpu, Some(c.cpu), c.context, d)?;
    }
    draft.cut_values(unit);
    draft.lose("rtla writes averages cut to whole units.");
    draft.lose("CPUs without a sample have no column.");
    draft.clock = Some(Clock::Monotonic);
    match kind {
        Kind::Timerlat => {
            draft.policy = Some(Policy::Fifo(95));
            draft.lose("The priority is not in the file; timerlat's threads take fifo:95 unless configured otherwise.");
            options.apply(draft);
            let by_thread = draft.threads.iter().any(|t| t.context == Context::Thread);
            let context = if by_thread { Context::Thread } else { Context::Irq };
            missed::skipped_uncounted(draft, context);
        }
        Kind::Osnoise => {
            draft.no_schedule = true;
            draft.note(
                Finding::new(
                    "source-other-quantity",
                    Impact::Notice,
                    "osnoise measures interruptions of a busy loop, not wake-up latencies",
                )
                .meaning("There is no schedule, so there are no due or missed activations.")
                .remedy("Compare with runs of osnoise; measure wake-ups with a wake-up probe."),
            );
        }
    }
    Ok(())
}
