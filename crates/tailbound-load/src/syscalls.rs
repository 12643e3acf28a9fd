// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cheapest system calls, over and over, in a process on each CPU.
//!
//! Context: the tasks are the load; SETUP elsewhere. Units: calls.
//! Not here: the calls themselves (`tailbound_sys::cheap_calls`).

use tailbound_sys::cheap_calls::{Call, Calls};
use tailbound_sys::sched;

use crate::error::LoadError;
use crate::options::{LOOPS_MAX, Reader};
use crate::storm;
use crate::worker::Load;

/// Calls of one kind before the next, and before they are told.
const BATCH: u64 = 500;

/// Which calls, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// `None`: all in turn.
    call: Option<Call>,
    loops: Option<u64>,
}

impl Options {
    pub(crate) fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let mut words = vec![("mix", None)];
        words.extend(Call::ALL.map(|(name, call)| (name, Some(call))));
        let call = r.word("call", &words)?.flatten();
        Ok(Self { call, loops: r.number("loops", 1, LOOPS_MAX)? })
    }
}

pub(crate) fn start(options: Options) -> Result<Box<dyn Load>, String> {
    let cpus = sched::affinity(0).map_err(|e| e.to_string())?;
    storm::start(cpus.len().max(1), |slot, count| {
        if let Some(cpu) = cpus.get(slot) {
            sched::set_affinity(0, &[*cpu]).map_err(|e| e.to_string())?;
        }
        let calls = Calls::new().map_err(|e| e.to_string())?;
        let mut left = options.loops.unwrap_or(u64::MAX);
        // Not sched_yield: where others want the CPU it gives a time slice away, and nothing else would
        // be left of the mix.
        let mix = Call::ALL.iter().filter(|(_, call)| *call != Call::Yield);
        for (_, call) in mix.cycle() {
            let call = options.call.unwrap_or(*call);
            let wanted = left.min(BATCH);
            // A dup is two calls: the last of an odd number is one too many, and not counted.
            let times = if call == Call::Dup { wanted.div_ceil(2) } else { wanted };
            let done = calls.make(call, times).map_err(|e| e.to_string())?;
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
