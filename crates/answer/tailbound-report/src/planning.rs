// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long must be measured, as sentences a person can act on and tables beneath them.
//!
//! Units: ns and seconds in; people's units out, rounded to the safe side: a
//! length that suffices up, a statement that holds down.
//! Not here: the numbers (`tailbound_stats::planning`), the words of the command line.

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::requirement::Rate;
use tailbound_core::units::{format_ns, format_ns_i64, format_span, grouped};
use tailbound_stats::planning::{
    self, ActivationBudget, Demonstration, METHOD, QuantilePlan, ShareInTime,
};
use tailbound_stats::rates::{at_least, at_most, percent};
use tailbound_stats::{Precision, Summary};

use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// Version of the JSON.
pub const SCHEMA: &str = "tailbound-plan/1";

/// What is measured with: it turns time into activations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    /// The deadline, to name what must be rare.
    pub deadline_ns: Option<i64>,
    /// From one activation to the next.
    pub interval_ns: i64,
    /// Machines measured beside each other.
    pub machines: u32,
    /// Confidence of the statements.
    pub confidence: f64,
}

/// One answer: sentences, tables with their headings, and the same for scripts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Sentences.
    pub sentences: Vec<String>,
    /// Heading and table.
    pub tables: Vec<(String, Table)>,
    /// Name of the answer in the JSON, and the answer.
    pub json: (&'static str, Value),
}

impl Means {
    fn exceedances(&self) -> String {
        self.deadline_ns.map_or_else(
            || "exceedances".to_owned(),
            |d| format!("exceedances of {}", format_ns_i64(d)),
        )
    }
    fn activations(&self, seconds: f64) -> u64 {
        whole(seconds * 1e9 / self.interval_ns.max(1).real())
    }
    fn level(&self) -> String {
        percent(self.confidence)
    }
}

fn whole(x: f64) -> u64 {
    (x * (1.0 - 1e-12)).ceil().whole_u64()
}

fn per(rate: Rate) -> String {
    let hours = rate.per_ns / 3_600_000_000_000;
    let whole = rate.per_ns % 3_600_000_000_000 == 0;
    // A day's rate is asked for as `1/24h`, and `one per 1 d` reads like a slip.
    let time = if whole && (2..=72).contains(&hours) {
        format!("{hours} h")
    } else {
        format_span(rate.per_ns)
    };
    if rate.count == 1 { format!("one per {time}") } else { format!("{} per {time}", rate.count) }
}

/// How to show a rate.
#[must_use]
pub fn rate(means: &Means, rate: Rate, plan: &Demonstration) -> Section {
    let clean = plan.needed.first().map_or(f64::INFINITY, |n| n.each_s);
    let (what, level) = (means.exceedances(), means.level());
    let beside = if means.machines > 1 {
        format!(" on each of {} machines", means.machines)
    } else {
        String::new()
    };
    let mut sentences = vec![
        format!(
            "To show at {level} confidence that {what} are rarer than {}, measure {}{beside} without one ({} activations at an interval of {}).",
            per(rate),
            at_most(clean),
            grouped(means.activations(clean)),
            format_ns_i64(means.interval_ns),
        ),
        "A shorter interval does not shorten it: the future is judged by time, not by samples. More machines do, where they are alike: their times add up.".to_owned(),
        format!(
            "With optional stopping (looking at any time, as `run --until anytime` does), measure {}{beside} without one.",
            at_most(plan.anytime_each_s)
        ),
    ];
    if means.machines == 1 && clean > 86_400.0 {
        let machines = (clean / 43_200.0).ceil();
        sentences.push(format!(
            "In 12 h: {machines:.0} machines in parallel (--machines {machines:.0})."
        ));
    }
    let mut allowed =
        Table::new(&["seconds with an exceedance", "measure at least", "activations"]);
    for n in &plan.needed {
        allowed.row(vec![
            grouped(n.allowed),
            at_most(n.each_s),
            grouped(means.activations(n.each_s)),
        ]);
    }
    let mut tables = vec![("If some are seen".to_owned(), allowed)];
    if !plan.shorter.is_empty() {
        let mut shorter = Table::new(&["a clean run of", "shows: rarer than one per"]);
        for s in &plan.shorter {
            shorter.row(vec![at_most(s.length_s), at_least(s.one_per_s)]);
        }
        tables.push((format!("What a shorter one shows at {level}"), shorter));
    }
    Section {
        sentences,
        tables,
        json: (
            "rate",
            json!({"rate": rate.to_string(), "unit": "seconds of schedule with an exceedance", "plan": plan}),
        ),
    }
}

/// What a clean run of a length shows.
#[must_use]
pub fn length(means: &Means, length_s: f64) -> Section {
    let shown = planning::shown(length_s, means.confidence, means.machines);
    let activations = means.activations(length_s);
    let beside = if means.machines > 1 {
        format!(" on each of {} machines", means.machines)
    } else {
        String::new()
    };
    let all = activations.real() * f64::from(means.machines);
    let probability = planning::given(all, 0.5, means.confidence).clean_shows;
    Section {
        sentences: vec![
            format!(
                "A run of {}{beside} without one ({} activations at an interval of {}) shows at {} confidence that {} are rarer than one per {}.",
                at_most(length_s),
                grouped(activations),
                format_ns_i64(means.interval_ns),
                means.level(),
                means.exceedances(),
                at_least(shown.one_per_s),
            ),
            format!(
                "Per activation that is a probability of at most {probability:.1e}, where activations are late independently of each other."
            ),
        ],
        tables: Vec::new(),
        json: (
            "length",
            json!({"activations": activations, "clean_shows_per_activation": probability, "shown": shown}),
        ),
    }
}

/// How to show a share of activations in time.
#[must_use]
pub fn share(means: &Means, plan: &ShareInTime) -> Section {
    let level = means.level();
    let clean = plan.needed.first().map_or(f64::INFINITY, |n| n.exposure);
    let mut sentences = vec![format!(
        "To show at {level} confidence that {} of the activations are in time, measure {} of them without a late one ({} at an interval of {}).",
        percent(plan.share),
        grouped(whole(clean)),
        at_most(plan.needed.first().map_or(f64::INFINITY, |n| n.each_s)),
        format_ns_i64(means.interval_ns),
    )];
    if let Some(given) = &plan.given {
        sentences.push(given_words(plan.share, given, &level));
    }
    sentences.push("This counts late activations that are independent of each other: where they come in clusters, count each cluster once.".to_owned());
    let mut table = Table::new(&["late activations", "of at least", "in"]);
    for n in &plan.needed {
        table.row(vec![grouped(n.allowed), grouped(whole(n.exposure)), at_most(n.each_s)]);
    }
    Section {
        sentences,
        tables: vec![("If some are late".to_owned(), table)],
        json: ("share", json!(plan)),
    }
}

fn given_words(share: f64, given: &ActivationBudget, level: &str) -> String {
    let n = grouped(whole(given.activations));
    match given.allowed {
        Some(allowed) => format!(
            "Of {n} activations, at most {} may be late ({:.0} would be, if {} were just reached); without a late one they show a probability of at most {:.1e}.",
            grouped(allowed),
            given.expected,
            percent(share),
            given.clean_shows
        ),
        None => format!(
            "{n} activations cannot show it at {level}: even without a late one they show a probability of at most {:.1e}.",
            given.clean_shows
        ),
    }
}

/// What a quantile takes; `design_effect`: the autocorrelation factor of a pilot run.
#[must_use]
pub fn quantile(means: &Means, plan: &QuantilePlan, design_effect: Option<f64>) -> Section {
    let name = tailbound_stats::quantile::label(plan.quantile);
    let time = |n: f64| at_most(n * means.interval_ns.real() / 1e9 / f64::from(means.machines));
    let mut sentences = vec![
        format!(
            "An upper limit of {name} at {} confidence takes {} independent activations ({} at an interval of {}).",
            means.level(),
            grouped(whole(plan.finite)),
            time(plan.finite),
            format_ns_i64(means.interval_ns),
        ),
        format!(
            "To know the share beyond it to ±{} takes {} ({}).",
            percent(plan.precision),
            grouped(whole(plan.precise)),
            time(plan.precise),
        ),
    ];
    sentences.push(first_end());
    match design_effect {
        Some(effect) => sentences.push(format!(
            "The autocorrelation factor of the pilot run is {effect:.1} (that many activations count as one independent one): {} and {} of measurement.",
            time(plan.finite * effect),
            time(plan.precise * effect),
        )),
        None => sentences.push("Activations of a real machine depend on each other; a pilot run (--pilot RUN) gives the autocorrelation factor.".to_owned()),
    }
    Section {
        sentences,
        tables: Vec::new(),
        json: ("quantile", json!({"plan": plan, "design_effect": design_effect})),
    }
}

/// What a run that ends by its own precision takes at least.
fn first_end() -> String {
    format!(
        "A run with `--until precision` checks this itself and ends after {} s at the earliest.",
        tailbound_stats::stopping::PRECISE_FIRST_S
    )
}

/// What a pilot run tells of how long the mean and the quantiles take.
///
/// The half-width shrinks with the root of the length: half of it takes four times as long.
#[must_use]
pub fn pilot(means: &Means, pilot: &Pilot<'_>) -> Section {
    let (known, length_s) = (pilot.known, pilot.length_s);
    if let Some(why) = &known.why_not {
        return Section {
            sentences: vec![format!("The pilot run shows nothing about precision: {why}.")],
            tables: Vec::new(),
            json: ("pilot", json!({"length_s": length_s, "precision": known})),
        };
    }
    let longer =
        |half: f64, wanted: f64| length_s * (half / wanted).powi(2) / f64::from(means.machines);
    let mut sentences = Vec::new();
    let mut mean = None;
    if let (Some(decimals), Some(half_ns)) = (pilot.decimals, known.mean_ns) {
        let wanted_ns = 500.0 / 10f64.powi(i32::try_from(decimals.min(9)).unwrap_or(0));
        let each_s = longer(half_ns, wanted_ns);
        let named = if decimals == 1 { "decimal" } else { "decimals" };
        sentences.push(if half_ns <= wanted_ns {
            format!(
                "The pilot run of {} already gives its mean to ±{}: {decimals} {named} of a µs (±{}) are reached.",
                at_least(length_s), format_ns(half_ns), format_ns(wanted_ns)
            )
        } else {
            format!(
                "To know the mean to {decimals} {named} of a µs (±{}) at 95 % confidence, measure {}: the pilot run of {} gives it to ±{}.",
                format_ns(wanted_ns), at_most(each_s), at_least(length_s), format_ns(half_ns)
            )
        });
        mean = Some(
            json!({"decimals_us": decimals, "wanted_half_ns": wanted_ns, "half_ns": half_ns, "each_s": each_s}),
        );
    }
    let share = percent(pilot.precision);
    let mut table =
        Table::new(&["", "pilot's value", "95 % ±", "autocorrelation factor", "length for ±"]);
    if let Some(head) = table.head.last_mut() {
        *head = format!("length for ±{share}");
    }
    let mut rows = Vec::new();
    for q in &known.quantiles {
        let Some(value) = pilot.summary.quantile(q.p).and_then(|q| q.ns()) else { continue };
        let wanted = value.abs() * pilot.precision;
        let each_s = q.half_ns.filter(|_| wanted > 0.0).map(|half| longer(half, wanted));
        let ask = || "needs a longer pilot run".to_owned();
        table.row(vec![
            tailbound_stats::quantile::label(q.p),
            format_ns(value),
            q.half_ns.map_or_else(|| "open".to_owned(), format_ns),
            format!("{:.1}", q.design_effect),
            each_s.map_or_else(ask, at_most),
        ]);
        rows.push(json!({"p": q.p, "value_ns": value, "half_ns": q.half_ns, "design_effect": q.design_effect, "each_s": each_s}));
    }
    if sentences.is_empty() {
        sentences.push(format!("What the pilot run of {} shows:", at_least(length_s)));
    }
    sentences.push("Activations depend on each other: that many of the pilot run's count as one independent one (autocorrelation factor).".to_owned());
    sentences.push(first_end());
    Section {
        sentences,
        tables: vec![(format!("How long until a quantile is known to ±{share}"), table)],
        json: (
            "pilot",
            json!({"length_s": length_s, "precision": known, "wanted": pilot.precision, "mean": mean, "quantiles": rows}),
        ),
    }
}

/// A run that was made to see how long the real one must be.
#[derive(Clone, Copy, Debug)]
pub struct Pilot<'a> {
    /// Its figures, of all due activations.
    pub summary: &'a Summary,
    /// How well it knows them.
    pub known: &'a Precision,
    /// Its length.
    pub length_s: f64,
    /// Decimals of a µs wanted of the mean.
    pub decimals: Option<u32>,
    /// Half-width wanted of quantiles, as a share of their value.
    pub precision: f64,
}

/// What is to be shown, or would be shown.
#[derive(Clone, Debug, Default)]
pub struct PlanQuestions {
    /// A rate of exceedances to demonstrate.
    pub rate: Option<Rate>,
    /// A share of activations in time to demonstrate.
    pub share: Option<f64>,
    /// A quantile to estimate.
    pub quantile: Option<f64>,
    /// Half-width wanted of quantiles, as a share of their value.
    pub precision: f64,
    /// A run of this length.
    pub length_s: Option<f64>,
    /// Of so many activations, where those were named.
    pub loops: Option<u64>,
    /// A run of the machine.
    pub pilot: Option<Run>,
    /// Decimals of a µs wanted of its mean.
    pub decimals: Option<u32>,
}

impl PlanQuestions {
    /// The answers.
    #[must_use]
    pub fn sections(&self, means: &Means) -> Vec<Section> {
        let mut out = Vec::new();
        if let Some(asked) = self.rate {
            let per_s = f64::from(asked.count) / (asked.per_ns.real() / 1e9);
            let plan = planning::demonstration(per_s, means.confidence, means.machines);
            out.push(rate(means, asked, &plan));
        }
        let interval_s = means.interval_ns.real() / 1e9;
        if let Some(asked) = self.share {
            let activations = self
                .loops
                .map(|n| n.real())
                .or(self.length_s.map(|s| (s / interval_s).floor()))
                .map(|n| n * f64::from(means.machines));
            let plan = planning::share_in_time(
                asked,
                means.confidence,
                interval_s,
                means.machines,
                activations,
            );
            out.push(share(means, &plan));
        }
        out.extend(self.length_s.map(|length_s| length(means, length_s)));
        if let Some(p) = self.quantile {
            let plan = planning::quantile_plan(p, self.precision, means.confidence);
            let effect = self.pilot.as_ref().and_then(|run| {
                let known = Precision::of(&run.blocks, None, &[p]);
                known.quantile(p).map(|q| q.design_effect)
            });
            out.push(quantile(means, &plan, effect));
        }
        out.extend(self.pilot.as_ref().map(|run| self.of_pilot(means, run)));
        out
    }

    fn of_pilot(&self, means: &Means, run: &Run) -> Section {
        let context = run.judged_context().unwrap_or_default();
        let (_, due) = run.total(context);
        let known = tailbound_stats::precision::of_run(run, context, None);
        pilot(
            means,
            &Pilot {
                summary: &Summary::of(&due),
                known: &known,
                length_s: run.measured_ns().real() / 1e9,
                decimals: self.decimals,
                precision: self.precision,
            },
        )
    }
}

/// All answers as text.
#[must_use]
pub fn text(sections: &[Section], style: Style) -> String {
    let mut page = Page::new(style);
    for section in sections {
        page.gap();
        for (i, s) in section.sentences.iter().enumerate() {
            page.text(s, "  ", if i == 0 { Ink::Bold } else { Ink::Plain });
        }
        for (heading, table) in &section.tables {
            page.heading(heading);
            let lines = table.text(page.width());
            page.raw(lines, Ink::Plain);
        }
    }
    page.gap();
    page.text(
        "These lengths assume that the future is like the run and one second does not depend on the next; what did not happen during the run is not covered.",
        "  ",
        Ink::Dim,
    );
    page.finish()
}

/// All answers for scripts.
#[must_use]
pub fn json(means: &Means, sections: &[Section]) -> Value {
    let mut out = json!({
        "schema": SCHEMA,
        "method": METHOD,
        "deadline_ns": means.deadline_ns,
        "interval_ns": means.interval_ns,
        "machines": means.machines,
        "confidence": means.confidence,
    });
    for s in sections {
        if let Some(members) = out.as_object_mut() {
            let mut answer = s.json.1.clone();
            if let Some(answer) = answer.as_object_mut() {
                answer.insert("sentences".to_owned(), json!(s.sentences));
            }
            members.insert(s.json.0.to_owned(), answer);
        }
    }
    out
}
