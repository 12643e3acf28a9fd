// SPDX-License-Identifier: MIT OR Apache-2.0
//! rtla's auto-analysis: of what the latency consists that stopped `rtla timerlat`, in the tool's own words.
//!
//! Units: µs with two decimals. Layout: `## CPU 23 hit stop tracing, analyzing it ##`, then parts `IRQ handler delay: 27.49 us
//! (65.52 %)` with spaces or tabs between, under some of them who it was (`objtool:49256  3.79 us`), under `Blocking thread` also a stack of
//! `-> function`; a line of hyphens, and `Thread latency: 41.96 us (100%)` or `IRQ latency: … (100%)`.
//! Where the last line is missing the whole follows from the largest part and its share, to half a hundredth of a per cent.
//! Versions before 6.5 print 0.00 % for every share. One block for each CPU that hit the threshold.
//! Source: rtla-timerlat-top(1), its sources of 6.3 to 6.12, output of them.

use tailbound_core::number::Real as _;
use tailbound_core::order;
use tailbound_core::record::Event;
use tailbound_core::units::format_ns_i64;
use tailbound_core::{Context, Distribution, Finding, Impact, Policy};

use crate::draft::{Draft, coarse};
use crate::error::{Fault, excerpt};
use crate::text::{self, Lines, THREADS_MAX};

/// Most functions of a stack that are shown.
const STACK_MAX: usize = 16;

/// One part of the latency.
#[derive(Debug)]
struct Part {
    name: String,
    ns: i64,
    share: Option<f64>,
    who: Vec<String>,
}

/// The analysis of one CPU.
#[derive(Debug, Default)]
struct Block {
    cpu: u32,
    parts: Vec<Part>,
    irq_ns: Option<i64>,
    /// What the last line says, and whether it is of the interrupt alone.
    whole: Option<(i64, Context)>,
    stack: Vec<String>,
}

/// The CPU of a line that begins an analysis.
pub(crate) fn begins(line: &str) -> Option<u32> {
    let rest = line.trim().strip_prefix("## CPU ")?;
    let (cpu, rest) = rest.split_once(' ')?;
    let cpu = cpu.parse().ok().filter(|c| *c <= tailbound_core::cpus::MAX_CPU)?;
    rest.starts_with("hit stop tracing").then_some(cpu)
}

/// An analysis without the figures of the run that it stopped.
pub(crate) fn parse(bytes: &[u8]) -> Result<Draft, Fault> {
    let mut draft = Draft::new("rtla timerlat", "auto-analysis");
    let blocks = blocks(bytes)?;
    for block in &blocks {
        if let Some(ns) = block.irq_ns {
            draft.thread(block.cpu, Some(block.cpu), Context::Irq, one(ns))?;
        }
        match block.whole(&mut draft) {
            Some((ns, Context::Thread)) => {
                draft.thread(block.cpu, Some(block.cpu), Context::Thread, one(ns))?;
            }
            Some(_) => {}
            None => draft
                .lose(format!("How late the thread on CPU {} was is not in the file.", block.cpu)),
        }
    }
    draft.cut_off = blocks.iter().any(|b| b.whole.is_none());
    draft.policy = Some(Policy::Fifo(95));
    draft.lose("The priority is not in the file; timerlat's threads take fifo:95 unless configured otherwise.");
    draft.doubt(
        "source-one-sample",
        "Only the latency that stopped the trace is in the file.".to_owned(),
        "How many activations came before, and how late they were, is unknown.",
        "Import the output of `rtla timerlat hist` with it.",
    );
    causes(&mut draft, &blocks);
    Ok(draft)
}

/// What an analysis after the figures of a run says, as findings.
pub(crate) fn beside(draft: &mut Draft, bytes: &[u8]) -> Result<(), Fault> {
    causes(draft, &blocks(bytes)?);
    Ok(())
}

fn one(ns: i64) -> Distribution {
    let mut d = coarse();
    d.add_many(ns, 1);
    // Times are cut to 10 ns.
    d.resolution_ns = 10;
    d
}

fn blocks(bytes: &[u8]) -> Result<Vec<Block>, Fault> {
    let mut blocks: Vec<Block> = Vec::new();
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if let Some(cpu) = begins(line) {
            if blocks.len() >= THREADS_MAX || blocks.iter().any(|b| b.cpu == cpu) {
                return Err(Fault::line(n, format!("a second analysis of CPU {cpu}, or too many")));
            }
            blocks.push(Block { cpu, ..Block::default() });
        } else if let Some(block) = blocks.last_mut().filter(|b| b.whole.is_none()) {
            block.line(line, n)?;
        }
    }
    Ok(blocks)
}

impl Block {
    fn line(&mut self, line: &str, n: u64) -> Result<(), Fault> {
        if let Some(function) = line.strip_prefix("-> ") {
            self.stack.push(excerpt(function.trim()));
            return Ok(());
        }
        let Some((name, time, share)) = measured(line) else {
            // Of an interrupt's latency the blocking thread has no time.
            if line.starts_with("Blocking thread:") {
                self.part("Blocking thread", 0, None);
            } else if let Some(part) = self.parts.last_mut().filter(|_| is_task(line)) {
                part.who.push(excerpt(line));
            }
            return Ok(());
        };
        let ns = text::ns(time, 1000, n, "the part")?;
        let known = PARTS.iter().find(|p| line.starts_with(**p)).copied();
        match known {
            Some("IRQ latency" | "Thread latency" | "UserRet latency" | "User latency")
                if whole(line) =>
            {
                let irq = line.starts_with("IRQ");
                self.whole = Some((ns, if irq { Context::Irq } else { Context::Thread }));
                if irq {
                    self.irq_ns = Some(ns);
                }
            }
            Some("IRQ latency") => self.irq_ns = Some(ns),
            Some(part) => self.part(part, ns, share),
            None => {
                if let Some(part) = self.parts.last_mut().filter(|_| is_task(name)) {
                    part.who.push(format!("{} {}", excerpt(name), format_ns_i64(ns)));
                }
            }
        }
        Ok(())
    }

    fn part(&mut self, name: &str, ns: i64, share: Option<f64>) {
        self.parts.push(Part { name: name.to_owned(), ns, share, who: Vec::new() });
    }

    /// The whole latency: as it is said, or from the largest part's share.
    fn whole(&self, draft: &mut Draft) -> Option<(i64, Context)> {
        if self.whole.is_some() {
            return self.whole;
        }
        let largest = self.parts.iter().max_by_key(|p| p.ns)?;
        let share = largest.share.filter(|s| *s >= 1.0)?;
        let ns = text::float_ns(largest.ns.real() * 100.0 / share)?;
        draft.lose(format!(
            "The thread's latency on CPU {} is not in the file: it is computed from {}, which is {share:.2} % of it.",
            self.cpu,
            format_ns_i64(largest.ns)
        ));
        Some((ns, Context::Thread))
    }
}

/// Parts of a latency, and the whole of it.
const PARTS: [&str; 12] = [
    "Previous IRQ interference",
    "IRQ handler delay",
    "IRQ latency",
    "Timerlat IRQ duration",
    "Blocking thread",
    "NMI interference",
    "IRQ interference",
    "Softirq interference",
    "Thread interference",
    "Thread latency",
    "UserRet latency",
    "User latency",
];

fn whole(line: &str) -> bool {
    line.ends_with("(100%)") || line.ends_with("(100 %)")
}

/// `comm:pid`, `interrupt:vector`, or a non-maskable interrupt.
fn is_task(name: &str) -> bool {
    let number = name.rsplit_once(':').map_or("", |(_, n)| n);
    name == "nmi" || !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// What is before the time, the time and the share of a line that ends in `27.49 us (65.52 %)`.
fn measured(line: &str) -> Option<(&str, &str, Option<f64>)> {
    let (before, after) = line.rsplit_once(" us")?;
    let (name, time) = before.trim_end().rsplit_once(char::is_whitespace)?;
    time.parse::<f64>().ok()?;
    let share = after.trim().strip_prefix('(').and_then(|s| s.split('%').next());
    Some((name.trim(), time, share.and_then(|s| s.trim().parse().ok())))
}

/// Who and where, as findings.
fn causes(draft: &mut Draft, blocks: &[Block]) {
    let mut latest_first: Vec<&Block> = blocks.iter().collect();
    order::by_key(&mut latest_first, |b| std::cmp::Reverse(b.whole.map(|w| w.0)));
    for block in latest_first {
        let parts: Vec<String> = block.parts.iter().map(Part::words).collect();
        if parts.is_empty() {
            continue;
        }
        let title = format!("CPU {} stopped the trace: {}", block.cpu, parts.join(", "));
        draft.events.push(Event::new(0, "stopped", title.clone()));
        draft.note(
            Finding::new("source-cause", Impact::Notice, title)
                .meaning("The parts of the latency that stopped the trace, as rtla analysed them.")
                .remedy("A long delay of the interrupt handler means that interrupts were off: look for what the stack's first function outside the interrupt's own released."),
        );
        let shown = block.stack.get(..STACK_MAX).unwrap_or(&block.stack).join(" < ");
        if shown.is_empty() {
            continue;
        }
        let title = format!(
            "CPU {}: the stack of the blocking thread, innermost first: {shown}",
            block.cpu
        );
        draft.events.push(Event::new(0, "stack", title.clone()));
        draft.note(
            Finding::new("source-stack", Impact::Notice, title)
                .meaning("Where the thread was when the timer's interrupt came through."),
        );
    }
}

impl Part {
    /// `blocking thread 3.79 µs (9.03 %, objtool:49256)`.
    fn words(&self) -> String {
        let lower = self.name.strip_prefix("Timerlat ").unwrap_or(&self.name);
        let lower = if lower.starts_with("IRQ") || lower.starts_with("NMI") {
            lower.to_owned()
        } else {
            lower.to_lowercase()
        };
        let mut aside: Vec<String> = Vec::new();
        aside.extend(self.share.filter(|s| *s > 0.0).map(|s| format!("{s:.2} %")));
        aside.extend(self.who.iter().take(4).cloned());
        let aside =
            if aside.is_empty() { String::new() } else { format!(" ({})", aside.join(", ")) };
        let exact = format!("{:.2} µs", self.ns.real() / 1000.0);
        let time = if self.ns > 0 { format!(" {exact}") } else { String::new() };
        format!("{lower}{time}{aside}")
    }
}
