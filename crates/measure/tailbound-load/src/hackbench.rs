// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of tasks that send each other messages: in each group every one of `fds` senders
//! writes to every one of `fds` receivers, over and over.
//!
//! Context: the tasks are the load; SETUP elsewhere. Units: bytes, messages, ns.
//! The shape is that of the hackbench known from scheduler work (40 tasks per group, 100
//! bytes, Unix sockets), so that rates can be compared: one write and one read a message.
//! With `loops` it ends after that many messages per pair, otherwise it goes on until stopped.
//! Source: unix(7), pipe(7), tcp(7).

use std::collections::HashSet;
use std::io::{self, PipeReader, PipeWriter};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tailbound_sys::ipc::{self, SharedCounters};
use tailbound_sys::process::{self, Pid};
use tailbound_sys::sched;

use crate::error::LoadError;
use crate::failure::{Explain, Failure, MORE_TASKS};
use crate::kind::{CPUS, Load, LoadKind, Note, Start, Started, Turn};
use crate::machine;
use crate::options::Reader;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "hackbench",
    unit: "messages",
    about: "groups of tasks that send each other messages: scheduler and wake-ups",
    options: &[
        ("groups", "groups of 2 x fds tasks (default: 2 per CPU)"),
        ("ipc", "socketpair (default), pipe or inet"),
        ("mode", "process (default) or thread"),
        ("size", "bytes a message (default 100)"),
        ("fds", "senders, and receivers, in a group (default 20)"),
        ("loops", "messages from each sender to each receiver, then end (default: until stopped)"),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

const GROUPS_PER_CPU: usize = 2;
/// Senders of a group, and receivers.
const FDS_DEFAULT: usize = 20;
/// Most tasks: Linux's default limit of process numbers is 32768.
const TASKS_MAX: usize = 30_000;
/// Memory of a process that does nothing but send: its stacks, page tables and the pages it does
/// not share, as measured (11 MB per group with all that lies in its sockets).
const PROCESS_BYTES: u64 = 192 << 10;
/// ... and of a thread.
const THREAD_BYTES: u64 = 48 << 10;
/// At most this part of the available memory is taken by default.
const AVAILABLE_PART: u64 = 4;
/// Descriptors of the worker itself and of its C library.
const FDS_OF_OUR_OWN: usize = 64;
const STACK_BYTES: usize = 128 * 1024;
/// Longest wait for all tasks to have started.
const START_LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ipc {
    Socketpair,
    Pipe,
    Inet,
}

/// How many tasks, what they send, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Options {
    groups: Option<usize>,
    ipc: Ipc,
    threads: bool,
    size: usize,
    fds: usize,
    loops: Option<u64>,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let ipc = [("socketpair", Ipc::Socketpair), ("pipe", Ipc::Pipe), ("inet", Ipc::Inet)];
        let it = Self {
            groups: r.count("groups", 1, 1000)?,
            ipc: r.word("ipc", &ipc)?.unwrap_or(Ipc::Socketpair),
            threads: r.word("mode", &[("process", false), ("thread", true)])?.unwrap_or(false),
            size: r.count("size", 1, 1 << 20)?.unwrap_or(100),
            fds: r.count("fds", 1, 1000)?.unwrap_or(FDS_DEFAULT),
            loops: r.loops()?,
        };
        if let Some(groups) = it.groups
            && groups * it.fds * 2 > TASKS_MAX
        {
            return Err(r.bad(
                "groups",
                format!("{groups} groups of 2 x {} tasks are more than {TASKS_MAX} tasks", it.fds),
            ));
        }
        Ok(it)
    }
}

/// Where a receiver reads, where senders write.
type Channel = (OwnedFd, OwnedFd);

/// What every task needs to know.
struct Shape {
    size: usize,
    fds: usize,
    loops: Option<u64>,
    /// A byte for each task that is ready.
    ready: (PipeReader, PipeWriter),
    /// One byte: all may go.
    go: (PipeReader, PipeWriter),
    /// Messages read, one counter per receiver.
    counters: SharedCounters,
}

struct Hackbench {
    shape: Arc<Shape>,
    started: Instant,
    tasks: Tasks,
}

enum Tasks {
    Processes(HashSet<Pid>),
    Threads(Arc<Finish>),
}

/// Messages up to this size live on the stack.
const NEAR_BYTES: usize = 1024;
/// Messages a receiver takes before it tells.
const TOLD_EVERY: u64 = 32;

/// How far the threads of a finite run are.
struct Finish {
    left: AtomicUsize,
    started: OnceLock<Instant>,
    elapsed: OnceLock<Duration>,
    failure: OnceLock<Failure>,
}

fn start(options: Options, note: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?.len().max(1);
    let (groups, fds) = fitting(&options, cpus, machine::Room::memory().as_ref(), note)?;
    let options = Options { fds, ..options };
    let per_group = 2 * fds;
    let tasks = groups * per_group;
    // A process holds its own group's descriptors, threads hold everybody's.
    let fds = per_group * if options.threads { groups } else { 1 } + FDS_OF_OUR_OWN;
    allow_descriptors(fds)?;
    let shape = Arc::new(Shape {
        size: options.size,
        fds: options.fds,
        loops: options.loops,
        ready: io::pipe().on("pipe")?,
        go: io::pipe().on("pipe")?,
        counters: SharedCounters::new(groups * options.fds)?,
    });
    let running = if options.threads {
        threads(&shape, groups, options.ipc)?
    } else {
        processes(&shape, groups, options.ipc)?
    };
    wait_until_ready(&shape, tasks)?;
    let started = Instant::now();
    if let Tasks::Threads(finish) = &running {
        finish.started.get_or_init(|| started);
    }
    write_whole(shape.go.1.as_fd(), &[0]).on("starting the tasks")?;
    Ok(Box::new(Hackbench { shape, started, tasks: running }))
}

/// Groups and senders of each: as asked, or as many as the memory is good for.
fn fitting(
    options: &Options,
    cpus: usize,
    room: Option<&machine::Room>,
    note: Note<'_>,
) -> Result<(usize, usize), Failure> {
    let usual = (GROUPS_PER_CPU * cpus).min(TASKS_MAX / (2 * options.fds)).max(1);
    let groups = options.groups.unwrap_or(usual);
    let Some(room) = room else { return Ok((groups, options.fds)) };
    let task = if options.threads { THREAD_BYTES } else { PROCESS_BYTES };
    // What lies in a channel until it is read; of a socket that is bounded by default at 208 KiB.
    let channel: u64 = match options.ipc {
        Ipc::Pipe => 64 << 10,
        Ipc::Socketpair => 208 << 10,
        Ipc::Inet => 128 << 10,
    };
    let pair = 2 * (task + options.size as u64) + channel;
    let (mut groups, mut fds) = (groups, options.fds);
    let part = room.part(AVAILABLE_PART);
    if options.groups.is_none() {
        let good_for = |bytes: u64| usize::try_from(part / bytes.max(1)).unwrap_or(usize::MAX);
        groups = groups.min(good_for(pair * fds as u64)).max(1);
        if groups == 1 && fds == FDS_DEFAULT {
            fds = fds.min(good_for(pair)).max(1);
        }
    }
    let shown = |groups, fds| format!("{groups} x {fds} senders and {fds} receivers");
    let instead = "write fewer groups= or fds=, or mode=thread";
    room.refuse(pair * (groups * fds) as u64, &shown(groups, fds), instead)?;
    if (groups, fds) != (options.groups.unwrap_or(usual), options.fds) {
        note(room.reduced(&shown(groups, fds), &shown(usual, options.fds)));
    }
    Ok((groups, fds))
}

fn allow_descriptors(needed: usize) -> Result<(), Failure> {
    let needed = u64::try_from(needed).unwrap_or(u64::MAX);
    process::allow_open_files(needed).map_err(|source| Failure::Descriptors {
        needed,
        source,
        instead: "fewer groups or fds, or mode=process",
    })
}

fn channel(ipc: Ipc) -> io::Result<Channel> {
    Ok(match ipc {
        Ipc::Pipe => {
            let (reader, writer) = io::pipe()?;
            (reader.into(), writer.into())
        }
        Ipc::Socketpair => {
            let (a, b) = UnixStream::pair()?;
            (a.into(), b.into())
        }
        Ipc::Inet => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let writer = TcpStream::connect(listener.local_addr()?)?;
            let reader = listener.accept()?.0;
            (reader.into(), writer.into())
        }
    })
}

/// The channels of one group.
fn group(shape: &Shape, ipc: Ipc) -> Result<Vec<Channel>, Failure> {
    let make = |i| {
        let made = channel(ipc).on(format_args!("channel {i} of a group"))?;
        if ipc == Ipc::Inet && shape.loops.is_none() {
            // Stopped in the middle: hundreds of sockets in TIME_WAIT would be left behind.
            // A finite run closes in order and must not throw away what is under way.
            for end in [&made.0, &made.1] {
                ipc::reset_on_close(end.as_fd())?;
            }
        }
        Ok(made)
    };
    (0..shape.fds).map(make).collect()
}

fn processes(shape: &Arc<Shape>, groups: usize, ipc: Ipc) -> Result<Tasks, Failure> {
    let mut pids = HashSet::new();
    let total = groups * 2 * shape.fds;
    let mut fork = |task: &dyn Fn() -> io::Result<()>| {
        let pid = process::fork_task(|| u8::from(task().is_err()))
            .on(format_args!("task {} of {total}", pids.len() + 1))
            .remedy(format_args!("{MORE_TASKS} fewer groups"))?;
        pids.insert(pid);
        Ok::<(), Failure>(())
    };
    for g in 0..groups {
        // Dropped, that is closed here, once the group's tasks have their copies.
        let channels = group(shape, ipc)?;
        for (i, (reader, _)) in channels.iter().enumerate() {
            fork(&|| receive(shape, reader.as_fd(), g * shape.fds + i))?;
        }
        for _ in 0..shape.fds {
            fork(&|| send(shape, &channels))?;
        }
    }
    Ok(Tasks::Processes(pids))
}

fn threads(shape: &Arc<Shape>, groups: usize, ipc: Ipc) -> Result<Tasks, Failure> {
    let per_group = 2 * shape.fds;
    let total = groups * per_group;
    let finish = Arc::new(Finish {
        left: AtomicUsize::new(total),
        started: OnceLock::new(),
        elapsed: OnceLock::new(),
        failure: OnceLock::new(),
    });
    for g in 0..groups {
        let channels = Arc::new(group(shape, ipc)?);
        for i in 0..per_group {
            let (shape, channels, finish) =
                (Arc::clone(shape), Arc::clone(&channels), Arc::clone(&finish));
            let task = move || {
                let done = match channels.get(i) {
                    Some((reader, _)) => receive(&shape, reader.as_fd(), g * shape.fds + i),
                    None => send(&shape, &channels),
                };
                finish.one(done);
            };
            thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn(task)
                .on(format_args!("thread {} of {total}", g * per_group + i + 1))
                .remedy(format_args!("{MORE_TASKS} fewer groups"))?;
        }
    }
    Ok(Tasks::Threads(finish))
}

impl Finish {
    /// A thread has ended; the last one takes the time.
    fn one(&self, done: io::Result<()>) {
        if let Err(e) = done {
            self.failure.get_or_init(|| Failure::from(e).on("a thread"));
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(started) = self.started.get()
        {
            self.elapsed.get_or_init(|| started.elapsed());
        }
    }
}

fn wait_until_ready(shape: &Shape, tasks: usize) -> Result<(), Failure> {
    let start = Instant::now();
    let mut ready = 0;
    let mut buffer = [0; 4096];
    while ready < tasks {
        let waited = start.elapsed();
        if waited > START_LIMIT {
            return Err(Failure::NotReady { ready, tasks, waited_s: START_LIMIT.as_secs() });
        }
        let reader = shape.ready.0.as_fd();
        if ipc::wait_readable(&[reader], 100)?.first() == Some(&true) {
            ready += ipc::read(reader, &mut buffer).on("pipe")?;
        }
    }
    Ok(())
}

fn receive(shape: &Shape, from: BorrowedFd<'_>, slot: usize) -> io::Result<()> {
    let (mut near, mut far) = ([0; NEAR_BYTES], Vec::new());
    let buffer = message(shape.size, &mut near, &mut far);
    wait_for_go(shape)?;
    let senders = u64::try_from(shape.fds).unwrap_or(u64::MAX);
    let all = shape.loops.map(|loops| loops.saturating_mul(senders));
    let mut received = 0u64;
    let counter = shape.counters.slot(slot);
    while all != Some(received) {
        read_whole(from, buffer)?;
        received = received.wrapping_add(1);
        // Not every time: a line of memory that no other hackbench touches would count against ours.
        if received.is_multiple_of(TOLD_EVERY) || all == Some(received) {
            counter.store(received, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn send(shape: &Shape, channels: &[Channel]) -> io::Result<()> {
    let (mut near, mut far) = ([0; NEAR_BYTES], Vec::new());
    let message = message(shape.size, &mut near, &mut far);
    wait_for_go(shape)?;
    let mut left = shape.loops;
    while left != Some(0) {
        for (_, writer) in channels {
            write_whole(writer.as_fd(), message)?;
        }
        left = left.map(|n| n - 1);
    }
    Ok(())
}

/// A message of `size` bytes: on the stack where it fits, which is one page less to miss after
/// each of the many switches between tasks.
fn message<'a>(size: usize, near: &'a mut [u8; NEAR_BYTES], far: &'a mut Vec<u8>) -> &'a mut [u8] {
    match near.get_mut(..size) {
        Some(near) => near,
        None => {
            far.resize(size, 0);
            far
        }
    }
}

/// Receivers wait too: were they all asleep in read(2) when the first message comes, each
/// message would wake one, and on few CPUs the lock-step so begun lasts.
fn wait_for_go(shape: &Shape) -> io::Result<()> {
    write_whole(shape.ready.1.as_fd(), &[0])?;
    // Nobody takes the byte out: it wakes them all.
    while ipc::wait_readable(&[shape.go.0.as_fd()], -1).map_err(io::Error::other)?.first()
        != Some(&true)
    {}
    Ok(())
}

fn read_whole(from: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|r| !r.is_empty()) {
        match ipc::read(from, rest) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn write_whole(to: BorrowedFd<'_>, message: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = message.get(done..).filter(|r| !r.is_empty()) {
        match ipc::write(to, rest) {
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn ns(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

impl Load for Hackbench {
    fn count(&self) -> u64 {
        self.shape.counters.total()
    }

    fn turn(&mut self, ended: &[(Pid, ExitStatus)]) -> Result<Turn, Failure> {
        match &mut self.tasks {
            Tasks::Processes(pids) => {
                for (pid, status) in ended {
                    let finished = status.success() && self.shape.loops.is_some();
                    if pids.remove(pid) && !finished {
                        let how = process::ended(*status);
                        return Err(Failure::Ended { what: "a task".into(), how });
                    }
                }
                if pids.is_empty() {
                    return Ok(Turn::Done { elapsed_ns: ns(self.started.elapsed()) });
                }
            }
            Tasks::Threads(finish) => {
                if let Some(reason) = finish.failure.get() {
                    return Err(reason.clone());
                }
                if let Some(elapsed) = finish.elapsed.get() {
                    return Ok(Turn::Done { elapsed_ns: ns(*elapsed) });
                }
            }
        }
        Ok(Turn::Going)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("hackbench:groups=4,ipc=pipe,mode=thread,loops=9", Options::read);
        let usual = read("hackbench", Options::read);
        assert_eq!((usual.groups, usual.ipc, usual.threads), (None, Ipc::Socketpair, false));
        let wanted =
            Options { groups: Some(4), ipc: Ipc::Pipe, threads: true, loops: Some(9), ..usual };
        assert_eq!(asked, wanted);
    }

    #[test]
    fn what_does_not_fit_is_made_smaller_or_refused_with_the_figures() {
        let usual = Options {
            groups: None,
            ipc: Ipc::Socketpair,
            threads: false,
            size: 100,
            fds: FDS_DEFAULT,
            loops: None,
        };
        let mut said = Vec::new();
        let mut fit = |options: &Options, mib: u64| {
            let room = machine::Room::new(mib << 20, 8 << 20, "control group /small");
            fitting(options, 2, Some(&room), &mut |text| said.push(text))
        };
        assert_eq!(fit(&usual, 24 << 10).ok(), Some((4, 20)));
        assert_eq!(fit(&usual, 100).ok(), Some((2, 20)));
        assert!(fit(&usual, 40).is_ok_and(|(groups, fds)| groups == 1 && (10..20).contains(&fds)));
        assert!(
            fit(&usual, 8)
                .is_err_and(|e| e.to_string().contains("the 0 that control group /small has"))
        );
        let asked = Options { groups: Some(40), ..usual.clone() };
        assert_eq!(fit(&asked, 24 << 10).ok(), Some((40, 20)));
        let refused = fit(&asked, 100).unwrap_err().to_string();
        assert!(refused.contains("40 x 20 senders") && refused.contains("groups="), "{refused}");
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said.iter().all(|s| s.contains("instead of 4 x 20")), "{said:?}");
    }
}
