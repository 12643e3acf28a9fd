// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks the machine's apt for packages, without touching the system's own state.
//!
//! The machine's sources, keys and proxies are used as they are. The system's
//! package lists serve where they exist and the architecture is the machine's; otherwise
//! lists of our own are fetched into a private folder, which an ordinary user can do too.
//! Hooks of the system (cleaning its cache after an update, for instance) are switched off.
//! apt verifies the chain from the archive's signature to the package.
//! Source: apt.conf(5), apt-get(8), apt-cache(8), apt-secure(8).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tailbound_core::order;

use serde::{Deserialize, Serialize};

use tailbound_sys::new_file::{self, Existing};

use super::tool::Tool;
use super::version;
use crate::arch::Arch;
use crate::error::{KernelError, LabError};

/// Whose lists of packages apt works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AptState {
    /// The machine's, which are not changed.
    System,
    /// Our own.
    Private,
}

/// apt with a state of its own, or reading the system's.
#[derive(Clone, Debug)]
pub(crate) struct Apt {
    config: PathBuf,
    state: AptState,
    /// What did not go well while lists were fetched: sources out of reach or out of step.
    pub(crate) complaints: Vec<String>,
}

/// A package of the archive, as its index describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) sha256: String,
    pub(crate) size: u64,
    pub(crate) depends: Vec<String>,
}

/// Keeps apt from doing anything but what is asked.
const QUIET: &str = "#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::DEP-11-icons-small;
#clear Acquire::IndexTargets::deb::DEP-11-icons;
#clear Acquire::IndexTargets::deb::DEP-11-icons-hidpi;
#clear Acquire::IndexTargets::deb::CNF;
Acquire::Languages \"none\";
Acquire::Retries \"1\";
Acquire::http::Timeout \"20\";
Acquire::https::Timeout \"20\";
APT::Get::Assume-Yes \"true\";
";

impl Apt {
    /// apt on the lists the system has; nothing is fetched but packages.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn of_system(folder: &Path) -> Result<Self, LabError> {
        let cache = folder.join("system-cache");
        Self::make(
            folder,
            "system.conf",
            &cache,
            AptState::System,
            &format!("{QUIET}{}", cache_words(&cache)),
        )
    }

    /// apt on lists of its own for `arch`: of the machine's sources, or of `suite` in the
    /// same archives.
    ///
    /// # Errors
    /// The folder cannot be written; for a suite, no archive of Debian is among the sources.
    pub(crate) fn private(
        folder: &Path,
        arch: Arch,
        suite: Option<&str>,
    ) -> Result<Self, LabError> {
        let at = suite.map(|s| format!("@{s}")).unwrap_or_default();
        let own = folder.join(format!("{}{at}", arch.debian()));
        let (state, cache) = (own.join("state"), own.join("cache"));
        let lists = state.join("lists/partial");
        fs::create_dir_all(&lists).map_err(|e| LabError::file(&lists, e))?;
        let status = state.join("status");
        if !status.exists() {
            new_file::write(&status, Existing::Replace, b"")
                .map_err(|e| LabError::file(&status, e))?;
        }
        let mut text = format!(
            "{QUIET}{}Dir::State \"{}\";\nDir::State::lists \"{}\";\nDir::State::status \"{}\";\n\
             APT::Architecture \"{arch}\";\n#clear APT::Architectures;\nAPT::Architectures {{ \"{arch}\"; }};\n",
            cache_words(&cache),
            state.display(),
            state.join("lists").display(),
            status.display(),
            arch = arch.debian(),
        );
        if let Some(suite) = suite {
            let sources = own.join("sources.list");
            let lines = Self::of_system(folder)?.sources_of(suite)?;
            new_file::write(&sources, Existing::Replace, lines.as_bytes())
                .map_err(|e| LabError::file(&sources, e))?;
            text.push_str(&format!(
                "Dir::Etc::SourceList \"{}\";\nDir::Etc::SourceParts \"/dev/null\";\n",
                sources.display()
            ));
        }
        Self::make(&own, "apt.conf", &cache, AptState::Private, &text)
    }

    /// When the lists were last fetched: the time of this file.
    pub(crate) fn stamp(&self) -> PathBuf {
        self.config.with_file_name("fetched")
    }

    /// Lines of a sources.list for `suite`, from the archives of Debian this machine uses.
    fn sources_of(&self, suite: &str) -> Result<String, LabError> {
        let format = "$(ORIGIN) $(REPO_URI) $(RELEASE)";
        let text = self
            .tool("apt-get")
            .args(["indextargets", "--format", format, "Created-By: Packages"])
            .succeed()?;
        let lines = suite_lines(&text, suite);
        if lines.is_empty() {
            return Err(KernelError::NoSources.into());
        }
        Ok(lines)
    }

    fn make(
        folder: &Path,
        name: &str,
        cache: &Path,
        state: AptState,
        text: &str,
    ) -> Result<Self, LabError> {
        let archives = cache.join("archives/partial");
        fs::create_dir_all(&archives).map_err(|e| LabError::file(&archives, e))?;
        let config = folder.join(name);
        new_file::write(&config, Existing::Replace, text.as_bytes())
            .map_err(|e| LabError::file(&config, e))?;
        Ok(Self { config, state, complaints: Vec::new() })
    }

    fn tool(&self, program: &str) -> Tool {
        Tool::new(program).arg("-c").arg(&self.config).arg("-q")
    }

    /// Fetches the lists anew (private state only). Sources that fail are remembered in
    /// `complaints`, and what the others say is used.
    ///
    /// # Errors
    /// There is no apt.
    pub(crate) fn update(&mut self) -> Result<(), LabError> {
        if self.state == AptState::System {
            return Ok(());
        }
        let output = self.tool("apt-get").arg("update").run()?;
        self.complaints = output
            .err
            .lines()
            .filter(|l| l.starts_with("E: Failed") || l.starts_with("E: The repo"))
            .map(|l| l.trim_start_matches("E: ").replace("  ", ": "))
            .collect();
        if !output.success && self.complaints.is_empty() {
            self.complaints.push(output.complaint());
        }
        Ok(())
    }

    /// All packages whose names match `pattern` (a regular expression) and their versions,
    /// the latest first.
    ///
    /// # Errors
    /// There is no apt, or it fails.
    pub(crate) fn versions(
        &self,
        pattern: &str,
    ) -> Result<BTreeMap<String, Vec<String>>, LabError> {
        let found = self.tool("apt-cache").args(["search", "--names-only", pattern]).succeed()?;
        let names: Vec<&str> = found.lines().filter_map(|l| l.split_whitespace().next()).collect();
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let text = self.tool("apt-cache").arg("madison").args(names).succeed()?;
        Ok(madison(&text))
    }

    /// One package in the index, or nothing.
    ///
    /// # Errors
    /// There is no apt.
    pub(crate) fn show(&self, package: &str, version: &str) -> Result<Option<Package>, LabError> {
        let output =
            self.tool("apt-cache").arg("show").arg(format!("{package}={version}")).run()?;
        Ok(stanzas(&output.out).into_iter().find(|p| p.name == package && p.version == version))
    }

    /// Downloads a package into `folder`; its path. apt checks it against the signed index.
    ///
    /// # Errors
    /// Out of reach, gone from the archive, or not what the index promises.
    pub(crate) fn download(&self, package: &Package, folder: &Path) -> Result<PathBuf, LabError> {
        let what = format!("{}={}", package.name, package.version);
        self.tool("apt-get").arg("download").arg(&what).within(folder).succeed()?;
        let entries = fs::read_dir(folder).map_err(|e| LabError::file(folder, e))?;
        entries
            .flatten()
            .map(|e| e.path())
            .find(|p| p.extension().is_some_and(|e| e == "deb"))
            .ok_or_else(|| KernelError::NotDownloaded { package: what }.into())
    }

    /// `package` and all that it depends on, where nothing is installed: names of files and sizes.
    ///
    /// # Errors
    /// There is no such package, or not all that it needs.
    pub(crate) fn closure(&self, package: &str) -> Result<Vec<Fetched>, LabError> {
        let words = ["install", "--no-install-recommends", "--print-uris", package];
        Ok(uris(&self.tool("apt-get").args(words).succeed()?))
    }

    /// Downloads `package` and all that it depends on into `folder`; their paths. apt checks them against the signed
    /// index.
    ///
    /// # Errors
    /// Out of reach, gone from the archive, or not what the index promises.
    pub(crate) fn download_closure(
        &self,
        package: &str,
        folder: &Path,
    ) -> Result<Vec<PathBuf>, LabError> {
        let archives = folder.join("archives");
        let partial = archives.join("partial");
        fs::create_dir_all(&partial).map_err(|e| LabError::file(&partial, e))?;
        let words = ["install", "--no-install-recommends", "--download-only", package];
        self.tool("apt-get")
            .arg("-o")
            .arg(format!("Dir::Cache::archives={}", archives.display()))
            .args(words)
            .succeed()?;
        let entries = fs::read_dir(&archives).map_err(|e| LabError::file(&archives, e))?;
        let paths = entries.flatten().map(|e| e.path());
        let mut debs: Vec<PathBuf> =
            paths.filter(|p| p.extension().is_some_and(|e| e == "deb")).collect();
        order::by(&mut debs, Ord::cmp);
        Ok(debs)
    }
}

/// A package that apt would fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) file: String,
    pub(crate) size: u64,
}

/// `'URI' file size hash`, a line for each package.
fn uris(text: &str) -> Vec<Fetched> {
    let mut all = Vec::new();
    for line in text.lines().filter(|l| l.starts_with('\'')) {
        let mut words = line.split_whitespace().skip(1);
        if let (Some(file), Some(Ok(size))) = (words.next(), words.next().map(str::parse)) {
            all.push(Fetched { file: file.to_owned(), size });
        }
    }
    all
}

fn cache_words(cache: &Path) -> String {
    format!(
        "Dir::Cache \"{0}\";\nDir::Cache::archives \"{0}/archives\";\n\
         Dir::Cache::pkgcache \"pkgcache.bin\";\nDir::Cache::srcpkgcache \"srcpkgcache.bin\";\n",
        cache.display()
    )
}

/// The archive's keys of all suites, where the package debian-archive-keyring puts them.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// `ORIGIN URI RELEASE` of the machine's sources, turned to another suite: what has security
/// updates keeps to those, and is left out for a suite that Debian has none for.
fn suite_lines(text: &str, suite: &str) -> String {
    let signed =
        if Path::new(KEYS).exists() { format!("[signed-by={KEYS}] ") } else { String::new() };
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some("Debian"), Some(uri), Some(release)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let of_security = release.ends_with("-security");
        if of_security && !has_security(suite) {
            continue;
        }
        let security = if of_security { "-security" } else { "" };
        let made = format!("deb {signed}{uri} {suite}{security} main\n");
        if !lines.contains(&made) {
            lines.push(made);
        }
    }
    lines.concat()
}

/// Has Debian an archive of security updates for it? Not for what is updated all the time.
/// Source: Debian's wiki, "SourcesList".
fn has_security(suite: &str) -> bool {
    !suite.ends_with("-backports") && !["sid", "unstable", "experimental"].contains(&suite)
}

/// `name | version | source`, the latest version first.
fn madison(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.split('|').map(str::trim);
        if let (Some(name), Some(version), Some(source)) =
            (fields.next(), fields.next(), fields.next())
            && source.ends_with("Packages")
        {
            let versions = all.entry(name.to_owned()).or_default();
            if !versions.iter().any(|v| v == version) {
                versions.push(version.to_owned());
            }
        }
    }
    for versions in all.values_mut() {
        order::by(versions, |a, b| version::compare(b, a));
    }
    all
}

/// Packages of `apt-cache show`: paragraphs of `Field: value`.
fn stanzas(text: &str) -> Vec<Package> {
    let mut all = Vec::new();
    for paragraph in text.split("\n\n") {
        let mut package = Package::default();
        for line in paragraph.lines() {
            let Some((field, value)) = line.split_once(": ") else { continue };
            match field {
                "Package" => package.name = value.to_owned(),
                "Version" => package.version = value.to_owned(),
                "SHA256" => package.sha256 = value.to_owned(),
                "Size" => package.size = value.parse().unwrap_or(0),
                "Depends" => package.depends = dependencies(value),
                _ => {}
            }
        }
        if !package.name.is_empty() && !package.sha256.is_empty() {
            all.push(package);
        }
    }
    all
}

/// Names only; of alternatives the first.
fn dependencies(value: &str) -> Vec<String> {
    value
        .split(',')
        .filter_map(|d| d.trim().split([' ', '|', ':', '(']).next())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_suite_comes_from_the_same_archives() {
        let text = "Debian http://archive.example/debian/ bookworm\n\
                    Debian http://archive.example/debian/ bookworm-updates\n\
                    Debian http://archive.example/security/ bookworm-security\n\
                    Other http://other.example/ stable\n http://bare.example/ x\n";
        let lines = suite_lines(text, "trixie");
        assert_eq!(lines.lines().count(), 2, "{lines}");
        assert!(lines.contains("http://archive.example/debian/ trixie main"), "{lines}");
        assert!(lines.contains("http://archive.example/security/ trixie-security main"), "{lines}");
        // apt would say of each that it has no Release file.
        for suite in ["trixie-backports", "sid"] {
            let lines = suite_lines(text, suite);
            assert_eq!(lines.lines().count(), 1, "{lines}");
        }
    }

    #[test]
    fn apts_answers_are_read() {
        let versions = madison(
            "linux-image-amd64 |  6.1.176-1 | http://archive.example/debian bookworm/main amd64 Packages\n\
             linux-image-amd64 |  6.1.192-2 | http://archive.example/security bookworm-security/main amd64 Packages\n\
             linux-6.12 | 6.12.117-1 | http://archive.example/security bookworm-security/main Sources\n",
        );
        assert_eq!(versions.get("linux-image-amd64").unwrap(), &["6.1.192-2", "6.1.176-1"]);
        assert_eq!(versions.len(), 1, "sources are not packages");
        let shown = stanzas(
            "Package: linux-image-armmp\nVersion: 6.1.176-1\nDepends: linux-image-6.1.0-50-armmp (= 6.1.176-1), kmod | x\n\
             Description: Linux\n for ARM: yes\nSize: 1400\nSHA256: ab\n\nPackage: half\n\n",
        );
        let [package] = shown.as_slice() else { panic!("{shown:?}") };
        assert_eq!(package.depends, ["linux-image-6.1.0-50-armmp", "kmod"]);
        assert_eq!((package.size, package.sha256.as_str()), (1400, "ab"));
        let fetched = uris(
            "Need to get 1 MB.\n'http://archive.example/a%2bb.deb' a+b_1%3a2_amd64.deb 1400 MD5Sum:00\n\
             'http://archive.example/c.deb' c_1_all.deb 20 SHA256:00\n",
        );
        let sizes: Vec<u64> = fetched.iter().map(|f| f.size).collect();
        assert_eq!(sizes, [1400, 20]);
        assert_eq!(fetched[0].file, "a+b_1%3a2_amd64.deb");
    }
}
