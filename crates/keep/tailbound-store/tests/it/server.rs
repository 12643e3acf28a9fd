// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real server of PostgreSQL, for the time of a test: in a folder of its own, on a socket of its own, without network.
//!
//! Context: tests. It refuses to be root, so root starts it as `nobody`. It ends with the test.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Who the server is where root started it.
const NOBODY: u32 = 65534;

/// A server.
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    programs: PathBuf,
}

/// The folder of its programs: Debian keeps them off the path.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut all: Vec<PathBuf> = versions.flatten().map(|e| e.path().join("bin")).collect();
    all.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    all.into_iter().find(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
}

fn is_root() -> bool {
    // The owner of what this process has open.
    std::os::unix::fs::MetadataExt::uid(
        &std::fs::metadata("/proc/self").unwrap_or_else(|e| panic!("{e}")),
    ) == 0
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir("/").env("LC_ALL", "C").stdin(Stdio::null());
    command
}

impl Server {
    /// Starts one; `None`, with the reason told, where there is no PostgreSQL.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            tailbound_testing::skip("postgresql", "there is no PostgreSQL here");
            return None;
        };
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        if is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap_or_else(|e| panic!("{e}"));
        }
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
            .unwrap_or_else(|e| panic!("{e}"));
        let data = folder.path().join("data");
        let made = command(&programs.join("initdb"))
            .args(["-A", "trust", "-U", "tailbound", "-E", "UTF8", "--no-sync", "-D"])
            .arg(&data)
            .output()
            .unwrap_or_else(|e| panic!("initdb: {e}"));
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let log =
            std::fs::File::create(folder.path().join("log")).unwrap_or_else(|e| panic!("{e}"));
        let mut server = command(&programs.join("postgres"));
        server
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-k"])
            .arg(folder.path());
        let child = server
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|e| panic!("postgres: {e}"));
        let it = Self { child, folder, programs };
        it.wait();
        Some(it)
    }

    fn wait(&self) {
        let ready = self.folder.path().join("data/postmaster.pid");
        let end = Instant::now() + Duration::from_secs(120);
        // Its last line says so: src/backend/utils/init/miscinit.c.
        while !std::fs::read_to_string(&ready).is_ok_and(|text| text.trim_end().ends_with("ready"))
        {
            let log =
                || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < end, "PostgreSQL is not ready:\n{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Where a store on it is.
    pub(crate) fn url(&self) -> String {
        self.of("postgres")
    }

    fn of(&self, database: &str) -> String {
        // A path as host is the folder of its socket.
        let host = self.folder.path().to_string_lossy().replace('/', "%2F");
        format!("postgresql://tailbound@{host}/{database}")
    }

    /// Where a store in a new database of it is.
    pub(crate) fn database(&self, name: &str) -> String {
        let made = command(&self.programs.join("createdb"))
            .args(["-U", "tailbound", "-h"])
            .arg(self.folder.path())
            .arg(name)
            .status();
        assert!(made.is_ok_and(|s| s.success()), "createdb {name}");
        self.of(name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It takes its processes and its shared memory with it; a kill would leave them.
        let mut stop = command(&self.programs.join("pg_ctl"));
        let data = self.folder.path().join("data");
        let stopped = stop.args(["stop", "-s", "-m", "immediate", "-D"]).arg(data).status();
        if !stopped.is_ok_and(|s| s.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
