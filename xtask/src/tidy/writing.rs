// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may write a file otherwise than through `tailbound_sys::new_file`.
//!
//! A name that another user can place in the same folder must not be followed, and an
//! older file not be lost by a failure: one function sees to both. What is looked at is the program:
//! tests write into folders of their own, `xtask` below the project.

use super::calls::Rule;

const CALLS: &[&str] = &[
    "File::create(",
    "File::create_new(",
    "fs::write(",
    "fs::rename(",
    "fs::copy(",
    "fs::hard_link(",
    ".create(true)",
    ".create_new(true)",
    ".truncate(true)",
    "libc::open(",
    "libc::openat(",
    "libc::rename",
    "libc::linkat(",
    "libc::SYS_renameat2",
];

/// Files that may, and why.
const MAY: &[(&str, &str)] = &[
    ("crates/base/tailbound-sys/src/new_file/mod.rs", "the function itself"),
    ("crates/base/tailbound-sys/src/new_file/folder.rs", "the function itself"),
    (
        "crates/base/tailbound-sys/src/only_reads.rs",
        "a list of calls that end the program which makes one; none is made there",
    ),
    ("crates/base/tailbound-sys/src/scratch.rs", "a file that never has a name (O_TMPFILE)"),
    (
        "crates/measure/tailbound-load/src/file.rs",
        "the load of file systems without nameless files: O_EXCL, and the name removed at once",
    ),
    (
        "crates/base/tailbound-archive/src/unpack.rs",
        "new files (O_EXCL) in a folder that its maker has for itself alone",
    ),
    ("crates/base/tailbound-host/src/tracefs/mod.rs", "settings of the kernel's tracing (tracefs)"),
    (
        "crates/measure/tailbound-load/src/worker.rs",
        "a setting of the kernel (/proc/self/oom_score_adj)",
    ),
    (
        "crates/measure/tailbound-stimulus/src/flash.rs",
        "the drive of a boot loader, which has no links and restarts when the last block is there",
    ),
    (
        "crates/lab/tailbound-lab/src/boot_folder.rs",
        "a folder made for one boot, which QEMU writes into while it runs",
    ),
    (
        "crates/lab/tailbound-lab/src/vary.rs",
        "the state of one run in a folder made for it alone: O_EXCL, gone with the program",
    ),
    (
        "crates/lab/tailbound-lab/src/snapshot.rs",
        "a folder of a snapshot made beside: O_EXCL, checked whole, exchanged as a whole",
    ),
    (
        "crates/keep/tailbound-store/src/backup.rs",
        "O_EXCL and for its owner alone; SQLite opens it by its name and writes it",
    ),
    (
        "crates/keep/tailbound-store/src/sqlite.rs",
        "O_EXCL and for its owner alone: an empty file, which SQLite opens by its name",
    ),
    (
        "crates/keep/tailbound-store/src/reserve.rs",
        "O_EXCL, then only a plain file of its own name that it made beside the store is emptied and filled",
    ),
    (
        "crates/base/tailbound-testing/src/prometheus.rs",
        "tests: a new file in a folder of the test's own",
    ),
    (
        "crates/base/tailbound-testing/src/promised.rs",
        "tests only: a committed list of the project, where TAILBOUND_BLESS asks for it",
    ),
    ("crates/lab/tailbound-guest/src/work.rs", "settings of the guest's own kernel (/proc/sys)"),
    (
        "crates/lab/tailbound-guest/src/board/mod.rs",
        "a setting of the board's own kernel (/proc/sys)",
    ),
    ("crates/lab/tailbound-guest/src/board/patience.rs", "the kernel's log (/dev/kmsg)"),
];

/// See the module.
pub(super) const RULE: Rule = Rule {
    name: "writing",
    calls: CALLS,
    may: MAY,
    wrong: "follows links that others placed, or loses what was there",
    instead: "Use tailbound_sys::new_file, or list the file in xtask/src/tidy/writing.rs with a reason",
};

#[cfg(test)]
mod tests {
    use super::super::files::File;
    use super::*;

    fn rules(path: &str, text: &str) -> usize {
        RULE.check(&File::fake(path, text)).len()
    }

    #[test]
    fn files_are_written_in_one_place() {
        let bad = "fn f() {\n    let a = File::create(path)?;\n    std::fs::write(path, b)?;\n}\n";
        assert_eq!(rules("crates/tailbound/src/x.rs", bad), 2);
        assert_eq!(
            rules("crates/lab/tailbound-lab/src/a/b.rs", "    o.truncate(true).open(p)\n"),
            1
        );
        for path in [
            "crates/tailbound/tests/cli/x.rs",
            "crates/lab/tailbound-lab/src/build/make_tests.rs",
            "crates/base/tailbound-sys/src/new_file/mod.rs",
            "xtask/src/x.rs",
            "docs/x.md",
        ] {
            assert_eq!(rules(path, bad), 0, "{path}");
        }
        let test =
            format!("fn f() {{}}\n// File::create(x)\n#[cfg(test)]\nmod tests {{\n{bad}}}\n");
        assert_eq!(rules("crates/tailbound/src/x.rs", &test), 0);
    }

    #[test]
    fn every_exception_is_there_and_needed() {
        assert_eq!(RULE.needless(), Vec::<&str>::new());
    }
}
