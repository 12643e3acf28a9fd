// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a package installs, as a folder with the modes and times that it will have.
//!
//! Units of systemd come from `docs/examples/ci`, where people find them too: a package's say `/usr/bin` where those
//! say `/usr/local/bin`, and nothing about copying them.
//! Source: the Filesystem Hierarchy Standard; systemd.unit(5), "Unit File Load Path".

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context as _;

use super::programs::{Architecture, Program};
use super::{Release, said};

/// What is said of the programs of an architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    pub(super) sbom: String,
    pub(super) licences: String,
}

/// Who installs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageFormat {
    Deb,
    Rpm,
}

/// The units of a package: file, and where it lies.
const UNITS: [(Program, &str, &str); 6] = [
    (Program::Tool, "tailbound-monitor.service", "docs/examples/ci"),
    (Program::Tool, "tailbound-agent.service", "docs/examples/ci"),
    (Program::Tool, "tailbound.service", "docs/examples/ci"),
    (Program::Tool, "tailbound.timer", "docs/examples/ci"),
    (Program::Tool, "tailbound-tune.service", "packaging/systemd"),
    (Program::Server, "tailbound-server.service", "docs/examples/ci"),
];

/// A folder of files to be packed.
#[derive(Debug)]
pub(super) struct PackageTree {
    pub(super) root: PathBuf,
}

impl PackageTree {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Writes a file that everybody may read.
    pub(super) fn put(&self, path: &str, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
        self.with_mode(path, bytes.as_ref(), 0o644)
    }

    /// Writes a file that everybody may start.
    pub(super) fn put_program(&self, path: &str, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
        self.with_mode(path, bytes.as_ref(), 0o755)
    }

    fn with_mode(&self, path: &str, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&self.root))?;
        fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        Ok(())
    }

    /// The same, packed with gzip.
    pub(super) fn put_packed(
        &self,
        release: &Release,
        path: &str,
        bytes: impl AsRef<[u8]>,
    ) -> anyhow::Result<()> {
        self.put(path, bytes)?;
        said(release.command("gzip").args(["-9n"]).arg(self.root.join(path))).map(drop)
    }

    /// Gives everything the release's date, and folders their mode.
    pub(super) fn seal(&self, release: &Release) -> anyhow::Result<()> {
        sealed(&self.root, release)
    }

    /// Paths of all files, from the root, in order.
    pub(super) fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push(path.strip_prefix(&self.root)?.to_owned());
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// Everything that the package of `program` installs.
    pub(super) fn fill(
        &self,
        release: &Release,
        (architecture, program): (&Architecture, Program),
        about: &About,
        format: PackageFormat,
    ) -> anyhow::Result<()> {
        let name = program.name();
        let built = architecture.path(release, program);
        let bytes = fs::read(&built).with_context(|| built.display().to_string())?;
        self.put_program(&format!("usr/bin/{name}"), bytes)?;
        for (_, unit, folder) in UNITS.iter().filter(|(of, ..)| *of == program) {
            let path = release.project.join(folder).join(unit);
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            self.put(&format!("usr/lib/systemd/system/{unit}"), installed(&text))?;
        }
        let doc = format!("usr/share/doc/{name}");
        self.put_packed(release, &format!("{doc}/THIRD-PARTY.txt"), &about.licences)?;
        self.put_packed(release, &format!("{doc}/sbom.cdx.json"), &about.sbom)?;
        match program {
            Program::Tool => self.pages(release, format)?,
            Program::Server => {
                // It is what `tailbound serve`, `store` and `fleet` start: their pages are those of the tool.
                let page = release.filled("server.1", &[])?;
                self.put_packed(release, "usr/share/man/man1/tailbound-server.1", page)?;
            }
        }
        Ok(())
    }

    /// Man pages, completions, the user of the units.
    fn pages(&self, release: &Release, format: PackageFormat) -> anyhow::Result<()> {
        for page in fs::read_dir(release.programs.join("man"))? {
            let page = page?.path();
            let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // `tailbound box help run` has the page of `tailbound box run`.
            if name.ends_with(".1") && !name.contains("-help") {
                self.put_packed(release, &format!("usr/share/man/man1/{name}"), fs::read(&page)?)?;
            }
        }
        let zsh = match format {
            PackageFormat::Deb => "usr/share/zsh/vendor-completions",
            PackageFormat::Rpm => "usr/share/zsh/site-functions",
        };
        for (from, to) in [
            ("tailbound.bash", "usr/share/bash-completion/completions/tailbound".to_owned()),
            ("_tailbound", format!("{zsh}/_tailbound")),
            ("tailbound.fish", "usr/share/fish/vendor_completions.d/tailbound.fish".to_owned()),
        ] {
            self.put(&to, fs::read(release.programs.join("completions").join(from))?)?;
        }
        let users = release.project.join("packaging/systemd/tailbound.sysusers");
        self.put("usr/lib/sysusers.d/tailbound.conf", fs::read(users)?)
    }
}

fn sealed(folder: &Path, release: &Release) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sealed(&path, release)?;
        } else {
            date(&path, release)?;
        }
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    date(folder, release)
}

fn date(path: &Path, release: &Release) -> anyhow::Result<()> {
    let time = UNIX_EPOCH + Duration::from_secs(release.date_s);
    let file = File::open(path).with_context(|| path.display().to_string())?;
    file.set_modified(time).with_context(|| path.display().to_string())
}

/// A unit as a package has it.
fn installed(unit: &str) -> String {
    let is_advice = |line: &&str| line.starts_with("# Copy it to /etc/systemd/system");
    let lines = unit.lines().filter(|line| !is_advice(line));
    lines.map(|line| line.replace("/usr/local/bin/", "/usr/bin/") + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packaged_unit_starts_the_packaged_program() {
        let unit = "# A.\n# Copy it to /etc/systemd/system, then: x\n[Service]\nExecStart=/usr/local/bin/tailbound run\n";
        assert_eq!(installed(unit), "# A.\n[Service]\nExecStart=/usr/bin/tailbound run\n");
    }

    #[test]
    fn every_unit_is_there_and_starts_a_program_of_its_package() {
        let project = crate::root::project().unwrap();
        for (program, unit, folder) in UNITS {
            let text = fs::read_to_string(project.join(folder).join(unit)).unwrap();
            let text = installed(&text);
            assert!(!text.contains("/usr/local"), "{unit}");
            let starts = text.lines().filter_map(|l| l.strip_prefix("ExecStart="));
            for start in starts {
                assert!(start.starts_with(&format!("/usr/bin/{} ", program.name())), "{unit}");
            }
        }
    }
}
