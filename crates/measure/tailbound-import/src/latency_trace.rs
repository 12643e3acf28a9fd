// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel's latency tracers leave in `trace`: the longest wake-up, or stretch without interrupts or preemption, and who held the CPU.
//!
//! Units: µs. Layout: `# wakeup_rt latency trace v1.1.5 on RELEASE`, `# latency: 1689 us, #6/6, CPU#0 | (M:preempt_rt …)`,
//! `# | task: NAME-PID (uid:0 nice:0 policy:1 rt_prio:99)`, for the off tracers `# => started at: F` and `# => ended at: F`; then rows
//! `NAME-PID CPU-AND-FLAGS TIMEus MARK: EVENT`, where an event is a wake-up (`232:120:R + [000] 217: 0:R name`), a switch (`==>`), a function
//! or `<stack trace>`, which ` => function` lines follow. Names are cut to 8 characters in rows. Kernels before 2.6.28 write no `#`.
//! Not here: traces of events (`trace.dat`: `tailbound blame`). Source: Documentation/trace/ftrace.rst; kernel/trace/trace_output.c.

use tailbound_core::plan::Means;
use tailbound_core::record::{Event, Fact};
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_core::{Context, Finding, Impact, Policy};

use crate::draft::{Draft, coarse};
use crate::error::{Fault, excerpt};
use crate::fields;
use crate::text::Lines;

/// Most functions of a stack that are shown.
const STACK_MAX: usize = 20;
/// Functions of the tracer and the scheduler, which are on top of each stack.
const OWN: [&str; 12] = [
    "__ftrace_trace_stack",
    "__trace_stack",
    "ftrace_",
    "trace_",
    "tracer_",
    "probe_wakeup",
    "__schedule",
    "schedule",
    "preempt_schedule",
    "migrate_enable",
    "__cond_resched",
    "do_sched_yield",
];

/// What a tracer times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// From a thread's wake-up until it runs.
    Wakeup,
    /// While interrupts, preemption or both are off.
    Off(&'static str),
}

/// Rows and stacks.
#[derive(Debug, Default)]
struct Found {
    tracer: String,
    kind: Option<Kind>,
    latency_ns: Option<i64>,
    cpu: Option<u32>,
    task: String,
    started_at: String,
    ended_at: String,
    woken: Option<(i64, String)>,
    woken_stack_us: Option<i64>,
    ran: Option<i64>,
    holder: String,
    rows: u64,
    /// The stack that was recorded last.
    stack: Vec<String>,
}

/// The tracer of a line that begins such a trace.
pub(crate) fn begins(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['#', ' ']);
    let (tracer, rest) = line.split_once(" latency trace v")?;
    (rest.contains(" on ") && kind(tracer).is_some()).then_some(tracer)
}

fn kind(tracer: &str) -> Option<Kind> {
    match tracer {
        "wakeup" | "wakeup_rt" | "wakeup_dl" => Some(Kind::Wakeup),
        "irqsoff" => Some(Kind::Off("interrupts")),
        "preemptoff" | "preemption" => Some(Kind::Off("preemption")),
        "preemptirqsoff" => Some(Kind::Off("interrupts or preemption")),
        _ => None,
    }
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Draft, Fault> {
    let mut draft = Draft::new("ftrace", "latency trace");
    let mut found = Found::default();
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if let Some(tracer) = begins(line) {
            if found.kind.is_some() {
                fields::run_without_figures(&mut draft, n);
                break;
            }
            found.kind = kind(tracer);
            found.tracer = tracer.to_owned();
            let release = line.rsplit(" on ").next().unwrap_or("");
            draft.machine.insert("kernel.release".to_owned(), Fact::of(excerpt(release)));
        } else if found.kind.is_some() {
            found.line(&mut draft, line, n)?;
        }
    }
    finish(&mut draft, found)?;
    Ok(draft)
}

impl Found {
    fn line(&mut self, draft: &mut Draft, line: &str, n: u64) -> Result<(), Fault> {
        let bare = line.trim_start_matches(['#', ' ']);
        if bare.starts_with("latency:") && bare.contains(" us,") {
            self.latency_ns = Some(fields::time(bare, "latency:", 1000, n)?);
            let digits: String = fields::after(bare, "CPU#")
                .unwrap_or("")
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            self.cpu = digits.parse().ok().filter(|c| *c <= tailbound_core::cpus::MAX_CPU);
            if let Some(model) = fields::after(bare, "M:") {
                draft.machine.insert("kernel.preemption".to_owned(), Fact::of(excerpt(model)));
            }
        } else if let Some(task) = bare.strip_prefix("| task:") {
            self.task(draft, task.trim());
        } else if let Some(f) = bare.strip_prefix("=> started at:") {
            self.started_at = excerpt(f.trim());
        } else if let Some(f) = bare.strip_prefix("=> ended at:") {
            self.ended_at = excerpt(f.trim());
        } else if let Some(function) = line.strip_prefix("=> ") {
            self.stack.push(excerpt(function.trim()));
        } else if !line.starts_with('#') {
            self.row(line);
        }
        Ok(())
    }

    fn task(&mut self, draft: &mut Draft, text: &str) {
        let (name, rest) = text.rsplit_once(" (").unwrap_or((text, ""));
        self.task = excerpt(name);
        let number = |key: &str| {
            let word = fields::after(rest, key)?.trim_end_matches(')');
            word.parse::<u8>().ok()
        };
        let priority = number("rt_prio:").filter(|p| (1..=99).contains(p));
        if self.kind == Some(Kind::Wakeup) {
            draft.policy = match (number("policy:"), priority) {
                (Some(1), Some(p)) => Some(Policy::Fifo(p)),
                (Some(2), Some(p)) => Some(Policy::Rr(p)),
                (Some(0), _) => Some(Policy::Other),
                _ => None,
            };
        }
    }

    fn row(&mut self, line: &str) {
        let Some(row) = Row::of(line) else { return };
        self.rows += 1;
        let Row { task, us, event } = row;
        if event.starts_with("<stack trace>") {
            self.stack.clear();
            if self.woken.is_some() && self.ran.is_none() {
                self.woken_stack_us.get_or_insert(us);
            }
        } else if event.contains("==>") {
            self.ran = Some(us);
            self.holder = task;
        } else if event.contains(" + [") {
            self.woken.get_or_insert((us, task.clone()));
            self.holder = task;
        } else if self.ran.is_none() {
            self.holder = task;
        }
    }
}

impl Found {
    /// The last stack without the tracer's own functions.
    fn shown_stack(&self) -> String {
        let own = |f: &&String| OWN.iter().any(|o| f.starts_with(o));
        let shown = self.stack.iter().skip_while(own).take(STACK_MAX);
        shown.map(String::as_str).collect::<Vec<_>>().join(" < ")
    }
}

/// A row.
struct Row {
    task: String,
    us: i64,
    event: String,
}

impl Row {
    /// `stress-n-232  0dn.h413    1us+: event`; `None` for what is no row.
    fn of(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let time = |w: &&str| {
            let (digits, mark) = w.split_once("us")?;
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let marks = mark.chars().all(|c| "+!#$*@:".contains(c));
            (plain && marks).then(|| digits.parse::<i64>().ok())?
        };
        let at = words.iter().position(|w| time(w).is_some())?;
        let us = words.get(at).and_then(time)?;
        // The flags stand between, in one word with the CPU.
        let task = words.get(..at.checked_sub(1)?)?.join(" ");
        let event = words.get(at + 1..)?.join(" ");
        let event = event.trim_start_matches(':').trim_start().to_owned();
        task.contains('-').then(|| Self { task: excerpt(&task), us, event })
    }
}

fn finish(draft: &mut Draft, found: Found) -> Result<(), Fault> {
    let kind =
        found.kind.ok_or_else(|| Fault::file("there is no line `… latency trace v… on …`"))?;
    let latency =
        found.latency_ns.ok_or_else(|| Fault::file("there is no line `latency: … us`"))?;
    if latency == 0 && found.rows == 0 {
        return Err(Fault::file("the tracer has recorded nothing yet: its latency is 0"));
    }
    draft.tool = format!("ftrace {}", found.tracer);
    draft.event = Some(if kind == Kind::Wakeup { "wake-up" } else { "stretch" });
    draft.means = Some(Means::NotTold);
    let mut d = coarse();
    d.add_many(latency, 1);
    d.resolution_ns = 1000;
    let context = if kind == Kind::Wakeup { Context::RunQueue } else { Context::Gap };
    draft.thread(0, found.cpu, context, d)?;
    draft.doubt(
        "source-one-sample",
        format!(
            "The tracer {} keeps only the longest it has seen: the file holds that one value.",
            found.tracer
        ),
        "How many there were and how long the others took is unknown.",
        "For figures measure with tailbound; for more causes record with trace-cmd and use `tailbound blame`.",
    );
    draft.lose("The tracer itself makes what it times longer.");
    draft.cut_values(1000);
    let title = match kind {
        Kind::Wakeup => wakeup(&found, latency),
        Kind::Off(what) => off(&found, what, latency),
    };
    draft.events.push(Event::new(0, "stopped", title.clone()));
    draft.note(
        Finding::new("source-cause", Impact::Notice, title)
            .meaning("Names are cut to 8 characters in the rows of such a trace.")
            .remedy("Look for what the CPU's holder did, or keep it away from this CPU."),
    );
    let stack = found.shown_stack();
    if !stack.is_empty() {
        let title = format!("the last stack of the trace, innermost first: {stack}");
        draft.events.push(Event::new(0, "stack", title.clone()));
        draft.note(
            Finding::new("source-stack", Impact::Notice, title)
                .meaning("Where the CPU's holder was when the stretch ended."),
        );
    }
    Ok(())
}

fn on_cpu(found: &Found) -> String {
    found.cpu.map_or_else(String::new, |c| format!(" on CPU {c}"))
}

fn wakeup(found: &Found, latency: i64) -> String {
    let mut title = format!("{}{}: {} was woken", exact(latency), on_cpu(found), found.task);
    let us = |us: i64| format!("{} µs", grouped(us.unsigned_abs()));
    if let Some((at, by)) = &found.woken {
        title.push_str(&format!(" at {}", us(*at)));
        if let Some(stack) = found.woken_stack_us.filter(|s| s != at) {
            title.push_str(&format!(" (stack recorded at {})", us(stack)));
        }
        if *by != found.holder {
            title.push_str(&format!(", while {by} ran,"));
        }
    }
    if let Some(ran) = found.ran {
        title.push_str(&format!(" and ran at {}", us(ran)));
    }
    if !found.holder.is_empty() {
        let call = call_words(&found.stack);
        title.push_str(&format!("; until then {} held the CPU{call}", found.holder));
    }
    title
}

fn off(found: &Found, what: &str, latency: i64) -> String {
    let mut title = format!("{}{}: {} kept {what} off", exact(latency), on_cpu(found), found.task);
    if !found.started_at.is_empty() {
        title.push_str(&format!(", from {} to {}", found.started_at, found.ended_at));
    }
    title + &call_words(&found.stack)
}

/// `1,689 µs`: the tracer's own figure.
fn exact(ns: i64) -> String {
    match ns % 1000 {
        0 => format!("{} µs", grouped(ns.unsigned_abs() / 1000)),
        _ => format_ns_i64(ns),
    }
}

/// The system call and the function in it that a stack shows.
fn call_words(stack: &[String]) -> String {
    let call = stack.iter().find_map(|f| {
        [
            "__x64_sys_",
            "__arm64_sys_",
            "__riscv_sys_",
            "__ia32_sys_",
            "__se_sys_",
            "__do_sys_",
            "ksys_",
            "sys_",
            "SyS_",
        ]
        .iter()
        .find_map(|p| f.strip_prefix(p))
        .filter(|name| !name.starts_with("call"))
    });
    let own = |f: &&String| !OWN.iter().any(|o| f.starts_with(o));
    let function = stack.iter().find(own);
    match (call, function) {
        (Some(call), Some(f)) => format!(", in {call} ({f})"),
        (None, Some(f)) => format!(", in {f}"),
        _ => String::new(),
    }
}
