// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the kernel's description of its types in a process of its own.
//!
//! Context: SETUP. The description has some megabytes, of which a few numbers are wanted: read here it would be the most memory
//! that the monitor ever needs.
//! Not here: what is looked up (`layout`).

use serde::{Deserialize, Serialize};
use tailbound_host::Root;
use tailbound_trace::btf::Btf;

use crate::apart::apart;
use crate::layout::Kernel;

const FILE: &str = "/sys/kernel/btf/vmlinux";
/// Largest description of a kernel's types.
const BYTES_MAX: u64 = 64 << 20;

/// Why the kernel's types are not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum TypesError {
    /// There is no description.
    #[error("{FILE}: {reason}; needs a kernel with CONFIG_DEBUG_INFO_BTF")]
    Absent {
        /// Why.
        reason: String,
    },
    /// It lacks something, or is none.
    #[error("{FILE}: {reason}")]
    Unfit {
        /// What.
        reason: String,
    },
}

type KernelReply = Result<Kernel, TypesError>;

/// What the programs need to know of this kernel.
///
/// # Errors
/// There is no description, or it lacks something.
pub(crate) fn read(root: &Root) -> KernelReply {
    apart(|| here(root))
}

fn here(root: &Root) -> KernelReply {
    let bytes = root
        .bytes(FILE, BYTES_MAX)
        .map_err(|e| TypesError::Absent { reason: e.reason().to_owned() })?;
    let kernel = Btf::parse(&bytes).and_then(|btf| Kernel::of(&btf));
    kernel.map_err(|e| TypesError::Unfit { reason: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_a_description_is_said_so() {
        let empty = tempfile::tempdir().unwrap();
        let e = read(&Root::at(empty.path())).unwrap_err();
        assert!(e.to_string().contains("CONFIG_DEBUG_INFO_BTF"), "{e}");
    }
}
