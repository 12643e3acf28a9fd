// SPDX-License-Identifier: MIT OR Apache-2.0
//! Xenomai's `latency`: the `-g` file and the standard output; EVL's latmus prints the latter too.
//!
//! Units: µs with decimals. Layout of `-g`: `# elapsed (task, period, priority)`,
//! `# min| avg| max| overrun| msw|`, then pairs: the left edge of the first cell and 1, for each
//! cell its centre and its count *plus one*, the right edge of the last cell and 1.
//! Standard output: `RTT|` (as the first line above), `RTD|` once a second, `HSD|avg| lo - hi | n`
//! cells of samples (`min` and `max` are of seconds), `RTS|` the whole run.
//! The summary leaves out the last second where that was not whole; the cells hold it.
//! The last cell also holds everything beyond; negative values were folded by their magnitude;
//! overruns are counted but are in no cell; a first second is discarded.
//! Standard output numbers cells by their place: with `-B` they are not µs, and it is refused.
//! Source: output of Xenomai 3.3 on Cobalt and of 3.3.1 on Mercury.

use tailbound_core::number::Real as _;
use tailbound_core::plan::{Clock, Means};
use tailbound_core::{Context, Finding, Impact, Policy};

use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::missed;
use crate::text::{self, Lines};
use crate::xenomai_rows::Rows;
use tailbound_core::utc::hms;

#[derive(Default)]
struct Found {
    context: Option<Context>,
    /// latmus names it.
    cpu: Option<u32>,
    /// The stimulus came from outside.
    external: bool,
    min_ns: Option<i64>,
    mean_ns: Option<f64>,
    max_ns: Option<i64>,
    overruns: u64,
    switches: u64,
    /// Lower edge and count.
    cells: Vec<(i64, u64)>,
    width_ns: i64,
}

pub(crate) fn gnuplot(bytes: &[u8]) -> Result<Draft, Fault> {
    let mut draft = Draft::new("xenomai latency", "gnuplot");
    let mut found = Found::default();
    let mut pairs: Vec<(i64, u64, u64)> = Vec::new();
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if let Some(rest) = line.strip_prefix('#') {
            let rest = rest.trim();
            if rest.contains(" period") && rest.contains('(') {
                task(&mut draft, &mut found, rest);
            } else if rest.matches('|').count() == 5 && !rest.starts_with('-') {
                summary(&mut found, rest, n)?;
            }
        } else if !line.is_empty() {
            let mut words = line.split_whitespace();
            let (Some(x), Some(y), None) = (words.next(), words.next(), words.next()) else {
                return Err(Fault::line(n, format!("`{}` is not two numbers", excerpt(line))));
            };
            pairs.push((text::ns(x, 1000, n, "the cell")?, text::count(y, n, "the count")?, n));
        }
    }
    unbracket(&mut draft, &mut found, &pairs)?;
    finish(&mut draft, found)?;
    Ok(draft)
}

/// Takes the two brackets off, and one off every count.
fn unbracket(draft: &mut Draft, found: &mut Found, pairs: &[(i64, u64, u64)]) -> Result<(), Fault> {
    let Some(((left, _, _), rest)) = pairs.split_first() else {
        draft.cut_off = true;
        return Ok(());
    };
    let half = rest.first().map_or(0, |(c, ..)| c.saturating_sub(*left));
    if half <= 0 {
        return Err(Fault::file("the first pair is not the left edge of the first cell"));
    }
    found.width_ns = half.saturating_mul(2);
    let cells = match rest.split_last() {
        Some((last, cells)) if cells.last().is_some_and(|c| last.0 == c.0.saturating_add(half)) => {
            cells
        }
        _ => {
            draft.cut_off = true;
            rest
        }
    };
    let mut before = None;
    for (centre, count, n) in cells {
        let count = count
            .checked_sub(1)
            .ok_or_else(|| Fault::line(*n, "a count of 0, where counts are written plus one"))?;
        if before.is_some_and(|b| *centre <= b) {
            return Err(Fault::line(*n, "the cell does not follow the one above"));
        }
        before = Some(*centre);
        found.cells.push((centre.saturating_sub(half), count));
    }
    Ok(())
}

/// Whose standard output it is: both print the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tester {
    Xenomai,
    Latmus,
}

pub(crate) fn text(bytes: &[u8], tester: Tester) -> Result<Draft, Fault> {
    let tool = if tester == Tester::Latmus { "latmus" } else { "xenomai latency" };
    let mut draft = Draft::new(tool, "text");
    let mut found = Found::default();
    let mut rows = Rows::default();
    let (mut ended, mut samples) = (false, None);
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        let (tag, rest) = line.split_once('|').unwrap_or((line, ""));
        match tag {
            "RTT" => task(&mut draft, &mut found, rest.trim()),
            "RTH" if !rest.contains("--lat min") => {
                return Err(Fault::line(
                    n,
                    "RTAI's layout, whose columns and units differ: import it as rtai-text",
                ));
            }
            "RTH" => rows.header(rest),
            "RTD" => rows.row(rest, n),
            "HSD" if rest.trim_start().starts_with("avg|") => cell(&mut found, rest, n)?,
            "HSS" if rest.trim_start().starts_with("avg|") => {
                samples =
                    rest.split('|').nth(1).map(|f| text::count(f, n, "the samples")).transpose()?;
            }
            "RTS" => {
                rows.summary(rest, n)?;
                summary(&mut found, rest, n)?;
                let took = rest.rsplit('|').next().and_then(|t| t.split('/').next()).and_then(hms);
                draft.duration_ns = took.map(|s| s.saturating_mul(1_000_000_000));
                ended = true;
            }
            _ if !rows.is_empty() && line.starts_with("== Sampling period:") => {
                crate::fields::run_without_figures(&mut draft, n);
                break;
            }
            _ => own_words(&mut draft, &mut found, line),
        }
    }
    draft.cut_off = !ended;
    let binned = found.cells.iter().fold(0u64, |a, c| a.saturating_add(c.1));
    if binned == 0 {
        extremes_alone(&mut draft, found, &rows, samples)?;
        return Ok(draft);
    }
    if !ended {
        (found.min_ns, found.max_ns) = (rows.min_ns, rows.max_ns);
    }
    cells_are_of_a_microsecond(&found)?;
    if samples.is_some_and(|s| s != binned) {
        draft.doubt(
            "source-inconsistent",
            format!("The cells hold {binned} values, the statistics say {}.", samples.unwrap_or(0)),
            "Lines are missing or were changed.",
            "Import the whole output.",
        );
    }
    finish(&mut draft, found)?;
    Ok(draft)
}

/// Lines before the first row: the period, and what latmus says of its CPU.
fn own_words(draft: &mut Draft, found: &mut Found, line: &str) {
    if let Some(period) = line.strip_prefix("== Sampling period:") {
        let us = period.split_whitespace().next().unwrap_or("");
        draft.interval_ns = text::scaled(us, 1000).filter(|i| *i > 0).or(draft.interval_ns);
    } else if let Some(mode) = line.strip_prefix("== Test mode:") {
        found.context = Some(context(mode.trim()));
    } else if let Some(cpu) = line.strip_prefix("warming up on CPU") {
        own_cpu(draft, found, cpu);
    }
}

/// Without a histogram extremes, average and overruns are known.
fn extremes_alone(
    draft: &mut Draft,
    found: Found,
    rows: &Rows,
    samples: Option<u64>,
) -> Result<(), Fault> {
    if let Some(fault) = rows.unreadable() {
        return Err(fault);
    }
    if rows.is_empty() {
        let period = draft.interval_ns.map_or_else(String::new, |ns| {
            format!(", every {}", tailbound_core::units::format_ns_i64(ns))
        });
        return Err(Fault::file(format!(
            "nothing was measured{period}: the output has no row of a second (RTD), and its statistics are of 0 samples. \
             The tool was ended within its first second, or the period is too short for this machine"
        )));
    }
    let d = rows.distribution(draft, samples)?;
    draft.clock = Some(Clock::Monotonic);
    draft.means = Some(Means::Timerfd);
    draft.warm_up_ns = 1_000_000_000;
    draft.thread(0, found.cpu, found.context.unwrap_or_default(), d)?;
    if found.external {
        external(draft);
    }
    switches(draft, rows.switches);
    missed::counted(draft, rows.overruns);
    draft.lose("The first second is discarded by the tool and is not in the file.");
    Ok(())
}

/// latmus answers a signal from outside and is timed there.
fn external(draft: &mut Draft) {
    draft.means = Some(Means::NotTold);
    draft.event = Some("response");
    draft.note(
        Finding::new(
            "source-other-quantity",
            Impact::Notice,
            "latmus measured responses to an external stimulus (a GPIO pulse of the monitor latmon), not timer wake-ups",
        )
        .meaning("From the monitor's pulse until the answer came back: both pins and the monitor's own clock are in each figure.")
        .remedy("Compare with runs of the same wiring."),
    );
}

fn switches(draft: &mut Draft, switches: u64) {
    if switches > 0 {
        draft.lose(format!(
            "{switches} switches to the Linux side were counted; their delays are among the samples."
        ));
    }
}

/// Standard output numbers the cells without saying how wide they are: with `-B` not 1 µs.
/// Only told by the average; the extremes are of whole seconds, the cells hold the last, broken
/// one too.
fn cells_are_of_a_microsecond(found: &Found) -> Result<(), Fault> {
    let (mut weighted, mut n) = (0i128, 0i128);
    for (low, count) in &found.cells {
        weighted = weighted.saturating_add(i128::from(*low).saturating_mul(i128::from(*count)));
        n = n.saturating_add(i128::from(*count));
    }
    let Some(mean) = weighted.checked_div(n) else { return Ok(()) };
    // Early wake-ups are in the cell of their magnitude: with those the average tells nothing.
    let stated = found.mean_ns.filter(|_| found.min_ns.is_some_and(|m| m >= 0));
    let fits = stated.is_none_or(|t| mean.real() <= t * 4.0 / 3.0 + 1000.0);
    if fits {
        return Ok(());
    }
    Err(Fault::file(
        "the cells lie above the average: they are not 1 µs wide (-B), and how wide they are the output does not say; run latency with -g FILE and import that",
    ))
}

/// `00:00:05 (periodic user-mode task, 1000 us period, priority 99)`, of latmus also `CPU0-noisol`.
fn task(draft: &mut Draft, found: &mut Found, text: &str) {
    let (took, rest) = text.split_once('(').unwrap_or((text, ""));
    draft.duration_ns = hms(took).map(|s| s.saturating_mul(1_000_000_000)).or(draft.duration_ns);
    for part in rest.trim_end_matches(')').split(',').map(str::trim) {
        if let Some(us) = part.strip_suffix(" us period") {
            draft.interval_ns = text::scaled(us, 1000).filter(|i| *i > 0);
        } else if let Some(p) = part.strip_prefix("priority ") {
            let p = p.trim().parse().ok().filter(|p| (1..=99).contains(p));
            draft.policy = p.map(Policy::Fifo);
        } else if let Some(cpu) = part.strip_prefix("CPU") {
            own_cpu(draft, found, cpu);
        } else {
            found.external = part.ends_with("-gpio");
            found.context = Some(context(part));
        }
    }
}

fn own_cpu(draft: &mut Draft, found: &mut Found, text: &str) {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    found.cpu = digits.parse().ok().filter(|c| *c <= tailbound_core::cpus::MAX_CPU).or(found.cpu);
    if text.contains("noisol") || text.contains("not isolated") {
        draft.lose("latmus says that its CPU was not isolated.");
    }
}

fn context(words: &str) -> Context {
    match words {
        // "in-kernel timer handler" is both.
        w if w.contains("timer") || w.contains("handler") || w == "irq" || w == "sirq" => {
            Context::Irq
        }
        w if w.contains("kernel") => Context::Thread,
        _ => Context::User,
    }
}

/// `min| avg| max| overrun| msw|`
fn summary(found: &mut Found, text: &str, n: u64) -> Result<(), Fault> {
    let mut fields = text.split('|').map(str::trim);
    let mut next = || fields.next().ok_or_else(|| Fault::line(n, "fewer than five columns"));
    found.min_ns = Some(text::ns(next()?, 1000, n, "the least")?);
    {
        found.mean_ns = Some(text::ns(next()?, 1000, n, "the average")?.real());
    }
    found.max_ns = Some(text::ns(next()?, 1000, n, "the greatest")?);
    found.overruns = text::count(next()?, n, "the overruns")?;
    // Xenomai 2.5 and before has the times here.
    let switches = next()?;
    if !switches.contains(':') {
        found.switches = text::count(switches, n, "the mode switches")?;
    }
    Ok(())
}

/// `avg|  18 - 19 |  2`
fn cell(found: &mut Found, rest: &str, n: u64) -> Result<(), Fault> {
    let bad = || Fault::line(n, format!("`{}` is not a cell `lo - hi | n`", excerpt(rest)));
    let mut fields = rest.split('|').skip(1);
    let range = fields.next().ok_or_else(bad)?;
    let count = text::count(fields.next().ok_or_else(bad)?, n, "the count")?;
    let (low, high) = range.split_once('-').ok_or_else(bad)?;
    let (low, high) = (text::ns(low, 1000, n, "the cell")?, text::ns(high, 1000, n, "the cell")?);
    if low >= high || found.cells.last().is_some_and(|c| c.0 >= low) {
        return Err(Fault::line(n, "the cell does not follow the one above"));
    }
    found.width_ns = found.width_ns.max(high.saturating_sub(low));
    found.cells.push((low, count));
    Ok(())
}

fn finish(draft: &mut Draft, found: Found) -> Result<(), Fault> {
    let mut d = coarse();
    let (mut all, mut beyond_ns) = (0u64, None);
    let last = found.cells.iter().rposition(|c| c.1 > 0);
    for (i, (low, n)) in found.cells.iter().enumerate() {
        all = all.saturating_add(*n);
        let edge = low.saturating_add(found.width_ns);
        if Some(i) == last && found.max_ns.is_none_or(|m| m >= edge) {
            beyond_ns = Some(*low);
        } else {
            d.add_many(*low, *n);
        }
    }
    // The summary ends with the last whole second, the cells do not.
    let beyond_summary = last.and_then(|i| found.cells.get(i)).map(|c| c.0);
    let missing = beyond_summary.filter(|low| found.max_ns.is_some_and(|m| m < *low));
    let stated = Stated {
        n: Some(all),
        min_ns: found.min_ns,
        max_ns: missing.or(found.max_ns),
        mean_ns: found.mean_ns,
        resolution_ns: found.width_ns.unsigned_abs(),
        beyond_ns,
    };
    draft.clock = Some(Clock::Monotonic);
    draft.means = Some(Means::Timerfd);
    draft.warm_up_ns = 1_000_000_000;
    let d = draft.settle("The task", d, stated);
    let context = found.context.unwrap_or_default();
    draft.thread(0, None, context, d)?;
    if found.min_ns.is_some_and(|m| m < 0) {
        draft.doubt(
            "source-folded-early",
            "Wake-ups before their due time were entered into the histogram by their magnitude."
                .to_owned(),
            "The numbers of early and of late ones cannot be distinguished.",
            "Measure with a tool that keeps the sign.",
        );
    }
    if let (Some(low), Some(max)) = (missing, found.max_ns) {
        draft.doubt(
            "source-inconsistent",
            format!(
                "The histogram holds a value of {} or more, the summary's greatest is {}: it came in the last second, which the tool does not sum up.",
                tailbound_core::units::format_ns_i64(low),
                tailbound_core::units::format_ns_i64(max)
            ),
            "The greatest value is known only by the lower edge of its cell.",
            "Measure longer, or with narrower cells (-B 100).",
        );
    }
    switches(draft, found.switches);
    missed::counted(draft, found.overruns);
    draft.lose("The first second is discarded by the tool and is not in the file.");
    Ok(())
}
