// SPDX-License-Identifier: MIT OR Apache-2.0
//! A target of one's own: a kernel and the user-space files that belong to it, in one TOML file.
//!
//! Paths in the file are relative to its folder. Layout:
//!
//! ```toml
//! name = "Cobalt 3.3"
//! kernel = "path:bzImage"              # any name of a kernel: path:, build:, debian:
//! config = "config"                    # its configuration; known for build: and debian:
//! append = "tsc=reliable"
//! modules = ["a.ko", "b.ko"]           # loaded in this order before anything else
//! library_path = ["lib"]               # where `file`s find their shared libraries first
//! arguments = ["--sleep", "cobalt"]    # for `tailbound run`, when our own loop measures
//!
//! [[file]]
//! host = "bin/latency"
//! guest = "/usr/bin/latency"
//!
//! [[setting]]                          # written in the guest before the measurement
//! path = "/proc/xenomai/latency"
//! value = "0"
//!
//! [tester.user]                        # chosen by name
//! command = ["/usr/bin/latency", "-t0", "-T10", "-h"]
//! format = "xenomai"
//!
//! [check]                              # what must hold before the boot: see `checks`
//! core = "cobalt"
//! config = ["CONFIG_XENO_DRIVERS_TIMERBENCH=y"]
//! ```
//!
//! Not here: booting (`run`), what a tester's answer says (`tailbound-import`).

pub mod checks;
mod vermagic;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tailbound_core::lab::Tester;
use tailbound_core::limits;
use tailbound_core::words::did_you_mean;
use tailbound_sys::given;

pub use self::checks::{Check, Core};
use crate::arch::Arch;
use crate::elf;
use crate::error::{DescriptionError, FileError, LabError, TargetError};
use crate::kernel::KernelName;

/// A target description, read and completed.
#[derive(Clone, Debug)]
pub struct Target {
    /// What tables call it.
    pub name: String,
    /// Architecture of kernel and files.
    pub arch: Arch,
    /// The kernel.
    pub kernel: KernelName,
    /// Its configuration, where the file names one.
    pub config: Option<PathBuf>,
    /// Added to the kernel's command line.
    pub append: String,
    /// Modules on this machine, in the order of loading.
    pub modules: Vec<PathBuf>,
    /// Files with the libraries they need: path in the guest, path here.
    pub files: BTreeMap<String, PathBuf>,
    /// Path in the guest and value, written in this order before the measurement.
    pub settings: Vec<(String, String)>,
    /// Arguments for `tailbound run`, for the case that our own loop measures.
    pub arguments: Vec<String>,
    /// The testers it brings, by name.
    pub testers: BTreeMap<String, Tester>,
    /// What must hold before the boot.
    pub check: Check,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    arch: Option<String>,
    kernel: String,
    config: Option<PathBuf>,
    #[serde(default)]
    append: String,
    #[serde(default)]
    modules: Vec<PathBuf>,
    #[serde(default)]
    library_path: Vec<PathBuf>,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    file: Vec<WrittenFile>,
    #[serde(default)]
    setting: Vec<WrittenSetting>,
    #[serde(default)]
    tester: BTreeMap<String, Tester>,
    #[serde(default)]
    check: Check,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    host: PathBuf,
    guest: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSetting {
    path: String,
    value: String,
}

impl Target {
    /// Reads a target description; finds the libraries of its files.
    ///
    /// # Errors
    /// Usage: it is not TOML, a word is unknown, a file is missing or of another
    /// architecture, or a library is not to be found; says which and why.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let wrong = |source| TargetError::Description { path: path.to_owned(), source };
        let text = given::text(path, limits::TEXT_BYTES_MAX)
            .map_err(|e| wrong(DescriptionError::Unreadable(e)))?;
        let w: Written =
            toml::from_str(&text).map_err(|e| wrong(DescriptionError::Toml(Box::new(e))))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let here = |p: &PathBuf| folder.join(p);
        let arch = match &w.arch {
            Some(a) => a.parse().map_err(|e| wrong(DescriptionError::Arch(e)))?,
            None => Arch::of_host(),
        };
        let kernel = match w.kernel.parse()? {
            KernelName::Path { image, modules } => {
                KernelName::Path { image: here(&image), modules: modules.as_ref().map(here) }
            }
            other => other,
        };
        let modules: Vec<PathBuf> = w.modules.iter().map(here).collect();
        if let Some(missing) = modules.iter().find(|m| !m.is_file()) {
            let missing = DescriptionError::ModuleMissing { path: missing.clone() };
            return Err(wrong(missing).into());
        }
        let mut files = BTreeMap::new();
        for f in &w.file {
            if !clean(&f.guest) {
                let place = DescriptionError::Place { path: f.guest.clone() };
                return Err(wrong(place).into());
            }
            files.insert(f.guest.clone(), here(&f.host));
        }
        check_testers(&w.tester, &files).map_err(|e| wrong(DescriptionError::Tester(e)))?;
        let given: Vec<PathBuf> = w.library_path.iter().map(here).collect();
        let stem = path.file_stem().map_or("target".into(), |s| s.to_string_lossy());
        Ok(Self {
            name: w.name.unwrap_or_else(|| stem.into_owned()),
            arch,
            kernel,
            config: w.config.as_ref().map(here),
            append: w.append,
            modules,
            files: with_libraries(files, &given, arch)?,
            settings: w.setting.into_iter().map(|s| (s.path, s.value)).collect(),
            arguments: w.arguments,
            testers: w.tester,
            check: w.check,
        })
    }

    /// The tester of that name.
    ///
    /// # Errors
    /// Usage: there is none of that name; says which there are.
    pub fn tester(&self, name: &str) -> Result<&Tester, LabError> {
        self.testers.get(name).ok_or_else(|| {
            let near = did_you_mean(name, self.testers.keys().map(String::as_str));
            let (target, name) = (self.name.clone(), name.to_owned());
            let known = self.testers.keys().cloned().collect();
            TargetError::NoTester { target, name, near, known }.into()
        })
    }
}

/// `files` and every library they need.
fn with_libraries(
    files: BTreeMap<String, PathBuf>,
    folders: &[PathBuf],
    arch: Arch,
) -> Result<BTreeMap<String, PathBuf>, LabError> {
    let mut all = BTreeMap::new();
    for host in files.values() {
        let bytes = given::read(host, limits::OBJECT_BYTES_MAX)
            .map_err(|source| FileError::Given { path: host.clone(), source })?;
        if elf::needs(&bytes).is_none() {
            continue;
        }
        let found = elf::arch(&bytes);
        if found != Some(arch) {
            return Err(TargetError::OtherArch { path: host.clone(), found, arch }.into());
        }
        all.extend(elf::libraries(host, arch, folders)?);
    }
    // What the description places itself stays where it says.
    all.extend(files);
    Ok(all)
}

/// An absolute path that stays below the root.
fn clean(guest: &str) -> bool {
    guest.starts_with('/')
        && !guest.ends_with('/')
        && !guest.contains('\0')
        && !guest.split('/').any(|part| part == "..")
}

/// A tester that cannot run in the guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitTester {
    /// It names no program.
    #[error("tester.{name} has no command")]
    NoCommand {
        /// Its name.
        name: String,
    },
    /// Its program is not in the guest.
    #[error("tester.{name} runs {program}, which no [[file]] brings into the guest")]
    NotThere {
        /// Its name.
        name: String,
        /// The program.
        program: String,
    },
}

/// A tester that is not in the guest would be found out only after the boot.
fn check_testers(
    testers: &BTreeMap<String, Tester>,
    files: &BTreeMap<String, PathBuf>,
) -> Result<(), UnfitTester> {
    for (name, tester) in testers {
        let program = tester.command.first();
        let program = program.ok_or_else(|| UnfitTester::NoCommand { name: name.clone() })?;
        if !files.contains_key(program) {
            let (name, program) = (name.clone(), program.clone());
            return Err(UnfitTester::NotThere { name, program });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<Target, LabError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        fs::write(folder.path().join("data"), "not a program").unwrap();
        fs::write(&path, text).unwrap();
        Target::read(&path)
    }

    #[test]
    fn a_description_is_read_relative_to_its_folder() {
        let t = read(
            "kernel = \"path:bzImage\"\nappend = \"tsc=reliable\"\n\
             [[file]]\nhost = \"data\"\nguest = \"/usr/bin/latency\"\n\
             [[setting]]\npath = \"/proc/xenomai/latency\"\nvalue = \"0\"\n\
             [tester.user]\ncommand = [\"/usr/bin/latency\", \"-h\"]\n",
        )
        .unwrap();
        assert_eq!((t.name.as_str(), t.arch), ("mine", Arch::of_host()));
        assert!(
            matches!(&t.kernel, KernelName::Path { image, .. } if image.ends_with("bzImage") && image.is_absolute())
        );
        assert_eq!(t.settings, [("/proc/xenomai/latency".to_owned(), "0".to_owned())]);
        assert!(t.files.get("/usr/bin/latency").is_some_and(|p| p.is_absolute()));
        assert_eq!(t.tester("user").unwrap().command.len(), 2);
        assert!(t.tester("irq").unwrap_err().to_string().contains("it has user"));
    }

    #[test]
    fn what_is_wrong_is_reported_before_anything_boots() {
        for (text, says) in [
            ("kernel = \"bzImage\"\n", "say where it comes from"),
            ("kernel = \"path:k\"\nkernle = 1\n", "unknown field"),
            ("kernel = \"path:k\"\nmodules = [\"hal.ko\"]\n", "hal.ko is missing"),
            ("kernel = \"path:k\"\n[[file]]\nhost = \"data\"\nguest = \"/../x\"\n", "without `..`"),
            (
                "kernel = \"path:k\"\n[[file]]\nhost = \"gone\"\nguest = \"/x\"\n",
                "gone: No such file",
            ),
            ("kernel = \"path:k\"\n[tester.a]\ncommand = [\"/bin/x\"]\n", "no [[file]] brings"),
            ("kernel = \"path:k\"\narch = \"sparc\"\n", "not one of"),
            ("kernel = \"path:k\"\n[check]\ncore = \"vxworks\"\n", "unknown variant"),
        ] {
            let e = read(text).unwrap_err();
            assert_eq!(e.kind(), tailbound_core::FailureKind::Usage, "{text}");
            assert!(e.to_string().contains(says), "{text}: {e}");
        }
    }
}
