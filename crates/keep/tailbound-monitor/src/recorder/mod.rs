// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flight recorder: the kernel's events of the last moments, kept in its own ring and written to a file when a wake-up was late.
//!
//! Context: SETUP ([`Recorder::begin`]), COLD. Units: bytes, KiB in the kernel's files; ns of CLOCK_MONOTONIC.
//!
//! ```text
//! events ─► ring of each CPU, the oldest overwritten (a trace instance of our own)
//! late wake-up ─► `stop`: recording off, at once ─► a look, at once: pages to a file (`dumps`) ─► on again, a pause; read again: who (`culprit`)
//! ```
//!
//! Nothing is read while it records. The instance goes with this process, by its guard after a kill, else with the next start.
//! Not here: what is late (`counter`), what events mean (`tailbound-trace`).
//! Source: Documentation/trace/{ftrace,events}.rst.

mod culprit;
mod dumps;
mod functions;
mod stop;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use tailbound_host::{Cpus, Instance, Root, Tracefs, TracefsError};
use tailbound_sys::SysError;
use tailbound_sys::new_file::{Existing, NewFile};
use tailbound_trace::dat::{DatError, Described, Head};
use tailbound_trace::event::WANTED;
use tailbound_trace::{PageError, PageLayout};

use self::dumps::{Dumps, NoDump};
use self::functions::Functions;
use self::stop::Stop;
use crate::counter::Counter;
use crate::window::{Dump, Gaps, Late};

/// The events: what has a CPU, and what takes it away. Timers are left out: lateness counts from the wake-up, as the counter's does.
const SYSTEMS: [&str; 7] = ["sched", "irq", "irq_vectors", "ipi", "nmi", "workqueue", "lock"];
/// Rings of all CPUs together, and what one has.
const RINGS_KIB: u64 = 4096;
const RING_KIB: std::ops::RangeInclusive<u64> = 16..=512;
/// After a file was written: not again for so long.
const PAUSE_NS: i64 = 10_000_000_000;
/// After a late wake-up that is not wanted: none stops it for so long.
const REST_NS: i64 = 1_000_000_000;

/// What is wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where its files go.
    pub folder: PathBuf,
    /// So many files are kept.
    pub keep: usize,
    /// This program, which removes the instance after a kill.
    pub exe: PathBuf,
}

/// Why there is no recorder.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The kernel's tracing cannot be used.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// It describes its pages in another way.
    #[error(transparent)]
    Page(#[from] PageError),
    /// Something else in the kernel.
    #[error("{0}")]
    Kernel(String),
    /// The descriptions of the events are too long for the file.
    #[error(transparent)]
    Head(#[from] DatError),
    /// What a thread, or its end, needs.
    #[error(transparent)]
    System(#[from] SysError),
    /// The folder of its files.
    #[error("{0}: {1}")]
    Folder(PathBuf, io::Error),
}

/// See the module.
pub(crate) struct Recorder {
    instance: Instance,
    layout: PageLayout,
    head: Head,
    functions: Functions,
    cpus: Vec<u32>,
    /// Those that may come while it runs; only then they have a ring.
    later: Vec<u32>,
    dumps: Dumps,
    stop: Stop,
    /// The longest wait of the window that has a file.
    longest_ns: u64,
    not_before_ns: i64,
    /// Since the window began.
    gaps: Gaps,
    virtual_machine: Option<bool>,
    root: Root,
}

fn is_chosen(system: &str) -> bool {
    SYSTEMS.contains(&system)
}

/// Does a hypervisor lie beneath? Known where the CPU says so.
fn virtual_machine(root: &Root) -> Option<bool> {
    let cpus = root.text("/proc/cpuinfo").ok()?;
    let flags = cpus.lines().find(|l| l.starts_with("flags"))?;
    Some(flags.split_whitespace().any(|f| f == "hypervisor"))
}

/// What the head of each file says; the kernel's events are the same as long as it is up.
fn described(root: &Root, tracefs: &Tracefs, version: &str) -> Result<Described, RecorderError> {
    let text = |path: &str| {
        tracefs.read(path).map_err(|e| RecorderError::Kernel(format!("{path}: {}", e.reason())))
    };
    let mut formats = Vec::new();
    for wanted in WANTED.iter().filter(|w| is_chosen(w.system)) {
        match tracefs.event_format(wanted.system, wanted.name) {
            // As the kernel writes it: with its last end of line.
            Ok(format) => formats.push((wanted.system, format!("{format}\n"))),
            Err(e) if wanted.needed => {
                return Err(RecorderError::Kernel(format!("{}: {}", wanted.name, e.reason())));
            }
            Err(_) => {}
        }
    }
    let word = |path: &str| root.read_trimmed(path).unwrap_or_else(|_| "unknown".to_owned());
    let uname = format!(
        "Linux {} {} {}",
        word("/proc/sys/kernel/hostname"),
        word("/proc/sys/kernel/osrelease"),
        std::env::consts::ARCH
    );
    Ok(Described {
        page: format!("{}\n", text("events/header_page")?),
        record: format!("{}\n", text("events/header_event")?),
        formats,
        clock: "mono".to_owned(),
        uname,
        recorder: format!("tailbound {version}"),
        function_bytes: functions::BYTES,
        // They are in the events.
        threads: String::new(),
    })
}

/// Sets the instance up, off; how many KiB a CPU's ring has.
fn set_up(instance: &Instance, cpus: usize) -> Result<u64, TracefsError> {
    let kib = (RINGS_KIB / (cpus as u64).max(1)).clamp(*RING_KIB.start(), *RING_KIB.end());
    instance.set("tracing_on", "0")?;
    instance.set("trace_clock", "mono")?;
    instance.set("buffer_size_kb", &kib.to_string())?;
    // Names are in the events. Older kernels have the option at the top only, which is not ours to change.
    drop(instance.set("options/record-cmd", "0"));
    for wanted in WANTED.iter().filter(|w| is_chosen(w.system)) {
        let on = instance.set(&format!("events/{}/{}/enable", wanted.system, wanted.name), "1");
        if wanted.needed {
            on?;
        }
    }
    Ok(kib)
}

impl Recorder {
    /// Makes the instance and lets it record; `notes` gets what was done on the way.
    ///
    /// # Errors
    /// [`RecorderError`]; nothing is left behind then.
    pub(crate) fn begin(
        root: &Root,
        asked: &Record,
        counter: &Counter,
        version: &str,
        notes: &mut Vec<String>,
    ) -> Result<Self, RecorderError> {
        let tracefs = Tracefs::find(root)?;
        notes.extend(
            tracefs
                .remove_leftovers()
                .iter()
                .map(|name| format!("removed the trace instance {name} of one that was killed")),
        );
        let described = described(root, &tracefs, version)?;
        let layout = PageLayout::parse(&described.page)?;
        let cpus = Cpus::read(root).map_or_else(|_| vec![0], |c| c.online.iter().collect());
        let later = root.cpus("/sys/devices/system/cpu/possible").unwrap_or_default();
        let later: Vec<u32> = later.iter().filter(|cpu| !cpus.contains(cpu)).collect();
        let all = cpus.iter().chain(&later).max().map_or(1, |most| most.saturating_add(1));
        let page = u32::try_from(layout.size).unwrap_or(u32::MAX);
        let head = Head::new(&described, all, page)?;
        let instance = Instance::make(tracefs, Some("recorder"), &asked.exe)?;
        notes.extend(instance.unguarded().map(|why| {
            format!("no guard: after a kill the next start removes the trace instance: {why}")
        }));
        let kib = set_up(&instance, cpus.len())?;
        let most = (kib << 10).saturating_mul(cpus.len() as u64);
        let most = most.saturating_add(head.bytes().len() as u64);
        let folder = asked.folder.clone();
        let dumps = Dumps::open(&asked.folder, asked.keep, most)
            .map_err(|e| RecorderError::Folder(folder, e))?;
        let stop = Stop::begin(counter.waiter()?, instance.switch())?;
        stop.go_on(0)?;
        Ok(Self {
            instance,
            layout,
            head,
            functions: Functions::default(),
            cpus,
            later,
            dumps,
            stop,
            longest_ns: 0,
            not_before_ns: 0,
            gaps: Gaps::default(),
            virtual_machine: virtual_machine(root),
            root: root.clone(),
        })
    }

    /// The next window begins: its first late wake-up has a file, and any that is later still. The gaps of the one that ended.
    pub(crate) fn next_window(&mut self) -> Gaps {
        self.longest_ns = 0;
        std::mem::take(&mut self.gaps)
    }

    /// The latest of `late`, those since the last look, if one is wanted and was recorded: its file, or why it has none. It goes on recording.
    pub(crate) fn look(&mut self, late: &[Late], now_ns: i64) -> Option<Result<Dump, NoDump>> {
        let (from_ns, until_ns) = self.stop.span_ns();
        let span = from_ns.max(0).cast_unsigned()..=until_ns.max(0).cast_unsigned();
        let whole = |l: &&Late| {
            span.contains(&l.at_ns.saturating_sub(l.wait_ns)) && span.contains(&l.at_ns)
        };
        let missed = late.iter().filter(|l| !whole(l)).count() as u64;
        self.gaps.late = self.gaps.late.saturating_add(missed);
        let recorded = late.iter().filter(whole);
        let wanted = recorded
            .max_by_key(|l| l.wait_ns)
            .filter(|l| l.wait_ns > self.longest_ns && now_ns >= self.not_before_ns);
        let Some(late) = wanted else {
            let rest_ns = self.not_before_ns.max(now_ns.saturating_add(REST_NS));
            let on = if self.stop.is_on() { Ok(()) } else { self.go_on(rest_ns) };
            return on.err().map(|e| Err(NoDump::Tracefs(e)));
        };
        // Also where the disk is full: it is not tried again and again.
        self.not_before_ns = now_ns.saturating_add(PAUSE_NS);
        let written = self.write();
        let on = self.go_on(self.not_before_ns);
        let dump = written.map(|(path, bytes)| self.told(late, *span.start(), &path, bytes));
        if dump.is_ok() {
            self.longest_ns = late.wait_ns;
        }
        Some(dump.and_then(|dump| on.map(|()| dump).map_err(NoDump::Tracefs)))
    }

    fn go_on(&mut self, rest_until_ns: i64) -> Result<(), TracefsError> {
        let off_ns = self.stop.go_on(rest_until_ns)?;
        self.gaps.off_ns = self.gaps.off_ns.saturating_add(off_ns);
        Ok(())
    }

    /// What the rings hold, to the next file; its length.
    fn write(&mut self) -> Result<(PathBuf, u64), NoDump> {
        self.stop.stop()?;
        let path = self.dumps.next()?;
        let mut file = NewFile::open(&path, Existing::Keep)?;
        let bytes = self.pages_to(&file)?;
        file.place()?;
        Ok((path, bytes))
    }

    /// Who made `late` late; the functions of the file get their names.
    fn told(&mut self, late: &Late, since_ns: u64, path: &Path, bytes: u64) -> Dump {
        // Without names the file is of use too.
        if let Some(names) = self.functions.of(path, &self.root) {
            self.head.name_functions(&names);
            let file = File::options().write(true).open(path);
            let named = file.and_then(|file| file.write_all_at(self.head.bytes(), 0));
            named.unwrap_or_default();
        }
        let told = culprit::of(path, late, self.virtual_machine);
        Dump {
            file: path.display().to_string(),
            bytes,
            on_since_ns: since_ns,
            from_ns: told.from_ns,
            at_ns: late.at_ns,
            wait_ns: late.wait_ns,
            comm: late.comm.clone(),
            tid: late.tid,
            culprit: told.culprit,
            record: told.record,
        }
    }

    /// All that the rings hold; they are empty then. The file's length.
    fn pages_to(&mut self, file: &NewFile) -> Result<u64, NoDump> {
        let mut end = self.head.bytes().len() as u64;
        let mut page = vec![0; self.layout.size];
        for cpu in self.cpus.iter().chain(&self.later).copied() {
            let begin = end;
            // A CPU that went offline keeps its ring.
            let mut ring = match self.instance.open_raw(cpu) {
                Err(_) if self.later.contains(&cpu) => continue,
                ring => ring?,
            };
            loop {
                let got = match ring.read(&mut page) {
                    Ok(0) => break,
                    Ok(got) => got,
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => return Err(e.into()),
                };
                // What lies behind the records of a page was never written.
                let used = self.layout.head(&page).map_or(got, |h| h.end.min(got));
                page.iter_mut().skip(used).for_each(|b| *b = 0);
                file.file().write_all_at(&page, end)?;
                end = end.saturating_add(page.len() as u64);
            }
            self.head.place(cpu, begin, end.saturating_sub(begin));
        }
        file.file().write_all_at(self.head.bytes(), 0)?;
        Ok(end)
    }

    /// Removes the instance.
    ///
    /// # Errors
    /// EBUSY while somebody reads it.
    pub(crate) fn end(mut self) -> Result<(), TracefsError> {
        self.stop.end();
        self.instance.remove()
    }
}
