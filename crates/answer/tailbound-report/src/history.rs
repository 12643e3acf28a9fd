// SPDX-License-Identifier: MIT OR Apache-2.0
//! A series of runs over time: where it changed, by how much, and what else changed then.
//!
//! Units: ns in, people's units out.
//! Runs of different machines or plans are series of their own: a longer interval or another
//! load is no change of the machine.
//! Not here: finding the changes (`tailbound_stats::change`), reading the files.

use std::collections::BTreeMap;
use tailbound_core::order;

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::number::Real as _;
use tailbound_core::units::format_ns;
use tailbound_stats::change::{self, Change, FIGURES, FactChange, Features, History, Settings};

use crate::html::page::Page as HtmlPage;
use crate::pictures::{Figure, points_json};
use crate::svg::plot::Look;
use crate::svg::scale::{round_down_125, round_up_125};
use crate::svg::{Layout, Plot, Scale, Unit};
use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// Version of the JSON.
pub const SCHEMA: &str = "tailbound-history/1";

/// Facts named in the text; the JSON has all.
const FACTS_SHOWN: usize = 8;
/// Rows of the table of runs in the text: the last ones.
const ROWS_SHOWN: usize = 12;

/// Runs of one machine and plan, in the order of time.
#[derive(Debug)]
pub struct Group<'a> {
    /// What they have in common, in words.
    pub what: String,
    /// The runs and their names.
    pub runs: Vec<(&'a str, &'a Run)>,
    /// Their figures.
    pub features: Vec<Features>,
    /// What they say.
    pub history: History,
}

/// The runs as series, the longest first.
#[must_use]
pub fn groups<'a>(runs: &'a [Run], names: &'a [String], settings: Settings) -> Vec<Group<'a>> {
    let mut by: BTreeMap<String, Vec<(&str, &Run)>> = BTreeMap::new();
    for (i, run) in runs.iter().enumerate() {
        let name = names.get(i).map_or(run.header.id.as_str(), String::as_str);
        by.entry(kind(run)).or_default().push((name, run));
    }
    let mut out: Vec<Group<'_>> = by
        .into_iter()
        .map(|(what, mut runs)| {
            order::by(&mut runs, |a, b| {
                let key = |r: &Run| (r.header.started.clone(), r.header.id.clone());
                key(a.1).cmp(&key(b.1)).then_with(|| a.0.cmp(b.0))
            });
            let features: Vec<Features> = runs.iter().map(|(_, r)| Features::of(r)).collect();
            let history = change::history(&features, settings);
            Group { what, runs, features, history }
        })
        .collect();
    order::by_key(&mut out, |g| std::cmp::Reverse(g.runs.len()));
    out
}

/// What must be the same for runs to be a series.
fn kind(run: &Run) -> String {
    let (header, plan) = (&run.header, &run.header.plan);
    let fact = |name: &str| header.machine.get(name).and_then(|f| f.as_str()).unwrap_or("");
    let mut parts: Vec<String> = [fact("machine.model"), fact("cpu.model")]
        .iter()
        .filter(|s| !s.is_empty())
        .map(|s| (*s).to_owned())
        .collect();
    if parts.is_empty() {
        parts.push("machine unknown".to_owned());
    }
    let loads: Vec<String> = plan.loads.iter().map(ToString::to_string).collect();
    parts.push(format!("{} {}", plan.probe_words(), plan.every()));
    parts.push(format!("CPUs {}", plan.cpus));
    parts.push(format!("{}, {}", plan.policy, plan.means_words()));
    parts.push(if loads.is_empty() {
        "no load by Tailbound".to_owned()
    } else {
        format!("load {}", loads.join(" "))
    });
    parts.join(", ")
}

impl Group<'_> {
    /// What else changed at `change`.
    #[must_use]
    pub fn facts(&self, change: &Change) -> Vec<FactChange> {
        let runs: Vec<&Run> = self.runs.iter().map(|r| r.1).collect();
        change::changed(&runs, change.at)
    }

    fn place(&self, at: usize) -> String {
        self.runs.get(at).map_or_else(String::new, |(name, run)| {
            format!("run {} of {} ({name}, {})", at + 1, self.runs.len(), run.header.started)
        })
    }

    /// The answer in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let n = self.runs.len();
        if let Some(why) = &self.history.why_not {
            return format!("Not looked for changes: {why}.");
        }
        let margin = self.history.settings.margin * 100.0;
        match self.history.changes.last() {
            None => format!("No change beyond {margin} % in {n} runs."),
            Some(c) if c.worse => {
                format!("Regressed: since {} {}.", self.place(c.at), moved_words(c))
            }
            Some(c) => {
                format!("Not regressed: since {} {}.", self.place(c.at), moved_words(c))
            }
        }
    }
}

fn moved_words(c: &Change) -> String {
    let one = |m: &change::series::Moved| format!("{} {:+.1} %", m.figure, (m.ratio - 1.0) * 100.0);
    let all: Vec<String> = c.moved.iter().filter(|m| m.beyond_margin).map(one).collect();
    all.join(", ")
}

fn fact_words(f: &FactChange) -> String {
    let when = match f.off {
        0 => String::new(),
        n => {
            let runs = if n.abs() == 1 { "run" } else { "runs" };
            format!(" ({} {runs} {})", n.abs(), if n < 0 { "earlier" } else { "later" })
        }
    };
    format!("{}: {} → {}{when}", f.name, f.before, f.after)
}

/// The series as text.
#[must_use]
pub fn text(groups: &[Group<'_>], style: Style) -> String {
    let mut page = Page::new(style);
    if groups.len() > 1 {
        page.text(
            &format!("{} kinds of runs, which are not compared with each other: machine, interval, CPUs, policy, means and loads make a kind.", groups.len()),
            "  ",
            Ink::Warn,
        );
    }
    for g in groups {
        page.gap();
        let ink = if g.history.regressed() { Ink::Bad } else { Ink::Bold };
        page.text(&g.sentence(), "  ", ink);
        page.text(&g.what, "  ", Ink::Dim);
        for c in &g.history.changes {
            let word = if c.worse { "worse" } else { "better" };
            page.heading(&format!("Change at {}: {word}, p {:.3}", g.place(c.at), c.p));
            page.text(&format!("- {}", moved_words(c)), "  ", Ink::Plain);
            let facts = g.facts(c);
            facts.iter().take(FACTS_SHOWN).for_each(|f| {
                page.text(&format!("- {}", fact_words(f)), "  ", Ink::Plain);
            });
            if facts.len() > FACTS_SHOWN {
                let more = format!("- and {} more facts, see --json", facts.len() - FACTS_SHOWN);
                page.text(&more, "  ", Ink::Dim);
            }
            if facts.is_empty() {
                page.text(
                    "- no recorded fact of the machine changed within five runs of it",
                    "  ",
                    Ink::Plain,
                );
            }
        }
        page.gap();
        let table = table(g, ROWS_SHOWN).text(page.width());
        page.raw(table, Ink::Plain);
        if g.runs.len() > ROWS_SHOWN {
            let words = format!("the last {ROWS_SHOWN} of {} runs; all with --json", g.runs.len());
            page.text(&words, "  ", Ink::Dim);
        }
        let s = &g.history.settings;
        let unused: Vec<&str> =
            FIGURES.into_iter().filter(|f| !g.history.figures.contains(f)).collect();
        let unused = if unused.is_empty() {
            String::new()
        } else {
            format!("; not used, because not every run has them: {}", unused.join(", "))
        };
        page.text(
            &format!(
                "{}, at most {} permutations, seed {}, level {}, margin {} %, at least {} runs per stretch{unused}",
                g.history.method, s.permutations, s.seed, s.level, s.margin * 100.0, s.segment_min
            ),
            "  ",
            Ink::Dim,
        );
    }
    page.finish()
}

/// The last `most` runs with their figures; a line marks where a change begins.
fn table(g: &Group<'_>, most: usize) -> Table {
    let mut head = vec!["run", "started"];
    head.extend(FIGURES);
    let mut t = Table::new(&head).with_words(&[1]);
    let first = g.runs.len().saturating_sub(most);
    for (i, ((name, run), f)) in g.runs.iter().zip(&g.features).enumerate().skip(first) {
        let changed = g.history.changes.iter().any(|c| c.at == i);
        let mark = if changed { "> " } else { "  " };
        let mut row = vec![format!("{mark}{name}"), run.header.started.clone()];
        row.extend(f.ns.iter().map(|v| v.map_or_else(|| "-".to_owned(), format_ns)));
        t.row(row);
    }
    t
}

/// The series for scripts.
#[must_use]
pub fn json(groups: &[Group<'_>]) -> Value {
    let one = |g: &Group<'_>| {
        let changes: Vec<Value> = g
            .history
            .changes
            .iter()
            .map(|c| {
                let run = g.runs.get(c.at);
                json!({
                    "at": c.at,
                    "name": run.map(|r| r.0),
                    "started": run.map(|r| r.1.header.started.as_str()),
                    "p": c.p,
                    "worse": c.worse,
                    "moved": c.moved,
                    "facts": g.facts(c),
                })
            })
            .collect();
        let runs: Vec<Value> = g
            .runs
            .iter()
            .zip(&g.features)
            .map(|((name, run), f)| {
                let figures: BTreeMap<&str, Option<f64>> = FIGURES.into_iter().zip(f.ns).collect();
                json!({"name": name, "id": run.header.id, "started": run.header.started, "ns": figures})
            })
            .collect();
        json!({
            "kind": g.what,
            "sentence": g.sentence(),
            "regressed": g.history.regressed(),
            "method": g.history.method,
            "settings": g.history.settings,
            "figures": g.history.figures,
            "within_margin": g.history.within_margin,
            "why_not": g.history.why_not,
            "changes": changes,
            "runs": runs,
        })
    };
    json!({
        "schema": SCHEMA,
        "regressed": groups.iter().any(|g| g.history.regressed()),
        "series": groups.iter().map(one).collect::<Vec<_>>(),
    })
}

/// Quantiles over the runs, with the changes marked. `None`: no run has a figure.
#[must_use]
pub fn figure(g: &Group<'_>) -> Option<Figure> {
    const SHOWN: [usize; 5] = [0, 2, 3, 4, 5];
    type Points = Vec<Option<(f64, f64)>>;
    let lines: Vec<(&str, Points)> = SHOWN
        .into_iter()
        .filter_map(|i| {
            let points: Vec<Option<(f64, f64)>> = g
                .features
                .iter()
                .enumerate()
                .map(|(k, f)| f.ns.get(i).copied().flatten().map(|v| ((k + 1).real(), v)))
                .collect();
            points
                .iter()
                .any(Option::is_some)
                .then(|| (FIGURES.get(i).copied().unwrap_or(""), points))
        })
        .collect();
    let values = || lines.iter().flat_map(|l| l.1.iter().flatten().map(|p| p.1));
    let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let y = Scale::log(round_down_125(low * 0.95), round_up_125(high * 1.05), Unit::Ns);
    let x = Scale::linear(0.0, g.runs.len().real() + 1.0, Unit::Count);
    let draw = |layout: Layout| {
        let mut plot = Plot::new(layout, x, y, "run, in the order of time", "latency");
        for (i, (name, points)) in lines.iter().enumerate() {
            plot.name(name, Look::Nth(i));
            plot.line(points, Look::Nth(i));
        }
        for c in &g.history.changes {
            let word = if c.worse { "worse" } else { "better" };
            // Between the last run before and the first one after.
            plot.rule_x(c.at.real() + 0.5, &format!("{word} from {}", c.at + 1));
        }
        plot.finish("Quantiles of every run in the order of time, changes marked")
    };
    let series: Vec<Value> = lines
        .iter()
        .map(|(name, points)| {
            points_json(name, "line", &points.iter().flatten().copied().collect::<Vec<_>>())
        })
        .collect();
    Some(Figure {
        id: "history",
        title: format!("{} runs", g.runs.len()),
        caption: format!(
            "{} Vertical lines mark changes beyond the margin that chance does not explain.",
            g.sentence()
        ),
        wide: draw(Layout::WIDE),
        narrow: draw(Layout::NARROW),
        table: table(g, usize::MAX),
        series: json!(series),
    })
}

/// The series as one page that needs nothing else.
#[must_use]
pub fn html(groups: &[Group<'_>]) -> String {
    let mut page = HtmlPage::default();
    page.push("<h1>Tailbound history</h1>");
    for (i, g) in groups.iter().enumerate() {
        page.heading(&g.sentence());
        page.text("soft", &g.what);
        if let Some(f) = figure(g) {
            page.figure(&f, &format!("h{i}"));
        }
        for c in &g.history.changes {
            let word = if c.worse { "worse" } else { "better" };
            page.heading(&format!("{}: {word}", g.place(c.at)));
            let mut items = vec![moved_words(c)];
            items.extend(g.facts(c).iter().map(fact_words));
            page.list(&items);
        }
    }
    page.finish("history", &[json(groups)])
}
