// SPDX-License-Identifier: MIT OR Apache-2.0
//! The environment another program starts in.
//!
//! Context: SETUP, COLD. Compilers, make, stress-ng and QEMU read dozens of variables; a load
//! must be the same whoever started the tool, and make must not take itself for part of a build
//! above it. So what the tool starts for itself gets a list of what it may know, not all but a
//! list of what it may not.
//! Not here: starting (`spawn`).
//! Source: environ(7), locale(7); GNU make manual, "Communicating Options to a Sub-make".

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::{owner, program};

/// Where programs are, who the user is, where temporary files go, what time zone it is.
const KEPT: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "TERM"];

/// Variables of the tool itself.
const OURS: &[u8] = b"TAILBOUND_";

/// What make hands to the makes below it. The descriptors that MAKEFLAGS names are closed in
/// whatever the tool starts.
const OF_MAKE: [&str; 4] = ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"];

/// Which variables a program is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// A fixed list, and messages in English (`LC_ALL=C`): for what the tool starts for itself.
    Clean,
    /// The user's, without what a make above meant for its own children: for commands that the
    /// user wrote.
    Users,
    /// All of it: for this program once more.
    Inherited,
    /// All of it as it stands, PATH too: for a program that the user could have started instead.
    Untouched,
}

impl Environment {
    /// Its variables.
    #[must_use]
    pub fn variables(self) -> Vec<(OsString, OsString)> {
        self.of(std::env::vars_os())
    }

    fn of(self, all: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let mut chosen: Vec<_> = all.filter(|(name, _)| self.holds(name)).collect();
        // Never the current folder, whatever the user's says: see `program`.
        let path = program::path();
        if self == Self::Untouched {
            return chosen;
        }
        match chosen.iter_mut().find(|(name, _)| name == "PATH") {
            Some((_, value)) => *value = path,
            None => chosen.push(("PATH".into(), path)),
        }
        if self == Self::Clean {
            // Under sudo HOME may be the caller's.
            chosen.retain(|(name, _)| name != "HOME");
            chosen.extend(owner::home().map(|home| ("HOME".into(), home.into())));
            chosen.push(("LC_ALL".into(), "C".into()));
        }
        chosen
    }

    fn holds(self, name: &OsStr) -> bool {
        let among = |list: &[&str]| list.iter().any(|n| *n == name);
        match self {
            Self::Clean => among(&KEPT) || name.as_bytes().starts_with(OURS),
            Self::Users => !among(&OF_MAKE),
            Self::Inherited | Self::Untouched => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(kind: Environment, all: &[&str]) -> Vec<String> {
        let all = all.iter().map(|n| (OsString::from(n), OsString::from("x")));
        kind.of(all).into_iter().map(|(n, _)| n.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_the_tool_starts_knows_nothing_of_who_started_the_tool() {
        let all = ["PATH", "MAKEFLAGS", "MAKELEVEL", "CARGO_HOME", "CC", "LANG", "TAILBOUND_LAB"];
        let mut clean = names(Environment::Clean, &all);
        clean.retain(|name| name != "HOME");
        assert_eq!(clean, ["PATH", "TAILBOUND_LAB", "LC_ALL"]);
        let users = ["PATH", "CARGO_HOME", "CC", "LANG", "TAILBOUND_LAB"];
        assert_eq!(names(Environment::Users, &all), users);
        assert_eq!(names(Environment::Inherited, &all), all);
    }

    #[test]
    fn a_path_is_always_given_and_never_leads_to_the_current_folder() {
        for said in [None, Some(""), Some(".:/usr/bin"), Some("bin")] {
            let all = said.map(|p| (OsString::from("PATH"), OsString::from(p)));
            for kind in [Environment::Clean, Environment::Users, Environment::Inherited] {
                let given = kind.of(all.clone().into_iter());
                let path = given.iter().find(|(name, _)| name == "PATH").map(|(_, p)| p).unwrap();
                let mut folders = std::env::split_paths(path);
                assert!(folders.all(|f| f.is_absolute()), "{said:?}: {path:?}");
            }
        }
    }
}
