// SPDX-License-Identifier: MIT OR Apache-2.0
//! The root of the file system that facts are read from: `/` for the machine itself, a
//! directory for tests and for trees carried over from elsewhere, a [`Tree`] in memory for a
//! capture that somebody sent.
//!
//! Paths are written as people know them (`/proc/stat`).
//! Nothing here fails a run: what cannot be read is [`Missing`], with its reason. A file
//! that is absent is *not applicable*, one that refuses is *unknown*; an unmounted
//! debugfs is unknown too, because the thing may well exist.
//! Every read is bounded.
//! Not here: writing (`tracefs` is the only module of this crate that does).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tailbound_core::CpuSet;
use tailbound_sys::{file, given};

use crate::kconfig::KernelConfig;
use crate::kernel_files;
use crate::lockdown::Lockdown;
pub use crate::missing::{Found, Missing, empty_if_absent};
use crate::root_tree::Tree;

/// Longest file read whole, in bytes.
pub const TEXT_MAX: u64 = 4 << 20;
/// Longest file read as one value, in bytes.
pub const VALUE_MAX: u64 = 64 << 10;
/// Room for the first read of a file, in bytes.
const FIRST_READ: usize = 4096;
/// Room for the rest of one that is longer, in bytes.
const LONG_FILE: usize = 64 << 10;
/// Most entries read of one directory.
pub const ENTRIES_MAX: usize = 1 << 20;

/// Values of devices: each is given by one read, up to a page (Documentation/filesystems/sysfs.rst).
const DEVICES: &str = "/sys/devices/system/";

/// How a file gives what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// A read that gives less than there is room for gave all.
    AtOnce,
    /// A read that gives nothing is the last.
    InPieces,
}

impl Delivery {
    fn of(path: &str) -> Self {
        if path.starts_with(DEVICES) { Self::AtOnce } else { Self::InPieces }
    }
}

/// A file, up to `most` bytes of it. The first read is of [`FIRST_READ`] bytes: tracefs' events/header_page
/// gives all to it, and nothing to later ones. It and the next go to the stack, because nearly all files of /proc and
/// /sys are a few bytes; for the rest there is room before it is read.
fn whole(file: File, most: u64, delivery: Delivery) -> io::Result<Vec<u8>> {
    let mut file = file.take(most);
    let mut piece = [0; FIRST_READ];
    let n = read_piece(&mut file, &mut piece)?;
    let mut bytes = piece.get(..n).unwrap_or_default().to_vec();
    if n == 0 || delivery == Delivery::AtOnce && n < FIRST_READ {
        return Ok(bytes);
    }
    let n = read_piece(&mut file, &mut piece)?;
    if n > 0 {
        bytes.reserve(LONG_FILE);
        bytes.extend_from_slice(piece.get(..n).unwrap_or_default());
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// One read.
fn read_piece(file: &mut impl Read, piece: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(piece) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The names in a folder.
fn names(folder: PathBuf) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.take(ENTRIES_MAX).filter_map(Result::ok);
    Ok(entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect())
}

/// Of a captured tree: what could not be read where it was captured, and why, as JSON.
pub const REFUSED: &str = "tailbound-refused.json";

/// A list that two roots may share; it does not make them different.
#[derive(Clone, Debug, Default)]
struct PathLog(Option<Arc<Mutex<BTreeSet<String>>>>);

impl PartialEq for PathLog {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for PathLog {}

/// Nothing lies below it, on any machine.
const NOWHERE: &str = "/dev/null";

/// Where facts are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// [`NOWHERE`] where the files are in memory.
    base: PathBuf,
    tree: Option<Arc<Tree>>,
    real: bool,
    /// Paths that were asked for, where somebody wants to know.
    asked: PathLog,
    /// What could not be read where the tree was captured, and why.
    refused: Arc<BTreeMap<String, String>>,
    /// Read and parsed once: half of what an inventory costs, and it is made several times in a run.
    kernel_config: Arc<OnceLock<Found<Arc<KernelConfig>>>>,
}

impl Root {
    /// The machine this program runs on.
    #[must_use]
    pub fn real() -> Self {
        Self {
            base: PathBuf::from("/"),
            tree: None,
            real: true,
            asked: PathLog::default(),
            refused: Arc::default(),
            kernel_config: Arc::default(),
        }
    }

    /// The same, noting every path that is asked for.
    #[must_use]
    pub fn noting(&self) -> Self {
        let asked = PathLog(Some(Arc::default()));
        Self { asked, kernel_config: Arc::default(), ..self.clone() }
    }

    /// The paths that were asked for since [`Self::noting`].
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        let Some(asked) = &self.asked.0 else { return Vec::new() };
        let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().cloned().collect()
    }

    /// A tree with `proc`, `sys`, … below `base`. What only system calls can tell is
    /// unknown there.
    #[must_use]
    pub fn at(base: impl Into<PathBuf>) -> Self {
        let base = base.into();
        let refused = given::read(&base.join(REFUSED), TEXT_MAX).unwrap_or_default();
        Self::elsewhere(base, None, &refused)
    }

    /// A captured machine that was never unpacked: its files in memory.
    #[must_use]
    pub fn of_tree(tree: Tree) -> Self {
        let refused = tree.bytes(REFUSED).map(<[u8]>::to_vec).unwrap_or_default();
        Self::elsewhere(PathBuf::from(NOWHERE), Some(Arc::new(tree)), &refused)
    }

    fn elsewhere(base: PathBuf, tree: Option<Arc<Tree>>, refused: &[u8]) -> Self {
        Self {
            refused: Arc::new(serde_json::from_slice(refused).unwrap_or_default()),
            base,
            tree,
            real: false,
            asked: PathLog::default(),
            kernel_config: Arc::default(),
        }
    }

    /// The configuration of the running kernel, whose release is `release`.
    pub(crate) fn kernel_config(&self, release: &str) -> Found<Arc<KernelConfig>> {
        let read = || KernelConfig::read(|path| self.bytes(path, TEXT_MAX), release).map(Arc::new);
        self.kernel_config.get_or_init(read).clone()
    }

    /// An option of the running kernel's configuration, without `CONFIG_`: `y`, `m`, its value, or
    /// `None` where it is not set.
    ///
    /// # Errors
    /// [`Missing`] where the configuration of `release` cannot be read.
    pub fn kernel_option(&self, release: &str, option: &str) -> Found<Option<String>> {
        Ok(self.kernel_config(release)?.value(option).map(str::to_owned))
    }

    /// Is this the running machine, so that system calls tell of the same one?
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.real
    }

    /// `path` (with or without its leading `/`) under this root; of a [`Tree`] a path at which nothing can be. What
    /// lies in tracefs or debugfs, and nobody mounted them, is where this process alone finds it.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.note(path);
        let own = if self.real { kernel_files::path(path) } else { None };
        own.unwrap_or_else(|| self.base.join(path.trim_start_matches('/')))
    }

    fn note(&self, path: &str) {
        if let Some(asked) = &self.asked.0 {
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            if !asked.contains(path) {
                asked.insert(path.to_owned());
            }
        }
    }

    /// The machine's own files are the kernel's; in a folder that somebody sent may be a pipe.
    fn open(&self, path: &str) -> io::Result<File> {
        let path = self.path(path);
        if self.real { file::open_kernels(&path) } else { given::open(&path) }
    }

    /// Does `path` exist?
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.mode(path).is_ok()
    }

    /// The permissions of a file or folder.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn mode(&self, path: &str) -> Found<u32> {
        let mode = match &self.tree {
            Some(tree) => tree.mode(path),
            None => fs::metadata(self.path(path)).map(|m| m.permissions().mode()),
        };
        mode.map_err(|e| missing(path, &e))
    }

    /// The bytes of a file of at most `limit` bytes.
    ///
    /// # Errors
    /// [`Missing`], also when the file is longer.
    pub fn bytes(&self, path: &str, limit: u64) -> Found<Vec<u8>> {
        self.refusal(path)?;
        self.locked_down(path)?;
        let bytes = match &self.tree {
            Some(tree) => tree.bytes(path).map(<[u8]>::to_vec),
            None => self
                .open(path)
                .and_then(|opened| whole(opened, limit.saturating_add(1), Delivery::of(path))),
        };
        let bytes = bytes.map_err(|e| missing(path, &e))?;
        if bytes.len() as u64 > limit {
            return Err(Missing::Unknown(format!("{path} is longer than {limit} bytes")));
        }
        Ok(bytes)
    }

    /// What was refused where the tree was captured.
    fn refusal(&self, path: &str) -> Found<()> {
        match self.refused.get(path) {
            Some(why) => Err(Missing::Unknown(why.clone())),
            None => Ok(()),
        }
    }

    /// What lockdown is known to refuse is not tried.
    fn locked_down(&self, path: &str) -> Found<()> {
        let debugfs = path.starts_with("/sys/kernel/debug/");
        if self.tree.is_some() || !debugfs && !path.starts_with("/sys/kernel/tracing/") {
            return Ok(());
        }
        // What is absent is told by who reads it.
        let Ok(mode) = self.mode(path) else { return Ok(()) };
        let lockdown = Lockdown::of(self);
        match debugfs && !path.starts_with("/sys/kernel/debug/tracing/") {
            true => lockdown.debugfs(path, mode),
            false => lockdown.tracefs(path),
        }
    }

    /// A text file; bytes that are not UTF-8 become replacement characters.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn text(&self, path: &str) -> Found<String> {
        let bytes = self.bytes(path, TEXT_MAX)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file's text without surrounding white space and the NUL that ends device-tree strings.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn read_trimmed(&self, path: &str) -> Found<String> {
        let bytes = self.bytes(path, VALUE_MAX)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.trim_matches(|c: char| c == '\0' || c.is_whitespace()).to_owned())
    }

    /// A file that holds one value that can be parsed.
    ///
    /// # Errors
    /// [`Missing`]; a text that does not parse is unknown.
    pub fn parsed<T: FromStr>(&self, path: &str) -> Found<T> {
        let text = self.read_trimmed(path)?;
        text.parse().map_err(|_| {
            let shown: String = text.chars().take(40).collect();
            Missing::Unknown(format!("{path} reads `{shown}`, which is not what it should hold"))
        })
    }

    /// A file in the kernel's CPU list format; an empty one is the empty set.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn cpus(&self, path: &str) -> Found<CpuSet> {
        // "(null)" is what /sys/devices/system/cpu/nohz_full says on some kernels without it.
        match self.read_trimmed(path)?.as_str() {
            "(null)" => Ok(CpuSet::default()),
            text => text.parse().map_err(|e| Missing::Unknown(format!("{path}: {e}"))),
        }
    }

    /// The names in a directory, numbers in their order: `cpu2` before `cpu10`.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn list(&self, path: &str) -> Found<Vec<String>> {
        self.refusal(path)?;
        let names = match &self.tree {
            Some(tree) => tree.list(path),
            None => names(self.path(path)),
        };
        let mut names = names.map_err(|e| missing(path, &e))?;
        names.sort_by_cached_key(|n| natural(n));
        Ok(names)
    }

    /// Where a symbolic link points, as written.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn link(&self, path: &str) -> Found<String> {
        fs::read_link(self.path(path))
            .map(|p| p.to_string_lossy().into_owned())
            .map_err(|e| missing(path, &e))
    }

    /// A file below a file system that may not be mounted (`/sys/kernel/debug`,
    /// `/sys/kernel/tracing`, `/sys/kernel/security`): with nothing at all in `mount`,
    /// absence proves nothing.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn mounted(&self, mount: &str, path: &str) -> Found<String> {
        let full = format!("{mount}/{path}");
        self.read_trimmed(&full).map_err(|e| match e {
            Missing::NotApplicable(why) => match self.list(mount) {
                Ok(names) if names.is_empty() => {
                    Missing::Unknown(format!("nothing is mounted at {mount}"))
                }
                Ok(_) => Missing::NotApplicable(why),
                Err(Missing::NotApplicable(_)) => Missing::Unknown(format!("there is no {mount}")),
                Err(other) => other,
            },
            Missing::Unknown(why) => Missing::Unknown(why),
        })
    }

    /// A file of debugfs.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn debugfs(&self, path: &str) -> Found<String> {
        self.mounted("/sys/kernel/debug", path)
    }

    /// A file of tracefs, wherever it is mounted.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn tracefs(&self, path: &str) -> Found<String> {
        self.mounted("/sys/kernel/tracing", path)
            .or_else(|first| self.debugfs(&format!("tracing/{path}")).map_err(|_| first))
    }
}

/// Sorts names by their text before the first digit, then by the number.
fn natural(name: &str) -> (String, u64, String) {
    let at = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let (word, rest) = name.split_at(at);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (word.to_owned(), digits.parse().unwrap_or(0), rest.to_owned())
}

/// The reason of an I/O error on `path`.
fn missing(path: &str, e: &io::Error) -> Missing {
    const ESRCH: i32 = 3;
    const ENODEV: i32 = 19;
    const EACCES: i32 = 13;
    match (e.kind(), e.raw_os_error()) {
        (io::ErrorKind::NotFound, _) => Missing::NotApplicable(format!("there is no {path}")),
        (io::ErrorKind::NotADirectory, _) | (_, Some(ESRCH)) => {
            Missing::NotApplicable(format!("there is no {path}"))
        }
        (io::ErrorKind::Unsupported, _) | (_, Some(ENODEV)) => {
            Missing::NotApplicable(format!("{path} is not supported by this machine"))
        }
        (io::ErrorKind::PermissionDenied, Some(EACCES)) => {
            Missing::Unknown(format!("{path}: permission denied; run as root to read it"))
        }
        (io::ErrorKind::PermissionDenied, _) => Missing::Unknown(format!(
            "{path}: operation not permitted (a missing capability, a container or kernel lockdown)"
        )),
        _ => Missing::Unknown(format!("{path}: {e}")),
    }
}

/// The word in brackets of a file such as `none voluntary (full)` or `[always] never`.
#[must_use]
pub fn chosen(text: &str) -> Option<&str> {
    let word = |open: char, close: char| {
        let from = text.find(open)?.saturating_add(open.len_utf8());
        let rest = text.get(from..)?;
        rest.get(..rest.find(close)?)
    };
    word('[', ']').or_else(|| word('(', ')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_is_not_applicable_and_refused_is_unknown() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        fs::create_dir_all(dir.path().join("sys/kernel/debug"))?;
        fs::write(dir.path().join("value"), "  17\n\0")?;
        let root = Root::at(dir.path());
        assert_eq!(root.parsed::<u32>("/value"), Ok(17));
        assert!(matches!(root.read_trimmed("/nothing"), Err(Missing::NotApplicable(_))));
        assert!(matches!(root.read_trimmed("/value/below"), Err(Missing::NotApplicable(_))));
        assert!(matches!(root.read_trimmed("/sys"), Err(Missing::Unknown(_))));
        assert!(matches!(root.bytes("/value", 3), Err(Missing::Unknown(_))));
        assert!(matches!(root.cpus("/nothing"), Err(Missing::NotApplicable(_))));
        let unmounted = root.debugfs("sched/preempt");
        assert!(matches!(&unmounted, Err(Missing::Unknown(w)) if w.contains("mounted")));
        fs::create_dir_all(dir.path().join("sys/kernel/debug/sched"))?;
        assert!(matches!(root.debugfs("sched/preempt"), Err(Missing::NotApplicable(_))));
        assert!(matches!(root.tracefs("current_tracer"), Err(Missing::Unknown(_))));
        Ok(())
    }

    #[test]
    fn names_are_in_the_order_of_their_numbers() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        for name in ["cpu10", "cpu2", "cpu0", "cpufreq"] {
            fs::create_dir(dir.path().join(name))?;
        }
        let names = Root::at(dir.path()).list("/").unwrap_or_default();
        assert_eq!(names, ["cpu0", "cpu2", "cpu10", "cpufreq"]);
        Ok(())
    }

    #[test]
    fn the_chosen_word_is_the_bracketed_one() {
        assert_eq!(chosen("none voluntary (full) lazy"), Some("full"));
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("always"), None);
        assert_eq!(chosen(")("), None);
    }
}
