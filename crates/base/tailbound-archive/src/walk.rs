// SPDX-License-Identifier: MIT OR Apache-2.0
//! The members of a tar archive, one after the other, within limits.
//!
//! Units: bytes. The crate `tar` reads headers and checks their sums; long names and extended headers are
//! read here, because it would read them to whatever length they state.
//! Source: POSIX.1-2017 pax; GNU tar manual, "Basic Tar Format".

use std::io::{self, BufRead as _, Read};

use tar::EntryType;

use crate::error::ArchiveError;
use crate::limits::{Limits, Links};
use crate::member::{Kind, Member};
use crate::name::{self, NAME_BYTES_MAX};
use crate::packing::Packing;
use crate::watch::Watch;

/// The longest extended header: names of 4 KiB, times and owners take less.
const EXTENSION_BYTES_MAX: u64 = 64 << 10;
/// What a member without content takes: its header.
const HEADER_BYTES: u64 = 512;

/// The most that follows the last member: writers fill up to their block, tar(1) with `-b` to a MiB at most.
const END_BYTES_MAX: u64 = 1 << 20;

/// What headers before a member say about it.
#[derive(Default)]
struct Ahead {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

/// Hands each member of the tar archive `from` to `each`, in the order of the archive; it may be packed with gzip, xz
/// or zstd. The folder that all lie in is not among them.
///
/// # Errors
/// What is wrong with the archive or beyond the limits; what `each` says; [`ArchiveError::Interrupted`].
pub fn walk(
    from: impl Read + Send,
    limits: &Limits,
    each: &mut dyn FnMut(&mut Member<'_>) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let damaged = |e: io::Error| ArchiveError::damaged(&e);
    let (_, plain) = Packing::open(from)?;
    let mut plain = io::BufReader::new(plain);
    if plain.fill_buf().map_err(damaged)?.is_empty() {
        return Err(ArchiveError::Damaged("it is empty".to_owned()));
    }
    let watch = Watch::begin(limits);
    let mut archive = tar::Archive::new(plain);
    let (mut ahead, mut bytes, mut entries) = (Ahead::default(), 0u64, 0u64);
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        watch.check()?;
        bytes = bytes.saturating_add(HEADER_BYTES).saturating_add(entry.size());
        let describes_the_next = match entry.header().entry_type() {
            EntryType::GNULongName => {
                ahead.name = Some(extension(&mut entry, NAME_BYTES_MAX.saturating_add(1))?);
                true
            }
            EntryType::GNULongLink => {
                ahead.link = Some(extension(&mut entry, NAME_BYTES_MAX.saturating_add(1))?);
                true
            }
            EntryType::XHeader => {
                let shown = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                extended(&extension(&mut entry, EXTENSION_BYTES_MAX)?, &shown, &mut ahead)?;
                true
            }
            // A comment: git writes the commit into one.
            EntryType::XGlobalHeader => {
                extension(&mut entry, EXTENSION_BYTES_MAX)?;
                true
            }
            _ => false,
        };
        if describes_the_next {
            // They may follow each other without end, and no member behind them.
            if bytes > limits.bytes {
                return Err(ArchiveError::Bytes { most: limits.bytes });
            }
            continue;
        }
        let ahead = std::mem::take(&mut ahead);
        let raw = ahead.name.unwrap_or_else(|| entry.path_bytes().into_owned());
        let parts = name::parts(without_end(&raw))?;
        entries = entries.saturating_add(1);
        if entries > limits.entries {
            return Err(ArchiveError::Entries { most: limits.entries });
        }
        if parts.len() > limits.depth {
            let (depth, most) = (parts.len(), limits.depth);
            return Err(ArchiveError::Deep { name: parts.join("/"), depth, most });
        }
        let link = ahead.link.or_else(|| entry.link_name_bytes().map(|l| l.into_owned()));
        if entry.size() > limits.member_bytes {
            let (bytes, most) = (entry.size(), limits.member_bytes);
            return Err(ArchiveError::Large { name: parts.join("/"), bytes, most });
        }
        let kind = kind(&entry, &parts, link.as_deref().map(without_end), limits.links)?;
        let size = if matches!(kind, Kind::File { .. }) { entry.size() } else { 0 };
        if bytes > limits.bytes {
            return Err(ArchiveError::Bytes { most: limits.bytes });
        }
        if parts.is_empty() {
            continue;
        }
        let name = parts.join("/");
        each(&mut Member { name, kind, content: &mut entry, bytes: size, watch: &watch })?;
    }
    rest(archive.into_inner(), &watch)
}

/// Reads what is behind the last member, which is nothing or zeros: the sum of a packed file stands at its end.
fn rest(mut plain: impl Read, watch: &Watch) -> Result<(), ArchiveError> {
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0u64;
    loop {
        watch.check()?;
        match plain.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => bytes = bytes.saturating_add(n as u64),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(ArchiveError::damaged(&e)),
        }
        if bytes > END_BYTES_MAX {
            return Err(ArchiveError::Damaged("something follows behind its end".to_owned()));
        }
    }
}

/// What a member is, and whether it may be that.
fn kind<R: Read>(
    entry: &tar::Entry<'_, R>,
    parts: &[&str],
    link: Option<&[u8]>,
    links: Links,
) -> Result<Kind, ArchiveError> {
    let name = || parts.join("/");
    let refused = |kind| Err(ArchiveError::Kind { kind, name: name() });
    let target = || {
        let target = link.and_then(|bytes| std::str::from_utf8(bytes).ok());
        target.ok_or_else(|| ArchiveError::Kind { kind: "a link to no name", name: name() })
    };
    match entry.header().entry_type() {
        EntryType::Regular | EntryType::Continuous => {
            let mode = entry.header().mode().map_err(|e| ArchiveError::damaged(&e))?;
            Ok(Kind::File { mode: mode & 0o777 })
        }
        EntryType::Directory => Ok(Kind::Folder),
        EntryType::Symlink | EntryType::Link if links == Links::Refused => {
            refused("links, which this kind of archive has not")
        }
        EntryType::Symlink => {
            let target = target()?.to_owned();
            let depth = parts.len().saturating_sub(1);
            Ok(if name::stays_inside(&target, depth) {
                Kind::SymbolicLink(target)
            } else {
                Kind::LinkOutside(target)
            })
        }
        EntryType::Link => Ok(Kind::HardLink(name::parts(target()?.as_bytes())?.join("/"))),
        EntryType::Char | EntryType::Block | EntryType::Fifo => refused("devices or pipes"),
        EntryType::GNUSparse => refused("a sparse file, which is not read"),
        _ => refused("something that is neither file nor folder"),
    }
}

/// The content of a header that describes the next member.
fn extension<R: Read>(entry: &mut tar::Entry<'_, R>, most: u64) -> Result<Vec<u8>, ArchiveError> {
    let bytes = entry.size();
    if bytes > most {
        let name = "(a long name or an extended header)".to_owned();
        return Err(ArchiveError::Name { name, bytes, most });
    }
    let mut all = Vec::new();
    entry.read_to_end(&mut all).map_err(|e| ArchiveError::damaged(&e))?;
    if all.len() as u64 != bytes {
        return Err(ArchiveError::Damaged("it ends within a name".to_owned()));
    }
    Ok(all)
}

/// Records `LENGTH KEY=VALUE`: names and links are taken, times and owners are not.
fn extended(bytes: &[u8], shown: &str, ahead: &mut Ahead) -> Result<(), ArchiveError> {
    for record in tar::PaxExtensions::new(bytes) {
        let record = record.map_err(|e| ArchiveError::damaged(&e))?;
        match record.key_bytes() {
            b"path" => ahead.name = Some(record.value_bytes().to_vec()),
            b"linkpath" => ahead.link = Some(record.value_bytes().to_vec()),
            // Readers that disagree about a size see different members.
            b"size" => {
                let name = shown.to_owned();
                return Err(ArchiveError::Kind { kind: "a file of 8 GiB or more", name });
            }
            key if key.starts_with(b"GNU.sparse") => {
                let name = shown.to_owned();
                return Err(ArchiveError::Kind { kind: "a sparse file, which is not read", name });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Without the NUL that ends a name.
fn without_end(name: &[u8]) -> &[u8] {
    name.split(|b| *b == 0).next().unwrap_or_default()
}

#[cfg(test)]
#[path = "walk_tests.rs"]
pub(crate) mod tests;
