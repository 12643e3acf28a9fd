// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a series, in a process of its own: a run locks memory, arms guards and moves
//! itself to other CPUs, and the next one must begin as the first did.
//!
//! Context: COLD while a child measures: this process sleeps, and looks ten times per second.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::AsFd as _;
use std::path::Path;

use tailbound_core::limits::CONSOLE_BYTES_MAX;
use tailbound_sys::environment::Environment;
use tailbound_sys::new_file::{Existing, NewFile};
use tailbound_sys::process::{self, SIGTERM};
use tailbound_sys::signal::Signals;
use tailbound_sys::spawn::Spawn;

use crate::caller::ChildEnd;
use crate::error::SeriesError;

/// Starts this program again, once per run. From the first run on the ending signals are waited for here.
#[derive(Debug, Default)]
pub struct Children {
    signals: Option<Signals>,
}

impl Children {
    /// Makes the run that `arguments` describe, with what it says in a file without a name in `folder`;
    /// `tick` is called ten times per second.
    ///
    /// # Errors
    /// When it cannot be started or waited for.
    pub fn run(
        &mut self,
        arguments: &[OsString],
        folder: &Path,
        tick: &mut dyn FnMut(),
    ) -> Result<ChildEnd, SeriesError> {
        let signals = match self.signals.take() {
            Some(signals) => signals,
            None => Signals::block_and_open()?,
        };
        let signals = self.signals.insert(signals);
        let exe = std::env::current_exe().map_err(SeriesError::ChildFile)?;
        let nothing = File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .map_err(SeriesError::ChildFile)?;
        // It never gets its name: only this process reads it, and a kill leaves nothing.
        let log = NewFile::open(&folder.join("run.log"), Existing::Replace)
            .map_err(SeriesError::ChildFile)?;
        let child = Spawn {
            program: &exe,
            arguments,
            descriptors: &[(nothing.as_fd(), 0), (nothing.as_fd(), 1), (log.file().as_fd(), 2)],
            pid_namespace: false,
            // Ctrl-C reaches this process alone, which hands it on once.
            new_session: true,
            death_signal: SIGTERM,
            cpus: &[],
            environment: Environment::Inherited,
        };
        let pid = child.start()?;
        let mut interrupted = false;
        loop {
            if process::try_wait(pid)?.is_some() {
                break;
            }
            if signals.wait(100).is_some() && !interrupted {
                interrupted = true;
                // It may have ended just now.
                drop(process::kill(pid, SIGTERM));
            }
            tick();
        }
        let mut said = Vec::new();
        // What cannot be read back costs the reason, not the run.
        drop(
            log.file()
                .rewind()
                .and_then(|()| log.file().take(CONSOLE_BYTES_MAX).read_to_end(&mut said)),
        );
        let said = String::from_utf8_lossy(&said);
        Ok(ChildEnd { message: said.trim().to_owned(), interrupted })
    }
}
