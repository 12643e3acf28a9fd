// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for real-time programs, held against the events of watched threads while these come in;
//! each violation with its user stack.
//!
//! Units: ns of CLOCK_MONOTONIC.
//! Not here: the rules (`tailbound-trace`), what is said of them (`tailbound-report`).

mod stacks;

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::json;
use tailbound_core::rules::{Rule, ViolationRecord};
use tailbound_host::Root;
use tailbound_trace::event::{Entry, Event, FaultMode};
use tailbound_trace::rules::{CallTable, KERNEL_ACCESS, Rules, Tally, Violation};

pub use stacks::UserStacks;
use stacks::{SampleCause, Stacks};

use crate::sink::Sink;

/// Violations whose stacks are looked up in one go; the others of a burst are counted without.
const STACKS_MAX: usize = 500;

/// Names that are kept; beyond that those of threads that are forgotten go.
const NAMES_MAX: usize = 8192;

/// See the module.
pub struct RuleCheck {
    rules: Rules,
    stacks: Stacks,
    tally: Tally,
    names: BTreeMap<i32, String>,
    waiting: Vec<Violation>,
    origin_ns: u64,
    /// Page faults that copying the stacks made.
    ours: u64,
    /// How often events were lost.
    losses: u64,
    /// Page faults are events here.
    faults: bool,
    calls: bool,
    log: Log,
}

/// Every violation as a line, where that is asked for.
#[derive(Default)]
struct Log {
    to: Option<Box<dyn Write>>,
    failed: Option<String>,
}

impl Log {
    fn write(&mut self, v: &Violation, name: &str) {
        let Some(to) = &mut self.to else { return };
        let line = json!({
            "t_ns": v.t_ns,
            "call_ns": v.at_ns,
            "tid": v.tid,
            "name": name,
            "rule": v.rule,
            "site": v.site,
            "cost": v.cost,
            "text": v.text,
        });
        if let Err(e) = writeln!(to, "{line}") {
            (self.to, self.failed) = (None, Some(e.to_string()));
        }
    }
}

/// A sink of events, and beside it the check of rules where it is wanted.
pub struct WithRules<S> {
    /// The sink.
    pub inner: S,
    /// The check.
    pub rules: Option<RuleCheck>,
}

impl<S: Sink> Sink for WithRules<S> {
    fn watch(&mut self, tid: i32) {
        self.inner.watch(tid);
        if let Some(rules) = &mut self.rules {
            rules.follow(tid);
        }
    }
    fn name_thread(&mut self, tid: i32, name: &str) {
        self.inner.name_thread(tid, name);
        if let Some(rules) = &mut self.rules {
            rules.watch(tid, name);
        }
    }
    fn lost(&mut self, t_ns: u64) {
        self.inner.lost(t_ns);
        if let Some(rules) = &mut self.rules {
            rules.lost();
        }
    }
    fn polls(&mut self) {
        self.inner.polls();
        if let Some(rules) = &mut self.rules {
            rules.stacks.poll();
        }
    }
    fn entry(&mut self, e: &Entry) {
        let Some(rules) = &mut self.rules else { return self.inner.entry(e) };
        // A fault that we made is none of the program's, whoever asks.
        if rules.is_ours(e) {
            return;
        }
        self.inner.entry(e);
        rules.entry(e);
    }
    fn polled(&mut self) {
        self.inner.polled();
        if let Some(rules) = &mut self.rules {
            rules.settle();
        }
    }
}

/// What the check came to.
#[derive(Clone, Debug, Default)]
pub struct RulesFound {
    /// By rule and place.
    pub records: Vec<ViolationRecord>,
    /// What could not be judged, and why.
    pub notes: Vec<String>,
}

/// Rules that cannot be checked here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--rules: the system calls of {arch} are not known")]
pub struct UnknownCalls {
    /// This program's architecture.
    pub arch: &'static str,
}

impl RuleCheck {
    /// Nothing was seen yet. Times count from `begin_ns`.
    ///
    /// # Errors
    /// The system calls of this architecture are not known.
    pub fn new(root: &Root, stacks: UserStacks, begin_ns: i64) -> Result<Self, UnknownCalls> {
        let arch = std::env::consts::ARCH;
        let calls = CallTable::of(arch).ok_or(UnknownCalls { arch })?;
        Ok(Self {
            rules: Rules::new(calls),
            stacks: Stacks::new(root, stacks),
            tally: Tally::default(),
            names: BTreeMap::new(),
            waiting: Vec::new(),
            origin_ns: begin_ns.max(0).cast_unsigned(),
            ours: 0,
            losses: 0,
            faults: false,
            calls: false,
            log: Log::default(),
        })
    }

    /// Every violation is written to `to` as a JSON line too, with its time on CLOCK_MONOTONIC.
    pub fn with_log(&mut self, to: Box<dyn Write>) {
        self.log.to = Some(to);
    }

    /// The stacks of this thread are taken from here on.
    pub fn follow(&mut self, tid: i32) {
        self.rules.watch(tid);
        self.stacks.watch(tid);
    }

    /// One thread of the program more, and what it is called.
    pub fn watch(&mut self, tid: i32, name: &str) {
        self.rules.call(tid, name);
        if self.names.len() >= NAMES_MAX {
            self.names.retain(|tid, _| self.rules.knows(*tid));
        }
        if self.names.get(&tid).is_none_or(|n| n != name) {
            self.names.insert(tid, name.to_owned());
        }
    }

    /// Events of some CPU were lost.
    pub fn lost(&mut self) {
        self.rules.lost();
        self.losses += 1;
    }

    /// The next event.
    pub fn entry(&mut self, e: &Entry) {
        match e.event {
            Event::PageFault { .. } => self.faults = true,
            Event::SysEnter { .. } => self.calls = true,
            _ => {}
        }
        self.rules.entry(e);
    }

    /// Was this page fault made by the copying of stacks? Where a stack is shorter than what is copied of it, the copy
    /// itself faults at its end.
    fn is_ours(&mut self, e: &Entry) -> bool {
        let Event::PageFault { mode: FaultMode::Kernel, address } = e.event else { return false };
        let ours = self.stacks.touched(e.pid, address);
        self.ours += u64::from(ours);
        ours
    }

    /// Gives what was found since the last call its stacks. To be called after each poll.
    pub fn settle(&mut self) {
        self.waiting.append(&mut self.rules.take());
        self.tell();
    }

    fn tell(&mut self) {
        let origin_ns = self.origin_ns;
        for (i, violation) in self.waiting.drain(..).enumerate() {
            // The end of a copy whose sample came only now.
            if violation.rule == Rule::PageFault
                && violation.site == KERNEL_ACCESS
                && self.stacks.touched(violation.tid, violation.address)
            {
                self.ours += 1;
                continue;
            }
            let told = self.names.get(&violation.tid).map(String::as_str);
            let name = self.rules.name(violation.tid).or(told).unwrap_or("");
            self.log.write(&violation, name);
            let (stack, place) = if i < STACKS_MAX {
                let cause = match violation.rule {
                    Rule::PageFault => SampleCause::PageFault,
                    _ => SampleCause::SystemCall,
                };
                self.stacks.at(violation.tid, violation.at_ns, cause)
            } else {
                (tailbound_core::rules::Stack::absent("too many violations at once"), None)
            };
            self.tally.add(violation, name, place.as_deref(), stack, origin_ns);
        }
    }

    /// How many violations there were so far.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.tally.n()
    }

    /// Ends it.
    #[must_use]
    pub fn finish(mut self) -> RulesFound {
        self.stacks.poll();
        self.settle();
        self.waiting = self.rules.finish();
        self.tell();
        if let Some(to) = &mut self.log.to
            && let Err(e) = to.flush()
        {
            self.log.failed = Some(e.to_string());
        }
        let mut notes = Vec::new();
        if let Some(why) = &self.log.failed {
            notes.push(format!("the file of violations is not whole: {why}"));
        }
        if !self.calls {
            notes.push(
                "no system call of a watched thread was recorded: only the rule page-fault is judged"
                    .to_owned(),
            );
        }
        if !self.faults && !cfg!(any(target_arch = "x86_64", target_arch = "riscv64")) {
            notes.push(
                "page-fault is unknown: this architecture's kernel has no events of page faults"
                    .to_owned(),
            );
        }
        if self.losses > 0 {
            notes.push(format!(
                "events were lost {} times: violations of these moments are not seen",
                self.losses
            ));
        }
        if self.rules.too_late() > 0 {
            notes.push(format!(
                "{} wake-ups by less urgent threads did not end the sleep they met, and are not counted: they were meant for a lock that the thread already had",
                self.rules.too_late()
            ));
        }
        if self.ours > 0 {
            notes.push(format!(
                "{} page faults were made by the copying of stacks, and are not counted",
                self.ours
            ));
        }
        if self.tally.left_out() > 0 {
            notes.push(format!(
                "{} violations at further places are not told apart",
                self.tally.left_out()
            ));
        }
        RulesFound { records: self.tally.records(), notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_trace::event::Flags;

    /// Counts what is handed on.
    #[derive(Default)]
    struct Faults(usize);

    impl Sink for Faults {
        fn watch(&mut self, _tid: i32) {}
        fn name_thread(&mut self, _tid: i32, _name: &str) {}
        fn lost(&mut self, _t_ns: u64) {}
        fn entry(&mut self, e: &Entry) {
            self.0 += usize::from(matches!(e.event, Event::PageFault { .. }));
        }
    }

    #[test]
    fn faults_of_our_copies_are_nobodys() {
        if CallTable::of(std::env::consts::ARCH).is_none() {
            return;
        }
        let mut check =
            RuleCheck::new(&Root::real(), UserStacks::Taken, 0).expect("a known architecture");
        check.stacks.copied_up_to(7, 0x7000);
        let mut sink = WithRules { inner: Faults::default(), rules: Some(check) };
        for (pid, mode, address) in [
            (7, FaultMode::Kernel, 0x7000),
            (7, FaultMode::Kernel, 0x7010),
            (7, FaultMode::User, 0x7000),
            (7, FaultMode::Kernel, 0x9000),
            (8, FaultMode::Kernel, 0x7000),
        ] {
            let event = Event::PageFault { mode, address };
            sink.entry(&Entry { t_ns: 1, cpu: 0, pid, flags: Flags(0), event });
        }
        assert_eq!(sink.inner.0, 3, "two of five were ours");
        assert_eq!(sink.rules.map(|r| r.ours), Some(2));
    }
}
