// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who made wake-ups late in a file that perf recorded.
//!
//! Units: ns on perf's clock.
//! Not here: the layout of the file (`crate::perf`), the rules (`follow`).

use std::io::{Read, Seek};
use std::sync::Arc;

use serde::Serialize;
use tailbound_core::printable::excerpt;
use tailbound_core::units::grouped;

use super::{
    BlameSelection, BlameSummary, DueTimes, Follow, Ground, InterruptEnds, TraceExtent, WatchFilter,
};
use crate::dat;
use crate::event::{EventDecoder, WANTED};
use crate::perf::{PerfClock, PerfEnd, PerfError, PerfFile, PerfInfo, PerfItem, RECORD};
use crate::symbols::Symbols;

/// Longest text of a file that is shown.
const SHOWN_MAX: usize = 60;

/// What a file of perf told.
#[derive(Debug)]
pub struct PerfBlame {
    /// Who made its threads late.
    pub found: BlameSummary,
    /// What a reader must know.
    pub notes: Vec<String>,
    info: PerfInfo,
    end: PerfEnd,
    extent: TraceExtent,
}

/// What a file is and how much of it was read: for scripts.
#[derive(Clone, Debug, Serialize)]
pub struct PerfFacts {
    recorder: Option<String>,
    system: Option<String>,
    clock: &'static str,
    bytes: u64,
    samples: u64,
    understood: u64,
    lost: u64,
    damaged: u64,
    whole: bool,
}

impl PerfBlame {
    /// Reads and follows `file` as far as `go_on`, which is given the bytes so far, says; `ground` has what is known of
    /// the machine it was recorded on.
    ///
    /// # Errors
    /// [`PerfError`].
    pub fn of<R: Read + Seek>(
        file: PerfFile<R>,
        watched: WatchFilter,
        wanted: BlameSelection,
        ground: Ground,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, PerfError> {
        let info = file.info().clone();
        let names: Vec<&str> = info.formats.iter().map(|f| f.name.as_str()).collect();
        let missing: Vec<String> = WANTED
            .iter()
            .filter(|w| w.needed && !names.contains(&w.name))
            .map(|w| format!("{}:{}", w.system, w.name))
            .collect();
        if !missing.is_empty() {
            return Err(PerfError::Lacking { missing });
        }
        let decoder = EventDecoder::new(&info.formats);
        let mut follow = Follow::new(watched, Arc::new(Symbols::default()), ground, wanted);
        if info.clock != PerfClock::Monotonic {
            follow.due_times(DueTimes::CarriedOver);
        }
        let mut interrupts = InterruptEnds::default();
        let (mut extent, mut last_ns, mut back) = (TraceExtent::Whole, 0u64, 0u64);
        let end = file.read(&decoder, &mut |item| {
            match item {
                PerfItem::Entry(e) if e.t_ns < last_ns => back = back.saturating_add(1),
                PerfItem::Entry(e) => {
                    last_ns = e.t_ns;
                    interrupts.entry(e, &mut follow);
                }
                PerfItem::Name(tid, comm) => follow.name_thread(tid, &comm),
                PerfItem::Lost => follow.lost(last_ns),
                PerfItem::Bytes(bytes) if !go_on(bytes) => {
                    extent = TraceExtent::Begin;
                    return false;
                }
                PerfItem::Bytes(_) => {}
            }
            true
        })?;
        let mut found = follow.finish();
        interrupts.soften(&mut found);
        let mut notes = info.notes.clone();
        notes.extend(told(&info, &end, &decoder, &names, extent));
        notes.extend(interrupts.note().map(str::to_owned));
        if back > 0 {
            notes.push(format!("{} events go back in time and were left out", grouped(back)));
        }
        Ok(Self { found, notes, info, end, extent })
    }

    /// Where the events come from, in a sentence.
    #[must_use]
    pub fn origin(&self) -> String {
        let info = &self.info;
        let shown = |text: &str| excerpt(text, SHOWN_MAX).to_string();
        let version = info.recorder.as_deref().map(|v| format!(" ({})", shown(v)));
        let system = info.uname().map(|u| format!(", {}", shown(&u)));
        let (version, system) = (version.unwrap_or_default(), system.unwrap_or_default());
        format!("A file of perf{version}{system}; clock: {}.", info.clock.words())
    }

    /// The same for scripts.
    #[must_use]
    pub fn facts(&self) -> PerfFacts {
        let (info, end) = (&self.info, &self.end);
        PerfFacts {
            recorder: info.recorder.clone(),
            system: info.uname(),
            clock: info.clock.words(),
            bytes: info.bytes,
            samples: end.samples,
            understood: self.found.events,
            lost: end.lost,
            damaged: end.damaged,
            whole: self.extent == TraceExtent::Whole,
        }
    }
}

/// What a reader must know of the file.
fn told(
    info: &PerfInfo,
    end: &PerfEnd,
    decoder: &EventDecoder,
    names: &[&str],
    extent: TraceExtent,
) -> Vec<String> {
    let mut out = Vec::new();
    let mut say = |is: bool, text: String| out.extend(is.then_some(text));
    say(
        extent == TraceExtent::Begin,
        "it was ended before the whole file was read: the rest is not in these figures".to_owned(),
    );
    say(
        info.wakeups_alone,
        "the file has sched_wakeup and no sched_waking: what passed between the two on another CPU is not in it"
            .to_owned(),
    );
    let timers = names.contains(&"hrtimer_expire_entry") && names.contains(&"hrtimer_start");
    say(
        timers && info.clock != PerfClock::Monotonic,
        "the file's clock is not that of timers: when a timer was due is carried over from the kernel's own look at the clock at its expiry, and the time from there to the record of it is left out (record with -k mono)"
            .to_owned(),
    );
    for lacking in decoder.lacking() {
        say(true, format!("{lacking}: the event is not used"));
    }
    let x86 = info.arch.as_deref().is_none_or(|a| a.ends_with("86_64") || a.ends_with("86"));
    let processors = if x86 { dat::Processors::X86 } else { dat::Processors::Other };
    let lacks = dat::lacking(names, processors);
    for lack in &lacks {
        say(true, format!("the trace has no {}: {}", lack.events, lack.lost));
    }
    say(!lacks.is_empty(), format!("more is understood of `{RECORD}`"));
    say(end.lost > 0, format!("{} events were lost", grouped(end.lost)));
    say(
        end.damaged > 0,
        format!("{} samples could not be read and were left out", grouped(end.damaged)),
    );
    out
}
