// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the work is: what a program is told of it, and the line of words for it.
//!
//! Units: the host's time. The lab prints nothing: a [`Listener`] does, or not.
//! There is no line where no task is under way. A time left is told only where something was counted: the activations of a
//! watched guest, or guests that are done.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tailbound_core::units::{format_span, grouped};

use crate::boot::Phase;

/// A time left is estimated from that much counting at least.
const COUNTED: Duration = Duration::from_secs(1);

/// A part of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The kernel's image is looked for, and fetched where it is not there.
    Kernel,
    /// A guest's files are collected and hashed.
    Prepare,
    /// A guest sends its kernel's symbols.
    Symbols,
    /// The run as always.
    Plain,
    /// The run while sections and wake-ups are recorded.
    Sections,
    /// That log is read.
    ReadSections,
    /// The run while every block of instructions is recorded where it matters.
    Blocks,
    /// That log is read.
    ReadBlocks,
    /// The run again, stopped and let go: it must be the same.
    Control,
    /// Runs that differ from an instant on.
    Variations,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Due times that have passed.
    Activations,
    /// Those that have begun, of those in which instructions are recorded. They are not of one length, so that they tell no time.
    Windows,
    /// Runs that differ from an instant on.
    Variations,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It begins.
    Begun,
    /// Its next part.
    Step(Step),
    /// Its guest.
    Guest(Phase),
    /// So many of so many.
    Count(Counted, u64, u64),
}

/// Steps of a task that is watched in so many runs, with the one that tells the kernel's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps(pub usize);

/// Hears how far the work is. A program prints it, or not.
pub trait Listener: Sync {
    /// Something worth knowing.
    fn note(&self, text: &str);

    /// Work on so many tasks begins, each watched in so many steps; it ends where what is yielded is dropped.
    fn tasks(&self, total: usize, steps: Option<Steps>) -> Box<dyn TaskListener + '_>;
}

/// The same for some tasks.
pub trait TaskListener {
    /// A task moved on.
    fn moved(&self, task: usize, what: Moved);

    /// A task is over.
    fn over(&self, task: usize);

    /// Something worth knowing.
    fn note(&self, text: &str);

    /// No task is under way any more.
    fn clear(&self);
}

#[derive(Debug)]
struct Counting {
    what: Counted,
    /// When it was `first`.
    since: Instant,
    first: u64,
    done: u64,
    of: u64,
}

impl Counting {
    /// Of what is counted, how long it goes on if it goes on so.
    fn left(&self, now: Instant) -> Option<Duration> {
        let elapsed = now.saturating_duration_since(self.since);
        let counted = u32::try_from(self.done.saturating_sub(self.first)).ok()?;
        let left = u32::try_from(self.of.saturating_sub(self.done)).ok()?;
        let is_even = self.what != Counted::Windows;
        (is_even && elapsed >= COUNTED && counted > 0 && left > 0)
            .then(|| elapsed.saturating_mul(left).checked_div(counted))?
            .filter(|left| left.as_secs() > 0)
    }
}

#[derive(Debug)]
struct Task {
    began: Instant,
    step: Option<Step>,
    phase: Option<Phase>,
    counting: Option<Counting>,
}

impl Task {
    fn new(began: Instant) -> Self {
        Self { began, step: None, phase: None, counting: None }
    }

    fn moved(&mut self, what: Moved, now: Instant) {
        match what {
            Moved::Begun => {}
            Moved::Step(step) => *self = Self { step: Some(step), ..Self::new(self.began) },
            Moved::Guest(phase) => self.phase = Some(phase),
            Moved::Count(what, done, of) => match &mut self.counting {
                Some(c) if (c.what, c.of) == (what, of) => c.done = done.max(c.done),
                _ => {
                    let first = done;
                    self.counting = Some(Counting { what, since: now, first, done, of });
                }
            },
        }
    }

    /// `step 3/4 (about 5 s left), sections: 1,334 of 3,000 activations, 80 s elapsed`; a terminal of 80 columns has room for it.
    fn words(&self, steps: Option<Steps>, now: Instant) -> String {
        let left = self.counting.as_ref().and_then(|c| c.left(now));
        let left = left.map_or_else(String::new, |left| format!(" (about {} left)", span(left)));
        let step = self.step.map_or_else(String::new, |step| step.words(steps, &left));
        let guest = match (&self.counting, self.phase) {
            (Some(c), _) => {
                let what = match c.what {
                    Counted::Activations => "activations",
                    Counted::Windows => "windows",
                    Counted::Variations => "variations",
                };
                format!("{} of {} {what}", grouped(c.done), grouped(c.of))
            }
            (None, Some(Phase::Booting)) => "booting".to_owned(),
            (None, Some(Phase::Loading)) => "loading its snapshot".to_owned(),
            (None, Some(Phase::Saving)) => "making a snapshot".to_owned(),
            (None, Some(Phase::AtWork)) => "at work".to_owned(),
            (None, None) if self.step.is_none_or(Step::has_a_guest) => "preparing".to_owned(),
            (None, None) => String::new(),
        };
        let both = if step.is_empty() || guest.is_empty() { "" } else { ": " };
        let elapsed = span(now.saturating_duration_since(self.began));
        format!("{step}{both}{guest}, {elapsed} elapsed")
    }
}

impl Step {
    /// Which step of those of a watched run it is.
    fn number(self) -> Option<usize> {
        match self {
            Self::Symbols => Some(1),
            Self::Plain => Some(2),
            Self::Sections | Self::ReadSections => Some(3),
            Self::Blocks | Self::ReadBlocks => Some(4),
            Self::Kernel | Self::Prepare | Self::Control | Self::Variations => None,
        }
    }

    /// Does a guest of its own run in it?
    fn has_a_guest(self) -> bool {
        !matches!(self, Self::Kernel | Self::Prepare | Self::ReadSections | Self::ReadBlocks)
    }

    /// Its number, where it has one, what is `left` of it, and its name.
    fn words(self, steps: Option<Steps>, left: &str) -> String {
        let name = match self {
            Self::Kernel => "finding the kernel",
            Self::Prepare => "preparing the guest",
            Self::Symbols => "kernel symbols",
            Self::Plain => "unwatched run",
            Self::Sections => "sections",
            Self::ReadSections => "reading the sections",
            Self::Blocks => "instructions",
            Self::ReadBlocks => "reading the instructions",
            Self::Control => "unchanged run",
            Self::Variations => "varied runs",
        };
        match (self.number(), steps) {
            (Some(n), Some(Steps(of))) => format!("step {n}/{of}{left}, {name}"),
            _ => format!("{name}{left}"),
        }
    }
}

/// A time in whole seconds.
fn span(time: Duration) -> String {
    let s = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    format_span(s.saturating_mul(1_000_000_000))
}

/// How far all tasks are.
#[derive(Debug)]
pub struct TaskProgress {
    total: usize,
    done: usize,
    /// Of all that are done.
    took: Duration,
    steps: Option<Steps>,
    at: BTreeMap<usize, Task>,
}

impl TaskProgress {
    /// Of `total` tasks, each of which is watched in so many steps.
    #[must_use]
    pub fn new(total: usize, steps: Option<Steps>) -> Self {
        Self { total, done: 0, took: Duration::ZERO, steps, at: BTreeMap::new() }
    }

    /// A task moved on.
    pub fn moved(&mut self, task: usize, what: Moved, now: Instant) {
        self.at.entry(task).or_insert_with(|| Task::new(now)).moved(what, now);
    }

    /// A task is over.
    pub fn over(&mut self, task: usize, now: Instant) {
        self.done += 1;
        if let Some(task) = self.at.remove(&task) {
            self.took += now.saturating_duration_since(task.began);
        }
    }

    /// What all tasks still take, if each takes as long as those that are done did on average.
    fn left(&self, now: Instant) -> Option<Duration> {
        let mean = self.took.checked_div(u32::try_from(self.done).ok()?)?;
        let running = u32::try_from(self.at.len()).ok()?;
        let ahead = self.total.saturating_sub(self.done).saturating_sub(self.at.len());
        let rest = |task: &Task| mean.saturating_sub(now.saturating_duration_since(task.began));
        let begun: Duration = self.at.values().map(rest).sum();
        let whole = begun.saturating_add(mean.saturating_mul(u32::try_from(ahead).ok()?));
        whole.checked_div(running).filter(|left| left.as_secs() > 0)
    }

    /// Nothing is under way.
    pub fn clear(&mut self) {
        self.at.clear();
    }

    /// The line; `None` where nothing is under way.
    #[must_use]
    pub fn line(&self, now: Instant) -> Option<String> {
        if self.at.is_empty() {
            return None;
        }
        let all: Vec<String> = self.at.values().map(|task| task.words(self.steps, now)).collect();
        let all = all.join(" | ");
        if self.total <= 1 {
            return Some(all);
        }
        let guests = if self.at.len() == 1 { "guest" } else { "guests" };
        let left = self.left(now).map_or_else(String::new, |l| format!("about {} left, ", span(l)));
        let (done, total, running) = (self.done, self.total, self.at.len());
        Some(format!("{done} of {total} done, {left}{running} {guests}: {all}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that the host has no part in.
    fn clock() -> impl Fn(u64) -> Instant {
        let begin = Instant::now();
        move |s| begin + Duration::from_secs(s)
    }

    #[test]
    fn the_line_of_a_watched_run_moves_with_its_steps_and_activations() {
        let at = clock();
        let mut state = TaskProgress::new(1, Some(Steps(4)));
        assert_eq!(state.line(at(3)), None, "nothing is under way");
        let lines = [
            (Moved::Step(Step::Plain), 0, "step 2/4, unwatched run: preparing, 0 s elapsed"),
            (
                Moved::Guest(Phase::Loading),
                1,
                "step 2/4, unwatched run: loading its snapshot, 1 s elapsed",
            ),
            (Moved::Guest(Phase::AtWork), 9, "step 2/4, unwatched run: at work, 9 s elapsed"),
            (Moved::Step(Step::Sections), 10, "step 3/4, sections: preparing, 10 s elapsed"),
            (Moved::Guest(Phase::AtWork), 11, "step 3/4, sections: at work, 11 s elapsed"),
            (
                Moved::Count(Counted::Activations, 500, 3000),
                12,
                "step 3/4, sections: 500 of 3,000 activations, 12 s elapsed",
            ),
            (
                // A thousand took ten seconds.
                Moved::Count(Counted::Activations, 1500, 3000),
                22,
                "step 3/4 (about 15 s left), sections: 1,500 of 3,000 activations, 22 s elapsed",
            ),
            (Moved::Step(Step::Blocks), 30, "step 4/4, instructions: preparing, 30 s elapsed"),
            (
                Moved::Count(Counted::Windows, 3, 40),
                31,
                "step 4/4, instructions: 3 of 40 windows, 31 s elapsed",
            ),
            (
                Moved::Count(Counted::Windows, 20, 40),
                39,
                "step 4/4, instructions: 20 of 40 windows, 39 s elapsed",
            ),
            (Moved::Step(Step::ReadSections), 40, "step 3/4, reading the sections, 40 s elapsed"),
        ];
        for (what, s, line) in lines {
            state.moved(0, what, at(s));
            assert_eq!(state.line(at(s)).as_deref(), Some(line));
        }
        // It moves while nothing else does.
        let later = state.line(at(43));
        assert_eq!(later.as_deref(), Some("step 3/4, reading the sections, 43 s elapsed"));
        state.moved(0, Moved::Step(Step::Prepare), at(50));
        assert_eq!(state.line(at(50)).as_deref(), Some("preparing the guest, 50 s elapsed"));
    }

    #[test]
    fn what_is_left_of_several_guests_is_told_once_one_is_done() {
        let at = clock();
        let mut state = TaskProgress::new(4, None);
        for task in [0, 1] {
            state.moved(task, Moved::Guest(Phase::AtWork), at(0));
        }
        let line = state.line(at(5)).unwrap();
        assert!(line.starts_with("0 of 4 done, 2 guests: at work, 5 s elapsed | "), "{line}");
        assert!(!line.contains("left"), "{line}");
        state.over(0, at(20));
        state.moved(2, Moved::Guest(Phase::Booting), at(20));
        // The running ones have 10 s and 20 s of their 20 s, the fourth all of them: 50 s on two cores.
        let line = state.line(at(20)).unwrap();
        assert!(line.starts_with("1 of 4 done, about 20 s left, 2 guests: "), "{line}");
        for task in [1, 2] {
            state.over(task, at(40));
        }
        state.moved(3, Moved::Guest(Phase::AtWork), at(40));
        let line = state.line(at(45)).unwrap();
        assert!(line.contains("about ") && line.contains("1 guest: at work"), "{line}");
        // What takes longer than the others did has no time left that anybody knows.
        assert!(!state.line(at(400)).unwrap().contains("about"));
        state.over(3, at(400));
        assert_eq!(state.line(at(401)), None);
    }
}
