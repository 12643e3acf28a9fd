// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of an archive is read, by what it is said to be.
//!
//! Units: bytes, seconds. `docs/received-files.md` states them; a test compares.

use std::time::Duration;

/// What may be a link in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Nothing: the archive is refused.
    Refused,
    /// What stays within the archive; symbolic links that lead out are left out.
    Within,
}

/// The most that is read of one archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Folders within folders, the name of a file itself counted.
    pub depth: usize,
    /// Members.
    pub entries: u64,
    /// Of one member, unpacked.
    pub member_bytes: u64,
    /// Of all, unpacked, the headers of the archive counted.
    pub bytes: u64,
    /// How long.
    pub time: Duration,
    /// Links.
    pub links: Links,
}

impl Limits {
    /// A captured machine: some thousand small files. Each limit is reached within two seconds.
    pub const CAPTURE: Self = Self {
        depth: 64,
        entries: 100_000,
        member_bytes: 8 << 20,
        bytes: 128 << 20,
        time: Duration::from_secs(20),
        links: Links::Refused,
    };

    /// A package of a distribution whose hash was compared: the largest QEMU and kernel packages take 600 MiB.
    pub const PACKAGE: Self = Self {
        depth: 64,
        entries: 400_000,
        member_bytes: 2 << 30,
        bytes: 8 << 30,
        time: Duration::from_secs(1800),
        links: Links::Within,
    };

    /// The source of a kernel that takes `packed` bytes as an archive. Linux 6.18 has 1.6 GiB in 97,000 members, of
    /// which the best packer leaves a tenth.
    #[must_use]
    pub fn source(packed: u64) -> Self {
        const LEAST: u64 = 64 << 20;
        const MOST: u64 = 6 << 30;
        Self {
            depth: 64,
            entries: 400_000,
            member_bytes: 512 << 20,
            bytes: packed.saturating_mul(40).clamp(LEAST, MOST),
            time: Duration::from_secs(1800),
            links: Links::Within,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of bytes as the page writes it.
    fn size(bytes: u64) -> String {
        match bytes {
            b if b >= 1 << 30 => format!("{} GiB", b >> 30),
            b => format!("{} MiB", b >> 20),
        }
    }

    fn number(n: u64) -> String {
        format!("{},{:03}", n / 1000, n % 1000)
    }

    #[test]
    fn the_page_states_these_limits() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/received-files.md");
        let page = std::fs::read_to_string(page).expect("the page");
        let (capture, package) = (Limits::CAPTURE, Limits::PACKAGE);
        let (small, large) = (Limits::source(1), Limits::source(u64::MAX));
        let (ten, source) = (Limits::source(10 << 20), Limits::source(100 << 20));
        assert_eq!(ten.bytes, 40 * (10 << 20));
        let all = [capture, source, package];
        let row = |cells: [String; 3], name: &str| format!("| {name} | {} |", cells.join(" | "));
        let rows = [
            row(all.map(|l| l.depth.to_string()), "folders within folders"),
            row(all.map(|l| number(l.entries)), "files and folders"),
            row(all.map(|l| size(l.member_bytes)), "one file"),
            row(
                [
                    size(capture.bytes),
                    format!("40 times the archive, {} to {}", size(small.bytes), size(large.bytes)),
                    size(package.bytes),
                ],
                "all files",
            ),
            row(
                all.map(|l| match l.time.as_secs() {
                    s if s % 60 == 0 => format!("{} min", s / 60),
                    s => format!("{s} s"),
                }),
                "time",
            ),
        ];
        for row in rows {
            assert!(page.contains(&row), "docs/received-files.md has no row {row}");
        }
    }
}
