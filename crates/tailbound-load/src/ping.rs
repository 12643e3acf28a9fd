// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP echo as fast as replies come, over loopback or over a veth pair of its own, in
//! both directions.
//!
//! Context: the threads are the load; SETUP elsewhere. Units: bytes, ms.
//! Loopback carries requests and replies both ways by itself; on the veth pair each end
//! pings the other. Source: icmp(7), veth(4).

use std::net::Ipv4Addr;
use std::os::fd::AsFd;

use tailbound_sys::icmp::{Echo, Kind};
use tailbound_sys::{SysError, clock, netns};

use crate::spin::Threads;
use crate::worker::Load;

const REPLY_LIMIT_MS: u32 = 200;
/// RFC 5737, TEST-NET-1: nobody's addresses, and in namespaces of their own besides.
const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];

pub(crate) fn start(
    flows: u16,
    veth: bool,
    payload: usize,
    note: &mut dyn FnMut(String),
) -> Result<Box<dyn Load>, String> {
    // Another ping on the machine may use any id: ours begin somewhere.
    let mut id = (clock::now_ns(clock::CLOCK_MONOTONIC) >> 10) as u16;
    let mut open = |to| {
        id = id.wrapping_add(1);
        Echo::open(to, id, payload, REPLY_LIMIT_MS)
    };
    let mut echoes = Vec::new();
    if veth {
        let pair = netns::veth_pair(ENDS).map_err(|e| refused(&e, "veth=yes"))?;
        for (namespace, to) in pair.namespaces.iter().zip([ENDS[1], ENDS[0]]) {
            netns::enter(namespace.as_fd()).map_err(|e| e.to_string())?;
            for _ in 0..flows {
                echoes.push(open(to).map_err(|e| refused(&e, "ping"))?);
            }
        }
        // The sockets keep both namespaces alive, and nothing else does.
    } else {
        for _ in 0..flows {
            echoes.push(open(Ipv4Addr::LOCALHOST).map_err(|e| refused(&e, "ping"))?);
        }
    }
    if echoes.first().is_some_and(|e| e.kind() == Kind::Ping) {
        note("unprivileged ping sockets".to_owned());
    }
    let threads = Threads::new(echoes.len())?;
    for (slot, echo) in echoes.into_iter().enumerate() {
        threads.spawn(slot, None, move |count| flood(echo, count))?;
    }
    Ok(Box::new(threads))
}

fn refused(error: &SysError, what: &str) -> String {
    if error.is_permission() {
        format!("{what} is not permitted here: {error}")
    } else {
        error.to_string()
    }
}

fn flood(mut echo: Echo, count: &dyn Fn(u64)) -> Result<(), String> {
    loop {
        if echo.round_trip().map_err(|e| format!("echo request: {e}"))? {
            count(1);
        }
    }
}
