// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hostile archives, each refused by its name, and ordinary ones of three writers.

use std::io::Write as _;
use std::time::{Duration, Instant};

use tar::{Builder, EntryType, Header};

use super::*;

/// A header with names as they are: the writer of archives would refuse some of them.
pub(crate) fn header(name: &[u8], kind: EntryType, link: &[u8], size: u64, mode: u32) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header.set_uid(12);
    let raw = header.as_old_mut();
    raw.name[..name.len()].copy_from_slice(name);
    raw.linkname[..link.len()].copy_from_slice(link);
    header.set_cksum();
    header.as_bytes().to_vec()
}

/// One member with its content.
pub(crate) fn member(name: &str, kind: EntryType, link: &str, content: &[u8]) -> Vec<u8> {
    let size = content.len() as u64;
    let mut all = header(name.as_bytes(), kind, link.as_bytes(), size, 0o6755);
    all.extend(content);
    all.resize(all.len().next_multiple_of(512), 0);
    all
}

/// An archive, not packed.
pub(crate) fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    let mut all = members.concat();
    all.resize(all.len() + 1024, 0);
    all
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("packed");
    out.finish().expect("packed")
}

fn names(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, Kind)>, ArchiveError> {
    let mut all = Vec::new();
    walk(bytes, limits, &mut |m| {
        all.push((m.name.clone(), m.kind.clone()));
        Ok(())
    })?;
    Ok(all)
}

fn refused(bytes: &[u8], limits: &Limits) -> String {
    let began = Instant::now();
    let error = names(bytes, limits).expect_err("refused").to_string();
    // Far beyond what any of them takes, and far below what they took.
    assert!(began.elapsed() < Duration::from_secs(30), "{error}");
    assert!(error.chars().count() < 300, "{error}");
    error
}

#[test]
fn members_are_read_as_writers_write_them() {
    let long = format!("{}/file", "folder/".repeat(30).trim_end_matches('/'));
    let mut builder = Builder::new(Vec::new());
    for (name, content) in [("a", &b"one"[..]), (&long, b"two")] {
        let mut header = Header::new_gnu();
        header.set_size(3);
        header.set_mode(0o4644);
        builder.append_data(&mut header, name, content).expect("written");
    }
    let plain = builder.into_inner().expect("written");
    let file = || Kind::File { mode: 0o644 };
    let expected = vec![("a".to_owned(), file()), (long.clone(), file())];
    assert_eq!(names(&plain, &Limits::CAPTURE).expect("read"), expected);
    assert_eq!(names(&gzip(&plain), &Limits::CAPTURE).expect("read"), expected);
    let zstd = ruzstd::encoding::compress_to_vec(
        plain.as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    assert_eq!(names(&zstd, &Limits::CAPTURE).expect("read"), expected);
    // pax: a global comment, as git writes it, then a long name.
    let record = |key: &str, value: &str| {
        let text = format!(" {key}={value}\n");
        let n = (1..).find(|n: &usize| n.to_string().len() + text.len() == *n).expect("a length");
        format!("{n}{text}").into_bytes()
    };
    let pax = archive(&[
        member("g", EntryType::XGlobalHeader, "", &record("comment", "0123")),
        member("x", EntryType::XHeader, "", &record("path", &long)),
        member("short", EntryType::Regular, "", b"x"),
    ]);
    let got = names(&pax, &Limits::CAPTURE).expect("read");
    assert_eq!(got.first().map(|(n, _)| n), Some(&long));
    let mut content = Vec::new();
    walk(pax.as_slice(), &Limits::CAPTURE, &mut |m| {
        content = m.content()?;
        Ok(())
    })
    .expect("read");
    assert_eq!(content, b"x");
    for (key, says) in [("size", "8 GiB or more"), ("GNU.sparse.major", "sparse")] {
        let size = archive(&[member("x", EntryType::XHeader, "", &record(key, "1"))]);
        assert!(refused(&size, &Limits::CAPTURE).contains(says), "{key}");
    }
}

#[test]
fn what_leads_out_or_is_no_file_is_refused() {
    let one = |name: &str, kind, link: &str| archive(&[member(name, kind, link, b"")]);
    for (bytes, says) in [
        (one("../up", EntryType::Regular, ""), "leads out"),
        (one("a/../../up/", EntryType::Directory, ""), "leads out"),
        (one("/absolute", EntryType::Regular, ""), "leads out"),
        (one("l", EntryType::Symlink, "x"), "links"),
        (one("l", EntryType::Link, "x"), "links"),
        (one("d", EntryType::Char, ""), "devices"),
        (one("d", EntryType::Block, ""), "devices"),
        (one("p", EntryType::Fifo, ""), "devices or pipes"),
        (one("s", EntryType::GNUSparse, ""), "sparse"),
        (one("?", EntryType::new(b'Z'), ""), "neither file nor folder"),
        (Vec::new(), "empty"),
        (gzip(b""), "empty"),
        (b"BZh91AY".to_vec(), "bzip2"),
        (b"it is a text\n".to_vec(), "block"),
    ] {
        let error = refused(&bytes, &Limits::CAPTURE);
        assert!(error.contains(says), "{says}: {error}");
    }
    let links = Limits { links: Links::Within, ..Limits::CAPTURE };
    let kinds = |bytes: &[u8]| names(bytes, &links).expect("read").remove(0).1;
    assert_eq!(kinds(&one("a/l", EntryType::Symlink, "../b")), Kind::SymbolicLink("../b".into()));
    for target in ["../../b", "/etc/shadow", "b/../.."] {
        let kind = kinds(&one("a/l", EntryType::Symlink, target));
        assert_eq!(kind, Kind::LinkOutside(target.to_owned()));
    }
    assert!(refused(&one("l", EntryType::Link, "../x"), &links).contains("leads out"));
    assert!(refused(&one("l", EntryType::Link, ""), &links).contains("a link to no name"));
}

#[test]
fn every_limit_is_told_by_its_name() {
    // 1,900 folders, one in the other: cubic for a reader that makes each anew.
    let mut builder = Builder::new(Vec::new());
    for depth in 1..1900usize {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Directory);
        header.set_size(0);
        builder.append_data(&mut header, "d/".repeat(depth), std::io::empty()).expect("written");
    }
    let deep = gzip(&builder.into_inner().expect("written"));
    assert!(refused(&deep, &Limits::CAPTURE).contains("folders deep; 64 are the most"));

    let many = member("a", EntryType::Directory, "", b"").repeat(100_001);
    assert!(refused(&gzip(&many), &Limits::CAPTURE).contains("more than 100000 files"));

    let large = gzip(&header(b"a", EntryType::Regular, b"", u64::from(u32::MAX), 0o644));
    assert!(refused(&large, &Limits::CAPTURE).contains("8 MiB are the most for one file"));

    let few = Limits { bytes: 10 * 512, ..Limits::CAPTURE };
    let folders = |n| archive(&vec![member("a", EntryType::Directory, "", b""); n]);
    assert!(refused(&folders(11), &few).contains("more than 5120 bytes"));
    assert!(names(&folders(8), &few).is_ok());
    for kind in [EntryType::XGlobalHeader, EntryType::GNULongName, EntryType::XHeader] {
        let ahead = archive(&vec![member("a", kind, "", b""); 11]);
        assert!(refused(&ahead, &few).contains("more than 5120 bytes"), "{kind:?}");
    }

    let name = header(b"././@LongLink", EntryType::GNULongName, b"", 1 << 40, 0o644);
    assert!(refused(&name, &Limits::CAPTURE).contains("4096 are the most"));

    let now = Limits { time: Duration::ZERO, ..Limits::CAPTURE };
    assert!(refused(&folders(3), &now).contains("not unpacked within 0 s"));

    let behind = [folders(1), vec![7; 2 << 20]].concat();
    assert!(refused(&behind, &Limits::CAPTURE).contains("behind its end"));
}

#[test]
fn an_archive_that_was_cut_is_no_shorter_one() {
    let whole = gzip(&archive(&[
        member("a", EntryType::Regular, "", &[1; 3000]),
        member("b", EntryType::Regular, "", b"x"),
    ]));
    for n in 0..whole.len() {
        let part = whole.get(..n).unwrap_or_default();
        let got = walk(part, &Limits::CAPTURE, &mut |m| m.content().map(drop));
        assert!(got.is_err(), "{n} of {} bytes", whole.len());
    }
    assert!(walk(whole.as_slice(), &Limits::CAPTURE, &mut |m| m.content().map(drop)).is_ok());
}

#[test]
fn a_large_dictionary_is_refused_before_there_is_room_for_it() {
    // The header of a stream and of its first block: LZMA2 with 4 GiB.
    let mut start = b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46".to_vec();
    start.extend([2, 0, 0x21, 1, 40, 0, 0, 0, 0, 0, 0, 0]);
    let error = Packing::whole(start.as_slice(), 1 << 20).expect_err("refused").to_string();
    assert!(error.contains("dictionary"), "{error}");
    let zeros = gzip(&vec![0; 4 << 20]);
    let error = Packing::whole(zeros.as_slice(), 1 << 20).expect_err("refused");
    assert!(matches!(error, ArchiveError::Bytes { most } if most == 1 << 20), "{error}");
    assert_eq!(Packing::whole(zeros.as_slice(), 4 << 20).map(|b| b.len()).ok(), Some(4 << 20));
}
