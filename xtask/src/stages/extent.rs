// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much `make test` runs: everything on CI, and for a person what ends within half an hour.
//!
//! What takes longest is asked for: `TAILBOUND_REQUIRE=long make test`, or one stage or check by its name. Each that was left out is
//! skipped with the command that runs it.

use std::path::Path;

use tailbound_testing::required;

use super::lab;
use super::tally::Tally;
use crate::cross::Target;

/// The stages that are left out unless they are asked for: what is built for other machines, and packed for them; the site, whose tool is compiled first; the crates, compiled once more; kills at any instant; the lints of compiler and documentation, which a
/// newer toolchain than CI's has more of, and which check everything once more.
const LONG_STAGES: [&str; 8] =
    ["boards", "clippy", "docs", "faults", "firmware", "packages", "registry", "site"];
/// Those of them that want no program that `static` builds.
const LINTS: [&str; 2] = ["clippy", "docs"];

/// How much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Everything, or what was named.
    Everything,
    /// Without the longest stages, and the lab's longest checks.
    WithoutLong,
}

impl Extent {
    /// That of a run with these words.
    pub(super) fn of(words: &[&str]) -> Self {
        if words.is_empty() && !required("long") { Self::WithoutLong } else { Self::Everything }
    }

    /// Is the stage left out?
    pub(super) fn leaves_out(self, stage: &str) -> bool {
        self == Self::WithoutLong && LONG_STAGES.contains(&stage)
    }

    /// What the stage `static` builds.
    pub(super) fn static_programs(self) -> Target {
        match self {
            Self::Everything => Target::native(),
            Self::WithoutLong => Target::machine(),
        }
    }

    /// The lab's checks of these that are run.
    pub(super) fn lab(self, names: Vec<&'static str>) -> Vec<&'static str> {
        names.into_iter().filter(|name| !self.leaves_out_of_lab(name)).collect()
    }

    fn leaves_out_of_lab(self, name: &str) -> bool {
        self == Self::WithoutLong && lab::LONG.contains(&name)
    }

    /// A stage that is left out, told.
    pub(super) fn stage(name: &str) -> Tally {
        let mut tally = Tally::default();
        let before = if LINTS.contains(&name) { "" } else { "static " };
        tally.leave_out(name, format!("minutes more: `cargo xtask test {before}{name}`"));
        tally
    }

    /// The stage `lab`, where nothing has run it beside the others.
    pub(super) fn whole_lab(self, project: &Path) -> anyhow::Result<Tally> {
        let mut tally = lab::some(project, &self.lab(lab::names(project)))?;
        tally.absorb(self.lab_left_out());
        Ok(tally)
    }

    /// The lab's checks that are left out, told.
    pub(super) fn lab_left_out(self) -> Tally {
        let mut tally = Tally::default();
        for name in lab::LONG.iter().filter(|name| self.leaves_out_of_lab(name)) {
            let how = format!("minutes more: `cargo xtask test static lab:\"{name}\"`");
            tally.leave_out(name, how);
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn what_is_named_is_run_and_what_is_left_out_is_told() {
        assert_eq!(Extent::of(&["boards"]), Extent::Everything);
        assert!(
            !Extent::Everything.leaves_out("boards") && Extent::WithoutLong.leaves_out("boards")
        );
        assert!(!Extent::WithoutLong.leaves_out("lab"));
        let all = lab::names(&root::project().unwrap());
        for name in lab::LONG {
            assert!(all.contains(&name), "the lab has no check `{name}`");
        }
        let short = Extent::WithoutLong.lab(all.clone());
        assert_eq!(short.len() + lab::LONG.len(), all.len());
        assert_eq!(Extent::WithoutLong.lab_left_out().skipped().count(), lab::LONG.len());
        assert_eq!(Extent::Everything.lab(all.clone()), all);
        assert_eq!(Extent::Everything.lab_left_out(), Tally::default());
    }
}
