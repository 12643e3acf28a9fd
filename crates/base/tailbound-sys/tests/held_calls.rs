// SPDX-License-Identifier: MIT OR Apache-2.0
//! A child whose poll(2) waits for our word, and goes on with it.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::time::Duration;

use tailbound_sys::environment::Environment;
use tailbound_sys::held_calls::Call;
use tailbound_sys::process::{self, SIGKILL};
use tailbound_sys::spawn::{Confined, Spawn};
use tailbound_testing::skip;

#[test]
fn a_held_poll_goes_on_when_it_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let arguments: Vec<OsString> = ["--list"].map(OsString::from).into();
    let out = tempfile::tempfile().expect("a file");
    let spawn = Spawn {
        program: &program,
        arguments: &arguments,
        descriptors: &[(out.as_fd(), 1), (out.as_fd(), 2)],
        pid_namespace: false,
        new_session: true,
        death_signal: SIGKILL,
        cpus: &[],
        environment: Environment::Clean,
    };
    let confined =
        Confined { folder: folder.path(), user: None, group: None, file_bytes_max: 1 << 20 };
    let (pid, calls) = spawn.start_held(&confined).expect("started");
    let calls = match calls {
        Ok(calls) => calls,
        Err(e) => {
            process::wait(pid);
            return skip("seccomp", format!("calls cannot be held here: {e}"));
        }
    };
    let mut polls = 0;
    // ENOENT: it ended.
    while let Ok(next) = calls.next(Duration::from_secs(20)) {
        let held = next.expect("it neither ends nor waits");
        if held.call == Call::Poll {
            // Rust's runtime looks for closed standard descriptors as it starts, without waiting.
            assert!(held.limited, "a poll with a timeout ends by itself");
            polls += 1;
            assert!(calls.next(Duration::from_millis(20)).expect("it lives").is_none());
            assert!(process::try_wait(pid).expect("a child").is_none(), "it did not wait");
        }
        calls.go_on(held);
        if polls > 0 && process::try_wait(pid).expect("a child").is_some() {
            break;
        }
    }
    assert!(polls > 0, "no poll was held");
}
