// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server of ssh on loopback, with keys and configuration of its own.
//!
//! Context: tests.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tailbound_testing::skip;

const SSHD: &str = "/usr/sbin/sshd";

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

/// Can a server be started here? Else it is said why not.
pub(crate) fn able() -> bool {
    if !Path::new(SSHD).exists() {
        skip("sshd", "there is no sshd (Debian: openssh-server)");
        return false;
    }
    // sshd's own folder, which its service makes.
    let made = fs::create_dir_all("/run/sshd").is_ok();
    if !made {
        skip("root", "sshd needs /run/sshd");
    }
    made
}

/// The server, and the configuration of its user, for whom it is the host `board`; none where there is no sshd. `more` lines of its own
/// configuration.
pub(crate) fn begin(folder: &Path, more: &str) -> Option<(Server, PathBuf)> {
    if !able() {
        return None;
    }
    let (port, config) = configured(folder, more);
    Some((started(folder, port), config))
}

/// Its keys and files: the port, and the file of its user's configuration.
pub(crate) fn configured(folder: &Path, more: &str) -> (u16, PathBuf) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = folder.display();
    key(&folder.join("host"));
    key(&folder.join("user"));
    fs::copy(folder.join("user.pub"), folder.join("authorized")).unwrap();
    let served = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized\nStrictModes no\nUsePAM no\nPidFile none\n{more}"
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
