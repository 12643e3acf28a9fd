// SPDX-License-Identifier: MIT OR Apache-2.0
//! The column of letters that tells the state of the CPU at a record, `d..h1.`.
//!
//! Kernels have four letters, since Linux 5.12 five, and those with lazy preemption up to seven: the lines above a trace
//! name them, and say which is which.
//! Source: trace_print_lat_fmt in kernel/trace/trace_output.c; Documentation/trace/ftrace.rst.

use crate::event::Flags;

/// What one letter tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Cpu,
    Interrupts,
    NeedResched,
    Context,
    PreemptDepth,
    Other,
}

/// Which letter tells what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns(Vec<Column>);

/// Over what a record was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Context {
    #[default]
    Thread,
    Softirq,
    Interrupt,
    Nmi,
}

/// The state of a CPU at a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuState {
    pub(super) irqs_off: bool,
    pub(super) need_resched: bool,
    pub(super) context: Context,
    pub(super) preempt_depth: u8,
}

impl Columns {
    /// Takes a line above a trace that names a letter: `#  || / _---=> hardirq/softirq`.
    pub(super) fn header(&mut self, line: &str) {
        let Some((_, name)) = line.split_once("=> ") else { return };
        let column = match name.trim() {
            "CPU#" => Column::Cpu,
            n if n.starts_with("irqs-off") => Column::Interrupts,
            "need-resched" => Column::NeedResched,
            "hardirq/softirq" => Column::Context,
            "preempt-depth" => Column::PreemptDepth,
            n if n.starts_with("need-resched") || n.ends_with("-depth") => Column::Other,
            "migrate-disable" => Column::Other,
            _ => return,
        };
        if column == Column::Cpu || column == Column::Interrupts && !self.0.contains(&Column::Cpu) {
            self.0.clear();
        }
        if self.0.len() < 16 {
            self.0.push(column);
        }
    }

    /// What `letters` tell, the number of the CPU not among them.
    pub(super) fn state(&self, letters: &str) -> Option<CpuState> {
        let length = letters.len();
        if !(4..=8).contains(&length) || !letters.bytes().all(is_letter) {
            return None;
        }
        let told = || self.0.iter().filter(|c| **c != Column::Cpu);
        let mut state = CpuState::default();
        if told().count() == length {
            told().zip(letters.chars()).for_each(|(column, letter)| state.take(*column, letter));
            return Some(state);
        }
        // The lines above were left out: the letter of the context is the third, behind a second one of lazy preemption
        // the fourth.
        let usual = match length {
            4 | 5 => USUAL.as_slice(),
            _ => LAZY.as_slice(),
        };
        usual.iter().zip(letters.chars()).for_each(|(column, letter)| state.take(*column, letter));
        Some(state)
    }
}

const USUAL: [Column; 4] =
    [Column::Interrupts, Column::NeedResched, Column::Context, Column::PreemptDepth];
const LAZY: [Column; 5] =
    [Column::Interrupts, Column::NeedResched, Column::Other, Column::Context, Column::PreemptDepth];

fn is_letter(b: u8) -> bool {
    b == b'.' || b.is_ascii_alphanumeric()
}

impl CpuState {
    fn take(&mut self, column: Column, letter: char) {
        match column {
            Column::Interrupts => self.irqs_off = matches!(letter, 'd' | 'D'),
            Column::NeedResched => self.need_resched = !matches!(letter, '.' | '0'),
            Column::Context => {
                self.context = match letter {
                    'Z' | 'z' => Context::Nmi,
                    'H' | 'h' => Context::Interrupt,
                    's' => Context::Softirq,
                    _ => Context::Thread,
                };
            }
            Column::PreemptDepth => {
                let depth = letter.to_digit(16).unwrap_or(0);
                self.preempt_depth = u8::try_from(depth).unwrap_or(0);
            }
            Column::Cpu | Column::Other => {}
        }
    }

    /// As records of the kernel's buffer have it.
    pub(super) fn flags(self) -> Flags {
        let context = match self.context {
            Context::Thread => 0,
            Context::Softirq => 0x10,
            Context::Interrupt => 0x08,
            Context::Nmi => 0x40,
        };
        Flags(u8::from(self.irqs_off) | u8::from(self.need_resched) << 2 | context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_the_lines_above_name_them() {
        let mut rt = Columns::default();
        for name in [
            "CPU#",
            "irqs-off/BH-disabled",
            "need-resched",
            "need-resched-lazy",
            "hardirq/softirq",
            "preempt-depth",
            "preempt-lazy-depth",
            "migrate-disable",
        ] {
            rt.header(&format!("#   || / _---=> {name}"));
        }
        let seven = rt.state("dn.h413").unwrap();
        assert!(seven.irqs_off && seven.need_resched && seven.preempt_depth == 4);
        assert_eq!(seven.context, Context::Interrupt);
        // The same without the lines above, and as older kernels have it.
        assert_eq!(Columns::default().state("dn.h413"), Some(seven));
        let four = Columns::default().state("d.s1").unwrap();
        assert_eq!((four.context, four.preempt_depth), (Context::Softirq, 1));
        assert_eq!(Columns::default().state("<-x"), None);
        assert!(!Columns::default().state("b..1.").unwrap().irqs_off);
    }
}
