// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the kernel's own makefile: short targets at once, builds with progress and a log.
//!
//! Reproducible: time, user, host and number of the build are fixed, and the
//! release is `-tailbound` whatever the tree. A build runs at nice 19 and ends with us.
//! Source: Documentation/kbuild/reproducible-builds.rst, Documentation/kbuild/kbuild.rst.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tailbound_sys::environment::Environment;
use tailbound_sys::process::{self, Pid, SIGKILL, SIGTERM};
use tailbound_sys::program;
use tailbound_sys::spawn::Spawn;

use super::toolchain::Toolchain;
use crate::arch::Arch;
use crate::error::{BuildError, LabError, ToolError};
use crate::kernel::tool::{Tool, ToolOutput};

/// How often progress is told.
const TELL: Duration = Duration::from_secs(2);
/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// How long compilers have to end once they were asked to.
const PATIENCE: Duration = Duration::from_millis(600);

/// One output folder of one source tree.
#[derive(Clone, Debug)]
pub(crate) struct Make {
    pub(crate) source: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) arch: Arch,
    pub(crate) toolchain: Toolchain,
    /// Everything a compilation sees is under this folder (for ccache).
    pub(crate) base: PathBuf,
}

/// Where a compilation is.
#[derive(Clone, Copy, Debug)]
pub struct Compiling<'a> {
    /// Since it began.
    pub seconds: u64,
    /// Files compiled, assembled, linked.
    pub objects: u64,
    /// The last one.
    pub file: &'a str,
}

/// How a build ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Built {
    pub(crate) seconds: f64,
    /// Of all compilers together; nothing where /proc does not tell.
    pub(crate) cpu_seconds: Option<f64>,
    /// Files compiled, assembled, linked.
    pub(crate) objects: u64,
}

/// Processor time of all children that have ended, from /proc/self/stat.
fn children_cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name may hold spaces: count from its end. Ticks are 1/100 s on every architecture here.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let ticks: u32 =
        fields.next()?.parse::<u32>().ok()?.checked_add(fields.next()?.parse().ok()?)?;
    Some(f64::from(ticks) / 100.0)
}

/// Ends a build. make passes the signal on to its compilers and ends when they did; what a makefile lets go on is
/// killed with its session.
fn end(make: Pid) {
    let _gone = process::kill(make, SIGTERM);
    let asked = Instant::now();
    let mut ended = false;
    while !ended && asked.elapsed() < PATIENCE {
        std::thread::park_timeout(LOOK / 5);
        ended = !matches!(process::try_wait(make), Ok(None));
    }
    if !ended {
        for pid in process::descendants(make).into_iter().chain([make]) {
            let _gone = process::kill(pid, SIGKILL);
        }
        process::wait(make);
    }
    process::kill_session(make);
}

impl Make {
    fn variables(&self) -> Vec<String> {
        vec![
            "LC_ALL=C".into(),
            "KBUILD_BUILD_TIMESTAMP=@0".into(),
            "KBUILD_BUILD_USER=tailbound".into(),
            "KBUILD_BUILD_HOST=lab".into(),
            "KBUILD_BUILD_VERSION=1".into(),
            "CCACHE_NOHASHDIR=1".into(),
            format!("CCACHE_BASEDIR={}", self.base.display()),
        ]
    }

    fn words(&self, targets: &[&str]) -> Vec<String> {
        let mut words = vec![
            "-C".into(),
            self.source.display().to_string(),
            format!("O={}", self.out.display()),
            format!("ARCH={}", make_arch(self.arch)),
            format!("CC={}", self.toolchain.cc()),
            format!("HOSTCC={}", self.toolchain.host_cc()),
            "LOCALVERSION=-tailbound".into(),
        ];
        if !self.toolchain.cross.is_empty() {
            words.push(format!("CROSS_COMPILE={}", self.toolchain.cross));
        }
        words.extend(targets.iter().map(|&t| t.to_owned()));
        words
    }

    /// A target of seconds (a configuration, a question), with more variables.
    ///
    /// # Errors
    /// make is missing or failed; with its output.
    pub(crate) fn ask(&self, targets: &[&str], more: &[String]) -> Result<ToolOutput, LabError> {
        fs::create_dir_all(&self.out).map_err(|e| LabError::file(&self.out, e))?;
        let output = Tool::new("env")
            .args(self.variables())
            .args(more)
            .args(["make", "--no-print-directory", "-s"])
            .args(self.words(targets))
            .run()?;
        if output.success {
            return Ok(output);
        }
        let complaint = reason(&format!("{}{}", output.out, output.err));
        Err(BuildError::Make { targets: targets.join(" "), complaint }.into())
    }

    /// A target of minutes. `progress` is told every 2 s, all output to `log`.
    ///
    /// # Errors
    /// Cannot: the first error of a compiler with its file, and where the log is;
    /// interrupted: `stop` said so.
    pub(crate) fn build(
        &self,
        targets: &[&str],
        jobs: u32,
        log: &Path,
        progress: &mut dyn FnMut(&Compiling),
        stop: &dyn Fn() -> bool,
    ) -> Result<Built, LabError> {
        let file = tailbound_sys::new_file::begin_log(log).map_err(|e| LabError::file(log, e))?;
        let null =
            File::open("/dev/null").map_err(|e| LabError::file(Path::new("/dev/null"), e))?;
        let mut arguments: Vec<OsString> =
            self.variables().into_iter().map(OsString::from).collect();
        arguments.extend(["nice", "-n", "19", "make", "--no-print-directory"].map(OsString::from));
        arguments.push(format!("-j{jobs}").into());
        arguments.extend(self.words(targets).into_iter().map(OsString::from));
        let env = program::find("env").map_err(ToolError::Missing)?;
        let (begun, cpu_before) = (Instant::now(), children_cpu_seconds());
        let pid = Spawn {
            program: &env,
            arguments: &arguments,
            descriptors: &[(null.as_fd(), 0), (file.as_fd(), 1), (file.as_fd(), 2)],
            pid_namespace: false,
            new_session: true,
            death_signal: SIGTERM,
            cpus: &[],
            environment: Environment::Clean,
        }
        .start()
        .map_err(ToolError::Call)?;
        let mut noted = Instant::now();
        let mut reader = LogReader::open(log)?;
        let status = loop {
            if let Some(status) = process::try_wait(pid).map_err(ToolError::Call)? {
                break status;
            }
            if stop() {
                end(pid);
                return Err(LabError::Interrupted);
            }
            if noted.elapsed() >= TELL {
                noted = Instant::now();
                reader.more();
                progress(&Compiling {
                    seconds: begun.elapsed().as_secs(),
                    objects: reader.objects,
                    file: &reader.last,
                });
            }
            std::thread::park_timeout(LOOK);
        };
        reader.more();
        let seconds = begun.elapsed().as_secs_f64();
        if status.success() {
            let cpu_seconds = children_cpu_seconds().zip(cpu_before).map(|(now, then)| now - then);
            return Ok(Built { seconds, cpu_seconds, objects: reader.objects });
        }
        let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
        Err(BuildError::Compilation {
            targets: targets.join(" "),
            seconds,
            status: process::ended(status),
            complaint: reason(&text),
            log: log.to_owned(),
        }
        .into())
    }
}

/// ARCH= as the makefile wants it; `x86` alone would ask for the word size.
fn make_arch(arch: Arch) -> &'static str {
    if arch == Arch::X86_64 { "x86_64" } else { arch.kbuild() }
}

/// Counts what a build has done from its log.
struct LogReader {
    file: File,
    at: u64,
    objects: u64,
    last: String,
}

impl LogReader {
    fn open(log: &Path) -> Result<Self, LabError> {
        let file = File::open(log).map_err(|e| LabError::file(log, e))?;
        Ok(Self { file, at: 0, objects: 0, last: String::new() })
    }

    fn more(&mut self) {
        let mut bytes = Vec::new();
        let read = self
            .file
            .seek(SeekFrom::Start(self.at))
            .and_then(|_| self.file.read_to_end(&mut bytes));
        // Whole lines only; a log that cannot be read costs the progress, nothing else.
        let (Ok(_), Some(end)) = (read, bytes.iter().rposition(|&b| b == b'\n')) else { return };
        let text = String::from_utf8_lossy(bytes.get(..=end).unwrap_or_default()).into_owned();
        self.at += end as u64 + 1;
        for line in text.lines() {
            let mut words = line.split_whitespace();
            if line.starts_with("  ")
                && let (Some(verb), Some(file)) = (words.next(), words.next())
            {
                if matches!(verb, "CC" | "AS" | "LD" | "AR" | "HOSTCC" | "HOSTLD") {
                    self.objects += 1;
                }
                self.last = file.to_owned();
            }
        }
    }
}

/// The first error in a build's output: the compiler's with its file, else the linker's,
/// else make's own.
pub(crate) fn reason(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let first = |found: &dyn Fn(&str) -> bool| lines.iter().position(|l| found(l));
    let compiler = first(&|l| l.contains(": error: ") || l.contains(": fatal error: "));
    let linker =
        || first(&|l| l.contains("undefined reference to") || l.contains("multiple definition of"));
    let other =
        || first(&|l| l.starts_with("***") || l.contains("*** ") || l.starts_with("ERROR: "));
    let Some(at) = compiler.or_else(linker).or_else(other) else {
        let tail = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default();
        return if tail.is_empty() { "without a word".to_owned() } else { tail.join("; ") };
    };
    // gcc's excerpt of the source follows: indented, with a bar.
    let excerpt = lines.iter().skip(at + 1).take(2).filter(|l| l.contains(" | "));
    let mut text = lines.get(at).map_or(String::new(), |l| l.trim().to_owned());
    for line in excerpt {
        text.push_str("\n    ");
        text.push_str(line.trim_end());
    }
    text
}

#[cfg(test)]
#[path = "make_tests.rs"]
mod tests;
