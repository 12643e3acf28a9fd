// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures of logic analysers: pulses at a machine and its answers, as a run of context `external`.
//!
//! Units: ns; ticks of the capture until they are recorded. An answer is a wake-up, an unanswered pulse is missed and as late
//! as the capture lasts after it, at least. One that was in flight when the capture ended is missed only where it is older than every answer.
//! Not here: reading captures and pairing their edges (`tailbound-box`).

use std::collections::VecDeque;
use std::sync::OnceLock;

use tailbound_box::{
    Capture, CaptureError, CaptureFormat, CapturePlace, CaptureSummary, Edge, EdgeCounts, EdgeRule,
    Ending, Intervals, Pairing, PulseOutcome, RateOrigin, SampleRate, Spacing, TimeBase, Wiring,
};
use tailbound_core::number::Real as _;
use tailbound_core::plan::{Clock, Means};
use tailbound_core::record::FigureRecord;
use tailbound_core::units::{format_ns, grouped};
use tailbound_core::{Context, Distribution, Finding, Impact};

use crate::draft::{Draft, quoted};
use crate::error::{Fault, Place, excerpt};
use crate::format::Format;
use crate::read::Options;
use crate::samples::Samples;
use crate::stream::{Feed, PIECE, Stream, Window};

/// Unanswered pulses of which each has its own age at the end of the capture; of older ones all have that of the youngest.
const OWN_AGE_MAX: usize = 1 << 12;

/// What the user knows of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Which channels the lines are.
    pub wiring: Wiring,
    /// Which edges are pulses and answers.
    pub rule: EdgeRule,
    /// Samples in a second; it outranks what the capture says.
    pub sample_rate: Option<SampleRate>,
}

/// Lines are named of captures alone.
pub(crate) fn is_meant(format: Format, options: &Options) -> Result<(), Fault> {
    if options.capture.is_some() && format.capture().is_none() {
        return Err(Fault::file(
            "--stimulus, --answer, --edge and --sample-rate are of captures of logic analysers, and this is none: import it without them",
        ));
    }
    Ok(())
}

impl From<CaptureError> for Fault {
    fn from(error: CaptureError) -> Self {
        let place = match error.place {
            CapturePlace::Line(line) => Place::Line(line),
            CapturePlace::Byte(byte) => Place::Byte(byte),
            CapturePlace::Whole => Place::File,
        };
        Self { place, reason: error.reason }
    }
}

/// The reading half: bytes to edges.
struct Reader<'a> {
    capture: Capture,
    window: Window,
    base: &'a OnceLock<TimeBase>,
    summary: Option<CaptureSummary>,
}

impl Reader<'_> {
    fn piece(&mut self, feed: &mut Feed<'_>, out: &mut Vec<Edge>) -> Result<bool, Fault> {
        loop {
            let used = self.capture.decode(self.window.rest(), out)?;
            self.window.pass(used);
            if out.len() >= PIECE {
                break;
            }
            if !self.window.more(feed)? {
                let mut summary = self.capture.finish(self.window.rest(), out)?;
                if feed.stopped() {
                    summary.ending = Ending::Whole;
                }
                self.summary = Some(summary);
                break;
            }
        }
        if let Some(base) = self.capture.time_base() {
            self.base.get_or_init(|| base);
        }
        Ok(self.summary.is_none())
    }
}

/// The recording half: edges to samples.
struct Recorder {
    pairing: Pairing,
    record: Record,
}

/// What became of pulses, recorded.
struct Record {
    samples: Samples,
    first_tick: Option<i64>,
    latest: Option<i64>,
    unanswered: VecDeque<i64>,
    /// Those with no age of their own: how many, the first and the last.
    older: Option<(u64, i64, i64)>,
    in_flight: Option<i64>,
}

impl Record {
    fn add(&mut self, outcome: PulseOutcome, base: TimeBase) {
        let (PulseOutcome::Answered(tailbound_box::Answered { tick, .. })
        | PulseOutcome::Unanswered(tick)
        | PulseOutcome::InFlight(tick)) = outcome;
        let first = *self.first_tick.get_or_insert(tick);
        let due_ns = base.time_ns(tick.saturating_sub(first));
        match outcome {
            PulseOutcome::Answered(answered) => {
                self.latest = self.latest.max(Some(answered.latency));
                self.samples.add_due(due_ns, base.latency_ns(answered.latency));
            }
            PulseOutcome::Unanswered(tick) => {
                self.samples.miss_due(due_ns);
                self.unanswered.push_back(tick);
                if self.unanswered.len() > OWN_AGE_MAX
                    && let Some(oldest) = self.unanswered.pop_front()
                {
                    let (n, first, _) = self.older.unwrap_or((0, oldest, oldest));
                    self.older = Some((n + 1, first, oldest));
                }
            }
            PulseOutcome::InFlight(tick) => self.in_flight = Some(tick),
        }
    }

    /// The missed ones, each as late as the capture lasts after it.
    fn missed(&self, base: TimeBase, end_tick: i64) -> Distribution {
        let age = |tick: i64| end_tick.saturating_sub(tick);
        let mut all = Distribution { sums: None, ..Distribution::default() };
        if let Some((n, first, last)) = self.older {
            all.add(base.time_ns(age(first)));
            all.add_many(base.time_ns(age(last)), n - 1);
        }
        self.unanswered.iter().for_each(|tick| all.add(base.time_ns(age(*tick))));
        let telling = self.in_flight.map(age).filter(|age| Some(*age) > self.latest);
        if let Some(age) = telling {
            all.add(base.time_ns(age));
        }
        all
    }
}

pub(crate) fn parse(
    format: CaptureFormat,
    stream: &mut Stream<'_>,
    options: &Options,
) -> Result<Draft, Fault> {
    let given = options.capture.as_ref();
    let rule = given.map_or(EdgeRule::default(), |g| g.rule);
    let capture =
        Capture::new(format, given.map(|g| g.wiring.clone()), given.and_then(|g| g.sample_rate));
    let known = OnceLock::new();
    let mut reader = Reader { capture, window: Window::default(), base: &known, summary: None };
    let record = Record {
        samples: Samples::new(0),
        first_tick: None,
        latest: None,
        unanswered: VecDeque::new(),
        older: None,
        in_flight: None,
    };
    let mut recorder = Recorder { pairing: Pairing::new(rule), record };
    stream.pieces(
        |feed, out| reader.piece(feed, out),
        |edges| {
            let Some(base) = known.get() else { return Ok(()) };
            let Recorder { pairing, record } = &mut recorder;
            for edge in edges {
                pairing.edge(*edge, &mut |outcome| record.add(outcome, *base));
            }
            Ok(())
        },
    )?;
    let (Some(summary), Some(base)) = (reader.summary, known.get().copied()) else {
        return Err(Fault::file("the capture has no end"));
    };
    let Recorder { mut pairing, mut record } = recorder;
    pairing.end(summary.end_tick, &mut |outcome| record.add(outcome, base));
    let Some(given) = given.filter(|_| pairing.counts().pulses > 0) else {
        let stimulus = given.map_or("", |g| g.wiring.stimulus.as_str());
        return Err(Fault::file(format!(
            "the stimulus {} has no {} edge in the whole capture: name another channel, or another --edge",
            quoted(stimulus),
            if rule == EdgeRule::Rising { "rising" } else { "single" }
        )));
    };
    let told =
        Told { given, summary, base, counts: pairing.counts(), intervals: pairing.intervals() };
    told.draft(record, options)
}

/// All that a capture came to.
struct Told<'a> {
    given: &'a CaptureOptions,
    summary: CaptureSummary,
    base: TimeBase,
    counts: EdgeCounts,
    intervals: &'a Intervals,
}

impl Told<'_> {
    fn draft(&self, record: Record, options: &Options) -> Result<Draft, Fault> {
        let mut draft = Draft::new("logic-analyser", "capture of a logic analyser");
        draft.version = self.summary.writer.as_deref().map(|w| format!("({})", excerpt(w)));
        draft.event = Some("pulse");
        draft.means = Some(Means::NotTold);
        draft.clock = Some(Clock::Monotonic);
        draft.interval_ns = self.period_ns();
        let first = record.first_tick.unwrap_or(0);
        draft.duration_ns = Some(self.base.time_ns(self.summary.end_tick.saturating_sub(first)));
        let missed = record.missed(self.base, self.summary.end_tick);
        draft.recorded(0, None, record.samples.finish(self.summary.resolution_ns)?)?;
        if let Some(thread) = draft.threads.last_mut() {
            thread.context = Context::External;
            let Wiring { stimulus, answer } = &self.given.wiring;
            thread.name = Some(format!("{} to {}", excerpt(stimulus), excerpt(answer)));
            thread.missed = Distribution { resolution_ns: self.summary.resolution_ns, ..missed };
            thread.counters = self.counters().map(|(name, n, _)| (name.to_owned(), n)).into();
        }
        draft.figures = self.figures();
        self.say_what_is_lost(&mut draft);
        self.doubts(&mut draft);
        self.notices(&mut draft);
        options.apply(&mut draft);
        Ok(draft)
    }

    fn period_ns(&self) -> Option<i64> {
        self.intervals.median().map(|ticks| self.base.time_ns(ticks)).filter(|ns| *ns > 0)
    }

    fn counters(&self) -> [(&'static str, u64, &'static str); 10] {
        let c = &self.counts;
        [
            ("pulses", c.pulses, "edges of the stimulus that ask for an answer"),
            ("answered", c.in_time, "pulses answered before the next one"),
            ("late", c.late, "pulses answered after the next one"),
            ("unanswered", c.unanswered, "pulses without an answer"),
            ("in_flight", c.in_flight, "pulses not yet answered when the capture ended"),
            ("answered_twice", c.answered_twice, "edges that repeat an answer"),
            ("spurious", c.spurious, "edges of the answer that belong to no pulse"),
            ("before_first", c.before_first, "edges of the answer before the first pulse"),
            ("ambiguous", c.ambiguous, "answers that may be of several pulses"),
            ("unknown_levels", self.summary.unknown_states, "states that are neither 0 nor 1"),
        ]
    }

    /// Whether the pulses come evenly, in words.
    fn evenness(&self) -> &'static str {
        match self.spacing() {
            Some(Spacing::Even) => "the intervals are even",
            Some(Spacing::Uneven) => "the intervals are not even: random, or not regular",
            None => "there is one pulse",
        }
    }

    fn spacing(&self) -> Option<Spacing> {
        let period = self.intervals.median()?;
        // Intervals are known to two samples.
        let ns = self.base.time_ns(period).max(1);
        let two = i128::from(self.summary.resolution_ns) * 2 * i128::from(period) / i128::from(ns);
        self.intervals.spacing(i64::try_from(two).unwrap_or(i64::MAX).saturating_add(1))
    }

    fn figures(&self) -> Vec<FigureRecord> {
        let counts = self
            .counters()
            .map(|(name, n, note)| figure(&name.replace('_', "-"), n.real(), "1", note));
        let mut all = Vec::from(counts);
        let resolution = self.summary.resolution_ns.real();
        all.push(figure(
            "sample-period",
            resolution,
            "ns",
            "one sample: each latency is uncertain by it, up or down",
        ));
        if let Some(ns) = self.period_ns() {
            let note = format!("from pulse to pulse, the median; {}", self.evenness());
            all.push(figure("period", ns.real(), "ns", &note));
        }
        if let Some((least, most)) = self.intervals.extremes() {
            for (name, ticks) in [("interval-shortest", least), ("interval-longest", most)] {
                all.push(figure(
                    name,
                    self.base.time_ns(ticks).real(),
                    "ns",
                    "from pulse to pulse",
                ));
            }
        }
        let lines = ["shortest-level-stimulus", "shortest-level-answer"];
        for (name, shortest) in lines.into_iter().zip(self.summary.shortest) {
            if let Some(s) = shortest {
                let note =
                    format!("between two edges, {} times; nothing was filtered", grouped(s.n));
                all.push(figure(name, self.base.time_ns(s.ticks).real(), "ns", &note));
            }
        }
        all
    }

    fn say_what_is_lost(&self, draft: &mut Draft) {
        draft.lose("How far the analyser's own clock runs fast or slow is not in the file.");
        draft.lose("Delays of wires, level shifters and inputs are in each latency and cannot be told apart.");
        if self.counts.before_first > 0 {
            draft.lose(format!(
                "{} edges of the answer come before the first pulse: they are counted and belong to none.",
                grouped(self.counts.before_first)
            ));
        }
        if let Ending::Cut(why) = self.summary.ending {
            draft.lose(format!(
                "The capture ends in the middle: {why}. What was captured before is in the run."
            ));
            draft.cut_off = true;
        }
    }

    fn doubts(&self, draft: &mut Draft) {
        let c = &self.counts;
        if c.unanswered > 0 {
            draft.doubt(
                "source-unanswered",
                format!(
                    "{} of {} pulses were not answered.",
                    grouped(c.unanswered),
                    grouped(c.pulses)
                ),
                "Each counts as missed, and as late as the capture lasts after it: at least that.",
                "Look at the line of the answer and at what runs on the machine; a capture of other channels shows the same.",
            );
        }
        if c.ambiguous > 0 {
            let remedy = if self.given.rule == EdgeRule::Rising {
                "Let both lines toggle and import with --edge toggle: then an answer to the pulse before is told from one to this."
            } else {
                "Send pulses less often than the machine is late."
            };
            draft.doubt(
                "source-ambiguous",
                format!(
                    "{} answers may belong to one of several pulses; {} times older pulses were given up.",
                    grouped(c.ambiguous),
                    grouped(c.given_up)
                ),
                "Each was read as the answer to the oldest of them, which is the longest latency.",
                remedy,
            );
        }
        if c.spurious > 0 || c.answered_twice > 0 {
            draft.doubt(
                "source-spurious",
                format!(
                    "{} edges of the answer belong to no pulse, {} repeat an answer.",
                    grouped(c.spurious),
                    grouped(c.answered_twice)
                ),
                "The line also changes without a pulse: such an edge may have been read as an answer that came later.",
                "Look for ringing, a missing ground wire, and another program that writes the pin.",
            );
        }
        if self.summary.unknown_states > 0 {
            draft.doubt(
                "source-unknown-level",
                format!(
                    "{} times a line was neither 0 nor 1.",
                    grouped(self.summary.unknown_states)
                ),
                "An edge may be hidden there, or come later than it was.",
                "Look at the levels that the analyser takes for 0 and 1.",
            );
        }
    }

    fn notices(&self, draft: &mut Draft) {
        let c = &self.counts;
        let resolution = format_ns(self.summary.resolution_ns.real());
        if c.in_flight > 0 {
            note(
                draft,
                "source-in-flight",
                "One pulse had no answer yet when the capture ended.".to_owned(),
                "It counts as missed only where it had waited longer than any other; else it is not among the figures.",
                "Capture a little longer if it matters.",
            );
        }
        if self.summary.rate == RateOrigin::Steps {
            note(
                draft,
                "source-resolution",
                format!(
                    "The sample rate is not in the capture: by its times a sample is at most {resolution} long."
                ),
                "Each latency is taken to be known to ± that.",
                "Give the rate with --sample-rate.",
            );
        }
        for (line, shortest) in ["stimulus", "answer"].into_iter().zip(self.summary.shortest) {
            let ns = shortest.map(|s| (self.base.time_ns(s.ticks), s.n));
            let two =
                i64::try_from(self.summary.resolution_ns.saturating_mul(2)).unwrap_or(i64::MAX);
            if let Some((ns, n)) = ns
                && ns <= two
                && self.summary.rate == RateOrigin::Stated
            {
                note(
                    draft,
                    "source-short-level",
                    format!(
                        "{} levels of the {line} lasted {}, and a sample {resolution}.",
                        grouped(n),
                        format_ns(ns.real())
                    ),
                    "What is shorter than a sample was not seen; these may be glitches, and were not filtered.",
                    "Sample faster, or look at the line with an oscilloscope.",
                );
            }
        }
        let answered = c.in_time.saturating_add(c.late);
        if self.given.rule != EdgeRule::Rising
            && c.late.saturating_mul(10) > answered.saturating_mul(9)
        {
            let other = if self.given.rule == EdgeRule::Toggle {
                EdgeRule::Inverted
            } else {
                EdgeRule::Toggle
            };
            note(
                draft,
                "source-all-late",
                "Nearly every answer came after the next pulse.".to_owned(),
                "The machine is so late, or the answer's level has the other sense.",
                &format!(
                    "If the line is known to have the other sense, import with --edge {other}."
                ),
            );
        }
    }
}

fn note(draft: &mut Draft, id: &str, title: String, meaning: &str, remedy: &str) {
    draft.lose(title.clone());
    draft.note(Finding::new(id, Impact::Notice, title).meaning(meaning).remedy(remedy));
}

fn figure(name: &str, value: f64, unit: &str, note: &str) -> FigureRecord {
    FigureRecord {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        low: None,
        high: None,
        confidence: None,
        note: note.to_owned(),
    }
}
