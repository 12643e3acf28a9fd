// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways of caches and memory bandwidth, on a resctrl that is played and refuses what the kernel refuses.
//!
//! No machine of ours has the hardware. Source of its rules and words: fs/resctrl/{rdtgroup,ctrlmondata}.c.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tailbound_core::CpuSet;
use tailbound_host::Root;
use tailbound_host::root::{Found, Missing};
use tailbound_host::threads::Thread;
use tailbound_tune::journal::{self, Places, Undone};
use tailbound_tune::{
    ApplyError, Mode, Moment, Plan, Recipe, Refused, State, System, Target, apply, find, undo,
};

use crate::mortal::Mortal;

const FOLDER: &str = "/sys/fs/resctrl";

/// What the hardware has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hardware {
    /// Names and masks of all ways.
    caches: Vec<(&'static str, u64)>,
    min_bits: u32,
    sparse: bool,
    shareable: u64,
    classes: usize,
    /// Of each CPU, the caches of level 3 and 2.
    ids: Vec<(u32, u32)>,
    siblings: &'static str,
    throttle: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Group {
    mode: String,
    cpus: BTreeSet<u32>,
    shares: BTreeMap<String, BTreeMap<u32, u64>>,
}

/// The file system.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlayedResctrl {
    hardware: Hardware,
    /// The default group has an empty name.
    groups: BTreeMap<String, Group>,
    /// Not mounted there are no groups.
    mounted: Option<String>,
}

/// One socket, 11 ways, of which devices use two: a server.
fn server() -> PlayedResctrl {
    PlayedResctrl::new(Hardware {
        caches: vec![("L3", 0x7ff)],
        min_bits: 1,
        sparse: false,
        shareable: 0x600,
        classes: 16,
        ids: vec![(0, 0), (0, 1), (0, 2), (0, 3)],
        siblings: "",
        throttle: "per-thread",
    })
}

impl PlayedResctrl {
    fn new(hardware: Hardware) -> Self {
        let mut played = Self { hardware, groups: BTreeMap::new(), mounted: None };
        played.mount("plain");
        played
    }

    fn mount(&mut self, options: &str) {
        let cpus = (0..self.hardware.ids.len()).map(|c| c as u32).collect();
        let shares = self.resources().map(|(r, most)| (r.to_owned(), self.everywhere(r, most)));
        let all = Group { mode: "shareable".to_owned(), cpus, shares: shares.collect() };
        self.groups = BTreeMap::from([(String::new(), all)]);
        self.mounted = Some(options.to_owned());
    }

    fn resources(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.hardware.caches.iter().copied().chain([("MB", 100)])
    }

    fn everywhere(&self, resource: &str, value: u64) -> BTreeMap<u32, u64> {
        let id = |(l3, l2): &(u32, u32)| if resource.starts_with("L2") { *l2 } else { *l3 };
        self.hardware.ids.iter().map(|ids| (id(ids), value)).collect()
    }

    fn share(&self, group: &str, resource: &str, id: u32) -> u64 {
        self.groups[group].shares[resource][&id]
    }

    /// Resources that divide the same cache: itself, and code beside data.
    fn peers<'a>(&'a self, resource: &'a str) -> impl Iterator<Item = &'static str> + 'a {
        let level = move |r: &str| r.get(..2) == resource.get(..2);
        self.hardware.caches.iter().map(|(r, _)| *r).filter(move |r| level(r))
    }

    /// rdtgroup_cbm_overlaps
    fn overlaps(&self, of: &str, resource: &str, id: u32, mask: u64, exclusive: bool) -> bool {
        if !exclusive && mask & self.hardware.shareable != 0 {
            return true;
        }
        self.groups.iter().any(|(name, group)| {
            name != of
                && (!exclusive || group.mode == "exclusive")
                && self.peers(resource).any(|peer| self.share(name, peer, id) & mask != 0)
        })
    }

    /// cbm_validate
    fn refuses_mask(&self, full: u64, mask: u64) -> Option<String> {
        let run = (mask >> mask.trailing_zeros().min(63)).trailing_ones();
        if mask & !full != 0 || (mask == 0 && self.hardware.min_bits > 0) {
            return Some("Mask out of range".to_owned());
        }
        if !self.hardware.sparse && run != mask.count_ones() {
            return Some(format!("The mask {mask:x} has non-consecutive 1-bits"));
        }
        let least = self.hardware.min_bits;
        (run < least).then(|| format!("Need at least {least} bits in the mask"))
    }

    fn write_schemata(&mut self, group: &str, text: &str) -> Result<(), String> {
        let (resource, values) = text.split_once(':').ok_or("Missing ':'")?;
        let known = self.resources().find(|(r, _)| *r == resource);
        let (_, most) =
            known.ok_or(format!("Unknown or unsupported resource name '{resource}'"))?;
        let mut new = self.groups[group].shares[resource].clone();
        for part in values.split(';') {
            let (id, value) = part.split_once('=').ok_or("Missing '=' or non-numeric domain")?;
            let id: u32 = id.parse().map_err(|_| "Missing '=' or non-numeric domain")?;
            let radix = if resource == "MB" { 10 } else { 16 };
            let value = u64::from_str_radix(value, radix).map_err(|_| "Non-hex character")?;
            if resource == "MB" {
                if !(10..=100).contains(&value) {
                    return Err(format!("MB value {value} out of range [10,100]"));
                }
            } else {
                if let Some(why) = self.refuses_mask(most, value) {
                    return Err(why);
                }
                if self.overlaps(group, resource, id, value, true) {
                    return Err("Overlaps with exclusive group".to_owned());
                }
                if self.groups[group].mode == "exclusive"
                    && self.overlaps(group, resource, id, value, false)
                {
                    return Err("Overlaps with other group".to_owned());
                }
            }
            // The next step of the hardware.
            let value = if resource == "MB" { value.div_ceil(10) * 10 } else { value };
            new.insert(id, value).ok_or("no such domain")?;
        }
        self.groups.get_mut(group).expect("there").shares.insert(resource.to_owned(), new);
        Ok(())
    }

    fn write_mode(&mut self, group: &str, mode: &str) -> Result<(), String> {
        let caches: Vec<&str> = self.hardware.caches.iter().map(|(r, _)| *r).collect();
        if mode == "exclusive" {
            if caches.is_empty() {
                return Err("Cannot be exclusive without CAT/CDP".to_owned());
            }
            let overlaps = |r: &&str| {
                let own = &self.groups[group].shares[*r];
                own.iter().any(|(id, mask)| self.overlaps(group, r, *id, *mask, false))
            };
            if caches.iter().any(overlaps) {
                return Err("Schemata overlaps".to_owned());
            }
        }
        self.groups.get_mut(group).expect("there").mode = mode.to_owned();
        Ok(())
    }

    fn write_cpus(&mut self, group: &str, list: &str) {
        let new: BTreeSet<u32> = list.parse::<CpuSet>().expect("a list").iter().collect();
        let dropped: Vec<u32> = self.groups[group].cpus.difference(&new).copied().collect();
        for other in self.groups.values_mut() {
            other.cpus = other.cpus.difference(&new).copied().collect();
        }
        self.groups.get_mut("").expect("there").cpus.extend(dropped);
        self.groups.get_mut(group).expect("there").cpus = new;
    }

    /// rdtgroup_init_alloc
    fn make(&mut self, group: &str) -> Result<(), String> {
        if self.groups.len() >= self.hardware.classes {
            return Err("Out of CLOSIDs".to_owned());
        }
        let mut shares = BTreeMap::new();
        for (resource, most) in self.resources() {
            let mut own = self.everywhere(resource, most);
            for (id, mask) in own.iter_mut().filter(|_| resource != "MB") {
                let kept = self.groups.values().filter(|g| g.mode == "exclusive");
                let free = *mask & !kept.fold(0, |all, g| all | g.shares[resource][id]);
                let run = (free >> free.trailing_zeros().min(63)).trailing_ones();
                *mask = ((1 << run) - 1) << free.trailing_zeros().min(63);
            }
            shares.insert(resource.to_owned(), own);
        }
        let made = Group { mode: "shareable".to_owned(), cpus: BTreeSet::new(), shares };
        self.groups.insert(group.to_owned(), made);
        Ok(())
    }

    fn remove(&mut self, group: &str) {
        let gone = self.groups.remove(group).expect("there");
        self.groups.get_mut("").expect("there").cpus.extend(gone.cpus);
    }

    /// What a file reads.
    fn file(&self, path: &str) -> Option<String> {
        self.mounted.as_ref()?;
        let below = path.strip_prefix(FOLDER)?.strip_prefix('/')?;
        let (name, file) = below.rsplit_once('/').unwrap_or(("", below));
        let group = self.groups.get(name)?;
        let line = |(r, values): (&String, &BTreeMap<u32, u64>)| {
            let one = |(id, v): (&u32, &u64)| match r.as_str() {
                "MB" => format!("{id}={v:4}"),
                _ => format!("{id}={v:03x}"),
            };
            format!("{r:>6}:{}\n", values.iter().map(one).collect::<Vec<_>>().join(";"))
        };
        Some(match file {
            "schemata" => group.shares.iter().map(line).collect(),
            "mode" => format!("{}\n", group.mode),
            "cpus_list" => format!("{}\n", group.cpus.iter().copied().collect::<CpuSet>()),
            _ => return None,
        })
    }

    /// A tree of files that shows it, for plans.
    fn tree(&self) -> tempfile::TempDir {
        let room = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| put(room.path(), path, text);
        let last = self.hardware.ids.len() - 1;
        for name in ["online", "present", "possible"] {
            put(&format!("sys/devices/system/cpu/{name}"), &format!("0-{last}"));
        }
        for (cpu, (l3, l2)) in self.hardware.ids.iter().enumerate() {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            for (index, level, id) in [(0, 1, cpu as u32), (2, 2, *l2), (3, 3, *l3)] {
                put(&format!("{folder}/cache/index{index}/level"), &level.to_string());
                put(&format!("{folder}/cache/index{index}/id"), &id.to_string());
            }
            put(&format!("{folder}/topology/thread_siblings_list"), self.hardware.siblings);
        }
        put("proc/filesystems", "nodev\tresctrl");
        let line = |o: &String| {
            let o = o.replace("plain", "relatime");
            format!("60 25 0:55 / {FOLDER} rw shared:9 - resctrl resctrl rw,{o}")
        };
        put("proc/self/mountinfo", &self.mounted.as_ref().map(line).unwrap_or_default());
        if self.mounted.is_none() {
            return room;
        }
        for name in self.groups.keys() {
            let folder =
                if name.is_empty() { FOLDER.to_owned() } else { format!("{FOLDER}/{name}") };
            for file in ["schemata", "mode", "cpus_list"] {
                let path = format!("{folder}/{file}");
                put(path.trim_start_matches('/'), &self.file(&path).expect("there"));
            }
        }
        let info = "sys/fs/resctrl/info";
        for (name, full) in &self.hardware.caches {
            for (file, text) in [
                ("cbm_mask", format!("{full:x}")),
                ("min_cbm_bits", self.hardware.min_bits.to_string()),
                ("sparse_masks", u32::from(self.hardware.sparse).to_string()),
                ("shareable_bits", format!("{:x}", self.hardware.shareable)),
                ("num_closids", self.hardware.classes.to_string()),
            ] {
                put(&format!("{info}/{name}/{file}"), &text);
            }
        }
        for (file, text) in [
            ("min_bandwidth", "10"),
            ("bandwidth_gran", "10"),
            ("num_closids", "8"),
            ("thread_throttle_mode", self.hardware.throttle),
        ] {
            put(&format!("{info}/MB/{file}"), text);
        }
        room
    }

    fn plan(&self, settings: &str) -> Plan {
        let tree = self.tree();
        let profile = format!("name = \"test\"\n[settings]\n{settings}\n");
        let recipe = Recipe { profile, rt_cpus: "2-3".to_owned(), ..Recipe::default() };
        recipe.plan(&Root::at(tree.path())).expect(settings)
    }
}

fn put(room: &Path, path: &str, text: &str) {
    let path = room.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
    fs::write(path, format!("{}\n", text.trim_end())).expect("writable");
}

impl System for PlayedResctrl {
    fn read(&self, target: &Target) -> Found<State> {
        match target {
            Target::Resctrl => Ok(self.mounted.clone()),
            Target::Group { path } => {
                let name = path.rsplit('/').next().unwrap_or_default();
                Ok(self.groups.contains_key(name).then(|| "7".to_owned()))
            }
            Target::Setting { path, codec } => match self.file(path) {
                Some(text) => Ok(Some(codec.decode(&text).expect("of that form"))),
                None => Err(Missing::NotApplicable(format!("there is no {path}"))),
            },
            other => Err(Missing::Unknown(format!("{other} is not played"))),
        }
    }

    fn write(&mut self, target: &Target, state: &State) -> Result<(), Refused> {
        let said = |why: String| Refused::Denied(format!("{target}: resctrl says: {why}"));
        match (target, state) {
            (Target::Resctrl, Some(options)) => self.mount(options),
            (Target::Resctrl, None) if self.groups.len() > 1 => {
                return Err(Refused::Gone("stays mounted: a group is there".to_owned()));
            }
            (Target::Resctrl, None) => (self.groups, self.mounted) = (BTreeMap::new(), None),
            (Target::Group { path }, state) => {
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                match state {
                    Some(_) => self.make(&name).map_err(said)?,
                    None => self.remove(&name),
                }
            }
            (Target::Setting { path, codec }, Some(state)) => {
                if self.file(path).is_none() {
                    return Err(Refused::Gone(format!("there is no {path}")));
                }
                let text = codec.encode(state).expect("of that form");
                let below = path.strip_prefix("/sys/fs/resctrl/").expect("of resctrl");
                let (group, file) = below.rsplit_once('/').unwrap_or(("", below));
                match file {
                    "schemata" => self.write_schemata(group, &text).map_err(said)?,
                    "mode" => self.write_mode(group, &text).map_err(said)?,
                    _ => self.write_cpus(group, &text),
                }
            }
            (other, _) => return Err(Refused::Denied(format!("{other} is not played"))),
        }
        Ok(())
    }

    fn anchor(&self, _: &Target) -> Option<u64> {
        self.mounted.is_some().then_some(1)
    }

    fn moment(&self) -> Found<Moment> {
        Ok(Moment::default())
    }

    fn threads(&self) -> Found<Vec<Thread>> {
        Ok(Vec::new())
    }
}

/// The machines on which plans are tried, with their settings.
fn all() -> Vec<(&'static str, PlayedResctrl, &'static str)> {
    let of = |change: fn(&mut Hardware)| {
        let mut hardware = server().hardware;
        change(&mut hardware);
        PlayedResctrl::new(hardware)
    };
    let mut unmounted = server();
    (unmounted.groups, unmounted.mounted) = (BTreeMap::new(), None);
    let mut beside = server();
    beside.make("web").expect("room");
    beside.write_schemata("", "L3:0=7f0").expect("valid");
    beside.write_schemata("web", "L3:0=00f").expect("valid");
    beside.write_mode("web", "exclusive").expect("alone");
    vec![
        ("server", server(), "cache-ways = 4\nmemory-bandwidth = \"50%\""),
        ("beside others", beside, "cache-ways = 3"),
        ("bandwidth alone", server(), "memory-bandwidth = \"10%\""),
        (
            "code and data",
            of(|h| h.caches = vec![("L3CODE", 0xfffff), ("L3DATA", 0xfffff)]),
            "cache-ways = 4",
        ),
        (
            "two caches, masks may be empty",
            of(|h| {
                h.caches = vec![("L3", 0xffff)];
                (h.min_bits, h.sparse, h.shareable) = (0, true, 0);
                h.ids = vec![(0, 0), (0, 1), (1, 2), (1, 3)];
            }),
            "cache-ways = 5",
        ),
        (
            "both levels",
            of(|h| {
                h.caches = vec![("L2", 0xff), ("L3", 0xfff)];
                (h.min_bits, h.shareable) = (2, 0);
                h.ids = vec![(0, 0), (0, 0), (0, 1), (0, 1)];
            }),
            "cache-ways = 3\nl2-ways = 2",
        ),
        ("to be mounted", unmounted, "resctrl = \"code-and-data\""),
    ]
}

fn death() {
    std::panic::resume_unwind(Box::new("killed"));
}

fn undone(machine: &mut PlayedResctrl, places: &Places) -> Vec<Undone> {
    let mut all = Vec::new();
    for transaction in journal::all(places).expect("readable").iter().rev() {
        let report = undo(machine, places, transaction, Mode::default(), "t").expect("writable");
        all.extend(report.outcomes.into_iter().map(|(_, outcome)| outcome));
    }
    all
}

#[test]
fn a_server_gives_ways_and_bandwidth_and_gets_them_back() {
    let mut machine = server();
    let before = machine.clone();
    let plan = machine.plan("cache-ways = 4\nmemory-bandwidth = \"50%\"");
    let shown: Vec<String> = plan.steps.iter().map(tailbound_tune::arrow).collect();
    assert_eq!(
        shown,
        [
            "absent → new",
            "nothing → 2-3",
            "0=7ff → 0=7f0",
            "0=7ff → 0=f",
            "shareable → exclusive",
            "0=100 → 0=50"
        ]
    );
    assert!(plan.left_out.is_empty(), "{:?}", plan.left_out);
    let script = plan.script();
    assert!(script.contains("mkdir /sys/fs/resctrl/tailbound\n"), "{script}");
    assert!(script.contains("echo L3:0=f > /sys/fs/resctrl/tailbound/schemata\n"), "{script}");
    let room = tempfile::tempdir().expect("a folder");
    let places = Places::below(room.path());
    let applied = apply(&mut machine, &places, &plan, "t", &mut |_, _| ()).expect("valid");
    assert_eq!((applied.made, applied.skipped.len()), (6, 0));
    let group = &machine.groups["tailbound"];
    assert_eq!((group.mode.as_str(), group.cpus.len()), ("exclusive", 2));
    assert_eq!(machine.share("", "L3", 0) & machine.share("tailbound", "L3", 0), 0);
    assert_eq!((machine.share("", "MB", 0), machine.share("tailbound", "MB", 0)), (50, 100));
    // Planned a second time it would take the group of the first.
    let again = machine.plan("cache-ways = 4");
    assert!(again.steps.is_empty() && again.left_out[0].why.contains("is there already"));
    assert!(undone(&mut machine, &places).iter().all(|o| *o == Undone::Restored));
    assert_eq!(machine, before);
}

#[test]
fn a_kill_at_every_call_is_undone_exactly_on_every_hardware() {
    for (name, machine, settings) in all() {
        let plan = machine.plan(settings);
        assert!(!plan.steps.is_empty(), "{name}: {:?}", plan.left_out);
        let mut survived = false;
        for dies_at in 1..100 {
            // In memory where that is possible: every line of a journal waits for the disk.
            let room = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
            let (mut subject, room) = (machine.clone(), room.expect("a folder"));
            let places = Places::below(room.path());
            let mut mortal = Mortal { machine: &mut subject, calls: Cell::new(0), dies_at, death };
            let applied = catch_unwind(AssertUnwindSafe(|| {
                apply(&mut mortal, &places, &plan, "t", &mut |_, _| ())
            }));
            if let Ok(applied) = &applied {
                let applied = applied.as_ref().unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(applied.made, plan.steps.len(), "{name}");
            }
            // Killed once more while it is undone.
            for transaction in journal::all(&places).expect("readable") {
                let mut mortal =
                    Mortal { machine: &mut subject, calls: Cell::new(0), dies_at, death };
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    undo(&mut mortal, &places, &transaction, Mode::default(), "t")
                }));
            }
            let left = undone(&mut subject, &places);
            assert!(!left.iter().any(Undone::is_left), "{name}, call {dies_at}: {left:?}");
            assert_eq!(subject, machine, "{name}, call {dies_at}");
            survived |= applied.is_ok();
            if survived {
                break;
            }
        }
        assert!(survived, "{name}");
    }
}

#[test]
fn a_group_is_exclusive_where_that_costs_no_cache_of_others() {
    let modes = |name: &str| {
        let all = all();
        let (_, machine, settings) = all.iter().find(|(n, ..)| *n == name).expect(name);
        let plan = machine.plan(settings);
        let sealed = plan.steps.iter().any(|s| s.new.as_deref() == Some("exclusive"));
        (sealed, plan.left_out.iter().any(|l| l.why.contains("stays shareable")))
    };
    assert_eq!(modes("code and data"), (true, false));
    assert_eq!(modes("beside others"), (true, false));
    assert_eq!(modes("two caches, masks may be empty"), (true, false));
    assert_eq!(modes("both levels"), (false, true));
}

#[test]
fn what_the_hardware_or_others_forbid_is_said_and_nothing_is_planned() {
    let why = |machine: &PlayedResctrl, settings: &str| {
        let plan = machine.plan(settings);
        assert_eq!(plan.steps, [], "{settings}");
        let left = plan.left_out.into_iter().next().expect("a reason");
        assert!(!left.harmless, "{left:?}");
        left.why
    };
    let mut machine = server();
    let said = why(&machine, "cache-ways = 11");
    assert!(said.contains("of its 11 ways at most 9 can be had"), "{said}");
    let said = why(&machine, "memory-bandwidth = \"55%\"");
    assert!(said.contains("10 to 100, in steps of 10"), "{said}");
    assert!(why(&machine, "memory-bandwidth = \"4000MBps\"").contains("resctrl=mbps"));
    assert!(why(&machine, "resctrl = \"mbps\"").contains("mounted already, with other options"));
    machine.hardware.min_bits = 2;
    assert!(why(&machine, "cache-ways = 1").contains("at least 2 ways"));
    (machine.hardware.throttle, machine.hardware.siblings) = ("max", "1,3");
    let said = why(&machine, "memory-bandwidth = \"50%\"");
    assert!(said.contains("shares its core with CPUs 1"), "{said}");
    let mut machine = server();
    machine.make("web").expect("room");
    let said = why(&machine, "cache-ways = 2");
    assert!(said.contains("at most 0 can be had") && said.contains("group web"), "{said}");
    machine.write_schemata("web", "L3:0=f").expect("valid");
    machine.write_cpus("web", "3");
    assert!(why(&machine, "cache-ways = 2").contains("CPUs 3 belong to group web"));
    machine.write_cpus("web", "");
    machine.hardware.classes = 2;
    assert!(why(&machine, "cache-ways = 2").contains("the hardware tells 2 groups apart"));
    (machine.groups, machine.mounted) = (BTreeMap::new(), None);
    assert!(why(&machine, "cache-ways = 2").contains("tailbound tune set resctrl=mounted"));
}

#[test]
fn a_refusal_of_the_kernel_is_told_in_its_words_and_rolled_back() {
    let mut machine = server();
    let plan = machine.plan("cache-ways = 4");
    // Since the plan was made somebody has taken the same ways.
    machine.make("web").expect("room");
    machine.write_schemata("web", "L3:0=3").expect("valid");
    machine.write_schemata("", "L3:0=7fc").expect("valid");
    machine.write_mode("web", "exclusive").expect("alone");
    let before = machine.clone();
    let room = tempfile::tempdir().expect("a folder");
    let places = Places::below(room.path());
    let error = apply(&mut machine, &places, &plan, "t", &mut |_, _| ()).expect_err("refused");
    let said = error.to_string();
    assert!(matches!(error, ApplyError::Step { .. }), "{said}");
    assert!(said.contains("resctrl says: Overlaps with exclusive group"), "{said}");
    assert_eq!(machine, before);
}

#[test]
fn what_another_program_changed_meanwhile_is_left() {
    let mut machine = server();
    let plan = machine.plan("cache-ways = 4");
    let room = tempfile::tempdir().expect("a folder");
    let places = Places::below(room.path());
    apply(&mut machine, &places, &plan, "t", &mut |_, _| ()).expect("valid");
    machine.write_schemata("", "L3:0=7c0").expect("valid");
    let outcomes = undone(&mut machine, &places);
    assert_eq!(outcomes.iter().filter(|o| o.is_left()).count(), 1, "{outcomes:?}");
    assert_eq!((machine.share("", "L3", 0), machine.groups.len()), (0x7c0, 1));
    // A mount of ours that somebody else uses by now.
    let mut machine = server();
    (machine.groups, machine.mounted) = (BTreeMap::new(), None);
    let plan = machine.plan("resctrl = \"mounted\"");
    let room = tempfile::tempdir().expect("a folder");
    let places = Places::below(room.path());
    let number = apply(&mut machine, &places, &plan, "t", &mut |_, _| ()).expect("valid").number;
    machine.make("web").expect("room");
    let outcomes = undone(&mut machine, &places);
    assert!(matches!(outcomes.as_slice(), [Undone::Gone(why)] if why.contains("stays mounted")));
    assert!(machine.groups.contains_key("web"));
    assert!(find(&places, number).expect("readable").expect("there").has_ended());
}
