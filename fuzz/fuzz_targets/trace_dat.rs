// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a file of trace-cmd, its events followed to the end.
//!
//! Finds panics, endless loops and unbounded memory; corpus in `corpus/trace_dat`.
#![no_main]

use std::io::Cursor;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tailbound_trace::EventDecoder;
use tailbound_trace::blame::{BlameSelection, Follow, Ground, WatchFilter};
use tailbound_trace::dat::{MergeItem, TraceFile};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = TraceFile::open(Cursor::new(bytes)) else { return };
    let (symbols, comms) = file.take_names();
    let decoder = EventDecoder::new(&file.info().formats);
    let wanted = BlameSelection { realtime: false, above_ns: 0, most: 5 };
    let mut follow = Follow::new(WatchFilter::All, Arc::new(symbols), Ground::default(), wanted);
    comms.iter().for_each(|(pid, comm)| follow.name_thread(*pid, comm));
    let _ = file.read(&decoder, &mut |seen| {
        match seen {
            MergeItem::Entry(e) => follow.entry(e),
            MergeItem::Lost(t_ns) => follow.lost(t_ns),
            MergeItem::Bytes(_) => {}
        }
        true
    });
    let _ = follow.finish();
});
