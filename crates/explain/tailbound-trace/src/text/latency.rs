// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace of one of the latency tracers, line by line: what stands above it, and what its records tell.
//!
//! Units: ns since the begin of the latency. Memory is bounded: adjoining records of one thread and state
//! are one stretch, and of the pieces between records the longest are kept.
//! Not here: what is said of it (`section`).
//! Source: Documentation/trace/ftrace.rst, "Output format", "irqsoff" to "wakeup_rt"; kernel/trace/trace.c
//! (print_trace_header), trace_output.c (trace_ctxwake_print).

use std::collections::BTreeMap;

use tailbound_core::blame::KernelKind;

use super::TextError;
use super::graph::{Graph, GraphCall, GraphItem};
use super::record::{self, TextRecord, number};
use super::stack::{self, FRAMES_MAX};
use super::state::{Columns, Context, CpuState};

/// Most stretches that are kept apart.
const STRETCHES_MAX: usize = 512;
/// Longest pieces that are kept.
pub(super) const PIECES_MAX: usize = 3;
/// Threads whose names are kept.
const NAMES_MAX: usize = 1024;

/// What a tracer looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LatencyKind {
    /// The longest time with interrupts disabled.
    InterruptsOff,
    /// That with preemption disabled.
    PreemptionOff,
    /// That with one of both.
    Either,
    /// That from a wake-up to the CPU.
    WakeUp,
}

impl LatencyKind {
    /// By the tracer's name.
    pub(super) fn of(tracer: &str) -> Option<Self> {
        Some(match tracer {
            "irqsoff" => Self::InterruptsOff,
            "preemptoff" => Self::PreemptionOff,
            "preemptirqsoff" => Self::Either,
            "wakeup" | "wakeup_rt" | "wakeup_dl" => Self::WakeUp,
            _ => return None,
        })
    }
}

/// What stands above the records.
#[derive(Clone, Debug, Default)]
pub(super) struct Header {
    pub(super) kernel: Option<String>,
    pub(super) latency_ns: Option<i64>,
    /// Records in the text and records that were made, as the kernel counted.
    pub(super) counted: Option<(u64, u64)>,
    pub(super) cpu: Option<u32>,
    /// By its preemption model.
    pub(super) kind: KernelKind,
    /// The thread: of a section whose time it was, else who was woken.
    pub(super) task: Option<(String, i32)>,
    pub(super) started_at: Option<String>,
    pub(super) ended_at: Option<String>,
}

/// Adjoining records of one thread in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateStretch {
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    pub(super) pid: i32,
    pub(super) context: Context,
    pub(super) irqs_off: bool,
    pub(super) need_resched: bool,
    /// The longest time within without a record.
    pub(super) silent_ns: i64,
}

/// A time between two records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SilentPiece {
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    /// What the record at its begin says, and that at its end.
    pub(super) after: String,
    pub(super) until: String,
}

/// A thread as a wake-up or a switch tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrioritizedTask {
    pub(super) pid: i32,
    pub(super) prio: i32,
}

/// A wake-up or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskChange {
    pub(super) t_ns: i64,
    pub(super) record_cpu: u32,
    pub(super) context: Context,
    pub(super) of: PrioritizedTask,
    pub(super) to: PrioritizedTask,
    pub(super) cpu: u32,
}

/// One trace.
#[derive(Debug)]
pub(super) struct LatencyTrace {
    pub(super) kind: LatencyKind,
    pub(super) tracer: String,
    pub(super) header: Header,
    pub(super) stretches: Vec<StateStretch>,
    pub(super) pieces: Vec<SilentPiece>,
    pub(super) calls: Vec<GraphCall>,
    pub(super) woken: Option<TaskChange>,
    pub(super) switched: Option<TaskChange>,
    /// The time of the record that has the stack, and its functions.
    pub(super) wake_stack: Option<(i64, Vec<String>)>,
    pub(super) end_stack: Option<(i64, Vec<String>)>,
    pub(super) names: BTreeMap<i32, String>,
    /// Records that were read, and lines that are none.
    pub(super) records: u64,
    /// Functions of which a record lies within the latency.
    pub(super) functions: u64,
    pub(super) passed_over: u64,
    columns: Columns,
    graph: Graph,
    last: Option<(i64, i32, CpuState, String)>,
    in_stack: bool,
}

impl LatencyTrace {
    pub(super) fn new(kind: LatencyKind, tracer: &str) -> Self {
        Self {
            kind,
            tracer: tracer.to_owned(),
            header: Header::default(),
            stretches: Vec::new(),
            pieces: Vec::new(),
            calls: Vec::new(),
            woken: None,
            switched: None,
            wake_stack: None,
            end_stack: None,
            names: BTreeMap::new(),
            records: 0,
            functions: 0,
            passed_over: 0,
            columns: Columns::default(),
            graph: Graph::default(),
            last: None,
            in_stack: false,
        }
    }

    /// Takes a line, the `number`th of its text.
    ///
    /// # Errors
    /// [`TextError::Wrong`]: the lines above the records contradict what they should be.
    pub(super) fn line(&mut self, line: &str, number: u64) -> Result<(), TextError> {
        let bare = line.trim();
        if bare.starts_with('#') {
            self.columns.header(line);
            return self.header.line(bare, number);
        }
        if bare.is_empty() {
            return Ok(());
        }
        if let Some(frame) = stack::frame(line) {
            self.frame(frame);
            return Ok(());
        }
        if let Some(r) = record::latency(line, &self.columns) {
            self.record(&r);
            return Ok(());
        }
        match self.graph.line(line, &self.columns) {
            GraphItem::Foreign => self.passed_over = self.passed_over.saturating_add(1),
            GraphItem::Within => self.records = self.graph.lines,
            GraphItem::Ended(tree) => {
                self.records = self.graph.lines;
                for call in tree.longest {
                    let place = self.calls.partition_point(|c| c.own_ns >= call.own_ns);
                    self.calls.insert(place, call);
                }
                self.calls.truncate(PIECES_MAX);
            }
        }
        Ok(())
    }

    fn frame(&mut self, frame: &str) {
        let woken = self.switched.is_none() && self.kind == LatencyKind::WakeUp;
        let stack = if woken { &mut self.wake_stack } else { &mut self.end_stack };
        if let Some((_, frames)) =
            stack.as_mut().filter(|s| self.in_stack && s.1.len() < FRAMES_MAX)
        {
            frames.push(frame.to_owned());
        }
    }

    fn record(&mut self, r: &TextRecord<'_>) {
        self.records = self.records.saturating_add(1);
        let t_ns = i64::try_from(r.t_ns).unwrap_or(i64::MAX);
        self.in_stack = r.text.starts_with("<stack trace>");
        if self.in_stack {
            let woken = self.switched.is_none() && self.kind == LatencyKind::WakeUp;
            let stack = if woken { &mut self.wake_stack } else { &mut self.end_stack };
            *stack = Some((t_ns, Vec::new()));
        }
        let name_known = self.names.get(&r.pid).is_some_and(|n| n.len() >= r.comm.len());
        if !name_known && self.names.len() < NAMES_MAX {
            self.names.insert(r.pid, r.comm.to_owned());
        }
        self.change(r, t_ns);
        if self.header.cpu.is_some_and(|cpu| cpu != r.cpu) {
            return;
        }
        let state = r.state.unwrap_or_default();
        let says = says(r);
        let within = t_ns > 0 && self.header.latency_ns.is_none_or(|end| t_ns < end);
        let within = within && r.function().is_some();
        self.functions = self.functions.saturating_add(u64::from(within));
        if let Some((from_ns, pid, before, after)) = self.last.take() {
            self.stretch(from_ns, t_ns, (pid, before), (r.pid, state));
            let piece =
                SilentPiece { from_ns, to_ns: t_ns.max(from_ns), after, until: says.clone() };
            let ns = |p: &SilentPiece| p.to_ns.saturating_sub(p.from_ns);
            let place = self.pieces.partition_point(|p| ns(p) >= ns(&piece));
            if place < PIECES_MAX && ns(&piece) > 0 {
                self.pieces.insert(place, piece);
                self.pieces.truncate(PIECES_MAX);
            }
        }
        self.last = Some((t_ns, r.pid, state, says));
    }

    /// The time from one record to the next; of two states it is charged to the one that lies beneath.
    fn stretch(&mut self, from_ns: i64, to_ns: i64, a: (i32, CpuState), b: (i32, CpuState)) {
        if to_ns <= from_ns {
            return;
        }
        let beneath = if a.0 == b.0 && b.1.context < a.1.context { b.1 } else { a.1 };
        let new = StateStretch {
            from_ns,
            to_ns,
            pid: a.0,
            context: beneath.context,
            irqs_off: beneath.irqs_off,
            need_resched: a.1.need_resched,
            silent_ns: to_ns.saturating_sub(from_ns),
        };
        let full = self.stretches.len() >= STRETCHES_MAX;
        let same = |last: &StateStretch| {
            (last.pid, last.context, last.irqs_off) == (new.pid, new.context, new.irqs_off)
        };
        match self.stretches.last_mut().filter(|last| full || same(last)) {
            Some(last) => {
                last.to_ns = to_ns;
                last.need_resched |= new.need_resched;
                last.silent_ns = last.silent_ns.max(new.silent_ns);
            }
            None => self.stretches.push(new),
        }
    }

    /// A wake-up, ` 232:120:R   + [000]  217:  0:R cyclictest`, or a switch, with `==>`.
    fn change(&mut self, r: &TextRecord<'_>, t_ns: i64) {
        let (left, right, is_switch) = match r.text.split_once("==>") {
            Some((left, right)) => (left, right, true),
            None => match r.text.split_once(" + ") {
                Some((left, right)) => (left, right, false),
                None => return,
            },
        };
        let Some((cpu, right)) = right.trim().strip_prefix('[').and_then(|t| t.split_once(']'))
        else {
            return;
        };
        let (Some(cpu), Some((of, _)), Some((to, name))) = (number(cpu), task(left), task(right))
        else {
            return;
        };
        if !name.is_empty() && self.names.len() < NAMES_MAX {
            self.names.insert(to.pid, name.to_owned());
        }
        let context = r.state.unwrap_or_default().context;
        let change = TaskChange { t_ns, record_cpu: r.cpu, context, of, to, cpu };
        let target = self.header.task.as_ref().map(|(_, pid)| *pid);
        let about = target.is_none_or(|pid| pid == change.to.pid);
        match is_switch {
            true if about => self.switched = Some(change),
            false if about && self.woken.is_none() => self.woken = Some(change),
            _ => {}
        }
    }

    /// What a thread is called.
    pub(super) fn name(&self, pid: i32) -> String {
        let told = self.header.task.as_ref().filter(|(_, of)| *of == pid).map(|(name, _)| name);
        match told.or_else(|| self.names.get(&pid)) {
            _ if pid == 0 => "idle".to_owned(),
            Some(name) if !name.is_empty() => format!("{name}-{pid}"),
            _ => format!("thread {pid}"),
        }
    }

    /// The time and the state of the last record.
    pub(super) fn end(&self) -> Option<(i64, i32, CpuState)> {
        self.last.as_ref().map(|(t_ns, pid, state, _)| (*t_ns, *pid, *state))
    }
}

/// What a record says, for a sentence.
fn says(r: &TextRecord<'_>) -> String {
    match (r.function(), r.event()) {
        (Some((function, caller)), _) => format!("{function} (called from {caller})"),
        (_, Some((event, _))) => event.to_owned(),
        _ if r.text.contains("==>") => "the switch".to_owned(),
        _ if r.text.contains(" + ") => "the wake-up".to_owned(),
        _ if r.text.starts_with("<stack") => "the record of a stack".to_owned(),
        _ if !r.text.is_empty() && r.text.bytes().all(is_name) && !is_digits(r.text) => {
            r.text.to_owned()
        }
        _ => "a record without a name".to_owned(),
    }
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"_.".contains(&b)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// `232:120:R`, and what stands behind it.
fn task(text: &str) -> Option<(PrioritizedTask, &str)> {
    let mut parts = text.trim().splitn(3, ':');
    let (pid, prio, rest) = (number(parts.next()?)?, number(parts.next()?)?, parts.next()?);
    let name = rest.trim_start().split_once(char::is_whitespace).map_or("", |(_, name)| name);
    Some((PrioritizedTask { pid, prio }, name.trim()))
}

impl Header {
    /// Takes a line that begins with `#`.
    fn line(&mut self, line: &str, at: u64) -> Result<(), TextError> {
        let text = line.trim_start_matches('#').trim();
        if let Some((_, kernel)) = text.split_once(" latency trace v") {
            self.kernel = kernel.split_once(" on ").map(|(_, kernel)| kernel.trim().to_owned());
        } else if let Some(rest) = text.strip_prefix("latency:") {
            self.latency(rest, at)?;
        } else if let Some(rest) = text.strip_prefix("| task:") {
            let name = rest.split(" (uid:").next().unwrap_or(rest).trim();
            let named = name.rsplit_once('-').and_then(|(n, pid)| Some((n, number(pid)?)));
            let (name, pid) = named.ok_or(TextError::Wrong {
                line: at,
                reason: "`task:` is not followed by NAME-NUMBER".to_owned(),
            })?;
            self.task = Some((name.to_owned(), pid));
        } else if let Some(rest) = text.strip_prefix("=> started at:") {
            self.started_at = place(rest);
        } else if let Some(rest) = text.strip_prefix("=> ended at:") {
            self.ended_at = place(rest);
        }
        Ok(())
    }

    /// ` 71 us, #168/168, CPU#3 | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:4)`
    fn latency(&mut self, text: &str, at: u64) -> Result<(), TextError> {
        let wrong = |what: &str| TextError::Wrong { line: at, reason: what.to_owned() };
        let model =
            text.split_once("(M:").map(|(_, rest)| rest.split_once(' ').unwrap_or((rest, "")).0);
        self.kind =
            model.map_or(KernelKind::Unknown, |m| KernelKind::of_model(m, self.kernel.as_deref()));
        let mut parts = text.split('|').next().unwrap_or(text).split(',').map(str::trim);
        let time = parts.next().unwrap_or("");
        let ns =
            time.strip_suffix("us").and_then(number::<i64>).and_then(|us| us.checked_mul(1000));
        let ns = ns.or_else(|| time.strip_suffix("ns").and_then(number::<i64>));
        let ns = ns.filter(|ns| *ns >= 0);
        self.latency_ns =
            Some(ns.ok_or_else(|| wrong("`latency:` is not followed by a time in us"))?);
        for part in parts {
            if let Some(cpu) = part.strip_prefix("CPU#") {
                self.cpu = Some(number(cpu).ok_or_else(|| wrong("`CPU#` has no number"))?);
            } else if let Some((shown, made)) =
                part.strip_prefix('#').and_then(|p| p.split_once('/'))
            {
                self.counted = Some((
                    number(shown).ok_or_else(|| wrong("`#` has no number of records"))?,
                    number(made).ok_or_else(|| wrong("`/` has no number of records"))?,
                ));
            }
        }
        Ok(())
    }
}

fn place(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
