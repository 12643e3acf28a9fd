// SPDX-License-Identifier: MIT OR Apache-2.0
//! A confined child: another user, its own folder, no large file, no new right.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use tailbound_sys::environment::Environment;
use tailbound_sys::owner;
use tailbound_sys::process::{self, SIGKILL};
use tailbound_sys::spawn::{Confined, Spawn};
use tailbound_testing::skip;

const USER: u32 = 1_880_000_007;

#[test]
fn a_confined_child_is_another_user_in_a_folder_of_its_own() {
    if owner::effective_user() != 0 {
        return skip("root", "only root can start another user's process");
    }
    let top = tempfile::tempdir().expect("a folder");
    // Closed to everybody above, open below: what is named relatively is found all the same.
    fs::set_permissions(top.path(), fs::Permissions::from_mode(0o700)).expect("closed");
    let folder = top.path().join("boot");
    fs::create_dir(&folder).expect("made");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o711)).expect("open");
    fs::write(folder.join("given"), "given\n").expect("written");
    let out = folder.join("out");
    let file = File::create(&out).expect("made");
    if chown(&out, Some(USER), Some(USER)).is_err() {
        return skip("users", "this root has no other users to give things to");
    }
    let secret = top.path().join("secret");
    fs::write(&secret, "secret").expect("written");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("closed");
    let script = format!(
        "id -u; id -G; cat given; cat {} || echo closed; echo x > new || echo unwritable; \
         grep NoNewPrivs /proc/self/status; head -c 100000 /dev/zero > out2; head -c 100000 /dev/zero >> out; echo $?",
        secret.display()
    );
    let arguments: Vec<OsString> = vec!["-c".into(), script.into()];
    let pid = Spawn {
        program: Path::new("/bin/sh"),
        arguments: &arguments,
        descriptors: &[(file.as_fd(), 1), (file.as_fd(), 2)],
        pid_namespace: false,
        new_session: true,
        death_signal: SIGKILL,
        cpus: &[],
        environment: Environment::Clean,
    }
    .start_confined(&Confined {
        folder: &folder,
        user: Some(USER),
        group: None,
        file_bytes_max: 65536,
    })
    .expect("started");
    process::wait(pid);
    let bytes = fs::read(&out).expect("read");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    for wanted in
        ["1880000007\n1880000007\ngiven\n", "closed\n", "unwritable\n", "NoNewPrivs:\t1\n"]
    {
        assert!(text.contains(wanted), "{wanted:?} in {text}");
    }
    assert_eq!(bytes.len(), 65536, "the largest file it may write");
    // The caller, its threads too, is who it was.
    assert_eq!(owner::effective_user(), 0);
}
