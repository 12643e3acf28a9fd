// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sequence of system calls, made in order, over and over, in a process of its own for each task: what a hunt
//! composes, and what a person who suspects a call writes down.
//!
//! Context: the tasks are the load; SETUP elsewhere. Units: bytes, ns; counts calls.
//! At the end of a pass everything that it made is let go, so that each pass is as the first. A call that is refused
//! ends the load, but for a full pipe, an empty one, and random numbers that are not there yet.
//! Not here: which calls there are and how a sequence is written (`tailbound_core::calls`).

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tailbound_core::calls::{Call, Calls, Op, SLOTS};
use tailbound_sys::mapping::{Access, Advice, Mapping};
use tailbound_sys::{objects, process, sched, short_lived};

use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::options::Reader;
use crate::storm;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "calls",
    unit: "calls",
    about: "a sequence of system calls that you write, in order, over and over",
    options: &[
        (
            "do",
            "the calls, for example map.m0.1M+touch.m0+unmap.m0 (default: one of each; docs/loads.md lists them)",
        ),
        ("tasks", "processes (default: 1 per CPU)"),
        ("loops", "passes of each process, then end (default: until stopped)"),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// Most bytes of one pwrite or pread.
const CHUNK_BYTES: usize = 1 << 20;
/// A signal that a process ignores unless it asks for it.
const SIGURG: i32 = 23;
const SLOT_COUNT: usize = SLOTS as usize;

/// Which calls, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Options {
    calls: Calls,
    tasks: Option<usize>,
    loops: Option<u64>,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let calls = match r.spec.option("do") {
            None => Calls::sample(),
            Some(text) => text.parse().map_err(|e| r.bad("do", format!("{e}")))?,
        };
        Ok(Self { calls, tasks: r.tasks("tasks")?, loops: r.loops()? })
    }
}

fn start(options: Options, _: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?;
    let tasks = options.tasks.unwrap_or(cpus.len().max(1));
    storm::start(tasks, |_, count| {
        let mut buffer = vec![0x55; CHUNK_BYTES];
        let mut left = options.loops.unwrap_or(u64::MAX);
        while left > 0 {
            left -= 1;
            let mut pass = Pass { buffer: &mut buffer, cpus: &cpus, held: Held::default() };
            for (nr, call) in options.calls.list().iter().enumerate() {
                pass.make(call).on(format_args!("call {}, {call}", nr + 1))?;
                count(1);
            }
        }
        Ok(())
    })
}

/// Both ends of a pipe or a pair of sockets.
enum Ends {
    Pipe(File, File),
    Sockets(UnixStream, UnixStream),
}

/// What the slots hold.
#[derive(Default)]
struct Held {
    memory: [Option<Mapping>; SLOT_COUNT],
    files: [Option<File>; SLOT_COUNT],
    pipes: [Option<Ends>; SLOT_COUNT],
    timers: [Option<OwnedFd>; SLOT_COUNT],
}

/// One pass through the sequence.
struct Pass<'a> {
    buffer: &'a mut [u8],
    cpus: &'a [u32],
    held: Held,
}

/// A sequence that was read uses no slot that is empty.
const EMPTY: Failure = Failure::Plain("its slot is empty");

/// What is in a slot.
fn of<T>(slots: &[Option<T>], slot: usize) -> Result<&T, Failure> {
    slots.get(slot).and_then(Option::as_ref).ok_or(EMPTY)
}

/// What was there is let go first: two of a kind are not needed at a time.
fn put<T>(
    slots: &mut [Option<T>],
    slot: usize,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<(), Failure> {
    if let Some(it) = slots.get_mut(slot) {
        *it = None;
        *it = Some(make()?);
    }
    Ok(())
}

fn end<T>(slots: &mut [Option<T>], slot: usize) -> Result<(), Failure> {
    slots.get_mut(slot).and_then(Option::take).map(drop).ok_or(EMPTY)
}

/// A full pipe and an empty one are what they are.
fn may_refuse(done: io::Result<usize>) -> Result<(), Failure> {
    match done {
        Err(e) if e.kind() != ErrorKind::WouldBlock => Err(e.into()),
        _ => Ok(()),
    }
}

impl Pass<'_> {
    fn make(&mut self, call: &Call) -> Result<(), Failure> {
        let bytes = usize::try_from(call.number()).unwrap_or(usize::MAX);
        let (slot, second) = (call.slot(0), call.slot(1));
        let held = &mut self.held;
        match call.op {
            Op::Map => put(&mut held.memory, slot, || Ok(Mapping::plain(bytes)?)),
            Op::MapFile => {
                let file = of(&held.files, second)?;
                if file.metadata()?.len() < call.number() {
                    file.set_len(call.number())?;
                }
                put(&mut held.memory, slot, || Ok(Mapping::of_file(file.as_fd(), bytes)?))
            }
            Op::Touch
            | Op::Look
            | Op::Protect
            | Op::Drop
            | Op::Huge
            | Op::Lock
            | Op::Unlock
            | Op::Resize => {
                let it = held.memory.get_mut(slot).and_then(Option::as_mut);
                memory(it.ok_or(EMPTY)?, call.op, bytes)
            }
            Op::Unmap => end(&mut held.memory, slot),
            Op::Create => put(&mut held.files, slot, || Ok(objects::memory_file()?)),
            Op::Pwrite => write(of(&held.files, slot)?, self.buffer, call.number()),
            Op::Pread => read(of(&held.files, slot)?, self.buffer, call.number()),
            Op::Truncate => Ok(of(&held.files, slot)?.set_len(call.number())?),
            Op::Punch => {
                let file = of(&held.files, slot)?;
                Ok(objects::punch(file, file.metadata()?.len())?)
            }
            Op::Copy => {
                let (from, to) = (of(&held.files, slot)?, of(&held.files, second)?);
                let bytes = usize::try_from(from.metadata()?.len()).unwrap_or(usize::MAX);
                Ok(objects::copy(from, to, bytes).map(drop)?)
            }
            Op::Fsync => Ok(of(&held.files, slot)?.sync_all()?),
            Op::Close => end(&mut held.files, slot),
            Op::Pipe | Op::Socketpair | Op::Send | Op::Receive | Op::Shut => self.pipe(call, bytes),
            Op::Timer => put(&mut held.timers, slot, || Ok(objects::timer()?)),
            Op::Arm => {
                let ns = i64::try_from(call.number()).unwrap_or(i64::MAX);
                Ok(objects::arm(of(&held.timers, slot)?.as_fd(), ns)?)
            }
            Op::Disarm => end(&mut held.timers, slot),
            Op::Fork
            | Op::Thread
            | Op::Sleep
            | Op::Yield
            | Op::Barrier
            | Op::Random
            | Op::Signal
            | Op::Affinity
            | Op::Smaps => self.of_process(call, bytes),
        }
    }

    fn pipe(&mut self, call: &Call, bytes: usize) -> Result<(), Failure> {
        let slot = call.slot(0);
        let pipes = &mut self.held.pipes;
        let buffer = self.buffer.get_mut(..bytes).unwrap_or_default();
        match call.op {
            Op::Pipe => put(pipes, slot, || {
                let (reader, writer) = objects::pipe()?;
                Ok(Ends::Pipe(reader.into(), writer.into()))
            }),
            Op::Socketpair => put(pipes, slot, || {
                let (reader, writer) = UnixStream::pair()?;
                reader.set_nonblocking(true)?;
                writer.set_nonblocking(true)?;
                Ok(Ends::Sockets(reader, writer))
            }),
            Op::Send => may_refuse(match of(pipes, slot)? {
                Ends::Pipe(_, writer) => (&*writer).write(buffer),
                Ends::Sockets(_, writer) => (&*writer).write(buffer),
            }),
            Op::Receive => may_refuse(match of(pipes, slot)? {
                Ends::Pipe(reader, _) => (&*reader).read(buffer),
                Ends::Sockets(reader, _) => (&*reader).read(buffer),
            }),
            _ => end(pipes, slot),
        }
    }

    fn of_process(&mut self, call: &Call, bytes: usize) -> Result<(), Failure> {
        match call.op {
            Op::Fork => match short_lived::run(None)? {
                status if status.success() => Ok(()),
                status => {
                    Err(Failure::Ended { what: "a child".into(), how: process::ended(status) })
                }
            },
            Op::Thread => {
                let thread = std::thread::Builder::new().spawn(|| ())?;
                thread.join().map_err(|_| Failure::Plain("a thread panicked"))
            }
            Op::Sleep => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the sleep is the load; it is 10 ms at most"
                )]
                std::thread::sleep(Duration::from_nanos(call.number()));
                Ok(())
            }
            Op::Yield => {
                std::thread::yield_now();
                Ok(())
            }
            Op::Barrier => Ok(objects::barrier()?),
            Op::Random => {
                let into = self.buffer.get_mut(..bytes).unwrap_or_default();
                match objects::random(into) {
                    Err(e) if !e.is_would_block() => Err(e.into()),
                    _ => Ok(()),
                }
            }
            Op::Signal => Ok(process::kill(process::own_pid(), SIGURG)?),
            Op::Affinity => Ok(sched::set_affinity(0, self.cpus)?),
            _ => Ok(fs::read("/proc/self/smaps").map(drop)?),
        }
    }
}

fn memory(it: &mut Mapping, op: Op, bytes: usize) -> Result<(), Failure> {
    match op {
        Op::Touch => it.touch(1, &|_| {}),
        Op::Look => it.look(),
        Op::Protect => {
            it.protect(Access::Read)?;
            it.protect(Access::Write)?;
        }
        Op::Drop => it.advise(Advice::Drop)?,
        Op::Huge => it.advise(Advice::Huge)?,
        Op::Lock => it.lock()?,
        Op::Unlock => it.unlock()?,
        _ => it.resize(bytes)?,
    }
    Ok(())
}

/// Offset and length of each call.
fn chunks(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    (0..bytes).step_by(CHUNK_BYTES).map(move |at| {
        (at, usize::try_from(bytes - at).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES)))
    })
}

fn write(file: &File, buffer: &[u8], bytes: u64) -> Result<(), Failure> {
    for (at, n) in chunks(bytes) {
        file.write_all_at(buffer.get(..n).unwrap_or_default(), at)?;
    }
    Ok(())
}

fn read(file: &File, buffer: &mut [u8], bytes: u64) -> Result<(), Failure> {
    for (at, n) in chunks(bytes) {
        if file.read_at(buffer.get_mut(..n).unwrap_or_default(), at)? < n {
            // The end of the file.
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read as options;

    #[test]
    fn options_are_read() {
        let asked = options("calls:do=map.m0.4K+unmap.m0,tasks=2,loops=7", Options::read);
        assert_eq!(asked.calls.to_string(), "map.m0.4K+unmap.m0");
        assert_eq!((asked.tasks, asked.loops), (Some(2), Some(7)));
        assert_eq!(options("calls", Options::read).calls, Calls::sample());
    }

    #[test]
    fn chunks_are_as_long_as_the_buffer_but_for_the_last() {
        let all: Vec<_> = chunks((2 << 20) + 5).collect();
        assert_eq!(all, [(0, 1 << 20), (1 << 20, 1 << 20), (2 << 20, 5)]);
        assert_eq!(chunks(1).collect::<Vec<_>>(), [(0, 1)]);
    }
}
