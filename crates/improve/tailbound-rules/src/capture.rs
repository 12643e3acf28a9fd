// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the checks read of a machine, packed, so that it can be checked from a desk.
//!
//! The checks are made once and what they ask for is noted, so that a capture holds
//! that and nothing else: no secret of a command line, no address, no log but what checks look for. Units: bytes.
//! Nothing is written here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tailbound_core::CpuSet;
use tailbound_host::kmsg;
use tailbound_host::root::{Missing, REFUSED, Root, TEXT_MAX};

use crate::answer::Answers;
use crate::machine::{CheckScope, Machine, Workload};

const LOG: &str = "/dev/kmsg";
/// What checks look for in the kernel's log.
const LOG_WORDS: &[&str] = &[
    "Unknown kernel command line parameters",
    "isolcpus:",
    "Housekeeping:",
    "nohz unsupported",
    "RT throttling activated",
    "Marking TSC unstable",
    "Marking clocksource",
    "nobody cared",
    "irqhandler",
    "long duration of IRQ",
    "split_lock",
    "split lock detection",
];
/// Parts of names of kernel parameters whose values are nobody's business.
const SECRET: &[&str] = &["pass", "key", "token", "secret", "auth", "cred"];
/// Kernel parameters that hold addresses and names of machines.
const ADDRESSES: &[&str] = &[
    "bootif",
    "ifname",
    "ip",
    "nameserver",
    "netconsole",
    "netconsole.netconsole",
    "netroot",
    "nfsaddrs",
    "nfsroot",
    "systemd.hostname",
];

/// A captured machine.
#[derive(Clone, Debug)]
pub struct Capture {
    /// A packed archive.
    pub bytes: Vec<u8>,
    /// How many files it has.
    pub files: usize,
}

impl Capture {
    /// What all checks ask of this machine, `root` being one that notes it, for these real-time CPUs and the
    /// process `pid`.
    ///
    /// # Errors
    /// It cannot be packed.
    pub fn of(root: &Root, rt_cpus: &CpuSet, pid: Option<u32>) -> std::io::Result<Self> {
        for workload in [Workload::Cyclic, Workload::Polling] {
            let wanted = CheckScope { rt_cpus: rt_cpus.clone(), workload, pid, comm: Vec::new() };
            drop(Answers::of(&Machine::read(root, wanted, None)));
        }
        let (bytes, files) = archive(root)?;
        Ok(Self { bytes, files })
    }
}

/// What was asked for, packed.
fn archive(noting: &Root) -> std::io::Result<(Vec<u8>, usize)> {
    let asked = noting.asked();
    let root = Root::real();
    let mut tree = Tree::default();
    for path in asked.iter().filter(|p| p.starts_with('/') && !p.contains("..")) {
        let Ok(found) = fs::metadata(root.path(path)) else { continue };
        if path == LOG {
            continue;
        }
        if found.is_dir() {
            tree.folder(&root, path);
        } else if found.is_file() {
            tree.file(&root, path, found.permissions().mode());
        }
    }
    match kmsg::messages(&root) {
        Ok(lines) => {
            let kept = lines.iter().filter(|l| LOG_WORDS.iter().any(|w| l.contains(w)));
            // One of them quotes the command line.
            let words = |l: &String| l.split(' ').map(redacted).collect::<Vec<_>>().join(" ");
            let text: String = kept.map(|l| format!("6,0,0,-;{}\n", words(l))).collect();
            tree.files.insert(LOG.to_owned(), (text.into_bytes(), 0o644));
        }
        Err(Missing::Unknown(why)) => drop(tree.refused.insert(LOG.to_owned(), why)),
        Err(Missing::NotApplicable(_)) => {}
    }
    tree.packed()
}

#[derive(Default)]
struct Tree {
    files: BTreeMap<String, (Vec<u8>, u32)>,
    folders: BTreeSet<String>,
    refused: BTreeMap<String, String>,
}

impl Tree {
    /// A folder with the names in it.
    fn folder(&mut self, root: &Root, path: &str) {
        match root.list(path) {
            Ok(names) => {
                let of_name = |n: &String| format!("{}/{n}", path.trim_end_matches('/'));
                let names: Vec<String> = names.iter().map(of_name).collect();
                // What the checks do not ask for is there by its name alone; whose numbers
                // are processes is everybody's who looks, but only their threads count.
                self.folders.extend(names.into_iter().filter(|n| !n.starts_with("/etc/")));
                self.folders.insert(path.to_owned());
            }
            Err(why) => drop(self.refused.insert(path.to_owned(), why.reason().to_owned())),
        }
    }

    fn file(&mut self, root: &Root, path: &str, mode: u32) {
        match root.bytes(path, TEXT_MAX) {
            Ok(bytes) => {
                drop(self.files.insert(path.to_owned(), (harmless(path, bytes), mode & 0o777)))
            }
            Err(Missing::Unknown(why)) => drop(self.refused.insert(path.to_owned(), why)),
            Err(Missing::NotApplicable(_)) => {}
        }
    }

    fn packed(mut self) -> std::io::Result<(Vec<u8>, usize)> {
        let refused = serde_json::to_vec_pretty(&self.refused)?;
        self.files.insert(format!("/{REFUSED}"), (refused, 0o644));
        // A name that stands for a file is no folder.
        let inside: BTreeSet<&String> = self.files.keys().collect();
        let folders: Vec<&String> = self.folders.iter().filter(|f| !inside.contains(f)).collect();
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        for folder in folders {
            let mut header = header(tar::EntryType::Directory, 0, 0o755);
            tar.append_data(&mut header, folder.trim_start_matches('/'), std::io::empty())?;
        }
        for (path, (bytes, mode)) in &self.files {
            let mut header = header(tar::EntryType::Regular, bytes.len() as u64, *mode);
            tar.append_data(&mut header, path.trim_start_matches('/'), bytes.as_slice())?;
        }
        let n = self.files.len();
        let mut gzip = tar.into_inner()?;
        gzip.flush()?;
        Ok((gzip.finish()?, n))
    }
}

fn header(kind: tar::EntryType, size: u64, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    // Whoever unpacks it must be able to read it.
    header.set_mode(mode | 0o400);
    header.set_mtime(0);
    header
}

/// Without what is nobody's business.
fn harmless(path: &str, bytes: Vec<u8>) -> Vec<u8> {
    let lines = |keep: &dyn Fn(&str) -> bool| -> Vec<u8> {
        let text = String::from_utf8_lossy(&bytes);
        text.lines().filter(|l| keep(l)).map(|l| format!("{l}\n")).collect::<String>().into_bytes()
    };
    match path {
        "/proc/cmdline" => {
            let text = String::from_utf8_lossy(&bytes);
            let words: Vec<String> = text.split_ascii_whitespace().map(redacted).collect();
            format!("{}\n", words.join(" ")).into_bytes()
        }
        "/proc/cpuinfo" => lines(&|l| !l.starts_with("Serial")),
        // Mounts of others name servers and users.
        "/proc/self/mountinfo" => lines(&|l| l.contains(" - cgroup")),
        // Only what tells that it is a container, of an environment that is often full of secrets.
        "/proc/1/environ" => {
            let mut words = bytes.split(|b| *b == 0).filter(|w| w.starts_with(b"container="));
            words.next().map(|w| [w, &[0]].concat()).unwrap_or_default()
        }
        _ => bytes,
    }
}

/// A kernel parameter without a value that may be a secret or an address.
fn redacted(word: &str) -> String {
    let Some((name, _)) = word.split_once('=') else { return word.to_owned() };
    let plain = name.trim_start_matches('"').to_lowercase();
    let secret = SECRET.iter().any(|s| plain.contains(s)) || ADDRESSES.contains(&plain.as_str());
    if secret { format!("{name}=REDACTED") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_command_line_stay() {
        let line = b"root=/dev/sda1 rd.luks.key=abc AdminPassword=x quiet\n".to_vec();
        let text = String::from_utf8(harmless("/proc/cmdline", line)).unwrap_or_default();
        assert_eq!(text, "root=/dev/sda1 rd.luks.key=REDACTED AdminPassword=REDACTED quiet\n");
        let line = b"ip=192.0.2.7::192.0.2.1 idle=poll BOOTIF=01-02-00-5e".to_vec();
        let text = String::from_utf8(harmless("/proc/cmdline", line)).unwrap_or_default();
        assert_eq!(text, "ip=REDACTED idle=poll BOOTIF=REDACTED\n");
        let cpu = harmless("/proc/cpuinfo", b"processor: 0\nSerial\t: 1234\n".to_vec());
        assert_eq!(cpu, b"processor: 0\n");
        let first = b"TOKEN=x\0container=podman\0PASSWORD=y\0".to_vec();
        assert_eq!(harmless("/proc/1/environ", first), b"container=podman\0");
        assert_eq!(harmless("/proc/1/environ", b"TOKEN=x\0".to_vec()), b"");
        let group = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let mounts =
            format!("{group}40 27 0:50 / /m rw - nfs server.example:/m rw,addr=192.0.2.1\n");
        assert_eq!(harmless("/proc/self/mountinfo", mounts.into_bytes()), group.as_bytes());
    }
}
