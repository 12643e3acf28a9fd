// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened at the instant from which a sample was inevitable.
//!
//! Units: ns of the guest's virtual time.
//! Between two instants, at the first of which some variation still made the sample early, lies what decided: an event if
//! there is one, else the function that was executed. What is under way is told from the blocks since the kernel was entered.

use std::io::Read;

use tailbound_core::paths::TreeLine;
use tailbound_trace::symbols::Symbols;

use crate::blocks::{self, Block};
use crate::log::LogError;
use crate::names::named;
use crate::plan::Plan;
use crate::varied::{Event, Events};
use crate::window::GuestWindow;

/// Beginnings of the names of functions that a system call is called by.
const CALLS: [&str; 5] = ["__x64_sys_", "__ia32_sys_", "__do_sys_", "__se_sys_", "ksys_"];
/// A system call has begun by then.
const CALL_NS: u64 = 5_000;
/// So much before the instant is looked at, at most.
const BEFORE_NS: u64 = 20_000_000;
/// The last block before.
const EARLIER_NS: u64 = 5_000;

/// The two instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instants {
    /// The latest at which some variation made it early; none: there was none.
    pub open_ns: Option<u64>,
    /// From here on it was inevitable.
    pub at_ns: u64,
    /// The sample's end.
    pub user_ns: u64,
}

impl Instants {
    /// Of which time every block is wanted: since the kernel was entered the last time before.
    #[must_use]
    pub fn window(&self, events: &Events) -> GuestWindow {
        let first = self.open_ns.unwrap_or(self.at_ns).min(self.at_ns);
        let entered = events.last(first, |e| matches!(e, Event::Call(_) | Event::Interrupt(_)));
        let from = entered.map_or(first, |(t, _)| t).max(first.saturating_sub(BEFORE_NS));
        GuestWindow { from_ns: from.saturating_sub(EARLIER_NS), to_ns: self.user_ns }
    }
}

/// What decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisiveEvent {
    /// Another thread got the CPU: its name.
    Switched(String),
    /// An interrupt or exception came: its entry.
    Interrupted(String),
    /// A system call began: its name, where it is known.
    Called(Option<String>),
    /// Preemption or interrupts were disabled in this function.
    Closed(String),
    /// None of these: this function was executed.
    Executed(String),
    /// The guest was idle.
    Idle,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decisive {
    /// What decided.
    pub what: DecisiveEvent,
    /// The thread on the CPU, where its name is known.
    pub thread: Option<String>,
    /// The system call that was under way.
    pub call: Option<String>,
    /// The function that goes on at the instant.
    pub function: String,
    /// What was under way, from the outermost function inwards.
    pub under_way: Vec<String>,
    /// No block of instructions begins between the two instants.
    pub is_exact: bool,
    /// What was executed from there to the sample.
    pub tree: Vec<TreeLine>,
}

/// From the log of a run whose blocks were recorded in [`Instants::window`].
///
/// # Errors
/// [`LogError`]
pub fn decisive(
    log: impl Read,
    instants: Instants,
    events: &Events,
    symbols: &Symbols,
    plan: &Plan,
) -> Result<Decisive, LogError> {
    let blocks = blocks::blocks(log, plan)?;
    let all = || blocks.iter().flatten();
    let at_ns = instants.at_ns;
    let name = |b: &Block| named(symbols, b.address).to_owned();
    let next = all().find(|b| b.t_ns >= at_ns);
    let until = GuestWindow { from_ns: 0, to_ns: next.map_or(at_ns, |b| b.t_ns + 1) };
    let before = blocks::tree(&blocks, 0, until, symbols, plan);
    let under_way: Vec<String> = before.under_way().into_iter().map(str::to_owned).collect();
    let call = under_way.iter().find_map(|f| system_call(f));
    let from = instants.open_ns.unwrap_or(at_ns);
    let happened: Vec<&Event> = events
        .all
        .iter()
        .filter(|(t, _)| *t <= at_ns && (*t > from || instants.open_ns.is_none() && *t == at_ns))
        .map(|(_, e)| e)
        .collect();
    let soon = || all().filter(|b| (at_ns..at_ns + CALL_NS).contains(&b.t_ns));
    let find = |is_it: fn(&Event) -> bool| happened.iter().find(|e| is_it(e)).copied();
    let what = if let Some(Event::Switch(_, name)) = find(|e| matches!(e, Event::Switch(..))) {
        DecisiveEvent::Switched(name.clone())
    } else if let Some(Event::Interrupt(at)) = find(|e| matches!(e, Event::Interrupt(_))) {
        DecisiveEvent::Interrupted(named(symbols, *at).to_owned())
    } else if find(|e| matches!(e, Event::Call(_))).is_some() {
        DecisiveEvent::Called(soon().find_map(|b| system_call(named(symbols, b.address))))
    } else if let Some(Event::Section(at)) = find(|e| matches!(e, Event::Section(_))) {
        DecisiveEvent::Closed(named(symbols, *at).to_owned())
    } else if find(|e| matches!(e, Event::Halt)).is_some() {
        DecisiveEvent::Idle
    } else {
        // What ended there decided, not what goes on.
        let last = all().take_while(|b| b.t_ns < at_ns).last();
        DecisiveEvent::Executed(last.or(next).map_or_else(|| "unknown".to_owned(), name))
    };
    let is_exact = instants
        .open_ns
        .is_some_and(|open| open < at_ns && !all().any(|b| b.t_ns > open && b.t_ns < at_ns));
    let after = GuestWindow { from_ns: at_ns, to_ns: instants.user_ns };
    Ok(Decisive {
        what,
        thread: events.thread.clone().filter(|name| !name.is_empty()),
        call,
        function: next.map_or_else(|| "unknown".to_owned(), name),
        under_way,
        is_exact,
        tree: blocks::tree(&blocks, 0, after, symbols, plan).lines(),
    })
}

/// `munmap`
fn system_call(function: &str) -> Option<String> {
    CALLS.iter().find_map(|begin| function.strip_prefix(begin)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::tests::made;
    use crate::plan::{Guest, X86_64_SYMBOLS as SYMBOLS};
    use crate::record::{self, kind};

    const ENTRY: u64 = 0xffff_ffff_8100_0000;
    const CALL: u64 = ENTRY + 0x100;
    const WORK: u64 = ENTRY + 0x200;

    /// A log with these blocks: when and where, one stack.
    fn log(blocks: &[(u64, u64, u64)]) -> Vec<u8> {
        let one = |(t, address, stack): &(u64, u64, u64)| {
            let state = if address >> 63 == 1 { record::block::KERNEL } else { 0 };
            (*t, kind::BLOCK, state, stack << 32 | address & u64::from(u32::MAX))
        };
        made(&blocks.iter().map(one).collect::<Vec<_>>())
    }

    fn plan() -> Plan {
        Plan::of(SYMBOLS, Guest::X86_64).unwrap()
    }

    fn symbols() -> Symbols {
        Symbols::parse(&format!(
            "{ENTRY:x} T entry_SYSCALL_64\n{CALL:x} T __x64_sys_munmap\n{WORK:x} t free_pages\n"
        ))
    }

    #[test]
    fn a_system_call_that_decided_is_named_by_the_function_that_it_comes_to() {
        let blocks =
            [(100, 0x1000, 0), (110, ENTRY, 0x4800), (120, CALL, 0x4700), (130, WORK, 0x4600)];
        let events =
            Events { all: vec![(110, Event::Call(ENTRY))], thread: Some("hackbench".to_owned()) };
        let instants = Instants { open_ns: Some(104), at_ns: 110, user_ns: 500 };
        let found = decisive(&log(&blocks)[..], instants, &events, &symbols(), &plan()).unwrap();
        assert_eq!(found.what, DecisiveEvent::Called(Some("munmap".to_owned())));
        assert_eq!((found.function.as_str(), found.is_exact), ("entry_SYSCALL_64", true));
        assert_eq!(found.call, None);
    }

    #[test]
    fn without_an_event_the_function_decided_and_its_call_is_told() {
        let blocks = [
            (110, ENTRY, 0x4800),
            (120, CALL, 0x4700),
            (130, WORK, 0x4600),
            (140, WORK + 9, 0x4600),
        ];
        let instants = Instants { open_ns: Some(120), at_ns: 140, user_ns: 500 };
        let found =
            decisive(&log(&blocks)[..], instants, &Events::default(), &symbols(), &plan()).unwrap();
        assert_eq!(found.what, DecisiveEvent::Executed("free_pages".to_owned()));
        assert_eq!((found.call.as_deref(), found.is_exact), (Some("munmap"), false));
        assert_eq!(found.thread, None);
    }
}
