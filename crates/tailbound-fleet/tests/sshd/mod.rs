// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server of ssh on loopback, with keys and configuration of its own.
//!
//! Context: tests.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) const SSHD: &str = "/usr/sbin/sshd";

pub(crate) struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn key(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status()
        .unwrap();
    assert!(made.success());
}

/// The server and the file of its user's configuration.
pub(crate) fn server(folder: &Path) -> (Server, PathBuf) {
    let (port, config) = configured(folder);
    (started(folder, port), config)
}

/// Its keys and files: the port, and the file of its user's configuration.
pub(crate) fn configured(folder: &Path) -> (u16, PathBuf) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = folder.display();
    key(&folder.join("host"));
    key(&folder.join("user"));
    fs::copy(folder.join("user.pub"), folder.join("authorized")).unwrap();
    let served = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized\nStrictModes no\nUsePAM no\nPidFile none\n"
    );
    fs::write(folder.join("sshd_config"), served).unwrap();
    let user = format!(
        "Host board 127.0.0.1\nHostName 127.0.0.1\nPort {port}\nIdentityFile {at}/user\nIdentitiesOnly yes\nUserKnownHostsFile {at}/known\nStrictHostKeyChecking no\nLogLevel ERROR\n"
    );
    let config = folder.join("ssh_config");
    fs::write(&config, user).unwrap();
    (port, config)
}

/// The server, once it listens.
pub(crate) fn started(folder: &Path, port: u16) -> Server {
    let child = Command::new(SSHD)
        .args(["-D", "-e", "-f"])
        .arg(folder.join("sshd_config"))
        .stdin(Stdio::null())
        .stderr(fs::File::create(folder.join("log")).unwrap())
        .spawn()
        .unwrap();
    let server = Server(child);
    for _ in 0..100 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    server
}
