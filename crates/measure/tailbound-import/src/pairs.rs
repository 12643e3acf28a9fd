// SPDX-License-Identifier: MIT OR Apache-2.0
//! pmqtest, ptsematest, svsematest, sigwaittest and signaltest of rt-tests on standard output: extremes and average of each pair.
//!
//! Units: µs. Layout: `#0: ID62776, P98, CPU0, I1000; #1: ID62777, P98, CPU0, TO 0, Cycles 74953` (receiver and sender;
//! `TO` is pmqtest's), then `#1 -> #0, Min   35, Cur   84, Avg   83, Max  749`; signaltest: `T: 0 ( 2481) P:80 C: 1000 Min: 22 Act: 30 Avg: 45
//! Max: 10309`, without cyclictest's `I:`. A live screen repeats all of it: the last of each pair counts.
//! Not here: their JSON (`rttests`). Source: output of rt-tests 0.84 to 2.8.

use std::collections::BTreeMap;

use tailbound_core::number::Real as _;
use tailbound_core::plan::Clock;
use tailbound_core::{Context, Policy};

use crate::command::{Arguments, CYCLICTEST, not_realtime};
use crate::draft::{Draft, Stated, coarse};
use crate::error::Fault;
use crate::fields;
use crate::read::Options;
use crate::rttests;
use crate::screens::{Key, ScreenRow};
use crate::text::{self, Lines, THREADS_MAX};

/// All whose text is read here.
pub(crate) const PROGRAMS: [&str; 5] =
    ["pmqtest", "ptsematest", "svsematest", "sigwaittest", "signaltest"];
/// What they are called where the output does not say which it is.
const ANY: &str = "ptsematest, svsematest or sigwaittest";

#[derive(Default)]
struct Pair {
    cpu: Option<u32>,
    priority: Option<u8>,
    interval_ns: Option<i64>,
    timeouts: u64,
    cycles: Option<u64>,
    figures: Option<[i64; 3]>,
}

/// Is it the line of a pair of threads, or of a pair's figures?
pub(crate) fn is_pair(line: &str) -> bool {
    let has = |words: &[&str]| words.iter().all(|w| line.contains(w));
    line.starts_with('#')
        && (has(&[": ID", "; #", "Cycles "]) || has(&[" -> #", "Min ", "Avg ", "Max "]))
}

/// Is it a line of signaltest, and none of cyclictest?
pub(crate) fn is_signaltest(line: &str) -> bool {
    let has = |words: &[&str]| words.iter().all(|w| line.contains(w));
    line.starts_with("T:") && has(&[" P:", " C:", "Min:", "Max:"]) && !line.contains(" I:")
}

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new(ANY, "text, extremes only");
    draft.command = fields::command(bytes, &PROGRAMS);
    let mut pairs: BTreeMap<u32, Pair> = BTreeMap::new();
    let (mut timeouts, mut rows) = (false, Rows::OfPairs);
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        let number = if is_pair(line) {
            timeouts |= line.contains(", TO ");
            pair(&mut pairs, line, n)?
        } else if is_signaltest(line) {
            rows = Rows::OfSignals;
            signal(&mut pairs, line, n)?
        } else {
            continue;
        };
        if pairs.len() > THREADS_MAX {
            return Err(Fault::line(n, format!("more than {THREADS_MAX} threads, from {number}")));
        }
    }
    let program = draft.command.first().and_then(|c| c.rsplit('/').next()).map(str::to_owned);
    draft.tool = match (program, rows, timeouts) {
        (Some(program), ..) => program,
        (None, Rows::OfSignals, _) => "signaltest".to_owned(),
        (None, _, true) => "pmqtest".to_owned(),
        _ => ANY.to_owned(),
    };
    finish(&mut draft, pairs, rows, options)?;
    Ok(draft)
}

/// The line of a pair or of a thread, as far as it tells runs apart.
pub(crate) fn row(line: &str) -> Option<ScreenRow> {
    let mut one = BTreeMap::new();
    let signals = is_signaltest(line);
    let number = if signals {
        signal(&mut one, line, 0).ok()?
    } else if is_pair(line) {
        pair(&mut one, line, 0).ok()?
    } else {
        return None;
    };
    let found = one.remove(&number)?;
    let figures = found.figures;
    let of_pair = found.cycles.is_none();
    let id = fields::after(line, ": ID").and_then(|id| id.parse().ok());
    Some(ScreenRow {
        key: if of_pair { Key::Figures(number) } else { Key::Thread(number) },
        id: if signals { fields::thread_id(line) } else { id },
        count: found.cycles,
        least: figures.map(|[least, ..]| least),
        greatest: figures.map(|[.., greatest]| greatest),
    })
}

/// The number behind the first `#`.
fn numbered(text: &str, n: u64) -> Result<u32, Fault> {
    let digits: String =
        text.trim_start_matches('#').chars().take_while(char::is_ascii_digit).collect();
    digits.parse().map_err(|_| Fault::line(n, "`#` is not followed by a thread number"))
}

fn pair(pairs: &mut BTreeMap<u32, Pair>, line: &str, n: u64) -> Result<u32, Fault> {
    if let Some((_, to)) = line.split_once("-> ") {
        let number = numbered(to, n)?;
        let time = |label| fields::time(line, label, 1000, n);
        let figures = [time("Min ")?, time("Avg ")?, time("Max ")?];
        pairs.entry(number).or_default().figures = Some(figures);
        return Ok(number);
    }
    let number = numbered(line, n)?;
    let (receiver, sender) = line.split_once(';').unwrap_or((line, ""));
    let part = |label: &str| {
        receiver.split(", ").find_map(|p| p.trim().strip_prefix(label)).map(str::trim)
    };
    let known = pairs.entry(number).or_default();
    known.priority = part("P").and_then(|p| p.parse().ok()).filter(|p| (1..=99).contains(p));
    let cpu = part("CPU").and_then(|c| c.parse().ok());
    known.cpu = cpu.filter(|c| *c <= tailbound_core::cpus::MAX_CPU);
    known.interval_ns =
        part("I").filter(|i| !i.starts_with('D')).and_then(|i| text::scaled(i, 1000));
    known.timeouts = fields::after(sender, "TO ").map_or(Ok(0), |to| text::count(to, n, "TO"))?;
    known.cycles = Some(fields::count(sender, "Cycles ", n)?);
    Ok(number)
}

fn signal(pairs: &mut BTreeMap<u32, Pair>, line: &str, n: u64) -> Result<u32, Fault> {
    let number = numbered(line.trim_start_matches("T:").trim_start(), n)?;
    let time = |label| fields::time(line, label, 1000, n);
    let priority = fields::after(line, " P:").and_then(|p| p.parse().ok());
    let figures = [time("Min:")?, time("Avg:")?, time("Max:")?];
    let cycles = Some(fields::count(line, " C:", n)?);
    let priority = priority.filter(|p| (1..=99).contains(p));
    pairs.insert(number, Pair { priority, cycles, figures: Some(figures), ..Pair::default() });
    Ok(number)
}

/// What the rows of figures are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// Pairs of threads or processes.
    OfPairs,
    /// Threads of signaltest.
    OfSignals,
}

fn finish(
    draft: &mut Draft,
    pairs: BTreeMap<u32, Pair>,
    rows: Rows,
    options: &Options,
) -> Result<(), Fault> {
    draft.clock = Some(Clock::Monotonic);
    match rows {
        Rows::OfSignals => rttests::signaltests_pause(draft),
        Rows::OfPairs => rttests::wrapping_clock(draft),
    }
    let words = Arguments::new(&draft.command, &CYCLICTEST);
    draft.duration_ns = words.span_ns("D").filter(|d| *d > 0);
    draft.policy = pairs.values().find_map(|p| p.priority).map(Policy::Fifo);
    let intervals: Vec<i64> = pairs.values().filter_map(|p| p.interval_ns).collect();
    draft.interval_ns = intervals.first().copied().filter(|i| *i > 0);
    if intervals.iter().any(|i| Some(i) != intervals.first()) {
        draft.lose("Each pair has an interval of its own; the plan says the first one's.");
    }
    for (number, p) in pairs {
        let who = format!("Thread {number}");
        if p.timeouts > 0 {
            draft.lose(format!(
                "{who} had {} timeouts, which are not among the samples.",
                p.timeouts
            ));
        }
        let Some([min, avg, max]) = p.figures else {
            draft.doubt(
                "source-no-samples",
                format!("{who} has no figures."),
                "Nothing is known about this thread.",
                "Import the whole output.",
            );
            continue;
        };
        if p.cycles.is_none() {
            draft.no_count(&who);
        }
        let certain = if min < max { 2 } else { 1 };
        let stated = Stated {
            n: Some(p.cycles.unwrap_or(certain)),
            min_ns: Some(min),
            max_ns: Some(max),
            mean_ns: Some(avg.real()),
            resolution_ns: 1000,
            beyond_ns: Some(min),
        };
        let d = draft.settle(&who, coarse(), stated);
        draft.thread(number, p.cpu, Context::User, d)?;
    }
    not_realtime(draft);
    draft.cut_values(1000);
    draft.lose("The average is cut to a whole unit.");
    options.apply(draft);
    rttests::hand_over(draft);
    Ok(())
}
