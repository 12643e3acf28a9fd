// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may unpack bytes that others packed, otherwise than through `tailbound-archive`.
//!
//! An archive that is unpacked as it says brings set-user-ID files, links out of it and owners; a packed
//! file without a limit fills memory and disk. One crate sees to both. What is looked at is the program, not its tests.

use super::calls::Rule;

const CALLS: &[&str] = &[
    "tar::Archive",
    "(\"tar\")",
    "\"dpkg-deb\"",
    "GzDecoder",
    "ZlibDecoder",
    "DeflateDecoder",
    "XzReader",
    "LzmaReader",
    "StreamingDecoder",
    "FrameDecoder",
    "zstd::stream::read",
    "zstd::decode_all",
    "inflate::decompress",
    "Decompress::new",
];

/// Files that may, and why.
const MAY: &[(&str, &str)] = &[
    ("crates/base/tailbound-archive/src/walk.rs", "the crate itself"),
    ("crates/base/tailbound-archive/src/packing.rs", "the crate itself"),
    (
        "crates/lab/tailbound-lab/src/kernel/package.rs",
        "dpkg-deb hands the archive within a package over, which the crate unpacks",
    ),
    ("crates/lab/tailbound-lab/src/needs.rs", "the names of programs that a fetch needs"),
    (
        "crates/base/tailbound-core/src/runfile/mod.rs",
        "samples of a run file in memory, with a limit",
    ),
    (
        "crates/base/tailbound-core/src/frames.rs",
        "what a board sent over its console, in memory, with a limit",
    ),
    ("crates/base/tailbound-host/src/kconfig.rs", "/proc/config.gz in memory, with a limit"),
    (
        "crates/explain/tailbound-trace/src/dat/unpack.rs",
        "sections of a trace.dat in memory, with a limit",
    ),
    (
        "crates/measure/tailbound-load/src/archive.rs",
        "a load: what it packed itself, in memory, with a limit",
    ),
    (
        "crates/measure/tailbound-box/src/capture/zip.rs",
        "captures that are streams and may be cut off, 32 KiB at a time; nothing is written",
    ),
    ("crates/keep/tailbound-store/src/pack.rs", "what the store packed itself, in memory"),
    (
        "crates/keep/tailbound-fleet/src/serve/upload.rs",
        "uploads of the server in memory, with a limit",
    ),
];

/// See the module.
pub(super) const RULE: Rule = Rule {
    name: "unpacking",
    calls: CALLS,
    may: MAY,
    wrong: "unpacks what others packed, without the limits and rules of tailbound-archive",
    instead: "Use tailbound_archive, or list the file in xtask/src/tidy/unpacking.rs with a reason",
};

#[cfg(test)]
mod tests {
    use super::super::files::File;
    use super::*;

    #[test]
    fn archives_are_unpacked_in_one_place() {
        let rules = |path: &str, text: &str| RULE.check(&File::fake(path, text)).len();
        let bad = "fn f() {\n    tar::Archive::new(x).unpack(y);\n    Tool::new(\"tar\");\n}\n";
        assert_eq!(rules("crates/tailbound/src/x.rs", bad), 2);
        for path in [
            "crates/tailbound/tests/cli/x.rs",
            "crates/lab/tailbound-lab/src/build/source_tests.rs",
            "crates/base/tailbound-archive/src/walk.rs",
            "docs/x.md",
        ] {
            assert_eq!(rules(path, bad), 0, "{path}");
        }
        let test = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{bad}}}\n");
        assert_eq!(rules("crates/tailbound/src/x.rs", &test), 0);
    }

    #[test]
    fn every_exception_is_there_and_needed() {
        assert_eq!(RULE.needless(), Vec::<&str>::new());
    }
}
