// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which process a user means: by its number, or by the names of its threads.
//!
//! Not here: which of its threads are looked at.

use std::collections::BTreeMap;

use crate::missing::Missing;
use crate::root::Root;
use crate::threads::{thread, threads};

/// Most processes that are named where several could be meant.
const SHOWN_MAX: usize = 8;
/// Longest name of a thread, in bytes. Source: include/linux/sched.h, TASK_COMM_LEN.
const NAME_BYTES_MAX: usize = 15;

/// What was typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessChoice<'a> {
    /// A number.
    pub pid: Option<u32>,
    /// Names of threads; with a number they say nothing about the process.
    pub comm: &'a [String],
}

/// Why it is not clear which process is meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProcessChoiceError {
    /// It has ended, or never was.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// No thread has that name.
    #[error("--comm: no thread is named {names}{}", if *.cut { "; the kernel keeps 15 bytes of a name" } else { "" })]
    NoThread {
        /// The names.
        names: String,
        /// One of them is longer than any.
        cut: bool,
    },
    /// Threads of several processes have it.
    #[error("--comm: threads of that name are in several processes: {}; name one by its PID", .0.join(", "))]
    Several(Vec<String>),
    /// /proc does not tell.
    #[error("--comm: {0}")]
    Unreadable(Missing),
}

impl ProcessChoice<'_> {
    /// The process; `None` where nothing was typed.
    ///
    /// # Errors
    /// [`ProcessChoiceError`].
    pub fn process(&self, root: &Root) -> Result<Option<u32>, ProcessChoiceError> {
        match self.pid {
            // The number of a thread means its process.
            Some(pid) if root.exists(&format!("/proc/{pid}")) => {
                Ok(Some(thread(root, pid).map_or(pid, |t| t.pid)))
            }
            Some(pid) => Err(ProcessChoiceError::NoProcess(pid)),
            None if self.comm.is_empty() => Ok(None),
            None => self.by_name(root).map(Some),
        }
    }

    fn by_name(&self, root: &Root) -> Result<u32, ProcessChoiceError> {
        let own = if root.is_real() { Some(std::process::id()) } else { None };
        let all = threads(root).map_err(ProcessChoiceError::Unreadable)?;
        let mut found = BTreeMap::new();
        for thread in all.iter().filter(|t| !t.kernel && Some(t.pid) != own) {
            if self.comm.contains(&thread.name) {
                found.entry(thread.pid).or_insert(thread.name.as_str());
            }
        }
        let processes: Vec<(u32, &str)> = found.into_iter().collect();
        match processes.as_slice() {
            [(pid, _)] => Ok(*pid),
            [] => Err(ProcessChoiceError::NoThread {
                names: self.comm.join(" or "),
                cut: self.comm.iter().any(|name| name.len() > NAME_BYTES_MAX),
            }),
            several => {
                let name = |(pid, name): &(u32, &str)| format!("{pid} ({name})");
                let mut shown: Vec<String> = several.iter().take(SHOWN_MAX).map(name).collect();
                if let Some(more) = several.len().checked_sub(SHOWN_MAX).filter(|n| *n > 0) {
                    shown.push(format!("and {more} more"));
                }
                Err(ProcessChoiceError::Several(shown))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_meant_by_one_number_or_by_a_name_that_no_other_has() {
        let dir = tempfile::tempdir().unwrap();
        let thread = |pid: u32, tid: u32, name: &str| {
            let task = dir.path().join(format!("proc/{pid}/task/{tid}"));
            std::fs::create_dir_all(&task).unwrap();
            let stat = format!("{tid} ({name}) S 1 {}", "0 ".repeat(45));
            std::fs::write(task.join("stat"), stat).unwrap();
            std::fs::write(task.join("comm"), format!("{name}\n")).unwrap();
            std::fs::write(task.join("status"), format!("Name:\t{name}\nTgid:\t{pid}\n")).unwrap();
        };
        for (pid, tid, name) in
            [(7, 7, "robot"), (7, 8, "ctl"), (7, 9, "ctl"), (20, 20, "log"), (30, 30, "log")]
        {
            thread(pid, tid, name);
        }
        let root = Root::at(dir.path());
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let by = |pid, comm: &[&str]| {
            ProcessChoice { pid, comm: &names(comm) }.process(&root).map_err(|e| e.to_string())
        };
        assert_eq!(by(None, &[]), Ok(None));
        assert_eq!(by(Some(20), &[]), Ok(Some(20)));
        assert_eq!(by(Some(20), &["not yet"]), Ok(Some(20)), "a thread may begin later");
        assert_eq!(by(Some(21), &[]), Err("there is no process 21".to_owned()));
        assert_eq!(by(None, &["ctl"]), Ok(Some(7)), "two threads of one process");
        assert_eq!(by(None, &["ctl", "robot"]), Ok(Some(7)));
        let several = by(None, &["log"]).unwrap_err();
        assert!(several.contains("20 (log), 30 (log)") && several.contains("PID"), "{several}");
        assert!(by(None, &["lo"]).unwrap_err().contains("no thread is named lo"));
        assert!(by(None, &["a-name-of-sixteen"]).unwrap_err().contains("15 bytes"));
    }
}
