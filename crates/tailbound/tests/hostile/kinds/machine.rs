// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine that somebody captured: the archive, and the kernel's files in it.

use std::io::Write as _;

use tailbound_archive::{ArchiveError, Kind as Member, Limits};
use tailbound_core::CpuSet;
use tailbound_host::{Root, Tree};
use tailbound_rules::{Answers, CheckScope, Machine, ShownChecks};
use tailbound_tune::{Profile, Recipe};

use super::{Kind, Reader};
use crate::plain;

/// Before each file of a machine that is one text, with its name behind it.
const MARK: u8 = 1;

pub(super) const ARCHIVES: Kind = Kind {
    name: "captures",
    share: 2,
    texts: false,
    samples: || {
        let mut out = Vec::new();
        for host in ["vm", "arm-board"] {
            let archive = archive(&files(host));
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(&archive).unwrap();
            // Packed, most damage ends at its sum: the plain one has none.
            out.extend([packed.finish().unwrap(), archive]);
        }
        out
    },
    reader: || Box::new(|bytes, _| captured(bytes)),
};

pub(super) const CONTENTS: Kind = Kind {
    name: "captured_files",
    share: 3,
    texts: true,
    samples: || {
        let one = |host: &str| {
            let mut out = Vec::new();
            for (name, bytes) in files(host) {
                out.push(MARK);
                out.extend(name.bytes().chain([b'\n']).chain(bytes));
            }
            out
        };
        ["rt-pc", "vm", "container", "arm-board"].map(one).into()
    },
    reader: contents,
};

/// Names and contents of a machine's files, but for long ones.
fn files(host: &str) -> Vec<(String, Vec<u8>)> {
    let base = crate::folder("../base/tailbound-host/tests/fixtures/hosts").join(host);
    let mut out = Vec::new();
    let mut folders = vec![base.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(&base).unwrap().to_string_lossy().into_owned();
            match std::fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_dir() => folders.push(path),
                Ok(meta) if meta.is_file() && meta.len() < 20_000 => {
                    let bytes = std::fs::read(&path).unwrap();
                    out.push((name, bytes.into_iter().filter(|b| *b != MARK).collect()));
                }
                _ => {}
            }
        }
    }
    out.sort();
    out
}

fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    tar.into_inner().unwrap()
}

/// As `check --root FILE` reads it.
fn captured(bytes: &[u8]) -> Result<bool, String> {
    let mut tree = Tree::default();
    let read = tailbound_archive::walk(bytes, &Limits::CAPTURE, &mut |member| {
        let damaged = |e: tailbound_host::TreeError| ArchiveError::Damaged(e.to_string());
        match member.kind {
            Member::File { mode } => {
                let bytes = member.content()?;
                tree.add_file(&member.name, mode, bytes).map_err(damaged)
            }
            _ => tree.add_folder(&member.name).map_err(damaged),
        }
    });
    match read {
        Ok(()) => checked(tree, "2-3").map(|()| true),
        Err(e) => plain(&e.to_string()).map(|()| false),
    }
}

fn contents() -> Reader {
    Box::new(|bytes, random| {
        let mut tree = Tree::default();
        for one in bytes.split(|b| *b == MARK).filter(|one| !one.is_empty()) {
            let end = one.iter().position(|b| *b == b'\n').unwrap_or(one.len());
            let (name, content) = one.split_at(end);
            let name = String::from_utf8_lossy(name).into_owned();
            let content = content.get(1..).unwrap_or_default().to_vec();
            drop(tree.add_file(&name, 0o644, content));
        }
        checked(tree, ["", "1", "2-3", "0-65535"][random.below(4)]).map(|()| true)
    })
}

/// Everything that is asked of a machine: what it is, its rules, and how it would be tuned.
fn checked(tree: Tree, cpus: &str) -> Result<(), String> {
    let root = Root::of_tree(tree);
    let rt_cpus: CpuSet = cpus.parse().unwrap_or_default();
    let machine = Machine::read(&root, CheckScope { rt_cpus, ..CheckScope::default() }, None);
    let answers = Answers::of(&machine);
    drop(answers.json());
    drop(answers.text(ShownChecks::All, |_, text| text.to_owned()));
    drop(tailbound_rules::preconditions(&machine));
    for name in ["cyclic", "board"] {
        let profile = Profile::shipped(name).unwrap();
        let recipe =
            Recipe { rt_cpus: cpus.to_owned(), boot: true, ..Recipe::of(profile.written()) };
        drop(recipe.plan(&root));
    }
    Ok(())
}
