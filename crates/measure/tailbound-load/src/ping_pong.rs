// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of tasks that hand one byte (or, by a futex, nothing at all) to and fro: a round trip
//! is two wake-ups and, on one CPU, two context switches.
//!
//! Context: the tasks are the load; SETUP elsewhere. Units: round trips.
//! Not here: messages between many (`hackbench`); how late a hand-over is (probes).
//! Source: pipe(7), unix(7), tcp(7), futex(2).

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use tailbound_sys::ipc::{self, SharedCounters};
use tailbound_sys::sched;
use tailbound_sys::turns::Turns;

use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::options::Reader;
use crate::spin::Threads;
use crate::storm;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "ping-pong",
    unit: "round-trips",
    about: "pairs of tasks that hand one byte to and fro: context switches and wake-ups",
    options: &[
        ("ipc", "pipe (default), socketpair, inet or futex"),
        ("mode", "process (default) or thread"),
        ("pairs", "pairs (default: 1 per CPU)"),
        ("place", "free (default), same (a pair shares a CPU) or apart (two CPUs)"),
        ("loops", "round trips of each pair, then end (default: until stopped)"),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// Round trips between two additions to the count.
const BATCH: u64 = 16;
const PAIRS_MAX: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ipc {
    Pipe,
    Socketpair,
    Inet,
    Futex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Free,
    Same,
    Apart,
}

/// Which pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    ipc: Ipc,
    threads: bool,
    pairs: Option<usize>,
    place: Place,
    loops: Option<u64>,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let ipc = [
            ("pipe", Ipc::Pipe),
            ("socketpair", Ipc::Socketpair),
            ("inet", Ipc::Inet),
            ("futex", Ipc::Futex),
        ];
        let place = [("free", Place::Free), ("same", Place::Same), ("apart", Place::Apart)];
        Ok(Self {
            ipc: r.word("ipc", &ipc)?.unwrap_or(Ipc::Pipe),
            threads: r.word("mode", &[("process", false), ("thread", true)])?.unwrap_or(false),
            pairs: r.count("pairs", 1, PAIRS_MAX)?,
            place: r.word("place", &place)?.unwrap_or(Place::Free),
            loops: r.loops()?,
        })
    }
}

/// What one task reads and what it writes.
type Side = (OwnedFd, OwnedFd);

/// What a pair hands its byte over by; the turns of pair n are slot n.
struct Wires {
    sides: Vec<Side>,
    turns: SharedCounters,
    loops: Option<u64>,
    ipc: Ipc,
}

fn start(options: Options, _: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?;
    if options.place == Place::Apart && cpus.len() < 2 {
        let why = "write place=same";
        return Err(Failure::TooFewCpus { option: "place=apart", why });
    }
    let pairs = options.pairs.unwrap_or(cpus.len().max(1));
    let mut sides = Vec::new();
    for pair in 0..pairs {
        let made = wire(options.ipc)
            .on(format_args!("pair {}", pair + 1))
            .remedy("raise `ulimit -n`, or ask for fewer pairs=")?;
        sides.extend(made.into_iter().flatten());
    }
    let turns = SharedCounters::new(pairs)?;
    let wires = Wires { sides, turns, loops: options.loops, ipc: options.ipc };
    let cpu_of = move |task: usize| {
        let at = match options.place {
            Place::Free => return None,
            Place::Same => task / 2,
            Place::Apart => task,
        };
        cpus.get(at % cpus.len().max(1)).copied()
    };
    if options.threads {
        let threads = Threads::new(2 * pairs)?;
        let wires = Arc::new(wires);
        for task in 0..2 * pairs {
            let wires = Arc::clone(&wires);
            threads.spawn(task, cpu_of(task), move |count| wires.play(task, count))?;
        }
        return Ok(Box::new(threads));
    }
    storm::start(2 * pairs, |task, count| {
        if let Some(cpu) = cpu_of(task) {
            sched::set_affinity(0, &[cpu])?;
        }
        wires.play(task, count)
    })
}

/// Both ends of a pair.
fn wire(ipc: Ipc) -> io::Result<Option<[Side; 2]>> {
    let both = |fd: OwnedFd| Ok::<Side, io::Error>((fd.try_clone()?, fd));
    Ok(Some(match ipc {
        Ipc::Futex => return Ok(None),
        Ipc::Pipe => {
            let ((to_a, from_b), (to_b, from_a)) = (io::pipe()?, io::pipe()?);
            [(to_a.into(), from_a.into()), (to_b.into(), from_b.into())]
        }
        Ipc::Socketpair => {
            let (a, b) = UnixStream::pair()?;
            [both(a.into())?, both(b.into())?]
        }
        Ipc::Inet => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let a = TcpStream::connect(listener.local_addr()?)?;
            let b = listener.accept()?.0;
            for end in [&a, &b] {
                end.set_nodelay(true)?;
                // Hundreds of sockets in TIME_WAIT would be left behind.
                ipc::reset_on_close(end.as_fd()).map_err(io::Error::other)?;
            }
            [both(a.into())?, both(b.into())?]
        }
    }))
}

impl Wires {
    /// The part of task `task`: even ones begin, odd ones answer.
    fn play(&self, task: usize, count: &dyn Fn(u64)) -> Result<(), Failure> {
        let begins = task.is_multiple_of(2);
        let mut left = self.loops.unwrap_or(u64::MAX);
        while left > 0 {
            let batch = left.min(BATCH);
            for _ in 0..batch {
                if self.ipc == Ipc::Futex { self.turn(task) } else { self.byte(task) }?;
            }
            if begins {
                count(batch);
            }
            if self.loops.is_some() {
                left -= batch;
            }
        }
        Ok(())
    }

    fn turn(&self, task: usize) -> Result<(), Failure> {
        let turns = Turns::new(&self.turns, task / 2);
        let (own, other) = if task.is_multiple_of(2) { (0, 1) } else { (1, 0) };
        turns.wait(own)?;
        Ok(turns.give(other)?)
    }

    fn byte(&self, task: usize) -> Result<(), Failure> {
        let begins = task.is_multiple_of(2);
        let Some((from, to)) = self.sides.get(task) else {
            return Err(Failure::Plain("no such task"));
        };
        let on = "hand-over";
        let mut byte = [0];
        if begins {
            ipc::write(to.as_fd(), &byte).on(on)?;
        }
        if ipc::read(from.as_fd(), &mut byte).on(on)? == 0 {
            return Err(Failure::Plain("the other task of the pair is gone"));
        }
        if !begins {
            ipc::write(to.as_fd(), &byte).on(on)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("ping-pong:ipc=futex,mode=thread,pairs=2,place=same", Options::read);
        let wanted = Options {
            ipc: Ipc::Futex,
            threads: true,
            pairs: Some(2),
            place: Place::Same,
            loops: None,
        };
        assert_eq!(asked, wanted);
        assert_eq!(read("ping-pong", Options::read).ipc, Ipc::Pipe);
    }
}
