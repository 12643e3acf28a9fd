// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a kernel build needs on this machine, checked before anything is unpacked.
//!
//! Source: Documentation/process/changes.rst.

use std::path::Path;

use tailbound_sys::program;

use crate::arch::Arch;
use crate::error::{BuildError, LabError};
use crate::kernel::tool::Tool;

/// Compiler and helpers for one architecture.
#[derive(Clone, Debug)]
pub(crate) struct Toolchain {
    /// CROSS_COMPILE.
    pub(crate) cross: &'static str,
    /// First line of `gcc --version`.
    pub(crate) compiler: String,
    /// Is ccache put before the compiler?
    pub(crate) ccache: bool,
}

impl Toolchain {
    /// Finds the compiler for `arch` and what else a build needs.
    ///
    /// # Errors
    /// Everything that is missing, at once, with the packages of Debian that have it.
    pub(crate) fn find(arch: Arch) -> Result<Self, LabError> {
        let (cross, package) = match arch {
            arch if arch == Arch::of_host() => ("", "gcc"),
            Arch::X86_64 => ("x86_64-linux-gnu-", "gcc-x86-64-linux-gnu"),
            Arch::Aarch64 => ("aarch64-linux-gnu-", "gcc-aarch64-linux-gnu"),
            Arch::Arm => ("arm-linux-gnueabihf-", "gcc-arm-linux-gnueabihf"),
        };
        let gcc = format!("{cross}gcc");
        let mut missing = Vec::new();
        for (name, package) in [
            (gcc.as_str(), package),
            ("gcc", "gcc"),
            ("make", "make"),
            ("flex", "flex"),
            ("bison", "bison"),
            ("bc", "bc"),
            // The kernel's makefiles call them, for its headers and a compressed image.
            ("tar", "tar"),
            ("xz", "xz-utils"),
        ] {
            if program::find(name).is_err() {
                missing.push(format!("{name} (package {package})"));
            }
        }
        // objtool, which x86 kernels build for themselves.
        if arch == Arch::X86_64
            && !["/usr/include", "/usr/local/include"]
                .iter()
                .any(|p| Path::new(p).join("gelf.h").exists())
        {
            missing.push("gelf.h (package libelf-dev)".to_owned());
        }
        missing.dedup();
        if !missing.is_empty() {
            return Err(BuildError::Toolchain { arch, missing }.into());
        }
        let version = Tool::new(&gcc).arg("--version").succeed()?;
        let compiler = version.lines().next().unwrap_or("unknown: gcc printed nothing").to_owned();
        Ok(Self { cross, compiler, ccache: program::find("ccache").is_ok() })
    }

    /// CC= for the kernel's makefile.
    pub(crate) fn cc(&self) -> String {
        self.with_ccache(&format!("{}gcc", self.cross))
    }

    /// HOSTCC=.
    pub(crate) fn host_cc(&self) -> String {
        self.with_ccache("gcc")
    }

    fn with_ccache(&self, compiler: &str) -> String {
        if self.ccache { format!("ccache {compiler}") } else { compiler.to_owned() }
    }
}
