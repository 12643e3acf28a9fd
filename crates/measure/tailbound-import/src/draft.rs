// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run while it is being imported: what the source told, what it did not, and at the end
//! the [`Run`] in which both stand.
//!
//! Units: ns. A plan needs concrete values: whatever the source leaves unsaid
//! gets a value here, and a sentence in `lost` that it is not from the source.
//! Not here: what follows from missed periods (`missed`).

use tailbound_core::plan::{Clock, Means};
use tailbound_core::record::{
    BlockRecord, End, Event, ExceedanceRecord, Fact, Facts, FigureRecord, RawRecord, SecondRecord,
    Source, ThreadRecord,
};
use tailbound_core::stated::StatedQuantiles;
use tailbound_core::units::{format_span, grouped};
use tailbound_core::{
    Context, CpuSet, Distribution, EndReason, Finding, Impact, Plan, Policy, Requirement, Run,
    ThreadEnd,
};

use crate::error::{Fault, excerpt};
use crate::format::Format;
use crate::samples::{KEPT_MAX, Recorded};
use crate::text::THREADS_MAX;

/// A run while it is being imported.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) tool: String,
    pub(crate) version: Option<String>,
    /// Variant of the format, for people: `json v1`.
    pub(crate) variant: String,
    pub(crate) started_s: Option<i64>,
    pub(crate) command: Vec<String>,
    pub(crate) interval_ns: Option<i64>,
    /// What is due, where that is no wake-up.
    pub(crate) event: Option<&'static str>,
    /// Every next thread's interval is longer by this.
    pub(crate) distance_ns: i64,
    pub(crate) duration_ns: Option<i64>,
    pub(crate) policy: Option<Policy>,
    pub(crate) clock: Option<Clock>,
    pub(crate) means: Option<Means>,
    pub(crate) cpu_dma_latency_us: Option<i32>,
    pub(crate) warm_up_ns: i64,
    pub(crate) machine: Facts,
    pub(crate) threads: Vec<ThreadRecord>,
    pub(crate) seconds: Vec<SecondRecord>,
    pub(crate) blocks: Vec<BlockRecord>,
    pub(crate) raw: Vec<RawRecord>,
    pub(crate) events: Vec<Event>,
    pub(crate) exceedances: Vec<ExceedanceRecord>,
    pub(crate) figures: Vec<FigureRecord>,
    pub(crate) lost: Vec<String>,
    pub(crate) findings: Vec<Finding>,
    /// The source ends before it says all it has to say.
    pub(crate) cut_off: bool,
    /// The import was stopped before the end of the file.
    pub(crate) stopped: bool,
    /// The tool keeps no schedule: interval and missed periods do not apply.
    pub(crate) no_schedule: bool,
}

/// What a source says about a distribution beside its buckets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stated {
    pub(crate) n: Option<u64>,
    pub(crate) min_ns: Option<i64>,
    pub(crate) max_ns: Option<i64>,
    pub(crate) mean_ns: Option<f64>,
    pub(crate) resolution_ns: u64,
    /// Lower edge of what found no bucket.
    pub(crate) beyond_ns: Option<i64>,
}

/// What a stated average counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Average {
    /// The values themselves.
    OfValues,
    /// Buckets of a histogram, perhaps.
    OfBuckets,
}

impl Stated {
    /// Why least, average and greatest cannot be of the same values; of a histogram the average may count in steps of buckets.
    fn out_of_order(&self, average: Average) -> Option<String> {
        let shown = tailbound_core::units::format_ns_i64;
        let (least, greatest) = self.min_ns.zip(self.max_ns).filter(|_| self.n != Some(0))?;
        if least > greatest {
            return Some(format!(
                "its least latency is {}, its greatest {}",
                shown(least),
                shown(greatest)
            ));
        }
        // An average may be cut to whole units.
        let step = i64::try_from(self.resolution_ns).unwrap_or(i64::MAX);
        let mean = self
            .mean_ns
            .filter(|_| average == Average::OfValues)
            .and_then(crate::text::float_ns)?;
        let within = least.saturating_sub(step)..=greatest.saturating_add(step);
        (!within.contains(&mean)).then(|| {
            format!(
                "its average of {} is not between its least and its greatest latency, {} and {}",
                shown(mean),
                shown(least),
                shown(greatest)
            )
        })
    }
}

/// What a source's extremes decide, where they are all that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clears {
    /// No value is later than the greatest, and none came early.
    Deadlines,
    Nothing,
}

impl Clears {
    fn of(stated: &Stated, binned: u64) -> Self {
        let alone = binned == 0 && stated.max_ns.is_some();
        if alone && stated.min_ns.is_some_and(|min| min >= 0) {
            Self::Deadlines
        } else {
            Self::Nothing
        }
    }
}

/// An empty distribution of a source that gives no exact sums.
pub(crate) fn coarse() -> Distribution {
    Distribution { sums: None, ..Distribution::default() }
}

impl Draft {
    pub(crate) fn new(tool: &str, variant: &str) -> Self {
        Self { tool: tool.to_owned(), variant: variant.to_owned(), ..Self::default() }
    }

    /// Says that the file does not tell of how many values the extremes of `who` are.
    pub(crate) fn no_count(&mut self, who: &str) {
        self.doubt(
            "source-no-count",
            format!("How many samples {who} has is not in the file: the run counts those that are certain."),
            "Extremes of an unknown number of values show nothing that could be called met.",
            "Import the whole output; where the interval is missing, give it with --interval.",
        );
    }

    /// Says what the source lost or left unsaid; the same sentence once.
    pub(crate) fn lose(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.lost.contains(&sentence) {
            self.lost.push(sentence);
        }
    }

    /// Says it, and that no "met" can be claimed on it.
    pub(crate) fn doubt(&mut self, id: &str, title: String, meaning: &str, remedy: &str) {
        self.lose(title.clone());
        self.note(Finding::new(id, Impact::Doubt, title).meaning(meaning).remedy(remedy));
    }

    /// Says that values are cut to whole units, where these are coarse enough to matter.
    pub(crate) fn cut_values(&mut self, unit_ns: u64) {
        if unit_ns == 1000 {
            self.lose("Values are cut to whole µs: each, the greatest too, stands for itself and up to 1 µs more.");
        }
    }

    /// Keeps a finding. A run has one of each name: what several threads have in common
    /// becomes one title, of bounded length; every sentence stands in `lost`.
    pub(crate) fn note(&mut self, finding: Finding) {
        const MORE: &str = " And more.";
        match self.findings.iter_mut().find(|old| old.id == finding.id) {
            None => self.findings.push(finding),
            Some(old) if old.title.contains(&finding.title) || old.title.ends_with(MORE) => {}
            Some(old) => {
                old.impact = old.impact.max(finding.impact);
                if old.title.len() + finding.title.len() < 400 {
                    old.title = format!("{} {}", old.title, finding.title);
                } else {
                    old.title.push_str(MORE);
                }
            }
        }
    }

    /// Keeps a machine fact if the source has it.
    pub(crate) fn fact(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.machine.insert(name.to_owned(), Fact::of(value));
        }
    }

    /// A tool that records only what is above a threshold recorded nothing: a good result.
    ///
    /// # Errors
    /// More than [`THREADS_MAX`] threads.
    pub(crate) fn nothing_found(&mut self, context: Context, title: String) -> Result<(), Fault> {
        self.thread(0, None, context, coarse())?;
        self.note(
            Finding::listed(tailbound_core::finding::NOTHING_FOUND, Impact::Notice, title)
                .remedy("Lower the threshold if shorter ones matter."),
        );
        Ok(())
    }

    /// Of a distribution without a histogram quantiles are known too, as the tool printed them; `who` names the thread.
    pub(crate) fn state(&mut self, who: &str, d: &mut Distribution, pairs: Vec<(f64, i64)>) {
        const ALONE: &str = "only the extremes and the average are known";
        const MORE: &str =
            "only the extremes, the average and the quantiles that the tool printed are known";
        let highest = pairs.iter().map(|(_, ns)| *ns).max();
        let Some(quantiles) = StatedQuantiles::new(pairs) else {
            return self.doubt(
                "source-inconsistent",
                format!("{who}: the quantiles do not rise with their probabilities; none is read."),
                "Figures were changed or cut off.",
                "Import the output as the tool wrote it.",
            );
        };
        if let Some(max) = d.max_ns.filter(|max| highest > Some(*max)) {
            self.doubt(
                "source-inconsistent",
                format!(
                    "{who}: a quantile is above the greatest latency, {}.",
                    tailbound_core::units::format_ns_i64(max)
                ),
                "Figures were changed or cut off.",
                "Import the output as the tool wrote it.",
            );
        }
        d.quantiles = quantiles;
        if d.quantiles.is_empty() || d.unbinned < d.n {
            return;
        }
        let own = format!("{who} has no histogram");
        for sentence in self.lost.iter_mut().filter(|l| l.starts_with(&own)) {
            *sentence = sentence.replace(ALONE, MORE);
        }
        for f in self.findings.iter_mut().filter(|f| f.title.contains(&own)) {
            f.title = f.title.replace(ALONE, MORE);
        }
    }

    /// Adds a thread and context.
    ///
    /// # Errors
    /// More than [`THREADS_MAX`] of them.
    pub(crate) fn thread(
        &mut self,
        thread: u32,
        cpu: Option<u32>,
        context: Context,
        wakeup: Distribution,
    ) -> Result<(), Fault> {
        if self.threads.len() >= THREADS_MAX {
            return Err(Fault::file(format!("more than {THREADS_MAX} threads and contexts")));
        }
        self.threads.push(ThreadRecord {
            thread,
            cpu,
            context,
            wakeup,
            ended: ThreadEnd::Complete,
            ..ThreadRecord::default()
        });
        Ok(())
    }

    /// Adds a thread whose samples were seen one by one.
    ///
    /// # Errors
    /// More than [`THREADS_MAX`] of them.
    pub(crate) fn recorded(
        &mut self,
        thread: u32,
        cpu: Option<u32>,
        all: Recorded,
    ) -> Result<(), Fault> {
        if all.raw.is_empty() && all.distribution.n > 0 {
            self.lose(if all.distribution.n > KEPT_MAX {
                format!(
                    "The single samples are not kept, for there are more than {}; every figure is of all of them.",
                    grouped(KEPT_MAX)
                )
            } else {
                "The single samples are not kept: the source counted them, or they span more than 24 days.".to_owned()
            });
        }
        self.seconds.extend(all.seconds);
        self.blocks.extend(all.blocks);
        self.raw.extend(all.raw);
        self.thread(thread, cpu, Context::User, all.distribution)
    }

    /// Brings buckets and what was told beside them together; `who` names the thread.
    pub(crate) fn settle(
        &mut self,
        who: &str,
        mut d: Distribution,
        stated: Stated,
    ) -> Distribution {
        let binned = d.n;
        let n = stated.n.unwrap_or(binned);
        d.resolution_ns = stated.resolution_ns.max(1);
        d.sums = None;
        // A thousandth of a ns: no source is finer, and the decimal form stays short.
        d.mean_ns = stated
            .mean_ns
            .filter(|m| m.is_finite() && n > 0)
            .map(|m| (m * 1000.0).round() / 1000.0)
            .filter(|m| m.is_finite());
        d.n = n.max(binned);
        self.contradiction(who, &d, &stated);
        if d.n > 0 {
            d.min_ns = stated.min_ns.or(d.min_ns);
            // Of values without a bucket the greatest is not known unless it is stated.
            let seen = d.max_ns.filter(|_| n <= binned || stated.max_ns.is_some());
            d.max_ns = stated.max_ns.max(seen);
        }
        if n == 0 && binned == 0 {
            d.min_ns = None;
            d.max_ns = None;
            self.doubt(
                "source-no-samples",
                format!("{who} holds no sample."),
                "Nothing is known about this thread.",
                "Find out why it never ran, and measure again.",
            );
        } else if binned > n {
            self.doubt(
                "source-inconsistent",
                format!(
                    "{who}: the histogram holds {} values but the count says {}; the histogram is believed.",
                    grouped(binned),
                    grouped(n)
                ),
                "The file contradicts itself: it was written while the tool still measured, or changed afterwards.",
                "Measure again, or import the file as the tool wrote it.",
            );
        } else if binned < n {
            d.unbinned = n - binned;
            d.unbinned_from_ns = stated.beyond_ns;
            self.lost_tail(who, &d, binned, Clears::of(&stated, binned));
        }
        d
    }

    /// The extremes that are stated and those of the buckets; the greater of two greatest is believed.
    fn contradiction(&mut self, who: &str, d: &Distribution, stated: &Stated) {
        let step = i64::try_from(stated.resolution_ns).unwrap_or(i64::MAX);
        let above = d.max_ns.zip(stated.max_ns).filter(|(seen, said)| seen > said);
        let below = d
            .min_ns
            .zip(stated.min_ns)
            .filter(|(seen, said)| seen.saturating_add(step) <= *said && stated.n != Some(0));
        let shown = tailbound_core::units::format_ns_i64;
        let average = match d.late.total().saturating_add(d.early.total()) {
            0 => Average::OfValues,
            _ => Average::OfBuckets,
        };
        let found = above.map(|pair| ("greatest", pair)).or(below.map(|pair| ("least", pair)));
        let against = match (found, stated.out_of_order(average)) {
            (Some((which, (seen, said))), _) => format!(
                "the {which} latency is {} as the file states it, its histogram holds one of {}",
                shown(said),
                shown(seen)
            ),
            (None, Some(order)) => order,
            (None, None) => return,
        };
        self.doubt(
            "source-inconsistent",
            format!("{who}: {against}."),
            "The file contradicts itself: it was written while the tool still measured, or changed afterwards.",
            "Measure again, or import the file as the tool wrote it.",
        );
    }

    /// As [`Self::settle`] where rows were left out, of which it was said.
    pub(crate) fn settle_abridged(
        &mut self,
        who: &str,
        mut d: Distribution,
        stated: Stated,
    ) -> Distribution {
        self.contradiction(who, &d, &stated);
        let binned = d.n;
        d.n = stated.n.unwrap_or(binned).max(binned);
        d.unbinned = d.n - binned;
        d.unbinned_from_ns = None;
        d.resolution_ns = stated.resolution_ns.max(1);
        d.sums = None;
        d.mean_ns = stated.mean_ns.filter(|m| m.is_finite());
        d.min_ns = stated.min_ns.map(|said| d.min_ns.map_or(said, |seen| said.min(seen)));
        d.max_ns = stated.max_ns.map(|said| d.max_ns.map_or(said, |seen| said.max(seen)));
        d
    }

    fn lost_tail(&mut self, who: &str, d: &Distribution, binned: u64, clears: Clears) {
        let from = d.unbinned_from_ns.map_or_else(
            || "of unknown size".to_owned(),
            |ns| format!("of {} or more", tailbound_core::units::format_ns_i64(ns)),
        );
        let (id, what) = if binned == 0 {
            ("source-no-histogram", "no histogram: of ")
        } else {
            ("source-lost-tail", "values outside the histogram's range: ")
        };
        let title = if binned == 0 {
            format!(
                "{who} has {what}{} values only the extremes and the average are known.",
                grouped(d.n)
            )
        } else {
            format!(
                "{who} has {what}{} of {} values, {from}, are counted but not in it.",
                grouped(d.unbinned),
                grouped(d.n)
            )
        };
        let (impact, meaning) = match clears {
            Clears::Deadlines => (
                Impact::Notice,
                "A deadline is judged by the greatest of them, which the file states: beyond it is not met, within it is met by every value that was counted. High quantiles and any tail bound are unknown.",
            ),
            Clears::Nothing => (
                Impact::Doubt,
                "How late these were is known only by the greatest of them: high quantiles and any tail bound are unknown.",
            ),
        };
        self.lose(title.clone());
        self.note(Finding::new(id, impact, title).meaning(meaning).remedy(
            "Measure with a histogram that reaches beyond the latest wake-up, or with tailbound itself.",
        ));
    }

    /// The run.
    pub(crate) fn finish(mut self, format: Format, file: &str, identity: u64) -> Run {
        self.say_what_is_assumed();
        if self.variant.is_empty() {
            format.name().clone_into(&mut self.variant);
        }
        self.assembled(file, format!("imported-{identity:016x}"))
    }

    /// The run, of a source whose own words say what it leaves unsaid.
    pub(crate) fn assembled(self, file: &str, id: String) -> Run {
        let tool = match &self.version {
            Some(v) => format!("{} {v}", self.tool),
            None => self.tool.clone(),
        };
        let cpus: CpuSet = self.threads.iter().filter_map(|t| t.cpu).collect();
        let interval_ns = self.interval_ns.unwrap_or(0);
        let longest = self.threads.iter().map(|t| t.wakeup.n).max().unwrap_or(0);
        let activations = match (self.duration_ns, interval_ns) {
            (Some(d), i) if i > 0 => u64::try_from(d / i).unwrap_or(0),
            _ => longest,
        };
        let plan = Plan {
            name: None,
            probe: self.tool.clone(),
            options: std::collections::BTreeMap::new(),
            event: self.event.map(str::to_owned),
            property: None,
            interval_ns,
            activations,
            warm_up_ns: self.warm_up_ns,
            cpus,
            policy: self.policy.unwrap_or(Policy::Other),
            clock: self.clock.unwrap_or(Clock::Monotonic),
            means: self.means.unwrap_or(Means::NotTold),
            loads: Vec::new(),
            requirement: Requirement::default(),
            cpu_dma_latency_us: self.cpu_dma_latency_us,
            raw: !self.raw.is_empty(),
            paranoid: false,
            observe: None,
            blame: None,
            tasks: None,
            spread: None,
            timer_slack_ns: None,
            tune: None,
            work: None,
            until: None,
        };
        let measured_ns =
            self.duration_ns.unwrap_or_else(|| plan.duration_ns().max(self.spanned_ns()));
        let mut run = Run::new(tailbound_core::record::Header {
            schema: tailbound_core::record::SCHEMA.to_owned(),
            tool: tool.clone(),
            id,
            started: self.started_s.map_or_else(
                || "unknown: the source does not contain the start of the run".to_owned(),
                tailbound_core::utc::rfc3339,
            ),
            command: self.command,
            plan,
            machine: self.machine,
            lab: None,
            round: None,
            purpose: None,
            source: Some(Source {
                tool,
                format: self.variant,
                file: file.to_owned(),
                lost: self.lost,
            }),
        });
        run.threads = self.threads;
        run.seconds = self.seconds;
        run.blocks = self.blocks;
        run.raw = self.raw;
        run.events = self.events;
        run.exceedances = self.exceedances;
        run.figures = self.figures;
        run.findings = self.findings;
        if self.stopped || !self.cut_off {
            let lines = run.lines().count() as u64;
            let reason = if self.stopped { EndReason::Interrupted } else { EndReason::Complete };
            run.end = Some(End { reason: reason.to_owned(), measured_ns, lines });
        }
        run
    }

    /// The time the per-second records span.
    fn spanned_ns(&self) -> i64 {
        let seconds = self.seconds.iter().map(|s| s.second.saturating_add(1)).max().unwrap_or(0);
        i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000_000)
    }

    fn say_what_is_assumed(&mut self) {
        if self.no_schedule {
            self.interval_ns = None;
            self.means = Some(Means::Polling);
        } else if self.interval_ns.is_none() {
            self.lose("The interval is not in the file: it is unknown.");
        }
        if self.means.is_none() {
            self.lose("How the threads slept is not in the file.");
        }
        if self.policy.is_none() {
            self.lose("The scheduling policy is not in the file: the plan says other.");
        }
        if self.clock.is_none() && !self.no_schedule {
            self.lose("The clock is not in the file: the plan says monotonic.");
        }
        if self.started_s.is_none() {
            self.lose("When the run began is not in the file.");
        }
        match self.duration_ns {
            None => self.lose("How long the run took is not in the file."),
            Some(ns) if ns >= 2_000_000_000 && self.threads.is_empty() => {
                self.lose(format!("Of a run of {} no thread is in the file.", format_span(ns)));
            }
            Some(_) => {}
        }
        if self.command.is_empty() {
            self.lose("The command line is not in the file.");
        }
        if self.machine.is_empty() {
            self.lose("Nothing about the machine is in the file.");
        }
        if self.threads.iter().any(|t| t.cpu.is_none()) {
            self.lose(
                "On which CPU each thread ran is not in the file, or the threads were not pinned.",
            );
        }
        self.lose(
            "Page faults, CPU frequency, throttling and loads beside the run are not in the file.",
        );
    }
}

/// Something of the source, cut short and clean, for a sentence.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", excerpt(text))
}
