// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boot parameters, as a marked part of the boot loader's own configuration.
//!
//! Only files that are read by the loader's own tools are written, whole, with the
//! old text in the journal; the tool that carries them to the boot entries (update-grub, …) is
//! named, not run. Nothing here counts before a reboot.
//! Source: /etc/default/grub.d (Debian's grub-mkconfig), kernel-install(8) (/etc/kernel/cmdline,
//! systemd-boot), the documentation of U-Boot (extlinux.conf) and of the Raspberry Pi (cmdline.txt).

use tailbound_host::root::{Missing, Root};

use crate::settings::{Draft, Omission, OnRefusal};
use crate::target::Target;

/// The first line of every file that is ours alone.
pub(crate) const MARK: &str = "# Made by tailbound tune; `tailbound tune undo` removes it.";

/// Why boot parameters cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    /// A parameter that cannot stand on a command line.
    #[error(
        "boot parameter `{0}`: write name or name=value, without blanks, quotes, `$` and backslashes"
    )]
    Parameter(String),
    /// A placeholder without a meaning.
    #[error("boot parameter `{0}` needs CPUs for real-time work: name them with --rt-cpus LIST")]
    NoCpus(String),
}

/// A boot loader that is configured by a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loader {
    Grub,
    KernelInstall,
    Extlinux(&'static str),
    RaspberryPi(&'static str),
}

const EXTLINUX: &[&str] =
    &["/boot/extlinux/extlinux.conf", "/boot/firmware/extlinux/extlinux.conf"];
const RASPBERRY: &[&str] = &["/boot/firmware/cmdline.txt", "/boot/cmdline.txt"];

fn loader(root: &Root) -> Option<Loader> {
    let there = |paths: &[&'static str]| paths.iter().copied().find(|p| root.exists(p));
    if root.exists("/etc/default/grub") {
        Some(Loader::Grub)
    } else if root.exists("/etc/kernel/cmdline") {
        Some(Loader::KernelInstall)
    } else if let Some(path) = there(EXTLINUX) {
        Some(Loader::Extlinux(path))
    } else {
        there(RASPBERRY).map(Loader::RaspberryPi)
    }
}

/// Plans the parameters; `{rt}` and `{housekeeping}` stand for CPUs.
///
/// # Errors
/// [`BootError`].
pub(crate) fn plan(draft: &mut Draft<'_>, parameters: &[String]) -> Result<(), BootError> {
    draft.begin("boot");
    let mut words = Vec::new();
    for parameter in parameters {
        words.push(word(draft, parameter)?);
    }
    if words.is_empty() {
        return Ok(());
    }
    let root = &draft.facts.root;
    let Some(loader) = loader(root) else {
        draft.leave_out(
            format!(
                "no boot loader was found (GRUB, systemd-boot, extlinux, Raspberry Pi): add these parameters by hand: {}",
                words.join(" ")
            ),
            Omission::Wanting,
        );
        return Ok(());
    };
    let (path, text, then) = match loader {
        Loader::Grub => (
            "/etc/default/grub.d/50-tailbound.cfg",
            Ok(format!("{MARK}\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {}\"\n", words.join(" "))),
            "run update-grub, then reboot",
        ),
        Loader::KernelInstall => (
            "/etc/kernel/cmdline",
            root.text("/etc/kernel/cmdline").map(|old| on_one_line(&old, &words)),
            "run kernel-install for the installed kernels, then reboot",
        ),
        Loader::RaspberryPi(path) => {
            (path, root.text(path).map(|old| on_one_line(&old, &words)), "reboot")
        }
        Loader::Extlinux(path) => {
            (path, root.text(path).map(|old| in_append_lines(&old, &words)), "reboot")
        }
    };
    match text {
        Ok(text) => {
            draft.change(Target::File { path: path.to_owned() }, Some(text), OnRefusal::Undo);
            draft.leave_out(format!("{path} counts later: {then}"), Omission::Harmless);
        }
        Err(Missing::NotApplicable(why) | Missing::Unknown(why)) => {
            draft.leave_out(why, Omission::Wanting)
        }
    }
    Ok(())
}

fn word(draft: &Draft<'_>, parameter: &str) -> Result<String, BootError> {
    let facts = draft.facts;
    if facts.rt.is_empty() && parameter.contains('{') {
        return Err(BootError::NoCpus(parameter.to_owned()));
    }
    let word = parameter
        .replace("{rt}", &facts.rt.to_string())
        .replace("{housekeeping}", &facts.housekeeping.to_string());
    let plain = |c: char| c.is_ascii_graphic() && !"\"'`$\\{}#".contains(c);
    if word.is_empty() || !word.chars().all(plain) {
        return Err(BootError::Parameter(tailbound_core::printable::excerpt(parameter, 60)));
    }
    Ok(word)
}

/// A file with one line of parameters: those of the same name give way.
fn on_one_line(old: &str, words: &[String]) -> String {
    let name = |w: &str| w.split('=').next().unwrap_or_default().to_owned();
    let ours: Vec<String> = words.iter().map(|w| name(w)).collect();
    let mut kept: Vec<String> = old
        .split_ascii_whitespace()
        .filter(|w| !ours.contains(&name(w)))
        .map(str::to_owned)
        .collect();
    kept.extend(words.iter().cloned());
    format!("{}\n", kept.join(" "))
}

/// Every `append` line of extlinux.conf.
fn in_append_lines(old: &str, words: &[String]) -> String {
    let mut out = String::new();
    for line in old.lines() {
        let trimmed = line.trim_start();
        let (head, rest) = trimmed.split_at(trimmed.len().min("append ".len()));
        if head.eq_ignore_ascii_case("append ") {
            let indent = line.get(..line.len() - trimmed.len()).unwrap_or_default();
            out.push_str(&format!("{indent}{head}{}", on_one_line(rest, words)));
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_take_the_place_of_those_of_the_same_name() {
        let words = ["nohz_full=2-3".to_owned(), "nosmt".to_owned()];
        let old = "root=/dev/sda1 nohz_full=1 quiet\n";
        assert_eq!(on_one_line(old, &words), "root=/dev/sda1 quiet nohz_full=2-3 nosmt\n");
        let conf = "label l0\n  kernel /vmlinuz\n  APPEND root=/dev/mmcblk0p2 rw\n";
        assert_eq!(
            in_append_lines(conf, &words),
            "label l0\n  kernel /vmlinuz\n  APPEND root=/dev/mmcblk0p2 rw nohz_full=2-3 nosmt\n"
        );
        assert_eq!(in_append_lines("ä\n", &words), "ä\n");
    }
}
