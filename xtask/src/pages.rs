// SPDX-License-Identifier: MIT OR Apache-2.0
//! Man pages and shell completions, from the one definition of the command line.
//!
//! Compiled in only with the feature `pages`: without it the chore starts
//! itself again with it, so that all other tasks work while the tool does not compile.

use anyhow::bail;

/// Which pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Man,
    Completions,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Man => "man",
            Self::Completions => "completions",
        }
    }
}

/// `cargo xtask man [DIR]` and `cargo xtask completions [DIR]`.
pub(crate) fn command(kind: Kind, rest: &[&str]) -> anyhow::Result<()> {
    let project = crate::root::project()?;
    let dir = match rest {
        [] => project.join("dist").join(kind.word()),
        [dir] => std::path::absolute(dir)?,
        _ => bail!("one directory at most"),
    };
    write(kind, &project, &dir)
}

#[cfg(not(feature = "pages"))]
fn write(kind: Kind, project: &std::path::Path, dir: &std::path::Path) -> anyhow::Result<()> {
    crate::exec::with_pages(project, &[kind.word().as_ref(), dir.as_ref()])
}

#[cfg(feature = "pages")]
fn write(kind: Kind, _: &std::path::Path, dir: &std::path::Path) -> anyhow::Result<()> {
    use anyhow::Context as _;
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    match kind {
        Kind::Man => {
            clap_mangen::generate_to(tailbound::command().disable_help_subcommand(true), dir)?
        }
        Kind::Completions => {
            use clap_complete::Shell;
            let mut tool = tailbound::command_for_completions();
            for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
                clap_complete::generate_to(shell, &mut tool, "tailbound", dir)?;
            }
        }
    }
    let n = std::fs::read_dir(dir)?.count();
    println!("{}: {n} files", dir.display());
    Ok(())
}
