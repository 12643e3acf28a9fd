// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the kernel's description of its types in a process of its own.
//!
//! Context: SETUP. The description has some megabytes, of which a few numbers are wanted: read here it would be the most memory
//! that the monitor ever needs. A process with several threads cannot be forked, and reads it itself.
//! Not here: what is looked up (`layout`).

use std::io::{Read as _, Write as _};

use tailbound_host::Root;
use tailbound_sys::process;
use tailbound_trace::btf::Btf;

use crate::layout::Kernel;

const FILE: &str = "/sys/kernel/btf/vmlinux";
/// Largest description of a kernel's types.
const BYTES_MAX: u64 = 64 << 20;
/// Longest answer of the child.
const ANSWER_MAX: u64 = 4096;

type Answer = Result<Kernel, String>;

/// What the programs need to know of this kernel.
///
/// # Errors
/// In words: there is no description, or it lacks something.
pub(crate) fn read(root: &Root) -> Answer {
    match apart(root) {
        Some(answer) => answer,
        None => here(root),
    }
}

fn here(root: &Root) -> Answer {
    let bytes = root.bytes(FILE, BYTES_MAX).map_err(|e| {
        format!("{FILE}: {}; needs a kernel with CONFIG_DEBUG_INFO_BTF", e.reason())
    })?;
    let kernel = Btf::parse(&bytes).and_then(|btf| Kernel::of(&btf));
    kernel.map_err(|e| format!("{FILE}: {e}"))
}

/// `None` when no process could be made, or it did not answer.
fn apart(root: &Root) -> Option<Answer> {
    let (from, mut to) = std::io::pipe().ok()?;
    let child = process::fork_task(|| {
        let text = serde_json::to_string(&here(root)).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_a_description_is_said_so() {
        let empty = tempfile::tempdir().unwrap();
        let e = read(&Root::at(empty.path())).unwrap_err();
        assert!(e.contains("CONFIG_DEBUG_INFO_BTF"), "{e}");
    }
}
