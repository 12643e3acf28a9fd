// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engines that are a way to a shell: this machine, one that ssh(1) reaches, the laboratory here. Those that first have
//! to get the machine (slurm.rs) do the rest as here.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::process::Stdio;

use sha2::{Digest as _, Sha256};
use tailbound_sys::new_file::{self, Existing};

use super::lease::LockUse;
use super::shell::{self, ShellLauncher, ask, quoted};
use super::target::{Reach, Target};
use super::{Engine, EngineError, Facts, Lease, Load, Placed, Power, Task, lease};

const NS_PER_S: i64 = 1_000_000_000;

pub(super) struct Shell {
    target: Target,
    way: ShellLauncher,
}

impl Shell {
    /// `way` leads to the machine where no lease does.
    pub(super) fn of(target: &Target, way: ShellLauncher) -> Self {
        Self { target: target.clone(), way }
    }

    /// Words of `campaign run` that this target adds.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Reach::Lab { kernel } = &self.target.reach {
            words.extend(["--kernel".to_owned(), kernel.clone()]);
        } else {
            words.extend(["--system".to_owned(), self.target.name.clone()]);
        }
        if let Some(cpus) = &self.target.cpus {
            words.extend(["--cpus".to_owned(), cpus.clone()]);
        }
        if let Some(seed) = self.target.seed {
            words.extend(["--seed".to_owned(), seed.to_string()]);
        }
        words
    }

    fn is_remote(&self) -> bool {
        !matches!(self.target.reach, Reach::Local | Reach::Lab { .. })
    }

    fn way<'a>(&'a self, under: Option<&'a Lease>) -> &'a ShellLauncher {
        match under {
            Some(Lease::Shell(lease)) => &lease.way,
            Some(Lease::Agent) | None => &self.way,
        }
    }

    fn lock(&self) -> LockUse {
        match self.target.reach {
            Reach::Lab { .. } => LockUse::NotNeeded,
            _ => LockUse::Held,
        }
    }
}

impl Engine for Shell {
    fn list(&self, under: Option<&Lease>) -> Result<Facts, EngineError> {
        let held = match self.lock() {
            LockUse::Held => lease::asked(),
            LockUse::NotNeeded => String::new(),
        };
        let home = self.target.folder.as_ref().map_or_else(
            || "cd".to_owned(),
            |f| format!("mkdir -p {f} && cd {f} || exit 1", f = quoted(f)),
        );
        let script = format!(
            "uname -m; uname -r; getconf _NPROCESSORS_ONLN 2>/dev/null || nproc\n{home}\npwd\n{held}"
        );
        let what = "asking the machine";
        let said = ask(self.way(under), what, &script, None)?;
        let mut lines = said.lines();
        let mut next = || lines.next().map(str::to_owned);
        let (Some(architecture), Some(kernel), Some(cpus), Some(home)) =
            (next(), next(), next(), next())
        else {
            return Err(EngineError::failed(what, "it gave no full answer"));
        };
        let cpus = cpus
            .trim()
            .parse()
            .map_err(|_| EngineError::failed(what, format!("`{cpus}` is no number of CPUs")))?;
        let held = next().map(|l| l.strip_prefix("held ").unwrap_or(&l).to_owned());
        Ok(Facts { architecture, kernel, cpus, home, held })
    }

    fn reserve(&self, heard: &mut dyn FnMut(&str)) -> Result<Lease, EngineError> {
        lease::Lease::take(self.way.clone(), self.lock(), "", None, heard).map(Lease::Shell)
    }

    fn put(&self, lease: &Lease, facts: &Facts, load: &Load<'_>) -> Result<Placed, EngineError> {
        if !self.is_remote() {
            let campaign = load.notes.join("campaign.toml");
            new_file::write(&campaign, Existing::Replace, load.campaign.as_bytes())
                .map_err(|e| EngineError::file(&campaign, e))?;
            return Ok(Placed {
                program: Some(load.own.display().to_string()),
                campaign: campaign.display().to_string(),
                folder: load.folder.display().to_string(),
            });
        }
        let own = Path::new(load.own);
        let named = load.programs.iter().find(|(a, _)| *a == facts.architecture);
        let path = match named {
            Some((_, path)) => path.as_path(),
            None if facts.architecture == std::env::consts::ARCH => own,
            None => {
                return Err(EngineError::NoProgram { architecture: facts.architecture.clone() });
            }
        };
        let way = self.way(Some(lease));
        let cache = format!("{}/.cache/tailbound", facts.home);
        let (file, sha256) = hashed(path).map_err(|e| EngineError::file(path, e))?;
        let program = format!("{cache}/{sha256}/tailbound");
        put_program(way, &program, &sha256, file)?;
        let folder = format!("{cache}/fleet/{}/{}", load.identity, self.target.name);
        let campaign = format!("{cache}/fleet/{}/campaign.toml", load.identity);
        let text =
            as_input(load.campaign).map_err(|e| EngineError::failed("putting the campaign", e))?;
        let script = format!("mkdir -p {} && cat >{}", quoted(&folder), quoted(&campaign));
        ask(way, "putting the campaign", &script, Some(text))?;
        Ok(Placed { program: Some(program), campaign, folder })
    }

    fn run(
        &self,
        lease: &mut Lease,
        task: &Task<'_>,
        heard: &mut dyn FnMut(&str),
    ) -> Result<i32, EngineError> {
        let (Lease::Shell(lease), Some(program)) = (lease, &task.placed.program) else {
            return Err(EngineError::failed("running", "a bug of tailbound"));
        };
        let mut words = vec![program.clone(), "campaign".to_owned(), "run".to_owned()];
        words.extend([task.placed.campaign.clone(), "--out".to_owned()]);
        words.extend([task.placed.folder.clone(), "--yes".to_owned()]);
        words.extend(["--only".to_owned(), task.part.to_owned()]);
        words.extend(self.words());
        words.extend(["--scale".to_owned(), task.scale.to_string()]);
        if let Some(ns) = task.begin_at_ns {
            let (s, rest) = (ns.div_euclid(NS_PER_S), ns.rem_euclid(NS_PER_S));
            words.extend(["--begin-at".to_owned(), format!("{s}.{rest:09}")]);
        }
        lease.run(&words, heard)
    }

    fn get(&self, lease: &Lease, placed: &Placed, load: &Load<'_>) -> Result<(), EngineError> {
        if !self.is_remote() {
            return Ok(());
        }
        let what = "getting the results";
        fs::create_dir_all(load.folder).map_err(|e| EngineError::file(load.folder, e))?;
        let script = format!("cd {} && tar -cf - .", quoted(&placed.folder));
        let mut there = shell::command(self.way(Some(lease)), &script)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| EngineError::failed(what, e))?;
        let input = there.stdout.take().map_or_else(Stdio::null, Stdio::from);
        let unpack =
            format!("tar -xf - --no-same-owner -C {}", quoted(&load.folder.display().to_string()));
        let unpacked = shell::command(&ShellLauncher::here(), &unpack).stdin(input).output();
        let sent = there.wait().map_err(|e| EngineError::failed(what, e))?;
        let unpacked = unpacked.map_err(|e| EngineError::failed(what, e))?;
        if !sent.success() || !unpacked.status.success() {
            let why = String::from_utf8_lossy(&unpacked.stderr).trim().to_owned();
            return Err(EngineError::failed(what, format!("they did not come whole. {why}")));
        }
        Ok(())
    }

    fn forget(&self, lease: &Lease, placed: &Placed, load: &Load<'_>) -> Result<(), EngineError> {
        if !self.is_remote() {
            return Ok(());
        }
        let what = "comparing the results";
        let sums = |folder: &str| {
            format!(
                "cd {} && find . -type f -exec sha256sum {{}} + | LC_ALL=C sort",
                quoted(folder)
            )
        };
        let there = ask(self.way(Some(lease)), what, &sums(&placed.folder), None)?;
        // Of before there may be more here.
        let here =
            ask(&ShellLauncher::here(), what, &sums(&load.folder.display().to_string()), None)?;
        let here: BTreeSet<&str> = here.lines().collect();
        if let Some(other) = there.lines().find(|l| !here.contains(l)) {
            let why = format!("there it is {other}, and not so here; nothing was removed");
            return Err(EngineError::failed(what, why));
        }
        let own = Path::new(&placed.folder).parent().unwrap_or(Path::new(&placed.folder));
        let remove = format!("rm -rf {}", quoted(&own.display().to_string()));
        ask(self.way(Some(lease)), "removing the results there", &remove, None).map(|_| ())
    }

    fn power(&self, _: Power, _: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
        let what = "control of the machine's power";
        Err(EngineError::Cannot { engine: self.target.reach.engine(), what })
    }
}

/// Sends the program unless it is there, whole; then asks it for its version, which shows that it starts.
fn put_program(
    way: &ShellLauncher,
    program: &str,
    sha256: &str,
    file: File,
) -> Result<(), EngineError> {
    let at = quoted(program);
    let whole = format!("[ \"$(sha256sum <{at} | cut -c 1-64)\" = {sha256} ]");
    let there = format!("if [ -x {at} ] && {whole}; then echo yes; fi");
    let what = "putting the program";
    if ask(way, what, &there, None)?.trim() != "yes" {
        // Several machines may have one folder.
        let send = format!(
            "n={at}.$(uname -n).$$; mkdir -p \"$(dirname {at})\" && cat >\"$n\" && chmod 755 \"$n\" && mv \"$n\" {at} && {whole} || {{ echo 'it did not arrive whole' >&2; exit 1; }}"
        );
        ask(way, what, &send, Some(file))?;
    }
    let starts = format!("{at} --version");
    ask(way, "starting the program there (is it static?)", &starts, None)?;
    Ok(())
}

/// A file at its beginning, and the hash of what it holds.
fn hashed(path: &Path) -> io::Result<(File, String)> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0u8; 1 << 16];
    loop {
        let n = file.read(&mut piece)?;
        let Some(read) = piece.get(..n).filter(|r| !r.is_empty()) else { break };
        hash.update(read);
    }
    file.rewind()?;
    let mut hex = String::new();
    for byte in hash.finalize() {
        let _infallible = write!(hex, "{byte:02x}");
    }
    Ok((file, hex))
}

/// `text` as the input of a process.
fn as_input(text: &str) -> io::Result<File> {
    let (read, mut write) = io::pipe()?;
    let text = text.to_owned();
    std::thread::spawn(move || drop(io::Write::write_all(&mut write, text.as_bytes())));
    Ok(File::from(std::os::fd::OwnedFd::from(read)))
}
