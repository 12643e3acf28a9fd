// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound monitor` on a machine whose CPU goes and comes back, that sleeps (S3), and whose clock is set: in a guest, because none of
//! that may be done to the machine of the tests.
//!
//! The guest is no measurement: it runs in real time, with the static program, busybox, and a script. What is asserted is what is
//! counted, never how long a wait was.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::walls::image_of;
use super::{LIMIT, Lab, STOCK};
use crate::exec;
use crate::stages::tally::Tally;

const NAME: &str = "the monitor outlives a CPU that goes, a suspend and a clock that is set";
/// Each way to count, and what it is asked for beside.
const WAYS: [(&str, &str); 2] = [("bpf", ""), ("instance", "--by instance")];
const INIT: &str = include_str!("monitored.sh");
/// What the guest slept at least: its alarm is 20 s away.
const SLEPT_NS: u64 = 10_000_000_000;
const YEAR_NS: i64 = 31_536_000_000_000_000;

impl Lab {
    /// Skipped where there is no static busybox.
    pub(super) fn monitored(&self) -> Tally {
        let why = match busybox() {
            Ok(busybox) => return Tally::one(NAME, self.monitored_with(&busybox)),
            Err(why) => format!("{why:#} (Debian package busybox-static)"),
        };
        let mut tally = Tally::default();
        tally.skip(NAME, "busybox", &why);
        tally
    }

    fn monitored_with(&self, busybox: &Path) -> anyhow::Result<()> {
        let out = self.answers(&["lab", "kernel", "fetch", "--quiet", "--json", STOCK], 0)?;
        let image = image_of(&out).context("`lab kernel fetch --json` names no image")?;
        let disk = self.folder.join("monitored.cpio");
        fs::write(&disk, self.disk(busybox)?)?;
        let log = self.folder.join("monitored.txt");
        let mut qemu = exec::command("qemu-system-x86_64");
        // Without HPET the alarm of the RTC wakes it.
        qemu.args(["-M", "pc,hpet=off", "-accel", "tcg", "-smp", "2", "-m", "512", "-nodefaults"]);
        qemu.args(["-display", "none", "-no-reboot", "-serial", "stdio"]);
        qemu.arg("-kernel").arg(image).arg("-initrd").arg(&disk);
        // Without the check of its timer, which fails where the host is slow at that moment; of the kernel only a panic is told.
        let append = "console=ttyS0 quiet loglevel=1 panic=-1 no_timer_check";
        qemu.args(["-append", append]);
        let ended = exec::limited(&mut qemu, &log, LIMIT)?;
        let said = String::from_utf8_lossy(&fs::read(&log)?).replace('\r', "");
        ensure!(ended.is_some_and(|s| s.success()), "the guest did not end:\n{said}");
        for (way, _) in WAYS {
            check(&part(&said, way)?).with_context(|| format!("{way}; {}", log.display()))?;
        }
        Ok(())
    }

    /// The guest's files.
    fn disk(&self, busybox: &Path) -> anyhow::Result<Vec<u8>> {
        let ways: Vec<String> =
            WAYS.iter().map(|(name, words)| format!("way {name} {words}\n")).collect();
        let init = INIT.replace("@WAYS@\n", &ways.concat());
        let mut all = Cpio::default();
        for folder in ["bin", "dev", "proc", "sys", "tmp"] {
            all.add(folder, 0o040_755, &[])?;
        }
        all.add("init", 0o100_755, init.as_bytes())?;
        all.add("bin/busybox", 0o100_755, &fs::read(busybox)?)?;
        all.add("bin/tailbound", 0o100_755, &fs::read(&self.program)?)?;
        all.add("TRAILER!!!", 0, &[])?;
        Ok(all.0)
    }
}

fn busybox() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").context("no PATH")?;
    let found = std::env::split_paths(&path).map(|p| p.join("busybox")).find(|p| p.is_file());
    let found = found.context("there is no busybox")?;
    // One that needs libraries cannot be alone in a guest.
    let libraries = exec::output(exec::command("ldd").arg(&found))?;
    ensure!(!libraries.status.success(), "busybox is not static");
    Ok(found)
}

/// An archive of the kernel's own format, "newc". Source: Documentation/driver-api/early-userspace/buffer-format.rst.
#[derive(Default)]
struct Cpio(Vec<u8>);

impl Cpio {
    fn add(&mut self, name: &str, mode: u32, bytes: &[u8]) -> anyhow::Result<()> {
        let (size, named) = (u32::try_from(bytes.len())?, u32::try_from(name.len())? + 1);
        let node = u32::try_from(self.0.len())?;
        self.0.extend_from_slice(b"070701");
        for field in [node, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, named, 0] {
            self.0.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        for part in [[name.as_bytes(), b"\0"].concat().as_slice(), bytes] {
            self.0.extend_from_slice(part);
            self.0.resize(self.0.len().next_multiple_of(4), 0);
        }
        Ok(())
    }
}

/// What one monitor left: its lines, the metrics that were read, and the status with which it ended.
struct Part {
    lines: Vec<Value>,
    metrics: Vec<String>,
    status: String,
}

fn part(said: &str, way: &str) -> anyhow::Result<Part> {
    let begin = format!("== {way}\n");
    let (_, rest) = said.split_once(&begin).with_context(|| format!("no {way}:\n{said}"))?;
    let text = rest.split("== ").next().unwrap_or_default();
    let mut part = Part { lines: Vec::new(), metrics: Vec::new(), status: String::new() };
    for line in text.lines() {
        if line.starts_with("{\"type\"") {
            part.lines.push(serde_json::from_str(line).with_context(|| line.to_owned())?);
        } else if let Some(status) = line.strip_prefix("ended ") {
            status.clone_into(&mut part.status);
        } else if line.starts_with("tailbound_") {
            part.metrics.push(line.to_owned());
        }
    }
    Ok(part)
}

impl Part {
    fn windows(&self) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(|l| l["type"] == "window")
    }

    /// The first window in which it was so, from the `from`th on; its place.
    fn when(&self, from: usize, what: &str, so: impl Fn(&Value) -> bool) -> anyhow::Result<usize> {
        let mut windows = self.windows().enumerate().skip(from);
        match windows.find(|(_, w)| so(w)) {
            Some((at, _)) => Ok(at),
            None => bail!("no window from {from} on in which {what}"),
        }
    }
}

fn threads(window: &Value) -> impl Iterator<Item = &Value> {
    window["threads"].as_array().into_iter().flatten()
}

/// Is the measuring thread of a run on CPU 1 counted?
fn measures(window: &Value) -> bool {
    threads(window).any(|t| t["policy"] == "fifo:95" && t["cpu"] == 1 && t["n"].as_u64() > Some(99))
}

fn probe_is_on(window: &Value, cpu: u32) -> bool {
    threads(window).any(|t| t["probe"] == true && t["cpu"] == cpu)
}

fn check(part: &Part) -> anyhow::Result<()> {
    ensure!(part.status == "0", "it ended with `{}`: {:?}", part.status, part.lines.last());
    ensure!(part.lines.last().is_some_and(|l| l["type"] == "end"), "it did not end by itself");
    // The CPU goes, and comes back.
    part.when(0, "a thread on CPU 1 was counted", measures)?;
    let gone = part
        .when(0, "CPU 1 went", |w| w["cpus_online"] == "0" && w["cpus_online_before"] == "0-1")?;
    part.when(gone, "the probe was on CPU 0", |w| probe_is_on(w, 0))?;
    let back = part.when(gone, "CPU 1 came back", |w| {
        w["cpus_online"] == "0-1" && w["cpus_online_before"] == "0"
    })?;
    part.when(back, "a thread on CPU 1 was counted again", measures)?;
    part.when(back, "the probe was back on CPU 1", |w| probe_is_on(w, 1))?;
    for (n, whole) in [("1", "one CPU"), ("2", "both CPUs")] {
        let line = format!("tailbound_monitor_cpus_online {n}");
        ensure!(part.metrics.contains(&line), "no metrics with {whole}: {:?}", part.metrics);
    }
    // The suspend.
    let slept = |w: &Value| w["suspended_ns"].as_u64() > Some(SLEPT_NS);
    let slept = part.when(back, "the machine slept", slept)?;
    part.when(slept + 1, "something was counted afterwards", |w| w["n"].as_u64() > Some(0))?;
    let waits = part.windows().flat_map(threads).filter_map(|t| t["worst"]["wait_ns"].as_u64());
    let longest = waits.max().unwrap_or(0);
    ensure!(longest < SLEPT_NS, "a wait of {longest} ns: the suspend is in it");
    // The clock: two steps, there and back.
    let shift = |w: &Value| w["realtime_shift_ns"].as_i64().unwrap_or(0);
    let ahead = part.when(slept, "the clock was set ahead", |w| shift(w) > YEAR_NS)?;
    part.when(ahead, "the clock was set back", |w| shift(w) < -YEAR_NS)?;
    ensure!(part.windows().all(|w| w["lost"] == 0), "wake-ups were lost");
    let forward = |w: &Value| w["begin_ns"].as_i64() < w["end_ns"].as_i64();
    ensure!(part.windows().all(forward), "a window ends before it begins");
    Ok(())
}
