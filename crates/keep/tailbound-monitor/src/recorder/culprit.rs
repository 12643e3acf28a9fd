// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who made a wake-up late, as the file that was just written shows it.
//!
//! Units: ns of CLOCK_MONOTONIC. The file is read as `tailbound blame` reads it, so that both give the same answer.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use tailbound_core::blame::BlameRecord;
use tailbound_trace::EventDecoder;
use tailbound_trace::blame::{BlameSelection, Follow, Ground, WatchFilter};
use tailbound_trace::dat::{MergeItem, TraceFile};

use crate::window::{Culprit, Late, Named};

/// The counter's clock is read some instructions before the event's.
const APART_NS: i64 = 50_000;
/// Wake-ups that are taken apart to find the one.
const MOST: usize = 64;

/// What a file tells of one late wake-up.
pub(super) struct Attribution {
    /// Who, or why that is unknown.
    pub(super) culprit: Named,
    /// Part by part.
    pub(super) record: Option<Box<BlameRecord>>,
    /// The first time that the file reaches back to.
    pub(super) from_ns: Option<u64>,
}

fn unknown(why: &str, from_ns: Option<u64>) -> Attribution {
    Attribution { culprit: Named::Unknown(format!("unknown: {why}")), record: None, from_ns }
}

/// Who made `late` late.
pub(super) fn of(path: &Path, late: &Late, virtual_machine: Option<bool>) -> Attribution {
    let trace = match File::open(path).map_err(|e| e.to_string()) {
        Ok(file) => TraceFile::open(file).map_err(|e| e.to_string()),
        Err(e) => Err(e),
    };
    let trace = match trace {
        Ok(trace) => trace,
        Err(why) => return unknown(&why, None),
    };
    let mut trace = trace;
    let (symbols, _) = trace.take_names();
    let decoder = EventDecoder::new(&trace.info().formats);
    // Half of it: waits are counted from one clock reading to the next, and told from one event to the next.
    let above_ns = i64::try_from(late.wait_ns / 2).unwrap_or(i64::MAX);
    let wanted = BlameSelection { realtime: true, above_ns, most: MOST };
    let ground = Ground { virtual_machine, ..Ground::default() };
    let mut follow = Follow::new(WatchFilter::Realtime, Arc::new(symbols), ground, wanted);
    let read = trace.read(&decoder, &mut |seen| {
        match seen {
            MergeItem::Entry(e) => follow.entry(e),
            MergeItem::Lost(t_ns) => follow.lost(t_ns),
            MergeItem::Bytes(_) => {}
        }
        true
    });
    if let Err(e) = read {
        return unknown(&e.to_string(), None);
    }
    let found = follow.finish();
    let from_ns = found.span_ns.map(|(from, _)| from);
    let end_ns = i64::try_from(late.at_ns).unwrap_or(i64::MAX);
    let away = |r: &BlameRecord| r.t_ns.saturating_add(r.latency_ns).saturating_sub(end_ns).abs();
    let of_it = found.records.iter().filter(|r| away(r) <= APART_NS).min_by_key(|r| away(r));
    let Some(record) = of_it else {
        let begin_ns = late.at_ns.saturating_sub(late.wait_ns);
        let why = match from_ns {
            None => "nothing was recorded",
            Some(from) if from > begin_ns => {
                "the recorder's ring reaches back to less than the wait"
            }
            Some(_) => "the wake-up is not among the recorded events",
        };
        return unknown(why, from_ns);
    };
    let (cause, who) = record.culprit();
    let culprit = Culprit {
        sentence: cause.sentence(who),
        who: who.to_owned(),
        share_ns: record.share_ns(cause, who),
        sureness: record.sureness(cause, who),
        cause,
    };
    Attribution { culprit: Named::Known(culprit), record: Some(Box::new(record.clone())), from_ns }
}
