// SPDX-License-Identifier: MIT OR Apache-2.0
//! Something that needs much memory for a short time, in a process of its own.
//!
//! Context: SETUP. What this process once had resident counts as its own for years. A process with several threads cannot be
//! forked, and does it itself.

use std::io::{Read as _, Write as _};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tailbound_sys::process;

/// Longest answer of the child.
const ANSWER_MAX: u64 = 1 << 20;

/// What `make` makes.
pub(crate) fn apart<T: Serialize + DeserializeOwned>(make: impl Fn() -> T) -> T {
    match in_a_child(&make) {
        Some(made) => made,
        None => make(),
    }
}

/// `None` when no process could be made, or it did not answer.
fn in_a_child<T: Serialize + DeserializeOwned>(make: &impl Fn() -> T) -> Option<T> {
    let (from, mut to) = std::io::pipe().ok()?;
    let child = process::fork_task(|| {
        let text = serde_json::to_string(&make()).unwrap_or_default();
        u8::from(to.write_all(text.as_bytes()).is_err())
    });
    // The end of what the child says is where nobody can say more.
    drop(to);
    let child = child.ok()?;
    let mut text = String::new();
    let read = from.take(ANSWER_MAX).read_to_string(&mut text);
    process::wait(child);
    read.ok()?;
    serde_json::from_str(&text).ok()
}
