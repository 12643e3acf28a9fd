// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes cells and hands each over as it is done; Ctrl-C ends the guests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::lab::LabRecord;
use tailbound_core::number::Real as _;
use tailbound_core::runfile;
use tailbound_lab::cache::{self, Limits, Working};
use tailbound_lab::emulator::Asked;
use tailbound_lab::{
    Arch, Cell, Cost, Emulator, Happened, Kernel, KernelName, LabError, Labelled, Made, Means,
    Request, Store, kernel, needs, run_all,
};
use tailbound_sys::signal::Signals;

use super::progress::{Moved, Shown, Step};
use crate::cli_guest::HostArgs;
use crate::say::{self, Failure};

/// What the work needs besides the cells.
pub(in crate::cmd) struct Bench<'a> {
    pub(in crate::cmd) store: Store,
    _working: Working,
    host: &'a HostArgs,
    stop: AtomicBool,
    signals: Signals,
}

impl<'a> Bench<'a> {
    pub(in crate::cmd) fn open(host: &'a HostArgs) -> Result<Self, Failure> {
        let store = Store::of_user()?;
        let working = cache::working(&store)?;
        let removed = cache::prune(&store, Limits::of_environment()?, false)?;
        if !removed.is_empty() && !host.quiet {
            say::note(&format!(
                "{} snapshots and the like, unused or beyond {}, were removed: see `tailbound lab cache`",
                removed.len(),
                cache::SIZE
            ));
        }
        Ok(Self {
            store,
            _working: working,
            host,
            stop: AtomicBool::new(false),
            signals: Signals::block_and_open().map_err(Failure::cannot)?,
        })
    }

    /// Finds a kernel, saying what takes time.
    pub(in crate::cmd) fn obtain(&self, name: &KernelName, arch: Arch) -> Result<Kernel, LabError> {
        let shown = Shown::new(self.host.quiet, 1);
        shown.moved(0, Moved::Step(Step::Kernel));
        let mut note = |text: &str| shown.note(text);
        if self.host.refresh {
            kernel::refresh(name, arch, &self.store, &mut note)
        } else {
            kernel::obtain(name, arch, &self.store, &mut note)
        }
    }

    /// Notes once what could not be checked before the boot.
    pub(in crate::cmd) fn note_unchecked(&self, labelled: &[Labelled]) {
        let all: std::collections::BTreeSet<String> = labelled
            .iter()
            .flat_map(|l| l.unchecked.iter().map(|what| format!("{}: {what}", l.kernel)))
            .collect();
        for what in all.iter().filter(|_| !self.host.quiet) {
            say::note(what);
        }
    }

    /// Looks at everything that `words` need before anything is fetched; the emulator.
    pub(in crate::cmd) fn ready(&self, words: &Request) -> Result<Emulator, Failure> {
        let asked = Asked { slices: words.wants_slices(), ..self.asked() };
        let names = words.names()?;
        // A target says itself what it is for.
        let arch = names.first().map_or_else(|| words.arch(), |(_, arch)| Ok(*arch))?;
        self.chosen(&names, arch, asked)
    }

    /// As [`Self::ready`], for one run that was recorded.
    pub(super) fn ready_again(&self, record: &LabRecord) -> Result<Emulator, Failure> {
        let arch = record.arch.parse().map_err(Failure::usage)?;
        let name: KernelName = record.kernel.name.parse()?;
        let asked = Asked { slices: record.slice_ns > 0, says: Some(&record.qemu), ..self.asked() };
        self.chosen(&[(name, arch)], arch, asked)
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            qemu: self.host.qemu.as_deref(),
            guest: self.host.guest.as_deref(),
            ..Asked::default()
        }
    }

    /// The emulator; that it is not the one anybody would expect is said.
    fn chosen(
        &self,
        names: &[(KernelName, Arch)],
        arch: Arch,
        asked: Asked<'_>,
    ) -> Result<Emulator, Failure> {
        let emulator = needs::for_booting(&self.store, names, arch, self.host.refresh, asked)?;
        if let Some(reason) = emulator.reason.as_ref().filter(|_| !self.host.quiet) {
            say::note(reason);
        }
        Ok(emulator)
    }

    /// How runs are made.
    pub(in crate::cmd) fn means<'b>(&'b self, emulator: &'b Emulator) -> Means<'b> {
        Means {
            emulator,
            store: &self.store,
            snapshots: !self.host.no_snapshot,
            host_limit_s: self.host.host_limit,
            stop: &self.stop,
        }
    }

    /// Guests at a time.
    pub(super) fn jobs(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.host.jobs.unwrap_or(cores)
    }

    /// Ends the guests if Ctrl-C came.
    pub(in crate::cmd) fn hear(&self) {
        if self.signals.wait(0).is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Did Ctrl-C come?
    pub(in crate::cmd) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Makes `cells`; `done` is called with each as it comes and yields what is said about it.
    pub(in crate::cmd) fn make(
        &self,
        cells: &[Cell],
        emulator: &Emulator,
        done: &mut dyn FnMut(usize, Result<Made, LabError>) -> String,
    ) -> Result<(), Failure> {
        let means = self.means(emulator);
        let shown = Shown::new(self.host.quiet, cells.len());
        run_all(cells, &means, self.jobs(), &mut |what| {
            match what {
                Happened::Begun(cell) => shown.moved(cell, Moved::Begun),
                Happened::Progress(cell, p) => shown.moved(cell, Moved::Guest(p.phase)),
                Happened::Done(cell, mut made) => {
                    if let Ok(made) = made.as_mut() {
                        judge(made, &shown);
                    }
                    let note = done(cell, made);
                    shown.done(cell, &note);
                }
                Happened::Tick => {}
            }
            self.hear();
        });
        shown.clear();
        self.went_on()
    }

    /// An error where Ctrl-C ended the guests.
    pub(super) fn went_on(&self) -> Result<(), Failure> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Failure::cut_off("interrupted; what was done is kept"));
        }
        Ok(())
    }
}

/// The verdict of a run that is here now; what was mended on the way is told.
pub(super) fn judge(made: &mut Made, shown: &Shown) {
    made.notes.iter().for_each(|mended| shown.note(mended));
    judge_here(&mut made.run);
}

/// The guest's verdict knew nothing of what its machine cannot tell.
pub(in crate::cmd) fn judge_here(run: &mut Run) {
    run.verdict = None;
    tailbound_stats::judge(run);
}

/// The bytes of a run's file.
pub(in crate::cmd) fn bytes(run: &Run) -> Result<Vec<u8>, Failure> {
    runfile::write_run(run, Vec::new()).map_err(Failure::cannot)
}

/// What a run cost the host, for scripts. It stands beside a run and never in its file,
/// which is the same on every host.
pub(super) fn cost(cost: &Cost) -> Value {
    let seconds = |d: Option<Duration>| d.map(|d| d.as_secs_f64());
    let rate = match (cost.executed, seconds(cost.cpu)) {
        (Some(n), Some(s)) if s > 0.0 => Some(n.real() / s),
        _ => None,
    };
    json!({
        "resumed": cost.resumed,
        "ready_s": seconds(cost.ready),
        "host_s": cost.host.as_secs_f64(),
        "cpu_s": seconds(cost.cpu),
        "instructions": cost.instructions,
        "executed": cost.executed,
        "executed_per_cpu_s": rate,
    })
}

/// One line about a run that was made.
pub(in crate::cmd) fn summary(title: &str, made: &Made) -> String {
    let from = if made.cost.resumed { "from a snapshot" } else { "from power-on" };
    let count = made.cost.instructions.map_or_else(String::new, |n| {
        format!(", after {}.{:02} G guest instructions", n / 1_000_000_000, n / 10_000_000 % 100)
    });
    format!("{title}: done {from} in {:.1} s{count}", made.cost.host.as_secs_f64())
}
