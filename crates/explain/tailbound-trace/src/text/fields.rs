// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's events from their texts: `sched_waking: comm=x pid=12 prio=0 target_cpu=003`.
//!
//! Functions have names here, where records have addresses: each name gets a number of its own in place of one.
//! Not here: the same events from records of bytes (`crate::event`).
//! Source: TP_printk in include/trace/events/*.h; the plugins of libtraceevent print sched_switch and sched_wakeup
//! their own way, which trace-cmd and perf use.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tailbound_core::words::Word;

use super::record::{first_word, number};
use crate::event::{Event, FaultMode, Vector};
use crate::symbols::Symbols;

/// Most functions that have a name.
const NAMES_MAX: usize = 4096;
/// The numbers begin where no program's addresses lie, and leave each function room.
const FIRST: u64 = 0xffff_8000_0000_0000;
const APART: u64 = 1 << 21;

/// The functions that events named.
#[derive(Debug, Default)]
pub(super) struct FunctionNames {
    numbers: BTreeMap<String, u64>,
    /// One came since they were last asked for.
    grown: bool,
}

impl FunctionNames {
    /// The number of `text`, a function as events print it; 0 where it has no name.
    fn number(&mut self, text: &str) -> u64 {
        let name = text.split(['+', '/', ' ']).next().unwrap_or("");
        let hidden = name.is_empty() || name.starts_with("0x") || name.starts_with("(nil");
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.$".contains(&b));
        if hidden || !plain || name.len() > 128 || name.bytes().all(|b| b.is_ascii_hexdigit()) {
            return 0;
        }
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let Ok(n) = u64::try_from(self.numbers.len()) else { return 0 };
        if self.numbers.len() >= NAMES_MAX {
            return 0;
        }
        let number = FIRST.saturating_add(n.saturating_mul(APART));
        self.numbers.insert(name.to_owned(), number);
        self.grown = true;
        number
    }

    /// All of them, where one came since the last time.
    pub(super) fn grown(&mut self) -> Option<Symbols> {
        if !std::mem::take(&mut self.grown) {
            return None;
        }
        let mut text = String::new();
        for (name, number) in &self.numbers {
            // A String takes whatever is written.
            writeln!(text, "{number:016x} T {name}").unwrap_or_default();
        }
        Some(Symbols::parse(&text))
    }
}

/// The value of `key` in `text`, up to a blank.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let at = begin(text, key)?;
    first_word(text.get(at..)?).map(|(word, _)| word.trim_end_matches([',', ')']))
}

/// The value of `key`, which may have blanks, up to the key `next`.
fn up_to<'a>(text: &'a str, key: &str, next: &str) -> Option<&'a str> {
    let rest = text.get(begin(text, key)?..)?;
    let mut ends = rest.match_indices(next).filter(|(at, _)| {
        rest.get(..*at).is_some_and(|before| before.ends_with(' '))
            && rest.get(at.saturating_add(next.len())..).is_some_and(|t| t.starts_with('='))
    });
    ends.next().and_then(|(at, _)| rest.get(..at)).map(str::trim)
}

/// Where the value of `key` begins.
fn begin(text: &str, key: &str) -> Option<usize> {
    let mut all = text.match_indices(key).filter(|(at, _)| {
        let before = text.get(..*at).unwrap_or("");
        let after = text.get(at.saturating_add(key.len())..).unwrap_or("");
        (before.is_empty() || before.ends_with([' ', '('])) && after.starts_with('=')
    });
    all.next().and_then(|(at, _)| at.checked_add(key.len())?.checked_add(1))
}

fn int<N: std::str::FromStr>(text: &str, key: &str) -> Option<N> {
    number(value(text, key)?)
}

/// An address, with or without `0x`.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// The event `name` with its fields as `text`; `None` for those that are not understood or not whole.
pub(super) fn event(name: &str, text: &str, names: &mut FunctionNames) -> Option<Event> {
    if let Some(vector) = vector(name, text) {
        return Some(vector);
    }
    Some(match name {
        "sched_switch" => switch(text)?,
        "sched_waking" => waking(text)?,
        "sched_wakeup" | "sched_wakeup_new" => match waking(text)? {
            Event::Waking { pid, cpu, .. } => Event::Wakeup { pid, cpu },
            other => other,
        },
        "sched_migrate_task" => Event::Migrate {
            pid: int(text, "pid")?,
            from: int(text, "orig_cpu")?,
            to: int(text, "dest_cpu")?,
        },
        "sched_pi_setprio" => Event::Prio {
            pid: int(text, "pid")?,
            old: int(text, "oldprio")?,
            new: int(text, "newprio")?,
        },
        "hrtimer_start" => Event::TimerStart {
            timer: address(value(text, "hrtimer")?)?,
            function: value(text, "function").map_or(0, |f| names.number(f)),
            due_ns: int(text, "softexpires")?,
            latest_ns: int(text, "expires")?,
        },
        "hrtimer_expire_entry" => Event::TimerExpire {
            timer: address(value(text, "hrtimer")?)?,
            function: value(text, "function").map_or(0, |f| names.number(f)),
            now_ns: int(text, "now")?,
        },
        "hrtimer_expire_exit" => Event::TimerExit { timer: address(value(text, "hrtimer")?)? },
        "irq_handler_entry" => {
            Event::IrqEntry { irq: int(text, "irq")?, name: Word::new(value(text, "name")?) }
        }
        "irq_handler_exit" => Event::IrqExit { irq: int(text, "irq")? },
        "softirq_entry" => Event::SoftirqEntry { vec: int(text, "vec")? },
        "softirq_exit" => Event::SoftirqExit { vec: int(text, "vec")? },
        "ipi_send_cpu" => Event::IpiSend {
            cpu: int(text, "cpu")?,
            callsite: names.number(value(text, "callsite")?),
            callback: names.number(value(text, "callback")?),
        },
        "csd_function_entry" => Event::CallEntry { function: names.number(value(text, "func")?) },
        "csd_function_exit" => Event::CallExit,
        "nmi_handler" => {
            let (handler, rest) = text.split_once("()")?;
            let ns = rest.split_once("delta_ns:")?.1;
            Event::Nmi { handler: names.number(handler), ns: number(first_word(ns)?.0)? }
        }
        "workqueue_execute_start" => {
            let function = text.split_once("function ")?.1;
            Event::WorkStart { function: names.number(first_word(function)?.0) }
        }
        "workqueue_execute_end" => Event::WorkEnd,
        "contention_begin" => {
            let lock = address(first_word(text)?.0)?;
            let flags = text.split_once("flags=").map_or("", |(_, f)| f);
            Event::LockWait { lock, flags: u32::from(flags.contains("SPIN")) }
        }
        "contention_end" => Event::LockGot { lock: address(first_word(text)?.0)? },
        "page_fault_user" => Event::PageFault { mode: FaultMode::User, address: fault(text) },
        "page_fault_kernel" => Event::PageFault { mode: FaultMode::Kernel, address: fault(text) },
        "cpu_idle" => {
            Event::Idle { state: Some(int::<u32>(text, "state")?).filter(|s| *s != u32::MAX) }
        }
        "cpu_frequency" => Event::Frequency { cpu: int(text, "cpu_id")?, khz: int(text, "state")? },
        "console" => Event::Console,
        _ => return None,
    })
}

/// An address is not needed, and kernels print it in several ways.
fn fault(text: &str) -> u64 {
    value(text, "address").and_then(address).unwrap_or(0)
}

fn vector(name: &str, text: &str) -> Option<Event> {
    let (name, entry) = match name.strip_suffix("_entry") {
        Some(name) => (name, true),
        None => (name.strip_suffix("_exit")?, false),
    };
    let vector = match name {
        "local_timer" => Vector::Timer,
        "reschedule" => Vector::Ipi("reschedule"),
        "call_function" | "call_function_single" => Vector::Ipi("function call"),
        "irq_work" => Vector::Ipi("irq_work"),
        "ipi" if text.contains("Rescheduling") => Vector::Ipi("reschedule"),
        "ipi" => Vector::Ipi("ipi"),
        "thermal_apic" => Vector::Other("thermal interrupt"),
        _ => return None,
    };
    Some(if entry { Event::VectorEntry(vector) } else { Event::VectorExit(vector) })
}

/// `prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=0`, or `a:1 [120] S ==> b:2 [0]`.
fn switch(text: &str) -> Option<Event> {
    let (left, right) = text.split_once("==>")?;
    let (left, right) = (left.trim(), right.trim());
    if left.starts_with("prev_comm=") {
        return Some(Event::Switch {
            prev: int(left, "prev_pid")?,
            prev_prio: int(left, "prev_prio")?,
            prev_state: state(value(left, "prev_state")?),
            prev_comm: Word::new(up_to(left, "prev_comm", "prev_pid")?),
            next: int(right, "next_pid")?,
            next_prio: int(right, "next_prio")?,
            next_comm: Word::new(up_to(right, "next_comm", "next_pid")?),
        });
    }
    let (prev_comm, prev, prev_prio, rest) = bracketed(left)?;
    let (next_comm, next, next_prio, _) = bracketed(right)?;
    let prev_state = state(rest);
    Some(Event::Switch { prev, prev_prio, prev_state, prev_comm, next, next_prio, next_comm })
}

/// `comm=a pid=1 prio=120 target_cpu=003`, or `a:1 [120] success=1 CPU:003`.
fn waking(text: &str) -> Option<Event> {
    if text.starts_with("comm=") {
        let (pid, prio) = (int(text, "pid")?, int(text, "prio")?);
        let cpu = int(text, "target_cpu").or_else(|| int(text, "cpu"))?;
        return Some(Event::Waking {
            pid,
            prio,
            cpu,
            comm: Word::new(up_to(text, "comm", "pid")?),
        });
    }
    let (comm, pid, prio, rest) = bracketed(text)?;
    let cpu = number(first_word(rest.split_once("CPU:")?.1)?.0)?;
    Some(Event::Waking { pid, prio, cpu, comm })
}

/// `a:1 [120] R`: name, number, priority, and what follows.
fn bracketed(text: &str) -> Option<(Word, i32, i32, &str)> {
    let (name, rest) = text.rsplit_once(" [")?;
    let (prio, rest) = rest.split_once(']')?;
    let (comm, pid) = name.trim().rsplit_once(':')?;
    Some((Word::new(comm.trim()), number(pid)?, number(prio)?, rest.trim()))
}

/// Ready is 0; all else is some state of sleep.
fn state(text: &str) -> i64 {
    i64::from(!text.trim().starts_with('R'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Option<Event> {
        event(name, text, &mut FunctionNames::default())
    }

    #[test]
    fn both_ways_to_print_a_switch_tell_the_same() {
        let kernel = read(
            "sched_switch",
            "prev_comm=Web Content prev_pid=12 prev_prio=120 prev_state=R+ ==> next_comm=a [b] next_pid=7 next_prio=9",
        );
        let tools = read("sched_switch", "Web Content:12 [120] R+ ==> a [b]:7 [9]");
        assert!(kernel.is_some());
        assert_eq!(kernel, tools);
        let Some(Event::Switch { prev_state: 0, next: 7, .. }) = kernel else {
            panic!("{kernel:?}")
        };
    }

    #[test]
    fn wake_ups_of_kernel_and_tools() {
        let kernel = read("sched_waking", "comm=a pid=x pid=7 prio=9 target_cpu=003");
        assert_eq!(kernel, None, "a name that looks like a field is not guessed at");
        let kernel = read("sched_wakeup", "comm=a b pid=7 prio=9 success=1 target_cpu=003");
        assert_eq!(kernel, Some(Event::Wakeup { pid: 7, cpu: 3 }));
        assert_eq!(read("sched_wakeup", "a b:7 [9] success=1 CPU:003"), kernel);
        assert_eq!(read("sched_wakeup", "a b:7 [9]<CANT FAIL> CPU:003"), kernel);
    }

    #[test]
    fn functions_are_names_and_hidden_addresses_are_none() {
        let mut names = FunctionNames::default();
        let text = "hrtimer=00000000ab function=hrtimer_wakeup now=5";
        let first = event("hrtimer_expire_entry", text, &mut names);
        let again = text.replace("wakeup", "wakeup/0x0");
        assert_eq!(event("hrtimer_expire_entry", &again, &mut names), first);
        let symbols = names.grown().unwrap();
        assert!(symbols.address("hrtimer_wakeup").is_some() && names.grown().is_none());
        let hidden = text.replace("hrtimer_wakeup", "0xffffffff81");
        let Some(Event::TimerExpire { function: 0, .. }) =
            event("hrtimer_expire_entry", &hidden, &mut names)
        else {
            panic!()
        };
    }

    #[test]
    fn what_is_not_whole_is_no_event() {
        for (name, text) in [
            ("sched_switch", "prev_comm=a prev_pid=12 ==>"),
            ("sched_switch", "==>"),
            ("sched_waking", "comm="),
            ("nmi_handler", "x()"),
            ("contention_begin", ""),
            ("no_such_event", "x=1"),
        ] {
            assert_eq!(read(name, text), None, "{name} {text}");
        }
    }
}
