// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables as text.
//!
//! Units: columns.

use tailbound_core::units::format_span;

use super::choice::Which;
use super::grid::{Fit, Grid, class_grid, interrupt_grid, thread_grid};
use super::look::MachineView;
use crate::text::Style;
use crate::text::ink::{Ink, paint};

/// The tables.
#[must_use]
pub fn text(shown: &MachineView, which: Which, style: Style, fit: Fit) -> String {
    let look = &shown.look;
    let amounts = shown.amounts();
    let mut out = vec![summary(shown)];
    out.extend(look.missing.iter().map(|why| format!("! {why}")));
    let width = match fit {
        Fit::Terminal => style.width,
        Fit::Whole => usize::MAX,
    };
    let mut part = |title: String, grid: &Grid| {
        out.push(String::new());
        out.push(paint(&title, Ink::Bold, style.color));
        if !grid.is_empty() {
            out.push(paint(&grid.head(width), Ink::Dim, style.color));
            out.extend((0..grid.len()).filter_map(|at| grid.row(at, width)));
        }
    };
    if which.threads() {
        let grid = thread_grid(&look.threads, amounts, fit);
        part(count(grid.len(), "thread"), &grid);
    }
    if which.interrupts() {
        let grid = interrupt_grid(&look.interrupts, amounts, fit);
        part(count(grid.len(), "interrupt"), &grid);
        let grid = class_grid(&look.classes, amounts);
        if !grid.is_empty() {
            part("Interrupts without a number".to_owned(), &grid);
        }
    }
    out.join("\n")
}

fn summary(shown: &MachineView) -> String {
    let isolated = &shown.look.isolated;
    let isolated = if isolated.is_empty() { "none".to_owned() } else { isolated.to_string() };
    let over = match shown.over_ns {
        Some(ns) => format!("rates over {}", format_span(ns)),
        None => "totals since boot".to_owned(),
    };
    format!("CPUs {} online, isolated {isolated}; {over}", shown.look.online)
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use tailbound_core::Policy;

    use super::super::look::Look;
    use super::super::look::tests::{interrupt, thread};
    use super::super::rows::ClassRow;
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn both_tables_with_their_figures() {
        let shown = Look {
            online: [0, 1].into_iter().collect(),
            threads: vec![thread(40, "irq/4-ttyS0", Policy::Fifo(50))],
            interrupts: vec![interrupt(4, &["ttyS0"])],
            classes: vec![ClassRow {
                name: "LOC".to_owned(),
                about: "Local timer interrupts".to_owned(),
                counts: BTreeMap::from([(0, 3)]),
                rates: None,
            }],
            ..Look::default()
        }
        .with_handlers()
        .totals();
        let style = Style::default();
        let want = "\
CPUs 0-1 online, isolated none; totals since boot

1 thread
TID  POLICY   AFFINITY  CPU  VOL  INVOL  COMMAND
 40  fifo:50  0-1         0   10      2  [irq/4-ttyS0]

1 interrupt
IRQ  CPU  AFFINITY  COUNT  MANAGED  THREAD   USERS
  4    1  0-1          12  no       fifo:50  ttyS0

Interrupts without a number
KIND  COUNT  ABOUT
LOC       3  Local timer interrupts";
        assert_eq!(text(&shown, Which::Both, style, Fit::Terminal), want);
        assert!(!text(&shown, Which::Threads, style, Fit::Terminal).contains("IRQ "));
        assert!(!text(&shown, Which::Interrupts, style, Fit::Terminal).contains("TID"));
    }
}
