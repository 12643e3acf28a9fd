// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown while guests work: one line, redrawn on a terminal, now and then into a pipe.
//!
//! Units: the host's time. To standard error: standard output is for the answer.
//! A thread of its own draws the line, so that it also moves while the calling one reads a log or waits for apt.
//! Nothing is drawn where no task is under way. A time left is told only where something was counted: the activations of a
//! watched guest, or guests that are done.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tailbound_core::units::{format_span, grouped};
use tailbound_lab::Phase;

/// On a terminal nothing is said before this.
const QUIET: Duration = Duration::from_secs(2);
/// From one line to the next, into a pipe.
const LINE_EVERY: Duration = Duration::from_secs(10);
const REDRAW_EVERY: Duration = Duration::from_millis(250);
/// A time left is estimated from that much counting at least.
const COUNTED: Duration = Duration::from_secs(1);

/// A part of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cmd) enum Step {
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
pub(in crate::cmd) enum Counted {
    Activations,
    /// Those that have begun, of those in which instructions are recorded. They are not of one length, so that they tell no time.
    Windows,
    Variations,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cmd) enum Moved {
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
pub(in crate::cmd) struct Steps(pub(in crate::cmd) usize);

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

/// All tasks.
#[derive(Debug)]
struct State {
    total: usize,
    done: usize,
    /// Of all that are done.
    took: Duration,
    steps: Option<Steps>,
    at: BTreeMap<usize, Task>,
    /// The last line, or the beginning.
    last: Instant,
    drawn: bool,
}

impl State {
    fn new(total: usize, now: Instant) -> Self {
        let (at, took) = (BTreeMap::new(), Duration::ZERO);
        Self { total, done: 0, took, steps: None, at, last: now, drawn: false }
    }

    fn moved(&mut self, task: usize, what: Moved, now: Instant) {
        self.at.entry(task).or_insert_with(|| Task::new(now)).moved(what, now);
    }

    fn over(&mut self, task: usize, now: Instant) {
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

    /// The line; `None` where nothing is under way.
    fn line(&self, now: Instant) -> Option<String> {
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

    fn draw(&mut self, terminal: bool, now: Instant) {
        let since = now.saturating_duration_since(self.last);
        let every = match (terminal, self.drawn) {
            (false, _) => LINE_EVERY,
            (true, false) => QUIET,
            (true, true) => REDRAW_EVERY,
        };
        let Some(line) = self.line(now).filter(|_| since >= every) else { return };
        self.last = now;
        if terminal {
            self.drawn = true;
            let width = tailbound_sys::terminal::size(&io::stderr()).map_or(80, |(c, _)| c);
            let line: String = line.chars().take(width.saturating_sub(1)).collect();
            crate::say::redraw(&line);
        } else {
            crate::say::note(&line);
        }
    }
}

/// The line.
pub(in crate::cmd) struct Shown {
    quiet: bool,
    terminal: bool,
    state: Arc<Mutex<State>>,
    /// Dropped, it ends the thread that draws.
    over: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
}

impl Shown {
    /// Of `total` tasks.
    pub(in crate::cmd) fn new(quiet: bool, total: usize) -> Self {
        let terminal = io::stderr().is_terminal();
        let state = Arc::new(Mutex::new(State::new(total, Instant::now())));
        let (over, is_over) = mpsc::channel();
        let drawn = Arc::clone(&state);
        let draw = move || {
            while is_over.recv_timeout(REDRAW_EVERY) == Err(RecvTimeoutError::Timeout) {
                locked(&drawn).draw(terminal, Instant::now());
            }
        };
        let drawing = (!quiet).then(|| std::thread::spawn(draw));
        Self { quiet, terminal, state, over: Some(over), drawing }
    }

    /// The same, of tasks that are watched in so many steps.
    pub(in crate::cmd) fn in_steps(self, steps: Steps) -> Self {
        self.state().steps = Some(steps);
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub(in crate::cmd) fn moved(&self, task: usize, what: Moved) {
        self.state().moved(task, what, Instant::now());
    }

    /// A task is over.
    pub(in crate::cmd) fn over(&self, task: usize) {
        self.state().over(task, Instant::now());
    }

    /// The same, and what came of it.
    pub(super) fn done(&self, task: usize, note: &str) {
        self.over(task);
        self.note(note);
    }

    /// Says something on a line of its own.
    pub(in crate::cmd) fn note(&self, text: &str) {
        if !self.quiet {
            let state = self.state();
            self.erase(&state);
            crate::say::note(text);
        }
    }

    /// Takes the redrawn line away; there is none until a task moves again.
    pub(in crate::cmd) fn clear(&self) {
        let mut state = self.state();
        state.at.clear();
        self.erase(&state);
    }

    fn erase(&self, state: &State) {
        if self.terminal && !self.quiet && state.drawn {
            crate::say::redraw("");
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.clear();
        drop(self.over.take());
        if let Some(drawing) = self.drawing.take() {
            drop(drawing.join());
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut state = State::new(1, at(0));
        assert_eq!(state.line(at(3)), None, "nothing is under way");
        state.steps = Some(Steps(4));
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
        let mut state = State::new(4, at(0));
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
