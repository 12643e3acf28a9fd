// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sequence of system calls as a load makes it and a hunt varies it: which calls there are, what each takes, and
//! which sequences are whole.
//!
//! Units: bytes, ns. What a call works on lies in a slot: four each of memory (`m0` to `m3`), files in
//! memory (`f`), pipes (`p`) and timers (`t`). A call may only use a slot that holds something; one that fills a slot
//! lets go what was there. At the end of a pass everything is let go, so that each pass is as the first.
//! Not here: how a sequence is written (`text`), how the calls are made (`tailbound-load`).

mod text;

use std::fmt;

pub use text::parse;

/// Slots of each class.
pub const SLOTS: u8 = 4;
/// Most calls of a sequence.
pub const CALLS_MAX: usize = 64;

/// What a slot can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Mapped memory.
    Memory,
    /// A file of memfd_create(2), which lies in memory.
    File,
    /// A pipe or a pair of sockets, both ends.
    Pipe,
    /// A timer of timerfd_create(2).
    Timer,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Memory, Self::File, Self::Pipe, Self::Timer];

    /// The letter of its slots.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Memory => 'm',
            Self::File => 'f',
            Self::Pipe => 'p',
            Self::Timer => 't',
        }
    }
}

/// The number that a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Bytes, from and to.
    Bytes(u64, u64),
    /// A time in ns, from and to.
    Ns(u64, u64),
}

impl Amount {
    /// From and to.
    #[must_use]
    pub const fn limits(self) -> (u64, u64) {
        match self {
            Self::Bytes(least, most) | Self::Ns(least, most) => (least, most),
        }
    }
}

/// One kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// mmap(2), private and anonymous.
    Map,
    /// mmap(2) of a file, shared.
    MapFile,
    /// A byte of each page is written.
    Touch,
    /// A byte of each page is read.
    Look,
    /// mprotect(2): the permission to write is taken away and given back.
    Protect,
    /// madvise(2) MADV_DONTNEED.
    Drop,
    /// madvise(2) MADV_HUGEPAGE.
    Huge,
    /// mlock(2).
    Lock,
    /// munlock(2).
    Unlock,
    /// mremap(2) to another size, wherever there is room.
    Resize,
    /// munmap(2).
    Unmap,
    /// memfd_create(2).
    Create,
    /// pwrite(2) from the beginning of the file.
    Pwrite,
    /// pread(2) from the beginning of the file.
    Pread,
    /// ftruncate(2).
    Truncate,
    /// fallocate(2) FALLOC_FL_PUNCH_HOLE of the whole file.
    Punch,
    /// sendfile(2) of the whole first file to the beginning of the second.
    Copy,
    /// fsync(2).
    Fsync,
    /// close(2) of a file.
    Close,
    /// pipe2(2), which does not block.
    Pipe,
    /// socketpair(2), AF_UNIX and SOCK_STREAM, which does not block.
    Socketpair,
    /// write(2) into a pipe or socket; a full one refuses, which is no failure.
    Send,
    /// read(2) from its other end; an empty one refuses, which is no failure.
    Receive,
    /// close(2) of both ends.
    Shut,
    /// timerfd_create(2).
    Timer,
    /// timerfd_settime(2), once, after this time.
    Arm,
    /// close(2) of a timer.
    Disarm,
    /// fork(2), the child's _exit(2), waitpid(2).
    Fork,
    /// A thread that ends at once, and is waited for.
    Thread,
    /// clock_nanosleep(2), relative, CLOCK_MONOTONIC.
    Sleep,
    /// sched_yield(2).
    Yield,
    /// membarrier(2) MEMBARRIER_CMD_GLOBAL, which waits for all CPUs.
    Barrier,
    /// getrandom(2), which does not block: a kernel that has just booted refuses, which is no failure.
    Random,
    /// kill(2) of the process itself, with a signal that it ignores.
    Signal,
    /// sched_setaffinity(2) to the CPUs that it has.
    Affinity,
    /// /proc/self/smaps is read: a walk through all page tables.
    Smaps,
}

/// What a kind of call takes and does to slots.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Which.
    pub op: Op,
    /// Its name in a sequence.
    pub name: &'static str,
    /// The slot that it fills; written first.
    pub makes: Option<Class>,
    /// The slots that it uses, which must hold something.
    pub uses: &'static [Class],
    /// Does it let go what lies in the slot that it uses?
    pub ends: bool,
    /// The number that it takes; written last.
    pub amount: Option<Amount>,
}

const fn form(
    op: Op,
    name: &'static str,
    makes: Option<Class>,
    uses: &'static [Class],
    amount: Option<Amount>,
) -> Form {
    Form { op, name, makes, uses, ends: false, amount }
}

const fn ends(op: Op, name: &'static str, uses: &'static [Class]) -> Form {
    Form { op, name, makes: None, uses, ends: true, amount: None }
}

const M: &[Class] = &[Class::Memory];
const F: &[Class] = &[Class::File];
const P: &[Class] = &[Class::Pipe];
const T: &[Class] = &[Class::Timer];
const MEMORY: Option<Amount> = Some(Amount::Bytes(4096, 64 << 20));
const FILE: Option<Amount> = Some(Amount::Bytes(1, 16 << 20));
const MESSAGE: Option<Amount> = Some(Amount::Bytes(1, 64 << 10));
const TIME: Option<Amount> = Some(Amount::Ns(1_000, 10_000_000));

/// Every kind of call.
pub const FORMS: &[Form] = &[
    form(Op::Map, "map", Some(Class::Memory), &[], MEMORY),
    form(Op::MapFile, "map-file", Some(Class::Memory), F, MEMORY),
    form(Op::Touch, "touch", None, M, None),
    form(Op::Look, "look", None, M, None),
    form(Op::Protect, "protect", None, M, None),
    form(Op::Drop, "drop", None, M, None),
    form(Op::Huge, "huge", None, M, None),
    form(Op::Lock, "lock", None, M, None),
    form(Op::Unlock, "unlock", None, M, None),
    form(Op::Resize, "resize", None, M, MEMORY),
    ends(Op::Unmap, "unmap", M),
    form(Op::Create, "create", Some(Class::File), &[], None),
    form(Op::Pwrite, "pwrite", None, F, FILE),
    form(Op::Pread, "pread", None, F, FILE),
    form(Op::Truncate, "truncate", None, F, FILE),
    form(Op::Punch, "punch", None, F, None),
    form(Op::Copy, "copy", None, &[Class::File, Class::File], None),
    form(Op::Fsync, "fsync", None, F, None),
    ends(Op::Close, "close", F),
    form(Op::Pipe, "pipe", Some(Class::Pipe), &[], None),
    form(Op::Socketpair, "socketpair", Some(Class::Pipe), &[], None),
    form(Op::Send, "send", None, P, MESSAGE),
    form(Op::Receive, "receive", None, P, MESSAGE),
    ends(Op::Shut, "shut", P),
    form(Op::Timer, "timer", Some(Class::Timer), &[], None),
    form(Op::Arm, "arm", None, T, TIME),
    ends(Op::Disarm, "disarm", T),
    form(Op::Fork, "fork", None, &[], None),
    form(Op::Thread, "thread", None, &[], None),
    form(Op::Sleep, "sleep", None, &[], TIME),
    form(Op::Yield, "yield", None, &[], None),
    form(Op::Barrier, "barrier", None, &[], None),
    form(Op::Random, "random", None, &[], MESSAGE),
    form(Op::Signal, "signal", None, &[], None),
    form(Op::Affinity, "affinity", None, &[], None),
    form(Op::Smaps, "smaps", None, &[], None),
];

/// The form of a kind of call.
///
/// # Panics
/// Never: a test finds every kind in [`FORMS`].
#[must_use]
#[expect(clippy::expect_used, reason = "a test finds every kind in the table")]
pub fn form_of(op: Op) -> &'static Form {
    FORMS.iter().find(|f| f.op == op).expect("every kind has a form")
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which.
    pub op: Op,
    /// Its slots: the one it fills, then those it uses.
    pub slots: Vec<u8>,
    /// Its number; as [`Form::amount`] says.
    pub amount: Option<u64>,
}

impl Call {
    /// Its slots with what they hold, the one that it fills first.
    pub fn places(&self) -> impl Iterator<Item = (Class, u8)> + '_ {
        let form = form_of(self.op);
        form.makes.into_iter().chain(form.uses.iter().copied()).zip(self.slots.iter().copied())
    }

    /// The slot `nr` of its slots, from 0.
    #[must_use]
    pub fn slot(&self, nr: usize) -> usize {
        self.slots.get(nr).copied().map_or(0, usize::from)
    }

    /// Its number, 0 where it takes none.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.amount.unwrap_or(0)
    }
}

/// Why a sequence is none, and at which call, from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("call {nr}, `{call}`: {reason}")]
pub struct CallsError {
    /// Which, from 1.
    pub nr: usize,
    /// Its words.
    pub call: String,
    /// What is wrong with it.
    pub reason: CallFault,
}

/// What is wrong with a call, or with a sequence of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFault {
    /// There is none.
    #[error("a sequence has at least one call")]
    NoCall,
    /// One more than a sequence may have.
    #[error("a sequence has at most {CALLS_MAX} calls")]
    TooMany,
    /// No call has this name.
    #[error("no such call; there are {}", FORMS.iter().map(|f| f.name).collect::<Vec<_>>().join(", "))]
    NoSuchCall,
    /// Not the slots or the number that it takes.
    #[error("write {form}")]
    Form {
        /// How it is written.
        form: String,
    },
    /// It uses a slot that holds nothing then.
    #[error("nothing is in {}{slot} there", .class.letter())]
    Empty {
        /// Of these.
        class: Class,
        /// The slot.
        slot: u8,
    },
    /// Memory would show bytes which the file has no more.
    #[error("f{file} is mapped as m{memory}, which would show less")]
    ShowsLess {
        /// The slot of the file.
        file: u8,
        /// The slot of the memory.
        memory: usize,
    },
    /// The file is too short for the memory that shows it.
    #[error("m{memory} shows a file, which would be too short")]
    TooShort {
        /// The slot of the memory.
        memory: u8,
    },
}

/// What the slots hold after some calls.
#[derive(Clone, Debug, Default)]
pub struct SlotState {
    /// By class and slot.
    full: [[bool; SLOTS as usize]; 4],
    /// The file whose bytes memory shows, by the memory's slot.
    shows: [Option<u8>; SLOTS as usize],
}

/// What a call leaves in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotContent {
    Nothing,
    Object,
}

impl SlotState {
    /// Does this slot hold something?
    #[must_use]
    pub fn holds(&self, class: Class, slot: u8) -> bool {
        self.full.get(class as usize).and_then(|all| all.get(usize::from(slot))) == Some(&true)
    }

    /// The slots of a class that hold something.
    #[must_use]
    pub fn slots(&self, class: Class) -> Vec<u8> {
        (0..SLOTS).filter(|slot| self.holds(class, *slot)).collect()
    }

    fn set(&mut self, class: Class, slot: u8, content: SlotContent) {
        if let Some(it) =
            self.full.get_mut(class as usize).and_then(|all| all.get_mut(usize::from(slot)))
        {
            *it = content == SlotContent::Object;
        }
        let shows = self.shows.get_mut(usize::from(slot));
        match (class, shows) {
            (Class::Memory, Some(shows)) => *shows = None,
            // What is mapped stays so, but has no name any more: nothing can make it shorter.
            (Class::File, _) => {
                for shows in self.shows.iter_mut().filter(|s| **s == Some(slot)) {
                    *shows = Some(SLOTS);
                }
            }
            _ => {}
        }
    }

    /// Can `call` be made now? What it then leaves is held.
    ///
    /// # Errors
    /// A slot that holds nothing, or memory that would show bytes which its file has no more.
    pub fn after(&mut self, call: &Call) -> Result<(), CallFault> {
        let form = form_of(call.op);
        let uses: Vec<_> = call.places().skip(usize::from(form.makes.is_some())).collect();
        for &(class, slot) in &uses {
            if !self.holds(class, slot) {
                return Err(CallFault::Empty { class, slot });
            }
        }
        let first = uses.first().copied();
        // Memory beyond the end of its file is a SIGBUS to who touches it.
        match (call.op, first) {
            (Op::Truncate, Some((_, file))) => {
                if let Some(memory) = self.shows.iter().position(|s| *s == Some(file)) {
                    return Err(CallFault::ShowsLess { file, memory });
                }
            }
            (Op::Resize, Some((_, memory)))
                if self.shows.get(usize::from(memory)).is_some_and(Option::is_some) =>
            {
                return Err(CallFault::TooShort { memory });
            }
            _ => {}
        }
        if let Some(class) = form.makes {
            let slot = call.slots.first().copied().unwrap_or(0);
            self.set(class, slot, SlotContent::Object);
            if call.op == Op::MapFile
                && let (Some(shows), Some((_, file))) =
                    (self.shows.get_mut(usize::from(slot)), first)
            {
                *shows = Some(file);
            }
        }
        if form.ends
            && let Some((class, slot)) = first
        {
            self.set(class, slot, SlotContent::Nothing);
        }
        Ok(())
    }
}

/// Calls made one after the other, each of which can be made: no slot is used that holds nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls(Vec<Call>);

impl Calls {
    /// A sequence of these.
    ///
    /// # Errors
    /// None, too many, or one that cannot be made where it stands.
    pub fn new(calls: Vec<Call>) -> Result<Self, CallsError> {
        let wrong = |nr: usize, call: &Call, reason: CallFault| CallsError {
            nr: nr.saturating_add(1),
            call: call.to_string(),
            reason,
        };
        if calls.is_empty() {
            return Err(CallsError { nr: 1, call: String::new(), reason: CallFault::NoCall });
        }
        let mut held = SlotState::default();
        for (nr, call) in calls.iter().enumerate() {
            if nr >= CALLS_MAX {
                return Err(wrong(nr, call, CallFault::TooMany));
            }
            held.after(call).map_err(|reason| wrong(nr, call, reason))?;
        }
        Ok(Self(calls))
    }

    /// The calls.
    #[must_use]
    pub fn list(&self) -> &[Call] {
        &self.0
    }

    /// Every kind of call once, in the order of [`FORMS`], with sizes of a usual program.
    #[must_use]
    pub fn sample() -> Self {
        const SAMPLE: &str = "map.m0.1M+touch.m0+look.m0+protect.m0+drop.m0+huge.m0+lock.m0+unlock.m0+resize.m0.2M\
            +unmap.m0+create.f0+pwrite.f0.64K+pread.f0.64K+map-file.m1.f0.64K+touch.m1+unmap.m1+truncate.f0.4K+punch.f0+create.f1\
            +copy.f0.f1+fsync.f0+close.f0+pipe.p0+send.p0.4K+receive.p0.4K+shut.p0+socketpair.p1+send.p1.4K+receive.p1.4K\
            +timer.t0+arm.t0.100us+disarm.t0+fork+thread+sleep.50us+yield+barrier+random.256+signal+affinity+smaps";
        SAMPLE.parse().unwrap_or(Self(Vec::new()))
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nr, call) in self.0.iter().enumerate() {
            write!(f, "{}{call}", if nr == 0 { "" } else { "+" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<Calls>().err().map_or_else(|| "no error".to_owned(), |e| e.to_string())
    }

    #[test]
    fn a_slot_is_filled_before_it_is_used() {
        assert_eq!(refused("map.m0.4K+touch.m1"), "call 2, `touch.m1`: nothing is in m1 there");
        assert!(refused("map.m0.4K+unmap.m0+touch.m0").contains("call 3"));
        assert!(refused("create.f0+map-file.m0.f1.4K").contains("nothing is in f1"));
        assert_eq!(refused("map.m0.4K+map.m0.8K+unmap.m0"), "no error");
    }

    #[test]
    fn memory_is_never_longer_than_the_file_it_shows() {
        let begin = "create.f0+map-file.m0.f0.1M";
        assert!(refused(&format!("{begin}+truncate.f0.4K")).contains("mapped as m0"));
        assert!(refused(&format!("{begin}+resize.m0.2M")).contains("shows a file"));
        assert_eq!(refused(&format!("{begin}+unmap.m0+truncate.f0.4K")), "no error");
        // The name is another file's then.
        assert_eq!(refused(&format!("{begin}+create.f0+truncate.f0.4K+touch.m0")), "no error");
        assert!(refused(&format!("{begin}+close.f0+resize.m0.2M")).contains("shows a file"));
        assert_eq!(refused(&format!("{begin}+map.m0.4K+resize.m0.2M")), "no error");
    }

    #[test]
    fn the_sample_has_every_kind_of_call() {
        let sample = Calls::sample();
        for form in FORMS {
            assert!(sample.list().iter().any(|c| c.op == form.op), "{}", form.name);
            assert_eq!(form_of(form.op).name, form.name);
        }
    }

    #[test]
    fn a_sequence_has_an_end() {
        assert!(refused("").contains("at least one"));
        assert!(refused(&vec!["yield"; CALLS_MAX + 1].join("+")).contains("at most 64"));
    }
}
