// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the plugin for QEMU, once for each version of QEMU's interface, to be embedded.
//!
//! The compiler is the one that compiles this crate, and no C compiler or header is needed. The plugin is for x86-64,
//! where QEMU's machine code is known; for any other machine it is empty, and the program says so.

use std::path::{Path, PathBuf};
use std::process::Command;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn compile(version: u8, out: &Path) {
    let (host, target) = (variable("HOST"), variable("TARGET"));
    let arch = |triple: &str| triple.split('-').next().unwrap_or_default().to_owned();
    if variable("CARGO_CFG_TARGET_OS") != "linux" || arch(&target) != "x86_64" {
        std::fs::write(out, []).unwrap_or_else(|e| panic!("{}: {e}", out.display()));
        return;
    }
    #[expect(clippy::disallowed_methods, reason = "the compiler, while this is built")]
    let mut command = Command::new(variable("RUSTC"));
    command.args(["plugin/main.rs", "--edition=2024", "--crate-type=cdylib"]);
    command.args(["--crate-name=tailbound_paths_plugin", "--cap-lints=allow"]);
    command.args(["--cfg".to_owned(), format!("tailbound_version_{version}")]);
    for option in ["opt-level=3", "panic=abort", "lto=fat", "strip=symbols"] {
        command.args(["-C", option]);
    }
    // A static program's target makes no shared libraries: the host's own does, and uses no library either.
    if arch(&host) != arch(&target) {
        command.args(["--target", &target, "-C", "target-feature=-crt-static"]);
    }
    for word in ["-nostdlib", "-nostartfiles"] {
        command.args(["-C", &format!("link-arg={word}")]);
    }
    command.arg("-o").arg(out);
    // Flags of the program are not the plugin's.
    command.env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("RUSTFLAGS");
    let done = command.status().unwrap_or_else(|e| panic!("rustc: {e}"));
    assert!(done.success(), "the plugin for QEMU cannot be compiled");
}

fn main() {
    let folder = PathBuf::from(variable("OUT_DIR"));
    for version in [1, 2] {
        compile(version, &folder.join(format!("plugin-{version}.so")));
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=plugin");
    println!("cargo:rerun-if-changed=src/record.rs");
    println!("cargo:rerun-if-changed=src/variation.rs");
}
