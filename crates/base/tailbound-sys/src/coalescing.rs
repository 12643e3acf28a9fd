// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a network device waits for further packets before it interrupts a CPU.
//!
//! Context: SETUP. Units: µs, packets. What is set is laid over what the device has now, because a
//! driver refuses a whole request for one value that it does not know.
//! Not here: in which order values must be set (`tailbound-tune`).
//! Source: ethtool(8) `-c`, linux/ethtool.h (ETHTOOL_GCOALESCE, ETHTOOL_SCOALESCE), netdevice(7).

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::error::SysError;

const SIOCETHTOOL: u64 = 0x8946;
/// ETHTOOL_GCOALESCE.
const GET: u32 = 0x0e;
/// ETHTOOL_SCOALESCE.
const SET: u32 = 0x0f;
/// `struct ethtool_coalesce` after its command, in words of 32 bits.
const WORDS: usize = 22;
/// Places among them.
const RX_US: usize = 0;
const RX_FRAMES: usize = 1;
const ADAPTIVE_RX: usize = 9;
const ADAPTIVE_TX: usize = 10;

/// What decides how soon a packet that comes in is told of: an interrupt comes `rx_us` after a
/// packet, or with packet number `rx_frames`, whichever is earlier.
///
/// linux/ethtool.h calls both zero illegal ("interrupts would never be generated"), and no wait at
/// all `rx_us` 0 with `rx_frames` 1. Devices that do not count packets have 0 for `rx_frames`, and
/// refuse anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// Longest wait after a packet, µs (`rx_coalesce_usecs`); 0: no limit of time.
    pub rx_us: u32,
    /// Packets that end the wait (`rx_max_coalesced_frames`); 0: no such limit.
    pub rx_frames: u32,
    /// The driver chooses both by what passes (`use_adaptive_rx_coalesce`).
    pub adaptive_rx: bool,
    /// The same for packets that go out (`use_adaptive_tx_coalesce`), which on many devices share
    /// the interrupt.
    pub adaptive_tx: bool,
}

/// `struct ethtool_coalesce`: 23 words of 32 bits.
#[repr(C)]
struct Request {
    command: u32,
    words: [u32; WORDS],
}

/// Asks network device `name`, of the network namespace of the calling thread.
///
/// # Errors
/// EOPNOTSUPP where it has no coalescing, ENODEV where it is gone or is no name of a device.
pub fn get(name: &str) -> Result<Coalescing, SysError> {
    let words = asked(name)?;
    Ok(Coalescing {
        rx_us: words[RX_US],
        rx_frames: words[RX_FRAMES],
        adaptive_rx: words[ADAPTIVE_RX] != 0,
        adaptive_tx: words[ADAPTIVE_TX] != 0,
    })
}

/// Sets these of network device `name` and leaves the others. A driver may round them: [`get`]
/// says what is in force.
///
/// # Errors
/// As [`get`]; EINVAL, ERANGE or EOPNOTSUPP for values that its driver does not take, EPERM without
/// CAP_NET_ADMIN in the network namespace.
pub fn set(name: &str, wanted: Coalescing) -> Result<(), SysError> {
    let mut words = asked(name)?;
    words[RX_US] = wanted.rx_us;
    words[RX_FRAMES] = wanted.rx_frames;
    words[ADAPTIVE_RX] = u32::from(wanted.adaptive_rx);
    words[ADAPTIVE_TX] = u32::from(wanted.adaptive_tx);
    exchange(name, &mut Request { command: SET, words })
}

fn asked(name: &str) -> Result<[u32; WORDS], SysError> {
    let mut request = Request { command: GET, words: [0; WORDS] };
    exchange(name, &mut request)?;
    Ok(request.words)
}

fn exchange(name: &str, request: &mut Request) -> Result<(), SysError> {
    let bytes = name.as_bytes();
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut interface: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays the end of the string.
    let room = interface.ifr_name.len() - 1;
    if bytes.is_empty() || bytes.len() > room || bytes.contains(&0) {
        return Err(SysError::code("ioctl", name, libc::ENODEV));
    }
    for (to, from) in interface.ifr_name.iter_mut().zip(bytes) {
        *to = from.cast_signed() as libc::c_char;
    }
    interface.ifr_ifru.ifru_data = std::ptr::from_mut(request).cast();
    // SAFETY: integer arguments only.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(SysError::last("socket", name));
    }
    // SAFETY: just opened, and owned by nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: the kernel reads and writes the two live structures, of the sizes it expects.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut interface) };
    if done == 0 { Ok(()) } else { Err(SysError::last("ioctl", name).needs("root")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_it_or_that_is_not_there_is_told() {
        assert_eq!(size_of::<Request>(), 23 * 4, "as in linux/ethtool.h");
        assert_eq!(get("lo").map_err(|e| e.errno), Err(libc::EOPNOTSUPP));
        for name in ["no-such-device", "a-name-that-is-longer-than-any", "a\0b", ""] {
            assert_eq!(get(name).map_err(|e| e.errno), Err(libc::ENODEV), "{name}");
            let set = set(name, Coalescing::default());
            assert_eq!(set.map_err(|e| e.errno), Err(libc::ENODEV), "{name}");
        }
    }
}
