// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who asked to be nice asked it of what is started, too; who is urgent starts nothing urgent.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;

use tailbound_sys::environment::Environment;
use tailbound_sys::process::{self, SIGKILL};
use tailbound_sys::spawn::Spawn;

/// The nice value that a thread with this one gives to what it starts; none: it may not have it.
fn handed_on(nice: i32) -> Option<i32> {
    let thread = std::thread::spawn(move || {
        process::set_nice(nice).ok()?;
        let file = tempfile::NamedTempFile::new().expect("a file");
        let out = File::create(file.path()).expect("open");
        let arguments: Vec<OsString> = vec!["-c".into(), "cut -d ' ' -f 19 /proc/self/stat".into()];
        let pid = Spawn {
            program: Path::new("/bin/sh"),
            arguments: &arguments,
            descriptors: &[(out.as_fd(), 1)],
            pid_namespace: false,
            new_session: true,
            death_signal: SIGKILL,
            cpus: &[],
            environment: Environment::Clean,
        }
        .start()
        .expect("started");
        process::wait(pid);
        std::fs::read_to_string(file.path()).expect("read").trim().parse().ok()
    });
    thread.join().expect("joined")
}

#[test]
fn a_nice_caller_starts_nice_children() {
    assert_eq!(handed_on(19), Some(19));
}

#[test]
fn an_urgent_caller_starts_ordinary_children() {
    let Some(found) = handed_on(-3) else {
        return tailbound_testing::skip("root", "only root may be urgent");
    };
    assert_eq!(found, 0);
}
