// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two nameless network namespaces joined by a veth pair, gone when the last process or
//! descriptor that uses them is.
//!
//! Context: SETUP. Needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
//! Nothing is made in the namespace the caller came from, not even for a moment, so that
//! nothing can be left there. Not here: what flows between them.
//! Source: network_namespaces(7), veth(4), netlink(7), rtnetlink(7), setns(2).

use std::ffi::{CStr, CString};
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::error::{SysError, check};
use crate::ipc;
use crate::socket_option::set_option;

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const NLM_REQUEST_ACK: u16 = 1 | 4;
const NLM_CREATE_EXCL: u16 = 0x400 | 0x200;
const NLMSG_ERROR: u16 = 2;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_GATEWAY: u16 = 5;
const IFF_UP: u32 = 1;
const PREFIX: u8 = 24;

/// Two ends of a wire, each in a network namespace of its own.
#[derive(Debug)]
pub struct VethPair {
    /// The namespaces.
    pub namespaces: [OwnedFd; 2],
}

/// Makes both namespaces, the pair, its addresses, and sets everything up. The calling
/// thread is left in the second one: call from a process that needs no other network.
///
/// # Errors
/// EPERM without the capabilities; EOPNOTSUPP when the kernel has no veth.
pub fn veth_pair(addresses: [Ipv4Addr; 2]) -> Result<VethPair, SysError> {
    let first = new_namespace()?;
    let second = new_namespace()?;
    let netlink = Netlink::open()?;
    netlink.ask(&new_veth(first.as_raw_fd()), "RTM_NEWLINK veth")?;
    for (namespace, name, address) in
        [(&first, c"peer0", addresses[0]), (&second, c"wire0", addresses[1])]
    {
        enter(namespace.as_fd())?;
        // A netlink socket belongs to the namespace it was opened in.
        let netlink = Netlink::open()?;
        for (name, address) in [(c"lo", None), (name, Some(address))] {
            let index = index_of(name)?;
            let label = name.to_string_lossy();
            if let Some(address) = address {
                let message = new_address(index, address, PREFIX);
                netlink.ask(&message, &format!("RTM_NEWADDR {label}"))?;
            }
            netlink.ask(&link_up(index), &format!("RTM_NEWLINK {label} up"))?;
        }
    }
    Ok(VethPair { namespaces: [first, second] })
}

/// Sets the loopback device of the calling thread's network up, as nobody else does in a
/// system that has no other first process.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN; ENODEV where the kernel has no network.
pub fn loopback_up() -> Result<(), SysError> {
    Netlink::open()?.ask(&link_up(index_of(c"lo")?), "RTM_NEWLINK lo up")
}

/// Sets a device of the calling thread's network up.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN; ENODEV where there is none of that name.
pub fn set_up(device: &str) -> Result<(), SysError> {
    Netlink::open()?.ask(&link_up(named(device)?), &format!("RTM_NEWLINK {device} up"))
}

/// Gives a device an address in a network of `prefix` bits.
///
/// # Errors
/// As [`set_up`]; EEXIST where it has it.
pub fn add_address(device: &str, address: Ipv4Addr, prefix: u8) -> Result<(), SysError> {
    let message = new_address(named(device)?, address, prefix);
    Netlink::open()?.ask(&message, &format!("RTM_NEWADDR {device} {address}/{prefix}"))
}

/// The way to all other networks.
///
/// # Errors
/// As [`set_up`]; ENETUNREACH where the gateway is in none of the machine's networks.
pub fn add_default_route(gateway: Ipv4Addr) -> Result<(), SysError> {
    // rtmsg: family, destination's and source's bits, tos, table (main), protocol (boot), scope (universe), type (unicast), flags.
    let header = [libc::AF_INET as u8, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
    let attributes = attribute(RTA_GATEWAY, &gateway.octets());
    let message = message(RTM_NEWROUTE, NLM_CREATE_EXCL, &header, &attributes);
    Netlink::open()?.ask(&message, &format!("RTM_NEWROUTE {gateway}"))
}

/// What `socket` sends and receives goes through this device alone, also before that has an address.
///
/// # Errors
/// EPERM without CAP_NET_RAW; ENODEV.
pub fn bind_to_device(socket: BorrowedFd<'_>, device: &str) -> Result<(), SysError> {
    let mut name = [0_u8; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().take(libc::IFNAMSIZ - 1).zip(device.bytes()) {
        *to = from;
    }
    set_option(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &name, "SO_BINDTODEVICE")
}

fn named(device: &str) -> Result<u32, SysError> {
    let name =
        CString::new(device).map_err(|_| SysError::code("if_nametoindex", device, libc::EINVAL))?;
    index_of(&name)
}

fn index_of(device: &CStr) -> Result<u32, SysError> {
    // SAFETY: a NUL-terminated string.
    let index = unsafe { libc::if_nametoindex(device.as_ptr()) };
    if index == 0 {
        return Err(SysError::last("if_nametoindex", device.to_string_lossy()));
    }
    Ok(index)
}

/// Moves the calling thread into a network namespace; sockets it opens from now on are there.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN.
pub fn enter(namespace: BorrowedFd<'_>) -> Result<(), SysError> {
    // SAFETY: setns(2) on a borrowed descriptor.
    let done = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    check(done, "setns", "CLONE_NEWNET").map(drop).map_err(|e| e.needs("CAP_SYS_ADMIN"))
}

fn new_namespace() -> Result<OwnedFd, SysError> {
    // SAFETY: unshare(2) on an integer; only the calling thread moves.
    let done = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    check(done, "unshare", "CLONE_NEWNET").map_err(|e| e.needs("CAP_SYS_ADMIN"))?;
    let path = "/proc/thread-self/ns/net";
    File::open(path)
        .map(OwnedFd::from)
        .map_err(|e| SysError::code("open", path, e.raw_os_error().unwrap_or(0)))
}

struct Netlink(OwnedFd);

impl Netlink {
    fn open() -> Result<Self, SysError> {
        // SAFETY: socket(2) on integers.
        let raw = unsafe {
            libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE)
        };
        check(raw, "socket", "NETLINK_ROUTE")?;
        // SAFETY: `raw` is a fresh descriptor, ours alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// Sends one request and waits for its acknowledgement.
    fn ask(&self, message: &[u8], what: &str) -> Result<(), SysError> {
        let failed = |e: std::io::Error| {
            SysError::code("netlink", what, e.raw_os_error().unwrap_or(libc::EIO))
        };
        ipc::write(self.0.as_fd(), message).map_err(failed)?;
        let mut answer = [0; 4096];
        let n = ipc::read(self.0.as_fd(), &mut answer).map_err(failed)?;
        let answer = answer.get(..n).unwrap_or_default();
        let kind = answer.get(4..6).and_then(|b| b.try_into().ok()).map(u16::from_ne_bytes);
        let code = answer.get(16..20).and_then(|b| b.try_into().ok()).map(i32::from_ne_bytes);
        match (kind, code) {
            (Some(NLMSG_ERROR), Some(0)) => Ok(()),
            (Some(NLMSG_ERROR), Some(code)) => {
                Err(SysError::code("netlink", what, -code).needs("CAP_NET_ADMIN"))
            }
            _ => Err(SysError::code("netlink", what, libc::EBADMSG)),
        }
    }
}

/// nlmsghdr, the family's header, attributes.
fn message(kind: u16, flags: u16, header: &[u8], attributes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + header.len() + attributes.len()).unwrap_or(u32::MAX);
    let mut out = length.to_ne_bytes().to_vec();
    out.extend(kind.to_ne_bytes());
    out.extend((flags | NLM_REQUEST_ACK).to_ne_bytes());
    out.extend([0; 8]); // sequence, port: one request at a time
    out.extend(header);
    out.extend(attributes);
    out
}

/// rtattr: length, type, value, padded to 4.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut out = length.to_ne_bytes().to_vec();
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// ifinfomsg: family, type, index, flags and which of them change.
fn link_header(index: u32, flags: u32) -> Vec<u8> {
    let mut out = vec![0; 4];
    out.extend(index.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out
}

/// `wire0` here, its peer `peer0` in the namespace of `peer_namespace`.
fn new_veth(peer_namespace: i32) -> Vec<u8> {
    let peer = [
        link_header(0, 0),
        attribute(IFLA_IFNAME, b"peer0\0"),
        attribute(IFLA_NET_NS_FD, &peer_namespace.to_ne_bytes()),
    ]
    .concat();
    let info = [
        attribute(IFLA_INFO_KIND, b"veth"),
        attribute(IFLA_INFO_DATA, &attribute(VETH_INFO_PEER, &peer)),
    ]
    .concat();
    let attributes = [attribute(IFLA_IFNAME, b"wire0\0"), attribute(IFLA_LINKINFO, &info)].concat();
    message(RTM_NEWLINK, NLM_CREATE_EXCL, &link_header(0, 0), &attributes)
}

fn link_up(index: u32) -> Vec<u8> {
    message(RTM_NEWLINK, 0, &link_header(index, IFF_UP), &[])
}

fn new_address(index: u32, address: Ipv4Addr, prefix: u8) -> Vec<u8> {
    // ifaddrmsg: family, prefix length, flags, scope, index.
    let mut header = vec![libc::AF_INET as u8, prefix, 0, 0];
    header.extend(index.to_ne_bytes());
    let octets = address.octets();
    let attributes = [attribute(IFA_LOCAL, &octets), attribute(IFA_ADDRESS, &octets)].concat();
    message(RTM_NEWADDR, NLM_CREATE_EXCL, &header, &attributes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icmp::Echo;

    #[test]
    fn the_ends_reach_each_other() {
        let ends = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
        // Threads have namespaces of their own: the other tests stay where they are.
        let done = std::thread::spawn(move || match veth_pair(ends) {
            Ok(pair) => {
                for (namespace, to) in pair.namespaces.iter().zip([ends[1], ends[0]]) {
                    assert_eq!(enter(namespace.as_fd()), Ok(()));
                    let answered = Echo::open(to, 7, 56, 2000)
                        .map_err(|e| e.to_string())
                        .and_then(|mut e| e.round_trip().map_err(|e| e.to_string()));
                    assert_eq!(answered, Ok(true), "to {to}");
                }
            }
            Err(e) => tailbound_testing::skip("root", e),
        });
        assert!(done.join().is_ok());
    }
}
