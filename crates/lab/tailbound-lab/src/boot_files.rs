// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of the files in the folder of a boot: QEMU is given them without a path.

pub(crate) const KERNEL: &str = "kernel";
pub(crate) const INITRAMFS: &str = "initramfs";
pub(crate) const TREE: &str = "tree.dtb";
pub(crate) const JOB: &str = "job.json";
pub(crate) const CONSOLE: &str = "console";
pub(crate) const RESULTS: &str = "results";
pub(crate) const STATE: &str = "state";
pub(crate) const PLUGIN: &str = "plugin.so";
pub(crate) const PLAN: &str = "paths.plan";
pub(crate) const LOG: &str = "paths.log";
pub(crate) const VARY: &str = "paths.vary";
