// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counting without programs in the kernel: its events of real-time threads go to a trace instance of our own, and are read here.
//!
//! Context: SETUP ([`Traced::begin`]), COLD. Units: ns of CLOCK_MONOTONIC; KiB in the kernel's files. Only wake-ups of real-time threads
//! and switches to or from one are recorded: a filter in the kernel passes over the others.
//! The rings are read by this process alone, on its own CPU: a page is taken under the ring's lock, and no other CPU is asked or
//! woken for it (rb_get_reader_page). Three things reach every CPU, once: setting the rings' size (a work item on each), and
//! letting the events be recorded and ending that, which changes the kernel's code.
//! What the rings could not hold until the next look is lost, and counted.
//! Not here: what is a wait (`waits`).
//! Source: kernel/trace/ring_buffer.c; Documentation/trace/{ftrace,events}.rst.

mod waits;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use tailbound_host::{Cpus, Instance, Root, Tracefs, TracefsError};
use tailbound_sys::clock;
use tailbound_trace::format::EventFormat;
use tailbound_trace::{EventDecoder, PageLayout};

use self::waits::{ThreadTraits, WaitEvent, Waits};
use crate::window::{Late, Policy, ThreadWindow};

/// Rings of all CPUs together, and what one has: some thousand events.
const RINGS_KIB: u64 = 4096;
const RING_KIB: std::ops::RangeInclusive<u64> = 64..=512;
/// What is recorded: real-time priorities are 0 to 99 of the kernel, -1 is SCHED_DEADLINE.
const EVENTS: [(&str, &str); 2] =
    [("sched_waking", "prio < 100"), ("sched_switch", "next_prio < 100 || prev_prio < 100")];
/// An event is in its ring this long after its time at the latest.
const SETTLED_NS: u64 = 2_000_000;
/// Source: include/linux/sched.h, PF_KTHREAD.
const KERNEL_THREAD: u64 = 0x0020_0000;

struct RingOf {
    cpu: u32,
    file: File,
    /// Its last event so far.
    last_ns: u64,
}

/// See the module.
pub(crate) struct Traced {
    root: Root,
    layout: PageLayout,
    decoder: EventDecoder,
    /// They are closed before the instance is removed.
    rings: Vec<RingOf>,
    instance: Instance,
    /// Events that another CPU may still have older ones of.
    held: Vec<(u64, WaitEvent)>,
    page: Vec<u8>,
    waits: Waits,
}

fn said(path: &str, why: impl std::fmt::Display) -> TracefsError {
    TracefsError::File { path: path.to_owned(), why: why.to_string() }
}

impl Traced {
    /// Makes the instance and lets it record; `notes` gets what was done on the way.
    ///
    /// # Errors
    /// [`TracefsError`]; nothing is left behind then.
    pub(crate) fn begin(
        root: &Root,
        exe: &Path,
        threshold_ns: Option<u64>,
        notes: &mut Vec<String>,
    ) -> Result<Self, TracefsError> {
        let tracefs = Tracefs::find(root)?;
        notes.extend(
            tracefs
                .remove_leftovers()
                .iter()
                .map(|name| format!("removed the trace instance {name} of one that was killed")),
        );
        let text = |path: &str| tracefs.read(path).map_err(|e| said(path, e.reason()));
        let layout = text("events/header_page")?;
        let layout = PageLayout::parse(&layout).map_err(|e| said("events/header_page", e))?;
        let mut formats = Vec::new();
        for (event, _) in EVENTS {
            let format =
                tracefs.event_format("sched", event).map_err(|e| said(event, e.reason()))?;
            formats.push(EventFormat::parse(&format).map_err(|e| said(event, e))?);
        }
        let decoder = EventDecoder::new(&formats);
        let cpus = Cpus::read(root).map_or_else(|_| vec![0], |c| c.online.iter().collect());
        let possible = root.cpus("/sys/devices/system/cpu/possible").unwrap_or_default();
        let later: Vec<u32> = possible.iter().filter(|cpu| !cpus.contains(cpu)).collect();
        let instance = Instance::make(tracefs, Some("monitor"), exe)?;
        notes.extend(instance.unguarded().map(|why| {
            format!("no guard: after a kill the next start removes the trace instance: {why}")
        }));
        let kib =
            (RINGS_KIB / (cpus.len() as u64).max(1)).clamp(*RING_KIB.start(), *RING_KIB.end());
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        instance.set("buffer_size_kb", &kib.to_string())?;
        // Names are in the events. Older kernels have the option at the top only, which is not ours to change.
        drop(instance.set("options/record-cmd", "0"));
        for (event, filter) in EVENTS {
            instance.set(&format!("events/sched/{event}/filter"), filter)?;
            instance.set(&format!("events/sched/{event}/enable"), "1")?;
        }
        let mut rings = Vec::new();
        for cpu in cpus.iter().chain(&later).copied() {
            match instance.open_raw(cpu) {
                Ok(file) => rings.push(RingOf { cpu, file, last_ns: 0 }),
                // It has a ring only once it was online.
                Err(_) if later.contains(&cpu) => {}
                Err(e) => return Err(e),
            }
        }
        instance.set("tracing_on", "1")?;
        let page = vec![0; layout.size];
        let threshold_ns = threshold_ns.unwrap_or(u64::MAX);
        Ok(Self {
            root: root.clone(),
            layout,
            decoder,
            rings,
            instance,
            held: Vec::new(),
            page,
            waits: Waits::new(threshold_ns),
        })
    }

    /// Rings of CPUs that came since.
    fn follow_cpus(&mut self) {
        let Ok(cpus) = Cpus::read(&self.root) else { return };
        for cpu in cpus.online.iter() {
            if !self.rings.iter().any(|r| r.cpu == cpu)
                && let Ok(file) = self.instance.open_raw(cpu)
            {
                self.rings.push(RingOf { cpu, file, last_ns: 0 });
            }
        }
    }

    /// Reads what the rings hold.
    pub(crate) fn look(&mut self) {
        let begin = clock::now_ns(clock::CLOCK_MONOTONIC).max(0).cast_unsigned();
        for ring in &mut self.rings {
            loop {
                let got = match ring.file.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(got) => got,
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => {
                        self.held.extend(gap(ring.last_ns, begin, 1));
                        break;
                    }
                };
                let page = self.page.get(..got).unwrap_or_default();
                let (decoder, held, cpu) = (&self.decoder, &mut self.held, ring.cpu);
                let (from_ns, mut first_ns) = (ring.last_ns, None);
                let read = self.layout.records(page, |t_ns, bytes| {
                    first_ns = first_ns.or(Some(t_ns));
                    ring.last_ns = t_ns;
                    let seen = decoder.decode(t_ns, cpu, bytes).and_then(|e| WaitEvent::of(&e));
                    held.extend(seen.map(|seen| (t_ns, seen)));
                });
                let until_ns = first_ns.unwrap_or(begin);
                match read {
                    Ok(page) if page.lost > 0 || page.lost_uncounted => {
                        held.extend(gap(from_ns, until_ns, page.lost));
                    }
                    Ok(_) => {}
                    Err(_) => held.extend(gap(ring.last_ns, begin, 1)),
                }
            }
        }
        self.held.sort_by_key(|(t_ns, _)| *t_ns);
        let settled = begin.saturating_sub(SETTLED_NS);
        let ready = self.held.partition_point(|(t_ns, _)| *t_ns <= settled);
        let root = &self.root;
        let mut look_up = |tid: i32, policy: Policy| known(root, tid, policy);
        for (t_ns, seen) in self.held.drain(..ready) {
            self.waits.event(t_ns, &seen, &mut look_up);
        }
        // A burst must not stay the monitor's size for years.
        self.held.shrink_to(1024);
    }

    /// What the window under way has so far, as of the last look.
    pub(crate) fn so_far(&self) -> Vec<ThreadWindow> {
        self.waits.so_far()
    }

    /// Ends the window: what it had, the longest wait first.
    pub(crate) fn turn(&mut self) -> Vec<ThreadWindow> {
        self.look();
        self.follow_cpus();
        let now = clock::now_ns(clock::CLOCK_MONOTONIC).max(0).cast_unsigned();
        let mut threads = self.waits.turn(now);
        threads.sort_by(|a, b| b.worst.wait_ns.cmp(&a.worst.wait_ns).then(a.tid.cmp(&b.tid)));
        threads
    }

    /// The late wake-ups since the last look.
    pub(crate) fn late(&mut self, each: &mut dyn FnMut(Late)) {
        self.look();
        self.waits.take_late().into_iter().for_each(each);
    }

    /// Since the begin: lost events, and late wake-ups that were counted alone.
    pub(crate) fn lost(&self) -> (u64, u64) {
        (self.waits.lost, self.waits.late_untold)
    }

    /// Removes the instance.
    ///
    /// # Errors
    /// EBUSY while somebody reads it.
    pub(crate) fn end(&mut self) -> Result<(), TracefsError> {
        self.rings.clear();
        self.instance.remove()
    }
}

/// Events are missing there.
fn gap(from_ns: u64, until_ns: u64, events: u64) -> [(u64, WaitEvent); 2] {
    [(from_ns, WaitEvent::LostFrom), (until_ns.max(from_ns), WaitEvent::LostUntil { events })]
}

/// What the events do not tell of a thread; `None`: it is an ordinary one, which was lent a priority. One that ended is known by its
/// events alone.
fn known(root: &Root, tid: i32, by_priority: Policy) -> Option<ThreadTraits> {
    let stat = root.text(&format!("/proc/{tid}/stat")).unwrap_or_default();
    // The name may hold spaces and parentheses: count from the last one.
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace());
    let field = |at: usize| fields.clone()?.nth(at)?.parse::<u64>().ok();
    // Fields 9, 40 and 41 of proc_pid_stat(5).
    let (Some(flags), Some(priority), Some(policy)) = (field(6), field(37), field(38)) else {
        return Some(ThreadTraits { policy: by_priority, kernel: None });
    };
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let policy = Policy::of(number(policy), number(priority));
    policy
        .is_realtime()
        .then_some(ThreadTraits { policy, kernel: Some(flags & KERNEL_THREAD != 0) })
}
