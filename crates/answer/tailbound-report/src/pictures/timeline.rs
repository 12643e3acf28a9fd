// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures over time: the latest activation of every second, what the loads achieved, and
//! a quantile of the moving windows.
//!
//! Units: seconds into the run across; ns, or share of a load's best rate, upwards.
//! Long runs are thinned to columns. A column keeps the *greatest* latency and the *least*
//! load rate of its seconds: those are what a reader looks for.

use std::collections::BTreeMap;

use tailbound_core::Run;
use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns, format_span, grouped};
use tailbound_stats::Analysis;

use super::window_table::window_table;
use super::{Figure, points_json};
use crate::label;
use crate::svg::plot::{DotSize, Look};
use crate::svg::scale::{round_down_125, round_up_125};
use crate::svg::{Layout, Plot, Scale, Unit};
use crate::table::Table;

/// Columns a run is thinned to.
const COLUMNS_MAX: u64 = 600;
/// Figures in the table of a picture.
const CELLS_MAX: usize = 3000;

/// A line over time: column to value.
struct Line {
    name: String,
    look: Look,
    columns: BTreeMap<u64, f64>,
}

/// How time is cut into columns.
#[derive(Clone, Copy)]
struct Columns {
    seconds: u64,
    end_s: u64,
}

/// Which of several values stands for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorstValue {
    /// Of rates.
    Least,
    /// Of latencies.
    Greatest,
}

impl Columns {
    fn of(run: &Run) -> Self {
        let seen = run.seconds.iter().map(|s| s.second + 1).max().unwrap_or(0);
        let measured = u64::try_from(run.measured_ns()).unwrap_or(0).div_ceil(1_000_000_000);
        let loads = run.loads.iter().map(|l| l.t_ns.max(0).unsigned_abs() / 1_000_000_000).max();
        let end_s = seen.max(measured).max(loads.unwrap_or(0)).max(1);
        Self { seconds: end_s.div_ceil(COLUMNS_MAX).max(1), end_s }
    }
    fn column(self, second: u64) -> u64 {
        second / self.seconds
    }
    /// Columns of a record of `span_ns` that ends at `t_ns`: that of its end, and those before of
    /// whose last second it holds half or more. One that came late stands for all of its time.
    fn covered(self, t_ns: i64, span_ns: i64) -> std::ops::RangeInclusive<u64> {
        const SECOND: u64 = 1_000_000_000;
        let begin = t_ns.saturating_sub(span_ns).max(0).unsigned_abs();
        let last = t_ns.max(0).unsigned_abs().saturating_sub(1) / SECOND;
        let first = begin.saturating_sub(SECOND / 2).div_ceil(SECOND).min(last);
        self.column(first)..=self.column(last)
    }
    fn middle(self, column: u64) -> f64 {
        let from = (column * self.seconds).real();
        (from + self.seconds.real() / 2.0).min(self.end_s.real())
    }
    fn scale(self) -> Scale {
        Scale::linear(0.0, self.end_s.real(), Unit::Seconds)
    }
    fn thinned(self) -> String {
        if self.seconds > 1 {
            format!(" Each column stands for {} seconds and shows the worst of them.", self.seconds)
        } else {
            String::new()
        }
    }
    /// A gap in the records is a gap in the line.
    fn points(self, line: &Line) -> Vec<Option<(f64, f64)>> {
        let mut out = Vec::new();
        let mut last: Option<u64> = None;
        for (&column, &v) in &line.columns {
            if last.is_some_and(|l| column > l + 1) {
                out.push(None);
            }
            out.push(Some((self.middle(column), v)));
            last = Some(column);
        }
        out
    }
    /// The same values side by side, thinned further if the table would not end.
    fn table(
        self,
        lines: &[Line],
        write: &dyn Fn(&Line, f64) -> String,
        worst: WorstValue,
    ) -> Table {
        let mut head = vec!["seconds"];
        head.extend(lines.iter().map(|l| l.name.as_str()));
        let mut table = Table::new(&head);
        let last = lines.iter().filter_map(|l| l.columns.keys().last()).max().copied();
        let rows = last.map_or(0, |l| l + 1);
        let rows_max = (CELLS_MAX / lines.len().max(1)).max(20) as u64;
        let group = rows.div_ceil(rows_max).max(1);
        for g in 0..rows.div_ceil(group) {
            let (from, to) = (g * group, (g + 1) * group);
            let end = (to * self.seconds).min(self.end_s);
            let mut row = vec![format!("{} to {end}", from * self.seconds)];
            for l in lines {
                let values = l.columns.range(from..to).map(|c| *c.1);
                let worst = match worst {
                    WorstValue::Least => values.reduce(f64::min),
                    WorstValue::Greatest => values.reduce(f64::max),
                };
                row.push(worst.map_or_else(|| "no record".to_owned(), |v| write(l, v)));
            }
            table.row(row);
        }
        table
    }
}

/// A line a thread: of each column the greatest of its values, given as (thread, second, value).
fn greatest(
    run: &Run,
    columns: Columns,
    values: impl Iterator<Item = (u32, u64, f64)>,
) -> Vec<Line> {
    let mut by_thread: BTreeMap<u32, BTreeMap<u64, f64>> = BTreeMap::new();
    for (thread, second, value) in values {
        let place = by_thread.entry(thread).or_default().entry(columns.column(second));
        let c = place.or_insert(f64::MIN);
        *c = c.max(value);
    }
    let line = |(i, (thread, columns))| Line {
        name: label::thread_id(run, thread),
        look: Look::Nth(i),
        columns,
    };
    by_thread.into_iter().enumerate().map(line).collect()
}

/// The latest wake-up of every second and thread; `None` without per-second records.
#[must_use]
pub fn maxima(analysis: &Analysis<'_>) -> Option<Figure> {
    let run = analysis.run();
    let columns = Columns::of(run);
    let latest = run.seconds.iter().filter(|s| s.n > 0);
    let lines = greatest(run, columns, latest.map(|s| (s.thread, s.second, s.max_ns.real())));
    let values = || lines.iter().flat_map(|l| l.columns.values().copied());
    let high = values().reduce(f64::max)?;
    let (dots, all) = exceedances(run, columns);
    let high = dots.values().flatten().map(|d| d.1).fold(high, f64::max);
    let low = values().filter(|v| *v > 0.0).reduce(f64::min).unwrap_or(1.0);
    let deadline = run.header.plan.requirement.deadline_ns.map(|d| d.real());
    let near = deadline.filter(|d| *d < high * 1e3 && *d > low * 1e-3);
    let y = Scale::log(
        round_down_125(near.map_or(low, |d| d.min(low)) * 0.95),
        round_up_125(near.map_or(high, |d| d.max(high)) * 1.05),
        Unit::Ns,
    );
    let marks = crate::phases::marks(analysis);
    let draw = |layout: Layout| {
        let layout = layout.with_area_height(200.0);
        let mut plot = Plot::new(layout, columns.scale(), y, "time", "latest of each second");
        for l in &lines {
            plot.name(&l.name, l.look);
            plot.line(&columns.points(l), l.look);
        }
        for (thread, points) in &dots {
            let name = label::thread_id(run, *thread);
            let look = lines.iter().find(|l| l.name == name).map_or(Look::Total, |l| l.look);
            plot.dots(points, look, DotSize::Small);
        }
        if let Some(d) = deadline {
            plot.rule_y(d, &format!("deadline {}", format_ns(d)));
        }
        for (second, words) in &marks {
            plot.rule_x(*second, words);
        }
        plot.finish("Maximum latency of each second over the time of the run, by thread")
    };
    let caption = maxima_caption(run, columns, &dots, all, &lines);
    Some(Figure {
        id: "maxima",
        title: "Maximum latency of each second".to_owned(),
        caption,
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table: columns.table(&lines, &|_, v| format_ns(v), WorstValue::Greatest),
        series: lines_json(columns, &lines),
    })
}

/// What the picture of the maxima shows, and what it cannot; `dots` are of `all` exceedances.
fn maxima_caption(run: &Run, columns: Columns, dots: &Dots, all: usize, lines: &[Line]) -> String {
    let mut caption = format!("The largest latency of every second.{}", columns.thinned());
    let shown: usize = dots.values().map(Vec::len).sum();
    if all > 0 {
        caption.push_str(&format!(
            " Dots: {} of {} recorded exceedances{}.",
            grouped(shown as u64),
            grouped(all as u64),
            if shown < all { ", the latest of each column" } else { "" }
        ));
    }
    let asleep = run.seconds.iter().filter(|s| s.n == 0).count();
    if asleep > 0 {
        caption.push_str(&format!(
            " {} seconds of a thread had no wake-up at all: the line is broken there, and the wake-up after \
             them shows how late it was.",
            grouped(asleep as u64)
        ));
    }
    let early = lines.iter().flat_map(|l| l.columns.values()).filter(|v| **v <= 0.0).count();
    if early > 0 {
        caption.push_str(&format!(
            " In {early} columns even the latest was early or on time: they lie on the lower edge."
        ));
    }
    caption
}

fn lines_json(columns: Columns, lines: &[Line]) -> serde_json::Value {
    let points = |l: &Line| -> Vec<(f64, f64)> {
        l.columns.iter().map(|(c, v)| (columns.middle(*c), *v)).collect()
    };
    lines.iter().map(|l| points_json(&l.name, "line", &points(l))).collect()
}

/// Dots of a thread by its number.
type Dots = BTreeMap<u32, Vec<(f64, f64)>>;

/// The greatest exceedance of each thread and column, and how many there are in all.
fn exceedances(run: &Run, columns: Columns) -> (Dots, usize) {
    let mut greatest: BTreeMap<(u32, u64), (f64, f64)> = BTreeMap::new();
    for e in run.exceedances.iter().filter(|e| e.t_ns >= 0) {
        let t = e.t_ns.real() / 1e9;
        let column = columns.column(e.t_ns.unsigned_abs() / 1_000_000_000);
        let g = greatest.entry((e.thread, column)).or_insert((t, e.error_ns.real()));
        if e.error_ns.real() > g.1 {
            *g = (t, e.error_ns.real());
        }
    }
    let mut dots = Dots::new();
    for ((thread, _), point) in greatest {
        dots.entry(thread).or_default().push(point);
    }
    (dots, run.exceedances.len())
}

/// What the loads achieved, each as a share of its own best second; `None` without load records.
#[must_use]
pub fn loads(run: &Run) -> Option<Figure> {
    let columns = Columns::of(run);
    let mut rates: BTreeMap<u32, (String, String, BTreeMap<u64, f64>)> = BTreeMap::new();
    for l in run.loads.iter().filter(|l| l.span_ns > 0 && l.t_ns > 0) {
        let rate = l.count.real() * 1e9 / l.span_ns.real();
        let of_load = rates
            .entry(l.load)
            .or_insert_with(|| (l.name.clone(), l.unit.clone(), BTreeMap::new()));
        for column in columns.covered(l.t_ns, l.span_ns) {
            let least = of_load.2.entry(column).or_insert(f64::MAX);
            *least = least.min(rate);
        }
    }
    let mut best = Vec::new();
    let lines: Vec<Line> = rates
        .into_values()
        .enumerate()
        .map(|(i, (name, unit, columns))| {
            let top = columns.values().copied().fold(0.0, f64::max);
            best.push((top, unit.clone()));
            let share = |v: f64| if top > 0.0 { v / top } else { 0.0 };
            Line {
                name: format!("{name}: best {} {unit}/s", Unit::Count.label(top.round())),
                look: Look::Nth(i),
                columns: columns.into_iter().map(|(c, v)| (c, share(v))).collect(),
            }
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    let y = Scale::linear(0.0, 1.05, Unit::Share);
    let draw = |layout: Layout| {
        let layout = layout.with_area_height(90.0);
        let mut plot =
            Plot::new(layout, columns.scale(), y, "time", "load, share of its best second");
        for l in &lines {
            plot.name(&l.name, l.look);
            plot.line(&columns.points(l), l.look);
        }
        plot.finish("Rate of each load over the time of the run")
    };
    let write = |l: &Line, share: f64| {
        let at = lines.iter().position(|o| o.name == l.name);
        let (top, unit) = at.and_then(|i| best.get(i)).cloned().unwrap_or_default();
        format!("{} {unit}/s", Unit::Count.label((share * top).round()))
    };
    Some(Figure {
        id: "loads",
        title: "Rate of each load".to_owned(),
        caption: format!(
            "Work done per second, as a share of the best second of each load: a load that stalls does not \
             disturb. A rate is that of the time since the record before.{}",
            columns.thinned()
        ),
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table: columns.table(&lines, &write, WorstValue::Least),
        series: lines_json(columns, &lines),
    })
}

/// The 99 % quantile (else the mean) of the moving windows; `None` without window records.
#[must_use]
pub fn windows(run: &Run) -> Option<Figure> {
    let columns = Columns::of(run);
    let lengths: Vec<u32> = {
        let mut all: Vec<u32> = run.windows.iter().map(|w| w.window_s).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    // The middle length: short ones repeat the picture above, long ones have few points.
    let length = lengths.get(lengths.len() / 2).copied()?;
    let chosen = || run.windows.iter().filter(|w| w.window_s == length);
    let statistic = if chosen().any(|w| w.values.contains_key("p99")) { "p99" } else { "mean" };
    let told = || chosen().filter_map(|w| Some((w.thread, w.second, *w.values.get(statistic)?)));
    let negative = told().filter(|(_, _, v)| *v <= 0.0).count();
    let lines = greatest(run, columns, told());
    let values = || lines.iter().flat_map(|l| l.columns.values().copied());
    let high = values().reduce(f64::max)?;
    let low = values().filter(|v| *v > 0.0).reduce(f64::min).unwrap_or(1.0);
    let y = Scale::log(round_down_125(low * 0.95), round_up_125(high * 1.05), Unit::Ns);
    let span = format_span(i64::from(length).saturating_mul(1_000_000_000));
    let draw = |layout: Layout| {
        let name = format!("{statistic} of the last {span}");
        let mut plot = Plot::new(layout.with_area_height(140.0), columns.scale(), y, "time", &name);
        for l in &lines {
            plot.name(&l.name, l.look);
            // Windows come every few seconds: the line goes on between them.
            let points: Vec<_> = columns.points(l).into_iter().filter(Option::is_some).collect();
            plot.line(&points, l.look);
        }
        plot.finish("Quantile of the moving window over the time of the run, by thread")
    };
    let mut caption = format!(
        "{statistic} of all due activations of the last {span}, as the run went on: where it rises, \
         the machine changed.{}",
        columns.thinned()
    );
    if negative > 0 {
        caption.push_str(&format!(" {negative} windows at or below 0 lie on the lower edge."));
    }
    Some(Figure {
        id: "windows",
        title: "Moving window".to_owned(),
        caption,
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table: window_table(run),
        series: lines_json(columns, &lines),
    })
}
