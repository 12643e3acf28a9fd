// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk that can be filled: a tmpfs in a mount namespace of its own, which a sleeping process keeps.
//!
//! Context: tests. Units: KiB.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where it is mounted, beside what else the test has.
const MOUNTED: &str = "small";
/// The store on it, from the test's folder.
pub(crate) const STORE: &str = "small/s.sqlite";

pub(crate) struct Disk {
    keeper: Child,
    /// The test's, in which it is mounted.
    folder: PathBuf,
    /// As it is seen from outside of the namespace.
    root: PathBuf,
}

impl Disk {
    /// One at `folder`; none without the right to mount.
    pub(crate) fn of(kib: u32, folder: &Path) -> Option<Self> {
        fs::create_dir(folder.join(MOUNTED)).unwrap();
        // It ends with this test, whose end closes its input.
        let script =
            format!("mount -t tmpfs -o size={kib}k none {MOUNTED} && echo mounted && exec cat");
        let mut keeper = Command::new("unshare")
            .args(["-m", "sh", "-c", &script])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut said = String::new();
        BufReader::new(keeper.stdout.take()?).read_line(&mut said).ok()?;
        let root = PathBuf::from(format!("/proc/{}/root", keeper.id()));
        let root = root.join(folder.join(MOUNTED).strip_prefix("/").ok()?);
        // Dropped, and ended, where it did not work.
        let disk = Self { keeper, folder: folder.to_owned(), root };
        (said.trim() == "mounted").then_some(disk)
    }

    /// `program`, as it sees the disk.
    pub(crate) fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let keeper = self.keeper.id();
        // With its root directory: a namespace begins at that of the machine, which is another one in a chroot.
        command.arg(format!("--mount=/proc/{keeper}/ns/mnt"));
        command.arg(format!("--root=/proc/{keeper}/root"));
        command.arg(format!("--wd=/proc/{keeper}/cwd"));
        // All of them in one process, so that its kill is the program's.
        command.args(["sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh"]);
        command.arg(&self.folder).arg(program);
        command
    }

    fn filling(&self) -> PathBuf {
        self.root.join("filling")
    }

    /// So much of it is taken.
    pub(crate) fn keep(&self, kib: u32) {
        fs::write(self.filling(), vec![0u8; kib as usize * 1024]).unwrap();
    }

    /// Nothing more fits.
    pub(crate) fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.filling()).unwrap();
        for piece in [1 << 16, 1 << 12, 1] {
            let zeros = vec![0u8; piece];
            let full = loop {
                if let Err(e) = file.write_all(&zeros) {
                    break e;
                }
            };
            assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
        }
    }

    /// There is room again.
    pub(crate) fn empty(&self) {
        fs::remove_file(self.filling()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.keeper.kill());
        drop(self.keeper.wait());
    }
}
