// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds a tree of sources with make, from the beginning, over and over: a kernel, or whatever
//! has a Makefile.
//!
//! Context: the build is the load; SETUP elsewhere. Units: object files made.
//! The tree is not written to: what the build makes lies in a layer over it, in memory, that
//! nobody else sees and that is gone with the load, however it ends. That takes the right to
//! mount. A kernel tree without a configuration gets `make defconfig` first.
//! Not here: sources made up (`compile`).

use std::ffi::OsString;
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use tailbound_core::units;
use tailbound_sys::environment::Environment;
use tailbound_sys::private;
use tailbound_sys::process::{self, Pid};

use crate::child::{Child, StandardOutput};
use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{Load, Note, Started, Turn};
use crate::machine;
use crate::options::Reader;

/// Folders to mount over; the first that is not above the tree.
const FOLDERS: [&str; 5] = ["/mnt", "/media", "/srv", "/opt", "/tmp"];
/// Most that a build may write, unless an eighth of what is available is less.
const WRITTEN_BYTES_MAX: usize = 16 << 30;
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Which tree, and what make is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    tree: PathBuf,
    make: Option<String>,
    size: Option<usize>,
}

impl Options {
    /// `None` without `tree=`.
    pub(crate) fn read(r: &Reader<'_>) -> Result<Option<Self>, LoadError> {
        let (make, size) = (r.spec.option("make"), r.bytes("size")?);
        let Some(tree) = r.folder("tree")? else {
            return match (make, size) {
                (None, None) => Ok(None),
                (Some(_), _) => Err(r.bad("make", "needs tree=, which make is to build")),
                (_, Some(_)) => Err(r.bad("size", "needs tree=, whose results it limits")),
            };
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || " -_=./+".contains(c);
        if make.is_some_and(|m| !m.chars().all(plain)) {
            return Err(r.bad("make", "write words for make: letters, digits and -_=./+"));
        }
        Ok(Some(Self { tree, make: make.map(str::to_owned), size }))
    }
}

struct Build {
    options: Options,
    at: PathBuf,
    command: String,
    child: Child,
    shell: Pid,
    /// Objects of the builds before, and of this one when it was looked at last.
    before: u64,
    now: u64,
    looked: Instant,
    loops: Option<u64>,
    begun: Instant,
}

pub(crate) fn start(options: &Options, jobs: usize, loops: Option<u64>, note: Note<'_>) -> Started {
    let tree = options.tree.canonicalize().on(options.tree.display())?;
    let named = |name: &str| tree.join(name).exists();
    if !["Makefile", "makefile", "GNUmakefile"].iter().any(|m| named(m)) {
        return Err(Failure::Plain("has no Makefile")
            .on(tree.display())
            .remedy("write tree= of one that make can build"));
    }
    let configure = named("Kconfig") && named("Kbuild") && !named(".config");
    let words = options.make.as_deref().unwrap_or_default();
    let first = if configure { "make defconfig && " } else { "" };
    let command = format!("{first}exec make -j{jobs} {words}");
    let bytes = machine::block_bytes(options.size, WRITTEN_BYTES_MAX, 1, note)?;
    let layer = "tree= is built in a layer that nobody else sees";
    let at = FOLDERS.map(PathBuf::from).into_iter();
    let at = at
        .clone()
        .find(|f| f.is_dir() && !tree.starts_with(f))
        .ok_or(Failure::Plain("no folder to mount over"))?;
    private::own_mounts().on(layer)?;
    if process::own_pid().0 == 1 {
        // make finds what it started; without it, it can live with that.
        let _masked = process::own_proc();
    }
    private::memory_files(&at, bytes as u64).on(layer)?;
    note(format!(
        "`make -j{jobs} {words}` in {}, at most {} bytes of results in memory",
        tree.display(),
        units::grouped(bytes as u64)
    ));
    let mut it = Build {
        options: Options { tree, ..options.clone() },
        at,
        command,
        child: Child::new(StandardOutput::Kept, Environment::Clean)?,
        shell: Pid(0),
        before: 0,
        now: 0,
        looked: Instant::now(),
        loops,
        begun: Instant::now(),
    };
    it.begin()?;
    Ok(Box::new(it))
}

impl Build {
    fn changes(&self) -> PathBuf {
        self.at.join("changes")
    }

    /// A fresh layer over the tree, and make in it.
    fn begin(&mut self) -> Result<(), Failure> {
        let (built, work) = (self.at.join("tree"), self.at.join("work"));
        for dir in [&built, &work, &self.changes()] {
            fs::create_dir(dir).on(self.at.display())?;
        }
        private::layer(&self.options.tree, &self.changes(), &work, &built)
            .on("tree= is built in a layer over it, which this file system or kernel refuses")?;
        // A compiler that is killed leaves what it had in TMPDIR.
        let (built, tmp) = (built.display(), self.at.display());
        let command = format!("export TMPDIR='{tmp}' && cd '{built}' && {}", self.command);
        let arguments = [OsString::from("-c"), command.into()];
        self.shell = self.child.run(Path::new("/bin/sh"), &arguments, None)?;
        Ok(())
    }

    /// Takes what was built away.
    fn forget(&mut self) -> Result<(), Failure> {
        self.before += self.now;
        self.now = 0;
        private::unmount(&self.at.join("tree"))?;
        for dir in ["tree", "work", "changes"] {
            let dir = self.at.join(dir);
            fs::remove_dir_all(&dir).on(dir.display())?;
        }
        Ok(())
    }
}

/// Object files below `dir`; what goes away meanwhile is not counted.
fn objects(dir: &Path) -> u64 {
    let mut all = 0;
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => all += objects(&entry.path()),
            Ok(kind) if kind.is_file() => {
                all += u64::from(entry.path().extension().is_some_and(|e| e == "o"));
            }
            _ => {}
        }
    }
    all
}

impl Load for Build {
    fn source(&self) -> Option<BorrowedFd<'_>> {
        Some(self.child.source())
    }

    fn count(&self) -> u64 {
        self.before + self.now
    }

    fn turn(&mut self, ended: &[(Pid, ExitStatus)]) -> Result<Turn, Failure> {
        self.child.listen();
        let status = ended.iter().find(|(pid, _)| *pid == self.shell).map(|(_, status)| *status);
        if status.is_some() || self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            // Some builds remove objects again.
            self.now = self.now.max(objects(&self.changes()));
        }
        let Some(status) = status else { return Ok(Turn::Going) };
        if !status.success() {
            return Err(Failure::Ended { what: "make".into(), how: self.child.end(status) });
        }
        if self.now == 0 {
            return Err(Failure::Plain("make had nothing to build").remedy(
                "is the tree built already? clean it, or write make= with a target that makes objects",
            ));
        }
        self.loops = self.loops.map(|n| n.saturating_sub(1));
        if self.loops == Some(0) {
            let ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            return Ok(Turn::Done { elapsed_ns: ns });
        }
        self.forget()?;
        self.begin()?;
        Ok(Turn::Going)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("compile:tree=/x,make=a b,size=1G", Options::read);
        let wanted = Options { tree: "/x".into(), make: Some("a b".into()), size: Some(1 << 30) };
        assert_eq!(asked, Some(wanted));
        assert_eq!(read("compile:jobs=2", Options::read), None);
    }
}
