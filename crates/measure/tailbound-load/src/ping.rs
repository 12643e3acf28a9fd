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

use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::options::Reader;
use crate::spin::Threads;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "ping-flood",
    unit: "echoes",
    about: "ICMP echo as fast as replies come: network stack and softirqs",
    options: &[
        ("flows", "flows at the same time, in each direction (default 1)"),
        ("veth", "yes: through a veth pair between namespaces of its own (default no: loopback)"),
        ("size", "payload bytes (default 56)"),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

const REPLY_LIMIT_MS: u32 = 200;
const FLOWS_MAX: u32 = 1000;
/// What ping(8) sends.
const SIZE_DEFAULT_BYTES: usize = 56;
/// A packet of IPv4 holds 65,535 bytes; its header takes 20 and that of ICMP 8.
const SIZE_MAX_BYTES: u32 = 65_507;
/// RFC 5737, TEST-NET-1: nobody's addresses, and in namespaces of their own besides.
const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];

/// How many flows, over what, and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    flows: usize,
    veth: bool,
    size: usize,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        Ok(Self {
            flows: r.count("flows", 1, FLOWS_MAX)?.unwrap_or(1),
            veth: r.yes_no("veth")?.unwrap_or(false),
            size: r.count("size", 0, SIZE_MAX_BYTES)?.unwrap_or(SIZE_DEFAULT_BYTES),
        })
    }
}

fn start(options: Options, note: Note<'_>) -> Started {
    // Another ping on the machine may use any id: ours begin somewhere.
    let mut id = (clock::now_ns(clock::CLOCK_MONOTONIC) >> 10) as u16;
    let mut open = |to| {
        id = id.wrapping_add(1);
        Echo::open(to, id, options.size, REPLY_LIMIT_MS)
    };
    let mut echoes = Vec::new();
    if options.veth {
        let pair = netns::veth_pair(ENDS).map_err(|e| refused(e, "veth=yes"))?;
        for (namespace, to) in pair.namespaces.iter().zip([ENDS[1], ENDS[0]]) {
            netns::enter(namespace.as_fd())?;
            for _ in 0..options.flows {
                echoes.push(open(to).map_err(|e| refused(e, "ping"))?);
            }
        }
        // The sockets keep both namespaces alive, and nothing else does.
    } else {
        for _ in 0..options.flows {
            echoes.push(open(Ipv4Addr::LOCALHOST).map_err(|e| refused(e, "ping"))?);
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

fn refused(error: SysError, what: &str) -> Failure {
    if error.is_permission() {
        Failure::from(error).on(format_args!("{what} is not permitted here"))
    } else {
        error.into()
    }
}

fn flood(mut echo: Echo, count: &dyn Fn(u64)) -> Result<(), Failure> {
    loop {
        if echo.round_trip().on("echo request")? {
            count(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("ping-flood:flows=3,veth=yes,size=0", Options::read);
        assert_eq!(asked, Options { flows: 3, veth: true, size: 0 });
        let usual = read("ping-flood", Options::read);
        assert_eq!(usual, Options { flows: 1, veth: false, size: 56 });
    }
}
