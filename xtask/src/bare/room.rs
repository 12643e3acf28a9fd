// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Debian root with nothing in it, and one command of the README run there.
//!
//! The mirror is that of this machine's apt. Everything is mounted in a mount and
//! PID namespace of the command's own: when its first process ends, also by SIGKILL, the kernel
//! ends the others and takes the mounts away, so that nothing can be left mounted.
//! Source: debootstrap(8), unshare(1), mount_namespaces(7).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use super::Case;
use crate::{exec, root};

/// The longest any case may take, on a busy machine.
const LIMIT: Duration = Duration::from_secs(3 * 3600);

/// Mounts what a machine has (its root is a mount point of its own, as everywhere) and runs the rest of its words in the root: `sh -c ENTER sh ROOT WORD...`.
const ENTER: &str = r#"
mount --make-rprivate /
mount --rbind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
mount -t tmpfs -o mode=755 tmpfs "$1/run"
mount --bind "$RUST" "$1/opt/rust"
mount -o remount,bind,ro "$1/opt/rust"
root=$1; shift
exec chroot "$root" "$@"
"#;

/// Starts nothing of what its packages bring: `sh -c INSTALL sh ROOT WORD...`.
const INSTALL: &str = r#"
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/run"
root=$1; shift
exec chroot "$root" "$@"
"#;

/// What README asks for beside Rust: to clone, and to read the Makefile.
const PREREQUISITES: &str = "git make ca-certificates";

/// A root of its own for one case.
pub(super) struct Room {
    root: PathBuf,
    log: PathBuf,
    rust: PathBuf,
}

/// Why none can be made here.
pub(crate) fn missing() -> Option<String> {
    if !exec::exists("debootstrap") && !Path::new("/usr/sbin/debootstrap").is_file() {
        return Some("there is no debootstrap (Debian package debootstrap)".into());
    }
    let tried = exec::output(exec::command("unshare").args(["--mount", "--pid", "--fork", "true"]));
    if !tried.is_ok_and(|o| o.status.success()) {
        return Some("only root may mount and change the root".into());
    }
    mirrors().err().map(|e| format!("{e:#}"))
}

/// Debian's archive and its security archive as this machine's apt knows them.
fn mirrors() -> anyhow::Result<(String, Option<String>)> {
    let mut apt = exec::command("apt-get");
    apt.args(["indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages"]);
    let out = exec::output(&mut apt)?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let of = |label: &str| {
        let found = text.lines().find_map(|l| l.strip_prefix(label)?.strip_prefix(' '));
        found.map(str::to_owned)
    };
    let main = of("Debian").context("apt knows no mirror of Debian here (apt-get update?)")?;
    Ok((main, of("Debian-Security")))
}

impl Room {
    /// Makes a root of `case.suite` with a bare clone of the project in it.
    pub(super) fn make(project: &Path, case: Case) -> anyhow::Result<Self> {
        let base = base(project, case.suite)?;
        let dir = base.parent().context("a base without a folder")?.to_owned();
        let root = dir.join(format!("{}-{}-{}.root", case.suite, case.user, case.command));
        remove(&root)?;
        exec::succeed(exec::command("cp").args(["-a", "--reflink=auto"]).arg(&base).arg(&root))?;
        give_network(&root)?;
        fs::create_dir_all(root.join("opt/rust"))?;
        let mut rustc = exec::command("rustc");
        let sysroot = exec::output(rustc.args(["--print", "sysroot"]))?;
        let rust = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
        ensure!(rust.join("bin/cargo").is_file(), "{} has no cargo", rust.display());
        let log = dir.join(format!("{}-{}-{}.log", case.suite, case.user, case.command));
        let room = Self { root, log, rust };
        room.clone_of(project)?;
        room.cargo_home(case.home())?;
        Ok(room)
    }

    /// A bare repository of what is committed, which everybody may read.
    fn clone_of(&self, project: &Path) -> anyhow::Result<()> {
        let bare = self.root.join("srv/tailbound.git");
        let mut git = exec::command("git");
        git.args(["clone", "--quiet", "--bare", "--no-hardlinks"]).arg(project).arg(&bare);
        exec::succeed(&mut git)?;
        exec::succeed(exec::command("chmod").args(["-R", "a+rX"]).arg(&bare))
    }

    /// Which registry cargo asks, and what it has of it already; no credentials.
    fn cargo_home(&self, home: &str) -> anyhow::Result<()> {
        let to = self.root.join(home.trim_start_matches('/')).join(".cargo");
        fs::create_dir_all(&to)?;
        let own = std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cargo"));
        let Some(own) = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(own) else {
            return Ok(());
        };
        for name in ["config.toml", "config", "registry"] {
            let from = own.join(name);
            if from.exists() {
                exec::succeed(exec::command("cp").arg("-a").arg(from).arg(&to))?;
            }
        }
        Ok(())
    }

    /// Runs it; an error with the end of its words if it does not end as README promises.
    pub(super) fn run(&self, case: Case) -> anyhow::Result<()> {
        let mut c = exec::command("unshare");
        c.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-eu", "-c", ENTER, "sh"]);
        c.arg(&self.root).args(["/usr/bin/env", "-i"]);
        let path =
            "PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        c.args([path, &format!("HOME={}", case.home()), &format!("{}=yes", super::INSIDE)]);
        c.args(carried());
        c.args(["sh", "-eu", "-c", &case.script()]).env("RUST", &self.rust);
        let ended = exec::limited(&mut c, &self.log, LIMIT)?;
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let how = match ended {
            Some(s) if s.success() => case.promised(&said).err().map(|e| format!("{e:#}")),
            Some(s) => Some(s.to_string()),
            None => Some(format!("still ran after {} s", LIMIT.as_secs())),
        };
        if let Some(how) = how {
            let lines: Vec<&str> = said.lines().collect();
            let tail = lines.get(lines.len().saturating_sub(25)..).unwrap_or_default().join("\n");
            bail!("{how}; all of it is in {}:\n{tail}", self.log.display());
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // Nothing is mounted in it by now: the namespace is gone.
        drop(remove(&self.root));
    }
}

impl Case {
    fn home(self) -> &'static str {
        if self.user == "root" { "/root" } else { "/home/user" }
    }

    /// What a person types, after installing what README asks for.
    fn script(self) -> String {
        let Self { user, command, .. } = self;
        let quiet = "apt-get install -y -qq --no-install-recommends >/dev/null 2>&1";
        let mut text =
            format!("apt-get update -qq\nDEBIAN_FRONTEND=noninteractive {quiet} {PREREQUISITES}\n");
        let typed =
            format!("cd; git clone --quiet /srv/tailbound.git; cd tailbound; make {command}");
        if user == "root" {
            text.push_str(&typed);
            return text;
        }
        // Without a linker an ordinary user is told so before anything is compiled or fetched.
        let become_user = "setpriv --reuid=1000 --regid=1000 --clear-groups";
        text.push_str("chown -R 1000:1000 /home/user /srv/tailbound.git\n");
        text.push_str(&format!("cat > /srv/typed <<'END'\nset -eu\n{typed}\nEND\n"));
        text.push_str(&format!(
            "if {become_user} sh /srv/typed; then echo 'no linker, and nobody said so'; exit 1; fi\n\
             test ! -e /home/user/tailbound/target || {{ echo 'something was compiled'; exit 1; }}\n\
             rm -rf /home/user/tailbound\n\
             DEBIAN_FRONTEND=noninteractive {quiet} gcc libc6-dev\n\
             exec {become_user} sh /srv/typed\n"
        ));
        text
    }

    /// Does what it said hold what README promises?
    fn promised(self, said: &str) -> anyhow::Result<()> {
        let last = said.lines().last().unwrap_or_default();
        match self.command {
            "demo" => {
                let reports = said.lines().filter(|l| l.starts_with("report:")).count();
                let left_out = said.contains("the laboratory was left out");
                ensure!(reports >= 1, "no report");
                ensure!(reports == 2 || (left_out && self.user != "root"), "the lab has no report");
            }
            "test" => ensure!(
                last.contains(" passed, 0 failed, ") && last.ends_with(" skipped"),
                "the last line is `{last}`"
            ),
            _ => {}
        }
        Ok(())
    }
}

/// The smallest Debian of a suite, made once. Whoever changes anything copies it first.
pub(crate) fn base(project: &Path, suite: &str) -> anyhow::Result<PathBuf> {
    let dir = root::target(project).join("xtask/bare");
    fs::create_dir_all(&dir)?;
    let dir = dir.canonicalize()?;
    let base = dir.join(format!("{suite}.base"));
    if !base.join("etc/debian_version").is_file() {
        debootstrap(suite, &base, &dir)?;
    }
    Ok(base)
}

/// The same with systemd as its init, to be booted.
pub(crate) fn with_systemd(project: &Path, suite: &str) -> anyhow::Result<PathBuf> {
    let base = base(project, suite)?;
    let booting = base.with_file_name(format!("{suite}-systemd.base"));
    if booting.join("usr/lib/systemd/systemd").is_file() {
        return Ok(booting);
    }
    let part = booting.with_extension("part");
    remove(&part)?;
    exec::succeed(exec::command("cp").args(["-a", "--reflink=auto"]).arg(&base).arg(&part))?;
    give_network(&part)?;
    let log = booting.with_extension("log");
    let mut c = exec::command("unshare");
    c.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-eu", "-c", INSTALL, "sh"]);
    c.arg(&part).args(["/usr/bin/env", "-i"]).args(carried());
    c.args(["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"]);
    c.args([
        "sh",
        "-euc",
        "apt-get update -qq; apt-get install -y -qq --no-install-recommends systemd-sysv dbus",
    ]);
    let ended = exec::limited(&mut c, &log, LIMIT)?;
    ensure!(ended.is_some_and(|s| s.success()), "no systemd in {suite}: {}", log.display());
    fs::rename(&part, &booting).with_context(|| booting.display().to_string())?;
    Ok(booting)
}

/// How this machine finds names, and whom it trusts beside Debian's list: its mirrors may be behind such a name.
fn give_network(root: &Path) -> anyhow::Result<()> {
    for file in ["etc/resolv.conf", "etc/hosts"] {
        // A machine without one resolves in another way.
        drop(fs::copy(Path::new("/").join(file), root.join(file)));
    }
    let trusted = Path::new("usr/local/share/ca-certificates");
    if Path::new("/").join(trusted).is_dir() {
        fs::create_dir_all(root.join("usr/local/share"))?;
        let mut cp = exec::command("cp");
        cp.arg("-r").arg(Path::new("/").join(trusted)).arg(root.join("usr/local/share"));
        exec::succeed(&mut cp)?;
    }
    Ok(())
}

/// How this machine's cargo and apt reach the network.
fn carried() -> Vec<String> {
    let network = ["_proxy", "_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"];
    let cargo =
        ["CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_"];
    std::env::vars()
        .filter(|(name, _)| {
            network.iter().any(|n| name.ends_with(n)) || cargo.iter().any(|c| name.starts_with(c))
        })
        .filter(|(name, _)| !name.contains("TOKEN") && !name.contains("CREDENTIAL"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// The smallest Debian there is, with this machine's mirrors.
fn debootstrap(suite: &str, to: &Path, dir: &Path) -> anyhow::Result<()> {
    let (main, security) = mirrors()?;
    let part = to.with_extension("part");
    remove(&part)?;
    let log = dir.join(format!("debootstrap-{suite}.log"));
    let program = if exec::exists("debootstrap") { "debootstrap" } else { "/usr/sbin/debootstrap" };
    let mut c = exec::command("unshare");
    c.args(["--mount", "--pid", "--fork", "--kill-child", program, "--variant=minbase"]);
    c.arg(suite).arg(&part).arg(&main);
    let ended = exec::limited(&mut c, &log, LIMIT)?;
    ensure!(ended.is_some_and(|s| s.success()), "debootstrap {suite} failed: {}", log.display());
    let mut sources = format!("deb {main} {suite} main\ndeb {main} {suite}-updates main\n");
    if let Some(security) = security {
        sources.push_str(&format!("deb {security} {suite}-security main\n"));
    }
    fs::write(part.join("etc/apt/sources.list"), sources)?;
    let acquire = exec::output(exec::command("apt-config").args(["dump", "Acquire"]))?;
    fs::write(part.join("etc/apt/apt.conf.d/90acquire"), acquire.stdout)?;
    let home = part.join("home/user");
    fs::create_dir_all(&home)?;
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755))?;
    let passwd = part.join("etc/passwd");
    let text = fs::read_to_string(&passwd)?;
    fs::write(&passwd, format!("{text}user:x:1000:1000::/home/user:/bin/sh\n"))?;
    fs::rename(&part, to).with_context(|| to.display().to_string())
}

fn remove(dir: &Path) -> anyhow::Result<()> {
    // Never through a mount: there is none outside the namespace, and this stays on one disk.
    exec::succeed(exec::command("rm").args(["-rf", "--one-file-system"]).arg(dir))
}
