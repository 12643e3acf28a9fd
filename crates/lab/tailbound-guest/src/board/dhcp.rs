// SPDX-License-Identifier: MIT OR Apache-2.0
//! An address from a DHCP server, for a board that asks once and is off before it would have to ask again.
//!
//! Source: RFC 2131 (messages), RFC 2132 (options).

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use tailbound_core::crc32;
use tailbound_sys::clock::{self, CLOCK_MONOTONIC};
use tailbound_sys::netns;

use crate::error::GuestError;

const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;
const ANSWER_TIME: Duration = Duration::from_secs(3);
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// What stands before the cookie.
const HEADER_BYTES: usize = 236;
const MESSAGE_BYTES: usize = 300;
const NETMASK: u8 = 1;
const ROUTER: u8 = 3;
const ADDRESS: u8 = 50;
const KIND: u8 = 53;
const SERVER: u8 = 54;
const WISHES: u8 = 55;
const END: u8 = 255;
const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const ACK: u8 = 5;

/// What the server gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) address: Ipv4Addr,
    pub(super) prefix: u8,
    pub(super) gateway: Option<Ipv4Addr>,
}

/// An answer of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    kind: u8,
    server: [u8; 4],
    lease: Lease,
}

/// Asks for one, once.
pub(super) fn lease(device: &str) -> Result<Lease, GuestError> {
    let failed = |why| GuestError::File { path: format!("DHCP on {device}"), why };
    let mac = mac(device)?;
    let now = clock::now_ns(CLOCK_MONOTONIC).to_ne_bytes();
    let transaction = crc32::of(&[&mac[..], &now[..]].concat()).to_be_bytes();
    let own = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, CLIENT_PORT);
    let socket = UdpSocket::bind(own).map_err(failed)?;
    socket.set_broadcast(true).map_err(failed)?;
    socket.set_read_timeout(Some(ANSWER_TIME)).map_err(failed)?;
    netns::bind_to_device(socket.as_fd(), device)?;
    let ask = |options: &[u8], wanted: u8| -> Result<Answer, GuestError> {
        let to = SocketAddrV4::new(Ipv4Addr::BROADCAST, SERVER_PORT);
        socket.send_to(&message(transaction, mac, options), to).map_err(failed)?;
        let (begun, mut bytes) = (Instant::now(), [0; 1500]);
        while begun.elapsed() < ANSWER_TIME {
            let Ok(n) = socket.recv(&mut bytes) else { break };
            let answer = read(bytes.get(..n).unwrap_or_default(), transaction);
            if let Some(answer) = answer.filter(|answer| answer.kind == wanted) {
                return Ok(answer);
            }
        }
        Err(GuestError::NoLease { device: device.to_owned() })
    };
    let wishes = [WISHES, 2, NETMASK, ROUTER];
    let offer = ask(&[&[KIND, 1, DISCOVER][..], &wishes].concat(), OFFER)?;
    let named = |option: u8, four: [u8; 4]| [[option, 4].as_slice(), &four].concat();
    let request = [
        vec![KIND, 1, REQUEST],
        named(ADDRESS, offer.lease.address.octets()),
        named(SERVER, offer.server),
        wishes.to_vec(),
    ];
    Ok(ask(&request.concat(), ACK)?.lease)
}

fn mac(device: &str) -> Result<[u8; 6], GuestError> {
    let path = format!("/sys/class/net/{device}/address");
    let text = fs::read_to_string(&path).map_err(GuestError::file(&path))?;
    let bytes = text.trim().split(':').map(|byte| u8::from_str_radix(byte, 16));
    let bytes: Result<Vec<u8>, _> = bytes.collect();
    let mac = bytes.ok().and_then(|bytes| bytes.try_into().ok());
    mac.ok_or(GuestError::NoNetworkDevice)
}

/// A message to all: who asks has no address yet, so the answer goes to all as well.
fn message(transaction: [u8; 4], mac: [u8; 6], options: &[u8]) -> Vec<u8> {
    let (request, ethernet, mac_bytes, hops) = (1, 1, 6, 0);
    let mut out = vec![request, ethernet, mac_bytes, hops];
    out.extend(transaction);
    // Seconds; to all.
    out.extend([0, 0, 0x80, 0]);
    // Addresses of client, offer, server and relay.
    out.extend([0; 16]);
    out.extend(mac);
    out.resize(HEADER_BYTES, 0);
    out.extend(COOKIE);
    out.extend(options);
    out.push(END);
    out.resize(MESSAGE_BYTES.max(out.len()), 0);
    out
}

/// Reads an answer to this transaction; anybody may have sent it.
fn read(bytes: &[u8], transaction: [u8; 4]) -> Option<Answer> {
    let four = |from: &[u8]| <[u8; 4]>::try_from(from.get(..4)?).ok();
    if bytes.first() != Some(&2) || four(bytes.get(4..)?)? != transaction {
        return None;
    }
    let address = Ipv4Addr::from(four(bytes.get(16..)?)?);
    let mut rest = bytes.get(HEADER_BYTES..)?.strip_prefix(&COOKIE)?;
    let (mut kind, mut server, mut mask, mut gateway) = (0, [0; 4], None, None);
    while let [option, after @ ..] = rest {
        rest = after;
        match *option {
            0 => continue,
            END => break,
            _ => {}
        }
        let [length, after @ ..] = rest else { break };
        let (value, after) = after.split_at_checked(usize::from(*length))?;
        rest = after;
        match *option {
            KIND => kind = *value.first()?,
            SERVER => server = four(value)?,
            NETMASK => mask = four(value),
            ROUTER => gateway = four(value).map(Ipv4Addr::from),
            _ => {}
        }
    }
    let mask = u32::from_be_bytes(mask.unwrap_or([255, 255, 255, 0]));
    let prefix = u8::try_from(mask.leading_ones()).ok()?;
    Some(Answer { kind, server, lease: Lease { address, prefix, gateway } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_and_damage_is_none() {
        let mut offer = message(
            [1, 2, 3, 4],
            [2; 6],
            &[
                KIND, 1, OFFER, 0, NETMASK, 4, 255, 255, 255, 128, ROUTER, 4, 10, 0, 2, 2, SERVER,
                4, 10, 0, 2, 1,
            ],
        );
        offer[0] = 2;
        offer[16..20].copy_from_slice(&[10, 0, 2, 15]);
        let answer = read(&offer, [1, 2, 3, 4]).unwrap();
        assert_eq!((answer.kind, answer.server), (OFFER, [10, 0, 2, 1]));
        assert_eq!(answer.lease.address, Ipv4Addr::new(10, 0, 2, 15));
        assert_eq!(
            (answer.lease.prefix, answer.lease.gateway),
            (25, Some(Ipv4Addr::new(10, 0, 2, 2)))
        );
        assert_eq!(read(&offer, [1, 2, 3, 5]), None);
        for cut in 0..offer.len() {
            let _ = read(&offer[..cut], [1, 2, 3, 4]);
            let mut damaged = offer.clone();
            damaged[cut] ^= 0xff;
            let _ = read(&damaged, [1, 2, 3, 4]);
        }
    }
}
