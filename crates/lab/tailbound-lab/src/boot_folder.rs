// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of one boot: all that its QEMU may open, and who that QEMU is.
//!
//! Units: bytes. QEMU is started in this folder and given names without a path.
//! Kernel, initramfs, device tree and job are copies that it can only read; console and results are
//! files it writes; a snapshot comes as an open file and goes through a socket. Where root started
//! it, QEMU is a user that nobody else is: such a user can open what everybody can, and this.
//! Source: credentials(7), user_namespaces(7), unix(7); systemd's UIDS-GIDS on numbers of users.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tailbound_core::limits;
use tailbound_paths::log;
use tailbound_sys::spawn::Confined;
use tailbound_sys::{given, owner, scratch};

use crate::boot_files::{
    CONSOLE, INITRAMFS, JOB, KERNEL, LOG, PLAN, PLUGIN, RESULTS, STATE, TREE, VARY,
};
use crate::error::{FileError, LabError, StoreError};
use crate::hash;
use crate::needs::BOOT_MIB;
use crate::setup::Setup;
use crate::store::{Beside, Store};

const GDB: &str = "gdb";
/// What QEMU 10 says whenever it reads or writes a state, and is no reason for its end.
const OF_EVERY_STATE: &str = "fd: migration to a file is deprecated";
const ERRORS: &str = "qemu.err";

/// A file of QEMU's ends here: beyond what is read of one, and what is noticed before that.
const FILE_BYTES_MAX: u64 = limits::RESULT_BYTES_MAX + (64 << 20);

/// With less room than that something may have been lost.
const ROOM_BYTES: u64 = 1 << 20;

/// Users of guests begin here: above the ranges of containers, below 2^31.
const FIRST_USER: u32 = 1_880_000_000;
/// Guests of one process that are told apart by their users.
const GUESTS: u32 = 32;
/// Where numbers that high are not mapped: `nobody`.
const NOBODY: u32 = 65534;

/// The folder; removed when dropped.
#[derive(Debug)]
pub(crate) struct BootFolder {
    beside: Beside,
    user: Option<u32>,
    group: Option<u32>,
    watched: bool,
    gdb: Option<UnixListener>,
}

impl BootFolder {
    /// Makes it for `setup`; the copy of the kernel is the one that was asked for, by its hash.
    ///
    /// # Errors
    /// The disk is full; the kernel's image is not the one it was.
    pub(crate) fn make(store: &Store, setup: &Setup, job: &[u8]) -> Result<Self, LabError> {
        store.sweep("boots");
        let beside = store.beside("boots")?;
        let mut boot_folder = Self { beside, user: None, group: None, watched: false, gdb: None };
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode))
                .map_err(|e| LabError::file(path, e))
        };
        mode(boot_folder.folder(), 0o711)?;
        let copied = [(KERNEL, Some(&setup.image)), (TREE, setup.device_tree.as_ref())];
        for (name, from) in copied {
            let Some(from) = from else { continue };
            let to = boot_folder.path(name);
            fs::copy(from, &to).map_err(|e| LabError::file(from, e))?;
            mode(&to, 0o644)?;
        }
        let found = hash::of_file(&boot_folder.path(KERNEL))?;
        if found != setup.image_sha256 {
            return Err(FileError::Changed {
                path: setup.image.clone(),
                then: setup.image_sha256.clone(),
                now: found,
            }
            .into());
        }
        for (name, bytes) in
            [(INITRAMFS, &*setup.initramfs), (JOB, job), (CONSOLE, &[]), (RESULTS, &[])]
        {
            let to = boot_folder.path(name);
            fs::write(&to, bytes).map_err(|e| LabError::file(&to, e))?;
            mode(&to, 0o644)?;
        }
        if owner::effective_user() == 0 {
            boot_folder.user = boot_folder.give();
            if setup.kvm {
                // The group that may use KVM, if that is not root's.
                let of_kvm = fs::metadata("/dev/kvm").ok().map(|m| m.gid());
                boot_folder.group = of_kvm.filter(|group| *group != 0);
            }
        }
        Ok(boot_folder)
    }

    /// Gives what QEMU writes to a user of its own. None where this root has no other users, as in
    /// some containers; it is not much of a root then.
    fn give(&self) -> Option<u32> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let nth = COUNT.fetch_add(1, Ordering::Relaxed) % GUESTS;
        let own = FIRST_USER + (std::process::id() % (1 << 22)) * GUESTS + nth;
        [own, NOBODY].into_iter().find(|user| {
            [CONSOLE, RESULTS]
                .iter()
                .all(|name| chown(self.path(name), Some(*user), Some(*user)).is_ok())
        })
    }

    /// Puts in what watches the guest from within QEMU, and a log of `log_bytes` that takes no room before it is written.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn watch(
        &mut self,
        plugin: &[u8],
        plan: &[u8],
        log_bytes: u64,
    ) -> Result<(), LabError> {
        for (name, bytes) in [(PLUGIN, plugin), (PLAN, plan)] {
            let to = self.path(name);
            let failed = |e: io::Error| LabError::file(&to, e);
            fs::write(&to, bytes).map_err(failed)?;
            fs::set_permissions(&to, Permissions::from_mode(0o644)).map_err(failed)?;
        }
        let to = self.path(LOG);
        let failed = |e: io::Error| LabError::file(&to, e);
        File::create(&to).and_then(|log| log.set_len(log_bytes)).map_err(failed)?;
        if let Some(user) = self.user {
            chown(&to, Some(user), Some(user)).map_err(failed)?;
        }
        self.watched = true;
        Ok(())
    }

    /// What else the plugin is told.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn vary(&self, bytes: &[u8]) -> Result<(), LabError> {
        let to = self.path(VARY);
        let failed = |e: io::Error| LabError::file(&to, e);
        fs::write(&to, bytes).map_err(failed)?;
        fs::set_permissions(&to, Permissions::from_mode(0o644)).map_err(failed)
    }

    /// A debugger may come, by a socket that who started this alone may connect to; where it is.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn debug(&mut self) -> Result<PathBuf, LabError> {
        let path = self.path(GDB);
        self.gdb = Some(self.socket(&path, None)?);
        Ok(path)
    }

    /// The socket of [`Self::debug`].
    pub(crate) fn gdb(&self) -> Option<&UnixListener> {
        self.gdb.as_ref()
    }

    /// Is the guest watched?
    pub(crate) fn watched(&self) -> bool {
        self.watched
    }

    /// What the plugin wrote.
    pub(crate) fn log(&self) -> Result<File, LabError> {
        let path = self.path(LOG);
        File::open(&path).map_err(|e| LabError::file(&path, e))
    }

    /// Is the guest watched, and has it gone on for longer than the plan allows?
    pub(crate) fn overtime(&self) -> Result<bool, LabError> {
        if !self.watched {
            return Ok(false);
        }
        log::overtime(&self.log()?).map_err(|e| LabError::file(&self.path(LOG), e))
    }

    /// Where a watched guest is, as far as that is known.
    pub(crate) fn newest(&self) -> log::Newest {
        let log = self.watched.then(|| self.log().ok()).flatten();
        log.and_then(|log| log::newest(&log).ok()).unwrap_or_default()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.beside.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// How QEMU is confined.
    pub(crate) fn confinement(&self) -> Confined<'_> {
        Confined {
            folder: self.folder(),
            user: self.user,
            group: self.group,
            file_bytes_max: FILE_BYTES_MAX,
        }
    }

    /// A new file for what QEMU complains of.
    pub(crate) fn errors(&self) -> Result<File, LabError> {
        let path = self.path(ERRORS);
        File::create(&path).map_err(|e| LabError::file(&path, e))
    }

    /// What QEMU complained of.
    pub(crate) fn complaint(&self) -> String {
        let text = given::end(&self.path(ERRORS), limits::CONSOLE_BYTES_MAX).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let told = |line: &&str| !line.trim().is_empty() && !line.contains(OF_EVERY_STATE);
        let lines: Vec<&str> = text.lines().filter(told).collect();
        lines.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join("; ")
    }

    /// Is there no room for what QEMU writes? The rest of a disk may be root's alone, which QEMU's user is not.
    pub(crate) fn full(&self, store: &Store) -> Option<StoreError> {
        let free = scratch::free_bytes(self.folder()).ok().flatten()?;
        (free < ROOM_BYTES).then(|| StoreError::Full {
            folder: store.folder().to_owned(),
            free_mib: free >> 20,
            wanted_mib: BOOT_MIB,
        })
    }

    /// The end of the console.
    pub(crate) fn console(&self) -> Vec<u8> {
        given::end(&self.path(CONSOLE), limits::CONSOLE_BYTES_MAX).unwrap_or_default()
    }

    /// A socket in this folder that only this QEMU, and root, may connect to.
    pub(crate) fn listen(&self) -> Result<UnixListener, LabError> {
        self.socket(&self.path(STATE), self.user)
    }

    fn socket(&self, path: &Path, user: Option<u32>) -> Result<UnixListener, LabError> {
        let failed = |e: io::Error| LabError::file(path, e);
        match fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
        // A socket's name is short: by the descriptor of its folder it always is.
        let folder = File::open(self.folder()).map_err(failed)?;
        let name = path.file_name().unwrap_or_default();
        let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        let listener = UnixListener::bind(short).map_err(failed)?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
        if let Some(user) = user {
            chown(path, Some(user), Some(user)).map_err(failed)?;
        }
        Ok(listener)
    }
}
