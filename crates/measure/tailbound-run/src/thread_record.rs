// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record of one thread, made from its recorders.
//!
//! Units: ns.

use std::collections::BTreeMap;

use tailbound_core::ThreadEnd;
use tailbound_core::collect::Collector;
use tailbound_core::record::{ThreadRecord, WarmUp};
use tailbound_probe::Finished;
use tailbound_rt::LoopEnd;

/// As it stands while it runs, whole when it has finished.
pub(crate) fn thread_record(
    collector: &Collector,
    slot: tailbound_probe::RecordSlot,
    recorders: &tailbound_probe::Recorders,
    finished: Option<&Finished>,
) -> ThreadRecord {
    let (wakeup, missed) = collector.distributions(&recorders.measured);
    let (warm, warm_missed) = (recorders.warm_up.wakeups(), recorders.warm_up.missed());
    let usage = |u: &tailbound_sys::limits::Usage| {
        vec![
            ("minor_faults", u.minor_faults),
            ("major_faults", u.major_faults),
            ("voluntary_switches", u.voluntary_switches),
            ("involuntary_switches", u.involuntary_switches),
            ("cpu_ns", u.cpu_ns),
        ]
    };
    let counters = finished.map_or_else(Vec::new, |f| usage(&f.usage));
    let (exceedances, seconds, raw) = recorders.measured.dropped();
    let dropped = [("exceedances", exceedances), ("seconds", seconds), ("raw", raw)];
    let named = |list: &[(&str, u64)]| {
        list.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect::<BTreeMap<_, _>>()
    };
    ThreadRecord {
        thread: slot.thread,
        cpu: slot.cpu,
        context: slot.context,
        wakeup,
        missed,
        warm_up: Some(WarmUp { n: warm.n, missed: warm_missed.n, max_ns: warm.max_ns }),
        counters: named(&counters),
        dropped: named(&dropped).into_iter().filter(|(_, v)| *v > 0).collect(),
        p2: BTreeMap::new(),
        requirement: None,
        name: None,
        ended: match finished.map(|f| f.ended) {
            None => ThreadEnd::Running,
            Some(LoopEnd::Complete) => ThreadEnd::Complete,
            Some(LoopEnd::Stopped(_)) => ThreadEnd::Stopped,
            Some(LoopEnd::Failed(errno, _)) => {
                let why = std::io::Error::from_raw_os_error(errno);
                ThreadEnd::Other(format!("failed: {why}"))
            }
        },
    }
}
