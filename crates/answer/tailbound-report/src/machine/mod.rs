// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads and interrupts of a machine as tables: rows, rates from two looks, choice, order, text and JSON.
//!
//! Units: ns for times, counts since boot, rates a second.
//! Not here: reading the machine (the caller fills a [`Look`]), changing it.

mod choice;
mod grid;
mod json;
mod look;
mod order;
mod rows;
mod sums;
mod text;

pub use choice::{Choice, Kind, Which};
pub use grid::{Amounts, Fit, Grid, class_grid, interrupt_grid, thread_grid};
pub use json::json;
pub use look::{Look, MachineView};
pub use order::{InterruptKey, Order, Sort, SortError, ThreadKey};
pub use rows::{
    ClassRow, Handler, InterruptRow, MachineFact, SwitchRate, Switches, ThreadId, ThreadRow,
    UnknownFact, interrupt_of,
};
pub use text::text;
