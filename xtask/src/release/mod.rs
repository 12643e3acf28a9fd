// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask release`: everything that is given to others, made in one folder from programs that are there or are
//! built first.
//!
//! The same sources and programs give the same bytes: names are sorted, owners are root, and every time is that of the
//! last commit (`SOURCE_DATE_EPOCH`, if set). Archives are made by dpkg-deb, rpmbuild and tar, which keep to that and
//! are there or one package away; cargo-deb and cargo-generate-rpm would first compile for minutes.
//! Source: reproducible-builds.org, SOURCE_DATE_EPOCH; deb(5); tar(1).
//! Not here: how programs are built (`cross.rs`); whether packages install (stage `packages`).

pub(crate) mod container;
pub(crate) mod deb;
mod licences;
mod linked;
mod maintainer;
mod notes;
pub(crate) mod programs;
pub(crate) mod rpm;
mod sbom;
mod signed;
mod tarball;
mod tree;
pub(crate) mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use self::maintainer::Maintainer;
use crate::cross::Target;
use crate::{exec, pages, root};

/// Pages, and their folder beside the programs.
const PAGES: [(pages::Kind, &str); 2] =
    [(pages::Kind::Man, "man"), (pages::Kind::Completions, "completions")];

/// How much time compression may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// What is given to others.
    Final,
    /// What a test installs.
    Trial,
}

/// One release, while it is made.
#[derive(Debug, Clone)]
pub(crate) struct Release {
    pub(crate) project: PathBuf,
    /// Where programs, man pages and completions lie, named as in `dist/`.
    pub(crate) programs: PathBuf,
    /// Where it is put.
    pub(crate) out: PathBuf,
    pub(crate) version: String,
    /// What every file in it is dated, in seconds since 1970.
    pub(crate) date_s: u64,
    pub(crate) effort: Effort,
}

impl Release {
    /// Of the sources in `project`, into `out`.
    pub(crate) fn of(project: &Path, programs: &Path, out: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            project: project.to_owned(),
            programs: programs.to_owned(),
            out: out.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            date_s: date_s(project)?,
            effort: Effort::Final,
        })
    }

    /// An empty folder for what is packed, beside the products.
    fn scratch(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.out.join(".making").join(name);
        emptied(&folder)?;
        Ok(folder)
    }

    /// A command whose archives are dated as the release is.
    fn command(&self, program: &str) -> Command {
        let mut c = exec::command(program);
        c.env("SOURCE_DATE_EPOCH", self.date_s.to_string()).env("LC_ALL", "C").env("TZ", "UTC");
        c
    }

    /// The date as date(1) writes it.
    fn date(&self, form: &str) -> anyhow::Result<String> {
        let mut date = self.command("date");
        said(date.args(["-u", "-d", &format!("@{}", self.date_s), form]))
            .map(|s| s.trim().to_owned())
    }

    /// A file of `packaging/` with its `@NAME@` filled in.
    fn filled(&self, name: &str, values: &[(&str, &str)]) -> anyhow::Result<String> {
        let path = self.project.join("packaging").join(name);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut text = text.replace("@VERSION@", &self.version);
        for (name, value) in values {
            text = text.replace(&format!("@{name}@"), value.trim_end());
        }
        if let Some(rest) = text.split('@').nth(1).filter(|w| is_place(w)) {
            bail!("{}: nothing is known for @{rest}@", path.display());
        }
        Ok(text)
    }
}

fn is_place(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

/// What a command printed; an error with its complaint unless it succeeded.
fn said(c: &mut Command) -> anyhow::Result<String> {
    let out = exec::output(c)?;
    if !out.status.success() {
        let complaint = String::from_utf8_lossy(&out.stderr);
        bail!("`{}`: {}: {}", exec::shown(c), out.status, complaint.trim());
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Removes what is there and makes the folder.
fn emptied(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// When the sources were last changed, or what `SOURCE_DATE_EPOCH` says.
fn date_s(project: &Path) -> anyhow::Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let mut git = exec::command("git");
            git.current_dir(project).args(["log", "-1", "--format=%ct"]);
            said(&mut git)
                .context("not in a clone: set SOURCE_DATE_EPOCH to the release's date in seconds")?
        }
    };
    text.trim()
        .parse()
        .with_context(|| format!("SOURCE_DATE_EPOCH: `{}` is no number of seconds", text.trim()))
}

/// `cargo xtask release [--programs FOLDER] [--out FOLDER]`.
pub(crate) fn command(words: &[&str]) -> anyhow::Result<()> {
    let project = root::project()?;
    let (mut given, mut out) = (None, project.join("dist"));
    for pair in words.chunks(2) {
        match pair {
            ["--programs", folder] => given = Some(std::path::absolute(folder)?),
            ["--out", folder] => out = std::path::absolute(folder)?,
            other => bail!("`{}`: release [--programs FOLDER] [--out FOLDER]", other.join(" ")),
        }
    }
    let programs = match given {
        Some(folder) => folder,
        None => build(&project)?,
    };
    let release = Release::of(&project, &programs, &out)?;
    for line in make(&release)? {
        println!("{line}");
    }
    Ok(())
}

/// Builds all programs that can be built here, and their pages; says in a line which cannot. What an earlier build left
/// is no part of this release.
fn build(project: &Path) -> anyhow::Result<PathBuf> {
    let dist = project.join("dist");
    for target in Target::released() {
        let old = target.product(project);
        if old.exists() {
            fs::remove_file(&old).with_context(|| old.display().to_string())?;
        }
        let built = match target.missing() {
            Some(why) => Err(anyhow::anyhow!(why)),
            None => target.build(project),
        };
        match built {
            Ok(_) => println!("built: {}", target.name),
            Err(e) if target.name == Target::native().name => return Err(e),
            Err(e) => println!("not built: {}: {e:#}", target.name),
        }
    }
    for (kind, word) in PAGES {
        emptied(&dist.join(word))?;
        pages::command(kind, &[&dist.join(word).to_string_lossy()])?;
    }
    Ok(dist)
}

/// Makes everything; a line for each thing that could not be made, and for the folder.
pub(crate) fn make(release: &Release) -> anyhow::Result<Vec<String>> {
    fs::create_dir_all(&release.out)?;
    let lacking = Maintainer::of(release)?.lacking(signed::key().as_deref())?;
    let mut lines = Vec::from_iter(lacking);
    let mut products = Vec::new();
    add_pages(release)?;
    let native = programs::Architecture::native();
    let notes = release.out.join(format!("tailbound-{}-changes.md", release.version));
    fs::write(&notes, notes::section(release)?)?;
    products.push(notes);
    for architecture in programs::Architecture::all() {
        if let Some(why) = architecture.missing(release) {
            lines.push(format!("not in it: {}: {why}", architecture.name));
            continue;
        }
        let linked = linked::Linked::of(release, &architecture)?;
        let about = tree::About {
            sbom: sbom::document(release, &architecture, &linked)?,
            licences: licences::text(release, &architecture, &linked)?,
        };
        let sbom = release
            .out
            .join(format!("tailbound-{}-{}.cdx.json", release.version, architecture.name));
        fs::write(&sbom, &about.sbom)?;
        products.push(sbom);
        products.push(tarball::make(release, &architecture, &about)?);
        if exec::exists("dpkg-deb") {
            for program in architecture.programs() {
                products.push(deb::make(release, &architecture, *program, &about)?);
            }
        } else {
            lines.push(format!(
                "no .deb of {}: there is no dpkg-deb (Debian package dpkg)",
                architecture.name
            ));
        }
        match rpm::missing() {
            None => {
                for program in architecture.programs() {
                    products.push(rpm::make(release, &architecture, *program, &about)?);
                }
            }
            Some(why) => lines.push(format!("no .rpm of {}: {why}", architecture.name)),
        }
        if architecture == native {
            match container::make(release, &architecture, &about) {
                Ok(image) => products.push(image),
                Err(e) => lines.push(format!("no container: {e:#}")),
            }
        }
    }
    match wheel::make(release) {
        Ok(wheel) => products.push(wheel),
        Err(e) => lines.push(format!("no wheel: {e:#}")),
    }
    fs::remove_dir_all(release.out.join(".making"))?;
    let sums = signed::sums(release, &products)?;
    lines.push(signed::sign(release, &sums)?);
    lines.push(format!("{}: {} files", release.out.display(), products.len()));
    Ok(lines)
}

/// Man pages and completions are made unless the folder of programs has them.
fn add_pages(release: &Release) -> anyhow::Result<()> {
    for (kind, word) in PAGES {
        let folder = release.programs.join(word);
        if !folder.is_dir() {
            pages::command(kind, &[&folder.to_string_lossy()])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_nobody_fills_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("packaging")).unwrap();
        fs::write(dir.path().join("packaging/x"), "a @VERSION@ b @SIZE@ c @farm\n").unwrap();
        let release = Release {
            project: dir.path().into(),
            programs: dir.path().into(),
            out: dir.path().into(),
            version: "1.2.3".into(),
            date_s: 0,
            effort: Effort::Trial,
        };
        assert_eq!(release.filled("x", &[("SIZE", "7")]).unwrap(), "a 1.2.3 b 7 c @farm\n");
        let refused = release.filled("x", &[]).unwrap_err().to_string();
        assert!(refused.contains("@SIZE@"), "{refused}");
    }
}
