// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of one process that samples are asked about, by their names.

use std::collections::HashMap;

use tailbound_core::sampled::SampleOwner;
use tailbound_host::Root;

/// See the module.
pub(super) struct AskedThreads {
    pid: i32,
    /// All where it is empty.
    comm: Vec<String>,
    threads: HashMap<i32, SampleOwner>,
}

impl AskedThreads {
    pub(super) fn new(pid: u32, comm: &[String]) -> Self {
        let pid = i32::try_from(pid).unwrap_or(-1);
        Self { pid, comm: comm.to_vec(), threads: HashMap::new() }
    }

    /// A thread has this name from now on.
    pub(super) fn rename(&mut self, pid: i32, tid: i32, name: &str) {
        if pid == self.pid {
            self.threads.insert(tid, self.of(name));
        }
    }

    fn of(&self, name: &str) -> SampleOwner {
        match self.comm.iter().any(|wanted| wanted == name) {
            true => SampleOwner::Asked,
            false => SampleOwner::Others,
        }
    }

    /// SampleOwner sample is it that fell into this thread? One that has ended already has no name and is not asked about.
    pub(super) fn whose(&mut self, root: &Root, pid: i32, tid: i32) -> SampleOwner {
        if pid != self.pid {
            return SampleOwner::Others;
        }
        if self.comm.is_empty() {
            return SampleOwner::Asked;
        }
        if let Some(whose) = self.threads.get(&tid) {
            return *whose;
        }
        let name = root.read_trimmed(&format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
        let whose = self.of(&name);
        self.threads.insert(tid, whose);
        whose
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_asked_about_by_the_name_that_it_has_now() {
        let dir = tempfile::tempdir().unwrap();
        let file = |tid: u32, name: &str| {
            let task = dir.path().join(format!("proc/7/task/{tid}"));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("comm"), format!("{name}\n")).unwrap();
        };
        file(7, "robot");
        file(8, "ctl");
        let root = Root::at(dir.path());
        let mut asked = AskedThreads::new(7, &["ctl".to_owned()]);
        let whose = |asked: &mut AskedThreads, pid, tid| asked.whose(&root, pid, tid);
        assert_eq!(whose(&mut asked, 7, 8), SampleOwner::Asked);
        assert_eq!(whose(&mut asked, 7, 7), SampleOwner::Others);
        assert_eq!(whose(&mut asked, 7, 9), SampleOwner::Others, "it is gone");
        assert_eq!(whose(&mut asked, 6, 8), SampleOwner::Others, "another process");
        asked.rename(6, 7, "ctl");
        assert_eq!(whose(&mut asked, 7, 7), SampleOwner::Others);
        asked.rename(7, 7, "ctl");
        assert_eq!(whose(&mut asked, 7, 7), SampleOwner::Asked);
        let mut all = AskedThreads::new(7, &[]);
        assert_eq!(whose(&mut all, 7, 9), SampleOwner::Asked);
    }
}
