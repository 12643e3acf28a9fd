// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-over by eight bytes through a descriptor: pipe, socket, eventfd.
//!
//! Context: HOT (`write`, `read`), SETUP (the rest). Source: pipe(7), unix(7), tcp(7), udp(7),
//! eventfd(2).

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::Arc;

use tailbound_rt::Wake;
use tailbound_rt::handover::{Give, Take};

use super::medium::Carrier;
use crate::error::{SysError, check};
use crate::ipc;

/// The sender's and the receiver's descriptor.
pub(super) type Pair = (OwnedFd, OwnedFd);

fn refused(call: &'static str, what: &str, error: &io::Error) -> SysError {
    SysError::code(call, what, error.raw_os_error().unwrap_or(0))
}

pub(super) fn pipe() -> Result<Pair, SysError> {
    let (reader, writer) = io::pipe().map_err(|e| refused("pipe", "", &e))?;
    Ok((writer.into(), reader.into()))
}

/// A counter each read of which takes one.
pub(super) fn eventfd() -> Result<Pair, SysError> {
    // SAFETY: eventfd(2) on integers; the new descriptor is ours alone.
    let fd = unsafe {
        let raw = libc::eventfd(0, libc::EFD_SEMAPHORE | libc::EFD_CLOEXEC);
        check(raw, "eventfd", "")?;
        OwnedFd::from_raw_fd(raw)
    };
    let other = fd.try_clone().map_err(|e| refused("dup", "eventfd", &e))?;
    Ok((fd, other))
}

pub(super) fn socket(carrier: Carrier) -> Result<Pair, SysError> {
    match carrier {
        Carrier::UnixStream => UnixStream::pair().map(|(a, b)| (a.into(), b.into())),
        Carrier::UnixDatagram => UnixDatagram::pair().map(|(a, b)| (a.into(), b.into())),
        Carrier::Tcp => tcp(),
        Carrier::Udp => udp(),
    }
    .map_err(|e| refused("socket", "is the loopback interface up?", &e))
}

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn tcp() -> io::Result<Pair> {
    let listener = TcpListener::bind(ANY_PORT)?;
    let to = TcpStream::connect(listener.local_addr()?)?;
    let own = to.local_addr()?;
    // Anybody on this machine may connect: take the one that is ours.
    let from = loop {
        let (from, peer) = listener.accept()?;
        if peer == own {
            break from;
        }
    };
    for end in [&to, &from] {
        end.set_nodelay(true)?;
        ipc::reset_on_close(end.as_fd()).map_err(|e| io::Error::from_raw_os_error(e.errno))?;
    }
    Ok((to.into(), from.into()))
}

fn udp() -> io::Result<Pair> {
    let (to, from) = (UdpSocket::bind(ANY_PORT)?, UdpSocket::bind(ANY_PORT)?);
    to.connect(from.local_addr()?)?;
    from.connect(to.local_addr()?)?;
    Ok((to.into(), from.into()))
}

/// Either end.
pub(super) struct End(pub(super) Arc<OwnedFd>);

impl Give for End {
    fn give(&mut self) -> Result<(), i32> {
        write(&self.0)
    }
}

impl Take for End {
    fn take(&mut self) -> Wake {
        read(&self.0)
    }
}

/// Eight bytes: what an eventfd wants, the number one.
pub(super) fn write(fd: &OwnedFd) -> Result<(), i32> {
    loop {
        match ipc::write(fd.as_fd(), &1u64.to_ne_bytes()) {
            Ok(_) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.raw_os_error().unwrap_or(0)),
        }
    }
}

pub(super) fn read(fd: &OwnedFd) -> Wake {
    let mut bytes = [0u8; 8];
    match ipc::read(fd.as_fd(), &mut bytes) {
        Ok(0) => Wake::Failed(libc::EPIPE),
        Ok(_) => Wake::Due,
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Wake::Interrupted,
        Err(e) => Wake::Failed(e.raw_os_error().unwrap_or(0)),
    }
}
