// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `--version` says: the version, the commit, the target and the features of this program.

use std::sync::OnceLock;

/// Said at compile time by who builds a release (`cargo xtask build`).
const COMMIT: Option<&str> = option_env!("TAILBOUND_COMMIT");

/// The features that decide what the program can do, and whether they are in it.
const FEATURES: [(&str, bool); 5] = [
    ("agent", cfg!(feature = "agent")),
    ("board", cfg!(feature = "board")),
    ("guest", cfg!(feature = "guest")),
    ("lab", cfg!(feature = "lab")),
    ("server", cfg!(feature = "server")),
];

/// For `--version`; its first line is that of `-V`.
pub(crate) fn long() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let features: Vec<&str> =
            FEATURES.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
        format!(
            "{}\ncommit: {}\ntarget: {}\nfeatures: {}",
            env!("CARGO_PKG_VERSION"),
            COMMIT.unwrap_or("unknown: compiled without TAILBOUND_COMMIT"),
            target(),
            features.join(", ")
        )
    })
}

/// `x86_64-linux-musl, static`
fn target() -> String {
    use std::env::consts::{ARCH, OS};
    let library = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let linking = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    format!("{ARCH}-{OS}-{library}, {linking}")
}
