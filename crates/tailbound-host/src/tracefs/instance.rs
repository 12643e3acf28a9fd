// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace instance of our own: made, set up, read, and always removed again, with every
//! setting that all instances share put back.
//!
//! Context: SETUP, COLD. Dropped, it is gone. Where the process is killed, its guard
//! removes it; where that is killed too, the next run does.
//! Source: Documentation/trace/ftrace.rst, "Instances"; mkdir and rmdir make and remove one.

use std::fs::{self, File};
use std::io;

use tailbound_sys::file::open_without_waiting;

use crate::root::Found;
use crate::tracefs::{Tracefs, TracefsError, start_time};

/// What the names of our instances begin with; the process and its start time follow.
pub const NAME_PREFIX: &str = "tailbound-";

/// A trace instance of our own.
#[derive(Debug)]
pub struct Instance {
    tracefs: Tracefs,
    name: String,
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
    /// Makes the instance of this process; a further one has a `part` in its name.
    ///
    /// # Errors
    /// Not permitted; this process has one of that name already.
    pub fn make(tracefs: Tracefs, part: Option<&str>) -> Result<Self, TracefsError> {
        let pid = std::process::id();
        let began = start_time(&tracefs.root, pid).unwrap_or_else(|_| "0".to_owned());
        let part = part.map_or_else(String::new, |part| format!("-{part}"));
        let name = format!("{NAME_PREFIX}{pid}-{began}{part}");
        let path = tracefs.path(&format!("instances/{name}"));
        match fs::create_dir(tracefs.root.path(&path)) {
            Ok(()) => Ok(Self::adopt(tracefs, name)),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                Err(TracefsError::of(&path, &e))
            }
            Err(e) => Err(TracefsError::File {
                why: format!(
                    "no trace instance can be made: {e}; {} of others are there, and `rmdir` removes one that nobody uses",
                    tracefs.instances().len()
                ),
                path,
            }),
        }
    }

    /// Takes over the instance `name`, wherever it came from.
    pub(crate) fn adopt(tracefs: Tracefs, name: String) -> Self {
        Self { tracefs, name, before: Vec::new(), removed: false }
    }

    /// Its name below `instances/`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Shared settings that were changed, as they were.
    #[must_use]
    pub fn before(&self) -> &[(String, String)] {
        &self.before
    }

    pub(crate) fn put_back_later(&mut self, path: &str, value: &str) {
        self.before.push((path.to_owned(), value.to_owned()));
    }

    fn own(&self, path: &str) -> String {
        format!("instances/{}/{path}", self.name)
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

    /// Writes to a setting that all instances share; it is put back with the instance's end.
    ///
    /// # Errors
    /// [`TracefsError`]; a setting that cannot be read is not changed.
    pub fn set_shared(&mut self, path: &str, value: &str) -> Result<(), TracefsError> {
        let before = self.tracefs.read(path).map_err(|e| TracefsError::File {
            path: self.tracefs.path(path),
            why: e.reason().to_owned(),
        })?;
        if before == value {
            return Ok(());
        }
        self.tracefs.write(path, value)?;
        self.put_back_later(path, &before);
        Ok(())
    }

    /// Switches a word of a shared list on; `back` is the word that undoes it at the end.
    ///
    /// # Errors
    /// [`TracefsError`].
    pub fn set_option(&mut self, path: &str, word: &str, back: &str) -> Result<(), TracefsError> {
        self.tracefs.write(path, word)?;
        self.put_back_later(path, back);
        Ok(())
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

    /// Ends the trace, puts shared settings back and removes the instance. What refuses is
    /// gone over: the removal itself is what counts.
    ///
    /// # Errors
    /// EBUSY while somebody reads it.
    pub fn remove(&mut self) -> Result<(), TracefsError> {
        if self.removed {
            return Ok(());
        }
        for (path, value) in
            [("tracing_on", "0"), ("current_tracer", "nop"), ("events/enable", "0")]
        {
            drop(self.set(path, value));
        }
        for (path, value) in self.before.drain(..).rev() {
            drop(self.tracefs.write(&path, &value));
        }
        let path = self.tracefs.path(&format!("instances/{}", self.name));
        match fs::remove_dir(self.tracefs.root.path(&path)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(TracefsError::of(&path, &e)),
            _ => {
                self.removed = true;
                Ok(())
            }
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Whoever wants to know why not calls `remove`; the next run tries again.
        drop(self.remove());
    }
}
