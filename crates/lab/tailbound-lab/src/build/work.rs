// SPDX-License-Identifier: MIT OR Apache-2.0
//! A build from its request to a kernel in the store.
//!
//! Order: what is missing on this machine is said before anything is fetched,
//! what is wrong with the configuration before anything is compiled.

use std::path::PathBuf;

use super::configure::configure;
use super::fragment::Wanted;
use super::make::{Compiling, Make};
use super::product::{self, BuildManifest};
use super::request::Request;
use super::source::{self, SourceRecord};
use super::toolchain::Toolchain;
use crate::error::LabError;
use crate::hash;
use crate::kernel::Config;
use crate::store::Store;

/// Where a request is worked on.
pub struct Workshop<'a> {
    /// What is asked for.
    pub request: &'a Request,
    /// Where the result and everything on the way to it go.
    pub store: &'a Store,
    /// Gets a line whenever something takes time or is worth knowing.
    pub note: &'a mut dyn FnMut(&str),
    /// Every 2 s while it compiles.
    pub progress: &'a mut dyn FnMut(&Compiling),
    /// Asked some times a second; when it says yes, the work ends.
    pub stop: &'a dyn Fn() -> bool,
}

impl Workshop<'_> {
    /// The build's own folder: patched source, output, logs.
    pub(crate) fn folder(&self) -> Result<PathBuf, LabError> {
        self.store.room(&format!("work/{}", self.request.name))
    }

    /// Checks words and machine, and makes the source ready.
    pub(crate) fn begin(&mut self) -> Result<(Make, Wanted), LabError> {
        self.begin_recorded().map(|(make, wanted, _)| (make, wanted))
    }

    fn begin_recorded(&mut self) -> Result<(Make, Wanted, SourceRecord), LabError> {
        let request = self.request;
        let mut wanted = match request.config {
            Some(_) => Wanted::default(),
            None => Wanted::guest(request.arch),
        };
        for fragment in &request.fragments {
            wanted.add_named(fragment)?;
        }
        let toolchain = Toolchain::find(request.arch)?;
        let work = self.folder()?;
        let prepared = source::prepare(request, self.store, &work, self.note)?;
        if (self.stop)() {
            return Err(LabError::Interrupted);
        }
        let make = Make {
            source: prepared.root,
            out: work.join("out"),
            arch: request.arch,
            toolchain,
            base: self.store.folder().to_owned(),
        };
        Ok((make, wanted, prepared.record))
    }

    /// Makes the source and configuration ready, and checks them; how many options are on.
    ///
    /// # Errors
    /// As [`Self::build`], but for what compiling can bring.
    pub fn check(&mut self) -> Result<usize, LabError> {
        let _lock = self.store.lock(&format!("work/{}", self.request.name), self.note)?;
        let (make, wanted, _) = self.begin_recorded()?;
        Ok(on(&self.configured(&make, &wanted)?))
    }

    fn configured(&mut self, make: &Make, wanted: &Wanted) -> Result<Config, LabError> {
        (self.note)("configuring");
        configure(make, wanted, self.request.config.as_deref(), self.note)
    }

    /// Configures, compiles and keeps the kernel.
    ///
    /// # Errors
    /// Usage: wrong words, patches that do not apply, options that are not granted. Cannot: a
    /// compiler is missing or fails. Interrupted.
    pub fn build(&mut self) -> Result<BuildManifest, LabError> {
        let _lock = self.store.lock(&format!("work/{}", self.request.name), self.note)?;
        let (make, wanted, source) = self.begin_recorded()?;
        let request = self.request;
        let config = self.configured(&make, &wanted)?;
        let modules = config.is_builtin("CONFIG_MODULES");
        let (_, target) = product::image_of(request.arch);
        let mut targets = vec![target];
        if modules {
            targets.push("modules");
        }
        if request.arch == crate::Arch::Arm {
            targets.push("dtbs");
        }
        (self.note)(&format!(
            "compiling with {}{}, {} options on",
            make.toolchain.compiler,
            if make.toolchain.ccache { ", through ccache" } else { "" },
            on(&config)
        ));
        let log = self.folder()?.join("build.log");
        let built = make.build(&targets, request.jobs, &log, self.progress, self.stop)?;
        let manifest = BuildManifest {
            name: request.name.to_string(),
            arch: request.arch.to_string(),
            release: String::new(),
            image: String::new(),
            image_sha256: String::new(),
            config_sha256: String::new(),
            source,
            fragments: request.fragments.clone(),
            base_config_sha256: request.config.as_deref().map(hash::of_file).transpose()?,
            compiler: make.toolchain.compiler.clone(),
            ccache: make.toolchain.ccache,
            seconds: built.seconds,
            cpu_seconds: built.cpu_seconds,
            objects: built.objects,
        };
        let _lock = self.store.lock("builds", self.note)?;
        product::keep(self.store, &make, manifest, &config)
    }
}

/// Options that are on.
fn on(config: &Config) -> usize {
    config.iter().filter(|(_, v)| matches!(*v, "y" | "m")).count()
}
