// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace instance of our own: made, set up, read, and always removed again, with every
//! setting that all instances share put back.
//!
//! Context: SETUP, COLD. Dropped, it is gone. Where the process is killed, its guard, which is
//! started before the instance is made, removes it; where that is killed too, the next run does.
//! Source: Documentation/trace/ftrace.rst, "Instances"; mkdir and rmdir make and remove one.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tailbound_sys::file::open_without_waiting;

use crate::root::Found;
use crate::tracefs::guard::Guard;
use crate::tracefs::removal::take_down;
use crate::tracefs::{Tracefs, TracefsError, start_time};

/// What the names of our instances begin with; the process and its start time follow.
pub const NAME_PREFIX: &str = "tailbound-";

/// A trace instance of our own.
#[derive(Debug)]
pub struct Instance {
    tracefs: Tracefs,
    /// It has the name.
    guard: Guard,
    /// Shared settings as they were, in the order they were changed.
    before: Vec<(String, String)>,
    removed: bool,
}

/// Switches the recording of an instance, which may be gone meanwhile.
#[derive(Clone, Debug)]
pub struct Switch {
    tracefs: Tracefs,
    path: String,
}

impl Switch {
    /// On, or off; what was recorded stays.
    ///
    /// # Errors
    /// [`TracefsError`].
    pub fn set(&self, on: bool) -> Result<(), TracefsError> {
        self.tracefs.write(&self.path, if on { "1" } else { "0" })
    }
}

impl Instance {
    /// Starts a guard (`exe trace-guard`) and makes the instance of this process; a further one
    /// has a `part` in its name. Without a guard it is made all the same: see [`Self::unguarded`].
    ///
    /// # Errors
    /// Not permitted; this process has one of that name already.
    pub fn make(tracefs: Tracefs, part: Option<&str>, exe: &Path) -> Result<Self, TracefsError> {
        let pid = std::process::id();
        let began = start_time(&tracefs.root, pid).unwrap_or_else(|_| "0".to_owned());
        let part = part.map_or_else(String::new, |part| format!("-{part}"));
        Self::guarded(tracefs, Guard::start(exe, format!("{NAME_PREFIX}{pid}-{began}{part}")))
    }

    /// The only way to an instance: its guard was started.
    pub(super) fn guarded(tracefs: Tracefs, mut guard: Guard) -> Result<Self, TracefsError> {
        let path = tracefs.path(&format!("instances/{}", guard.name()));
        let made = fs::create_dir(tracefs.root.path(&path));
        let Err(e) = made else {
            return Ok(Self { tracefs, guard, before: Vec::new(), removed: false });
        };
        // One that is there already has a guard of its own.
        guard.dismiss();
        if e.kind() == io::ErrorKind::PermissionDenied {
            return Err(TracefsError::of(&path, &e));
        }
        Err(TracefsError::File {
            why: format!(
                "no trace instance can be made: {e}; {} of others are there, and `rmdir` removes one that nobody uses",
                tracefs.instances().len()
            ),
            path,
        })
    }

    /// Its name below `instances/`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.guard.name()
    }

    /// Why no guard removes it if this process is killed; `None` where one does.
    #[must_use]
    pub fn unguarded(&self) -> Option<&str> {
        self.guard.absent()
    }

    fn own(&self, path: &str) -> String {
        format!("instances/{}/{path}", self.guard.name())
    }

    /// Writes to a file of the instance.
    ///
    /// # Errors
    /// [`TracefsError`], with what was written.
    pub fn set(&self, path: &str, value: &str) -> Result<(), TracefsError> {
        self.tracefs.write(&self.own(path), value)
    }

    /// What switches its recording off and on from another thread.
    #[must_use]
    pub fn switch(&self) -> Switch {
        Switch { tracefs: self.tracefs.clone(), path: self.own("tracing_on") }
    }

    /// Adds to a list in a file of the instance, which writing would begin anew.
    ///
    /// # Errors
    /// [`TracefsError`], with what was written.
    pub fn add(&self, path: &str, value: &str) -> Result<(), TracefsError> {
        self.tracefs.add(&self.own(path), value)
    }

    /// Writes to a setting that all instances share; it is put back with the instance's end, by the
    /// guard too.
    ///
    /// # Errors
    /// [`TracefsError`]; a setting that cannot be read, or put back, is not changed.
    pub fn set_shared(&mut self, path: &str, value: &str) -> Result<(), TracefsError> {
        let refused =
            |why: &str| TracefsError::File { path: self.tracefs.path(path), why: why.to_owned() };
        let before = self.tracefs.read(path).map_err(|e| refused(e.reason()))?;
        if before == value {
            return Ok(());
        }
        if before.contains('\n') {
            return Err(refused("it has several lines, which cannot be put back"));
        }
        self.change(path, value, &before)
    }

    /// Switches a word of a shared list on; `back` is the word that undoes it at the end.
    ///
    /// # Errors
    /// [`TracefsError`].
    pub fn set_option(&mut self, path: &str, word: &str, back: &str) -> Result<(), TracefsError> {
        self.change(path, word, back)
    }

    /// A kill between what is told and what is written puts back what was never changed.
    fn change(&mut self, path: &str, value: &str, back: &str) -> Result<(), TracefsError> {
        self.guard.tell(path, back);
        self.before.push((path.to_owned(), back.to_owned()));
        self.tracefs.write(path, value)
    }

    /// Reads a setting that all instances share.
    ///
    /// # Errors
    /// [`crate::Missing`].
    pub fn read_shared(&self, path: &str) -> Found<String> {
        self.tracefs.read(path)
    }

    /// Reads a file of the instance.
    ///
    /// # Errors
    /// [`crate::Missing`].
    pub fn read(&self, path: &str) -> Found<String> {
        self.tracefs.read(&self.own(path))
    }

    /// The binary ring buffer of one CPU; reads never wait.
    ///
    /// # Errors
    /// [`TracefsError`]. It has to be closed before the instance is removed.
    pub fn open_raw(&self, cpu: u32) -> Result<File, TracefsError> {
        let path = self.tracefs.path(&self.own(&format!("per_cpu/cpu{cpu}/trace_pipe_raw")));
        open_without_waiting(&self.tracefs.root.path(&path))
            .map_err(|e| TracefsError::of(&path, &e))
    }

    /// Ends the trace, puts shared settings back, removes the instance and lets the guard go.
    ///
    /// # Errors
    /// EBUSY while somebody reads it: the guard tries for some seconds more when this value is gone.
    pub fn remove(&mut self) -> Result<(), TracefsError> {
        if !self.removed {
            take_down(&self.tracefs, self.guard.name(), &mut self.before)?;
            self.removed = true;
            self.guard.dismiss();
        }
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Whoever wants to know why not calls `remove`; the next run tries again.
        drop(self.remove());
    }
}
