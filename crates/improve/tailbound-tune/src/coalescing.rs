// SPDX-License-Identifier: MIT OR Apache-2.0
//! The coalescing of a network device as a state: the words that ethtool(8) takes behind `-C DEVICE`.
//!
//! Units: µs, packets. Drivers let numbers be set only while they do not choose these
//! themselves: i40e and iavf refuse others together with `adaptive-rx on`, and mlx5 puts its own in
//! place of those that come with a change of `adaptive-rx`. So what a driver chooses by itself is
//! switched off first, numbers follow, and it is switched on last ([`stages`]).
//! Not here: the call (`tailbound_sys::coalescing`), which devices are meant (`settings::network`).
//! Source: ethtool(8), linux/ethtool.h, net/ethtool/coalesce.c, drivers/net/ethernet.

use tailbound_host::root::{Found, Missing, Root};
use tailbound_sys::SysError;
use tailbound_sys::coalescing::{Coalescing, get, set};

use crate::refused::Refused;

/// Of errno(3).
const ENODEV: i32 = 19;
const EOPNOTSUPP: i32 = 95;

/// Why a text is not a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the coalescing of a device: rx-usecs N rx-frames N adaptive-rx on|off adaptive-tx on|off"
)]
pub(crate) struct NotCoalescing(String);

/// The state of `device` now; a tree of files does not tell.
pub(crate) fn read(root: &Root, device: &str) -> Found<Coalescing> {
    if !root.is_real() {
        return Err(Missing::Unknown(format!("{device}: only the kernel tells its coalescing")));
    }
    get(device).map_err(|e| match e.errno {
        EOPNOTSUPP => {
            Missing::NotApplicable(format!("{device}: its driver does not coalesce interrupts"))
        }
        ENODEV => Missing::NotApplicable(format!("there is no network device {device}")),
        _ => Missing::Unknown(e.to_string()),
    })
}

/// Brings `device` to `state`.
pub(crate) fn write(root: &Root, device: &str, state: &str) -> Result<(), Refused> {
    let wanted = parse(state).map_err(|e| Refused::Denied(format!("{device}: {e}")))?;
    // A device that went away since the plan was made is gone, and a tree of files has none.
    read(root, device)?;
    bring(&mut Kernel(device), wanted)
}

/// `rx-usecs 50 rx-frames 0 adaptive-rx off adaptive-tx off`
pub(crate) fn text(c: Coalescing) -> String {
    words(c).map(|(name, value)| format!("{name} {value}")).join(" ")
}

fn words(c: Coalescing) -> [(&'static str, String); 4] {
    let adaptive = |on| if on { "on" } else { "off" }.to_owned();
    [
        ("rx-usecs", c.rx_us.to_string()),
        ("rx-frames", c.rx_frames.to_string()),
        ("adaptive-rx", adaptive(c.adaptive_rx)),
        ("adaptive-tx", adaptive(c.adaptive_tx)),
    ]
}

/// The state that `text` is.
pub(crate) fn parse(text: &str) -> Result<Coalescing, NotCoalescing> {
    let words: Vec<&str> = text.split(' ').collect();
    let found = match words.as_slice() {
        ["rx-usecs", us, "rx-frames", frames, "adaptive-rx", rx, "adaptive-tx", tx] => {
            numbers(us, frames, rx, tx)
        }
        _ => None,
    };
    // One text for each state: what is compared is text.
    found
        .filter(|c| self::text(*c) == text)
        .ok_or_else(|| NotCoalescing(tailbound_core::printable::excerpt(text, 80)))
}

fn numbers(us: &str, frames: &str, rx: &str, tx: &str) -> Option<Coalescing> {
    let switch = |word: &str| match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    };
    Some(Coalescing {
        rx_us: us.parse().ok()?,
        rx_frames: frames.parse().ok()?,
        adaptive_rx: switch(rx)?,
        adaptive_tx: switch(tx)?,
    })
}

/// `now`, with a wait of `rx_us`. Without a wait a single packet ends it, on devices that count
/// packets: those that do not refuse any number but 0. With one, a limit of a single packet goes,
/// since the wait would never come to pass.
pub(crate) fn with_wait(now: Coalescing, rx_us: u32) -> Coalescing {
    let rx_frames = match (rx_us, now.rx_frames) {
        (0, frames) => frames.min(1),
        (_, 1) => 0,
        (_, frames) => frames,
    };
    Coalescing { rx_us, rx_frames, ..by_hand(now) }
}

/// `c` without what the driver chooses by itself.
fn by_hand(c: Coalescing) -> Coalescing {
    Coalescing { adaptive_rx: false, adaptive_tx: false, ..c }
}

/// Each packet interrupts at once: `rx-frames` 0 and 1 are two words for it.
fn is_off(c: Coalescing) -> bool {
    c.rx_us == 0 && c.rx_frames <= 1 && !c.adaptive_rx
}

/// Is `now` what was `wanted`? Numbers that the driver chooses by itself differ from moment to
/// moment.
pub(crate) fn is_met(wanted: &str, now: &str) -> bool {
    let (Ok(a), Ok(b)) = (parse(wanted), parse(now)) else { return wanted == now };
    let switches = (a.adaptive_rx, a.adaptive_tx) == (b.adaptive_rx, b.adaptive_tx);
    switches && (a.adaptive_rx || (is_off(a) && is_off(b)) || a == b)
}

/// What is set one after the other on the way to `to`. Where nothing changes, nothing is set.
fn stages(now: Coalescing, to: Coalescing) -> [Coalescing; 3] {
    [by_hand(now), by_hand(to), to]
}

/// Is `now` a state that a kill on the way between the two, in either direction, may have left?
pub(crate) fn is_on_the_way(old: &str, new: &str, now: &str) -> bool {
    let (Ok(old), Ok(new)) = (parse(old), parse(new)) else { return new == now };
    [old, by_hand(old), by_hand(new), new].into_iter().any(|stage| is_met(&text(stage), now))
}

/// The commands of ethtool(8) that bring `device` (one word of a shell) from one state to another.
/// They name only what changes: ethtool(8) refuses a word that the driver does not know, even
/// where its value stays.
pub(crate) fn commands(device: &str, from: &str, to: &str) -> Result<String, NotCoalescing> {
    let (from, to) = (parse(from)?, parse(to)?);
    let mut now = from;
    let mut lines = Vec::new();
    for next in stages(from, to) {
        let changed: Vec<String> = words(next)
            .into_iter()
            .zip(words(now))
            .filter(|(new, old)| new != old)
            .map(|((name, value), _)| format!("{name} {value}"))
            .collect();
        if !changed.is_empty() {
            lines.push(format!("ethtool -C {device} {}", changed.join(" ")));
        }
        now = next;
    }
    Ok(lines.join("\n"))
}

/// Where a state is set: the kernel, or a driver that is played.
trait Driver {
    fn get(&self) -> Result<Coalescing, SysError>;
    fn set(&mut self, wanted: Coalescing) -> Result<(), SysError>;
}

struct Kernel<'a>(&'a str);

impl Driver for Kernel<'_> {
    fn get(&self) -> Result<Coalescing, SysError> {
        get(self.0)
    }

    fn set(&mut self, wanted: Coalescing) -> Result<(), SysError> {
        set(self.0, wanted)
    }
}

/// Brings a device to `wanted`. After a refusal it is as before, and where even that fails it is
/// said how it is now, so that the journal knows of it.
fn bring(driver: &mut dyn Driver, wanted: Coalescing) -> Result<(), Refused> {
    let denied = |e: SysError| Refused::Denied(e.to_string());
    let old = driver.get().map_err(denied)?;
    let Err(why) = through(driver, wanted) else { return Ok(()) };
    // Some drivers refuse two zeros and some any number of packets: only trying tells.
    let other = Coalescing { rx_frames: u32::from(wanted.rx_frames == 0), ..wanted };
    if is_off(wanted) && through(driver, other).is_ok() {
        return Ok(());
    }
    let back = through(driver, old);
    match driver.get() {
        Ok(now) if back.is_ok() || now == old => Err(denied(why)),
        Ok(now) => Err(Refused::Otherwise { wanted: text(wanted), now: text(now) }),
        Err(e) => Err(denied(e)),
    }
}

fn through(driver: &mut dyn Driver, wanted: Coalescing) -> Result<(), SysError> {
    let mut now = driver.get()?;
    for next in stages(now, wanted) {
        if next != now {
            driver.set(next)?;
            now = driver.get()?;
        }
    }
    if now != wanted {
        // mlx5 again: the last stage may have brought numbers of its own. Whoever called reads
        // what is in force, so a refusal here needs no word.
        drop(driver.set(wanted));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Coalescing =
        Coalescing { rx_us: 50, rx_frames: 32, adaptive_rx: true, adaptive_tx: true };

    #[test]
    fn what_is_read_is_what_ethtool_takes() {
        assert_eq!(text(BUSY), "rx-usecs 50 rx-frames 32 adaptive-rx on adaptive-tx on");
        assert_eq!(parse(&text(BUSY)), Ok(BUSY));
        let waits = |us| text(with_wait(BUSY, us));
        assert_eq!(waits(0), "rx-usecs 0 rx-frames 1 adaptive-rx off adaptive-tx off");
        assert_eq!(waits(9), "rx-usecs 9 rx-frames 32 adaptive-rx off adaptive-tx off");
        let uncounted = Coalescing { rx_frames: 0, ..BUSY };
        assert_eq!(with_wait(uncounted, 0).rx_frames, 0);
        let off = with_wait(BUSY, 0);
        assert_eq!((off.rx_frames, with_wait(off, 9).rx_frames), (1, 0), "it does wait");
    }

    #[test]
    fn nonsense_is_refused_and_the_form_is_said() {
        for wrong in [
            "",
            "rx-usecs 5",
            "rx-usecs 5 rx-frames 0 adaptive-rx on",
            "rx-usecs -5 rx-frames 0 adaptive-rx on adaptive-tx on",
            "rx-usecs +5 rx-frames 0 adaptive-rx on adaptive-tx on",
            "rx-usecs 05 rx-frames 0 adaptive-rx on adaptive-tx on",
            "rx-usecs 4294967296 rx-frames 0 adaptive-rx on adaptive-tx on",
            "rx-usecs 5 rx-frames 0 adaptive-rx yes adaptive-tx on",
            "rx-usecs  5 rx-frames 0 adaptive-rx on adaptive-tx on",
            "rx-frames 0 rx-usecs 5 adaptive-rx on adaptive-tx on",
            "rx-usecs 5 rx-frames 0 adaptive-rx on adaptive-tx on; reboot",
        ] {
            let error = parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains("rx-usecs N rx-frames N"), "{error}");
        }
        let error = write(&Root::real(), "lo", "fast").expect_err("nonsense").to_string();
        assert!(error.starts_with("lo: `fast` is not the coalescing"), "{error}");
    }

    #[test]
    fn a_tree_of_files_does_not_tell() {
        let tree = Root::at("/nonexistent");
        assert!(matches!(read(&tree, "eth0"), Err(Missing::Unknown(_))));
        assert!(matches!(write(&tree, "eth0", &text(BUSY)), Err(Refused::Denied(_))));
        assert!(matches!(read(&Root::real(), "lo"), Err(Missing::NotApplicable(_))));
        let gone = write(&Root::real(), "no-such-device", &text(BUSY));
        assert!(matches!(gone, Err(Refused::Gone(_))), "{gone:?}");
    }

    #[test]
    fn scripts_name_what_changes_and_in_which_order() {
        let there = commands("eth0", &text(BUSY), &text(with_wait(BUSY, 0)));
        assert_eq!(
            there.as_deref(),
            Ok("ethtool -C eth0 adaptive-rx off adaptive-tx off\n\
                ethtool -C eth0 rx-usecs 0 rx-frames 1")
        );
        let back = commands("eth0", &text(with_wait(BUSY, 0)), &text(BUSY));
        assert_eq!(
            back.as_deref(),
            Ok("ethtool -C eth0 rx-usecs 50 rx-frames 32\n\
                ethtool -C eth0 adaptive-rx on adaptive-tx on")
        );
        // A driver without the rest would refuse its mention.
        let plain = Coalescing { rx_us: 3, ..Coalescing::default() };
        let there = commands("eth0", &text(plain), &text(with_wait(plain, 0)));
        assert_eq!(there.as_deref(), Ok("ethtool -C eth0 rx-usecs 0"));
        assert!(commands("eth0", "", &text(BUSY)).is_err());
    }

    #[test]
    fn two_words_for_no_wait_are_one_state() {
        let of = |rx_us, rx_frames, adaptive_rx| {
            text(Coalescing { rx_us, rx_frames, adaptive_rx, adaptive_tx: false })
        };
        assert!(is_met(&of(0, 0, false), &of(0, 1, false)));
        assert!(!is_met(&of(0, 0, false), &of(0, 2, false)));
        assert!(!is_met(&of(9, 0, false), &of(8, 0, false)), "rounded");
        assert!(!is_met(&of(0, 0, false), &of(0, 0, true)));
        assert!(is_met(&of(50, 0, true), &of(7, 3, true)), "the driver chooses");
    }

    #[test]
    fn what_a_kill_leaves_is_known_again() {
        let (old, new) = (text(BUSY), text(with_wait(BUSY, 9)));
        let is_ours = |c| is_on_the_way(&old, &new, &text(c));
        assert!(is_ours(by_hand(BUSY)) && is_ours(with_wait(BUSY, 9)));
        assert!(!is_ours(with_wait(BUSY, 7)));
        assert!(!is_ours(Coalescing { adaptive_tx: false, ..BUSY }));
    }

    /// What drivers do with a request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Kind {
        /// Refuses numbers while it chooses them by itself.
        I40e,
        /// Puts its own numbers in place when it begins or ceases to choose.
        Mlx5,
        /// Refuses two zeros.
        Tg3,
        /// Does not count packets.
        E1000e,
        /// Refuses times, and to choose again once it has ceased to.
        Stubborn,
    }

    struct Played(Kind, Coalescing);

    impl Driver for Played {
        fn get(&self) -> Result<Coalescing, SysError> {
            Ok(self.1)
        }

        fn set(&mut self, wanted: Coalescing) -> Result<(), SysError> {
            let (kind, now) = (self.0, self.1);
            let numbers = |c: Coalescing| (c.rx_us, c.rx_frames);
            let refused = match kind {
                Kind::I40e => wanted.adaptive_rx && numbers(wanted) != numbers(now),
                Kind::Tg3 => numbers(wanted) == (0, 0),
                Kind::E1000e => wanted.rx_frames > 0,
                Kind::Stubborn => {
                    wanted.rx_us != now.rx_us || (wanted.adaptive_rx && !now.adaptive_rx)
                }
                Kind::Mlx5 => false,
            };
            if refused {
                return Err(SysError::code("ioctl", "played", 22));
            }
            self.1 = wanted;
            if kind == Kind::Mlx5 && wanted.adaptive_rx != now.adaptive_rx {
                (self.1.rx_us, self.1.rx_frames) = (8, 128);
            }
            Ok(())
        }
    }

    #[test]
    fn every_kind_of_driver_is_brought_there_and_back() {
        let counts = |rx_frames| Coalescing { rx_frames, ..BUSY };
        for (kind, old) in [
            (Kind::I40e, counts(32)),
            (Kind::Mlx5, counts(32)),
            (Kind::Tg3, counts(32)),
            (Kind::Tg3, counts(0)),
            (Kind::E1000e, counts(0)),
        ] {
            for rx_us in [0, 9] {
                let mut driver = Played(kind, old);
                let wanted = with_wait(old, rx_us);
                assert_eq!(bring(&mut driver, wanted), Ok(()), "{kind:?} {rx_us}");
                assert!(is_met(&text(wanted), &text(driver.1)), "{kind:?}: {:?}", driver.1);
                assert_eq!(bring(&mut driver, old), Ok(()), "{kind:?} {rx_us}");
                assert_eq!(driver.1, old, "{kind:?} exactly as before");
            }
        }
    }

    #[test]
    fn after_a_refusal_all_is_as_before_or_it_is_said() {
        let fixed = by_hand(BUSY);
        let mut driver = Played(Kind::Stubborn, fixed);
        let refused = bring(&mut driver, with_wait(fixed, 0));
        assert!(matches!(refused, Err(Refused::Denied(_))), "{refused:?}");
        assert_eq!(driver.1, fixed);
        // It ceased to choose, refused the time, and does not choose again.
        let mut driver = Played(Kind::Stubborn, BUSY);
        let refused = bring(&mut driver, with_wait(BUSY, 0));
        let Err(Refused::Otherwise { now, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!((now, driver.1), (text(fixed), fixed));
    }
}
