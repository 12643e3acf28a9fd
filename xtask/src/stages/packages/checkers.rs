// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that look at packages, units and scripts, where this machine has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::ensure;

use crate::exec;
use crate::release::Release;
use crate::stages::tally::Tally;

/// The most that `systemd-analyze security` may rate a unit, in tenths; what is above does what the unit is for.
const EXPOSURE: [(&str, u32); 5] = [
    ("tailbound-server.service", 20),
    ("tailbound-monitor.service", 25),
    ("tailbound-agent.service", 50),
    ("tailbound.service", 70),
    ("tailbound-tune.service", 80),
];

/// All of them.
pub(super) fn all(project: &Path, now: &Release, tally: &mut Tally) -> anyhow::Result<()> {
    let with = |extension: &str| -> anyhow::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&now.out)? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    };
    let mut lintian = exec::command("lintian");
    lintian.args(["--fail-on", "error,warning", "--allow-root"]).args(with("deb")?);
    look(tally, "lintian", "lintian", lintian);
    let mut rpmlint = exec::command("rpmlint");
    rpmlint.arg("--config").arg(project.join("packaging/rpm/rpmlint.toml")).args(with("rpm")?);
    look(tally, "rpmlint", "rpmlint", rpmlint);
    let mut shellcheck = exec::command("shellcheck");
    shellcheck.args(["--shell=sh", "--severity=style"]);
    for entry in fs::read_dir(project.join("packaging/deb"))? {
        let path = entry?.path();
        let kind = path.extension().unwrap_or_default();
        if ["postinst", "prerm", "postrm"].iter().any(|k| kind == *k) {
            shellcheck.arg(path);
        }
    }
    look(tally, "shellcheck of the maintainer scripts", "shellcheck", shellcheck);
    units(now, tally)
}

/// Units as they are installed.
fn units(now: &Release, tally: &mut Tally) -> anyhow::Result<()> {
    if !exec::exists("systemd-analyze") {
        tally.skip(
            "packaged units",
            "systemd",
            "there is no systemd-analyze (Debian package systemd)",
        );
        return Ok(());
    }
    let root = now.out.join("units");
    for entry in fs::read_dir(&now.out)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "deb") {
            exec::succeed(exec::command("dpkg-deb").arg("--extract").arg(path).arg(&root))?;
        }
    }
    for (unit, most) in EXPOSURE {
        let path = root.join("usr/lib/systemd/system").join(unit);
        let mut analyze = exec::command("systemd-analyze");
        analyze.args(["security", "--offline=yes", "--no-pager"]);
        analyze.arg(format!("--threshold={most}")).arg(&path);
        tally.add(
            &format!("systemd-analyze security {unit}"),
            exec::output(&mut analyze).and_then(accepted),
        );
        let mut verify = exec::command("systemd-analyze");
        let out = exec::output(verify.args(["verify", "--man=no"]).arg(&path))?;
        // The program is not installed on this machine.
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let complaint: String = said.lines().filter(|l| !l.contains("is not executable")).collect();
        let result = if complaint.is_empty() { Ok(()) } else { Err(anyhow::anyhow!(complaint)) };
        tally.add(&format!("systemd-analyze verify {unit}"), result);
    }
    fs::remove_dir_all(&root)?;
    Ok(())
}

fn look(tally: &mut Tally, name: &str, program: &str, mut c: Command) {
    if exec::exists(program) {
        tally.add(name, exec::output(&mut c).and_then(accepted));
    } else {
        tally.skip(name, program, &format!("there is no {program} (Debian package {program})"));
    }
}

fn accepted(out: Output) -> anyhow::Result<()> {
    let (said, complaint) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    ensure!(out.status.success(), "{said}{complaint}");
    Ok(())
}
