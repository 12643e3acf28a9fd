// SPDX-License-Identifier: MIT OR Apache-2.0
//! Some tasks beside each other over a short time, in letters.
//!
//! One line per task, one column per stretch of time; of several states in a column
//! the one that took most of it is shown.
//! Not here: the picture (`pictures::lanes`).

use std::collections::BTreeMap;

use tailbound_core::number::Real as _;
use tailbound_core::record::{Lane, TimelineRecord};
use tailbound_core::units::format_ns;

use crate::pictures::lanes_end_ns;
use crate::table::columns;

/// The letter of a state, and what it means.
fn letter(state: &str) -> (char, &str) {
    match state {
        "running" => ('█', "runs"),
        "holds" => ('H', "runs and holds the lock"),
        "boosted" => ('B', "runs at the inherited priority and holds the lock"),
        "ready" => ('·', "ready, but has no CPU"),
        "blocked" => ('w', "waits for the lock"),
        other => ('?', other),
    }
}

/// The lines of one timeline, `width` columns wide.
#[must_use]
pub(crate) fn lines(timeline: &TimelineRecord, width: usize) -> Vec<String> {
    let name = timeline.lanes.iter().map(|l| columns(&l.name)).max().unwrap_or(0);
    let across = width.saturating_sub(name + 2).max(10);
    let end = lanes_end_ns(timeline).max(1);
    let mut out: Vec<String> = timeline
        .lanes
        .iter()
        .map(|l| {
            let pad = " ".repeat(name.saturating_sub(columns(&l.name)));
            format!("{}{pad}  {}", l.name, row(l, end, across)).trim_end().to_owned()
        })
        .collect();
    let last = format_ns(end.real());
    let rule = "─".repeat(across.saturating_sub(columns(&last) + 3));
    out.push(format!("{}  0 {rule} {last}", " ".repeat(name)));
    out
}

/// What the letters of one timeline mean.
#[must_use]
pub(crate) fn legend(timeline: &TimelineRecord) -> String {
    let states: BTreeMap<&str, ()> =
        timeline.lanes.iter().flat_map(|l| &l.spans).map(|s| (s.state.as_str(), ())).collect();
    let legend: Vec<String> = states
        .keys()
        .map(|state| {
            let (letter, words) = letter(state);
            format!("{letter} {words}")
        })
        .collect();
    legend.join("; ")
}

fn row(lane: &Lane, end_ns: i64, across: usize) -> String {
    let wide = i64::try_from(across).unwrap_or(1);
    (0..wide)
        .map(|column| {
            let at = |c: i64| {
                i64::try_from(i128::from(c) * i128::from(end_ns) / i128::from(wide))
                    .unwrap_or(end_ns)
            };
            let (from, to) = (at(column), at(column + 1));
            let most = lane
                .spans
                .iter()
                .map(|s| (s.to_ns.min(to).saturating_sub(s.from_ns.max(from)), s))
                .filter(|(shared, _)| *shared > 0)
                .max_by_key(|(shared, _)| *shared);
            most.map_or(' ', |(_, s)| letter(&s.state).0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_core::record::Span;

    #[test]
    fn each_task_has_a_line_as_long_as_its_states() {
        let span = |from_ns, to_ns, state: &str| Span { from_ns, to_ns, state: state.to_owned() };
        let lane = |name: &str, spans| Lane { name: name.to_owned(), note: String::new(), spans };
        let timeline = TimelineRecord {
            title: "x".to_owned(),
            lanes: vec![
                lane("high", vec![span(0, 60, "blocked"), span(60, 100, "running")]),
                lane("low", vec![span(0, 50, "boosted")]),
            ],
        };
        let lines = lines(&timeline, 26);
        assert_eq!(lines[0], format!("high  {}{}", "w".repeat(12), "█".repeat(8)));
        assert_eq!(lines[1], format!("low   {}", "B".repeat(10)));
        assert!(lines[2].ends_with("100 ns"), "{lines:?}");
        assert!(legend(&timeline).contains("w waits for the lock"));
    }
}
