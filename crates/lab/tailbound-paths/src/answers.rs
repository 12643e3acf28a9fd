// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each answer to an edge of a simulated GPIO line on one CPU: from the line to the interrupt, to its thread, to the thread
//! that answers, to the output.
//!
//! Units: ns of QEMU's clock.
//! Edges are made by a thread that a timer wakes ([`crate::wakeups`]). The thread that answers is the one that sets the output;
//! its wait is over where it last came to user mode before that, otherwise than from an interrupt or exception.
//!
//! ```text
//! the line ─► interrupt, which stamps it ─► its thread ─► the answering thread in user mode ─► output ─► user mode again
//!             └────────────────────────── the sample, and the reading of the clocks ─────────────────────────┘
//! ```

use std::collections::{HashMap, VecDeque};

use tailbound_core::paths::{FROM_STAMP, SplitPart};

use crate::log::Record;
use crate::plan::{PlanError, Symbols};
use crate::record::{kind, state};
use crate::wakeups::{Aways, WakeUp};

/// From the change of the line to the begin of the handler that stamps it: before the sample begins.
pub const LINE: &str = "line to interrupt";
/// What a sample is made of, in the order of [`Answer::legs`].
pub const LEGS: [&str; 5] =
    [FROM_STAMP, "to the answering thread", "to the output", "the output", "reading the clocks"];

/// Functions that an answer is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerMarks {
    /// The simulated chip raises the interrupt of a line.
    line: u64,
    /// The handler that stamps an edge.
    stamp: u64,
    /// The thread of that interrupt hands the edge over.
    serves: u64,
    /// A level is set from user mode.
    output: u64,
}

impl AnswerMarks {
    /// Of a kernel with simulated lines.
    pub(crate) fn of(symbols: &Symbols<'_>) -> Result<Self, PlanError> {
        let named = |name| symbols.named(name).ok_or(PlanError::Lacking(name));
        Ok(Self {
            line: named("irq_sim_set_irqchip_state")?,
            stamp: named("edge_irq_handler")?,
            serves: named("edge_irq_thread")?,
            output: named("linereq_ioctl")?,
        })
    }

    /// Where they are.
    pub(crate) fn all(self) -> [u64; 4] {
        [self.line, self.stamp, self.serves, self.output]
    }
}

/// One answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The thread that answered.
    pub thread: u64,
    /// The line changed.
    pub line_ns: u64,
    /// The handler that stamps it began.
    pub stamp_ns: u64,
    /// The interrupt's thread began to serve it.
    pub served_ns: u64,
    /// The thread's wait was over, and it was in user mode.
    pub user_ns: u64,
    /// The output began to be set.
    pub output_ns: u64,
    /// The thread was in user mode again.
    pub given_ns: u64,
    /// How long interrupts had it out of user mode after its wait, and after the output: perhaps before it read its clock.
    pub away_ns: [Aways; 2],
}

impl Answer {
    /// Lengths of [`LEGS`]: what the sample has besides is the reading of the clocks.
    #[must_use]
    pub fn legs(&self, latency_ns: i64) -> [i64; 5] {
        let steps = [self.stamp_ns, self.served_ns, self.user_ns, self.output_ns, self.given_ns];
        let mut legs = [0; 5];
        for (leg, pair) in legs.iter_mut().zip(steps.windows(2)) {
            if let [from, to] = pair {
                *leg = to.cast_signed() - from.cast_signed();
            }
        }
        let reading = latency_ns - (self.given_ns.cast_signed() - self.stamp_ns.cast_signed());
        if let Some(last) = legs.last_mut() {
            *last = reading;
        }
        legs
    }

    /// From the line to the begin of the handler that stamps it.
    #[must_use]
    pub fn to_interrupt_ns(&self) -> i64 {
        self.stamp_ns.cast_signed() - self.line_ns.cast_signed()
    }

    /// From the stamp to the answering thread, as a wake-up that was due, and came, at the stamp.
    #[must_use]
    pub fn start(&self) -> WakeUp {
        self.as_wake_up(self.user_ns, 0)
    }

    /// From the stamp until the output is set, in the same way.
    #[must_use]
    pub fn whole(&self) -> WakeUp {
        self.as_wake_up(self.given_ns, 1)
    }

    fn as_wake_up(&self, user_ns: u64, away: usize) -> WakeUp {
        WakeUp {
            thread: self.thread,
            due_ns: self.stamp_ns,
            taken_ns: self.stamp_ns,
            user_ns,
            away_ns: self.away_ns.get(away).copied().unwrap_or_default(),
            ..WakeUp::default()
        }
    }
}

/// Each part of all answers, with these samples.
pub(crate) fn split(all: &[Answer], latencies_ns: &[i64]) -> Vec<SplitPart> {
    let parts: Vec<[i64; 5]> = all.iter().zip(latencies_ns).map(|(a, ns)| a.legs(*ns)).collect();
    let leg = |at: usize| parts.iter().filter_map(move |legs| legs.get(at).copied()).collect();
    let line = part(LINE, all.iter().map(Answer::to_interrupt_ns).collect());
    let legs = LEGS.iter().enumerate().map(|(at, name)| part(name, leg(at)));
    std::iter::once(line).chain(legs).collect()
}

fn part(name: &str, all_ns: Vec<i64>) -> SplitPart {
    let n = i64::try_from(all_ns.len()).unwrap_or(i64::MAX).max(1);
    SplitPart {
        name: name.to_owned(),
        least_ns: all_ns.iter().copied().min().unwrap_or(0),
        mean_ns: all_ns.iter().sum::<i64>() / n,
        longest_ns: all_ns.iter().copied().max().unwrap_or(0),
    }
}

/// A thread's time in user mode.
#[derive(Clone, Copy, Debug, Default)]
struct InUser {
    /// Since when, otherwise than from an interrupt.
    since_ns: u64,
    /// Since when an interrupt has the CPU, if one has it.
    interrupted_ns: Option<u64>,
    away_ns: Aways,
}

/// See the module.
#[derive(Debug)]
pub struct Answers {
    marks: AnswerMarks,
    /// Who makes the edges, and from when on they are judged.
    sender: u64,
    from_ns: u64,
    state: u8,
    current: u64,
    /// When the last interrupt or exception was taken.
    taken_ns: u64,
    threads: HashMap<u64, InUser>,
    /// Edges that were not answered yet.
    open: VecDeque<Answer>,
    /// Is the output of the first of them being set?
    is_given: bool,
    /// Whole ones, in their order.
    pub all: Vec<Answer>,
}

impl Answers {
    /// To the edges of the thread with these wake-ups.
    #[must_use]
    pub fn new(marks: AnswerMarks, wakeups: &[WakeUp]) -> Self {
        let first = wakeups.first().copied().unwrap_or_default();
        Self {
            marks,
            sender: first.thread,
            from_ns: first.user_ns,
            state: 0,
            current: 0,
            taken_ns: 0,
            threads: HashMap::new(),
            open: VecDeque::new(),
            is_given: false,
            all: Vec::new(),
        }
    }

    /// The next record.
    pub fn add(&mut self, r: &Record) {
        match r.kind {
            kind::ENTER => self.taken_ns = r.t_ns,
            kind::STATE => {
                let (was, is) = (self.state & state::USER != 0, r.state & state::USER != 0);
                self.state = r.state;
                match (was, is) {
                    (true, false) => self.leaves(r.t_ns),
                    (false, true) => self.in_user(r.t_ns),
                    _ => {}
                }
            }
            kind::SWITCH => self.current = r.value,
            kind::POINT => self.reaches(r),
            _ => {}
        }
    }

    fn reaches(&mut self, r: &Record) {
        let AnswerMarks { line, stamp, serves, output } = self.marks;
        if r.value == line {
            if self.current == self.sender && r.t_ns >= self.from_ns {
                self.open.push_back(Answer { line_ns: r.t_ns, ..Answer::default() });
            }
        } else if r.value == stamp {
            if let Some(edge) = self.open.iter_mut().find(|a| a.stamp_ns == 0) {
                edge.stamp_ns = r.t_ns;
            }
        } else if r.value == serves {
            if let Some(edge) = self.open.iter_mut().find(|a| a.served_ns == 0 && a.stamp_ns != 0) {
                edge.served_ns = r.t_ns;
            }
        } else if r.value == output {
            self.outputs(r.t_ns);
        }
    }

    /// The thread on the CPU sets the output, for the first edge.
    fn outputs(&mut self, t_ns: u64) {
        let Some(first) = self.open.front_mut().filter(|a| a.served_ns != 0 && !self.is_given)
        else {
            return;
        };
        let user = self.threads.get(&self.current).copied().unwrap_or_default();
        (first.thread, first.user_ns, first.output_ns) = (self.current, user.since_ns, t_ns);
        first.away_ns = [user.away_ns, Aways::default()];
        self.is_given = true;
    }

    fn leaves(&mut self, t_ns: u64) {
        let interrupted = self.taken_ns == t_ns;
        let user = self.threads.entry(self.current).or_default();
        user.interrupted_ns = interrupted.then_some(t_ns);
    }

    fn in_user(&mut self, t_ns: u64) {
        let user = self.threads.entry(self.current).or_default();
        if let Some(from_ns) = user.interrupted_ns.take() {
            let away_ns = t_ns - from_ns;
            put(&mut user.away_ns, away_ns);
            // Behind the output, as long as the thread called nothing.
            let last = self.all.last_mut();
            if let Some(last) =
                last.filter(|a| a.thread == self.current && a.given_ns == user.since_ns)
            {
                last.away_ns[1] = user.away_ns;
            }
            return;
        }
        (user.since_ns, user.away_ns) = (t_ns, Aways::default());
        let ends = |a: &Answer| a.thread == self.current && a.output_ns != 0;
        if self.is_given && self.open.front().is_some_and(ends) {
            self.is_given = false;
            self.all.extend(self.open.pop_front().map(|a| Answer { given_ns: t_ns, ..a }));
        }
    }
}

fn put(away: &mut Aways, ns: u64) {
    if let Some(free) = away.iter_mut().find(|a| **a == 0) {
        *free = ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDER: u64 = 7;
    const ANSWERS: u64 = 8;
    const SERVES: u64 = 9;
    const LINE_AT: u64 = 0x1;
    const STAMP: u64 = 0x2;
    const SERVE: u64 = 0x3;
    const OUTPUT: u64 = 0x4;

    fn record(t_ns: u64, kind: u8, state: u8, value: u64) -> Record {
        Record { t_ns, cpu: 0, state, kind, value }
    }

    /// An edge at 120; its interrupt at 130; its thread at 150; the answer from 190 on, interrupted from 195 to 205 and again,
    /// after the output, from 245 to 260.
    fn records() -> Vec<Record> {
        let (user, off) = (state::USER, state::INTERRUPTS_OFF);
        vec![
            // An edge of the warm-up.
            record(40, kind::SWITCH, 0, SENDER),
            record(50, kind::POINT, 0, LINE_AT),
            record(60, kind::POINT, 0, STAMP),
            record(100, kind::STATE, user, 0xb),
            record(110, kind::STATE, 0, 0xe),
            record(120, kind::POINT, 0, LINE_AT),
            record(128, kind::ENTER, 0, 0xa),
            record(128, kind::STATE, off, 0xa),
            record(130, kind::POINT, off, STAMP),
            record(140, kind::SWITCH, 0, SERVES),
            record(150, kind::POINT, 0, SERVE),
            record(170, kind::SWITCH, 0, ANSWERS),
            record(180, kind::STATE, user, 0xb),
            // It waited by two calls.
            record(185, kind::STATE, 0, 0xe),
            record(190, kind::STATE, user, 0xb),
            record(195, kind::ENTER, user, 0xa),
            record(195, kind::STATE, off, 0xa),
            record(205, kind::STATE, user, 0xb),
            record(220, kind::STATE, 0, 0xe),
            record(225, kind::POINT, 0, OUTPUT),
            record(240, kind::STATE, user, 0xb),
            record(245, kind::ENTER, user, 0xa),
            record(245, kind::STATE, off, 0xa),
            record(260, kind::STATE, user, 0xb),
            record(280, kind::STATE, 0, 0xe),
            record(300, kind::STATE, user, 0xb),
        ]
    }

    #[test]
    fn an_answer_is_what_lies_between_line_interrupt_threads_and_output() {
        let marks = AnswerMarks { line: LINE_AT, stamp: STAMP, serves: SERVE, output: OUTPUT };
        let woken = WakeUp { thread: SENDER, user_ns: 100, ..WakeUp::default() };
        let mut all = Answers::new(marks, &[woken]);
        records().iter().for_each(|r| all.add(r));
        let [one] = all.all.try_into().unwrap();
        assert_eq!((one.thread, one.to_interrupt_ns()), (ANSWERS, 10));
        assert_eq!(one.legs(155), [20, 40, 35, 15, 45]);
        assert_eq!(one.legs(155).iter().sum::<i64>(), 155);
        assert_eq!(one.away_ns, [[10, 0, 0, 0], [15, 0, 0, 0]]);
        assert_eq!((one.start().due_ns, one.start().user_ns), (130, 190));
        assert_eq!((one.whole().due_ns, one.whole().user_ns), (130, 240));
    }
}
