// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown while guests work: one line, redrawn on a terminal, now and then into a pipe.
//!
//! Units: the host's time. Not here: who writes ([`ProgressWriter`]).
//! A thread of its own draws the line, so that it also moves while the calling one reads a log or waits for apt.
//! Not here: the words of the line ([`crate::progress`]).

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tailbound_core::progress_writer::ProgressWriter;

use crate::progress::{Listener, Moved, Steps, TaskListener, TaskProgress};

/// On a terminal nothing is said before this.
const QUIET: Duration = Duration::from_secs(2);
/// From one line to the next, into a pipe.
const LINE_EVERY: Duration = Duration::from_secs(10);
const REDRAW_EVERY: Duration = Duration::from_millis(250);

/// Shows what is told; `None` shows nothing.
#[derive(Clone, Copy, Debug)]
pub struct ProgressLine(pub Option<ProgressWriter>);

impl Listener for ProgressLine {
    fn note(&self, text: &str) {
        if let Some(writer) = self.0 {
            (writer.note)(text);
        }
    }

    fn tasks(&self, total: usize, steps: Option<Steps>) -> Box<dyn TaskListener + '_> {
        Box::new(TaskLine::new(self.0, TaskProgress::new(total, steps)))
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
    fn draw(&mut self, writer: ProgressWriter, now: Instant) {
        let since = now.saturating_duration_since(self.last);
        let every = match (writer.redraw, self.drawn) {
            (None, _) => LINE_EVERY,
            (Some(_), false) => QUIET,
            (Some(_), true) => REDRAW_EVERY,
        };
        let Some(line) = self.tasks.line(now).filter(|_| since >= every) else { return };
        self.last = now;
        if let Some(redraw) = writer.redraw {
            self.drawn = true;
            redraw(&line);
        } else {
            (writer.note)(&line);
        }
    }
}

/// The line.
struct TaskLine {
    writer: Option<ProgressWriter>,
    state: Arc<Mutex<State>>,
    /// Dropped, it ends the thread that draws.
    over: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
}

impl TaskLine {
    fn new(writer: Option<ProgressWriter>, tasks: TaskProgress) -> Self {
        let state = State { tasks, last: Instant::now(), drawn: false };
        let state = Arc::new(Mutex::new(state));
        let (over, is_over) = mpsc::channel();
        let drawn = Arc::clone(&state);
        let draw = move |writer| {
            while is_over.recv_timeout(REDRAW_EVERY) == Err(RecvTimeoutError::Timeout) {
                locked(&drawn).draw(writer, Instant::now());
            }
        };
        let drawing = writer.map(|writer| std::thread::spawn(move || draw(writer)));
        Self { writer, state, over: Some(over), drawing }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn erase(&self, state: &State) {
        if let Some(redraw) = self.writer.and_then(|w| w.redraw).filter(|_| state.drawn) {
            redraw("");
        }
    }
}

impl TaskListener for TaskLine {
    fn moved(&self, task: usize, what: Moved) {
        self.state().tasks.moved(task, what, Instant::now());
    }

    fn over(&self, task: usize) {
        self.state().tasks.over(task, Instant::now());
    }

    fn note(&self, text: &str) {
        if let Some(writer) = self.writer {
            let state = self.state();
            self.erase(&state);
            (writer.note)(text);
        }
    }

    fn clear(&self) {
        let mut state = self.state();
        state.tasks.clear();
        self.erase(&state);
    }
}

impl Drop for TaskLine {
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
