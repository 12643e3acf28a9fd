// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the view knows: the machine, which rows are seen, where the cursor is, what is marked, what is asked.
//!
//! Pure. A row is known by its thread or interrupt, not by its place: the cursor and the
//! marks stay with it when the tables change.

use std::collections::BTreeSet;

use tailbound_core::{CpuSet, TerminalSize};
use tailbound_report::machine::{Choice, Kind, Look, MachineView, Sort, ThreadId};

use tailbound_report::table::wrap;

use super::hands::Wanted;

/// A terminal of at least so many rows has room for both tables.
const ROWS_FOR_BOTH: usize = 30;
/// The rows of the view that are no rows of a table: CPUs, message, keys.
const ROWS_AROUND: usize = 3;
/// The rows above each table: its title and its heads.
const ROWS_ABOVE: usize = 2;

/// The two tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tab {
    #[default]
    Threads,
    Interrupts,
}

/// Where a person is in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pane<Id> {
    /// The row of the cursor, counted in what is seen.
    pub(super) at: usize,
    /// The first row on the screen.
    pub(super) top: usize,
    pub(super) marked: BTreeSet<Id>,
    /// What the cursor stands on.
    on: Option<Id>,
}

impl<Id> Default for Pane<Id> {
    fn default() -> Self {
        Self { at: 0, top: 0, marked: BTreeSet::new(), on: None }
    }
}

impl<Id: Copy + Ord> Pane<Id> {
    /// Finds its place among `seen` rows again, of which `rows` fit on the screen.
    fn settle(&mut self, seen: &[Id], rows: usize) {
        let again = self.on.and_then(|on| seen.iter().position(|id| *id == on));
        self.at = again.unwrap_or(self.at).min(seen.len().saturating_sub(1));
        self.on = seen.get(self.at).copied();
        self.top = self.top.min(self.at).max((self.at + 1).saturating_sub(rows.max(1)));
        self.top = self.top.min(seen.len().saturating_sub(rows));
    }

    /// Moves the cursor.
    fn go(&mut self, to: usize, seen: &[Id]) {
        self.at = to.min(seen.len().saturating_sub(1));
        self.on = seen.get(self.at).copied();
    }

    /// What is marked and still there, else what the cursor stands on.
    fn meant(&self) -> Vec<Id> {
        if self.marked.is_empty() {
            self.on.into_iter().collect()
        } else {
            self.marked.iter().copied().collect()
        }
    }

    fn mark(&mut self) {
        if let Some(on) = self.on
            && !self.marked.remove(&on)
        {
            self.marked.insert(on);
        }
    }
}

/// What a line is typed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Filter,
    Cpus,
    MoveThreads(Vec<ThreadId>),
    MoveInterrupts(Vec<u32>),
    Policy(Vec<ThreadId>),
}

/// What keys mean now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Browse,
    /// A line is typed.
    Ask { question: Question, line: String },
    /// A plan is read.
    Plan { wanted: Wanted, lines: Vec<String>, top: usize },
    /// Shall the last change be undone?
    Undo,
    /// The keys are explained.
    Help,
}

/// What was said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Good(String),
    Bad(String),
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Everything.
    all: MachineView,
    /// What is seen of it, in its order.
    pub(super) seen: MachineView,
    pub(super) tab: Tab,
    pub(super) threads: Pane<ThreadId>,
    pub(super) interrupts: Pane<u32>,
    pub(super) choice: Choice,
    pub(super) sort: Sort,
    /// The CPUs that actions are about.
    pub(super) selected: CpuSet,
    pub(super) mode: Mode,
    pub(super) said: Option<Said>,
    /// The terminal's.
    pub(super) size: TerminalSize,
}

impl State {
    pub(super) fn new(choice: Choice, sort: Sort, tab: Tab, size: TerminalSize) -> Self {
        Self { choice, sort, tab, size, ..Self::default() }
    }

    /// The machine as it is, whatever is seen of it.
    pub(super) fn machine(&self) -> &Look {
        &self.all.look
    }

    /// Takes a new look: marks of what is gone are gone.
    pub(super) fn looked(&mut self, shown: MachineView) {
        self.all = shown;
        let tids: BTreeSet<ThreadId> = self.machine().threads.iter().map(|t| t.id).collect();
        let numbers: BTreeSet<u32> = self.machine().interrupts.iter().map(|i| i.number).collect();
        self.threads.marked.retain(|id| tids.contains(id));
        self.interrupts.marked.retain(|n| numbers.contains(n));
        self.choose();
    }

    /// Chooses and orders the rows anew.
    pub(super) fn choose(&mut self) {
        self.seen = self.all.clone();
        self.choice.apply(&mut self.seen);
        self.sort.apply(&mut self.seen);
        self.settle();
    }

    /// Puts cursors and screens where rows are.
    pub(super) fn settle(&mut self) {
        let (threads, interrupts) = (self.thread_ids(), self.numbers());
        self.threads.settle(&threads, self.rows(Tab::Threads));
        self.interrupts.settle(&interrupts, self.rows(Tab::Interrupts));
    }

    fn thread_ids(&self) -> Vec<ThreadId> {
        self.seen.look.threads.iter().map(|t| t.id).collect()
    }

    fn numbers(&self) -> Vec<u32> {
        self.seen.look.interrupts.iter().map(|i| i.number).collect()
    }

    /// Is there room for both tables?
    pub(super) fn both(&self) -> bool {
        self.size.rows >= ROWS_FOR_BOTH
    }

    /// How many rows of a table fit on the screen.
    pub(super) fn rows(&self, tab: Tab) -> usize {
        let room = self.size.rows.saturating_sub(ROWS_AROUND + ROWS_ABOVE);
        if !self.both() {
            return room;
        }
        let room = room.saturating_sub(ROWS_ABOVE);
        let interrupts = (room / 3).min(self.seen.look.interrupts.len().max(1));
        match tab {
            Tab::Interrupts => interrupts,
            Tab::Threads => room - interrupts,
        }
    }

    /// Rows for a plan or for help.
    pub(super) fn page(&self) -> usize {
        self.size.rows.saturating_sub(ROWS_AROUND + 1)
    }

    /// The lines of a plan in this terminal: nothing of it is cut.
    pub(super) fn folded(&self, steps: &[String]) -> Vec<String> {
        steps.iter().flat_map(|s| wrap(&format!("  {s}"), self.size.columns, "    ")).collect()
    }

    /// Moves the cursor of the table by so many rows.
    pub(super) fn step_by(&mut self, rows: isize) {
        let at = match self.tab {
            Tab::Threads => self.threads.at,
            Tab::Interrupts => self.interrupts.at,
        };
        self.go(at.saturating_add_signed(rows));
    }

    /// Moves the cursor of the table to a row.
    pub(super) fn go(&mut self, to: usize) {
        match self.tab {
            Tab::Threads => {
                let ids = self.thread_ids();
                self.threads.go(to, &ids);
            }
            Tab::Interrupts => {
                let numbers = self.numbers();
                self.interrupts.go(to, &numbers);
            }
        }
        self.settle();
    }

    /// Marks the row of the cursor, or takes its mark away, and goes on to the next.
    pub(super) fn mark(&mut self) {
        match self.tab {
            Tab::Threads => self.threads.mark(),
            Tab::Interrupts => self.interrupts.mark(),
        }
        self.step_by(1);
    }

    /// Marks every row that is seen.
    pub(super) fn mark_all(&mut self) {
        match self.tab {
            Tab::Threads => self.threads.marked = self.thread_ids().into_iter().collect(),
            Tab::Interrupts => self.interrupts.marked = self.numbers().into_iter().collect(),
        }
    }

    /// Takes every mark away.
    pub(super) fn mark_none(&mut self) {
        match self.tab {
            Tab::Threads => self.threads.marked.clear(),
            Tab::Interrupts => self.interrupts.marked.clear(),
        }
    }

    /// The threads that an action is about.
    pub(super) fn meant_threads(&self) -> Vec<ThreadId> {
        self.threads.meant()
    }

    /// The interrupts that an action is about.
    pub(super) fn meant_interrupts(&self) -> Vec<u32> {
        self.interrupts.meant()
    }

    /// All threads, then those of real time, of the kernel, of programs.
    pub(super) fn next_kind(&mut self) {
        (self.choice.kind, self.choice.realtime) = match (self.choice.kind, self.choice.realtime) {
            (Kind::Any, false) => (Kind::Any, true),
            (Kind::Any, true) => (Kind::Kernel, false),
            (Kind::Kernel, _) => (Kind::User, false),
            (Kind::User, _) => (Kind::Any, false),
        };
        self.choose();
    }
}
