// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a sample was late, as a page: the instants that were tried on their way to the due time, what happened from there to the
//! sample, what was executed.
//!
//! Units: ns. In the picture time goes to the right, as far before the due time as the axis says: its scale is
//! logarithmic, because the search divides.

use serde_json::json;
use tailbound_core::number::Real as _;
use tailbound_core::units::format_ns_i64;
use tailbound_core::why::{Changes, TriedInstant, WhyRecord};

use super::{claim, events, happened, sentence, tried};
use crate::html::page::Page;
use crate::paths::tree_table;
use crate::pictures::{Figure, points_json};
use crate::svg::plot::{DotSize, Look};
use crate::svg::scale::{round_down_125, round_up_125};
use crate::svg::{Layout, Plot, Scale, Unit};

/// What became of the sample, by how long before its due time it was varied.
fn figure(why: &WhyRecord) -> Option<Figure> {
    // The run's beginning, where random numbers alone are varied, is far from all others.
    let is_searched =
        |t: &&TriedInstant| t.of(Changes::RandomNumbers).0 == 0 || t.of(Changes::Phase).0 > 0;
    let before = why.tried.iter().filter(|t| t.before_due_ns > 0);
    let shown: Vec<&TriedInstant> = before.clone().filter(is_searched).collect();
    let left_out = if shown.len() < before.count() {
        " What other random numbers from the beginning of the run on did is only in the table."
    } else {
        ""
    };
    let points = |of: fn(&TriedInstant) -> Option<i64>| -> Vec<(f64, f64)> {
        let one =
            |t: &&TriedInstant| Some((t.before_due_ns.real(), of(t).filter(|ns| *ns > 0)?.real()));
        shown.iter().filter_map(one).collect()
    };
    let series = [
        ("least", Look::Nth(0), points(|t| t.least_ns)),
        ("most", Look::Nth(1), points(|t| t.most_ns)),
    ];
    let values = || series.iter().flat_map(|(_, _, points)| points);
    let span = |of: fn(&(f64, f64)) -> f64| {
        Some((values().map(of).reduce(f64::min)?, values().map(of).reduce(f64::max)?))
    };
    let ((near, far), (low, high)) = (span(|p| p.0)?, span(|p| p.1)?);
    let late = why.late_ns.real();
    let x = Scale::log(near * 0.9, far * 1.1, Unit::Ns);
    let y = Scale::log(
        round_down_125(low.min(late) * 0.9),
        round_up_125(high.max(late) * 1.1),
        Unit::Ns,
    );
    let draw = |layout: Layout| {
        let mut plot = Plot::new(layout, x, y, "varied so long before the due time", "latency");
        for (name, look, points) in &series {
            plot.name_dots(name, *look);
            plot.dots(points, *look, DotSize::Large);
        }
        plot.rule_y_below(late, "late above this line");
        if let Some(d) = &why.inevitable {
            plot.rule_x(d.before_due_ns.real(), "inevitable from here to the left");
        }
        plot.finish("The sample's latency over the instant at which the run was varied")
    };
    let told =
        |(name, _, points): &(&str, Look, Vec<(f64, f64)>)| points_json(name, "dots", points);
    Some(Figure {
        id: "tried",
        title: "Instants that were tried".to_owned(),
        caption: format!(
            "Each instant has the least and the greatest latency of its variations; late is {} or more. The due time is on the left.{left_out}",
            format_ns_i64(why.late_ns)
        ),
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table: tried(why),
        series: json!(series.iter().map(told).collect::<Vec<_>>()),
    })
}

/// One page that needs nothing else.
#[must_use]
pub fn html(why: &WhyRecord, kernel: &str) -> String {
    let mut page = Page::default();
    page.push("<h1>Why it was late</h1>");
    page.text("", &sentence(why));
    page.text("soft", kernel);
    match figure(why) {
        Some(figure) => page.figure(&figure, "why"),
        None => page.push(&tried(why).html()),
    }
    if let Some(d) = &why.inevitable {
        page.heading("At that instant");
        let way = if d.under_way.is_empty() { String::new() } else { d.under_way.join(" → ") };
        page.text("", &format!("{}. {way}", happened(d)));
    }
    if !why.events.is_empty() {
        page.heading("From there to the sample");
        page.push(&events(why).html());
    }
    if !why.tree.is_empty() {
        page.heading("What was executed meanwhile");
        page.push(&tree_table(&why.tree).html());
    }
    page.text("soft", &claim(why));
    page.finish("why it was late", &[super::json(why, kernel)])
}
