// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan: what the plugin is to watch in one kernel, from the kernel's symbols.
//!
//! Context: SETUP. Units: bytes, addresses of the guest.
//! Source: Linux kernel/time/hrtimer.c, include/linux/hrtimer.h, hrtimer_types.h; proc_kallsyms(5).

mod arm32;
mod arm64;
mod second;
mod x86_64;

#[cfg(test)]
pub(crate) use x86_64::tests::OLD as X86_64_SYMBOLS;

use crate::answers::AnswerMarks;
use crate::outside::OUTSIDE;
use crate::record::{MAGIC, guest, mode, plan, point};
use crate::wakeups::Marks;
use crate::window::GuestWindow;
use tailbound_core::order;

/// Why a kernel cannot be watched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A symbol is missing.
    #[error("the kernel's symbols (/proc/kallsyms) have no {0}")]
    Lacking(&'static str),
}

/// Whose kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Arm64,
    /// 32-bit ARM.
    Arm32,
}

/// How calls and stacks are.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// A call leaves where it returns to on the stack. Else in a register, and only what is called may store it.
    pub push: bool,
    /// Stacks begin at multiples of this, and are no longer.
    pub stack_bytes: u32,
    /// Changes from one thread's stack to another's.
    pub switch: &'static str,
}

impl Guest {
    /// Steps in which its clock advances under QEMU: on 64-bit ARM a counter of 62.5 MHz, on the 32-bit board of 1 MHz.
    #[must_use]
    pub fn clock_step_ns(self) -> i64 {
        match self {
            Self::X86_64 => 1,
            Self::Arm64 => 16,
            Self::Arm32 => 1_000,
        }
    }

    /// Is what enters at `entry`, in the function of this name, an interrupt? Else it is an exception or a call.
    #[must_use]
    pub fn is_interrupt(self, entry: u64, name: &str) -> bool {
        match self {
            Self::X86_64 => !name.starts_with("asm_exc_") || name == "asm_exc_nmi",
            Self::Arm64 => arm64::is_interrupt(entry),
            Self::Arm32 => arm32::is_interrupt(entry),
        }
    }

    /// How its calls and stacks are.
    #[must_use]
    pub fn calls(self) -> Calls {
        match self {
            Self::X86_64 => Calls { push: true, stack_bytes: 1 << 14, switch: "__switch_to_asm" },
            Self::Arm64 => Calls { push: false, stack_bytes: 1 << 14, switch: "cpu_switch_to" },
            Self::Arm32 => Calls { push: false, stack_bytes: 1 << 13, switch: "__switch_to" },
        }
    }

    /// The text of /proc/kallsyms with addresses as the plugin tells them: those of a kernel have their upper bit set.
    #[must_use]
    pub fn told(self, kallsyms: String) -> String {
        if self == Self::Arm32 { arm32::lifted(&kallsyms) } else { kallsyms }
    }

    /// Bytes from a timer to its time, and to its thread.
    fn timer(self, form: TimerForm) -> (u64, u64) {
        match (self, form) {
            (Self::X86_64 | Self::Arm64, TimerForm::Tree) => (24, 64),
            (Self::X86_64 | Self::Arm64, TimerForm::Linked) => (40, 80),
            (Self::Arm32, TimerForm::Tree) => (16, 48),
            // Five flags there, where it were four before.
            (Self::Arm32, TimerForm::Linked) => (24, 64),
        }
    }

    fn word(self) -> u64 {
        match self {
            Self::X86_64 => guest::X86_64,
            Self::Arm64 => guest::ARM64,
            Self::Arm32 => guest::ARM32,
        }
    }
}

/// How a kernel keeps its timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimerForm {
    /// In a tree.
    Tree,
    /// Each also points to the one before and the one behind it, as in newer kernels (seen in 7.2).
    Linked,
}

/// One symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol<'a> {
    address: u64,
    name: &'a str,
}

const WAKE: &str = "hrtimer_wakeup";
const SETS: &str = "clockevents_program_event";
/// Kernels that have it set a CPU's timer at the end of its interrupt or once the scheduler has chosen: what is due by then comes later.
const SETS_LATER: &str = "__hrtimer_rearm_deferred";
/// Kernels whose timers are linked have it.
const LINKED: &str = "timerqueue_linked_add";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    guest: Guest,
    mode: u64,
    offset_at: u64,
    count: u64,
    count_bytes: u64,
    current: u64,
    marks: Marks,
    answers: Result<AnswerMarks, PlanError>,
    /// Timers are linked.
    timer_form: TimerForm,
    idle_thread: u64,
    outside: [Option<u64>; OUTSIDE.len()],
    /// Sets a CPU's timer.
    sets: Option<u64>,
    points: Vec<(u64, u64, u64)>,
    windows: Vec<GuestWindow>,
    /// Blocks that are translated are recorded.
    code: bool,
    /// Virtual time that the guest may take; 0: any.
    limit_ns: u64,
}

/// What architectures differ in.
struct Own {
    /// Entries of the timer's interrupt.
    entries: Vec<u64>,
    /// See [`plan`].
    offset_at: u64,
    count: u64,
    /// See [`plan`].
    count_bytes: u64,
    current: u64,
    /// Entries into the kernel, and others.
    points: Vec<(u64, u64, u64)>,
}

impl Plan {
    /// From the text of /proc/kallsyms.
    ///
    /// # Errors
    /// [`PlanError`]
    pub fn of(kallsyms: &str, guest: Guest) -> Result<Self, PlanError> {
        let symbols = Symbols::of(kallsyms);
        let own = match guest {
            Guest::X86_64 => x86_64::own(&symbols)?,
            Guest::Arm64 => arm64::own(&symbols)?,
            Guest::Arm32 => arm32::own(&symbols)?,
        };
        let mut marks = Marks {
            interrupt: symbols.needed("hrtimer_interrupt")?,
            schedule: symbols.needed("__schedule")?,
            ..Marks::default()
        };
        marks.entries.iter_mut().zip(own.entries).for_each(|(place, entry)| *place = entry);
        let second = second::found(&symbols);
        marks.second = second.map(|(second, _)| second);
        let outside = OUTSIDE.map(|(_, function, _)| symbols.named(function));
        let mut points = own.points;
        points.push(one(symbols.needed(WAKE)?, point::WAKE));
        points.extend([marks.interrupt, marks.schedule].map(|at| one(at, point::MARK)));
        if let Some((second, wake)) = second {
            points.push(one(wake, point::WAKE_SECOND));
            points.extend([second.interrupt, second.schedule].map(|at| one(at, point::MARK)));
        }
        points.extend(outside.iter().flatten().map(|at| one(*at, point::MARK)));
        let sets = symbols.named(SETS);
        if let (Some(sets), Some(_)) = (sets, symbols.named(SETS_LATER)) {
            marks.sets = sets;
            points.push(one(sets, point::MARK));
        }
        let answers = AnswerMarks::of(&symbols);
        let marked = answers.iter().flat_map(|marks| marks.all());
        points.extend(marked.map(|at| one(at, point::MARK)));
        points.sort_unstable();
        points.dedup_by_key(|p| p.0);
        Ok(Self {
            guest,
            answers,
            mode: mode::SPARSE,
            offset_at: own.offset_at,
            count: own.count,
            count_bytes: own.count_bytes,
            current: own.current,
            marks,
            timer_form: match symbols.named(LINKED) {
                Some(_) => TimerForm::Linked,
                None => TimerForm::Tree,
            },
            // That of the first CPU.
            idle_thread: symbols.named("init_task").unwrap_or(0),
            outside,
            sets,
            points,
            windows: Vec::new(),
            code: false,
            limit_ns: 0,
        })
    }

    /// Whose kernel it is.
    #[must_use]
    pub fn guest(&self) -> Guest {
        self.guest
    }

    /// An address of the kernel's code: all of it lies within 2 GiB.
    #[must_use]
    pub fn text(&self) -> u64 {
        self.marks.schedule
    }

    /// Does an interrupt or exception enter at this address, where no function begins?
    #[must_use]
    pub fn enters(&self, address: u64) -> bool {
        let within = |p: &(u64, u64, u64)| p.2 == point::ENTER && (p.0..p.1).contains(&address);
        match self.guest {
            Guest::X86_64 => false,
            Guest::Arm64 => arm64::is_vector(address) && self.points.iter().any(within),
            Guest::Arm32 => arm32::is_vector(address),
        }
    }

    /// What the chains of wake-ups are told by.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// What answers to edges of a simulated line are told by.
    ///
    /// # Errors
    /// The kernel has no such lines.
    pub fn answers(&self) -> Result<AnswerMarks, PlanError> {
        self.answers.clone()
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

    /// The same kernel of a guest with several CPUs: where a CPU loses its turn while it sets its timer is to be known.
    ///
    /// # Errors
    /// [`PlanError::Lacking`]
    pub fn of_several(&self) -> Result<Self, PlanError> {
        let sets = self.sets.ok_or(PlanError::Lacking(SETS))?;
        let mut several = self.clone();
        several.marks.sets = sets;
        several.points.push(one(sets, point::MARK));
        several.points.sort_unstable();
        several.points.dedup_by_key(|p| p.0);
        Ok(several)
    }

    /// The same kernel; which of its code executes is recorded too.
    #[must_use]
    pub fn with_code(&self) -> Self {
        Self { code: true, ..self.clone() }
    }

    /// The same kernel; a guest that goes on for longer than this, in virtual time, is ended.
    #[must_use]
    pub fn with_limit(&self, limit_ns: u64) -> Self {
        Self { limit_ns, ..self.clone() }
    }

    /// The same kernel, every block within these windows, which are apart and in order.
    #[must_use]
    pub fn full(&self, windows: &[GuestWindow]) -> Self {
        Self { mode: mode::FULL, windows: windows.to_vec(), ..self.clone() }
    }

    /// As the plugin reads it.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut words = vec![0; plan::WORDS];
        let (due, thread) = self.guest.timer(self.timer_form);
        let head = [
            (0, MAGIC),
            (plan::MODE, self.mode),
            (plan::OFFSET_AT, self.offset_at),
            (plan::COUNT, self.count),
            (plan::CURRENT, self.current),
            (plan::TIMER_DUE, due),
            (plan::TIMER_THREAD, thread),
            (plan::POINTS, self.points.len() as u64),
            (plan::WINDOWS, self.windows.len() as u64),
            (plan::GUEST, self.guest.word()),
            (plan::CODE, self.code.into()),
            (plan::LIMIT_NS, self.limit_ns),
            (plan::COUNT_BYTES, self.count_bytes),
        ];
        for (at, value) in head {
            words.iter_mut().skip(at).take(1).for_each(|w| *w = value);
        }
        words.extend(self.points.iter().flat_map(|(begin, end, kind)| [*begin, *end, *kind]));
        words.extend(self.windows.iter().flat_map(|window| [window.from_ns, window.to_ns]));
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        // A file of less than a page cannot be told from a broken one.
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes
    }
}

/// In the order of their addresses.
pub(crate) struct Symbols<'a>(Vec<Symbol<'a>>);

impl<'a> Symbols<'a> {
    pub(crate) fn of(kallsyms: &'a str) -> Self {
        let mut all: Vec<Symbol<'_>> = kallsyms.lines().filter_map(symbol).collect();
        order::by_key(&mut all, |s| s.address);
        Self(all)
    }

    pub(crate) fn named(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|s| s.name == name).map(|s| s.address)
    }

    fn needed(&self, name: &'static str) -> Result<u64, PlanError> {
        self.named(name).ok_or(PlanError::Lacking(name))
    }

    /// The kernel's own, and not those of the CPUs' data.
    fn upper(&self) -> impl Iterator<Item = &Symbol<'a>> + Clone {
        self.0.iter().filter(|s| s.address >> 63 == 1)
    }

    /// Bytes up to the next symbol.
    pub(crate) fn room(&self, address: u64) -> u64 {
        let next = self.0.iter().map(|s| s.address).find(|a| *a > address);
        next.unwrap_or(address) - address
    }

    /// Where the next symbol of the kernel begins.
    fn end(&self, address: u64) -> Option<u64> {
        self.upper().map(|s| s.address).find(|a| *a > address)
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
