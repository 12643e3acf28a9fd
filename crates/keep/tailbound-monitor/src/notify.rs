// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells the service manager how it stands: one datagram to the socket that it names.
//!
//! Nobody listens, or it cannot be told: then nothing happens, as sd_notify(3) has it.
//! Source: sd_notify(3), the part "Notes" for programs without the library.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// Sends `state` (`READY=1`, `STATUS=…`) to the manager that started this process.
pub(crate) fn tell(state: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        send(Path::new(&socket), state).unwrap_or_default();
    }
}

fn send(to: &Path, state: &str) -> std::io::Result<()> {
    let bytes = to.as_os_str().as_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(to)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_with_a_path_and_abstract_ones_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let name = format!("tailbound-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let other = UnixDatagram::bind_addr(&address).unwrap();
        let mut buffer = [0; 32];
        for (to, from) in [(path.as_path(), manager), (Path::new(&format!("@{name}")), other)] {
            send(to, "READY=1").unwrap();
            let n = from.recv(&mut buffer).unwrap();
            assert_eq!(buffer.get(..n).unwrap(), b"READY=1");
        }
        assert!(send(Path::new("/nowhere/notify"), "READY=1").is_err());
    }
}
