// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which function of which file an address of a process lies in.
//!
//! Files are read once, when the first sample falls into them, as the process sees them.
//! Source: proc_pid_maps(5), elf(5).

use std::collections::HashMap;

use tailbound_host::Root;
use tailbound_host::elf::{Elf, Function, LoadSegment};

/// Largest program or library that is read.
const FILE_MAX: u64 = 512 << 20;
/// Most processes, mappings of one, and files that are kept.
const PROCESSES_MAX: usize = 1 << 14;
const MAPS_MAX: usize = 1 << 14;
const FILES_MAX: usize = 1 << 10;
/// A function without a length ends here at the latest.
const FUNCTION_MAX: u64 = 1 << 20;

/// Code of a file in the memory of a process.
#[derive(Clone, Debug)]
struct Mapped {
    begin: u64,
    end: u64,
    offset: u64,
    path: String,
}

/// What a file has.
#[derive(Debug, Default)]
struct File {
    /// Last part of its path.
    name: String,
    /// Begin and end in memory as the file counts, and the name.
    functions: Vec<Function>,
    segments: Vec<LoadSegment>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Places {
    processes: HashMap<i32, Vec<Mapped>>,
    /// Paths of files, by number.
    paths: Vec<String>,
    files: HashMap<u32, File>,
}

impl Places {
    /// `pid` began as a copy of `parent`.
    pub(super) fn fork(&mut self, pid: i32, parent: i32) {
        if pid != parent
            && self.processes.len() < PROCESSES_MAX
            && let Some(maps) = self.processes.get(&parent)
        {
            let maps = maps.clone();
            self.processes.insert(pid, maps);
        }
    }

    /// What `pid` had mapped is no more, or is to be looked up again.
    pub(super) fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }

    /// `pid` mapped code.
    pub(super) fn map(&mut self, pid: i32, begin: u64, length: u64, offset: u64, path: &str) {
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&pid) {
            return;
        }
        // Of a process that was there before, /proc tells all when the first sample comes.
        let maps = self.processes.entry(pid).or_default();
        let end = begin.saturating_add(length);
        maps.retain(|m| m.end <= begin || m.begin >= end);
        if maps.len() < MAPS_MAX {
            maps.push(Mapped { begin, end, offset, path: path.to_owned() });
        }
    }

    /// The file that an address lies in, by number, and where in it; `None` where that is not known.
    pub(super) fn locate(&mut self, root: &Root, pid: i32, address: u64) -> Option<(u32, u64)> {
        let known = |maps: &Vec<Mapped>| {
            maps.iter().find(|m| m.begin <= address && address < m.end).cloned()
        };
        let mut at = self.processes.get(&pid).and_then(known);
        if at.is_none() && self.processes.len() < PROCESSES_MAX {
            let text = root.text(&format!("/proc/{pid}/maps")).unwrap_or_default();
            let maps: Vec<Mapped> = text.lines().filter_map(mapped).take(MAPS_MAX).collect();
            if !maps.is_empty() {
                at = known(&maps);
                self.processes.insert(pid, maps);
            }
        }
        let at = at?;
        let file = match self.paths.iter().position(|p| *p == at.path) {
            Some(file) => file,
            None if self.paths.len() >= FILES_MAX => return None,
            None => {
                self.paths.push(at.path.clone());
                self.paths.len() - 1
            }
        };
        let offset = (address - at.begin).saturating_add(at.offset);
        Some((u32::try_from(file).ok()?, offset))
    }

    /// Function and file; nothing where they are not known. `pid` is one that has it mapped.
    pub(super) fn name(&mut self, root: &Root, pid: i32, file: u32, offset: u64) -> (String, &str) {
        let Some(path) = self.paths.get(file as usize) else { return (String::new(), "") };
        let read = self.files.entry(file).or_insert_with(|| File::read(root, pid, path));
        // What names of Rust carry for the linker is nothing for people.
        let function = read.function(offset).map(|f| format!("{:#}", rustc_demangle::demangle(f)));
        (function.unwrap_or_default(), &read.name)
    }
}

/// A line of /proc/PID/maps, if it is of code.
fn mapped(line: &str) -> Option<Mapped> {
    let mut words = line.splitn(6, ' ');
    let (begin, end) = words.next()?.split_once('-')?;
    let hex = |t: &str| u64::from_str_radix(t, 16).ok();
    let code = words.next()?.contains('x');
    let offset = hex(words.next()?)?;
    let path = words.nth(2).unwrap_or_default().trim();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let (begin, end) = (hex(begin)?, hex(end)?);
    code.then(|| Mapped { begin, end, offset, path: path.to_owned() })
}

impl File {
    fn read(root: &Root, pid: i32, path: &str) -> Self {
        let name = match path.rsplit('/').next() {
            Some("") | None => "(memory without a file)",
            Some(name) => name,
        };
        let mut file = Self { name: name.to_owned(), ..Self::default() };
        if !path.starts_with('/') {
            return file;
        }
        // As the process sees it; the process may be gone, then as we do.
        let bytes = root
            .bytes(&format!("/proc/{pid}/root{path}"), FILE_MAX)
            .or_else(|_| root.bytes(path, FILE_MAX))
            .unwrap_or_default();
        if let Some(elf) = Elf::new(&bytes) {
            file.functions = elf.functions();
            file.segments = elf.loaded().unwrap_or_default();
        }
        file
    }

    fn function(&self, offset: u64) -> Option<&str> {
        let address = self.segments.iter().find_map(|segment| {
            let inside = offset.checked_sub(segment.offset).filter(|i| *i < segment.length)?;
            segment.address.checked_add(inside)
        })?;
        let after = self.functions.partition_point(|f| f.address <= address);
        let f = self.functions.get(after.checked_sub(1)?)?;
        let length = if f.size == 0 { FUNCTION_MAX } else { f.size };
        (address - f.address < length).then_some(f.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read_and_data_is_passed_over() {
        let m =
            mapped("55d0-55e0 r-xp 00001000 08:01 42                         /bin/a b").unwrap();
        assert_eq!(
            (m.begin, m.end, m.offset, m.path.as_str()),
            (0x55d0, 0x55e0, 0x1000, "/bin/a b")
        );
        let m = mapped("7f00-7f10 r-xp 00000000 08:01 42 /lib/x.so (deleted)").unwrap();
        assert_eq!(m.path, "/lib/x.so");
        assert!(mapped("7f00-7f10 rw-p 00000000 00:00 0 ").is_none());
        assert!(mapped("nonsense").is_none() && mapped("").is_none());
    }

    #[test]
    fn a_copy_knows_what_its_parent_mapped_and_a_new_mapping_replaces_an_old_one() {
        let mut places = Places::default();
        places.map(1, 0x1000, 0x1000, 0, "/nowhere/a");
        places.fork(2, 1);
        places.map(2, 0x1000, 0x800, 0, "/nowhere/b");
        let root = Root::at(std::path::Path::new("/nonexistent"));
        let (file, offset) = places.locate(&root, 1, 0x1004).unwrap();
        assert_eq!((offset, places.name(&root, 1, file, offset)), (4, (String::new(), "a")));
        let (file, offset) = places.locate(&root, 2, 0x1004).unwrap();
        assert_eq!(places.name(&root, 2, file, offset).1, "b");
        assert_eq!(places.locate(&root, 2, 0x9000), None);
    }
}
