// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms, both axes logarithmic: how many activations were how late, and how early.
//!
//! Units: ns across, activations upwards.
//! A line between the middles of bins would drop a lone bin of one count to nothing, and
//! those are the worst cases: bins are drawn as steps down to a floor below one, and lone
//! and last bins carry a dot; the last dot stands at the exact greatest value.

use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns_i64, grouped};

use super::{Figure, Multiple, Series, points_json};
use crate::bins::{Bins, PER_DECADE};
use crate::svg::plot::DotSize;
use crate::svg::scale::{round_down_125, round_up_125};
use crate::svg::{Layout, Plot, Scale, Unit};
use crate::table::Table;

/// Below one, so that a bin of one count has a height.
pub(super) const FLOOR: f64 = 0.5;

/// What a reader must know to read one.
pub const EXPLANATION: &str = "Activations by how late they were; both axes are logarithmic. A dot marks \
    a bin that stands alone or holds a single activation, and the latest of each line.";

/// The histogram of late activations of every series; `None` if there are none.
#[must_use]
pub fn late(series: &[Series], deadline_ns: Option<i64>) -> Option<Figure> {
    late_in(series, deadline_ns, None)
}

/// The same as one of several pictures with axes in common.
#[must_use]
pub fn late_multiple(
    series: &[Series],
    deadline_ns: Option<i64>,
    multiple: &Multiple,
) -> Option<Figure> {
    late_in(series, deadline_ns, Some(multiple))
}

fn late_in(
    series: &[Series],
    deadline_ns: Option<i64>,
    multiple: Option<&Multiple>,
) -> Option<Figure> {
    let shown: Vec<Shown> =
        series.iter().map(|s| Shown { series: s, bins: Bins::late(&s.due, PER_DECADE) }).collect();
    let missed: u64 = series.iter().map(|s| s.due.n.saturating_sub(s.wakeup.n)).sum();
    let early: u64 = series.iter().map(|s| s.due.early.total()).sum();
    // Of several pictures the explanation stands once, above them all.
    let mut caption = if multiple.is_some() { "" } else { EXPLANATION }.to_owned();
    if missed > 0 {
        caption.push_str(&format!(
            " {} missed activations are counted with the latency they would have had.",
            grouped(missed)
        ));
    }
    if early > 0 {
        let where_to =
            if multiple.is_some() { "are not drawn" } else { "have a picture of their own" };
        caption.push_str(&format!(" {} early ones {where_to}.", grouped(early)));
    }
    for s in &shown {
        if let Some((n, from)) = s.bins.unbinned {
            caption.push_str(&format!(
                " {}: the source kept {} values in no bucket; they are the dashed bar from {} on.",
                s.series.name,
                grouped(n),
                format_ns_i64(from.cast_signed())
            ));
        }
    }
    let rule = deadline_ns.map(|d| (d, format!("deadline {}", crate::digest::exactly(d))));
    let labels = Labels { id: "histogram", title: "Latency histogram", x_name: "latency" };
    figure(&labels, caption.trim_start(), &shown, rule.as_ref(), multiple)
}

/// The histogram of early activations; `None` if nothing was early.
#[must_use]
pub fn early(series: &[Series], limit_ns: Option<i64>) -> Option<Figure> {
    let shown: Vec<Shown> = series
        .iter()
        .map(|s| Shown { series: s, bins: Bins::early(&s.due, PER_DECADE) })
        .filter(|s| !s.bins.bins.is_empty())
        .collect();
    let rule = limit_ns.map(|d| (d, format!("too early from {}", crate::digest::exactly(d))));
    let caption = "Activations that came before their due time, by how much.";
    let labels = Labels { id: "early", title: "Early activations", x_name: "earliness" };
    figure(&labels, caption, &shown, rule.as_ref(), None)
}

struct Shown<'a> {
    series: &'a Series,
    bins: Bins,
}

struct Labels {
    id: &'static str,
    title: &'static str,
    x_name: &'static str,
}

fn figure(
    labels: &Labels,
    caption: &str,
    shown: &[Shown],
    rule: Option<&(i64, String)>,
    multiple: Option<&Multiple>,
) -> Option<Figure> {
    let Labels { id, title, x_name } = *labels;
    let spans = || shown.iter().filter_map(|s| s.bins.span());
    let low = spans().map(|s| s.0).min()?.real();
    let high = spans().map(|s| s.1).max()?.real();
    let (low, high) = multiple.map_or((low, high), |m| (low.min(m.low_ns), high.max(m.high_ns)));
    let limit = rule.map(|r| r.0.real());
    // The deadline belongs into the picture unless it is so far off that the data would shrink.
    let limit_near = limit.filter(|d| *d < high * 1e3 && *d > low * 1e-3);
    let x = Scale::log(
        round_down_125(limit_near.map_or(low, |d| d.min(low))),
        round_up_125(limit_near.map_or(high, |d| d.max(high)) * 1.02),
        Unit::Ns,
    );
    let peak = shown.iter().map(|s| s.bins.peak()).max().unwrap_or(1).real();
    let peak = multiple.map_or(peak, |m| peak.max(m.peak));
    let y = Scale::log(FLOOR, round_up_125(peak.max(9.0) * 1.1), Unit::Count);
    let words = format!("{title}: {}", names(shown));
    let draw = |layout: Layout| {
        let mut plot = Plot::new(layout, x, y, x_name, "activations");
        shown.iter().for_each(|s| draw_series(&mut plot, s));
        if let Some((at, words)) = rule {
            plot.rule_x(at.real(), words);
        }
        plot.finish(&words)
    };
    let series = shown.iter().map(|s| {
        let points: Vec<(f64, f64)> =
            s.bins.bins.iter().map(|b| (b.low_ns.real(), b.count.real())).collect();
        let mut v = points_json(&s.series.name, "bins", &points);
        if let Some(end) = s.bins.bins.last() {
            v["end"] = end.high_ns.into();
        }
        v["max_ns"] = s.bins.max_ns.into();
        v
    });
    Some(Figure {
        id,
        title: title.to_owned(),
        caption: caption.to_owned(),
        wide: draw(multiple.map_or(Layout::WIDE, |m| m.layout)),
        narrow: draw(Layout::NARROW),
        table: table(shown),
        series: series.collect(),
    })
}

fn names(shown: &[Shown]) -> String {
    let all: Vec<&str> = shown.iter().map(|s| s.series.name.as_str()).collect();
    all.join(", ")
}

fn draw_series(plot: &mut Plot, s: &Shown) {
    let look = s.series.look;
    plot.name(&s.series.name, look);
    let mut steps = Vec::new();
    let mut last_high = None;
    for b in &s.bins.bins {
        if last_high.is_none() {
            steps.push((b.low_ns.real(), b.low_ns.real(), FLOOR));
        }
        steps.push((b.low_ns.real(), b.high_ns.real(), (b.count.real()).max(FLOOR)));
        last_high = Some(b.high_ns.real());
    }
    if let Some(high) = last_high {
        steps.push((high, high, FLOOR));
    }
    plot.steps(&steps, look);
    let last = s.bins.bins.len().saturating_sub(1);
    let (mut dots, mut lone) = (Vec::new(), Vec::new());
    for (i, b) in s.bins.bins.iter().enumerate().filter(|(_, b)| b.count > 0) {
        let middle = (b.low_ns.max(1).real() * b.high_ns.real()).sqrt();
        if i == last {
            dots.push((s.bins.max_ns.map_or(middle, |m| m.real()), b.count.real()));
        } else if s.bins.stands_alone(i) {
            lone.push((middle, b.count.real()));
        }
    }
    if let Some((n, from)) = s.bins.unbinned {
        let to = s.bins.max_ns.unwrap_or(from).max(from).real();
        plot.line(
            &[Some((from.real(), n.real())), Some((to, n.real()))],
            crate::svg::plot::Look::TotalDashed,
        );
        lone.push((from.real(), n.real()));
        dots = vec![(to, n.real())];
    }
    plot.dots(&lone, look, DotSize::Small);
    plot.dots(&dots, look, DotSize::Large);
}

/// Bins of all series side by side.
fn table(shown: &[Shown]) -> Table {
    let mut head = vec!["from", "to"];
    head.extend(shown.iter().map(|s| s.series.name.as_str()));
    let mut table = Table::new(&head);
    let mut edges: Vec<(u64, u64)> = shown
        .iter()
        .flat_map(|s| s.bins.bins.iter().filter(|b| b.count > 0).map(|b| (b.low_ns, b.high_ns)))
        .collect();
    edges.sort_unstable();
    edges.dedup();
    for (low, high) in edges {
        let mut row = vec![format_ns_i64(low.cast_signed()), format_ns_i64(high.cast_signed())];
        for s in shown {
            let at = |b: &&crate::bins::Bin| b.low_ns == low && b.high_ns == high;
            row.push(grouped(s.bins.bins.iter().find(at).map_or(0, |b| b.count)));
        }
        table.row(row);
    }
    let mut exact = vec!["greatest, exactly".to_owned(), String::new()];
    exact.extend(shown.iter().map(|s| {
        s.bins.max_ns.map_or_else(
            || "unknown: not in the source".to_owned(),
            |m| format!("{} ns", grouped(m)),
        )
    }));
    table.row(exact);
    if shown.iter().any(|s| s.bins.unbinned.is_some()) {
        let mut row = vec!["in no bucket".to_owned(), String::new()];
        row.extend(shown.iter().map(|s| grouped(s.bins.unbinned.map_or(0, |u| u.0))));
        table.row(row);
    }
    table
}
