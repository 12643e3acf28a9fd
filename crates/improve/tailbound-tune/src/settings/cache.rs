// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways of caches and memory bandwidth for the real-time CPUs alone (CAT, MBA; MPAM of arm64), by resctrl.
//!
//! The real-time CPUs become a control group; the default group gives ways up, or is limited. Nothing of another group is
//! touched. Which ways there are is known once resctrl is mounted, so that is a setting, and a change, of its own.
//! The group is exclusive where that costs no cache that it does not use: the kernel then refuses groups that overlap it.
//! Not here: which ways (`resctrl`). Source: Documentation/filesystems/resctrl.rst.

use tailbound_core::CpuSet;
use tailbound_host::resctrl::{
    BANDWIDTH, Cache, ControlGroup, FOLDER, Resctrl, Shares, cache_id, shares_of, shares_text,
};
use tailbound_host::root::Missing;

use super::{Draft, Effect, Omission, OnRefusal, Setting, Value, Values};
use crate::codec::Codec;
use crate::resctrl::{self, BandwidthLimit, DivisibleCache, GROUP, PLAIN};
use crate::target::Target;

pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        name: "resctrl",
        about: "The file system by which caches and memory bandwidth are divided is mounted; undo takes it away, unless others use it",
        cures: &[],
        cost: "none",
        values: Values::Words(&[
            ("mounted", PLAIN),
            ("code-and-data", "cdp"),
            ("mbps", "mba_MBps"),
        ]),
        needs_cpus: false,
        effect: Effect::Function(mount),
    },
    Setting {
        name: "cache-ways",
        about: "So many ways of the last-level cache are for the real-time CPUs alone (CAT, MPAM)",
        cures: &["iso.cache-ways", "iso.llc-shared"],
        cost: "less cache for everything else",
        values: Values::Number(1, 63),
        needs_cpus: true,
        effect: Effect::Function(|draft, value| caches(draft, value, 3)),
    },
    Setting {
        name: "l2-ways",
        about: "So many ways of the level 2 caches are for the real-time CPUs alone",
        cures: &["iso.cache-ways"],
        cost: "less cache for other CPUs of the same core",
        values: Values::Number(1, 63),
        needs_cpus: true,
        effect: Effect::Function(|draft, value| caches(draft, value, 2)),
    },
    Setting {
        name: "memory-bandwidth",
        about: "Everything but the real-time CPUs gets at most so much of the memory bandwidth (MBA, MPAM)",
        cures: &["iso.memory-bandwidth"],
        cost: "everything else is slower where it uses much memory",
        values: Values::Bandwidth,
        needs_cpus: true,
        effect: Effect::Function(bandwidth),
    },
];

fn mount(draft: &mut Draft<'_>, value: &Value) {
    match Resctrl::read(&draft.facts.root) {
        Err(Missing::NotApplicable(why)) => return draft.leave_out(why, Omission::Harmless),
        Err(Missing::Unknown(_)) | Ok(_) => {}
    }
    match draft.read(&Target::Resctrl) {
        Some(None) => {
            draft.push(Target::Resctrl, None, Some(value.0.clone()), OnRefusal::Undo);
        }
        Some(Some(now)) if now == value.0 => {
            draft.leave_out(format!("{FOLDER} is mounted already"), Omission::Harmless);
        }
        Some(Some(now)) => draft.leave_out(
            format!("{FOLDER} is mounted already, with other options ({now}): whoever uses it would lose its groups"),
            Omission::Wanting,
        ),
        None => {}
    }
}

/// What is there, where the group of the real-time CPUs is planned already or may be.
fn read(draft: &mut Draft<'_>) -> Option<Resctrl> {
    let all = match Resctrl::read(&draft.facts.root) {
        Ok(all) => all,
        Err(why) => {
            let omission = match why {
                Missing::NotApplicable(_) => Omission::Harmless,
                Missing::Unknown(_) => Omission::Wanting,
            };
            draft.leave_out(why.reason().to_owned(), omission);
            return None;
        }
    };
    match refusal(draft, &all) {
        Some(why) if draft.planned(&group()).is_none() => {
            draft.leave_out(why, Omission::Wanting);
            None
        }
        _ => Some(all),
    }
}

fn group() -> Target {
    Target::Group { path: format!("{FOLDER}/{GROUP}") }
}

/// Why there can be no group of the real-time CPUs.
fn refusal(draft: &Draft<'_>, all: &Resctrl) -> Option<String> {
    if all.groups.iter().any(|g| g.name == GROUP) {
        return Some(format!(
            "{FOLDER}/{GROUP} is there already: undo what made it first (tailbound tune status)"
        ));
    }
    for other in all.others(GROUP) {
        let mine = other.cpus.and(&draft.facts.rt);
        if !mine.is_empty() {
            // Given back they would go to the default group, so taking them could not be undone.
            return Some(format!("CPUs {mine} belong to {} of resctrl", other.label()));
        }
    }
    match all.classes {
        Some(n) if n <= all.groups.len() => {
            Some(format!("the hardware tells {n} groups apart, and there are as many"))
        }
        _ => None,
    }
}

/// The file of schemata of the default group (an empty name) or of another.
fn schemata(name: &str, resource: &str) -> Target {
    let folder = if name.is_empty() { FOLDER.to_owned() } else { format!("{FOLDER}/{name}") };
    Target::setting(format!("{folder}/schemata"), Codec::Schemata(resource.to_owned()))
}

/// The group of the real-time CPUs, made once in a plan. A new group has all that is shared, so its CPUs move there before
/// anything is taken from the default group, and come back when it has everything again.
fn make_group(draft: &mut Draft<'_>) {
    if draft.planned(&group()).is_none() {
        let cpus = Target::setting(format!("{FOLDER}/{GROUP}/cpus_list"), Codec::List);
        let rt = draft.facts.rt.to_string();
        draft.push(group(), None, Some("new".to_owned()), OnRefusal::Undo);
        draft.push(cpus, Some(String::new()), Some(rt), OnRefusal::Undo);
    }
}

/// The caches of a level that real-time CPUs use, with these CPUs.
fn used(draft: &Draft<'_>, level: u32) -> Result<Vec<(u32, CpuSet)>, Missing> {
    let mut all: Vec<(u32, CpuSet)> = Vec::new();
    for cpu in draft.facts.rt.iter() {
        let id = cache_id(&draft.facts.root, cpu, level)?;
        match all.iter_mut().find(|(known, _)| *known == id) {
            Some((_, cpus)) => *cpus = cpus.iter().chain([cpu]).collect(),
            None => all.push((id, [cpu].into_iter().collect())),
        }
    }
    Ok(all)
}

fn caches(draft: &mut Draft<'_>, value: &Value, level: u32) {
    let Ok(n) = value.0.parse::<u32>() else { return };
    let Some(all) = read(draft) else { return };
    let of_level = all.level(level);
    if of_level.is_empty() {
        return draft.leave_out(
            format!("this CPU cannot divide its caches of level {level}"),
            Omission::Harmless,
        );
    }
    let used = match used(draft, level) {
        Ok(used) => used,
        Err(why) => return draft.leave_out(why.reason().to_owned(), Omission::Wanting),
    };
    let mut chosen = Vec::new();
    for (id, _) in &used {
        let rooms: Vec<DivisibleCache> =
            of_level.iter().map(|cache| room(&all, &of_level, cache, *id)).collect();
        match resctrl::ways(&rooms, n) {
            Ok(mask) => chosen.push((*id, mask)),
            Err(why) => {
                let why = format!(
                    "{n} ways of cache {id} of level {level}: {why}{}",
                    whose(&all, &of_level, *id)
                );
                return draft.leave_out(why, Omission::Wanting);
            }
        }
    }
    make_group(draft);
    for cache in of_level {
        divide(draft, &all, cache, &chosen);
    }
    seal(draft, &all);
}

/// Ways of groups that are not the default one, and of devices, in any resource of the level: code and data share them.
fn taken(all: &Resctrl, of_level: &[&Cache], id: u32) -> u64 {
    let mut taken = 0;
    for cache in of_level {
        taken |= cache.hardware;
        taken |= all.others(GROUP).filter_map(|g| g.share(&cache.name, id)).fold(0, |a, m| a | m);
        let letters = cache.usage.get(&id).map(String::as_str).unwrap_or_default();
        // A locked region has no group that says so.
        for (at, letter) in letters.chars().rev().take(64).enumerate() {
            taken |= if letter == 'P' { 1 << at } else { 0 };
        }
    }
    taken
}

fn room(all: &Resctrl, of_level: &[&Cache], cache: &Cache, id: u32) -> DivisibleCache {
    DivisibleCache {
        full: cache.full,
        min_bits: cache.min_bits,
        sparse: cache.sparse,
        taken: taken(all, of_level, id),
        rest: all.default_group().and_then(|g| g.share(&cache.name, id)).unwrap_or(0),
    }
}

/// The groups of others that have ways there.
fn whose(all: &Resctrl, of_level: &[&Cache], id: u32) -> String {
    let has =
        |g: &&ControlGroup| of_level.iter().any(|c| g.share(&c.name, id).is_some_and(|m| m != 0));
    let names: Vec<String> = all.others(GROUP).filter(has).map(ControlGroup::label).collect();
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}

/// The steps for one resource: the default group gives the ways up, and the group has them alone.
fn divide(draft: &mut Draft<'_>, all: &Resctrl, cache: &Cache, chosen: &[(u32, u64)]) {
    let Some(old) = all.default_group().and_then(|g| g.shares.get(&cache.name)) else { return };
    let own = |id: &u32| chosen.iter().find(|(known, _)| known == id).map(|(_, mask)| *mask);
    let rest: Shares = old.iter().map(|(id, m)| (*id, m & !own(id).unwrap_or(0))).collect();
    // In caches that no real-time CPU uses it needs none: where the hardware takes that it has none.
    let elsewhere = |mask: u64| if cache.min_bits == 0 { 0 } else { mask };
    let ours: Shares = old.iter().map(|(id, m)| (*id, own(id).unwrap_or(elsewhere(*m)))).collect();
    let first: Shares = old.keys().map(|id| (*id, resctrl::at_first(all, cache, *id))).collect();
    for (name, old, new) in [("", old, rest), (GROUP, &first, ours)] {
        let text = |shares: &Shares| Some(shares_text(&cache.name, shares));
        if *old != new {
            draft.push(schemata(name, &cache.name), text(old), text(&new), OnRefusal::Undo);
        }
    }
}

/// The group becomes exclusive where it overlaps nothing in any cache: the kernel asks for no less.
fn seal(draft: &mut Draft<'_>, all: &Resctrl) {
    let mode = Target::setting(format!("{FOLDER}/{GROUP}/mode"), Codec::Text);
    if draft.planned(&mode).is_some() {
        return;
    }
    if all.caches.iter().all(|cache| is_alone(draft, all, cache)) {
        let word = |w: &str| Some(w.to_owned());
        draft.push(mode, word("shareable"), word("exclusive"), OnRefusal::Undo);
    } else {
        let why = "the group stays shareable, because an exclusive one would need ways of caches that no real-time CPU uses: a group that is made later may overlap it";
        draft.leave_out(why.to_owned(), Omission::Harmless);
    }
}

fn is_alone(draft: &Draft<'_>, all: &Resctrl, cache: &Cache) -> bool {
    let planned = |name: &str, resource: &str| {
        shares_of(draft.planned(&schemata(name, resource))?.as_deref()?, resource)
    };
    let Some(ours) = planned(GROUP, &cache.name) else { return false };
    let of_level = all.level(cache.level);
    ours.iter().all(|(id, mask)| {
        let rest = of_level.iter().fold(0, |sum, peer| {
            let planned = planned("", &peer.name).and_then(|s| s.get(id).copied());
            let now = || all.default_group().and_then(|g| g.share(&peer.name, *id));
            sum | planned.or_else(now).unwrap_or(u64::MAX)
        });
        mask & (rest | taken(all, &of_level, *id)) == 0
    })
}

fn bandwidth(draft: &mut Draft<'_>, value: &Value) {
    let Some(limit) = BandwidthLimit::parse(&value.0) else { return };
    let Some(all) = read(draft) else { return };
    let Some(hardware) = &all.bandwidth else {
        return draft
            .leave_out("this CPU cannot limit memory bandwidth".to_owned(), Omission::Harmless);
    };
    let old =
        all.default_group().and_then(|g| g.shares.get(BANDWIDTH)).cloned().unwrap_or_default();
    let used = match used(draft, 3) {
        Ok(used) => used,
        Err(why) => return draft.leave_out(why.reason().to_owned(), Omission::Wanting),
    };
    if let Some(why) = throttled(draft, hardware.throttle.as_deref()) {
        return draft.leave_out(why, Omission::Wanting);
    }
    let mut new = old.clone();
    for (id, _) in &used {
        let Some(now) = old.get(id) else { continue };
        match limit.value(hardware, *now) {
            Ok(value) => new.insert(*id, value.min(*now)),
            Err(why) => {
                let why = format!("{} is no limit here: {why}", value.0);
                return draft.leave_out(why, Omission::Wanting);
            }
        };
    }
    if new == old {
        return draft
            .leave_out("the default group is limited so already".to_owned(), Omission::Harmless);
    }
    // Its own bandwidth is all there is: a new group begins so.
    make_group(draft);
    let text = |shares: &Shares| Some(shares_text(BANDWIDTH, shares));
    draft.push(schemata("", BANDWIDTH), text(&old), text(&new), OnRefusal::Undo);
}

/// Why a limit on everything else would slow a real-time CPU down: on some processors the threads of a core get the smaller
/// of their limits.
fn throttled(draft: &Draft<'_>, mode: Option<&str>) -> Option<String> {
    let facts = draft.facts;
    let may_be = match mode {
        Some(mode) => mode == "max",
        None => facts.root.text("/proc/cpuinfo").is_ok_and(|t| t.contains("GenuineIntel")),
    };
    let other = facts.rt.iter().find_map(|cpu| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let others = facts.root.cpus(&path).unwrap_or_default().and(&facts.online).minus(&facts.rt);
        (!others.is_empty()).then_some((cpu, others))
    });
    let (cpu, others) = other.filter(|_| may_be)?;
    Some(format!(
        "CPU {cpu} shares its core with CPUs {others}, and this processor limits both alike (thread_throttle_mode): \
         name all of a core as real-time, or switch siblings=off"
    ))
}
