// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may write a file otherwise than through `tailbound_sys::new_file`.
//!
//! Context: COLD. A name that another user can place in the same folder must not be followed, and an
//! older file not be lost by a failure: one function sees to both. What is looked at is the program:
//! tests write into folders of their own, `xtask` below the project.

use super::files::File;
use super::finding::Finding;

/// Calls that make, truncate or exchange files, in halves where this file would find itself.
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
    ("crates/tailbound-sys/src/new_file/mod.rs", "the function itself"),
    ("crates/tailbound-sys/src/new_file/folder.rs", "the function itself"),
    (
        "crates/tailbound-sys/src/only_reads.rs",
        "a list of calls that end the program which makes one; none is made there",
    ),
    ("crates/tailbound-sys/src/scratch.rs", "a file that never has a name (O_TMPFILE)"),
    (
        "crates/tailbound-load/src/file.rs",
        "the load of file systems without nameless files: O_EXCL, and the name removed at once",
    ),
    ("crates/tailbound-host/src/tracefs/mod.rs", "settings of the kernel's tracing (tracefs)"),
    ("crates/tailbound-load/src/worker.rs", "a setting of the kernel (/proc/self/oom_score_adj)"),
    (
        "crates/tailbound-lab/src/boot_folder.rs",
        "a folder made for one boot, which QEMU writes into while it runs",
    ),
    (
        "crates/tailbound-lab/src/vary.rs",
        "the state of one run in a folder made for it alone: O_EXCL, gone with the program",
    ),
    (
        "crates/tailbound-lab/src/snapshot.rs",
        "a folder of a snapshot made beside: O_EXCL, checked whole, exchanged as a whole",
    ),
    (
        "crates/tailbound-store/src/backup.rs",
        "O_EXCL and for its owner alone; SQLite opens it by its name and writes it",
    ),
    (
        "crates/tailbound-testing/src/prometheus.rs",
        "tests: a new file in a folder of the test's own",
    ),
    ("crates/tailbound-guest/src/work.rs", "settings of the guest's own kernel (/proc/sys)"),
];

/// The rule about one file.
pub(crate) fn check(file: &File) -> Vec<Finding> {
    let path = file.path.as_str();
    let ours = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    let Some(text) = file.text().filter(|_| ours && !is_test(path)) else { return Vec::new() };
    if MAY.iter().any(|(may, _)| *may == path) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        let code = line.trim_start();
        let call = CALLS.iter().find(|call| !code.starts_with("//") && code.contains(**call));
        if let Some(call) = call {
            found.push(Finding::new(
                (path, i + 1),
                "writing",
                format!("`{call}` follows links that others placed, or loses what was there"),
                "Use tailbound_sys::new_file, or list the file in xtask/src/tidy/writing.rs with a reason",
            ));
        }
    }
    found
}

/// Modules of tests alone.
fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    ["tests.rs", "checks.rs", "probes_page.rs"].contains(&name)
        || name.ends_with("_tests.rs")
        || path.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> usize {
        check(&File::fake(path, text)).len()
    }

    #[test]
    fn files_are_written_in_one_place() {
        let bad = "fn f() {\n    let a = File::create(path)?;\n    std::fs::write(path, b)?;\n}\n";
        assert_eq!(rules("crates/tailbound/src/x.rs", bad), 2);
        assert_eq!(rules("crates/tailbound-lab/src/a/b.rs", "    o.truncate(true).open(p)\n"), 1);
        for path in [
            "crates/tailbound/tests/cli/x.rs",
            "crates/tailbound-lab/src/build/make_tests.rs",
            "crates/tailbound-sys/src/new_file/mod.rs",
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
        let project = crate::root::project().expect("the project");
        for (path, _) in MAY {
            let text = std::fs::read_to_string(project.join(path)).expect(path);
            assert!(CALLS.iter().any(|call| text.contains(call)), "{path} needs no exception");
        }
    }
}
