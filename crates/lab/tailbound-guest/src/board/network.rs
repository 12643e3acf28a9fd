// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network of a board, once it has measured: an address from wherever it was said.
//!
//! Units: s.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use tailbound_core::board::AddressSource;
use tailbound_sys::netns;

use super::dhcp::{self, Lease};
use super::patience::Patience;
use crate::error::GuestError;

const DEVICES: &str = "/sys/class/net";
/// What `type` says of Ethernet.
const ETHERNET: &str = "1";
/// A wire and a switch need some seconds until they agree.
const TRIES: u32 = 12;
const PAUSE: Duration = Duration::from_secs(2);
/// For one try with each device.
const TRY_S: u64 = 60;

/// Brings it up.
pub(super) fn up(source: AddressSource, patience: &Patience) -> Result<(), GuestError> {
    let devices = devices();
    match source {
        AddressSource::Kernel => Ok(()),
        _ if devices.is_empty() => Err(GuestError::NoNetworkDevice),
        AddressSource::Dhcp => by_dhcp(&devices, patience),
        AddressSource::Fixed { address, prefix, gateway } => {
            for device in &devices {
                netns::set_up(device)?;
            }
            patience.allow(TRY_S);
            let device = with_carrier(&devices);
            configure(device, address, prefix, gateway)
        }
    }
}

/// Devices of Ethernet by name.
fn devices() -> Vec<String> {
    let entries = fs::read_dir(DEVICES).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| says(&entry.path().join("type"), ETHERNET))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn says(path: &Path, text: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|said| said.trim() == text)
}

/// The first that has a wire; the first of all where none says so in time.
fn with_carrier(devices: &[String]) -> &str {
    for _ in 0..TRIES {
        let wired = |d: &&String| says(&Path::new(DEVICES).join(d).join("carrier"), "1");
        if let Some(device) = devices.iter().find(wired) {
            return device;
        }
        std::thread::park_timeout(PAUSE);
    }
    devices.first().map_or("", String::as_str)
}

fn by_dhcp(devices: &[String], patience: &Patience) -> Result<(), GuestError> {
    for device in devices {
        netns::set_up(device)?;
    }
    let mut why = GuestError::NoNetworkDevice;
    for _ in 0..TRIES {
        for device in devices {
            patience.allow(TRY_S);
            match dhcp::lease(device) {
                Ok(Lease { address, prefix, gateway }) => {
                    super::say(&format!("{device}: {address}/{prefix} by DHCP"));
                    return configure(device, address, prefix, gateway);
                }
                Err(e) => why = e,
            }
        }
        std::thread::park_timeout(PAUSE);
    }
    Err(why)
}

fn configure(
    device: &str,
    address: Ipv4Addr,
    prefix: u8,
    gateway: Option<Ipv4Addr>,
) -> Result<(), GuestError> {
    netns::add_address(device, address, prefix)?;
    match gateway {
        Some(gateway) => Ok(netns::add_default_route(gateway)?),
        None => Ok(()),
    }
}
