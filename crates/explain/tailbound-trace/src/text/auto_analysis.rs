// SPDX-License-Identifier: MIT OR Apache-2.0
//! What rtla's auto-analysis (`rtla timerlat -a`) prints of the sample that stopped the trace.
//!
//! Units: ns. A line is `LABEL: TIME us (SHARE %)`; below it stand names with times, `objtool:49256  3.79 us`, or a
//! stack, `-> function`. Each CPU has a section of its own.
//! Source: rtla-timerlat(1); tools/tracing/rtla/src/timerlat_aa.c prints it since Linux 6.4.

use tailbound_core::blame::{BlamePart, BlameRecord, Cause, Phase, Sureness};

use super::record::{number, scaled};
use super::section::micros;
use super::stack::{self, FRAMES_MAX};
use crate::blame::{BlameNote, BlameNoteKind};

/// Most names below a label.
const NAMES_MAX: usize = 64;

/// A label of the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    HandlerDelay,
    IrqLatency,
    IrqDuration,
    Blocking,
    Nmi,
    Irq,
    Softirq,
    Thread,
    PreviousIrq,
    ThreadLatency,
    FromIdle,
}

const LABELS: [(&str, Label); 11] = [
    ("IRQ handler delay:", Label::HandlerDelay),
    ("IRQ latency:", Label::IrqLatency),
    ("Timerlat IRQ duration:", Label::IrqDuration),
    ("Blocking thread:", Label::Blocking),
    ("NMI interference", Label::Nmi),
    ("IRQ interference", Label::Irq),
    ("Softirq interference", Label::Softirq),
    ("Thread interference", Label::Thread),
    ("Previous IRQ interference", Label::PreviousIrq),
    ("Thread latency:", Label::ThreadLatency),
    ("Max timerlat IRQ latency from idle:", Label::FromIdle),
];

/// A label with its time.
#[derive(Clone, Debug)]
struct Figure {
    label: Label,
    ns: Option<i64>,
    /// In hundredths of a percent.
    share: Option<u64>,
    /// `(exit from idle)` stands behind it.
    from_idle: bool,
    names: Vec<(String, Option<i64>)>,
}

/// The whole latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Total {
    /// By a line of its own.
    Stated(i64),
    /// By a time and its share.
    Computed(i64),
}

/// The section of one CPU.
#[derive(Debug)]
pub(super) struct Analysis {
    cpu: u32,
    figures: Vec<Figure>,
    frames: Vec<String>,
}

/// The CPU of a line that begins a section: `## CPU 23 hit stop tracing, analyzing it ##`.
pub(super) fn begins(line: &str) -> Option<u32> {
    let rest = line.trim().strip_prefix("## CPU ")?;
    let (cpu, rest) = rest.split_once(' ')?;
    rest.starts_with("hit stop tracing").then_some(())?;
    number(cpu)
}

impl Analysis {
    pub(super) fn new(cpu: u32) -> Self {
        Self { cpu, figures: Vec::new(), frames: Vec::new() }
    }

    /// Takes a line; `false` for one that is none of an analysis.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let bare = line.trim();
        if bare.starts_with("->") {
            if let Some(frame) = stack::frame(bare).filter(|_| self.frames.len() < FRAMES_MAX) {
                self.frames.push(frame.to_owned());
            }
            return true;
        }
        if let Some((text, label)) = LABELS.iter().find(|(text, _)| bare.starts_with(text)) {
            let rest = bare.get(text.len()..).unwrap_or("").trim_start_matches(':');
            let from_idle = rest.contains("exit from idle");
            let (ns, share) = (time(rest), share(rest));
            let figure = Figure { label: *label, ns, share, from_idle, names: Vec::new() };
            if self.figures.len() < NAMES_MAX {
                self.figures.push(figure);
            }
            return true;
        }
        let named = bare.split_once(char::is_whitespace).and_then(|(_, rest)| time(rest));
        let name = bare.rsplit_once(':').map(|(name, rest)| {
            let n = rest.split_whitespace().next().unwrap_or("");
            (name.trim().to_owned(), n.to_owned())
        });
        match (name, self.figures.last_mut()) {
            (Some((name, n)), Some(figure))
                if number::<i64>(&n).is_some() && figure.names.len() < NAMES_MAX =>
            {
                figure.names.push((format!("{name}-{n}"), named));
                true
            }
            _ => bare.starts_with("Blocking thread stack") || bare.starts_with("---"),
        }
    }

    fn figure(&self, label: Label) -> Option<&Figure> {
        self.figures.iter().find(|f| f.label == label)
    }

    fn time(&self, label: Label) -> Option<i64> {
        self.figure(label)?.ns
    }

    /// The whole latency.
    fn total(&self) -> Option<Total> {
        let irq = self.figures.iter().rev().find(|f| f.label == Label::IrqLatency);
        let whole = irq.filter(|f| f.share == Some(10_000)).and_then(|f| f.ns);
        if let Some(ns) = self.time(Label::ThreadLatency).or(whole) {
            return Some(Total::Stated(ns));
        }
        // The largest share has the most digits.
        let shares = self.figures.iter().filter_map(|f| Some((f.share?, f.ns?)));
        let (share, ns) = shares.filter(|(share, _)| *share > 0).max()?;
        let whole = i128::from(ns).checked_mul(10_000)?.checked_div(i128::from(share))?;
        // To a hundredth of a µs, as the analysis prints times.
        let hundredths = whole.checked_add(5)?.checked_div(10)?.checked_mul(10)?;
        Some(Total::Computed(i64::try_from(hundredths).ok()?))
    }

    /// The sample, and what a reader must know of it; `None` where no time is in the text.
    pub(super) fn sample(&self) -> Option<(BlameRecord, Vec<String>)> {
        let total = self.total()?;
        let (Total::Stated(whole_ns) | Total::Computed(whole_ns)) = total;
        let mut record = BlameRecord {
            name: format!("timerlat/{}", self.cpu),
            cpu: Some(self.cpu),
            ..BlameRecord::default()
        };
        let mut notes = Vec::new();
        self.parts(&mut record);
        let sum = record.parts.iter().map(|p| p.ns).fold(0, i64::saturating_add);
        record.latency_ns = whole_ns.max(sum);
        if matches!(total, Total::Computed(_)) {
            notes.push(format!(
                "the analysis of CPU {} is cut: it has no line `Thread latency`; {} are computed from its shares",
                self.cpu,
                micros(whole_ns)
            ));
        }
        let rest = (Cause::Unexplained, "in no line of the analysis".to_owned());
        let left = record.latency_ns.saturating_sub(sum);
        part(&mut record, Phase::Switch, rest, left, Sureness::Sure);
        self.chain(&mut record);
        if let Some(ns) = self.time(Label::FromIdle) {
            notes.push(format!("rtla saw up to {} for leaving an idle state", micros(ns)));
        }
        Some((record, notes))
    }

    /// The thread that had the CPU.
    fn blocking(&self) -> String {
        let names = self.figure(Label::Blocking).and_then(|f| f.names.first());
        names.map_or_else(String::new, |(name, _)| name.clone())
    }

    fn parts(&self, record: &mut BlameRecord) {
        for figure in &self.figures {
            let (phase, cause, sureness) = match figure.label {
                Label::HandlerDelay if figure.from_idle => {
                    (Phase::Timer, Cause::IdleExit, Sureness::Sure)
                }
                // What else holds an interrupt off, firmware or a hypervisor, leaves no trace in the analysis.
                Label::HandlerDelay => (Phase::Timer, Cause::InterruptsOff, Sureness::Likely),
                Label::IrqDuration => (Phase::WakeUp, Cause::TimerInterrupt, Sureness::Sure),
                Label::Blocking => (Phase::Switch, Cause::NotPreemptible, Sureness::Sure),
                Label::Nmi => (Phase::Switch, Cause::Nmi, Sureness::Sure),
                Label::Irq => (Phase::Switch, Cause::Interrupt, Sureness::Sure),
                Label::Softirq => (Phase::Switch, Cause::Softirq, Sureness::Sure),
                Label::Thread => (Phase::Switch, Cause::HigherPriority, Sureness::Sure),
                Label::IrqLatency | Label::PreviousIrq | Label::ThreadLatency | Label::FromIdle => {
                    continue;
                }
            };
            let Some(whole) = figure.ns else { continue };
            let mut left = whole;
            for (name, ns) in &figure.names {
                let ns = ns.unwrap_or(0).clamp(0, left);
                left = left.saturating_sub(ns);
                part(record, phase, (cause, name.clone()), ns, sureness);
            }
            let who = match cause {
                Cause::InterruptsOff => self.blocking(),
                _ => String::new(),
            };
            // Of rounded times a hundredth of a µs may be left.
            if left > 10 || figure.names.is_empty() {
                part(record, phase, (cause, who), left, sureness);
            } else if let Some(last) = record.parts.last_mut() {
                last.ns = last.ns.saturating_add(left);
            }
        }
        let mut at = 0i64;
        for part in &mut record.parts {
            part.from_ns = at;
            at = at.saturating_add(part.ns);
        }
    }

    fn chain(&self, record: &mut BlameRecord) {
        let shares = |f: &Figure| {
            let percent = |s: u64| format!(" ({}.{:02} %)", s / 100, s % 100);
            f.share.map_or_else(String::new, percent)
        };
        if let Some(f) = self.figure(Label::HandlerDelay)
            && let Some(ns) = f.ns
        {
            let idle = if f.from_idle { ", from an idle state" } else { "" };
            record.chain.push(format!(
                "The timer's interrupt handler began {} late{}{idle}.",
                micros(ns),
                shares(f)
            ));
        }
        if let Some(ns) = self.time(Label::PreviousIrq) {
            record.chain.push(format!("An interrupt before it took up to {}.", micros(ns)));
        }
        let other = self.blocking();
        if let Some(f) = self.figure(Label::Blocking)
            && let Some(ns) = f.ns
        {
            record.chain.push(format!(
                "{other} kept the CPU for {}{} after the interrupt.",
                micros(ns),
                shares(f)
            ));
        }
        if self.frames.is_empty() {
            return;
        }
        let at = self.time(Label::HandlerDelay).unwrap_or(0);
        let note = BlameNote {
            kind: BlameNoteKind::Timer,
            tid: 0,
            t_ns: at,
            latency_ns: record.latency_ns,
            cpu: self.cpu,
            other: other.clone(),
            frames: self.frames.clone(),
            system_call: stack::system_call(&self.frames),
            owners: Vec::new(),
        };
        if !note.onto(record, 0) {
            let place = note.stack();
            let place = if place.is_empty() { &self.frames } else { place };
            record.chain.push(format!("The interrupt came into {}.", stack::sentence(place)));
        }
    }
}

fn part(
    record: &mut BlameRecord,
    phase: Phase,
    (cause, who): (Cause, String),
    ns: i64,
    sureness: Sureness,
) {
    if ns > 0 {
        let from_ns = record.parts.last().map_or(0, |p| p.from_ns.saturating_add(p.ns));
        let part = BlamePart { phase, from_ns, ns, cause, who, sureness, ..BlamePart::default() };
        record.parts.push(part);
    }
}

/// The time in a text: `27.49 us (65.52 %)`.
fn time(text: &str) -> Option<i64> {
    let at = text.find(" us").or_else(|| text.find("us"))?;
    let word = text.get(..at)?.split_whitespace().next_back()?;
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    i64::try_from(scaled(whole, fraction, 3)?).ok()
}

/// Its share in hundredths of a percent.
fn share(text: &str) -> Option<u64> {
    let word = text.split_once('(')?.1.split('%').next()?.trim();
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    scaled(whole, fraction, 2)
}
