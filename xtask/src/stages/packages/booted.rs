// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packages under a systemd that runs: a Debian is booted in a container, and `booted.sh` tries each unit there.
//!
//! Source: systemd-nspawn(1), systemd.exec(5).

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::debian;
use super::room::BareRoot;
use crate::release::Release;
use crate::stages::tally::Tally;
use crate::{bare, exec};

const SUITE: &str = "bookworm";
const SCRIPT: &str = include_str!("booted.sh");

/// Runs the script once the system is up, and turns the system off.
const UNIT: &str = "[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=/bin/sh /srv/booted.sh\n\
StandardOutput=file:/srv/said\nStandardError=inherit\nExecStopPost=/bin/systemctl poweroff --force\n";

/// All of it.
pub(super) fn all(project: &Path, now: &Release, tally: &mut Tally) {
    let name = "packages under a running systemd";
    for (program, package) in [("systemd-nspawn", "systemd-container"), ("openssl", "openssl")] {
        if !exec::exists(program) {
            let why = format!("there is no {program} (Debian package {package})");
            return tally.skip(name, "nspawn", &why);
        }
    }
    if let Some(why) = bare::missing() {
        return tally.skip(name, "bare-root", &why);
    }
    if std::env::var_os(bare::INSIDE).is_some() {
        return tally.skip(name, "bare-outside", "this is a bare root");
    }
    let room = match BareRoot::with_systemd(project, SUITE, "booted") {
        Ok(room) => room,
        Err(e) => return tally.skip(name, "bare-root", &format!("{e:#}")),
    };
    match said(&room, now) {
        Ok(Some(said)) => counted(&said, tally),
        Ok(None) => {
            let log = fs::read_to_string(room.log()).unwrap_or_default();
            let why = format!("systemd does not come up in a container here: {}", log.trim());
            tally.skip(name, "nspawn", &why);
        }
        Err(e) => tally.fail(name, format!("{e:#}")),
    }
}

/// What the script said; none where systemd did not come so far as to start it.
fn said(room: &BareRoot, now: &Release) -> anyhow::Result<Option<String>> {
    room.give(&debian::debs(now)?)?;
    certificate(&room.root.join("etc/tailbound"))?;
    fs::write(room.root.join("srv/booted.sh"), SCRIPT)?;
    let units = room.root.join("etc/systemd/system");
    fs::write(units.join("tried.service"), UNIT)?;
    fs::create_dir_all(units.join("multi-user.target.wants"))?;
    symlink("../tried.service", units.join("multi-user.target.wants/tried.service"))?;
    let ended = room.boot()?;
    let said = fs::read_to_string(room.root.join("srv/said")).ok().filter(|said| !said.is_empty());
    ensure!(ended.is_some() || said.is_none(), "it hung: {}", said.unwrap_or_default());
    Ok(said)
}

/// Of the server, as the page of the units has it.
fn certificate(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let key = folder.join("farm.key");
    let mut openssl = exec::command("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    openssl.args(["-nodes", "-days", "2", "-subj", "/CN=farm.example"]);
    for extension in ["basicConstraints=critical,CA:FALSE", "subjectAltName=DNS:farm.example"] {
        openssl.args(["-addext", extension]);
    }
    openssl.arg("-keyout").arg(&key).arg("-out").arg(folder.join("farm.pem"));
    let out = exec::output(&mut openssl)?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).context("farm.key")
}

/// Its lines as checks: what was said before a `failed` is why.
fn counted(said: &str, tally: &mut Tally) {
    let mut why = String::new();
    for line in said.lines() {
        if let Some(what) = line.strip_prefix("ok: ") {
            tally.pass(&format!("under systemd: {what}"));
        } else if let Some(what) = line.strip_prefix("failed: ") {
            tally.fail(&format!("under systemd: {what}"), std::mem::take(&mut why));
        } else {
            why.push_str(line);
            why.push('\n');
        }
    }
    let wanted = SCRIPT.lines().filter(|line| line.starts_with("check \"")).count();
    let answered = said.lines().filter(|l| l.starts_with("ok: ") || l.starts_with("failed: "));
    let answered = answered.count();
    if answered != wanted {
        tally.fail("under systemd: all of the script", format!("{answered} of {wanted} checks"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_check_and_a_missing_one_is_a_failure() {
        let mut tally = Tally::default();
        counted("ok: a\nbad thing\nfailed: b\n", &mut tally);
        assert_eq!(tally.passed(), 1);
        let failed: Vec<_> = tally.failed().collect();
        assert_eq!(failed[0], ("under systemd: b", "bad thing\n"));
        assert_eq!(failed[1].0, "under systemd: all of the script");
    }
}
