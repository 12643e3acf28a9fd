// SPDX-License-Identifier: MIT OR Apache-2.0
//! How caches and memory bandwidth are divided: the resctrl file system, for CAT and MBA of x86 and for MPAM of arm64.
//!
//! Units: ways as bits of a mask; bandwidth as the file has it (percent, MiB/s with `mba_MBps`, eighths of
//! a GB/s on AMD). Reads only. Not here: who gets what (`tailbound-tune`).
//! Source: Documentation/filesystems/resctrl.rst, fs/resctrl/{rdtgroup,ctrlmondata}.c.

use std::collections::BTreeMap;

use tailbound_core::CpuSet;

use crate::root::{Found, Missing, Root};

/// Where it is mounted.
pub const FOLDER: &str = "/sys/fs/resctrl";
/// Folders of the root that are no control group.
const NO_GROUPS: [&str; 3] = ["info", "mon_data", "mon_groups"];
/// Options that change what its files mean.
const OPTIONS: [&str; 4] = ["cdp", "cdpl2", "mba_MBps", "debug"];
/// Words of /proc/cpuinfo for what it controls.
const FLAGS: [&str; 4] = ["rdt_a", "cat_l3", "cat_l2", "mba"];
/// The resource of memory bandwidth.
pub const BANDWIDTH: &str = "MB";

/// By cache: a mask of ways, or a bandwidth.
pub type Shares = BTreeMap<u32, u64>;

/// What a mounted resctrl says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resctrl {
    /// `cdp`, `mba_MBps`, …, as far as they change the meaning of files.
    pub options: Vec<String>,
    /// Caches whose ways can be given out; two of one level where code and data have their own.
    pub caches: Vec<Cache>,
    /// Memory bandwidth, where it can be limited.
    pub bandwidth: Option<Bandwidth>,
    /// The default group first.
    pub groups: Vec<ControlGroup>,
    /// Groups that the hardware can tell apart.
    pub classes: Option<usize>,
}

/// A level of caches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cache {
    /// `L3`, `L3CODE`, `L2DATA`.
    pub name: String,
    /// 2 or 3.
    pub level: u32,
    /// All ways.
    pub full: u64,
    /// A group has at least so many beside each other.
    pub min_bits: u32,
    /// May a mask have gaps?
    pub sparse: bool,
    /// Ways that devices and the like use too.
    pub hardware: u64,
    /// By cache, a letter for each way, the highest first: `X` and `H` hardware, `S` shared, `E` exclusive, `P` locked, `0`.
    pub usage: BTreeMap<u32, String>,
}

/// Limits of memory bandwidth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bandwidth {
    /// The least that can be asked for.
    pub min: u64,
    /// From one step to the next.
    pub step: u64,
    /// `max`: the threads of a core get the smaller of their limits. `None` where the kernel does not say.
    pub throttle: Option<String>,
    /// What its figures are.
    pub unit: BandwidthUnit,
}

/// What figures of bandwidth are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BandwidthUnit {
    /// Of all there is.
    #[default]
    Percent,
    /// MiB/s, kept by the kernel.
    Mebibytes,
    /// Eighths of a GB/s (AMD).
    Eighths,
}

/// One group, with what it may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlGroup {
    /// Its folder's name; empty of the default group, which has what is in no other.
    pub name: String,
    /// `shareable`, `exclusive`, `pseudo-locked`.
    pub mode: String,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// By resource.
    pub shares: BTreeMap<String, Shares>,
}

impl ControlGroup {
    /// For people.
    #[must_use]
    pub fn label(&self) -> String {
        match self.name.as_str() {
            "" => "the default group".to_owned(),
            name => format!("group {}", tailbound_core::printable::line(name)),
        }
    }

    /// Its share of a resource in cache `id`.
    #[must_use]
    pub fn share(&self, resource: &str, id: u32) -> Option<u64> {
        self.shares.get(resource)?.get(&id).copied()
    }
}

impl Resctrl {
    /// What is mounted.
    ///
    /// # Errors
    /// *Not applicable*: this CPU or kernel has none; *unknown*: it is not mounted, or a file refuses.
    pub fn read(root: &Root) -> Found<Self> {
        if !root.exists(&format!("{FOLDER}/info")) {
            return Err(absent(root));
        }
        let mut all = Self { options: options(root).unwrap_or_default(), ..Self::default() };
        all.groups.push(group(root, "")?);
        for name in root.list(FOLDER)? {
            if !NO_GROUPS.contains(&name.as_str()) && is_group(root, &name) {
                all.groups.push(group(root, &name)?);
            }
        }
        let resources: Vec<String> =
            all.default_group().map(|g| g.shares.keys().cloned().collect()).unwrap_or_default();
        for name in resources {
            let info = format!("{FOLDER}/info/{name}");
            let classes: usize = root.parsed(&format!("{info}/num_closids"))?;
            all.classes = Some(all.classes.map_or(classes, |least| least.min(classes)));
            if let Some(level) = level(&name) {
                all.caches.push(cache(root, &info, name, level)?);
            } else if name == BANDWIDTH {
                all.bandwidth = Some(bandwidth(root, &info, &all.options)?);
            }
        }
        Ok(all)
    }

    /// The group of everything that is in no other.
    #[must_use]
    pub fn default_group(&self) -> Option<&ControlGroup> {
        self.groups.first()
    }

    /// The groups but the default one and `own`.
    pub fn others<'a>(&'a self, own: &'a str) -> impl Iterator<Item = &'a ControlGroup> {
        self.groups.iter().skip(1).filter(move |g| g.name != own)
    }

    /// The group of a CPU: what runs there and is in no group itself uses that group's share.
    #[must_use]
    pub fn of_cpu(&self, cpu: u32) -> Option<&ControlGroup> {
        let own = self.groups.iter().skip(1).find(|g| g.cpus.contains(cpu));
        own.or_else(|| self.default_group())
    }

    /// The caches of a level.
    #[must_use]
    pub fn level(&self, level: u32) -> Vec<&Cache> {
        self.caches.iter().filter(|c| c.level == level).collect()
    }
}

/// The options with which it is mounted, or that it is not.
///
/// # Errors
/// /proc/self/mountinfo cannot be read.
pub fn mounted(root: &Root) -> Found<Option<Vec<String>>> {
    let text = root.text("/proc/self/mountinfo")?;
    Ok(text.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_it = after.next() == Some("resctrl") && before.split(' ').nth(4) == Some(FOLDER);
        let words = after.nth(1).unwrap_or_default();
        is_it.then(|| {
            let known = |o: &&str| OPTIONS.contains(o);
            words.split(',').filter(known).map(str::to_owned).collect()
        })
    }))
}

fn options(root: &Root) -> Found<Vec<String>> {
    mounted(root).map(Option::unwrap_or_default)
}

/// Why there is nothing to read.
fn absent(root: &Root) -> Missing {
    let kinds = match root.text("/proc/filesystems") {
        Ok(text) => text,
        Err(why) => return why,
    };
    if kinds.lines().any(|l| l.split_whitespace().last() == Some("resctrl")) {
        return Missing::Unknown(format!(
            "{FOLDER} is not mounted: `tailbound tune set resctrl=mounted`"
        ));
    }
    let cpu = root.text("/proc/cpuinfo").unwrap_or_default();
    let flags = cpu.lines().find(|l| l.starts_with("flags")).unwrap_or_default();
    let has: Vec<&str> = flags.split(' ').filter(|w| FLAGS.contains(w)).collect();
    Missing::NotApplicable(if has.is_empty() {
        "this CPU, or its kernel, has no control of caches and bandwidth (resctrl)".to_owned()
    } else {
        format!("the CPU has {}, and this kernel no resctrl", has.join(", "))
    })
}

fn is_group(root: &Root, name: &str) -> bool {
    root.exists(&format!("{FOLDER}/{name}/schemata"))
}

fn group(root: &Root, name: &str) -> Found<ControlGroup> {
    let folder = if name.is_empty() { FOLDER.to_owned() } else { format!("{FOLDER}/{name}") };
    let text = root.text(&format!("{folder}/schemata"))?;
    let mut shares = BTreeMap::new();
    for line in text.lines() {
        let Some((resource, _)) = line.split_once(':') else { continue };
        let resource = resource.trim();
        // A group that is to be locked says `uninitialized`.
        if let Some(values) = self::shares(&text, resource) {
            shares.insert(resource.to_owned(), values);
        }
    }
    Ok(ControlGroup {
        name: name.to_owned(),
        mode: root.read_trimmed(&format!("{folder}/mode")).unwrap_or_default(),
        cpus: root.cpus(&format!("{folder}/cpus_list")).unwrap_or_default(),
        shares,
    })
}

fn level(name: &str) -> Option<u32> {
    match name {
        "L3" | "L3CODE" | "L3DATA" => Some(3),
        "L2" | "L2CODE" | "L2DATA" => Some(2),
        _ => None,
    }
}

fn mask(root: &Root, path: &str) -> Found<u64> {
    let text = root.read_trimmed(path)?;
    u64::from_str_radix(&text, 16)
        .map_err(|_| Missing::Unknown(format!("{path} reads `{text}`, which is no mask")))
}

fn cache(root: &Root, info: &str, name: String, level: u32) -> Found<Cache> {
    let usage = root.read_trimmed(&format!("{info}/bit_usage")).unwrap_or_default();
    let one = |part: &str| {
        let (id, letters) = part.split_once('=')?;
        Some((id.trim().parse().ok()?, letters.trim().to_owned()))
    };
    Ok(Cache {
        name,
        level,
        full: mask(root, &format!("{info}/cbm_mask"))?,
        min_bits: root.parsed(&format!("{info}/min_cbm_bits"))?,
        // Kernels that do not say so refuse gaps on most processors.
        sparse: root.read_trimmed(&format!("{info}/sparse_masks")).is_ok_and(|t| t == "1"),
        hardware: mask(root, &format!("{info}/shareable_bits"))?,
        usage: usage.split(';').filter_map(one).collect(),
    })
}

fn bandwidth(root: &Root, info: &str, options: &[String]) -> Found<Bandwidth> {
    let is_amd = || {
        let cpu = root.text("/proc/cpuinfo").unwrap_or_default();
        cpu.lines().any(|l| l.starts_with("vendor_id") && l.contains("AMD"))
    };
    let unit = if options.iter().any(|o| o == "mba_MBps") {
        BandwidthUnit::Mebibytes
    } else if is_amd() {
        BandwidthUnit::Eighths
    } else {
        BandwidthUnit::Percent
    };
    Ok(Bandwidth {
        min: root.parsed(&format!("{info}/min_bandwidth"))?,
        step: root.parsed::<u64>(&format!("{info}/bandwidth_gran"))?.max(1),
        throttle: root.read_trimmed(&format!("{info}/thread_throttle_mode")).ok(),
        unit,
    })
}

/// The line of `resource` in a text of schemata.
#[must_use]
pub fn shares(text: &str, resource: &str) -> Option<Shares> {
    let line = text.lines().find_map(|l| {
        let (name, rest) = l.split_once(':')?;
        (name.trim() == resource).then_some(rest)
    })?;
    shares_of(line, resource)
}

/// What stands behind the name of `resource`: `0=fff;1=fff`.
#[must_use]
pub fn shares_of(line: &str, resource: &str) -> Option<Shares> {
    let radix = if level(resource).is_some() { 16 } else { 10 };
    let one = |part: &str| {
        let (id, value) = part.split_once('=')?;
        let value = u64::from_str_radix(value.trim(), radix).ok()?;
        Some((id.trim().parse().ok()?, value))
    };
    let all: Option<Shares> = line.trim().trim_end_matches(';').split(';').map(one).collect();
    all.filter(|a| !a.is_empty())
}

/// The same as text, one form for each state.
#[must_use]
pub fn shares_text(resource: &str, shares: &Shares) -> String {
    let hex = level(resource).is_some();
    let one = |(id, n): (&u32, &u64)| if hex { format!("{id}={n:x}") } else { format!("{id}={n}") };
    shares.iter().map(one).collect::<Vec<_>>().join(";")
}

/// The number by which resctrl knows the cache of a level that a CPU uses.
///
/// # Errors
/// The kernel does not say.
pub fn cache_id(root: &Root, cpu: u32, level: u32) -> Found<u32> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    for index in root.list(&folder)?.iter().filter(|n| n.starts_with("index")) {
        let of: u32 = root.parsed(&format!("{folder}/{index}/level"))?;
        if of == level {
            return root.parsed(&format!("{folder}/{index}/id"));
        }
    }
    Err(Missing::NotApplicable(format!("CPU {cpu} has no cache of level {level}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemata_have_one_form() {
        let text = "    MB:0=100;1=  16\nL3CODE:0=0f0;1=fffff\n  SMBA:0=2048;\nL2:uninitialized\n";
        let of = |name: &str| shares(text, name).map(|s| shares_text(name, &s));
        assert_eq!(of("MB").as_deref(), Some("0=100;1=16"));
        assert_eq!(of("L3CODE").as_deref(), Some("0=f0;1=fffff"));
        assert_eq!(of("SMBA").as_deref(), Some("0=2048"));
        assert_eq!((of("L2"), of("L3")), (None, None));
    }

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn what_is_not_there_is_not_applicable_and_what_is_not_mounted_unknown() {
        let (_dir, root) = tree(&[("proc/filesystems", "nodev\tproc\n")]);
        assert!(matches!(Resctrl::read(&root), Err(Missing::NotApplicable(_))));
        let (_dir, root) = tree(&[
            ("proc/filesystems", "nodev\tproc\n"),
            ("proc/cpuinfo", "flags\t\t: fpu rdt_a cat_l3\n"),
        ]);
        let why = Resctrl::read(&root).unwrap_err();
        assert!(why.reason().contains("rdt_a, cat_l3, and this kernel no resctrl"), "{why:?}");
        let (_dir, root) = tree(&[("proc/filesystems", "nodev\tresctrl\n")]);
        let why = Resctrl::read(&root).unwrap_err();
        assert!(matches!(&why, Missing::Unknown(w) if w.contains("not mounted")), "{why:?}");
    }

    #[test]
    fn options_are_those_of_its_own_mount() {
        let line =
            "60 25 0:55 / /sys/fs/resctrl rw,relatime shared:9 - resctrl resctrl rw,cdp,mba_MBps\n";
        let (_dir, root) = tree(&[("proc/self/mountinfo", line)]);
        let words = |w: &[&str]| w.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        assert_eq!(mounted(&root), Ok(Some(words(&["cdp", "mba_MBps"]))));
        let (_dir, root) = tree(&[("proc/self/mountinfo", "25 1 0:2 / / rw - ext4 /dev/x rw\n")]);
        assert_eq!(mounted(&root), Ok(None));
    }

    #[test]
    fn the_cache_of_a_cpu_is_found_by_its_level() {
        let cpu = "sys/devices/system/cpu/cpu1/cache";
        let files = [("index0", "1", "7"), ("index2", "2", "4"), ("index3", "3", "1")];
        let files: Vec<(String, &str)> = files
            .iter()
            .flat_map(|(i, l, id)| {
                [(format!("{cpu}/{i}/level"), *l), (format!("{cpu}/{i}/id"), *id)]
            })
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        let (_dir, root) = tree(&files);
        assert_eq!((cache_id(&root, 1, 3), cache_id(&root, 1, 2)), (Ok(1), Ok(4)));
        assert!(matches!(cache_id(&root, 1, 4), Err(Missing::NotApplicable(_))));
    }
}
