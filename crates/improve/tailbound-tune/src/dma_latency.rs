// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request to keep CPUs out of deep idle states, for as long as it is held.
//!
//! Context: SETUP. Units: µs. The kernel forgets the request when the descriptor is
//! closed, so a crash or kill -9 restores the old state by itself.
//! Source: Documentation/power/pm_qos_interface.rst, "/dev/cpu_dma_latency".

use std::fs::File;
use std::io::Write;

use tailbound_sys::SysError;

/// The held request.
#[derive(Debug)]
pub struct DmaLatency(#[expect(dead_code, reason = "held for its effect while open")] File);

/// Asks for a wake-up latency of at most `us`.
///
/// # Errors
/// ENOENT where the kernel has no CPU idle QoS, EACCES without root.
pub fn hold(us: i32) -> Result<DmaLatency, SysError> {
    const PATH: &str = "/dev/cpu_dma_latency";
    let fail = |call, e: std::io::Error| {
        SysError::code(call, PATH, e.raw_os_error().unwrap_or(0)).needs("root")
    };
    let mut file = File::options().write(true).open(PATH).map_err(|e| fail("open", e))?;
    file.write_all(&us.to_ne_bytes()).map_err(|e| fail("write", e))?;
    Ok(DmaLatency(file))
}
