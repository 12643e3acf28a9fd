// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a kernel was not built: its source, its patches, its configuration, its compilation.
//!
//! Units: s, GiB.

use std::io;
use std::path::PathBuf;

use tailbound_core::FailureKind;

use super::LabError;
use crate::arch::Arch;

/// A build that was not made, or is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The compiler or a tool is missing.
    #[error("a kernel for {arch} cannot be built here, without {}", .missing.join(", "))]
    Toolchain {
        /// The kernel's architecture.
        arch: Arch,
        /// What is missing, each with its package.
        missing: Vec<String>,
    },

    // The source.
    /// The name of a source package is none.
    #[error(
        "source `{name}`: after `debian:` stands a package such as linux-source-6.12, with =VERSION or @SUITE where wanted"
    )]
    SourcePackage {
        /// As it was written.
        name: String,
    },
    /// No source was named.
    #[error("a source is debian:linux-source-6.12, a folder or an archive (.tar.xz)")]
    NoSource,
    /// An archive of a source cannot be used.
    #[error("source {}: {source}", .path.display())]
    Source {
        /// The archive.
        path: PathBuf,
        /// What is wrong with it.
        source: SourceError,
    },
    /// A folder is no source of a kernel.
    #[error("{}: no kernel source (no Kconfig in it)", .folder.display())]
    NoKernelSource {
        /// The folder.
        folder: PathBuf,
    },
    /// An archive holds no source of a kernel, or several.
    #[error("not one kernel source in it (a folder with Kconfig)")]
    NotOneSource,
    /// A source was built in its own folder.
    #[error("{}: was built in place, and the kernel refuses to build elsewhere from such a tree: run `make mrproper` in it (this deletes its .config)", .folder.display())]
    BuiltInPlace {
        /// The folder.
        folder: PathBuf,
    },
    /// apt has no such source.
    #[error("{name}: no such source; apt knows {}", or_none(.known))]
    UnknownSource {
        /// As it was asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// apt lists a source that it does not have.
    #[error("{name}: apt lists it, but cannot show it")]
    SourceNotShown {
        /// As it was asked for.
        name: String,
    },
    /// A source is not what the archive says.
    #[error("{name}: its SHA-256 is not what the archive says")]
    OtherSource {
        /// As it was asked for.
        name: String,
    },

    // Git.
    /// Only a git tree can be moved onto another commit.
    #[error("--rebase-onto {onto}: {source_name} is no git tree")]
    NotRebased {
        /// The commit.
        onto: String,
        /// The source.
        source_name: String,
    },
    /// Somebody else moved the branch.
    #[error("{}: branch {branch} is not as tailbound left it: rename it (git branch -m), or choose another --name", .repository.display())]
    Branch {
        /// The repository.
        repository: PathBuf,
        /// The branch.
        branch: String,
    },
    /// The commit to move a series onto is none.
    #[error("{}: no commit `{commit}`", .repository.display())]
    NoTarget {
        /// The repository.
        repository: PathBuf,
        /// As it was written.
        commit: String,
    },
    /// A folder is no git tree.
    #[error("--tree {}: no git tree ({complaint})", .folder.display())]
    NoGitTree {
        /// The folder.
        folder: PathBuf,
        /// What git says.
        complaint: String,
    },
    /// An end of a search is no commit.
    #[error("{flag} {commit}: there is no such commit")]
    NoCommit {
        /// The option.
        flag: &'static str,
        /// As it was written.
        commit: String,
    },
    /// The ends of a search are not one before the other.
    #[error(
        "--good {good} does not come before --bad {bad}: take the last good commit of the bad one's history (git merge-base)"
    )]
    CommitOrder {
        /// The good end.
        good: String,
        /// The bad end.
        bad: String,
    },

    // Patches.
    /// A patch cannot be read.
    #[error("patch {}: {source}", .path.display())]
    PatchFile {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is no patch.
    #[error("{}: not a patch (no `+++` line)", .path.display())]
    NoPatch {
        /// The file.
        path: PathBuf,
    },
    /// Only packages of Debian ship patches.
    #[error("{name}: the source is no package of Debian")]
    NotShipping {
        /// The patch, as it was asked for.
        name: String,
    },
    /// The source's package does not ship this patch.
    #[error("{name}: the package ships {}", if .shipped.is_empty() { "no patch".to_owned() } else { .shipped.join(", ") })]
    NotShipped {
        /// The patch, as it was asked for.
        name: String,
        /// Those that it ships.
        shipped: Vec<String>,
    },
    /// A patch that would apply did not.
    #[error("patch {name}: {complaint}")]
    PatchFailed {
        /// Its name.
        name: String,
        /// What patch(1) says.
        complaint: String,
    },
    /// Patches do not apply.
    #[error("{failed} of {all} patches do not apply to {source_name}\n  {}", .lines.join("\n  "))]
    Conflicts {
        /// How many.
        failed: usize,
        /// Of how many.
        all: usize,
        /// The source.
        source_name: String,
        /// What became of each.
        lines: Vec<String>,
    },

    // Configuration and compilation.
    /// No fragment has this name.
    #[error("fragment `{name}` is not one of {}{near}, nor a file: {source}", .known.join(", "))]
    UnknownFragment {
        /// As it was written.
        name: String,
        /// All names.
        known: Vec<&'static str>,
        /// A name like it, as the end of a sentence.
        near: String,
        /// Why it is no file either.
        source: io::Error,
    },
    /// A fragment has no options.
    #[error("fragment {name}: no line CONFIG_…=… in it")]
    EmptyFragment {
        /// Its file.
        name: String,
    },
    /// The kernel has other options than those asked for.
    #[error("the kernel did not grant every option:\n  {}", .options.join("\n  "))]
    NotGranted {
        /// Each with what it became, and why.
        options: Vec<String>,
    },
    /// A random configuration without a seed cannot be had again.
    #[error("randconfig needs a seed, so that a failure can be had again: randconfig:1")]
    NoSeed,
    /// The seed of a random configuration is none.
    #[error("randconfig:{seed}: a seed is a number from 0 to 4294967295")]
    Seed {
        /// As it was written.
        seed: String,
    },
    /// No test of builds has this name.
    #[error(
        "build test `{name}` is not one of allmodconfig, allyesconfig, allnoconfig, randconfig:SEED, guest"
    )]
    UnknownTest {
        /// As it was written.
        name: String,
    },
    /// make(1) does not answer.
    #[error("make {targets}: {complaint}")]
    Make {
        /// What was asked for.
        targets: String,
        /// Its error.
        complaint: String,
    },
    /// The compilation failed.
    #[error("make {targets} failed after {seconds:.0} s ({status}): {complaint}\n  the whole log: {}", .log.display())]
    Compilation {
        /// What was to be made.
        targets: String,
        /// How long it took.
        seconds: f64,
        /// How make(1) ended.
        status: String,
        /// The first error.
        complaint: String,
        /// Where all output is.
        log: PathBuf,
    },
    /// The user's own command failed.
    #[error("the build failed ({status}): {last_line}")]
    Command {
        /// How it ended.
        status: String,
        /// The last that it printed.
        last_line: String,
    },
    /// A word cannot be given to a shell.
    #[error("{0}")]
    Quote(shlex::QuoteError),

    // What was built.
    /// No build has this name.
    #[error("build:{name}: there is no such build{near}; {}", builds(.known))]
    NoBuild {
        /// As it was asked for.
        name: String,
        /// A name like it, as the end of a sentence.
        near: String,
        /// All names.
        known: Vec<String>,
    },
    /// The record of a build cannot be read.
    #[error("{}: {source}", .path.display())]
    Manifest {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A build is for another architecture.
    #[error("build:{name} is a kernel for {built}, not for {wanted} (see --arch)")]
    OtherArch {
        /// Its name.
        name: String,
        /// Its architecture.
        built: String,
        /// The guest's.
        wanted: Arch,
    },
    /// The image is another than was built.
    #[error("build:{name}: {} is not what was built; build it again", .image.display())]
    OtherImage {
        /// The build's name.
        name: String,
        /// Its image.
        image: PathBuf,
    },
}

/// What is wrong with the archive of a source.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It is not there.
    #[error("no such folder or archive")]
    Missing,
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(io::Error),
    /// It is larger than any source.
    #[error("it has more than {most_gib} GiB, the most that is read")]
    TooLarge {
        /// The most.
        most_gib: u64,
    },
    /// It is another than it was at first.
    #[error("it was changed while it was read")]
    Changed,
    /// What is in it cannot be built.
    #[error("{0}")]
    Content(Box<LabError>),
}

/// What every tool says of a full disk: strerror(3) of ENOSPC.
const FULL: &str = "No space left on device";

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn builds(names: &[String]) -> String {
    if names.is_empty() {
        return "none was made yet (tailbound lab kernel build)".to_owned();
    }
    let names: Vec<String> = names.iter().map(|n| format!("build:{n}")).collect();
    format!("there are {}", names.join(", "))
}

impl BuildError {
    /// Does this source not compile, on a host with room for it?
    pub(super) fn is_of_kernel(&self) -> bool {
        match self {
            Self::PatchFailed { complaint, .. }
            | Self::Make { complaint, .. }
            | Self::Compilation { complaint, .. } => !complaint.contains(FULL),
            Self::Command { last_line, .. } => !last_line.contains(FULL),
            _ => false,
        }
    }

    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::SourcePackage { .. }
            | Self::NoSource
            | Self::Source { .. }
            | Self::NoKernelSource { .. }
            | Self::NotOneSource
            | Self::BuiltInPlace { .. }
            | Self::UnknownSource { .. }
            | Self::NotRebased { .. }
            | Self::Branch { .. }
            | Self::NoTarget { .. }
            | Self::NoGitTree { .. }
            | Self::NoCommit { .. }
            | Self::CommitOrder { .. }
            | Self::PatchFile { .. }
            | Self::NoPatch { .. }
            | Self::NotShipping { .. }
            | Self::NotShipped { .. }
            | Self::Conflicts { .. }
            | Self::UnknownFragment { .. }
            | Self::EmptyFragment { .. }
            | Self::NotGranted { .. }
            | Self::NoSeed
            | Self::Seed { .. }
            | Self::UnknownTest { .. }
            | Self::Quote(_)
            | Self::NoBuild { .. }
            | Self::OtherArch { .. } => FailureKind::Usage,
            Self::Toolchain { .. }
            | Self::SourceNotShown { .. }
            | Self::OtherSource { .. }
            | Self::PatchFailed { .. }
            | Self::Make { .. }
            | Self::Compilation { .. }
            | Self::Command { .. }
            | Self::Manifest { .. }
            | Self::OtherImage { .. } => FailureKind::Cannot,
        }
    }
}
