// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown while guests work: one line, redrawn on a terminal, now and then into a pipe.
//!
//! Units: the host's time. To standard error: standard output is for the answer.
//! A thread of its own draws the line, so that it also moves while the calling one reads a log or waits for apt.
//! Not here: the words of the line (`tailbound_lab::progress`).

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tailbound_lab::progress::{Listener, Moved, Steps, TaskListener, TaskProgress};

use crate::say;

/// On a terminal nothing is said before this.
const QUIET: Duration = Duration::from_secs(2);
/// From one line to the next, into a pipe.
const LINE_EVERY: Duration = Duration::from_secs(10);
const REDRAW_EVERY: Duration = Duration::from_millis(250);

/// Standard error, as far as anything is to be said there.
#[derive(Clone, Copy, Debug)]
pub(in crate::cmd) struct StandardError {
    pub(in crate::cmd) quiet: bool,
}

impl Listener for StandardError {
    fn note(&self, text: &str) {
        if !self.quiet {
            say::note(text);
        }
    }

    fn tasks(&self, total: usize, steps: Option<Steps>) -> Box<dyn TaskListener + '_> {
        Box::new(Shown::new(self.quiet, TaskProgress::new(total, steps)))
    }
}

/// The tasks, and when they were drawn.
#[derive(Debug)]
struct State {
    tasks: TaskProgress,
    /// The last line, or the beginning.
    last: Instant,
    drawn: bool,
}

impl State {
    fn draw(&mut self, terminal: bool, now: Instant) {
        let since = now.saturating_duration_since(self.last);
        let every = match (terminal, self.drawn) {
            (false, _) => LINE_EVERY,
            (true, false) => QUIET,
            (true, true) => REDRAW_EVERY,
        };
        let Some(line) = self.tasks.line(now).filter(|_| since >= every) else { return };
        self.last = now;
        if terminal {
            self.drawn = true;
            let width = tailbound_sys::terminal::size(&io::stderr()).map_or(80, |(c, _)| c);
            let line: String = line.chars().take(width.saturating_sub(1)).collect();
            say::redraw(&line);
        } else {
            say::note(&line);
        }
    }
}

/// The line.
struct Shown {
    quiet: bool,
    terminal: bool,
    state: Arc<Mutex<State>>,
    /// Dropped, it ends the thread that draws.
    over: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
}

impl Shown {
    fn new(quiet: bool, tasks: TaskProgress) -> Self {
        let terminal = io::stderr().is_terminal();
        let state = State { tasks, last: Instant::now(), drawn: false };
        let state = Arc::new(Mutex::new(state));
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

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn erase(&self, state: &State) {
        if self.terminal && !self.quiet && state.drawn {
            say::redraw("");
        }
    }
}

impl TaskListener for Shown {
    fn moved(&self, task: usize, what: Moved) {
        self.state().tasks.moved(task, what, Instant::now());
    }

    fn over(&self, task: usize) {
        self.state().tasks.over(task, Instant::now());
    }

    fn note(&self, text: &str) {
        if !self.quiet {
            let state = self.state();
            self.erase(&state);
            say::note(text);
        }
    }

    fn clear(&self) {
        let mut state = self.state();
        state.tasks.clear();
        self.erase(&state);
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
