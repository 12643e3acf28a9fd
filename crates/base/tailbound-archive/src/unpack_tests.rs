// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lands on the disk, and what never does.

use std::os::unix::fs::MetadataExt as _;

use tar::EntryType;

use super::*;
use crate::limits::Links;
use crate::walk::tests::{archive, member};

const LIMITS: Limits = Limits { links: Links::Within, ..Limits::CAPTURE };

#[test]
fn owners_and_special_bits_are_never_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    // 0o6755 and owner 12 in the archive.
    let bytes = archive(&[
        member("d/", EntryType::Directory, "", b""),
        member("d/suid", EntryType::Regular, "", b"x"),
        member("new/file", EntryType::Regular, "", b"y"),
    ]);
    let unpacked = unpack(bytes.as_slice(), folder.path(), &LIMITS).expect("unpacked");
    assert_eq!(unpacked, Unpacked { files: 2, left_out: Vec::new() });
    let own = folder.path().metadata().expect("there").uid();
    for (name, mode) in [("d", 0o755), ("d/suid", 0o755), ("new", 0o755), ("new/file", 0o755)] {
        let found = folder.path().join(name).metadata().expect("there");
        assert_eq!(found.mode() & 0o7000, 0, "{name}");
        assert_eq!((found.uid(), found.mode() & 0o777 & !mode), (own, 0), "{name}");
    }
    assert_eq!(fs::read(folder.path().join("d/suid")).ok().as_deref(), Some(&b"x"[..]));
}

#[test]
fn nothing_is_written_through_a_link() {
    let top = tempfile::tempdir().expect("a folder");
    let (folder, outside) = (top.path().join("in"), top.path().join("out"));
    let file = |name: &str| member(name, EntryType::Regular, "", b"x");
    let link = |name: &str, to: &str| member(name, EntryType::Symlink, to, b"");
    let cases: Vec<(Vec<Vec<u8>>, &str)> = vec![
        (
            vec![member("real/", EntryType::Directory, "", b""), link("l", "real"), file("l/x")],
            "below",
        ),
        (vec![link("l", "."), file("l/x")], "below"),
        (vec![file("a"), file("a/b")], "below"),
        (vec![file("a/b"), file("a")], "twice"),
        (
            vec![link("l", "x"), member("h", EntryType::Link, "l", b"")],
            "hard link to what is no file",
        ),
        (vec![member("h", EntryType::Link, "none", b"")], "hard link to what is no file"),
    ];
    for (members, says) in cases {
        fs::create_dir(&folder).expect("made");
        let error = unpack(archive(&members).as_slice(), &folder, &LIMITS).expect_err("refused");
        assert!(error.to_string().contains(says), "{error}");
        fs::remove_dir_all(&folder).expect("removed");
    }
    fs::create_dir_all(&folder).expect("made");
    fs::create_dir(&outside).expect("made");
    let members = [
        link("away", &outside.display().to_string()),
        link("up", "../out"),
        // A file in the place of an earlier link replaces the link.
        link("later", "target"),
        file("later"),
        file("target/x"),
        link("lib", "target"),
        member("second", EntryType::Link, "target/x", b""),
    ];
    let unpacked = unpack(archive(&members).as_slice(), &folder, &LIMITS).expect("unpacked");
    assert_eq!(unpacked.left_out, ["away", "up"]);
    assert!(fs::symlink_metadata(folder.join("away")).is_err());
    assert!(fs::symlink_metadata(folder.join("later")).is_ok_and(|m| m.is_file()));
    assert_eq!(fs::read(folder.join("lib/x")).ok().as_deref(), Some(&b"x"[..]));
    assert_eq!(fs::read(folder.join("second")).ok().as_deref(), Some(&b"x"[..]));
    assert_eq!(fs::read_dir(&outside).expect("there").count(), 0);
}
