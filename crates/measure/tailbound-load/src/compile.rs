// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's C compiler at work on sources made up here: many short processes, much
//! memory touched once, some arithmetic; what building software does.
//!
//! Context: the compilers are the load; SETUP elsewhere. Units: files compiled.
//! Nothing is left behind: the source is a file without a name, which each compiler opens anew
//! as its standard input, and the object goes to /dev/null.
//! Not here: builds of somebody's sources (`tree`).

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Instant;

use tailbound_core::Spec;
use tailbound_sys::environment::Environment;
use tailbound_sys::process::{self, Pid};
use tailbound_sys::sched;
use tailbound_sys::spawn::Spawn;

use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, Load, LoadKind, Note, Start, Started, Turn};
use crate::options::Reader;
use crate::{file, tree};

pub(crate) static KIND: LoadKind = LoadKind {
    name: "compile",
    unit: "files",
    about: "compiles C that it makes up, or a tree of sources, with the machine's cc: what building software costs",
    options: &[
        ("jobs", "compilers at a time (default: 1 per CPU)"),
        ("loops", "files, or builds of the tree, then end (default: until stopped)"),
        (
            "tree",
            "folder with a Makefile, of a kernel or anything else, built in a layer over it (default: sources made up)",
        ),
        ("make", "words for make, for example `defconfig vmlinux` (default: none)"),
        (
            "size",
            "most that a build of the tree may write, in memory (default: an eighth of what is available)",
        ),
        CPUS,
    ],
    coarse: true,
    command: Some(make_of),
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// The shell finds the compiler on the path and becomes it.
const COMMAND: &str = "exec cc -pipe -O2 -w -x c -c -o /dev/null -";
/// What is mostly wrong when a compiler fails.
pub(crate) const NO_COMPILER: &str = "is a C compiler installed, and `cc` on the path?";
/// Functions in a source: about a third of a second of a desk machine's compiler.
const FUNCTIONS: usize = 40;

/// What is compiled, by how many compilers, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Options {
    jobs: Option<usize>,
    loops: Option<u64>,
    /// `None`: sources made up.
    tree: Option<tree::Options>,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        Ok(Self { jobs: r.tasks("jobs")?, loops: r.loops()?, tree: tree::Options::read(r)? })
    }
}

/// A Makefile is a program, of whoever wrote it.
fn make_of(spec: &Spec) -> Option<String> {
    let (tree, words) = (spec.option("tree"), spec.option("make"));
    tree.or(words)?;
    let tree = tree.unwrap_or("sources made up");
    Some(format!("make {} (in {tree})", words.unwrap_or_default()))
}

fn start(options: Options, note: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?.len().max(1);
    let jobs = options.jobs.unwrap_or(cpus);
    match options.tree {
        None => made_up(jobs, options.loops),
        Some(tree) => tree::start(&tree, jobs, options.loops, note),
    }
}

struct Compile {
    source: File,
    null: File,
    /// Files that are still to be begun; `None`: without end.
    left: Option<u64>,
    running: HashSet<Pid>,
    done: u64,
    started: Instant,
}

fn made_up(jobs: usize, loops: Option<u64>) -> Started {
    let dir = file::first_writable()?;
    let (mut source, _) = file::make(&dir).on(dir.display())?;
    source.write_all(program().as_bytes()).on(dir.display())?;
    let null = File::options().read(true).write(true).open("/dev/null");
    let mut it = Compile {
        source,
        null: null.on("/dev/null")?,
        left: loops,
        running: HashSet::new(),
        done: 0,
        started: Instant::now(),
    };
    for _ in 0..jobs {
        it.begin()?;
    }
    Ok(Box::new(it))
}

impl Compile {
    /// One more compiler, if there is still a file to compile.
    fn begin(&mut self) -> Result<(), Failure> {
        if self.left == Some(0) {
            return Ok(());
        }
        self.left = self.left.map(|n| n - 1);
        let pid = compiler(&self.source, &self.null)?;
        self.running.insert(pid);
        Ok(())
    }
}

impl Load for Compile {
    fn count(&self) -> u64 {
        self.done
    }

    fn turn(&mut self, ended: &[(Pid, ExitStatus)]) -> Result<Turn, Failure> {
        for (pid, status) in ended {
            if !self.running.remove(pid) {
                continue;
            }
            if !status.success() {
                return Err(failed(*status).remedy(NO_COMPILER));
            }
            self.done += 1;
            self.begin()?;
        }
        if self.running.is_empty() {
            let elapsed_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            return Ok(Turn::Done { elapsed_ns });
        }
        Ok(Turn::Going)
    }
}

/// Starts a compiler on `source`, a C file; what it says and makes goes to `null`.
pub(crate) fn compiler(source: &File, null: &File) -> Result<Pid, Failure> {
    // Opened anew: compilers that shared one offset would share out the text.
    let path = format!("/proc/self/fd/{}", source.as_raw_fd());
    let input = File::open(&path).on(format_args!("the source, {path}"))?;
    let null = null.as_fd();
    Ok(Spawn {
        program: Path::new("/bin/sh"),
        arguments: &["-c".into(), COMMAND.into()],
        descriptors: &[(input.as_fd(), 0), (null, 1), (null, 2)],
        pid_namespace: false,
        new_session: false,
        death_signal: process::SIGKILL,
        cpus: &[],
        environment: Environment::Clean,
    }
    .start()?)
}

/// A compiler failed.
pub(crate) fn failed(status: ExitStatus) -> Failure {
    Failure::Ended { what: "cc".into(), how: process::ended(status) }
}

/// C that needs no header, the same in every run: loops, branches, tables, calls.
pub(crate) fn program() -> String {
    let mut text =
        String::from("typedef unsigned long long u64;\nstruct s { u64 a[8]; double d; };\n");
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for n in 0..FUNCTIONS {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let (a, b) = (seed >> 48, seed >> 32 & 0xffff);
        let _infallible = writeln!(
            text,
            "u64 f{n}(struct s *p, int k) {{ u64 x = {a}ull; for (int i = 0; i < k; i++) {{ \
             switch ((x >> 3) & 7) {{ case 0: x += p->a[i & 7]; break; case 1: x ^= x << 5; break; \
             case 2: p->d = p->d * 1.5 + (double)i; break; case 3: x -= {b}ull; break; \
             case 4: p->a[(i + 1) & 7] = x; break; default: x = x * 33 + (u64)k; }} }} \
             for (int i = 0; i < 8; i++) p->a[i] += x >> i; return x + {}; }}",
            if n == 0 { "0".to_owned() } else { format!("f{}(p, k - 1)", n - 1) }
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let usual = read("compile", Options::read);
        assert_eq!(usual, Options { jobs: None, loops: None, tree: None });
        let asked = read("compile:jobs=2,loops=3,tree=/x,make=all", Options::read);
        assert_eq!((asked.jobs, asked.loops), (Some(2), Some(3)));
        assert_eq!(asked.tree, read("compile:tree=/x,make=all", tree::Options::read));
    }

    #[test]
    fn the_source_is_the_same_each_time_and_not_trivial() {
        assert_eq!(program(), program());
        assert!(program().len() > 10_000 && program().contains("f39("));
    }
}
