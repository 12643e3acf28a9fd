// SPDX-License-Identifier: MIT OR Apache-2.0
//! `machine.*`: which board or computer it is.
//!
//! Serial numbers and host names are left out: a run file is made to be shared.
//! Source: Documentation/ABI/testing/sysfs-firmware-dmi-tables, devicetree `model`.

use super::Sheet;
use crate::root::Missing;

/// Where DMI strings are; device-tree boards have none.
pub(super) const DMI: &str = "/sys/class/dmi/id";

pub(super) fn read(sheet: &mut Sheet<'_>) {
    let root = sheet.root;
    let dmi = |name: &str| root.read_trimmed(&format!("{DMI}/{name}"));
    let tree = |name: &str| {
        root.read_trimmed(&format!("/proc/device-tree/{name}"))
            .or_else(|_| root.read_trimmed(&format!("/sys/firmware/devicetree/base/{name}")))
    };
    let neither = |e: Missing| match e {
        Missing::NotApplicable(_) => Missing::NotApplicable(
            "neither DMI nor a device tree describes this machine".to_owned(),
        ),
        unknown @ Missing::Unknown(_) => unknown,
    };
    sheet.put("machine.model", tree("model").or_else(|_| dmi("product_name")).map_err(neither));
    sheet.put("machine.vendor", dmi("sys_vendor"));
    sheet.put("machine.board", dmi("board_name"));
    sheet.put("machine.compatible", tree("compatible").map(|t| t.replace('\0', " ")));
    let firmware = dmi("bios_version").map(|version| {
        let date = dmi("bios_date").unwrap_or_default();
        format!("{version} {date}").trim().to_owned()
    });
    sheet.put("machine.firmware", firmware);
    let architecture = root.read_trimmed("/proc/sys/kernel/arch").or_else(|e| {
        // Before Linux 6.1 only a system call tells; this program runs on what it was built for.
        if root.is_real() { Ok(std::env::consts::ARCH.to_owned()) } else { Err(e.as_unknown()) }
    });
    sheet.put("machine.architecture", architecture);
}
