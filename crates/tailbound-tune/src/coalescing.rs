// SPDX-License-Identifier: MIT OR Apache-2.0
//! The coalescing of a network device as a state: the words that ethtool(8) takes behind `-C DEVICE`.
//!
//! Context: COLD. Units: µs, packets. Source: ethtool(8).

use tailbound_host::root::{Found, Missing, Root};
use tailbound_sys::coalescing::{Coalescing, get, set};

use crate::machine::Refused;

/// EOPNOTSUPP and ENODEV of errno(3).
const NOT_HERE: [i32; 2] = [95, 19];

/// The state of `device` now; a tree of files does not tell.
pub(crate) fn read(root: &Root, device: &str) -> Found<Coalescing> {
    if !root.is_real() {
        return Err(Missing::Unknown(format!("{device}: only the kernel tells its coalescing")));
    }
    get(device).map_err(|e| match NOT_HERE.contains(&e.errno) {
        true => Missing::NotApplicable(format!("{device} does not coalesce interrupts")),
        false => Missing::Unknown(e.to_string()),
    })
}

/// Brings `device` to `state`.
pub(crate) fn write(root: &Root, device: &str, state: &str) -> Result<(), Refused> {
    read(root, device)?;
    let wanted = parse(state)
        .ok_or_else(|| Refused::Denied(format!("{device}: `{state}` is no coalescing")))?;
    set(device, wanted).map_err(|e| Refused::Denied(e.to_string()))
}

/// `rx-usecs 50 rx-frames 0 adaptive-rx off`
pub(crate) fn text(c: Coalescing) -> String {
    let adaptive = if c.adaptive_rx { "on" } else { "off" };
    format!("rx-usecs {} rx-frames {} adaptive-rx {adaptive}", c.rx_us, c.rx_frames)
}

fn parse(text: &str) -> Option<Coalescing> {
    let words: Vec<&str> = text.split(' ').collect();
    let ["rx-usecs", us, "rx-frames", frames, "adaptive-rx", adaptive] = words.as_slice() else {
        return None;
    };
    let adaptive_rx = match *adaptive {
        "on" => true,
        "off" => false,
        _ => return None,
    };
    Some(Coalescing { rx_us: us.parse().ok()?, rx_frames: frames.parse().ok()?, adaptive_rx })
}

/// `now`, with a wait of `rx_us`. Without a wait a single packet ends it: drivers refuse two zeros.
pub(crate) fn with_wait(now: Coalescing, rx_us: u32) -> Coalescing {
    let rx_frames = if rx_us == 0 { now.rx_frames.min(1) } else { now.rx_frames };
    Coalescing { rx_us, rx_frames, adaptive_rx: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_ethtool_takes() {
        let now = Coalescing { rx_us: 50, rx_frames: 32, adaptive_rx: true };
        assert_eq!(text(now), "rx-usecs 50 rx-frames 32 adaptive-rx on");
        assert_eq!(parse(&text(now)), Some(now));
        assert_eq!(text(with_wait(now, 0)), "rx-usecs 0 rx-frames 1 adaptive-rx off");
        assert_eq!(text(with_wait(now, 9)), "rx-usecs 9 rx-frames 32 adaptive-rx off");
        for wrong in ["", "rx-usecs 5", "rx-usecs -5 rx-frames 0 adaptive-rx on", "a b c d e f"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_tree_of_files_does_not_tell() {
        let tree = Root::at("/nonexistent");
        assert!(matches!(read(&tree, "eth0"), Err(Missing::Unknown(_))));
        assert!(matches!(read(&Root::real(), "lo"), Err(Missing::NotApplicable(_))));
    }
}
