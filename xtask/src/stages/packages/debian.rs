// SPDX-License-Identifier: MIT OR Apache-2.0
//! The .deb in a bare root: install, measure, read, enable, upgrade, remove, purge.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::room::BareRoot;
use crate::exec;
use crate::release::Release;
use crate::stages::tally::Tally;

/// From the file to the first figure, the measurement of five seconds in it.
const FIRST_FIGURE: Duration = Duration::from_secs(60);

/// What a machine's owner keeps, and an upgrade leaves.
const OWNERS: [&str; 2] =
    ["etc/tailbound/agent.toml", "etc/systemd/system/tailbound-monitor.service.d/own.conf"];

/// A change that was made and undone: the history, which goes with a purge.
const HISTORY: (&str, &str) = (
    "var/lib/tailbound/tune/000001.jsonl",
    "{\"ended\":{\"time\":\"2026-11-28T00:00:00Z\",\"left\":0}}\n",
);

const UNITS: &str =
    "tailbound-monitor tailbound-agent tailbound-tune tailbound-server tailbound.timer";

/// Where a change that outlives a reboot is written down.
const JOURNALS: &str = "var/lib/tailbound/tune";

/// All of it; the root is as it was before at the end.
pub(super) fn all(suite: &str, room: &BareRoot, [before, now]: [&Release; 2], tally: &mut Tally) {
    for (program, what) in [("systemctl", "enabled units"), ("man", "the manual")] {
        if !exec::exists(program) {
            tally.skip(&format!("{suite}: {what}"), program, &format!("there is no {program}"));
            return;
        }
    }
    let mut check = |what: &str, result: anyhow::Result<()>| {
        let is_ok = result.is_ok();
        tally.add(&format!("{suite}: {what}"), result);
        is_ok
    };
    let fresh = match room.paths().and_then(|paths| given(room, [before, now]).map(|()| paths)) {
        Ok(paths) => paths,
        Err(e) => {
            check("a root with the packages", Err(e));
            return;
        }
    };
    if !check("install the version before", install(room, before)) {
        return;
    }
    check("no unit is enabled by installing", none_enabled(room));
    check("the manual is there", manual(room));
    check("completion", completion(room));
    check("systemctl enables every unit", enable(room));
    check("the owner changes files and a setting", own(room));
    check("upgrade, and a figure within a minute", upgrade(room, now));
    check("upgrading keeps what the owner changed, history, and the change in force", kept(room));
    check("removing is refused while a change is in force", refused(room));
    check("purging is refused while a change is in force", stranded(room));
    check("remove", removed(room));
    check("purge leaves nothing, and nothing else goes", purged(room, &fresh));
}

pub(super) fn debs(release: &Release) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(&release.out)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "deb") {
            found.push(path);
        }
    }
    ensure!(found.len() == 2, "{}: {} packages, not 2", release.out.display(), found.len());
    Ok(found)
}

fn given(room: &BareRoot, releases: [&Release; 2]) -> anyhow::Result<()> {
    for release in releases {
        room.give(&debs(release)?)?;
    }
    Ok(())
}

fn install(room: &BareRoot, release: &Release) -> anyhow::Result<()> {
    room.run(&format!("dpkg --install /srv/*_{}_*.deb", release.version)).map(drop)
}

/// Everything below /etc/systemd that names one of ours.
fn enabled(room: &BareRoot) -> anyhow::Result<Vec<PathBuf>> {
    let ours = |path: &PathBuf| {
        path.starts_with("etc/systemd")
            && path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("tailbound"))
            && fs::symlink_metadata(room.root.join(path)).is_ok_and(|m| m.is_symlink())
    };
    Ok(room.paths()?.into_iter().filter(ours).collect())
}

fn none_enabled(room: &BareRoot) -> anyhow::Result<()> {
    let found = enabled(room)?;
    ensure!(found.is_empty(), "{found:?}");
    Ok(())
}

/// man(1) of this machine: a bare root has none.
fn manual(room: &BareRoot) -> anyhow::Result<()> {
    for page in ["tailbound", "tailbound-run", "tailbound-server"] {
        let mut man = exec::command("man");
        man.arg("-M").arg(room.root.join("usr/share/man")).args([
            "--warnings",
            "-E",
            "UTF-8",
            page,
        ]);
        let out = exec::output(man.env("MANWIDTH", "100").env("MANPAGER", "cat"))?;
        let (text, complaint) =
            (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        ensure!(out.status.success() && text.contains("SYNOPSIS"), "man {page}: {text}{complaint}");
    }
    Ok(())
}

fn completion(room: &BareRoot) -> anyhow::Result<()> {
    let script = "bash -euc '. /usr/share/bash-completion/completions/tailbound\n\
                  complete -p tailbound\nCOMP_WORDS=(tailbound comp); COMP_CWORD=1\n_tailbound tailbound comp tailbound\n\
                  echo \"${COMPREPLY[@]}\"'";
    let said = room.run(script)?;
    ensure!(said.contains("-F _tailbound") && said.contains("compare"), "{said}");
    Ok(())
}

fn enable(room: &BareRoot) -> anyhow::Result<()> {
    let mut systemctl = exec::command("systemctl");
    systemctl.arg("--root").arg(&room.root).arg("enable").args(UNITS.split(' '));
    let out = exec::output(&mut systemctl)?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let (found, wanted) = (enabled(room)?.len(), UNITS.split(' ').count());
    ensure!(found == wanted, "{found} of {wanted} units are enabled");
    Ok(())
}

fn own(room: &BareRoot) -> anyhow::Result<()> {
    for path in OWNERS {
        let path = room.root.join(path);
        fs::create_dir_all(path.parent().context("a file of /etc")?)?;
        fs::write(path, "# the owner's\n")?;
    }
    let (path, text) = HISTORY;
    fs::create_dir_all(room.root.join(JOURNALS))?;
    fs::write(room.root.join(path), text)?;
    apply(room)
}

/// From the downloaded file to the answer.
fn upgrade(room: &BareRoot, now: &Release) -> anyhow::Result<()> {
    let from = Instant::now();
    install(room, now)?;
    let said = room.run(
        "cd /tmp; status=0; tailbound run -D 5s || status=$?; \
         [ $status = 0 ] || [ $status = 5 ] || exit 1; ls *.tailbound.jsonl",
    )?;
    let took = from.elapsed();
    ensure!(said.contains("Measured: "), "no figure:\n{said}");
    println!("    from the file to the first figure: {:.1} s", took.as_secs_f64());
    ensure!(took <= FIRST_FIGURE, "{:.0} s to the first figure", took.as_secs_f64());
    let version =
        room.run("dpkg-query --show --showformat='${Version} ' tailbound tailbound-server")?;
    let both = format!("{v} {v} ", v = now.version);
    ensure!(version == both, "installed are {version}");
    Ok(())
}

fn kept(room: &BareRoot) -> anyhow::Result<()> {
    for path in OWNERS {
        let text = fs::read_to_string(room.root.join(path)).context(path)?;
        ensure!(text == "# the owner's\n", "{path}: {text}");
    }
    let (path, text) = HISTORY;
    ensure!(fs::read_to_string(room.root.join(path))? == text, "the history is not what it was");
    let status = room.run("tailbound tune status --json")?;
    ensure!(status.contains("\"number\": 2"), "the change is no longer in force: {status}");
    let (found, wanted) = (enabled(room)?.len(), UNITS.split(' ').count());
    ensure!(found == wanted, "{found} of {wanted} units are still enabled");
    Ok(())
}

/// A journal as a kill leaves it, of a change that nothing has to be restored for: its setting is no longer there.
fn apply(room: &BareRoot) -> anyhow::Result<()> {
    let plan = room.run(
        "tailbound tune plan --set swappiness=$(($(cat /proc/sys/vm/swappiness) + 1)) --out /tmp/plan >/dev/null; cat /tmp/plan",
    )?;
    let plan: serde_json::Value = serde_json::from_str(&plan).context("a plan of tune")?;
    let old = plan["steps"][0]["old"].clone();
    let lines = [
        serde_json::json!({"begin": {"time": "2026-11-28T00:00:00Z", "plan": plan}}),
        serde_json::json!({"intent": {"step": 0, "old": old}}),
    ];
    let journal = room.root.join(JOURNALS);
    fs::create_dir_all(&journal)?;
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(journal.join("000002.jsonl"), text)?;
    let status = room.run("tailbound tune status --json")?;
    ensure!(status.contains("\"number\": 2"), "tune status does not see the journal: {status}");
    Ok(())
}

fn refused(room: &BareRoot) -> anyhow::Result<()> {
    let (status, said) = room.tried("dpkg --remove tailbound")?;
    ensure!(status != Some(0), "it was removed");
    ensure!(said.contains("tailbound tune undo --all"), "{said}");
    ensure!(room.root.join("usr/bin/tailbound").is_file(), "the program is gone");
    // Nothing is restored: nothing was changed.
    room.run("tailbound tune undo --all --forget")?;
    let status = room.run("tailbound tune status --json")?;
    ensure!(!status.contains("\"number\""), "the change is still in force: {status}");
    Ok(())
}

/// Where the program went without its script: forced, or by hand.
fn stranded(room: &BareRoot) -> anyhow::Result<()> {
    let journal = room.root.join(JOURNALS).join("000002.jsonl");
    let ended = fs::read(&journal)?;
    room.run("dpkg --remove tailbound tailbound-server")?;
    ensure!(journal.is_file(), "removing took the history of changes");
    fs::write(&journal, "{\"begin\":{}}\n")?;
    let (status, said) = room.tried("dpkg --purge tailbound")?;
    ensure!(status != Some(0) && said.contains("Install the package again"), "{status:?} {said}");
    ensure!(journal.is_file(), "purging took a journal that is needed");
    fs::write(&journal, ended)?;
    Ok(())
}

fn removed(room: &BareRoot) -> anyhow::Result<()> {
    ensure!(!room.root.join("usr/bin/tailbound").exists(), "the program is still there");
    for path in OWNERS {
        ensure!(room.root.join(path).is_file(), "removing took {path}");
    }
    Ok(())
}

fn purged(room: &BareRoot, fresh: &std::collections::BTreeSet<PathBuf>) -> anyhow::Result<()> {
    let runs = room.root.join("var/lib/tailbound-runs");
    fs::create_dir_all(&runs)?;
    fs::write(runs.join("night.tailbound.jsonl"), "measured\n")?;
    let said = room.run("dpkg --purge tailbound tailbound-server")?;
    ensure!(runs.join("night.tailbound.jsonl").is_file(), "purging took what was measured");
    ensure!(
        said.contains("/var/lib/tailbound-runs has runs"),
        "nobody says that runs stay: {said}"
    );
    fs::remove_dir_all(&runs)?;
    // The second time nothing holds the user.
    install_and_purge(room)?;
    let own = |path: &PathBuf| {
        // systemctl made the folders of what the owner enabled.
        path.starts_with("srv")
            || path.extension().is_some_and(|e| e == "wants")
            || OWNERS.iter().any(|o| Path::new(o).starts_with(path))
    };
    let now = room.paths()?;
    let left: Vec<&PathBuf> = now.difference(fresh).filter(|p| !own(p)).collect();
    let lost: Vec<&PathBuf> = fresh.difference(&now).collect();
    if !left.is_empty() || !lost.is_empty() {
        bail!("left: {left:?}; lost: {lost:?}");
    }
    let passwd = fs::read_to_string(room.root.join("etc/passwd"))?;
    ensure!(!passwd.contains("tailbound"), "the user is still there");
    Ok(())
}

fn install_and_purge(room: &BareRoot) -> anyhow::Result<()> {
    let install = format!("dpkg --install /srv/tailbound_{}_*.deb", super::BEFORE);
    room.run(&format!("{install}; dpkg --purge tailbound")).map(drop)
}
