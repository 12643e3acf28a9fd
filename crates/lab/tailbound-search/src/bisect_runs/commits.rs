// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants that have to be built: commits of a tree, options of a configuration.
//!
//! The control of a build is the same source built again with other words in it: it moves code about
//! and changes nothing. A command of the user's cannot be told so: its control is an option of the command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tailbound_lab::build::{self, Commit, Commits, Compiling, Workshop, script};
use tailbound_lab::keep::write_text;
use tailbound_lab::kernel::Config;
use tailbound_lab::{Arch, Bench, BuildName, Kernel, LabError, Request, Store};

use super::variants::{self, CONTROL, Unmade, Variants};
use crate::bisect::{Arm, Difference};
use crate::error::SearchError;

/// Puts another word into the release of a kernel, and with it into its code.
pub(super) const CONTROL_FRAGMENT: &str = "CONFIG_LOCALVERSION=\"-control\"\n";

/// How a kernel is built.
pub(super) enum How {
    /// As `lab kernel build` does.
    Kernel {
        /// A whole configuration, in place of the small guest's.
        config: Option<PathBuf>,
        fragments: Vec<String>,
    },
    /// By a command, see `BisectCommitsArgs::build`.
    Command(String),
}

/// Where it is built, and by what.
pub(super) struct Builder<'a> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) store: Store,
    pub(super) arch: Arch,
    pub(super) jobs: u32,
    /// The build's name in the store: one for a search, so that a next step compiles only what changed.
    pub(super) name: BuildName,
}

/// What fails for one variant alone, and what for all of them.
fn unmade(e: LabError) -> Unmade {
    if e.is_of_kernel() { Unmade::Unfit(e.to_string()) } else { Unmade::Failed(e.into()) }
}

impl Builder<'_> {
    fn is_stopped(&self) -> bool {
        self.bench.hear();
        self.bench.stopped()
    }

    /// Builds a source, and copies the image to where the next build does not replace it.
    pub(super) fn kernel(
        &self,
        source: &Path,
        config: Option<&Path>,
        fragments: &[String],
        keep: &Path,
    ) -> Result<Kernel, Unmade> {
        let request = build::Request {
            name: self.name.clone(),
            arch: self.arch,
            source: build::Source::Path(source.to_owned()),
            patches: Vec::new(),
            rebase_onto: None,
            fragments: fragments.to_vec(),
            config: config.map(Path::to_owned),
            jobs: self.jobs,
        };
        let mut last = std::time::Instant::now();
        let mut workshop = Workshop {
            request: &request,
            store: &self.store,
            note: &mut |text| self.bench.note(text),
            progress: &mut |at: &Compiling<'_>| {
                if last.elapsed().as_secs() >= 10 {
                    last = std::time::Instant::now();
                    self.bench.note(&format!(
                        "{:>5} s {:>6} objects  {}",
                        at.seconds, at.objects, at.file
                    ));
                }
            },
            stop: &|| self.is_stopped(),
        };
        workshop.build().map_err(unmade)?;
        let kernel = build::kernel(&self.name, self.arch, &self.store).map_err(unmade)?;
        let copy = |from: &Path, to: &Path| {
            tailbound_sys::new_file::copy(from, to).map_err(|e| {
                Unmade::Failed(SearchError::File { path: to.to_owned(), why: e.to_string() })
            })
        };
        copy(&kernel.image, keep)?;
        Ok(kernel)
    }

    /// Runs a command of the user's.
    fn command(
        &self,
        line: &str,
        tree: &Path,
        commit: &str,
        image: &Path,
        log: &Path,
    ) -> Result<(), Unmade> {
        let text = |path: &Path| path.display().to_string();
        let (tree_text, image_text) = (text(tree), text(image));
        let values =
            [("tree", tree_text.as_str()), ("commit", commit), ("image", image_text.as_str())];
        let line = script::filled(line, &values).map_err(unmade)?;
        script::run(&line, tree, log, &|| self.is_stopped()).map_err(unmade)?;
        if image.is_file() {
            return Ok(());
        }
        Err(Unmade::Unfit(format!("the build left no image at {}", image.display())))
    }
}

/// Commits of a tree, the good one first.
pub(super) struct History<'a> {
    pub(super) base: Request,
    pub(super) builder: Builder<'a>,
    pub(super) commits: Commits,
    pub(super) all: Vec<Commit>,
    pub(super) how: How,
    /// Where images go.
    pub(super) folder: PathBuf,
}

impl History<'_> {
    fn image(&self, at: usize, arm: Arm) -> PathBuf {
        let id = self.all.get(at).map_or("", |c| c.id.as_str());
        let control = if arm.is_control() { "-control" } else { "" };
        self.folder.join(format!("image-{}{control}", id.get(..12).unwrap_or(id)))
    }

    /// The arm that the image of `arm` is built for.
    fn built(&self, arm: Arm) -> Arm {
        if self.is_rebuilt() { arm } else { Arm::Itself }
    }

    /// Does the control need a build of its own?
    fn is_rebuilt(&self) -> bool {
        matches!(self.how, How::Kernel { .. })
    }
}

impl Variants<usize> for History<'_> {
    fn key(&self, at: &usize, arm: Arm) -> String {
        let id = self.all.get(*at).map_or("", |c| c.id.as_str());
        if arm.is_control() { format!("{id} control") } else { id.to_owned() }
    }

    fn title(&self, at: &usize, arm: Arm) -> String {
        let title = self.all.get(*at).map(Commit::title).unwrap_or_default();
        match (arm.is_control(), self.is_rebuilt()) {
            (false, _) => title,
            (true, true) => format!("{title}, built with another name"),
            (true, false) => format!("{title}, and {CONTROL}"),
        }
    }

    fn is_made(&self, at: &usize, arm: Arm) -> bool {
        self.image(*at, self.built(arm)).is_file()
    }

    fn request(&mut self, at: &usize, arm: Arm) -> Result<Request, Unmade> {
        let commit = self.all.get(*at).cloned().ok_or(LabError::Bug)?;
        let image = self.image(*at, self.built(arm));
        let mut request = self.base.clone();
        if !image.is_file() {
            self.builder.bench.note(&format!("building {}", commit.title()));
            let tree = self.commits.place(&commit.id, &self.folder).map_err(unmade)?;
            match &self.how {
                How::Command(line) => {
                    let log = self.folder.join("build.log");
                    self.builder.command(line, &tree, &commit.id, &image, &log)?;
                }
                How::Kernel { config, fragments } => {
                    let mut fragments = fragments.clone();
                    if arm.is_control() {
                        fragments.push(control_fragment(&self.folder)?);
                    }
                    self.builder.kernel(&tree, config.as_deref(), &fragments, &image)?;
                }
            }
        }
        request.kernels = vec![format!("path:{}", image.display())];
        if arm.is_control() && !self.is_rebuilt() {
            variants::append(&mut request, &[CONTROL.to_owned()]);
        }
        Ok(request)
    }
}

/// Options of a configuration.
pub(super) struct Options<'a> {
    pub(super) base: Request,
    pub(super) builder: Builder<'a>,
    pub(super) source: PathBuf,
    /// The good configuration.
    pub(super) good: Config,
    pub(super) differences: Vec<(String, Difference)>,
    pub(super) folder: PathBuf,
    /// What Kconfig made otherwise in the last build.
    pub(super) changed_back: Option<String>,
}

impl Options<'_> {
    /// The options that these changes set, by name.
    fn set(&self, at: &[usize]) -> BTreeMap<String, String> {
        let mut options: BTreeMap<String, String> =
            self.good.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        for (name, difference) in at.iter().filter_map(|i| self.differences.get(*i)) {
            let value = difference.bad.as_deref().and_then(|b| b.split_once('=')).map(|(_, v)| v);
            match value {
                None | Some("n") => options.remove(name),
                Some(value) => options.insert(name.clone(), value.to_owned()),
            };
        }
        options
    }

    /// Those of the differing options that a kernel does not have as they were wanted.
    fn refused(&self, wanted: &BTreeMap<String, String>, kernel: &Kernel) -> Option<String> {
        let got = Config::read(kernel.config.as_deref()?).ok()?;
        let other: Vec<String> = self
            .differences
            .iter()
            .filter(|(name, _)| wanted.get(name).map(String::as_str) != got.option(name))
            .map(|(name, _)| {
                let want = wanted.get(name).map_or("n", String::as_str);
                format!("{name}={want} became {}", got.option(name).unwrap_or("n"))
            })
            .collect();
        (!other.is_empty())
            .then(|| format!("Kconfig changed {} back: {}", other.len(), other.join(", ")))
    }
}

impl Variants<Vec<usize>> for Options<'_> {
    fn key(&self, at: &Vec<usize>, arm: Arm) -> String {
        let names: Vec<&str> =
            at.iter().filter_map(|i| self.differences.get(*i)).map(|(n, _)| n.as_str()).collect();
        let control = if arm.is_control() { " control" } else { "" };
        format!("bad: {}{control}", names.join(" "))
    }

    fn title(&self, at: &Vec<usize>, arm: Arm) -> String {
        let names: Vec<String> = at.iter().map(|i| self.name(*i)).collect();
        let title = variants::several(&names, self.differences.len());
        if arm.is_control() { format!("{title}, built with another name") } else { title }
    }

    fn is_made(&self, at: &Vec<usize>, arm: Arm) -> bool {
        self.image(at, arm).is_file()
    }

    fn request(&mut self, at: &Vec<usize>, arm: Arm) -> Result<Request, Unmade> {
        let image = self.image(at, arm);
        self.changed_back = None;
        if !image.is_file() {
            self.builder.bench.note(&format!("building {}", self.title(at, arm)));
            let wanted = self.set(at);
            let text: String = wanted.iter().map(|(n, v)| format!("CONFIG_{n}={v}\n")).collect();
            let config = self.folder.join("step.config");
            write_text(&config, &text)?;
            let mut fragments = Vec::new();
            if arm.is_control() {
                fragments.push(control_fragment(&self.folder)?);
            }
            let kernel = self.builder.kernel(&self.source, Some(&config), &fragments, &image)?;
            self.changed_back = self.refused(&wanted, &kernel);
        }
        let mut request = self.base.clone();
        request.kernels = vec![format!("path:{}", image.display())];
        Ok(request)
    }

    fn note(&mut self) -> Option<String> {
        self.changed_back.take()
    }
}

impl Options<'_> {
    /// Where the image of a set goes.
    fn image(&self, at: &Vec<usize>, arm: Arm) -> PathBuf {
        let hash = tailbound_lab::hash::of_bytes(self.key(at, arm).as_bytes());
        self.folder.join(format!("image-{}", hash.get(..12).unwrap_or(&hash)))
    }

    /// The name of a change.
    pub(super) fn name(&self, at: usize) -> String {
        self.differences.get(at).map(|(_, d)| d.title()).unwrap_or_default()
    }
}

/// The file of the control's option.
pub(super) fn control_fragment(folder: &Path) -> Result<String, SearchError> {
    let path = folder.join("control.config");
    write_text(&path, CONTROL_FRAGMENT)?;
    Ok(path.display().to_string())
}
