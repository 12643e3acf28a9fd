// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's tracing file system: where it is, what it offers, who uses it, and what a
//! killed predecessor of ours left there.
//!
//! Context: SETUP, COLD. What is traced is traced in an instance of our own, so that nobody
//! else's trace is touched.
//! Not here: what to trace (`tailbound-record`), what the trace says (`tailbound-trace`).
//! Source: Documentation/trace/ftrace.rst, "Instances".

mod guard;
mod instance;
mod removal;

pub use guard::guard_main;
pub use instance::{Instance, NAME_PREFIX, Switch};

use std::fs;
use std::io;

use crate::kernel_files::TRACEFS;
use crate::root::{Found, Missing, Root};
use crate::tracing_right::TracingRight;

/// Where tracefs is mounted: by itself, else within debugfs.
const MOUNTS: [&str; 2] = [TRACEFS, "/sys/kernel/debug/tracing"];
/// Tracers that share the settings under `osnoise/` and the one thread per CPU.
const EXCLUSIVE: [&str; 3] = ["timerlat", "osnoise", "hwlat"];

/// Why the kernel's tracing cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TracefsError {
    /// It is not there, and could not be mounted for this process alone.
    #[error("tracefs: {}. A run without --observe and --blame needs none", .0.remedy())]
    Lacking(TracingRight),
    /// This user may not.
    #[error(
        "{path}: permission denied; tracing needs root, and a kernel that is not locked down for confidentiality (/sys/kernel/security/lockdown)"
    )]
    Permission {
        /// What was refused.
        path: String,
    },
    /// A tracer that cannot run twice runs already.
    #[error("the tracer `{tracer}` runs already in {place}: end that trace first")]
    Busy {
        /// Which.
        tracer: String,
        /// Where.
        place: String,
    },
    /// A file refused what was written to it, or could not be read.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: String,
        /// Why.
        why: String,
    },
}

impl TracefsError {
    fn of(path: &str, e: &io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission { path: path.to_owned() },
            _ => Self::File { path: path.to_owned(), why: e.to_string() },
        }
    }
}

/// The tracing file system of one machine.
#[derive(Clone, Debug)]
pub struct Tracefs {
    root: Root,
    dir: &'static str,
}

impl Tracefs {
    /// Finds it.
    ///
    /// # Errors
    /// Not mounted, not permitted.
    pub fn find(root: &Root) -> Result<Self, TracefsError> {
        let mut refused = None;
        for dir in MOUNTS {
            match fs::read_dir(root.path(dir)) {
                Ok(_) if root.exists(&format!("{dir}/instances")) => {
                    return Ok(Self { root: root.clone(), dir });
                }
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    refused = refused.or_else(|| Some(TracefsError::of(dir, &e)));
                }
                _ => {}
            }
        }
        Err(refused.unwrap_or_else(|| TracefsError::Lacking(TracingRight::lacking(root))))
    }

    /// A path below tracefs as people know it.
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.dir)
    }

    /// A file's text.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn read(&self, path: &str) -> Found<String> {
        self.root.read_trimmed(&self.path(path))
    }

    /// Does this kernel have the tracer?
    ///
    /// # Errors
    /// [`Missing`].
    pub fn has_tracer(&self, tracer: &str) -> Found<bool> {
        Ok(self.read("available_tracers")?.split_whitespace().any(|t| t == tracer))
    }

    /// The description of an event's records.
    ///
    /// # Errors
    /// [`Missing`]; not applicable where this kernel has no such event.
    pub fn event_format(&self, system: &str, event: &str) -> Found<String> {
        self.read(&format!("events/{system}/{event}/format"))
    }

    /// Does nobody's trace use the threads and settings of timerlat, osnoise and hwlat? What dead
    /// predecessors of ours left does not count: [`Self::remove_leftovers`] removes it.
    ///
    /// # Errors
    /// [`TracefsError::Busy`].
    pub fn free_for_tracer(&self) -> Result<(), TracefsError> {
        let others = self.instances().into_iter().filter(|name| !self.is_leftover(name));
        let instances = others.map(|i| format!("instances/{i}/"));
        for place in std::iter::once(String::new()).chain(instances) {
            // An instance may be removed meanwhile; who may not read this may not start a tracer either.
            let tracer = self.read(&format!("{place}current_tracer")).unwrap_or_default();
            if EXCLUSIVE.contains(&tracer.as_str()) {
                return Err(TracefsError::Busy { tracer, place: self.path(&place) });
            }
        }
        Ok(())
    }

    /// Tracers that others run now: their cost is in every figure. Where, and which.
    #[must_use]
    pub fn foreign_tracers(&self) -> Vec<(String, String)> {
        let instances = self.instances().into_iter().map(|i| format!("instances/{i}/"));
        std::iter::once(String::new())
            .chain(instances)
            .filter_map(|place| {
                let tracer = self.read(&format!("{place}current_tracer")).ok()?;
                (!tracer.is_empty() && tracer != "nop").then(|| (self.path(&place), tracer))
            })
            .collect()
    }

    pub(crate) fn instances(&self) -> Vec<String> {
        self.root.list(&self.path("instances")).unwrap_or_default()
    }

    /// Removes the instances of predecessors that are gone without having done so; their names.
    /// Guards that are about it are waited for: they know the settings as they were.
    pub fn remove_leftovers(&self) -> Vec<String> {
        guard::wait_for_guards(&self.root, &self.leftovers());
        let mut left = self.leftovers();
        // One that is still read belongs to somebody whom we cannot see: it stays.
        left.retain(|name| removal::take_down(self, name, &mut Vec::new()).is_ok());
        left
    }

    fn leftovers(&self) -> Vec<String> {
        self.instances().into_iter().filter(|name| self.is_leftover(name)).collect()
    }

    fn is_leftover(&self, name: &str) -> bool {
        name.strip_prefix(NAME_PREFIX).is_some_and(|who| !self.owner_lives(who))
    }

    /// `PID-STARTTIME`: a number alone could by now be somebody else's.
    fn owner_lives(&self, who: &str) -> bool {
        let Some((pid, rest)) = who.split_once('-') else { return false };
        let began = rest.split_once('-').map_or(rest, |(began, _part)| began);
        pid.parse::<u32>().is_ok_and(|pid| start_time(&self.root, pid).is_ok_and(|t| t == began))
    }

    pub(crate) fn write(&self, path: &str, value: &str) -> Result<(), TracefsError> {
        self.put(path, value, fs::OpenOptions::new().write(true).truncate(true))
    }

    /// Adds a value to a list.
    pub(crate) fn add(&self, path: &str, value: &str) -> Result<(), TracefsError> {
        self.put(path, value, fs::OpenOptions::new().append(true))
    }

    fn put(&self, path: &str, value: &str, how: &fs::OpenOptions) -> Result<(), TracefsError> {
        let full = self.path(path);
        how.open(self.root.path(&full))
            .and_then(|mut f| io::Write::write_all(&mut f, value.as_bytes()))
            .map_err(|e| match TracefsError::of(&full, &e) {
                TracefsError::File { path, why } => {
                    TracefsError::File { path, why: format!("`{value}`: {why}") }
                }
                other => other,
            })
    }
}

/// When a process began, in the kernel's ticks; proc_pid_stat(5), field 22.
fn start_time(root: &Root, pid: u32) -> Found<String> {
    let stat = root.text(&format!("/proc/{pid}/stat"))?;
    // The name may hold spaces and parentheses: count from the last one.
    let field = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19));
    field
        .map(str::to_owned)
        .ok_or_else(|| Missing::Unknown(format!("/proc/{pid}/stat has no start time")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn an_empty_mount_point_is_no_tracefs() {
        let (_dir, root) = tree(&[("sys/kernel/tracing/README", "")]);
        let why = Tracefs::find(&root).map(drop);
        assert_eq!(why, Err(TracefsError::Lacking(TracingRight::NotCaptured)));
    }

    #[test]
    fn an_older_kernel_has_it_in_debugfs() {
        let (_dir, root) = tree(&[
            ("sys/kernel/debug/tracing/instances/x/current_tracer", "nop\n"),
            ("sys/kernel/debug/tracing/available_tracers", "timerlat nop\n"),
        ]);
        let tracefs = Tracefs::find(&root).expect("there");
        assert_eq!(tracefs.has_tracer("timerlat"), Ok(true));
        assert_eq!(tracefs.has_tracer("timer"), Ok(false));
        assert_eq!(tracefs.free_for_tracer(), Ok(()));
    }

    #[test]
    fn tracers_of_others_are_told_and_one_that_is_off_is_none() {
        let (_dir, root) = tree(&[
            ("sys/kernel/tracing/current_tracer", "nop\n"),
            ("sys/kernel/tracing/instances/rtla/current_tracer", "timerlat\n"),
        ]);
        let tracefs = Tracefs::find(&root).expect("there");
        let place = "/sys/kernel/tracing/instances/rtla/".to_owned();
        assert_eq!(tracefs.foreign_tracers(), vec![(place, "timerlat".to_owned())]);
    }

    #[test]
    fn a_refused_instance_says_why_and_what_to_do() {
        let (dir, root) = tree(&[("sys/kernel/tracing/instances/x/current_tracer", "nop\n")]);
        let tracefs = Tracefs::find(&root).expect("there");
        fs::remove_dir_all(dir.path().join("sys/kernel/tracing/instances")).expect("gone");
        fs::write(dir.path().join("sys/kernel/tracing/instances"), "").expect("a file");
        let nobody = std::path::Path::new("/nonexistent");
        let why = Instance::make(tracefs, None, nobody).map(drop).map_err(|e| e.to_string());
        assert!(
            why.as_ref().is_err_and(|w| w.contains("no trace instance can be made")),
            "{why:?}"
        );
    }

    #[test]
    fn another_ones_tracer_is_in_the_way_and_named() {
        let (_dir, root) = tree(&[
            ("sys/kernel/tracing/current_tracer", "function\n"),
            ("sys/kernel/tracing/instances/rtla/current_tracer", "timerlat\n"),
            ("sys/kernel/tracing/instances/tailbound-9-9/current_tracer", "timerlat\n"),
        ]);
        let why = Tracefs::find(&root).and_then(|t| t.free_for_tracer()).map_err(|e| e.to_string());
        assert!(why.is_err_and(|w| w.contains("timerlat") && w.contains("instances/rtla")));
        fs::remove_dir_all(root.path("/sys/kernel/tracing/instances/rtla")).expect("removed");
        let why = Tracefs::find(&root).and_then(|t| t.free_for_tracer());
        assert_eq!(why, Ok(()), "a dead one's leftover is in nobody's way");
    }

    #[test]
    fn only_the_dead_leave_something_over() {
        let stat = |t| format!("41 (a (b) c) S {} {t} 0", "0 ".repeat(18).trim_end());
        let (dir, root) = tree(&[("proc/41/stat", &stat("777"))]);
        let living = ["tailbound-41-777", "tailbound-41-777-calls"];
        let dead = ["tailbound-41-778", "tailbound-41-778-calls", "tailbound-42-1", "tailbound-x"];
        for name in living.iter().chain(&dead).chain(&["own"]) {
            let path = dir.path().join("sys/kernel/tracing/instances").join(name);
            fs::create_dir_all(path).expect("a folder");
        }
        let tracefs = Tracefs::find(&root).expect("there");
        let gone = tracefs.remove_leftovers();
        assert_eq!(gone, dead);
        assert_eq!(tracefs.instances(), ["own", living[0], living[1]]);
    }
}
