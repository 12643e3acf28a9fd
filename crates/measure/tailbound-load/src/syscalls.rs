// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cheapest system calls, over and over, in a process on each CPU.
//!
//! Context: the tasks are the load; SETUP elsewhere. Units: calls.
//! Not here: the calls themselves (`tailbound_sys::cheap_calls`).

use tailbound_sys::cheap_calls::{Call, Calls};
use tailbound_sys::sched;

use crate::error::LoadError;
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::options::Reader;
use crate::storm;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "syscalls",
    unit: "calls",
    about: "the cheapest system calls, one process per CPU: the way into the kernel and back",
    options: &[
        ("call", "mix (default: all but yield), getppid, read, write, lseek, dup, futex or yield"),
        ("loops", "calls of each process, then end (default: until stopped)"),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// Calls of one kind before the next, and before they are told.
const BATCH: u64 = 500;

/// Which calls, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    /// `None`: all in turn.
    call: Option<Call>,
    loops: Option<u64>,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let mut words = vec![("mix", None)];
        words.extend(Call::ALL.map(|(name, call)| (name, Some(call))));
        let call = r.word("call", &words)?.flatten();
        Ok(Self { call, loops: r.loops()? })
    }
}

fn start(options: Options, _: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?;
    storm::start(cpus.len().max(1), |slot, count| {
        if let Some(cpu) = cpus.get(slot) {
            sched::set_affinity(0, &[*cpu])?;
        }
        let calls = Calls::new()?;
        let mut left = options.loops.unwrap_or(u64::MAX);
        // Not sched_yield: where others want the CPU it gives a time slice away, and nothing else would
        // be left of the mix.
        let mix = Call::ALL.iter().filter(|(_, call)| *call != Call::Yield);
        for (_, call) in mix.cycle() {
            let call = options.call.unwrap_or(*call);
            let wanted = left.min(BATCH);
            // A dup is two calls: the last of an odd number is one too many, and not counted.
            let times = if call == Call::Dup { wanted.div_ceil(2) } else { wanted };
            let done = calls.make(call, times)?;
            count(done.min(wanted));
            if options.loops.is_some() {
                left -= wanted;
            }
            if left == 0 {
                break;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("syscalls:call=dup,loops=4", Options::read);
        assert_eq!(asked, Options { call: Some(Call::Dup), loops: Some(4) });
        assert_eq!(read("syscalls:call=mix", Options::read), Options { call: None, loops: None });
    }
}
