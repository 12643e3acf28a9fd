// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan: what the plugin is to watch in one kernel, from the kernel's symbols.
//!
//! Context: SETUP. Units: bytes, addresses of the guest.
//! Source: Linux arch/x86/entry/entry_64.S, kernel/time/hrtimer.c, include/linux/hrtimer.h; proc_kallsyms(5).

use crate::record::{MAGIC, mode, plan, point};
use crate::theory::OUTSIDE;
use crate::wakeups::Marks;

/// Why a kernel cannot be watched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A symbol is missing.
    #[error("the kernel's symbols (/proc/kallsyms) have no {0}")]
    Lacking(&'static str),
}

/// One symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Symbol<'a> {
    address: u64,
    name: &'a str,
}

/// Bytes from a timer to its time, and to its thread.
const TIMER_DUE: u64 = 24;
const TIMER_THREAD: u64 = 64;
const WAKE: &str = "hrtimer_wakeup";
/// Entries into the kernel, by the beginnings of their names.
const ENTRIES: [&str; 2] = ["asm_", "entry_"];
/// Of these, interrupts and exceptions.
const TAKEN: [&str; 2] = ["asm_sysvec_", "asm_exc_"];
/// Tables of entries: one every few bytes, up to the next symbol.
const TABLES: [&str; 2] = ["irq_entries_start", "spurious_entries_start"];

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    mode: u64,
    offset_at: u64,
    count: u64,
    current: u64,
    marks: Marks,
    idle_thread: u64,
    outside: [Option<u64>; OUTSIDE.len()],
    points: Vec<(u64, u64, u64)>,
    windows: Vec<(u64, u64)>,
}

impl Plan {
    /// From the text of /proc/kallsyms.
    ///
    /// # Errors
    /// [`PlanError`]
    pub fn of(kallsyms: &str) -> Result<Self, PlanError> {
        let mut symbols: Vec<Symbol<'_>> = kallsyms.lines().filter_map(symbol).collect();
        symbols.sort_by_key(|s| s.address);
        let named = |name: &'static str| symbols.iter().find(|s| s.name == name).map(|s| s.address);
        let needed = |name| named(name).ok_or(PlanError::Lacking(name));
        let (count, current) = match named("pcpu_hot") {
            Some(hot) => (hot + 8, hot),
            None => (needed("__preempt_count")?, needed("current_task")?),
        };
        let mut points = vec![one(needed(WAKE)?, point::WAKE)];
        let marks = Marks {
            entry: needed("asm_sysvec_apic_timer_interrupt")?,
            interrupt: needed("hrtimer_interrupt")?,
            schedule: needed("__schedule")?,
        };
        points.extend([marks.interrupt, marks.schedule].map(|at| one(at, point::MARK)));
        let outside = OUTSIDE.map(|(_, function, _)| named(function));
        points.extend(outside.iter().flatten().map(|at| one(*at, point::MARK)));
        let upper = symbols.iter().filter(|s| s.address >> 63 == 1);
        for s in upper.clone() {
            if TAKEN.iter().any(|begin| s.name.starts_with(begin)) {
                points.push(one(s.address, point::ENTER));
            } else if ENTRIES.iter().any(|begin| s.name.starts_with(begin)) {
                points.push(one(s.address, point::ENTRY));
            }
            if TABLES.contains(&s.name) {
                let next = upper.clone().map(|o| o.address).find(|a| *a > s.address);
                points.push((s.address, next.unwrap_or(s.address + 8), point::ENTER));
            }
        }
        points.sort_unstable();
        points.dedup_by_key(|p| p.0);
        Ok(Self {
            mode: mode::SPARSE,
            offset_at: named("__per_cpu_offset").unwrap_or(0),
            count,
            current,
            marks,
            // That of the first CPU.
            idle_thread: named("init_task").unwrap_or(0),
            outside,
            points,
            windows: Vec::new(),
        })
    }

    /// What the chains of wake-ups are told by.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// The idle thread of the only CPU; 0: not known before it halts.
    #[must_use]
    pub fn idle_thread(&self) -> u64 {
        self.idle_thread
    }

    /// Where [`OUTSIDE`] are.
    #[must_use]
    pub fn outside(&self) -> [Option<u64>; OUTSIDE.len()] {
        self.outside
    }

    /// The same kernel, every block within these times (ns, apart and in order).
    #[must_use]
    pub fn full(&self, windows: &[(u64, u64)]) -> Self {
        Self { mode: mode::FULL, windows: windows.to_vec(), ..self.clone() }
    }

    /// As the plugin reads it.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut words = vec![0; plan::WORDS];
        let head = [
            (0, MAGIC),
            (plan::MODE, self.mode),
            (plan::OFFSET_AT, self.offset_at),
            (plan::COUNT, self.count),
            (plan::CURRENT, self.current),
            (plan::TIMER_DUE, TIMER_DUE),
            (plan::TIMER_THREAD, TIMER_THREAD),
            (plan::POINTS, self.points.len() as u64),
            (plan::WINDOWS, self.windows.len() as u64),
        ];
        for (at, value) in head {
            words.iter_mut().skip(at).take(1).for_each(|w| *w = value);
        }
        words.extend(self.points.iter().flat_map(|(begin, end, kind)| [*begin, *end, *kind]));
        words.extend(self.windows.iter().flat_map(|(from, to)| [*from, *to]));
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        // A file of less than a page cannot be told from a broken one.
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes
    }
}

fn one(address: u64, kind: u64) -> (u64, u64, u64) {
    (address, address + 1, kind)
}

fn symbol(line: &str) -> Option<Symbol<'_>> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let _type = words.next()?;
    Some(Symbol { address, name: words.next()? })
}
