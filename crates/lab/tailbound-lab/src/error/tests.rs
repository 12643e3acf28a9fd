// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each failure of the lab: whose it is to mend, which is the exit status, and what a person reads.

use std::io;

use tailbound_core::FailureKind;
use tailbound_core::runfile::RawFault;
use tailbound_core::words::UnknownWord;
use tailbound_paths::look::LookError;
use tailbound_stats::theory::BrokenBound;
use tailbound_sys::error::SysError;
use tailbound_sys::owner::Foreign;
use tailbound_sys::program::Missing;

use super::*;
use crate::arch::Arch;
use crate::boot::Ended;
use crate::cache::ParseLimitError;
use crate::kernel::{BuildNameError, KernelNameError, NoImage};
use crate::machine::UnknownSwitch;
use crate::slices::SliceError;
use crate::target::UnfitTester;

/// Every `error` is of `kind` and says its text.
fn are<E: Into<LabError>>(kind: FailureKind, errors: impl IntoIterator<Item = (E, &'static str)>) {
    for (error, says) in errors {
        let error = error.into();
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, says));
    }
}

fn gone() -> io::Error {
    io::Error::other("gone")
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn missing() -> Missing {
    Missing { name: text("qemu"), passed_over: Vec::new() }
}

fn no_arch() -> UnknownWord {
    UnknownWord { typed: text("vax"), known: vec!["x86_64", "arm"] }
}

#[test]
fn who_uses_the_lab_says_whose_its_failures_are() {
    for kind in [FailureKind::Usage, FailureKind::Cannot] {
        are(kind, [(LabError::Caller { kind, text: text("no") }, "no")]);
    }
    are(
        FailureKind::CutOff,
        [
            (LabError::Interrupted, "interrupted"),
            (LabError::Ended, "interrupted; what was done is kept"),
        ],
    );
    assert_eq!(LabError::Bug.kind(), FailureKind::Bug);
}

#[test]
fn files_that_were_named_are_the_users_and_others_the_machines() {
    let (path, name) = (|| "a/b".into(), || text("x.tar"));
    are(
        FailureKind::Usage,
        [
            (FileError::Given { path: path(), source: gone() }, "a/b: gone"),
            (
                FileError::OtherRun { path: path() },
                "a/b holds a run made with different options or by another version: choose another --out, or give --force",
            ),
        ],
    );
    are(
        FailureKind::Cannot,
        [
            (FileError::Unusable { path: path(), source: gone() }, "a/b: gone"),
            (FileError::TooLarge { path: path() }, "a/b: too large for the lab"),
            (
                FileError::Changed { path: path(), then: text("12"), now: text("34") },
                "a/b: changed since it was looked at (SHA-256 12, now 34)",
            ),
            (FileError::Run(gone()), "gone"),
        ],
    );
    let refused = || ArchiveError::Damaged(text("it is damaged"));
    are(FailureKind::Usage, [(LabError::archive(name(), refused()), "x.tar: it is damaged")]);
    let full = ArchiveError::Write { name: text("etc"), why: gone() };
    are(FailureKind::Cannot, [(LabError::archive(name(), full), "x.tar: etc: gone")]);
    assert!(LabError::archive(name(), ArchiveError::Interrupted).is_cut_off());
    for (kind, whose) in [
        (io::ErrorKind::AlreadyExists, FailureKind::Usage),
        (io::ErrorKind::InvalidInput, FailureKind::Usage),
        (io::ErrorKind::StorageFull, FailureKind::Cannot),
    ] {
        assert_eq!(LabError::unwritten(Path::new("a"), kind.into()).kind(), whose);
    }
}

#[test]
fn the_store_and_helpers_are_the_machines() {
    let folder = || "lab".into();
    let foreign = Foreign { path: "lab".into(), why: text("it is somebody's") };
    let shown = foreign.to_string();
    let error =
        StoreError::Foreign { folder: folder(), foreign, remedy: "use a folder of your own" };
    assert_eq!(
        error.to_string(),
        format!(
            "the lab's folder lab is not used: {shown}, and use a folder of your own: name another one in TAILBOUND_LAB, or give this one (and those above it) to its user alone"
        )
    );
    assert_eq!(error.kind(), FailureKind::Cannot);
    are(
        FailureKind::Cannot,
        [
            (StoreError::NoHome, "there is no HOME: set TAILBOUND_LAB to a folder for kernels"),
            (
                StoreError::InUse { folder: folder() },
                "another tailbound works in lab: nothing was removed",
            ),
            (
                StoreError::Full { folder: folder(), free_mib: 1, wanted_mib: 2 },
                "lab has 1 MiB free, and 2 are needed: name another folder in TAILBOUND_LAB, or see `tailbound lab cache`",
            ),
        ],
    );
    let source = ParseLimitError::Age(text("x"));
    are(
        FailureKind::Usage,
        [
            (StoreError::Name { name: text("..") }, "\"..\" is no name of a folder in the store"),
            (StoreError::Limit { variable: "A", source }, "A: `x` is no age such as 30d or 12h"),
        ],
    );
    let lacking = |missing: &[&str]| ToolError::Lacking {
        undone: "nothing was begun",
        missing: missing.iter().map(|m| text(m)).collect(),
    };
    are(
        FailureKind::Cannot,
        [
            (lacking(&["no apt"]), "no apt"),
            (
                lacking(&["no apt", "no QEMU"]),
                "nothing was begun; what this machine lacks:\n  no apt\n  no QEMU",
            ),
            (
                ToolError::Start { program: text("git"), source: gone() },
                "`git` could not be started: gone",
            ),
            (ToolError::Wait(gone()), "a helper cannot be waited for: gone"),
            (ToolError::Failed { program: text("git"), complaint: text("no") }, "git: no"),
        ],
    );
    assert_eq!(ToolError::Missing(missing()).to_string(), missing().to_string());
    let call = SysError::code("wait4", "1", 10);
    assert_eq!(ToolError::Call(call.clone()).to_string(), call.to_string());
}

#[test]
fn names_and_files_of_kernels_are_the_users() {
    let name = |source| KernelError::Name { name: text("x"), source };
    let asked = LabError::from(name(KernelNameError::Debian)).into();
    are(
        FailureKind::Usage,
        [
            (
                name(KernelNameError::NoOrigin),
                "kernel `x`: say where it comes from: debian:6.12-rt, debian:6.1-cloud, debian:rt, debian:PACKAGE=VERSION, path:VMLINUZ[,MODULES_FOLDER] or build:NAME",
            ),
            (
                name(KernelNameError::Path),
                "kernel `x`: after `path:` stands VMLINUZ or VMLINUZ,MODULES_FOLDER",
            ),
            (
                name(KernelNameError::Build(BuildNameError::Letters)),
                "kernel `x`: a build's name is made of letters, digits and - _ . +",
            ),
            (
                KernelError::Asked { name: text("x"), source: asked },
                "--kernel x: kernel `x`: after `debian:` stands a version, a flavour or both (6.12, rt, 6.12-rt), or PACKAGE=VERSION",
            ),
            (
                KernelError::Suite { name: text("rt@") },
                "debian:rt@: after `@` stands a suite: trixie",
            ),
            (KernelError::NoneKnown { arch: "amd64" }, "apt knows no kernel for amd64"),
            (
                KernelError::Unknown { name: text("7"), known: text("apt knows 6") },
                "debian:7: no such kernel; apt knows 6",
            ),
            (
                KernelError::NoImage { path: "a".into(), source: NoImage::Gzip },
                "a: compressed with gzip: unpack it first (gunzip)",
            ),
            (
                KernelError::NoImage {
                    path: "a".into(),
                    source: NoImage::OtherArch { found: Arch::Arm, arch: Arch::X86_64 },
                },
                "a: a kernel for arm, not for x86_64 (see --arch)",
            ),
            (
                KernelError::NoConfig { path: "a".into() },
                "a: no line CONFIG_…=… in it: not a kernel's configuration",
            ),
            (
                KernelError::NoModules { folder: "a".into() },
                "a: no module in it; name the folder lib/modules/<release>",
            ),
            (
                KernelError::NoDeviceTree { kernel: text("k"), model: text("m"), tree: "t.dtb" },
                "k: the board model m needs the device tree t.dtb, and this kernel brings none",
            ),
        ],
    );
}

#[test]
fn packages_and_modules_of_kernels_are_the_machines() {
    let no_apt = LabError::from(ToolError::Failed { program: text("apt"), complaint: text("no") });
    are(
        FailureKind::Cannot,
        [
            (
                KernelError::PartUnknown {
                    package: text("p"),
                    version: text("1"),
                    part: text("q"),
                },
                "p 1: apt knows no package q of that version, which holds a part of that kernel",
            ),
            (
                KernelError::NotToBeHad {
                    wanted: text("debian:7"),
                    arch: "amd64",
                    tried: vec![text("a"), text("b")],
                },
                "debian:7 for amd64 is not in the store, and was not to be had\n  a\n  b",
            ),
            (
                KernelError::NoApt {
                    wanted: text("debian:7"),
                    store: "lab".into(),
                    source: no_apt.into(),
                    remedy: "use path:VMLINUZ",
                },
                "debian:7 is not in the store (lab), and apt: no: on a machine without apt use path:VMLINUZ",
            ),
            (
                KernelError::NoSources,
                "none of this machine's apt sources is an archive of Debian with package lists",
            ),
            (
                KernelError::NotDownloaded { package: text("p=1") },
                "apt-get download p=1 left no .deb behind",
            ),
            (
                KernelError::OtherPackage {
                    package: text("p"),
                    is: text("12"),
                    listed: text("34"),
                },
                "p: SHA-256 is 12, the archive's index says 34",
            ),
            (
                KernelError::Unpacking(LabError::file(Path::new("a"), gone()).into()),
                "a: gone\n  what was fetched is kept for the next attempt",
            ),
            (
                KernelError::NoImageIn { package: text("p") },
                "package p holds neither boot/vmlinuz-* nor lib/modules/*/vmlinuz",
            ),
            (KernelError::NotWhole { folder: "a".into() }, "a: not whole after unpacking"),
            (
                KernelError::ModulesMissing {
                    folder: "a".into(),
                    missing: vec![text("brd"), text("veth")],
                },
                "a has no module brd, veth, nor is it built in",
            ),
            (KernelError::NoModule { path: "a".into() }, "a: not a kernel module"),
            (
                KernelError::PackedModule {
                    path: "a".into(),
                    source: ArchiveError::Damaged(text("cut")),
                },
                "a: cut",
            ),
            (
                KernelError::ModuleChain { path: "a".into(), depth: 24 },
                "a: module 24 of a chain in which each needs the next",
            ),
        ],
    );
}

#[test]
fn sources_and_patches_are_the_users() {
    let archive = |source| BuildError::Source { path: "a".into(), source };
    let content = LabError::from(BuildError::NotOneSource).into();
    are(
        FailureKind::Usage,
        [
            (
                BuildError::SourcePackage { name: text("debian:x") },
                "source `debian:x`: after `debian:` stands a package such as linux-source-6.12, with =VERSION or @SUITE where wanted",
            ),
            (
                BuildError::NoSource,
                "a source is debian:linux-source-6.12, a folder or an archive (.tar.xz)",
            ),
            (archive(SourceError::Missing), "source a: no such folder or archive"),
            (archive(SourceError::Unreadable(gone())), "source a: gone"),
            (
                archive(SourceError::TooLarge { most_gib: 4 }),
                "source a: it has more than 4 GiB, the most that is read",
            ),
            (archive(SourceError::Changed), "source a: it was changed while it was read"),
            (
                archive(SourceError::Content(content)),
                "source a: not one kernel source in it (a folder with Kconfig)",
            ),
            (
                BuildError::NoKernelSource { folder: "a".into() },
                "a: no kernel source (no Kconfig in it)",
            ),
            (
                BuildError::BuiltInPlace { folder: "a".into() },
                "a: was built in place, and the kernel refuses to build elsewhere from such a tree: run `make mrproper` in it (this deletes its .config)",
            ),
            (
                BuildError::UnknownSource { name: text("debian:x"), known: Vec::new() },
                "debian:x: no such source; apt knows none",
            ),
            (BuildError::PatchFile { path: "a".into(), source: gone() }, "patch a: gone"),
            (BuildError::NoPatch { path: "a".into() }, "a: not a patch (no `+++` line)"),
            (
                BuildError::NotShipping { name: text("package:x") },
                "package:x: the source is no package of Debian",
            ),
            (
                BuildError::NotShipped { name: text("package:x"), shipped: Vec::new() },
                "package:x: the package ships no patch",
            ),
            (
                BuildError::Conflicts {
                    failed: 1,
                    all: 2,
                    source_name: text("s"),
                    lines: vec![text("p conflicts:"), text("    hunk 1")],
                },
                "1 of 2 patches do not apply to s\n  p conflicts:\n      hunk 1",
            ),
        ],
    );
}

#[test]
fn commits_options_and_names_of_builds_are_the_users() {
    are(
        FailureKind::Usage,
        [
            (
                BuildError::NotRebased { onto: text("v7"), source_name: text("s") },
                "--rebase-onto v7: s is no git tree",
            ),
            (
                BuildError::Branch { repository: "r".into(), branch: text("tailbound/x") },
                "r: branch tailbound/x is not as tailbound left it: rename it (git branch -m), or choose another --name",
            ),
            (
                BuildError::NoTarget { repository: "r".into(), commit: text("v7") },
                "r: no commit `v7`",
            ),
            (
                BuildError::NoGitTree { folder: "r".into(), complaint: text("no") },
                "--tree r: no git tree (no)",
            ),
            (
                BuildError::NoCommit { flag: "--bad", commit: text("v7") },
                "--bad v7: there is no such commit",
            ),
            (
                BuildError::CommitOrder { good: text("a"), bad: text("b") },
                "--good a does not come before --bad b: take the last good commit of the bad one's history (git merge-base)",
            ),
            (
                BuildError::UnknownFragment {
                    name: text("x"),
                    known: vec!["rt", "none"],
                    near: text(" (did you mean `rt`?)"),
                    source: gone(),
                },
                "fragment `x` is not one of rt, none (did you mean `rt`?), nor a file: gone",
            ),
            (BuildError::EmptyFragment { name: text("x") }, "fragment x: no line CONFIG_…=… in it"),
            (
                BuildError::NotGranted { options: vec![text("a"), text("b")] },
                "the kernel did not grant every option:\n  a\n  b",
            ),
            (
                BuildError::NoSeed,
                "randconfig needs a seed, so that a failure can be had again: randconfig:1",
            ),
            (
                BuildError::Seed { seed: text("x") },
                "randconfig:x: a seed is a number from 0 to 4294967295",
            ),
            (
                BuildError::UnknownTest { name: text("x") },
                "build test `x` is not one of allmodconfig, allyesconfig, allnoconfig, randconfig:SEED, guest",
            ),
            (
                BuildError::NoBuild { name: text("x"), near: text(""), known: Vec::new() },
                "build:x: there is no such build; none was made yet (tailbound lab kernel build)",
            ),
            (
                BuildError::NoBuild {
                    name: text("x"),
                    near: text(""),
                    known: vec![text("a"), text("b")],
                },
                "build:x: there is no such build; there are build:a, build:b",
            ),
            (
                BuildError::OtherArch { name: text("x"), built: text("arm"), wanted: Arch::X86_64 },
                "build:x is a kernel for arm, not for x86_64 (see --arch)",
            ),
        ],
    );
    let quote = shlex::try_quote("\0").map_err(BuildError::Quote).unwrap_err();
    assert_eq!(quote.kind(), FailureKind::Usage);
}

#[test]
fn what_a_build_fails_at_is_the_machines() {
    are(
        FailureKind::Cannot,
        [
            (
                BuildError::Toolchain { arch: Arch::Arm, missing: vec![text("gcc"), text("bc")] },
                "a kernel for arm cannot be built here, without gcc, bc",
            ),
            (
                BuildError::SourceNotShown { name: text("debian:x") },
                "debian:x: apt lists it, but cannot show it",
            ),
            (
                BuildError::OtherSource { name: text("debian:x") },
                "debian:x: its SHA-256 is not what the archive says",
            ),
            (BuildError::PatchFailed { name: text("p"), complaint: text("no") }, "patch p: no"),
            (BuildError::Make { targets: text("all"), complaint: text("no") }, "make all: no"),
            (
                BuildError::Compilation {
                    targets: text("all"),
                    seconds: 9.6,
                    status: text("exit status 2"),
                    complaint: text("no"),
                    log: "l".into(),
                },
                "make all failed after 10 s (exit status 2): no\n  the whole log: l",
            ),
            (
                BuildError::Command { status: text("signal 9"), last_line: text("no") },
                "the build failed (signal 9): no",
            ),
            (
                BuildError::OtherImage { name: text("x"), image: "a".into() },
                "build:x: a is not what was built; build it again",
            ),
        ],
    );
    let source = serde_json::from_str::<u8>("x").unwrap_err();
    let error = BuildError::Manifest { path: "a".into(), source };
    assert_eq!(error.kind(), FailureKind::Cannot, "{error}");
}

#[test]
fn a_qemu_that_was_named_is_the_users() {
    are(
        FailureKind::Usage,
        [
            (
                QemuError::VersionNotFetched {
                    version: text("10"),
                    arch: Arch::Arm,
                    fetched: text("there is 9.2"),
                },
                "--qemu 10: QEMU 10 for arm was not fetched; there is 9.2",
            ),
            (
                QemuError::NotFetched { version: text("10"), fetched: text("there is 9.2") },
                "QEMU 10 was not fetched; there is 9.2",
            ),
            (
                QemuError::Suite { suite: text("-x") },
                "--suite -x: the name of a suite, such as trixie",
            ),
            (
                QemuError::NoPackage { suite: text("x"), package: "qemu-system-x86" },
                "x has no package qemu-system-x86",
            ),
        ],
    );
}

#[test]
fn a_qemu_that_fails_is_the_machines() {
    let program = || "q".into();
    let unfit = LabError::from(QemuError::NoVersion).into();
    are(
        FailureKind::Cannot,
        [
            (
                QemuError::Other { program: program(), said: text("hello") },
                "q --version does not speak of QEMU: is it QEMU? (hello)",
            ),
            (
                QemuError::Other { program: program(), said: text("") },
                "q --version does not speak of QEMU: is it QEMU?",
            ),
            (
                QemuError::Altered { path: "a".into(), version: text("10") },
                "a is not what was unpacked (its SHA-256 is another): remove it with `tailbound lab qemu remove 10` and fetch it again",
            ),
            (
                QemuError::PackagesMissing { left: 1, all: 2, package: "qemu-system-arm" },
                "apt-get left 1 of 2 packages of qemu-system-arm",
            ),
            (
                QemuError::NoLoader { loader: text("ld.so"), program: text("q") },
                "none of the packages has the loader `ld.so` of q",
            ),
            (
                QemuError::FetchedUnfit(unfit),
                "what was fetched does not start here: it names no version",
            ),
            (QemuError::None, "no QEMU"),
            (
                QemuError::NoSandbox { program: program() },
                "q was built without seccomp, so that `-sandbox` is missing, and root starts no QEMU without it: run this as an ordinary user, or use Debian's QEMU",
            ),
            (QemuError::Connection(gone()), "gone"),
            (QemuError::Thread(gone()), "gone"),
            (QemuError::Complaint { said: text("no") }, "no"),
            (QemuError::Ended { command: text("stop") }, "QEMU ended (stop)"),
            (
                QemuError::Deaf { command: text("stop"), source: gone() },
                "QEMU does not listen (stop): gone",
            ),
            (
                QemuError::Refuses { command: text("stop"), why: text("no") },
                "QEMU refuses stop: no",
            ),
            (QemuError::Silent { command: text("stop") }, "QEMU does not answer (stop)"),
            (QemuError::NoCpuThread, "QEMU does not name the thread of its CPUs"),
        ],
    );
    let error = QemuError::Missing { missing: missing(), package: "qemu-system-x86" };
    let remedy = "install Debian's qemu-system-x86, give --qemu PROGRAM, or fetch one beside the system with `tailbound lab qemu fetch`";
    assert_eq!(error.to_string(), format!("{}: {remedy}", missing()));
    assert_eq!(error.kind(), FailureKind::Cannot);
    let call = SysError::code("execve", "q", 2);
    assert_eq!(QemuError::Start(call.clone()).to_string(), call.to_string());
}

#[test]
fn snapshots_are_the_machines() {
    are(
        FailureKind::Cannot,
        [
            (
                SnapshotError::Awake,
                "the guest was not asleep when it was to be stopped, and would not repeat: move that instant with `--append tailbound.settle_ms=3100`",
            ),
            (SnapshotError::Unsaved(gone()), "the guest's state could not be saved: gone"),
            (SnapshotError::Unsent, "QEMU could not send the guest's state"),
            (SnapshotError::NotTaken, "QEMU goes on from no snapshot of its own"),
            (
                SnapshotError::None,
                "there is no snapshot of this guest to begin from: leave out --no-snapshot",
            ),
            (SnapshotError::JobFromBoot, "this guest has its job from the boot on"),
            (SnapshotError::Over, "the run was over before that instant"),
            (
                SnapshotError::NotReached { ended: Ended::Panicked },
                "the guest did not come there: Panicked",
            ),
        ],
    );
}

#[test]
fn a_full_disk_is_no_kernels_doing() {
    let dead = || GuestError::NoResult { kernel: text("a"), why: text("it panicked") };
    let compiled = |complaint: &str| BuildError::Compilation {
        targets: text("bzImage"),
        seconds: 1.0,
        status: text("exit status 2"),
        complaint: text(complaint),
        log: "log".into(),
    };
    let command = |last_line: &str| BuildError::Command {
        status: text("exit status 1"),
        last_line: text(last_line),
    };
    let full = "a.o: fatal error: error writing to /tmp/a.s: No space left on device";
    let of_kernel: [LabError; 6] = [
        dead().into(),
        SnapshotError::Awake.into(),
        QemuError::Complaint { said: text("no kernel") }.into(),
        QemuError::Ended { command: text("cont") }.into(),
        compiled("a.c:1: error: no b").into(),
        command("no such file").into(),
    ];
    let of_host: [LabError; 8] = [
        LabError::file(Path::new("a"), gone()),
        StoreError::NoHome.into(),
        SnapshotError::Unsaved(gone()).into(),
        QemuError::Silent { command: text("cont") }.into(),
        GuestError::OwnProgram(gone()).into(),
        compiled(full).into(),
        command(full).into(),
        LabError::Bug,
    ];
    assert!(of_kernel.iter().all(LabError::is_of_kernel), "{of_kernel:?}");
    assert!(!of_host.iter().any(LabError::is_of_kernel), "{of_host:?}");
}

#[test]
fn files_for_a_guest_are_the_users_and_its_end_the_machines() {
    are(
        FailureKind::Usage,
        [
            (
                GuestError::OtherProgram { path: "a".into(), found: None, arch: Arch::Arm },
                "a: is no program of a known architecture; the guest is arm",
            ),
            (
                GuestError::Hidden { path: text("/tmp/a"), folder: "/tmp/" },
                "/tmp/a cannot be added to the guest: something else is mounted on /tmp/ there; put the file elsewhere, such as /usr/local/bin",
            ),
            (GuestError::TooLarge { path: text("a") }, "a: larger than 4 GiB"),
        ],
    );
    let dead = || GuestError::NoResult { kernel: text("debian:6.12"), why: text("it panicked") };
    let format = "x".parse::<tailbound_import::Format>().unwrap_err();
    let told = format!("{format}\n{}", dead());
    let unread = GuestError::TesterResult { source: format.into(), otherwise: dead().into() };
    assert_eq!((unread.kind(), unread.to_string()), (FailureKind::Cannot, told));
    are(
        FailureKind::Cannot,
        [
            (GuestError::OwnProgram(gone()), "gone"),
            (
                GuestError::NoProgram { arch: Arch::Arm, name: "t", variable: text("V") },
                "no tailbound for arm: put `t` (made by `make arm`) beside this program, or give --guest FILE or V",
            ),
            (
                GuestError::NoLoader { path: "a".into(), loader: text("ld.so") },
                "a: its loader ld.so is not on this system",
            ),
            (
                GuestError::NoLibrary {
                    path: "a".into(),
                    library: text("libx"),
                    folders: vec!["/lib".into(), "/usr/lib".into()],
                },
                "a needs libx, which is in none of /lib, /usr/lib",
            ),
            (dead(), "debian:6.12: it panicked"),
            (
                GuestError::TooMuch { most_mib: 1, line: "console" },
                "the guest sent more than 1 MiB as its console: it was ended",
            ),
            (GuestError::NotSent { name: "/proc/kallsyms" }, "the guest sent no /proc/kallsyms"),
            (GuestError::QemuEnded { said: text("no") }, "QEMU ended: no"),
            (
                GuestError::NoSample { ended: Ended::Overtime },
                "a varied run did not come to its sample: Overtime",
            ),
            (GuestError::NoCell, "no cell"),
            (GuestError::NotRun, "nothing was made"),
        ],
    );
}

#[test]
fn what_is_asked_of_watching_is_the_users() {
    are(
        FailureKind::Usage,
        [
            (
                WatchError::Kvm,
                "lab paths: with --kvm the host executes the guest, and nothing can be watched: leave it out",
            ),
            (
                WatchError::SeveralCpus,
                "lab paths: guests of several CPUs can be watched of x86-64, others with --smp 1",
            ),
            (
                WatchError::TooManyCpus { most: 8, smp: 9 },
                "lab paths: a guest of up to 8 CPUs can be watched, not --smp 9",
            ),
            (
                WatchError::OneCpu { verb: "bisect" },
                "bisect looks into guests of one CPU: use --smp 1 (`lab paths` watches several)",
            ),
            (
                WatchError::WhichThread,
                "lab paths looks at one measured thread: with several CPUs say which one measures, such as --cpus 1",
            ),
            (
                WatchError::TheoryOfTimers,
                "the theoretical bound is one of wake-ups by a timer: leave out --theory, or --probe",
            ),
            (
                WatchError::TheoryOfOneCpu,
                "--theory takes a guest of one CPU (--smp 1): a CPU that spins for a lock waits for another one's turns, so that the longest stretches of several CPUs would be those of slices and not of the kernel",
            ),
        ],
    );
}

#[test]
fn what_was_watched_in_vain_is_the_machines() {
    let bound = BrokenBound { what: "sample", observed_ns: 2, bound_ns: 1 };
    let (look, log) = (LookError::Unread(3), io::Error::other("gone").into());
    let samples = RawFault::Number;
    let lines = [look.to_string(), bound.to_string(), samples.to_string()];
    assert_eq!(WatchError::look(look).to_string(), lines[0]);
    assert_eq!(WatchError::Bound(bound).to_string(), lines[1]);
    assert_eq!(WatchError::Samples(samples).to_string(), lines[2]);
    // Whatever it is for all cells, for this one it is only that it was not watched.
    let cell = LabError::from(WatchError::Kvm).into();
    are(
        FailureKind::Cannot,
        [
            (
                WatchError::LongSlices,
                "lab paths: several CPUs are watched in short slices alone: use QEMU 8.1 or later (`tailbound lab qemu fetch`), and no --slice off",
            ),
            (
                WatchError::NoPlugin,
                "lab paths: the plugin for QEMU is there for x86-64 machines alone",
            ),
            (
                WatchError::NotByTimers,
                "lab paths: hand-overs and answers are followed in guests of x86-64, where a call is told from an interrupt by its entry",
            ),
            (
                WatchError::Differs,
                "the run has other bytes when it is watched: nothing of it can be told",
            ),
            (WatchError::Log(log), "the plugin's log: gone"),
            (WatchError::NoLog, "no log"),
            (WatchError::NoSamples, "the run has no samples"),
            (WatchError::NoInterval, "the run does not say its interval"),
            (WatchError::NoStart, "the run does not say when it began"),
            (
                WatchError::RandomNumbers,
                "the state of the kernel's random numbers could not be written",
            ),
            (
                WatchError::Cell(cell),
                "lab paths: with --kvm the host executes the guest, and nothing can be watched: leave it out",
            ),
        ],
    );
}

#[test]
fn options_of_the_machine_are_the_users() {
    let switch = UnknownSwitch { option: text("x=y") };
    let told = format!("--machine virt,x=y: {switch}");
    let error = OptionError::MachineSwitch { model: text("virt,x=y"), source: switch };
    assert_eq!((error.kind(), error.to_string()), (FailureKind::Usage, told));
    are(
        FailureKind::Usage,
        [
            (OptionError::Arch(no_arch()), "--arch: `vax` is not one of x86_64, arm"),
            (OptionError::RecordedArch(no_arch()), "`vax` is not one of x86_64, arm"),
            (
                OptionError::Machine {
                    model: text("x"),
                    arch: Arch::X86_64,
                    known: vec![text("pc"), text("q35")],
                },
                "--machine x: not known for x86_64; known are pc, q35",
            ),
            (OptionError::Smp { smp: 65 }, "--smp 65: 1 to 64"),
            (OptionError::Shift { shift: 11 }, "--shift 11: QEMU's limit is 10"),
            (
                OptionError::LittleMemory { memory_mib: 31 },
                "--memory 31: no kernel starts with less than 32",
            ),
            (
                OptionError::MuchMemory { memory_mib: 99, free_mib: 98 },
                "--memory 99: this machine has 98 MiB free",
            ),
            (
                OptionError::Append { most_bytes: 2 },
                "--append: at most 2 bytes, and no control characters",
            ),
            (
                OptionError::Slice { text: text("1ns"), source: SliceError::Length },
                "--slice 1ns: QEMU takes no such length; a whole number of microseconds up to 4000us, such as 4us, or `off`",
            ),
            (
                OptionError::SliceOfKvm { slice_us: 4 },
                "--slice 4us: KVM runs all CPUs at once: leave it out",
            ),
            (
                OptionError::SliceOfOneCpu { slice_us: 4 },
                "--slice 4us: a guest with one CPU has no slices: give --smp 2, or leave it out",
            ),
            (
                OptionError::SliceOfMachine { slice_us: 4 },
                "--slice 4us: slices begin where a snapshot ends, and this machine model has none: use x86-64",
            ),
        ],
    );
    are(
        FailureKind::Cannot,
        [
            (OptionError::NoMachine { arch: Arch::Arm }, "no machine model for arm"),
            (
                OptionError::SliceOfQemu { slice_us: 4, version: text("7.2") },
                "--slice 4us: QEMU 7.2 does not divide time among CPUs, 8.1 and later do: `tailbound lab qemu fetch` gets one",
            ),
        ],
    );
}

#[test]
fn what_is_to_run_is_the_users() {
    let source = tailbound_core::units::parse_ns("x").unwrap_err();
    let told = format!("--interval: {source}");
    let error = OptionError::Time { option: "--interval", source };
    assert_eq!((error.kind(), error.to_string()), (FailureKind::Usage, told));
    are(
        FailureKind::Usage,
        [
            (OptionError::NoKernel, "no kernel: give --kernel, such as debian:6.12-rt"),
            (OptionError::NoProfile { name: text("x") }, "there is no profile `x`"),
            (OptionError::With { path: "a".into() }, "--with a: not a name in UTF-8"),
            (
                OptionError::Benchmark { benchmark: text("cmd:x"), remedy: text("leave it out") },
                "--work cmd:x: a guest holds one program, tailbound, and neither a shell nor a compiler; leave it out",
            ),
        ],
    );
    let description = |source| TargetError::Description { path: "t.toml".into(), source };
    let tester = UnfitTester::NoCommand { name: text("x") };
    are(
        FailureKind::Usage,
        [
            (description(DescriptionError::Unreadable(gone())), "t.toml: gone"),
            (
                description(DescriptionError::Arch(no_arch())),
                "t.toml: `vax` is not one of x86_64, arm",
            ),
            (
                description(DescriptionError::ModuleMissing { path: "a.ko".into() }),
                "t.toml: module a.ko is missing",
            ),
            (
                description(DescriptionError::Place { path: text("../a") }),
                "t.toml: guest = \"../a\": an absolute path without `..` is wanted",
            ),
            (description(DescriptionError::Tester(tester)), "t.toml: tester.x has no command"),
            (
                TargetError::OtherArch { path: "a".into(), found: None, arch: Arch::Arm },
                "a: a program for another machine, the target is arm",
            ),
            (
                TargetError::NoTester {
                    target: text("t"),
                    name: text("x"),
                    near: text(""),
                    known: Vec::new(),
                },
                "t has no tester `x`; it has none",
            ),
            (
                TargetError::Unfit { target: text("t"), wrong: vec![text("a"), text("b")] },
                "t would not run, so it is not booted:\n  a\n  b",
            ),
        ],
    );
}

#[test]
fn a_record_that_cannot_be_repeated_is_the_users_and_what_is_gone_the_machines() {
    are(
        FailureKind::Usage,
        [
            (
                RepeatError::Kvm,
                "this run cannot be repeated: it was made under KVM, in the time of a shared host; `lab run --kvm` makes another",
            ),
            (
                RepeatError::Accelerator,
                "this run cannot be repeated: its accelerator is neither tcg nor kvm",
            ),
            (
                RepeatError::TooManyFiles { most: 2 },
                "this run cannot be repeated: it names more than 2 files",
            ),
            (
                RepeatError::Place { path: text("a") },
                "this run cannot be repeated: `a` is no place of a program",
            ),
            (
                RepeatError::Slice { slice_ns: 3 },
                "this run cannot be repeated: 3 ns is no length of a slice",
            ),
        ],
    );
    are(
        FailureKind::Cannot,
        [
            (
                RepeatError::LaterVersion { unknown: vec![text("a"), text("b")] },
                "the run's lab record holds a, b, which this version does not know: repeat it with the tailbound that made it",
            ),
            (
                RepeatError::OtherFile { path: "a".into(), then: text("12"), now: text("34") },
                "a is not the file it was (SHA-256 12, now 34)",
            ),
            (
                RepeatError::FileMissing { path: text("/lib/a") },
                "/lib/a, which was in that guest, is not here; give --target for a run that was made on one",
            ),
            (
                RepeatError::KernelMissing {
                    package: text("p"),
                    sha256: text("12"),
                    tried: vec![text("a"), text("b")],
                },
                "the kernel of this run (p, SHA-256 12) is not to be had: a; b",
            ),
        ],
    );
}
