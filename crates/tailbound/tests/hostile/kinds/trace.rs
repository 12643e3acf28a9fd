// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of trace-cmd and pages of the kernel's buffers, followed by everything that follows events.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

use tailbound_core::blame::{BlameRecord, KernelKind};
use tailbound_paths::machine::{CpuEvents, Names};
use tailbound_report::{Style, blame, cycles};
use tailbound_stats::theory;
use tailbound_trace::blame::{
    BlameSelection, DueTimes, Follow, Ground, Interruptions, PerfBlame, WatchFilter,
};
use tailbound_trace::cycle::{Calls, Cycles, Wish};
use tailbound_trace::dat::{MergeItem, TraceFile};
use tailbound_trace::event::Entry;
use tailbound_trace::perf::PerfFile;
use tailbound_trace::rules::{CallTable, Rules};
use tailbound_trace::symbols::Symbols;
use tailbound_trace::text::{self, TextRequest};
use tailbound_trace::{Decoder, EventDecoder, EventFormat, PageLayout};

use super::{Kind, Reader, sample};
use crate::mutate::Random;

pub(super) const FILE: Kind = Kind {
    name: "trace_file",
    share: 6,
    texts: false,
    samples: || {
        let names = [
            "6.1-rt-v7-zstd",
            "6.12-rt-v6-two",
            "6.12-rt-v7-two",
            "6.12-rt-v7-zlib",
            "6.12-rt-v6-two",
        ];
        names
            .map(|n| sample(&format!("explain/tailbound-trace/tests/data/trace-cmd/linux-{n}.dat")))
            .into()
    },
    reader: || Box::new(file),
};

pub(super) const PAGES: Kind = Kind {
    name: "trace_pages",
    share: 6,
    texts: false,
    samples: || {
        let pages = ["timerlat", "osnoise"];
        let mut all: Vec<Vec<u8>> = pages
            .map(|n| sample(&format!("explain/tailbound-trace/tests/data/linux-6.12-rt/{n}.page")))
            .into();
        // Those of a file, of all events: its pages lie behind its texts.
        let file = sample("explain/tailbound-trace/tests/data/trace-cmd/linux-6.12-rt-v6-two.dat");
        let behind = file.len().saturating_sub(4 * 4096);
        all.extend(file[behind..].chunks(4096).map(<[u8]>::to_vec));
        all
    },
    reader: pages,
};

pub(super) const PERF: Kind = Kind {
    name: "perf_file",
    share: 4,
    texts: false,
    samples: || {
        let folder = "explain/tailbound-trace/tests/data/perf";
        ["mono", "wakeup"].map(|n| sample(&format!("{folder}/linux-6.18-{n}.data"))).into()
    },
    reader: || Box::new(perf),
};

fn perf(bytes: &[u8], _: &mut Random) -> Result<bool, String> {
    let wanted = BlameSelection { realtime: false, above_ns: 0, most: 20 };
    let told = PerfFile::open(Cursor::new(bytes)).and_then(|file| {
        PerfBlame::of(file, WatchFilter::All, wanted, Ground::default(), &mut |_| true)
    });
    match told {
        Ok(told) => {
            adds_up(&told.found.records)?;
            told.notes.iter().try_for_each(|note| crate::plain(note))?;
            crate::plain(&told.origin())?;
            Ok(!told.found.records.is_empty())
        }
        Err(e) => crate::plain(&e.to_string()).map(|()| false),
    }
}

pub(super) const TEXTS: Kind = Kind {
    name: "trace_texts",
    share: 6,
    texts: true,
    samples: || {
        let folder = "explain/tailbound-trace/tests/data/texts";
        let names = [
            "posted-wakeup_rt-6.5-rt",
            "posted-rtla-auto-analysis",
            "irqsoff-4.19",
            "irqsoff-graph-5.15",
            "function_graph-6.6",
            "trace-cmd-report-4.19",
            "trace-6.12",
            "perf-script-6.8",
            "babeltrace2-lttng-2.13",
            "timehist-6.14",
        ];
        names.map(|n| sample(&format!("{folder}/{n}.txt"))).into()
    },
    reader: || Box::new(texts),
};

fn texts(bytes: &[u8], random: &mut Random) -> Result<bool, String> {
    let start = &bytes[..bytes.len().min(text::START_BYTES)];
    let Some(format) = text::recognized(start) else { return Ok(false) };
    let wanted = BlameSelection { realtime: false, above_ns: 0, most: 20 };
    let request = TextRequest { watched: WatchFilter::All, wanted, ground: Ground::default() };
    match text::read(format, bytes, request, &mut |_| true) {
        Ok(told) => {
            adds_up(&told.records)?;
            if random.below(8) == 0 {
                drop(blame::text(&told.records, told.kernel, 5, Style::default()));
                drop(blame::html(&told.records, told.kernel, "x"));
            }
            Ok(!told.records.is_empty())
        }
        Err(e) => crate::plain(&e.to_string()).map(|()| false),
    }
}

/// What follows events, each in its way.
struct Followers {
    blame: Follow,
    taken: Interruptions,
    cycles: Cycles,
    rules: Rules,
    machine: Vec<CpuEvents>,
    /// Threads that are watched once they are seen.
    watched: BTreeSet<i32>,
    symbols: Arc<Symbols>,
}

impl Followers {
    fn new(symbols: Symbols, random: &mut Random) -> Self {
        let symbols = Arc::new(symbols);
        let maybe = |random: &mut Random| [None, Some(false), Some(true)][random.below(3)];
        let ground = Ground {
            virtual_machine: maybe(random),
            virtual_time: random.below(4) == 0,
            firmware: maybe(random),
            lost: false,
            event_ns: [0, 200][random.below(2)],
        };
        let wanted = BlameSelection { realtime: false, above_ns: 0, most: 20 };
        let calls = Calls::new(&[(230, "clock_nanosleep"), (202, "futex"), (0, "read")]);
        let wish = Wish {
            period_ns: [None, Some(1_000_000)][random.below(2)],
            deadline_ns: [None, Some(100_000)][random.below(2)],
            activation: None,
            begin_ns: 0,
            worst: 5,
        };
        let table = CallTable::of("x86_64").unwrap();
        Self {
            blame: Follow::new(WatchFilter::All, symbols.clone(), ground, wanted),
            taken: Interruptions::new(BTreeSet::from([0, 1]), symbols.clone()),
            cycles: Cycles::new(symbols.clone(), Arc::new(calls), ground, wish),
            rules: Rules::new(table),
            machine: vec![CpuEvents::new(0, 0), CpuEvents::new(1, 0)],
            watched: BTreeSet::new(),
            symbols,
        }
    }

    fn entry(&mut self, e: &Entry) {
        if e.pid > 0 && self.watched.len() < 40 && self.watched.insert(e.pid) {
            self.cycles.watch(e.pid);
            self.rules.watch(e.pid);
        }
        self.blame.entry(e);
        self.taken.entry(e);
        self.cycles.entry(e);
        self.rules.entry(e);
        for one in self.machine.iter_mut().filter(|m| m.cpu() == e.cpu) {
            one.add(e);
        }
    }

    fn lost(&mut self, t_ns: u64) {
        self.blame.lost(t_ns);
        self.cycles.lost(t_ns);
        self.rules.lost();
        self.machine.iter_mut().for_each(CpuEvents::lose);
    }

    /// Everything that is said of it.
    fn end(mut self, page: bool) -> Result<bool, String> {
        let found = self.blame.finish();
        adds_up(&found.records)?;
        drop(self.rules.finish());
        let taken = self.taken.finish();
        let mut late = Vec::new();
        let mut all = Vec::new();
        for (_, found) in self.cycles.finish() {
            late.extend(found.late.into_iter().map(|l| l.record));
            all.push(found.cycles);
        }
        adds_up(&late)?;
        let names = Names { symbols: &self.symbols, begin: None, event_ns: Some(200) };
        for one in self.machine {
            let record = theory::condense(&one.finish(&names));
            theory::answer(&record).holds(&record).map_err(|e| e.to_string())?;
        }
        if page {
            drop(blame::text(&found.records, KernelKind::Unknown, 5, Style::default()));
            drop(blame::json(&found.records, KernelKind::Unknown));
            drop(blame::html(&found.records, KernelKind::Unknown, "x"));
            drop(blame::interruptions(&taken, Style::default()));
            drop(blame::interruptions_json(&taken));
            drop(cycles::text(&all, 5, Style::default()));
            drop(cycles::json(&all));
            drop(cycles::html(&all, &[], KernelKind::Unknown, "x"));
        }
        Ok(found.events > 0)
    }
}

/// The parts of a latency are all of it.
fn adds_up(records: &[BlameRecord]) -> Result<(), String> {
    for r in records {
        let sum: i128 = r.parts.iter().map(|p| i128::from(p.ns)).sum();
        if sum != i128::from(r.latency_ns) || r.parts.iter().any(|p| p.ns < 0) {
            return Err(format!("parts of {sum} ns of a latency of {} ns: {r:?}", r.latency_ns));
        }
    }
    Ok(())
}

fn file(bytes: &[u8], random: &mut Random) -> Result<bool, String> {
    let mut file = match TraceFile::open(Cursor::new(bytes)) {
        Ok(file) => file,
        Err(e) => return crate::plain(&e.to_string()).map(|()| false),
    };
    file.info().notes.iter().try_for_each(|note| crate::plain(note))?;
    let (symbols, comms) = file.take_names();
    let decoder = EventDecoder::new(&file.info().formats);
    let timers = file.info().clock.is_the_timers();
    let mut all = Followers::new(symbols, random);
    comms.iter().for_each(|(pid, comm)| all.blame.name_thread(*pid, comm));
    if !timers {
        all.blame.due_times(DueTimes::CarriedOver);
    }
    let mut last = 0;
    let mut back = None;
    let end = file.read(&decoder, &mut |seen| {
        match seen {
            MergeItem::Entry(e) => {
                back = back.or((e.t_ns < last).then_some((last, e.t_ns)));
                last = e.t_ns;
                all.entry(e);
            }
            MergeItem::Lost(t_ns) => all.lost(t_ns),
            MergeItem::Bytes(_) => {}
        }
        true
    });
    if let Some((last, t)) = back {
        return Err(format!("an event at {t} behind one at {last}"));
    }
    let end = end.map_err(|e| e.to_string())?;
    if end.damaged > 0 && end.notes.is_empty() {
        return Err("damage is not told".to_owned());
    }
    end.notes.iter().try_for_each(|note| crate::plain(note))?;
    all.end(random.below(8) == 0)
}

/// The pages of one kernel, with the descriptions of its events.
fn pages() -> Reader {
    let text = |name: &str| {
        String::from_utf8(sample(&format!(
            "explain/tailbound-trace/tests/data/linux-6.12-rt/{name}"
        )))
        .unwrap()
    };
    let layout = PageLayout::parse(&text("header_page")).unwrap();
    let formats: Vec<EventFormat> =
        ["hrtimer_expire_entry", "hrtimer_start", "hwlat", "osnoise", "sched_switch", "timerlat"]
            .map(|n| EventFormat::parse(&text(&format!("{n}.format"))).unwrap())
            .into();
    let decoder = Decoder::new(&formats).unwrap();
    let file = sample("explain/tailbound-trace/tests/data/trace-cmd/linux-6.12-rt-v6-two.dat");
    let file = TraceFile::open(Cursor::new(file)).unwrap();
    let events = EventDecoder::new(&file.info().formats);
    Box::new(move |bytes, random| {
        let mut all = Followers::new(Symbols::default(), random);
        let mut entries = Vec::new();
        let held = layout.records(bytes, |t, record| {
            let _ = decoder.decode(record);
            entries.extend(events.decode(t, u32::from(t & 1 != 0), record));
        });
        // Who reads pages as they come brings them in order, as the followers ask for.
        entries.sort_by_key(|e: &Entry| e.t_ns);
        entries.iter().for_each(|e| all.entry(e));
        drop(all.blame.finish());
        drop(all.taken.finish());
        drop(all.cycles.finish());
        Ok(held.is_ok())
    })
}
