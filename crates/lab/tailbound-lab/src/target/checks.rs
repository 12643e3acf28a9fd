// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold before a target is booted: said now, instead of a guest that hangs.
//!
//! A check that cannot be made is a note ("unknown: why"), never passed.
//! What goes wrong without them: a dual kernel without a clock it trusts stops in its boot;
//! an SMP kernel refuses a library built without SMP, and the reverse; a library of another
//! ABI revision ends the tester at its first call; a module of another kernel is not loaded.
//! Source: Xenomai 3 `--dump-config` (its libraries carry the `CONFIG_SMP=` line and
//! `Xenomai/cobalt vX.Y`); EVL's `uapi/evl/control.h`; Kconfig of the three.

use std::path::Path;

use serde::Deserialize;
use tailbound_core::limits;
use tailbound_sys::given;

use super::{Target, vermagic};
use crate::arch::Arch;
use crate::error::{LabError, TargetError};
use crate::kernel::Config;

/// The second kernel that is expected in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Core {
    /// Xenomai 3.
    Cobalt,
    /// Xenomai 4.
    Evl,
    /// RTAI: its core comes as modules.
    Rtai,
}

/// `[check]` of a target description.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The second kernel: brings the checks that are known of it.
    pub core: Option<Core>,
    /// Lines the configuration must have: `CONFIG_X=y`, `CONFIG_X=n` for off.
    #[serde(default)]
    pub config: Vec<String>,
    /// Texts that files must contain, for versions and ABI revisions they carry.
    #[serde(default)]
    pub contains: Vec<Contains>,
}

/// A text that a file must contain.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contains {
    /// The file's place in the guest, or its name there (`libcobalt.so.2`).
    pub file: String,
    /// The text.
    pub text: String,
}

/// What was found.
#[derive(Default)]
struct Findings {
    wrong: Vec<String>,
    unknown: Vec<String>,
}

impl Target {
    /// Makes every check. `image` and `config` are what the kernel's name came to; the
    /// description's own `config` goes before. Returns what could not be checked and why.
    ///
    /// # Errors
    /// Usage: all that does not hold, each with its remedy; a file cannot be read.
    pub fn checks(&self, image: &Path, config: Option<&Path>) -> Result<Vec<String>, LabError> {
        let mut f = Findings::default();
        let config = self.config.as_deref().or(config).map(Config::read).transpose()?;
        match &config {
            Some(config) => self.against(config, &mut f),
            None => f.unknown.push(
                "the kernel's options are unknown: no `config` in the target description"
                    .to_owned(),
            ),
        }
        self.boot_options(&mut f);
        self.libraries(config.as_ref(), &mut f)?;
        self.modules_fit(image, &mut f)?;
        self.contained(&mut f)?;
        if f.wrong.is_empty() {
            return Ok(f.unknown);
        }
        Err(TargetError::Unfit { target: self.name.clone(), wrong: f.wrong }.into())
    }

    fn against(&self, config: &Config, f: &mut Findings) {
        for (wanted, why) in self.wanted() {
            let (name, value) = wanted.split_once('=').unwrap_or((wanted.as_str(), "y"));
            let found = config.option(name).unwrap_or("n");
            if found != value && !(value == "y" && found == "m" && !self.modules.is_empty()) {
                let found = if found == "n" { "it is off" } else { found };
                f.wrong.push(format!("kernel: {name}={value} is needed ({why}), {found}"));
            }
        }
        let any = |names: &[&str]| names.iter().any(|n| config.is_builtin(n));
        if self.check.core == Some(Core::Cobalt) && !any(&["CONFIG_DOVETAIL", "CONFIG_IPIPE"]) {
            f.wrong.push(
                "kernel: neither CONFIG_DOVETAIL nor CONFIG_IPIPE: Cobalt has nothing to stand on"
                    .to_owned(),
            );
        }
    }

    /// Options the core needs, then those the description asks for.
    fn wanted(&self) -> Vec<(String, &'static str)> {
        let mut all: Vec<(&str, &'static str)> = match self.check.core {
            Some(Core::Cobalt) => vec![("CONFIG_XENOMAI=y", "the Cobalt core")],
            Some(Core::Evl) => vec![
                ("CONFIG_DOVETAIL=y", "EVL stands on Dovetail"),
                ("CONFIG_EVL=y", "the EVL core"),
            ],
            Some(Core::Rtai) => vec![
                ("CONFIG_IPIPE=y", "RTAI stands on the interrupt pipeline"),
                ("CONFIG_MODULES=y", "RTAI's core is made of modules"),
            ],
            None => Vec::new(),
        };
        if self.check.core.is_some() {
            all.push(("CONFIG_HIGH_RES_TIMERS=y", "its timer needs one-shot mode"));
            if self.arch == Arch::X86_64 {
                all.push(("CONFIG_X86_TSC=y", "its clock"));
                all.push(("CONFIG_X86_LOCAL_APIC=y", "its timer"));
            }
        }
        let own = self.check.config.iter().map(|c| (c.clone(), "asked for in [check]"));
        all.into_iter().map(|(c, why)| (c.to_owned(), why)).chain(own).collect()
    }

    fn boot_options(&self, f: &mut Findings) {
        let has = |word: &str| self.append.split_whitespace().any(|w| w == word);
        if self.check.core.is_some() && self.arch == Arch::X86_64 && !has("tsc=reliable") {
            f.wrong.push(
                "append: tsc=reliable is needed: without it the kernel distrusts the emulated clock, and stops in its boot"
                    .to_owned(),
            );
        }
    }

    /// SMP and version of Xenomai's libraries against the kernel.
    fn libraries(&self, config: Option<&Config>, f: &mut Findings) -> Result<(), LabError> {
        if self.check.core != Some(Core::Cobalt) {
            return Ok(());
        }
        let is = |g: &str| g.rsplit('/').next().is_some_and(|n| n.starts_with("libcobalt."));
        let Some((_, file)) = self.files.iter().find(|(guest, _)| is(guest)) else {
            // Programs may be static, or only our own loop runs, which needs no library.
            return Ok(());
        };
        let bytes =
            given::read(file, limits::OBJECT_BYTES_MAX).map_err(|e| LabError::file(file, e))?;
        let library = file.display();
        let Some(config) = config else { return Ok(()) };
        // A library that carries neither line was built without its configuration.
        let kernel_smp = config.is_builtin("CONFIG_SMP");
        let library_smp = find(&bytes, b"CONFIG_SMP=1\0");
        if !find(&bytes, b"CONFIG_") {
            f.unknown.push(format!("{library}: carries no configuration: its SMP-ness is unknown"));
        } else if kernel_smp && !library_smp {
            f.wrong.push(format!(
                "{library} was built without SMP, the kernel with it: configure the library with --enable-smp, or the kernel without CONFIG_SMP"
            ));
        } else if !kernel_smp && library_smp {
            f.wrong.push(format!(
                "{library} was built for SMP, the kernel has no CONFIG_SMP: build both alike"
            ));
        }
        let version = config.option("CONFIG_XENO_VERSION_STRING").map(|v| v.trim_matches('"'));
        match (version, after(&bytes, b"Xenomai/cobalt v")) {
            (Some(kernel), Some(own)) if own == kernel => {}
            (Some(kernel), Some(own)) => f.wrong.push(format!(
                "{library} is of Xenomai {own}, the kernel's Cobalt of {kernel}: their ABI may differ; build both from one tree"
            )),
            _ => f.unknown.push(format!(
                "{library}: its version, or the kernel's, is not written down: their ABI is unknown until the tester starts"
            )),
        }
        Ok(())
    }

    fn modules_fit(&self, image: &Path, f: &mut Findings) -> Result<(), LabError> {
        if self.modules.is_empty() {
            if self.check.core == Some(Core::Rtai) {
                f.wrong.push("modules: RTAI's core is made of modules, and none is listed".into());
            }
            return Ok(());
        }
        let bytes =
            given::read(image, limits::OBJECT_BYTES_MAX).map_err(|e| LabError::file(image, e))?;
        let Some(release) = vermagic::of_image(&bytes) else {
            f.unknown.push(format!(
                "{}: its release is not in the clear: whether the modules fit is unknown",
                image.display()
            ));
            return Ok(());
        };
        for module in &self.modules {
            let bytes = given::read(module, limits::OBJECT_BYTES_MAX)
                .map_err(|e| LabError::file(module, e))?;
            let name = module.display();
            match vermagic::of_module(&bytes) {
                Some(magic) if magic.split_whitespace().next() == Some(release.as_str()) => {}
                Some(magic) => f.wrong.push(format!(
                    "{name} was built for {}, the kernel is {release}",
                    magic.split_whitespace().next().unwrap_or("an unnamed kernel")
                )),
                None => f.unknown.push(format!("{name}: names no kernel (compressed?)")),
            }
        }
        Ok(())
    }

    fn contained(&self, f: &mut Findings) -> Result<(), LabError> {
        for wanted in &self.check.contains {
            let is = |g: &str| g == wanted.file || g.rsplit('/').next() == Some(&wanted.file);
            let Some((_, file)) = self.files.iter().find(|(guest, _)| is(guest)) else {
                f.wrong.push(format!("[check] contains: no file {} in the guest", wanted.file));
                continue;
            };
            let bytes =
                given::read(file, limits::OBJECT_BYTES_MAX).map_err(|e| LabError::file(file, e))?;
            if !find(&bytes, wanted.text.as_bytes()) {
                f.wrong.push(format!("{} does not contain `{}`", file.display(), wanted.text));
            }
        }
        Ok(())
    }
}

fn find(bytes: &[u8], text: &[u8]) -> bool {
    !text.is_empty() && bytes.windows(text.len()).any(|w| w == text)
}

/// The word behind `text`.
fn after(bytes: &[u8], text: &[u8]) -> Option<String> {
    let at = bytes.windows(text.len()).position(|w| w == text)?.checked_add(text.len())?;
    let rest = bytes.get(at..)?;
    let end = rest.iter().position(|b| !b.is_ascii_graphic()).unwrap_or(rest.len());
    rest.get(..end).map(|w| String::from_utf8_lossy(w).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A description with a kernel, its configuration, one library and one module beside it.
    fn checked(toml: &str, config: &str, library: &[u8]) -> Result<Vec<String>, LabError> {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut image = vec![0u8; 0x400];
        image.splice(0x202..0x206, *b"HdrS");
        image.splice(0x20e..0x210, [0x50, 0x01]);
        image.splice(0x350..0x350 + 7, *b"5.4.291");
        fs::write(at("bzImage"), image).unwrap();
        fs::write(at("config"), config).unwrap();
        fs::write(at("lib"), library).unwrap();
        fs::write(at("fits.ko"), b"vermagic=5.4.291 SMP \0").unwrap();
        fs::write(at("other.ko"), b"vermagic=5.10.0 SMP \0").unwrap();
        let head = "kernel = \"path:bzImage\"\narch = \"x86_64\"\n";
        fs::write(at("t.toml"), format!("{head}{toml}")).unwrap();
        Target::read(&at("t.toml")).unwrap().checks(&at("bzImage"), None)
    }

    const COBALT: &str = "CONFIG_XENOMAI=y\nCONFIG_DOVETAIL=y\nCONFIG_HIGH_RES_TIMERS=y\nCONFIG_X86_TSC=y\nCONFIG_X86_LOCAL_APIC=y\nCONFIG_SMP=y\nCONFIG_XENO_VERSION_STRING=\"3.3\"\n";
    const LIBRARY: &[u8] = b"..CONFIG_SMP=1\0..Xenomai/cobalt v3.3\0..";

    fn cobalt(append: &str) -> String {
        format!(
            "config = \"config\"\nappend = \"{append}\"\n[[file]]\nhost = \"lib\"\nguest = \"/lib/libcobalt.so.2\"\n[check]\ncore = \"cobalt\"\n"
        )
    }

    #[test]
    fn what_fits_passes_without_a_note() {
        let notes = checked(&cobalt("quiet tsc=reliable"), COBALT, LIBRARY).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn what_would_hang_or_be_refused_is_reported_all_at_once() {
        let config = COBALT.replace("CONFIG_XENOMAI=y", "").replace("CONFIG_DOVETAIL=y", "");
        let library = b"..CONFIG_DEBUG=1\0..Xenomai/cobalt v3.1\0";
        let e = checked(&cobalt(""), &config, library).unwrap_err();
        assert_eq!(e.kind(), tailbound_core::FailureKind::Usage);
        let text = e.to_string();
        for says in [
            "CONFIG_XENOMAI=y is needed (the Cobalt core), it is off",
            "neither CONFIG_DOVETAIL nor CONFIG_IPIPE",
            "tsc=reliable is needed",
            "built without SMP, the kernel with it",
            "is of Xenomai 3.1, the kernel's Cobalt of 3.3",
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
        let no_smp = COBALT.replace("CONFIG_SMP=y\n", "");
        let e = checked(&cobalt("tsc=reliable"), &no_smp, LIBRARY).unwrap_err();
        assert!(e.to_string().contains("built for SMP, the kernel has no CONFIG_SMP"), "{e}");
    }

    #[test]
    fn modules_of_another_kernel_are_refused() {
        let rtai = |module: &str| {
            format!(
                "config = \"config\"\nappend = \"tsc=reliable\"\nmodules = [{module}]\n[check]\ncore = \"rtai\"\nconfig = [\"CONFIG_KALLSYMS=n\"]\n"
            )
        };
        let config = "CONFIG_IPIPE=y\nCONFIG_MODULES=y\nCONFIG_HIGH_RES_TIMERS=y\nCONFIG_X86_TSC=y\nCONFIG_X86_LOCAL_APIC=y\n";
        assert!(checked(&rtai("\"fits.ko\""), config, b"").unwrap().is_empty());
        let e = checked(&rtai("\"fits.ko\", \"other.ko\""), config, b"").unwrap_err();
        assert!(e.to_string().contains("was built for 5.10.0, the kernel is 5.4.291"), "{e}");
        let e = checked(&rtai(""), config, b"").unwrap_err();
        assert!(e.to_string().contains("none is listed"), "{e}");
        let more = format!("{config}CONFIG_KALLSYMS=y\n");
        let e = checked(&rtai("\"fits.ko\""), &more, b"").unwrap_err();
        assert!(e.to_string().contains("CONFIG_KALLSYMS=n is needed"), "{e}");
    }

    #[test]
    fn what_cannot_be_checked_is_unknown_and_not_passed_in_silence() {
        let notes =
            checked("append = \"tsc=reliable\"\n[check]\ncore = \"evl\"\n", "", b"").unwrap();
        assert!(notes.iter().any(|n| n.contains("options are unknown")), "{notes:?}");
        let text = "[[file]]\nhost = \"lib\"\nguest = \"/usr/lib/libevl.so.2\"\n[check]\ncontains = [{ file = \"libevl.so.2\", text = \"ABI 26\" }]\n";
        assert!(checked(text, "", b"libevl ABI 26").unwrap().len() == 1);
        let e = checked(text, "", b"libevl ABI 27").unwrap_err();
        assert!(e.to_string().contains("does not contain `ABI 26`"), "{e}");
    }
}
