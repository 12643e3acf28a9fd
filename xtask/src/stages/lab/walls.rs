// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is around a guest: QEMU without rights and with a main loop that is woken all the time, a user without any, guests that
//! die or do not end.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::{LIMIT, Lab, RT};
use crate::exec;
use crate::stages::tally::Tally;

/// Whom any system knows.
const NOBODY: u32 = 65534;

/// How often a run is made with a main loop that never rests.
const RESTLESS_RUNS: u32 = 8;
impl Lab {
    /// What /proc says of QEMU while it runs: a filter, no new rights, and for root another user.
    pub(super) fn walls(&self) -> anyhow::Result<()> {
        let words = ["lab", "run", "-q", "-k", RT, "-l", "4000000", "-o", "walls.jsonl"];
        let mut tool = self.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let status = qemu_of(&tool);
        // Its QEMU ends with it.
        let _gone = (tool.kill(), tool.wait());
        let (_, status) = status?;
        let field = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name));
            line.map(|l| l.trim().to_owned()).unwrap_or_default()
        };
        ensure!(field("NoNewPrivs:") == "1" && field("CapEff:") == "0".repeat(16), "{status}");
        let root = fs::metadata("/proc/self")?.uid() == 0;
        ensure!(!root || !field("Uid:").starts_with("0\t"), "{status}");
        Ok(())
    }

    /// Signals that QEMU's main loop takes and forgets wake it all the time: half of the runs
    /// whose virtual CPU is not kept from it are others then.
    pub(super) fn restless(&self) -> anyhow::Result<()> {
        for i in 1..=RESTLESS_RUNS {
            let out = format!("restless-{i}.jsonl");
            let words = ["lab", "run", "-q", "-k", RT, "-l", "1000", "-o", &out];
            let quiet = self.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let mut tool = quiet?;
            let woken = qemu_of(&tool).and_then(|(pid, _)| {
                let wake = format!("while kill -ALRM {pid}; do :; done 2> /dev/null");
                Ok(exec::command("sh").args(["-c", &wake]).status()?)
            });
            ensure!(tool.wait()?.success(), "{out}: the run failed");
            woken?;
            let same = fs::read(self.folder.join(&out))? == fs::read(self.folder.join("a.jsonl"))?;
            ensure!(same, "a run whose main loop was woken all the time differs: a.jsonl, {out}");
        }
        Ok(())
    }

    pub(super) fn deaths(&self) -> anyhow::Result<()> {
        let cases: [(&[&str], &str); 3] = [
            (&["--append", "rdinit=/nothing"], "Unable to mount root fs"),
            (&["--memory", "64"], "--memory"),
            (&["--append", "tailbound.results=/dev/ttyS7"], "results line is missing"),
        ];
        for (more, meaning) in cases {
            let words = ["lab", "run", "--quiet", "--no-snapshot", "-k", RT, "-o", "dead.jsonl"];
            let said = self.answers(&[&words, more].concat(), 3)?;
            ensure!(said.contains(meaning), "{more:?} does not explain itself:\n{said}");
            ensure!(!self.folder.join("dead.jsonl").exists(), "{more:?} left a run file");
        }
        Ok(())
    }

    pub(super) fn hang(&self) -> anyhow::Result<()> {
        let words = [
            "lab",
            "run",
            "--quiet",
            "-k",
            RT,
            "-l",
            "4000000",
            "--host-limit",
            "4",
            "-o",
            "h.jsonl",
        ];
        let said = self.answers(&words, 3)?;
        ensure!(said.contains("--host-limit"), "{said}");
        Ok(())
    }

    /// What a host that is short of memory does to it is no answer about the guest.
    pub(super) fn killed(&self) -> anyhow::Result<()> {
        // QEMU is another user, who may neither enter nor write everywhere.
        let folder = tempfile::tempdir()?;
        let folder = folder.path();
        fs::set_permissions(folder, Permissions::from_mode(0o777))?;
        let emulator = folder.join("qemu");
        let mark = folder.join("was-killed");
        let script = format!(
            "#!/bin/sh\ncase $* in *-qmp*) if mkdir '{}' 2>/dev/null; then kill -KILL $$; fi;; esac\n\
             exec qemu-system-x86_64 \"$@\"\n",
            mark.display()
        );
        fs::write(&emulator, script)?;
        fs::set_permissions(&emulator, Permissions::from_mode(0o755))?;
        let emulator = emulator.display().to_string();
        let run = |out: &str| {
            let words = ["lab", "run", "--no-snapshot", "-k", RT, "-l", "100", "--qemu", &emulator];
            self.answers(&[&words[..], &["-o", out]].concat(), 0)
        };
        let said = run("once-killed.jsonl")?;
        ensure!(mark.exists(), "QEMU was not killed");
        ensure!(said.contains("the guest is booted once more"), "{said}");
        let said = run("not-killed.jsonl")?;
        ensure!(!said.contains("once more"), "{said}");
        let [once, never] =
            ["once-killed.jsonl", "not-killed.jsonl"].map(|name| fs::read(self.folder.join(name)));
        ensure!(once? == never?, "the second boot made another run");
        // Some containers have no other user: QEMU is root's there.
        if chown(&mark, Some(NOBODY), None).is_ok() {
            fs::set_permissions(folder, Permissions::from_mode(0o700))?;
            let words = ["lab", "run", "-k", RT, "--qemu", &emulator, "-o", "closed.jsonl"];
            let said = self.answers(&words, 3)?;
            ensure!(said.contains("everybody may execute"), "{said}");
        }
        Ok(())
    }

    /// A search that makes a snapshot for each of its variants does not fill the disk.
    pub(super) fn limited(&self) -> anyhow::Result<()> {
        let kernel = self.answers(&["lab", "kernel", "fetch", RT, "--json", "-q"], 0)?;
        let kernel: Value = serde_json::from_str(&kernel)?;
        let image = kernel.pointer("/0/image").and_then(Value::as_str).context("no image")?;
        let kernel = format!("path:{image}");
        let store = self.folder.join("limited-store");
        let mut words =
            vec!["lab", "matrix", "-k", &kernel, "-l", "10", "-j", "1", "-o", "limited"];
        words.extend(["--append", "a", "--append", "b", "--append", "c"]);
        let mut c = self.command(&words);
        self.ends(c.env("TAILBOUND_LAB", &store).env("TAILBOUND_LAB_SIZE", "1M"), 0)?;
        let left = fs::read_dir(store.join("snapshots"))?.count();
        ensure!(left == 1, "{left} snapshots beyond the limit");
        Ok(())
    }

    /// Everything without network and without rights.
    pub(super) fn ordinary_user(&self) -> Tally {
        let name = "an ordinary user without network";
        let user = ["unshare", "-n", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut try_it = exec::command(user[0]);
        let can = exec::output(try_it.args(&user[1..]).arg("true"));
        if !can.is_ok_and(|o| o.status.success()) {
            let mut tally = Tally::default();
            tally.skip(name, "root", "only root can become somebody else without network");
            return tally;
        }
        Tally::one(name, self.as_user(&user))
    }

    fn as_user(&self, user: &[&str]) -> anyhow::Result<()> {
        // A store and a program that anyone may use: this checkout may be root's alone. Sticky, or others could exchange what is in it.
        let open = tempfile::Builder::new().prefix("tailbound-lab").tempdir()?;
        let folder = open.path();
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
        let program = folder.join("tailbound");
        fs::copy(&self.program, &program)?;
        let out = self.answers(&["lab", "kernel", "fetch", "--quiet", "--json", RT], 0)?;
        let image = image_of(&out).context("`lab kernel fetch --json` names no image")?;
        fs::copy(image, folder.join("vmlinuz"))?;
        let mut c = exec::command(user[0]);
        c.args(&user[1..]).arg(&program).current_dir(folder);
        c.env("TAILBOUND_LAB", folder.join("store")).env("HOME", folder);
        c.args([
            "lab",
            "run",
            "--quiet",
            "-k",
            "path:vmlinuz",
            "-l",
            "200",
            "-L",
            "none",
            "-o",
            "u.jsonl",
        ]);
        self.ends(&mut c, 0).map(drop)
    }
}

/// The QEMU that `tool` started, once it has all its threads and its filter of system calls, and what
/// /proc says of it.
fn qemu_of(tool: &Child) -> anyhow::Result<(u32, String)> {
    let begun = Instant::now();
    loop {
        let tasks = format!("/proc/{}/task", tool.id());
        let children = fs::read_dir(tasks)?
            .flatten()
            .filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
        let found = children
            .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .filter_map(|pid| {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
                Some((pid.parse().ok()?, status))
            })
            .find(|(pid, status): &(u32, String)| {
                let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
                threads > 3 && status.contains("qemu-system") && status.contains("Seccomp:\t2")
            });
        match found {
            Some(found) => return Ok(found),
            None if begun.elapsed() > LIMIT => bail!("no QEMU with a filter"),
            None => std::thread::park_timeout(Duration::from_millis(5)),
        }
    }
}

/// The image's path in what `lab kernel fetch --json` says.
pub(super) fn image_of(text: &str) -> Option<PathBuf> {
    let value: Value = serde_json::from_str(text.get(text.find('[')?..)?).ok()?;
    value.pointer("/0/image").and_then(Value::as_str).map(PathBuf::from)
}
