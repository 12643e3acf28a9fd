// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds of the tool that need nothing on the machine they run on: static, for this
//! architecture, for ARM and for RISC-V.
//!
//! Musl where rustup has a standard library for it. The whole program has SQLite and Zstandard in it, whose C is
//! compiled by Debian's musl-gcc, in `tailbound-server`; the one for boards (feature `board`, no store and no farm) has that of the agent's HTTPS (ring),
//! which needs a C compiler for the board and no C library. What tests only start has no agent and no C.
//! Those for ARM and RISC-V are first processes too (feature `guest`): of the lab's guests, of boards.
//! 32-bit ARM and RISC-V are linked statically against glibc by Debian's cross compilers, because rustup
//! has no musl standard library for them that could be had reliably. They are linked by Rust's own lld: for ARM GNU ld 2.40 calls the C library's
//! own functions in the wrong instruction set as soon as a program has more than 16 MiB of code, and such a program ends at once.
//! Source: the rustc book, "linker flavours" and "static and dynamic C runtimes"; gcc(1) on COMPILER_PATH.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::{elf, exec, root, site};

/// One build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// As people ask for it.
    pub(crate) name: &'static str,
    triple: String,
    /// Environment of the build.
    env: Vec<(String, &'static str)>,
    /// Programs the build needs, and the Debian package of each.
    programs: Vec<(&'static str, &'static str)>,
    /// Where it is linked with glibc: the compiler that has the static one, and its Debian package.
    glibc: Option<(&'static str, &'static str)>,
    file: &'static str,
    contents: Contents,
    /// The C compiler for what is given to others.
    c_compiler: Option<CCompiler>,
}

/// What is built of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    /// `tailbound` and `tailbound-server`.
    Whole,
    /// `tailbound` alone.
    Machine,
    /// `tailbound` without laboratory; with these features, and for others with the agent.
    Board(&'static str),
}

/// What compiles the C of the agent's HTTPS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CCompiler {
    /// Variable of the build.
    variable: &'static str,
    program: &'static str,
    /// Debian packages of the program and of its C library's headers.
    packages: (&'static str, &'static str),
}

impl Target {
    /// This architecture.
    pub(crate) fn native() -> Self {
        Self {
            name: "static",
            triple: format!("{}-unknown-linux-musl", std::env::consts::ARCH),
            env: Vec::new(),
            programs: vec![("musl-gcc", "musl-tools")],
            glibc: None,
            file: "tailbound",
            contents: Contents::Whole,
            c_compiler: None,
        }
    }

    /// This architecture, without `tailbound-server`, whose database is a third of the work.
    pub(crate) fn machine() -> Self {
        Self { name: "machine", contents: Contents::Machine, ..Self::native() }
    }

    /// This architecture, what is copied to a board.
    pub(crate) fn board() -> Self {
        Self {
            name: "board",
            programs: Vec::new(),
            file: "tailbound-board",
            contents: Contents::Board(""),
            // Without relocations, which are a third of a megabyte, and memory that is changed at each start.
            env: vec![(
                format!(
                    "CARGO_TARGET_{}_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
                    std::env::consts::ARCH.to_uppercase()
                ),
                "-C relocation-model=static",
            )],
            // No C library is called, so that the one of this machine does.
            c_compiler: Some(CCompiler {
                variable: "TARGET_CC",
                program: "cc",
                packages: ("gcc", "libc6-dev"),
            }),
            ..Self::native()
        }
    }

    /// 64-bit ARM.
    pub(crate) fn arm64() -> Self {
        let flags = "-C linker=rust-lld -C link-self-contained=yes";
        Self {
            name: "arm64",
            triple: "aarch64-unknown-linux-musl".into(),
            env: vec![("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS".into(), flags)],
            programs: Vec::new(),
            glibc: None,
            file: "tailbound-aarch64",
            contents: Contents::Board("guest"),
            c_compiler: Some(CCompiler {
                variable: "TARGET_CC",
                program: "aarch64-linux-gnu-gcc",
                packages: ("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"),
            }),
        }
    }

    /// 32-bit ARM with hardware floating point (Cortex-A7, A8, A9, …).
    pub(crate) fn arm32() -> Self {
        Self::with_glibc(
            "arm32",
            "armv7-unknown-linux-gnueabihf",
            ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross"),
            "tailbound-armv7",
        )
    }

    /// 64-bit RISC-V with what Debian's has (RV64GC).
    pub(crate) fn riscv64() -> Self {
        Self::with_glibc(
            "riscv64",
            "riscv64gc-unknown-linux-gnu",
            ("riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu", "libc6-dev-riscv64-cross"),
            "tailbound-riscv64",
        )
    }

    /// For boards, linked by Debian's cross compiler and its C library.
    fn with_glibc(
        name: &'static str,
        triple: &str,
        (compiler, package, library): (&'static str, &'static str, &'static str),
        file: &'static str,
    ) -> Self {
        let of_target = |what| of_cargo(triple, what);
        let flags = "-C target-feature=+crt-static -C link-arg=-fuse-ld=lld";
        Self {
            name,
            triple: triple.to_owned(),
            env: vec![(of_target("LINKER"), compiler), (of_target("RUSTFLAGS"), flags)],
            programs: vec![(compiler, package)],
            glibc: Some((compiler, library)),
            file,
            contents: Contents::Board("guest"),
            c_compiler: None,
        }
    }

    fn all() -> [Self; 6] {
        let [arm64, arm32, riscv64] = [Self::arm64(), Self::arm32(), Self::riscv64()];
        [Self::native(), Self::machine(), Self::board(), arm64, arm32, riscv64]
    }

    /// What a release has.
    pub(crate) fn released() -> [Self; 4] {
        [Self::native(), Self::arm64(), Self::arm32(), Self::riscv64()]
    }

    pub(crate) fn triple(&self) -> &str {
        &self.triple
    }

    /// Its name in `dist/`.
    pub(crate) fn file(&self) -> &'static str {
        self.file
    }

    /// Has it the tool alone, without server and laboratory?
    pub(crate) fn is_for_boards(&self) -> bool {
        matches!(self.contents, Contents::Board(_))
    }

    /// Words for cargo that choose the features of what is given to others.
    pub(crate) fn features(&self) -> Vec<String> {
        self.chosen("board")
    }

    fn chosen(&self, more: &str) -> Vec<String> {
        let features = match self.contents {
            Contents::Whole => return Vec::new(),
            Contents::Machine => "machine".to_owned(),
            Contents::Board(features) => format!("{features} {more}").trim().to_owned(),
        };
        ["--no-default-features", "--features", &features].map(str::to_owned).into()
    }

    /// Where the finished program is put.
    pub(crate) fn product(&self, project: &Path) -> PathBuf {
        project.join("dist").join(self.file)
    }

    /// Why it cannot be built here, after trying to get what is missing.
    pub(crate) fn missing(&self) -> Option<String> {
        for (program, package) in &self.programs {
            if !exec::exists(program) {
                return Some(format!(
                    "no `{program}` (Debian package {package}); as root: make deps"
                ));
            }
        }
        let static_library = self.glibc.and_then(|(compiler, package)| {
            let said = exec::output(exec::command(compiler).arg("-print-file-name=libc.a")).ok()?;
            // Without a folder: it is in none.
            let is_there = String::from_utf8_lossy(&said.stdout).contains('/');
            (!is_there)
                .then(|| format!("{compiler} has no static C library (Debian package {package})"))
        });
        static_library.or_else(|| self.standard_library().err().map(|e| format!("{e:#}")))
    }

    /// Gets the standard library from rustup, unless it is there.
    fn standard_library(&self) -> anyhow::Result<()> {
        if libraries(Some(&self.triple))?.is_dir() {
            return Ok(());
        }
        let mut rustup = exec::command("rustup");
        rustup.args(["target", "add", &self.triple]);
        exec::succeed(&mut rustup).with_context(|| {
            format!("no standard library for {} and rustup could not get it", self.triple)
        })
    }

    /// Where [`Target::tried`] puts its program.
    pub(crate) fn trial(&self, project: &Path) -> PathBuf {
        root::target(project).join(&self.triple).join("quick/tailbound")
    }

    /// A program for tests, which only start it: static, and of the profile `quick`.
    pub(crate) fn tried(&self, project: &Path) -> anyhow::Result<PathBuf> {
        Ok(self.compiled(project, "quick", None)?.join("tailbound"))
    }

    fn compiled(
        &self,
        project: &Path,
        profile: &str,
        more: Option<&str>,
    ) -> anyhow::Result<PathBuf> {
        let mut cargo = self.cargo(project, "build")?;
        cargo.args(["--quiet", "--profile", profile, "-p", "tailbound"]);
        cargo.args(self.chosen(more.unwrap_or_default()));
        if profile != "quick" {
            // What tests start stays the same from one commit to the next.
            cargo.envs(commit(project).map(|commit| ("TAILBOUND_COMMIT", commit)));
            cargo.envs(site::address(project).map(|address| ("TAILBOUND_SITE", address)));
        }
        exec::succeed(&mut cargo)?;
        let folder = root::target(project).join(&self.triple).join(profile);
        for name in self.programs_built() {
            let built = folder.join(name);
            let bytes = std::fs::read(&built).with_context(|| built.display().to_string())?;
            if let Some(interpreter) = elf::interpreter(&bytes)? {
                anyhow::bail!("{} is not static: it asks for {interpreter}", built.display());
            }
        }
        Ok(folder)
    }

    /// A test program of a library, run by an emulator of this architecture.
    pub(crate) fn test(
        &self,
        project: &Path,
        (package, test): (&str, &str),
        emulator: &str,
    ) -> anyhow::Result<Command> {
        let mut cargo = self.cargo(project, "test")?;
        cargo.env(self.of_cargo("RUNNER"), emulator);
        cargo.args(["-p", package, "--test", test, "--", "--show-output"]);
        Ok(cargo)
    }

    /// A command of cargo for this architecture.
    fn cargo(&self, project: &Path, what: &str) -> anyhow::Result<Command> {
        let mut cargo = exec::cargo(project);
        cargo.args([what, "--target", &self.triple]);
        if self.is_for_boards() {
            cargo.envs(self.c_compiler.map(|c| (c.variable, c.program)));
        }
        // Where gcc finds Rust's `ld.lld`.
        cargo.env("COMPILER_PATH", libraries(None)?.join("../bin/gcc-ld"));
        cargo.envs(self.env.iter().map(|(k, v)| (k, v)));
        let (name, flags) = self.flags_of_anywhere(project);
        cargo.env(name, flags);
        Ok(cargo)
    }

    /// A variable of cargo's for this architecture.
    fn of_cargo(&self, what: &str) -> String {
        of_cargo(&self.triple, what)
    }

    /// Its compiler's flags, with which a program names no folder of this machine: built elsewhere from the same sources
    /// it has the same bytes. A folder with a space in its name cannot be said in them.
    fn flags_of_anywhere(&self, project: &Path) -> (String, String) {
        let name = self.of_cargo("RUSTFLAGS");
        let own = self.env.iter().find(|(k, _)| *k == name).map(|(_, flags)| (*flags).to_owned());
        let folders = folders_here(project);
        let remapped = folders
            .into_iter()
            .map(|(folder, to)| format!("--remap-path-prefix={}={to}", folder.display()));
        let flags = own.into_iter().chain(remapped.filter(|flag| !flag.contains(' ')));
        (name, flags.collect::<Vec<_>>().join(" "))
    }

    /// `tailbound`, and what goes with it.
    fn programs_built(&self) -> &'static [&'static str] {
        match self.contents {
            Contents::Whole => &["tailbound", "tailbound-server"],
            Contents::Machine | Contents::Board(_) => &["tailbound"],
        }
    }

    /// Builds what is given to others, checks that it is static, and copies it to its place.
    pub(crate) fn build(&self, project: &Path) -> anyhow::Result<PathBuf> {
        if let Some(compiler) = self.c_compiler {
            compiles_c(compiler)?;
        }
        let profile = if self.is_for_boards() { "board" } else { "dist" };
        let built = self.compiled(project, profile, Some("board"))?;
        std::fs::create_dir_all(project.join("dist"))?;
        for name in self.programs_built() {
            let product = if *name == "tailbound" {
                self.product(project)
            } else {
                self.product(project).with_file_name(name)
            };
            // Renamed into place, so that a copy that is running stays whole.
            let part = product.with_extension("part");
            std::fs::copy(built.join(name), &part).with_context(|| part.display().to_string())?;
            std::fs::rename(&part, &product)?;
        }
        Ok(self.product(project))
    }
}

/// Is it there, with a C library's headers? Debian's cross compilers only recommend them.
fn compiles_c(CCompiler { program, packages, .. }: CCompiler) -> anyhow::Result<()> {
    let why = "for the agent's HTTPS";
    ensure!(exec::exists(program), "no `{program}` {why} (Debian package {})", packages.0);
    let mut compiler = exec::command(program);
    compiler.args(["-fsyntax-only", "-include", "stdint.h", "-x", "c", "/dev/null"]);
    let has_headers = exec::output(&mut compiler)?.status.success();
    ensure!(has_headers, "`{program}` finds no stdint.h {why} (Debian package {})", packages.1);
    Ok(())
}

/// A variable of cargo's for an architecture.
fn of_cargo(triple: &str, what: &str) -> String {
    format!("CARGO_TARGET_{}_{what}", triple.to_uppercase().replace('-', "_"))
}

/// Folders of this machine that a compiler sees, and what a program calls them. Of two that fit the later is meant: the target folder may
/// lie in the project's.
fn folders_here(project: &Path) -> Vec<(PathBuf, &'static str)> {
    let home = std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cargo"));
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let home = home.map(|h| (h, "/cargo"));
    let own = [(project.to_owned(), "/tailbound"), (root::target(project), "/target")];
    home.into_iter().chain(own).collect()
}

/// Which of these folders a program names, if it names one.
pub(crate) fn named(project: &Path, program: &Path) -> anyhow::Result<Option<PathBuf>> {
    let bytes = std::fs::read(program).with_context(|| program.display().to_string())?;
    let is_in = |folder: &Path| {
        let name = folder.as_os_str().as_encoded_bytes();
        memmem(&bytes, &[name, b"/"].concat())
    };
    Ok(folders_here(project).into_iter().map(|(folder, _)| folder).find(|f| is_in(f)))
}

fn memmem(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|w| w == part)
}

/// The commit that is checked out, and whether something differs from it; none without git.
fn commit(project: &Path) -> Option<String> {
    let mut git = exec::command("git");
    git.current_dir(project).args([
        "describe",
        "--always",
        "--abbrev=12",
        "--exclude=*",
        "--dirty",
    ]);
    let said = exec::output(&mut git).ok().filter(|said| said.status.success())?;
    Some(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// Where the compiler has its libraries of an architecture, or of this machine's.
fn libraries(triple: Option<&str>) -> anyhow::Result<PathBuf> {
    let mut rustc = exec::command("rustc");
    rustc.args(triple.into_iter().flat_map(|t| ["--target", t]));
    let said = exec::output(rustc.args(["--print", "target-libdir"]))?;
    Ok(PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()))
}

/// `cargo xtask build [--trial] NAME...`: for others, or as the tests try them.
pub(crate) fn command(words: &[&str]) -> anyhow::Result<()> {
    let project = root::project()?;
    let (trial, names) = match words {
        ["--trial", names @ ..] => (true, names),
        names => (false, names),
    };
    for name in names {
        let known = Target::all().into_iter().find(|t| t.name == *name);
        let target = known.with_context(|| {
            format!("`{name}` is not static, machine, board, arm64, arm32 or riscv64")
        })?;
        if let Some(why) = target.missing() {
            anyhow::bail!("cannot build {name}: {why}");
        }
        println!("building {name} ({})", target.triple);
        let product = if trial { target.tried(&project)? } else { target.build(&project)? };
        let size = std::fs::metadata(&product)?.len();
        println!("{}: {} KiB, static", product.display(), size >> 10);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_to_others_names_no_folder_of_this_machine() {
        let (name, flags) = Target::arm32().flags_of_anywhere(Path::new("/home/a/tailbound"));
        assert_eq!(name, "CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUSTFLAGS");
        assert!(flags.starts_with("-C target-feature=+crt-static"), "{flags}");
        assert!(flags.contains("--remap-path-prefix=/home/a/tailbound=/tailbound"), "{flags}");
        let (_, spaced) = Target::native().flags_of_anywhere(Path::new("/home/a b/tailbound"));
        assert!(!spaced.contains("/home/a b"), "{spaced}");
    }

    #[test]
    fn a_c_compiler_that_is_missing_or_has_no_headers_is_told_by_its_package() {
        let compiler = |program| CCompiler { variable: "TARGET_CC", program, packages: ("a", "b") };
        let said = |program| compiles_c(compiler(program)).unwrap_err().to_string();
        assert!(said("no-such-compiler").ends_with("(Debian package a)"));
        assert!(said("false").contains("stdint.h") && said("false").contains("package b"));
        assert!(compiles_c(compiler("cc")).is_ok());
    }

    #[test]
    fn a_folder_of_this_machine_in_a_program_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (project, program) = (Path::new("/home/a/tailbound"), folder.path().join("program"));
        std::fs::write(&program, b"\x7fELF/tailbound/src/x.rs\0/home/a/tailboundary/x").unwrap();
        assert_eq!(named(project, &program).unwrap(), None);
        std::fs::write(&program, b"\x7fELF\0/home/a/tailbound/src/x.rs\0").unwrap();
        assert_eq!(named(project, &program).unwrap().as_deref(), Some(project));
    }
}
