// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the shared library its name: programs linked against one version refuse another
//! whose interface differs. Before 1.0 that is every minor version.

fn main() {
    let part = |name: &str| std::env::var(format!("CARGO_PKG_VERSION_{name}")).unwrap_or_default();
    let (major, minor) = (part("MAJOR"), part("MINOR"));
    let abi = if major == "0" { format!("{major}.{minor}") } else { major };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtailbound.so.{abi}");
    println!("cargo:rerun-if-changed=build.rs");
}
