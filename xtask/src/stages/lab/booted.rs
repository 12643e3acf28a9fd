// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound board`: an initramfs that a kernel boots as on a board, in real time and outside the deterministic path; its run comes back
//! over the console or by HTTP, and the machine turns itself off.
//!
//! The console is the only line. No figure is asserted: QEMU's time is no board's.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::boards::Board;
use super::walls::image_of;
use super::{LIMIT, Lab, STOCK};
use crate::exec;
use crate::stages::tally::Tally;

/// What the last line on the console says of a board that did everything. How its run ended is this host's matter: it is slow.
const DONE: &str = "tailbound board: done: exit status ";
const POWERS_OFF: &str = "; powers off";
/// What is measured.
const RUN: [&str; 7] = ["--", "-D", "3s", "-i", "20ms", "-L", "none"];
/// Address and port of the receiver, as the guest sees it.
const RECEIVER: &str = "10.0.2.100:8787";
/// Longest head of a request.
const HEAD_LINES: usize = 64;

impl Lab {
    /// Over the console of a PC.
    pub(super) fn booted(&self) -> anyhow::Result<()> {
        self.makes("board.cpio.gz", &RUN)?;
        self.makes("again.cpio.gz", &RUN)?;
        let bytes = |name: &str| fs::read(self.folder.join(name));
        ensure!(bytes("board.cpio.gz")? == bytes("again.cpio.gz")?, "two initramfs differ");
        let said = self.boots(self.pc("board.cpio.gz", &[])?, "board.log")?;
        ensure!(said.contains(DONE) && said.contains(POWERS_OFF), "{said}");
        self.received("board.log", "board.tailbound.jsonl")?;
        self.damaged(&said)
    }

    /// By HTTP, with an address that the network gives.
    pub(super) fn handed_in(&self) -> anyhow::Result<()> {
        let (said, taken) = self.sends("http", "dhcp", "201 Created")?;
        ensure!(taken.head.starts_with("POST /api/v1/runs HTTP/1.1"), "{}", taken.head);
        ensure!(said.contains("the run is at http://") && said.contains(POWERS_OFF), "{said}");
        let file = "handed-in.tailbound.jsonl";
        fs::write(self.folder.join(file), taken.run)?;
        self.answers(&["verify", file], 0).map(drop)
    }

    /// With an address of its own, to a receiver that does not take the run: that goes over the console.
    pub(super) fn refused(&self) -> anyhow::Result<()> {
        let (said, taken) = self.sends("refused", "10.0.2.20/24", "401 Unauthorized")?;
        ensure!(said.contains("401") && said.contains("; it goes to the console"), "{said}");
        ensure!(said.contains(POWERS_OFF), "{said}");
        let file = "refused.tailbound.jsonl";
        self.received("refused.log", file)?;
        ensure!(fs::read(self.folder.join(file))? == taken.run, "the console brought another run");
        Ok(())
    }

    /// Boots a board with this address; a receiver, to which its network leads and nothing else, answers with this status. What the
    /// console said, and the request.
    fn sends(&self, name: &str, ip: &str, status: &str) -> anyhow::Result<(String, Request)> {
        let found = self.kernel(STOCK, &[])?;
        let modules = PathBuf::from(found["modules"].as_str().context("no modules")?);
        let driver = modules.join("kernel/drivers/net/ethernet/intel/e1000/e1000.ko.xz");
        let driver = driver.display().to_string();
        let to = format!("http://{RECEIVER}");
        let words = ["--module", &driver, "--ip", ip, "--send", &to];
        let initramfs = format!("{name}.cpio.gz");
        self.makes(&initramfs, &[&words[..], &RUN].concat())?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let network = format!("user,id=n,restrict=on,guestfwd=tcp:{RECEIVER}-tcp:{address}");
        // With its length: QEMU keeps from the guest that this side closes.
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\nread\n");
        let taking = thread::spawn(move || taken(&listener, &answer));
        let qemu = self.pc(&initramfs, &["-netdev", &network, "-device", "e1000,netdev=n"])?;
        let said = self.boots(qemu, &format!("{name}.log"))?;
        Ok((said, taking.join().ok().context("the receiver")??))
    }

    /// A log with lines that are lost.
    fn damaged(&self, said: &str) -> anyhow::Result<()> {
        let count = said.matches("=tb1 ").count();
        let without = |first: usize, last: usize| {
            let mut nth = 0;
            let kept = |line: &&str| {
                nth += usize::from(line.contains("=tb1 "));
                !line.contains("=tb1 ") || nth < first || nth > last
            };
            said.lines().filter(kept).collect::<Vec<_>>().join("\n")
        };
        // What parity makes up for; what it does not, which leaves a shorter run.
        let (few, many) = (without(20, 22), without(count * 3 / 4, count));
        fs::write(self.folder.join("few.log"), few)?;
        self.received("few.log", "few.tailbound.jsonl")?;
        let same = fs::read(self.folder.join("few.tailbound.jsonl"))?
            == fs::read(self.folder.join("board.tailbound.jsonl"))?;
        ensure!(same, "three lost lines of {count} changed the run");
        fs::write(self.folder.join("many.log"), many)?;
        let said =
            self.answers(&["board", "receive", "many.log", "-o", "many.tailbound.jsonl"], 5)?;
        ensure!(said.contains("cut off") && said.contains("lost: "), "{said}");
        self.answers(&["show", "many.tailbound.jsonl"], 0).map(drop)
    }

    /// On an ARM board of QEMU.
    pub(super) fn booted_on_arm(&self, project: &Path, board: &Board) -> anyhow::Result<Tally> {
        let (arch, emulator, kernel, _) = board;
        let mut tally = Tally::default();
        let name = format!("{kernel} on {arch} boots the initramfs of a board and ends");
        match self.program_for(project, board) {
            Err(lack) => tally.skip(&name, lack.word, &lack.why),
            Ok(program) => tally.add(&name, self.on_arm(arch, emulator, kernel, &program)),
        }
        Ok(tally)
    }

    fn on_arm(
        &self,
        arch: &str,
        emulator: &str,
        kernel: &str,
        program: &Path,
    ) -> anyhow::Result<()> {
        let (initramfs, log) = (format!("{arch}.cpio.gz"), format!("{arch}.log"));
        let program = program.display().to_string();
        // The model of the Cortex-A9 board has no switch that turns it off.
        let words = ["--program", &program, "--arch", arch, "--then", "reboot"];
        self.makes(&initramfs, &[&words[..], &RUN].concat())?;
        let found = self.kernel(kernel, &["--arch", arch])?;
        let image = PathBuf::from(found["image"].as_str().context("no image")?);
        let mut qemu = exec::command(emulator);
        if arch == "arm" {
            let folder = image.ancestors().nth(2).context("no folder")?.join("dtbs");
            let tree = find(&folder, "vexpress-v2p-ca9.dtb").context("no device tree")?;
            qemu.args(["-M", "vexpress-a9", "-cpu", "cortex-a9", "-dtb"]).arg(tree);
        } else {
            qemu.args(["-M", "virt,gic-version=3", "-cpu", "cortex-a57"]);
        }
        let append = "console=ttyAMA0 panic=10 nr_cpus=1";
        self.with_kernel(&mut qemu, &image, &initramfs, append);
        let said = self.boots(qemu, &log)?;
        ensure!(said.contains(DONE) && said.contains("; reboots"), "{said}");
        self.received(&log, &format!("{arch}.tailbound.jsonl"))
    }

    /// Its limit is longer than a check waits: a board ends with its measurement.
    fn makes(&self, out: &str, more: &[&str]) -> anyhow::Result<()> {
        let words = ["board", "initramfs", "--force", "--limit", "1h", "-o", out];
        self.answers(&[&words[..], more].concat(), 0).map(drop)
    }

    fn received(&self, log: &str, run: &str) -> anyhow::Result<()> {
        self.answers(&["board", "receive", log, "-o", run], 0)?;
        self.answers(&["verify", run], 0).map(drop)
    }

    fn kernel(&self, name: &str, more: &[&str]) -> anyhow::Result<Value> {
        let words = ["lab", "kernel", "fetch", "--quiet", "--json"];
        let out = self.answers(&[&words[..], more, &[name]].concat(), 0)?;
        let text = out.get(out.find('[').context("no list")?..).unwrap_or_default();
        let all: Value = serde_json::from_str(text)?;
        all.get(0).cloned().context("no kernel")
    }

    fn pc(&self, initramfs: &str, more: &[&str]) -> anyhow::Result<Command> {
        let out = self.answers(&["lab", "kernel", "fetch", "--quiet", "--json", STOCK], 0)?;
        let image = image_of(&out).context("`lab kernel fetch --json` names no image")?;
        let mut qemu = exec::command("qemu-system-x86_64");
        qemu.args(["-M", "pc,hpet=off"]);
        // Without the check of its timer, which fails where the host is slow at that moment.
        self.with_kernel(&mut qemu, &image, initramfs, "console=ttyS0 panic=10 no_timer_check");
        qemu.args(more);
        Ok(qemu)
    }

    fn with_kernel(&self, qemu: &mut Command, image: &Path, initramfs: &str, append: &str) {
        qemu.args(["-accel", "tcg", "-smp", "1", "-m", "512", "-display", "none", "-no-reboot"]);
        qemu.args(["-nic", "none", "-monitor", "none", "-serial", "stdio"]);
        qemu.arg("-kernel").arg(image).arg("-initrd").arg(self.folder.join(initramfs));
        qemu.args(["-append", append]);
    }

    /// What the console said, once the machine has turned itself off.
    fn boots(&self, mut qemu: Command, log: &str) -> anyhow::Result<String> {
        let log = self.folder.join(log);
        let ended = exec::limited(&mut qemu, &log, LIMIT)?;
        let said = String::from_utf8_lossy(&fs::read(&log)?).replace('\r', "");
        ensure!(ended.is_some_and(|s| s.success()), "it did not end by itself:\n{said}");
        Ok(said)
    }
}

/// What a board sent.
struct Request {
    head: String,
    run: Vec<u8>,
}

/// One request, which gets this answer.
fn taken(listener: &TcpListener, answer: &str) -> anyhow::Result<Request> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(LIMIT))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    for _ in 0..HEAD_LINES {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(number) = line.strip_prefix("Content-Length: ") {
            length = number.trim().parse()?;
        }
        if line.trim().is_empty() {
            let mut run = vec![0; length];
            reader.read_exact(&mut run)?;
            stream.write_all(answer.as_bytes())?;
            return Ok(Request { head, run });
        }
        head.push_str(&line);
    }
    bail!("no end of its head:\n{head}")
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let direct = folder.join(name);
    let folders =
        || fs::read_dir(folder).ok()?.flatten().map(|e| e.path()).find_map(|p| find(&p, name));
    if direct.is_file() { Some(direct) } else { folders() }
}
