// SPDX-License-Identifier: MIT OR Apache-2.0
//! What resctrl needs beyond files: its mount, the reason of a refusal, and which ways of a cache may be one group's own.
//!
//! Ways are chosen so that the kernel takes them: beside each other, enough of them, none that devices use (an exclusive
//! group may have none of those), none of a group of others, and what is left for everything else is valid as well.
//! Not here: reading the file system (`tailbound_host::resctrl`), the settings (`settings::cache`).
//! Source: Documentation/filesystems/resctrl.rst, cbm_validate in fs/resctrl/ctrlmondata.c.

use tailbound_host::resctrl::{self, BANDWIDTH, Bandwidth, BandwidthUnit, Cache, FOLDER, Resctrl};
use tailbound_host::root::{Found, Root};
use tailbound_sys::kernel_fs;

use crate::refused::Refused;
use crate::step::State;

/// Name of the control group of the real-time CPUs.
pub(crate) const GROUP: &str = "tailbound";
/// Mounted without an option that means something.
pub(crate) const PLAIN: &str = "plain";

/// Is it a folder or file of resctrl?
pub(crate) fn is_inside(path: &str) -> bool {
    path.strip_prefix(FOLDER).is_some_and(|rest| rest.starts_with('/'))
}

/// What resctrl says of the command that it refused last, behind a semicolon.
pub(crate) fn reason(root: &Root, path: &str) -> String {
    if !is_inside(path) {
        return String::new();
    }
    match root.read_trimmed(&format!("{FOLDER}/info/last_cmd_status")) {
        Ok(word) if !word.is_empty() && word != "ok" => {
            format!("; resctrl says: {}", tailbound_core::printable::excerpt(&word, 120))
        }
        _ => String::new(),
    }
}

/// Its options, or absent.
pub(crate) fn mounted(root: &Root) -> Found<State> {
    let plain = |options: Vec<String>| match options.is_empty() {
        true => PLAIN.to_owned(),
        false => options.join(","),
    };
    Ok(resctrl::mounted(root)?.map(plain))
}

/// Mounts it with the options of `state`, or takes it away where nobody uses it.
pub(crate) fn mount(root: &Root, state: &State) -> Result<(), Refused> {
    let denied = |what: &dyn std::fmt::Display| Refused::Denied(format!("{FOLDER}: {what}"));
    if !root.is_real() {
        return Err(denied(&"a tree of files has no mounts"));
    }
    match state {
        Some(options) => {
            let words = if options == PLAIN { "" } else { options.as_str() };
            kernel_fs::mount("resctrl", FOLDER, words).map_err(|e| {
                if e.is_busy() {
                    denied(&"it is mounted for other processes alone")
                } else {
                    denied(&e)
                }
            })
        }
        None => {
            if let Some(who) = in_use(&Resctrl::read(root)?).or_else(|| watched(root)) {
                return Err(Refused::Gone(format!("{FOLDER} stays mounted: {who}")));
            }
            kernel_fs::unmount(FOLDER).map_err(|e| denied(&e))
        }
    }
}

/// Who would lose something if it were taken away: every mount begins with one group that has everything.
pub(crate) fn in_use(all: &Resctrl) -> Option<String> {
    if let Some(group) = all.groups.get(1) {
        return Some(format!("{} is there", group.label()));
    }
    let own = all.default_group()?;
    let narrow = |name: &str, most: u64| {
        own.shares.get(name).is_some_and(|s| s.values().any(|value| *value != most))
    };
    let most = all.bandwidth.as_ref().and_then(|b| match b.unit {
        BandwidthUnit::Percent => Some(100),
        BandwidthUnit::Mebibytes => Some(u64::from(u32::MAX)),
        BandwidthUnit::Eighths => None,
    });
    let caches = all.caches.iter().map(|c| (c.name.as_str(), c.full));
    let mut resources = caches.chain(most.map(|most| (BANDWIDTH, most)));
    let (name, _) = resources.find(|(name, most)| narrow(name, *most))?;
    Some(format!("the default group has not all of {name}"))
}

/// Groups that only watch are lost with a mount too.
fn watched(root: &Root) -> Option<String> {
    let names = root.list(&format!("{FOLDER}/mon_groups")).unwrap_or_default();
    let name = names.first()?;
    Some(format!("monitoring group {} is there", tailbound_core::printable::line(name)))
}

/// `mount -t resctrl -o cdp resctrl /sys/fs/resctrl`
pub(crate) fn mount_command(options: &str) -> String {
    let options = if options == PLAIN { String::new() } else { format!(" -o {options}") };
    format!("mount -t resctrl{options} resctrl {FOLDER}")
}

/// One cache, as far as its ways are to be divided: of the resources of a level what counts for one cache of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DivisibleCache {
    /// All ways.
    pub(crate) full: u64,
    /// The fewest in a mask, side by side.
    pub(crate) min_bits: u32,
    /// Masks may have gaps.
    pub(crate) sparse: bool,
    /// Ways of devices, and of groups of others.
    pub(crate) taken: u64,
    /// Ways of everything else now.
    pub(crate) rest: u64,
}

/// Why no ways can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoWays {
    /// Fewer than the hardware takes.
    #[error("a group has at least {min_bits} ways")]
    TooFew {
        /// The least.
        min_bits: u32,
    },
    /// More than there are.
    #[error(
        "of its {all} ways at most {most} can be had: devices, groups of others and everything else need the rest"
    )]
    TooMany {
        /// All.
        all: u32,
        /// The most.
        most: u32,
    },
}

impl DivisibleCache {
    fn takes(&self, mask: u64) -> bool {
        let run = (mask >> mask.trailing_zeros().min(63)).trailing_ones();
        mask != 0 && run >= self.min_bits && (self.sparse || run == mask.count_ones())
    }

    /// May a group have exactly this, and everything else what is left?
    fn may(&self, mask: u64) -> bool {
        mask & !self.full == 0 && mask & self.taken == 0 && self.takes(self.rest & !mask)
    }
}

/// `n` ways beside each other that may be one group's own in all of `rooms`, the lowest of them.
pub(crate) fn ways(rooms: &[DivisibleCache], n: u32) -> Result<u64, NoWays> {
    let min_bits = rooms.iter().map(|r| r.min_bits).max().unwrap_or(1);
    if n < min_bits {
        return Err(NoWays::TooFew { min_bits });
    }
    let find = |n: u32| {
        let block = u64::MAX.checked_shr(64u32.checked_sub(n)?)?;
        (0..64u32.saturating_sub(n)).map(|at| block << at).find(|m| rooms.iter().all(|r| r.may(*m)))
    };
    find(n).ok_or_else(|| NoWays::TooMany {
        all: rooms.iter().map(|r| r.full.count_ones()).min().unwrap_or(0),
        most: (1..n).rev().find(|n| find(*n).is_some()).unwrap_or(0),
    })
}

/// What a group has of `cache` when it is made: all that no exclusive group has, as far as it is side by side.
/// Source: rdtgroup_init_cat, cbm_ensure_valid.
pub(crate) fn at_first(all: &Resctrl, cache: &Cache, id: u32) -> u64 {
    let own = |g: &&resctrl::ControlGroup| g.mode != "shareable";
    let kept = all.groups.iter().filter(own).filter_map(|g| g.share(&cache.name, id));
    let free = cache.full & !kept.fold(0, |all, mask| all | mask);
    let low = free.trailing_zeros().min(63);
    let run = (free >> low).trailing_ones();
    free & (u64::MAX.checked_shr(64u32.saturating_sub(run)).unwrap_or(0) << low)
}

/// A limit of bandwidth as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BandwidthLimit {
    /// Of all there is.
    Percent(u64),
    /// MB/s, as the kernel counts them: 2^20 bytes.
    Megabytes(u64),
}

/// Why a limit cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoLimit {
    /// The hardware's figures are others.
    #[error("{wanted}; it is given {unit}")]
    Unit {
        /// As wanted.
        wanted: &'static str,
        /// How it can be.
        unit: &'static str,
    },
    /// Below the least, or between two steps.
    #[error("the hardware takes {min} to {max}, in steps of {step}")]
    Step {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// From one to the next.
        step: u64,
    },
}

impl BandwidthLimit {
    /// `50%`, `4000MBps`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number =
            |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<u64>().ok())?;
        if let Some(percent) = text.strip_suffix('%') {
            return number(percent).filter(|n| (1..100).contains(n)).map(Self::Percent);
        }
        let mb = number(text.strip_suffix("MBps")?)?;
        (1..=u64::from(u32::MAX)).contains(&mb).then_some(Self::Megabytes(mb))
    }

    /// As the file has it; `most` is what the file says without a limit.
    pub(crate) fn value(self, bandwidth: &Bandwidth, most: u64) -> Result<u64, NoLimit> {
        let value = match (self, bandwidth.unit) {
            (Self::Percent(n), BandwidthUnit::Percent) => n,
            (Self::Megabytes(n), BandwidthUnit::Mebibytes) => return Ok(n),
            // An eighth of a GB/s.
            (Self::Megabytes(n), BandwidthUnit::Eighths) if n % 128 == 0 => n / 128,
            (Self::Megabytes(_), BandwidthUnit::Eighths) => {
                return Err(NoLimit::Step { min: 128, max: most.saturating_mul(128), step: 128 });
            }
            (Self::Megabytes(_), BandwidthUnit::Percent) => {
                let unit = "in percent, or in MBps after `tailbound tune set resctrl=mbps`";
                return Err(NoLimit::Unit { wanted: "MBps", unit });
            }
            (Self::Percent(_), _) => {
                return Err(NoLimit::Unit { wanted: "percent", unit: "in MBps" });
            }
        };
        let (min, step) = (bandwidth.min, bandwidth.step.max(1));
        // The kernel rounds what lies between two steps.
        if value < min || value > most || value % step != 0 {
            return Err(NoLimit::Step { min, max: most, step });
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN_ROOM: DivisibleCache =
        DivisibleCache { full: 0xfff, min_bits: 1, sparse: false, taken: 0, rest: 0xfff };

    #[test]
    fn ways_are_at_an_end_so_that_the_rest_has_no_gap() {
        assert_eq!(ways(&[PLAIN_ROOM], 4), Ok(0xf));
        // Devices have the two highest of most servers, or the lowest.
        assert_eq!(ways(&[DivisibleCache { taken: 0xc00, ..PLAIN_ROOM }], 4), Ok(0xf));
        assert_eq!(ways(&[DivisibleCache { taken: 0x003, ..PLAIN_ROOM }], 4), Ok(0xf00));
        let gaps = DivisibleCache { taken: 0x003, sparse: true, ..PLAIN_ROOM };
        assert_eq!(ways(&[gaps], 4), Ok(0x3c));
        // A group of others at the low end; what nobody uses is free.
        let other = DivisibleCache { taken: 0x00f, rest: 0xff0, ..PLAIN_ROOM };
        assert_eq!(ways(&[other], 3), Ok(0x70));
        assert_eq!(ways(&[DivisibleCache { rest: 0xff0, ..PLAIN_ROOM }], 3), Ok(0x7));
        // Code and data.
        assert_eq!(ways(&[PLAIN_ROOM, DivisibleCache { taken: 0x1, ..PLAIN_ROOM }], 2), Ok(0xc00));
    }

    #[test]
    fn limits_of_the_hardware_are_said() {
        let two = DivisibleCache { min_bits: 2, ..PLAIN_ROOM };
        assert_eq!(ways(&[two], 1), Err(NoWays::TooFew { min_bits: 2 }));
        assert_eq!(ways(&[two], 11), Err(NoWays::TooMany { all: 12, most: 10 }));
        assert_eq!(ways(&[two], 64), Err(NoWays::TooMany { all: 12, most: 10 }));
        let full = DivisibleCache { taken: 0xfff, ..PLAIN_ROOM };
        assert_eq!(ways(&[full], 1), Err(NoWays::TooMany { all: 12, most: 0 }));
        let all = DivisibleCache { full: u64::MAX, rest: u64::MAX, ..PLAIN_ROOM };
        assert_eq!(ways(&[all], 63), Ok(u64::MAX >> 1));
    }

    #[test]
    fn a_limit_is_what_the_file_takes_or_refused() {
        let percent = Bandwidth { min: 10, step: 10, ..Bandwidth::default() };
        let of =
            |text: &str, b: &Bandwidth, most| BandwidthLimit::parse(text).map(|l| l.value(b, most));
        assert_eq!(of("50%", &percent, 100), Some(Ok(50)));
        let step = Some(Err(NoLimit::Step { min: 10, max: 100, step: 10 }));
        assert_eq!((of("55%", &percent, 100), of("5%", &percent, 100)), (step.clone(), step));
        assert!(matches!(of("4000MBps", &percent, 100), Some(Err(NoLimit::Unit { .. }))));
        let mbps = Bandwidth { unit: BandwidthUnit::Mebibytes, ..percent.clone() };
        assert_eq!(of("4000MBps", &mbps, 4_294_967_295), Some(Ok(4000)));
        assert!(matches!(of("50%", &mbps, 4_294_967_295), Some(Err(NoLimit::Unit { .. }))));
        let amd = Bandwidth { unit: BandwidthUnit::Eighths, min: 1, step: 1, throttle: None };
        assert_eq!(of("2048MBps", &amd, 2048), Some(Ok(16)));
        assert!(matches!(of("2000MBps", &amd, 2048), Some(Err(NoLimit::Step { step: 128, .. }))));
    }

    #[test]
    fn a_mount_that_somebody_uses_stays() {
        let group = |name: &str, ways: u64, percent: u64| resctrl::ControlGroup {
            name: name.to_owned(),
            shares: [("L3", ways), ("MB", percent)]
                .map(|(r, v)| (r.to_owned(), [(0, v)].into_iter().collect()))
                .into_iter()
                .collect(),
            ..resctrl::ControlGroup::default()
        };
        let of = |groups: Vec<resctrl::ControlGroup>| {
            let cache = Cache { name: "L3".to_owned(), full: 0xff, ..Cache::default() };
            let bandwidth = Some(Bandwidth::default());
            in_use(&Resctrl { caches: vec![cache], bandwidth, groups, ..Resctrl::default() })
        };
        assert_eq!(of(vec![group("", 0xff, 100)]), None);
        let said = of(vec![group("", 0xff, 100), group("web", 0xff, 100)]);
        assert_eq!(said.as_deref(), Some("group web is there"));
        let said = of(vec![group("", 0x0f, 100)]);
        assert_eq!(said.as_deref(), Some("the default group has not all of L3"));
        assert!(of(vec![group("", 0xff, 50)]).is_some());
    }

    #[test]
    fn what_resctrl_says_of_a_refusal_is_passed_on() {
        let room = tempfile::tempdir().expect("a folder");
        let info = room.path().join("sys/fs/resctrl/info");
        std::fs::create_dir_all(&info).expect("writable");
        std::fs::write(info.join("last_cmd_status"), "The mask 5 has non-consecutive 1-bits\n")
            .expect("writable");
        let root = Root::at(room.path());
        let said = reason(&root, "/sys/fs/resctrl/x/schemata");
        assert_eq!(said, "; resctrl says: The mask 5 has non-consecutive 1-bits");
        assert_eq!(reason(&root, "/proc/sys/vm/swappiness"), "");
        assert_eq!(reason(&root, "/sys/fs/resctrlx/y"), "");
    }
}
