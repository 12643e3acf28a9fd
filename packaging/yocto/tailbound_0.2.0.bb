# SPDX-License-Identifier: MIT OR Apache-2.0
# Not built here. The tool for boards: without laboratory, store and server.
# TAILBOUND_SOURCES is a clone or an unpacked tarball of the sources; `bitbake -c update_crates tailbound` writes
# tailbound-crates.inc from Cargo.lock, once, and again for each version.
SUMMARY = "How late can this Linux machine be"
DESCRIPTION = "Measures how late threads wake up under load, names what made them late, changes the settings that decide it."
SECTION = "console/utils"
LICENSE = "MIT | Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE-MIT;md5=e45a21d20e9b658e3acd1305603e630b file://LICENSE-APACHE;md5=1836efb2eb779966696f473ee8540542"

inherit externalsrc cargo cargo-update-recipe-crates systemd

require ${BPN}-crates.inc

TAILBOUND_SOURCES ?= "${HOME}/tailbound"
EXTERNALSRC = "${TAILBOUND_SOURCES}"
CARGO_SRC_DIR = "crates/tailbound"
CARGO_BUILD_FLAGS:append = " --no-default-features --features board --bin tailbound"

SYSTEMD_SERVICE:${PN} = "tailbound-monitor.service"
SYSTEMD_AUTO_ENABLE:${PN} = "disable"

do_install:append() {
    install -d ${D}${systemd_system_unitdir}
    sed -e 's,/usr/local/bin/,${bindir}/,' ${S}/docs/examples/ci/tailbound-monitor.service \
        > ${D}${systemd_system_unitdir}/tailbound-monitor.service
}

FILES:${PN} += "${systemd_system_unitdir}"
RSUGGESTS:${PN} = "trace-cmd"
