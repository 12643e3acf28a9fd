// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program where it can change nothing, and where it keeps its journals apart from the machine's.
//!
//! Used by `check` and `tune`. Each command gets mounts of its own, which end with it.

use std::path::Path;
use std::process::{Command, Output};

use tailbound_sys::only_reads;
use tailbound_testing::skip;

use crate::journals::Journals;
use crate::tailbound;

/// Mounts of its own, and then the rest of its arguments as a command.
const MAKE_READ_ONLY: &str = r#"
for at in $(cut -d' ' -f2 /proc/self/mounts); do mount -o remount,bind,ro "$at" 2>/dev/null; done
for at in / /proc/sys/vm/swappiness /sys/kernel /run /var /tmp /etc "$PWD"; do
    if test -e "$at" && test -w "$at"; then echo "$at can still be written to" >&2; exit 99; fi
done
exec "$@"
"#;
/// Exit status of the script above where it could not do it.
const STILL_WRITABLE: i32 = 99;

/// Runs it where every mount is read-only, which files of settings are too.
pub(crate) fn on_read_only_mounts(folder: &Path, words: &[&str]) -> Output {
    let out = Command::new("unshare")
        .args(["-m", "sh", "-c", MAKE_READ_ONLY, "sh", env!("CARGO_BIN_EXE_tailbound")])
        .args(words)
        .env("NO_COLOR", "1")
        .current_dir(folder)
        .output()
        .unwrap();
    assert_ne!(out.status.code(), Some(STILL_WRITABLE), "{}", crate::stderr(&out));
    out
}

/// Runs it under a filter that kills it when it opens anything for writing, or changes files, threads,
/// processes or the kernel by any other call. `None`: there is no such filter here.
pub(crate) fn under_the_filter(folder: &Path, words: &[&str]) -> Option<Output> {
    let mut command = tailbound();
    command.args(words).current_dir(folder);
    // In a thread of its own, because a filter stays.
    let run = move || only_reads::confine().map(|()| command.output());
    match std::thread::spawn(run).join().unwrap() {
        Ok(out) => Some(out.unwrap()),
        Err(e) => {
            skip("seccomp", e);
            None
        }
    }
}

/// Was it killed by the filter?
pub(crate) fn tried_to_write(out: &Output) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    const SIGSYS: i32 = 31;
    out.status.signal() == Some(SIGSYS)
}

impl Journals {
    /// The same where every mount is read-only.
    pub(crate) fn looking(&self, words: &[&str]) -> Output {
        let script = ["sh", "-c", MAKE_READ_ONLY, "sh", env!("CARGO_BIN_EXE_tailbound")];
        let out = self.command(&[], &[&script, words].concat()).output().unwrap();
        assert_ne!(out.status.code(), Some(STILL_WRITABLE), "{}", crate::stderr(&out));
        out
    }

    /// Files of all changes there were.
    pub(crate) fn files(&self) -> usize {
        let count = |name: &str| {
            let found = std::fs::read_dir(self.folder().join(name).join("tailbound/tune"));
            found.map_or(0, |all| {
                all.filter(|f| {
                    f.as_ref().is_ok_and(|f| f.path().extension().is_some_and(|e| e == "jsonl"))
                })
                .count()
            })
        };
        count("run") + count("lib")
    }
}
