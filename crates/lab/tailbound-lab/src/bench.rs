// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes cells and hands each over as it is done; Ctrl-C ends the guests.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_core::Run;
use tailbound_core::lab::LabRecord;
use tailbound_core::runfile;
use tailbound_sys::signal::Signals;

use crate::arch::Arch;
use crate::cache::{self, CacheScope, Limits, Working};
use crate::cell::Cell;
use crate::emulator::{Asked, Emulator};
use crate::error::{FileError, LabError, OptionError, ToolError};
use crate::kernel::{self, Kernel, KernelName};
use crate::needs;
use crate::pool::{Happened, run_all};
use crate::progress::{Listener, Moved, Step, Steps, TaskListener};
use crate::request::{Labelled, Request};
use crate::run::{Made, Means};
use crate::store::Store;

/// How the host works; no figure depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// Guests at a time; one per core where nobody says how many.
    pub jobs: Option<usize>,
    /// QEMU: a program, a version that was fetched, or `system`.
    pub qemu: Option<PathBuf>,
    /// The program for the guest.
    pub guest: Option<PathBuf>,
    /// Begin from snapshots, and make them.
    pub snapshots: bool,
    /// Patience with one guest.
    pub host_limit_s: u64,
    /// Ask apt again what a kernel's name means.
    pub refresh: bool,
}

/// What the work needs besides the cells.
pub struct Bench<'a> {
    /// Kernels, snapshots and the like.
    pub store: Store,
    _working: Working,
    host: HostOptions,
    listener: Box<dyn Listener + 'a>,
    stop: AtomicBool,
    signals: Signals,
}

impl fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("host", &self.host).finish_non_exhaustive()
    }
}

impl<'a> Bench<'a> {
    /// Opens the store, and waits for signals from now on.
    ///
    /// # Errors
    /// The store cannot be used; a limit of the environment is none.
    pub fn open(host: HostOptions, listener: Box<dyn Listener + 'a>) -> Result<Self, LabError> {
        let store = Store::of_user()?;
        let working = cache::working(&store)?;
        let removed = cache::prune(&store, Limits::of_environment()?, CacheScope::Remade)?;
        if !removed.is_empty() {
            listener.note(&format!(
                "{} snapshots and the like, unused or beyond {}, were removed: see `tailbound lab cache`",
                removed.len(),
                cache::SIZE
            ));
        }
        let signals = Signals::block_and_open().map_err(ToolError::Call)?;
        let stop = AtomicBool::new(false);
        Ok(Self { store, _working: working, host, listener, stop, signals })
    }

    /// Something worth knowing.
    pub fn note(&self, text: &str) {
        self.listener.note(text);
    }

    /// Work on so many tasks begins.
    #[must_use]
    pub fn tasks(&self, total: usize, steps: Option<Steps>) -> Box<dyn TaskListener + '_> {
        self.listener.tasks(total, steps)
    }

    /// Finds a kernel, saying what takes time.
    ///
    /// # Errors
    /// As [`kernel::obtain`].
    pub fn obtain(&self, name: &KernelName, arch: Arch) -> Result<Kernel, LabError> {
        let shown = self.tasks(1, None);
        shown.moved(0, Moved::Step(Step::Kernel));
        let mut note = |text: &str| shown.note(text);
        if self.host.refresh {
            kernel::refresh(name, arch, &self.store, &mut note)
        } else {
            kernel::obtain(name, arch, &self.store, &mut note)
        }
    }

    /// Notes once what could not be checked before the boot.
    pub fn note_unchecked(&self, labelled: &[Labelled]) {
        let all: BTreeSet<String> = labelled
            .iter()
            .flat_map(|l| l.unchecked.iter().map(|what| format!("{}: {what}", l.kernel)))
            .collect();
        all.iter().for_each(|what| self.note(what));
    }

    /// Looks at everything that `words` need before anything is fetched; the emulator.
    ///
    /// # Errors
    /// What is missing, or cannot be asked for.
    pub fn ready(&self, words: &Request) -> Result<Emulator, LabError> {
        let asked = Asked { slices: words.wants_slices(), ..self.asked() };
        let names = words.names()?;
        // A target says itself what it is for.
        let arch = names.first().map_or_else(|| words.arch(), |(_, arch)| Ok(*arch))?;
        self.chosen(&names, arch, asked)
    }

    /// As [`Self::ready`], for one run that was recorded.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub fn ready_again(&self, record: &LabRecord) -> Result<Emulator, LabError> {
        let arch = record.arch.parse().map_err(OptionError::RecordedArch)?;
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
    ) -> Result<Emulator, LabError> {
        let emulator = needs::for_booting(
            &self.store,
            names,
            arch,
            kernel::PackageLists::anew_if(self.host.refresh),
            asked,
        )?;
        if let Some(reason) = &emulator.reason {
            self.note(reason);
        }
        Ok(emulator)
    }

    /// How runs are made.
    #[must_use]
    pub fn means<'b>(&'b self, emulator: &'b Emulator) -> Means<'b> {
        Means {
            emulator,
            store: &self.store,
            snapshots: self.host.snapshots,
            host_limit_s: self.host.host_limit_s,
            stop: &self.stop,
        }
    }

    /// The program for the guest, where one was named.
    #[must_use]
    pub fn guest(&self) -> Option<PathBuf> {
        self.host.guest.clone()
    }

    /// Guests at a time.
    #[must_use]
    pub fn jobs(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.host.jobs.unwrap_or(cores)
    }

    /// Ends the guests if Ctrl-C came.
    pub fn hear(&self) {
        if self.signals.wait(0).is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Did Ctrl-C come?
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Makes `cells`; `done` is called with each as it comes and yields what is said about it.
    ///
    /// # Errors
    /// [`LabError::Ended`] where Ctrl-C came.
    pub fn make(
        &self,
        cells: &[Cell],
        emulator: &Emulator,
        done: &mut dyn FnMut(usize, Result<Made, LabError>) -> String,
    ) -> Result<(), LabError> {
        let means = self.means(emulator);
        let shown = self.tasks(cells.len(), None);
        run_all(cells, &means, self.jobs(), &mut |what| {
            match what {
                Happened::Begun(cell) => shown.moved(cell, Moved::Begun),
                Happened::Progress(cell, p) => shown.moved(cell, Moved::Guest(p.phase)),
                Happened::Done(cell, mut made) => {
                    if let Ok(made) = made.as_mut() {
                        judge(made, &*shown);
                    }
                    let note = done(cell, made);
                    shown.over(cell);
                    shown.note(&note);
                }
                Happened::Tick => {}
            }
            self.hear();
        });
        shown.clear();
        self.went_on()
    }

    /// An error where Ctrl-C ended the guests.
    pub(crate) fn went_on(&self) -> Result<(), LabError> {
        if self.stopped() { Err(LabError::Ended) } else { Ok(()) }
    }
}

/// The verdict of a run that is here now; what was mended on the way is told.
pub(crate) fn judge(made: &mut Made, shown: &dyn TaskListener) {
    made.notes.iter().for_each(|mended| shown.note(mended));
    judge_here(&mut made.run);
}

/// The guest's verdict knew nothing of what its machine cannot tell.
pub fn judge_here(run: &mut Run) {
    run.verdict = None;
    tailbound_stats::judge(run);
}

/// The bytes of a run's file.
///
/// # Errors
/// It cannot be put into words.
pub fn bytes(run: &Run) -> Result<Vec<u8>, LabError> {
    Ok(runfile::write_run(run, Vec::new()).map_err(FileError::Run)?)
}
