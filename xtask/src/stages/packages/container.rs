// SPDX-License-Identifier: MIT OR Apache-2.0
//! The container: measures with the capabilities that its page names, and says which it lacks.

use std::fs;
use std::path::Path;
use std::process::Output;

use anyhow::ensure;

use crate::exec;
use crate::release::Release;
use crate::stages::tally::Tally;

const NAME: &str = "tailbound-tried";

/// All of it.
pub(super) fn all(now: &Release, folder: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let name = "the container";
    if !exec::exists("buildah") {
        tally.skip(name, "buildah", "there is no buildah (Debian package buildah)");
        return Ok(());
    }
    let storage = folder.join("container");
    let Some(archive) = archive(now)? else {
        tally.skip(
            name,
            "containers",
            "buildah could not build it here (neither root nor user namespaces?)",
        );
        return Ok(());
    };
    let from = buildah(&storage, &["from", "--name", NAME, &format!("oci-archive:{archive}")])?;
    let program =
        ["run", "--isolation=chroot", NAME, "--", "/usr/local/bin/tailbound", "--version"];
    let started = if from.status.success() { buildah(&storage, &program)? } else { from };
    if !started.status.success() {
        // Neither root nor user namespaces, or a root that was changed already.
        tally.skip(name, "containers", String::from_utf8_lossy(&started.stderr).trim());
        return Ok(());
    }
    tally.add("the container measures with SYS_NICE and IPC_LOCK", measures(&storage));
    tally.add("the container says which capability it lacks", refuses(&storage));
    Ok(())
}

fn archive(now: &Release) -> anyhow::Result<Option<String>> {
    for entry in fs::read_dir(&now.out)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".oci.tar") {
            return Ok(Some(path.display().to_string()));
        }
    }
    Ok(None)
}

fn buildah(storage: &Path, words: &[&str]) -> anyhow::Result<Output> {
    let mut c = exec::command("buildah");
    c.args(["--storage-driver=vfs", "--root"]).arg(storage.join("images"));
    exec::output(c.arg("--runroot").arg(storage.join("run")).args(words))
}

fn run(storage: &Path, capabilities: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
    let mut words = vec!["run", "--isolation=chroot"];
    words.extend(capabilities.iter().flat_map(|c| ["--cap-add", c]));
    words.extend([
        NAME,
        "--",
        "/usr/local/bin/tailbound",
        "run",
        "--policy",
        "fifo:95",
        "-D",
        "1s",
    ]);
    let out = buildah(storage, &words)?;
    let said = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    Ok((out.status.code(), said.into_owned()))
}

fn measures(storage: &Path) -> anyhow::Result<()> {
    let (status, said) = run(storage, &["CAP_SYS_NICE", "CAP_IPC_LOCK"])?;
    ensure!(matches!(status, Some(0 | 5)) && said.contains("Measured: "), "{status:?} {said}");
    ensure!(!said.contains("not-locked") && !said.contains("not-realtime"), "{said}");
    Ok(())
}

fn refuses(storage: &Path) -> anyhow::Result<()> {
    let (status, said) = run(storage, &[])?;
    ensure!(status == Some(3) && said.contains("--cap-add SYS_NICE"), "{status:?} {said}");
    Ok(())
}
