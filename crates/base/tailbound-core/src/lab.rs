// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lab and its guest say to each other, and what a run file keeps of it.
//!
//! Units: MiB, s of virtual time. [`Job`] travels from the host into the
//! guest; [`LabRecord`] stands in the header of every run made in the lab and holds all
//! that a repetition needs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Impact};

/// Fields that this version does not know, by name.
pub type Later = BTreeMap<String, serde_json::Value>;

/// A program that measures in the place of our own loop, and how its answer is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tester {
    /// Program and arguments, as the guest runs them.
    pub command: Vec<String>,
    /// Format of its standard output, a name of `tailbound import`; none: found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// File the tester writes its answer to; none: standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Fields of a later version, kept as they stand: [`LabRecord::unknown_fields`].
    #[serde(flatten)]
    pub later: Later,
}

/// Settings that the guest applies before anything is measured, and undoes after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneJob {
    /// What people call it.
    pub name: String,
    /// The profile, as TOML.
    pub profile: String,
    /// CPUs for real-time work, as a list; none where it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rt_cpus: String,
    /// Fields of a later version, kept as they stand: [`LabRecord::unknown_fields`].
    #[serde(flatten)]
    pub later: Later,
}

impl TuneJob {
    /// What people call it, with the CPUs it is for.
    #[must_use]
    pub fn called(&self) -> String {
        match self.rt_cpus.as_str() {
            "" => self.name.clone(),
            cpus => format!("{} for CPUs {cpus}", self.name),
        }
    }

    /// That it was applied before a measurement: how many changes were `made`, how many the kernel
    /// refused, and what was `missing` on that machine, with the reason.
    #[must_use]
    pub fn applied(&self, made: usize, passed_over: usize, missing: &[String]) -> Finding {
        let title = format!(
            "the profile {} was applied before the measurement ({made} changes, {passed_over} passed over)",
            self.called()
        );
        let finding = Finding::new("tuned", Impact::Notice, title);
        if missing.is_empty() {
            return finding;
        }
        finding.meaning(format!("Not possible there: {}.", missing.join("; ")))
    }
}

/// What the guest is to do after boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The campaign (TOML), with its loads.
    pub campaign: String,
    /// Arguments for `tailbound run` that no campaign has a word for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Another program measures; the campaign's loads run beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tester: Option<Tester>,
    /// Files written before anything else, in order: path and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(String, String)>,
    /// Settings applied before the measurement, and undone after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tune: Option<TuneJob>,
    /// Files of the guest that are sent, in place of a measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<String>,
    /// What the guest sleeps before it begins, ns: so a run meets the kernel's own periods elsewhere.
    /// It follows from the seed; 0 with seed 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub begin_after_ns: u64,
    /// How long all CPUs count at once before anything else, to see which share of virtual time each has; 0: not at all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count_ns: u64,
    /// Virtual seconds until the guest gives up by itself.
    pub limit_s: u64,
    /// Fields of a later version, kept as they stand: [`LabRecord::unknown_fields`].
    #[serde(flatten)]
    pub later: Later,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Job {
    /// Names of the fields that this version does not know. A job that has one can be shown,
    /// but not done: it would be another one.
    #[must_use]
    pub fn unknown_fields(&self) -> Vec<String> {
        let of_tester = self.tester.iter().flat_map(|t| t.later.keys());
        let of_tester = of_tester.map(|name| format!("tester.{name}"));
        let of_tune = self.tune.iter().flat_map(|t| t.later.keys());
        let of_tune = of_tune.map(|name| format!("tune.{name}"));
        self.later.keys().cloned().chain(of_tester).chain(of_tune).collect()
    }
}

/// The kernel of a lab run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRecord {
    /// As it was asked for: `debian:6.12-rt`, `path:…`, `build:…`.
    pub name: String,
    /// Package and version it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// SHA-256 of the image.
    pub sha256: String,
    /// Fields of a later version, kept as they stand: [`LabRecord::unknown_fields`].
    #[serde(flatten)]
    pub later: Later,
}

/// What one CPU counted while all counted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCount {
    /// Its number.
    pub cpu: u32,
    /// How often its loop went round.
    pub counted: u64,
}

/// Everything a lab run is a function of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabRecord {
    /// x86_64, aarch64 or arm.
    pub arch: String,
    /// QEMU's machine model.
    pub machine: String,
    /// QEMU's CPU model.
    pub cpu: String,
    /// CPUs of the guest.
    pub smp: u32,
    /// Memory of the guest.
    pub memory_mib: u32,
    /// One instruction is 2^shift ns.
    pub shift: u8,
    /// Virtual time between two ends of slices of the CPUs once the guest has its job; 0: slices end where QEMU's next timer is due.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slice_ns: u64,
    /// Seed of everything random in the guest.
    pub seed: u32,
    /// `tcg`: virtual time; `kvm`: the host's time, noisy.
    pub accelerator: String,
    /// `qemu --version`, its first line.
    pub qemu: String,
    /// The kernel.
    pub kernel: KernelRecord,
    /// What was added to the kernel's command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub append: String,
    /// The whole kernel command line.
    pub command_line: String,
    /// SHA-256 of the initramfs.
    pub initramfs_sha256: String,
    /// Files in the initramfs that are neither ours nor the kernel's: path in the guest and SHA-256.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// SHA-256 of the tailbound in the guest.
    pub guest_sha256: String,
    /// What the guest did.
    pub job: Job,
    /// Fields of a later version, kept as they stand: [`LabRecord::unknown_fields`].
    #[serde(flatten)]
    pub later: Later,
}

impl LabRecord {
    /// Names of the fields that this version does not know. A run that has one can be shown,
    /// but not repeated: nobody here knows what else it was a function of.
    #[must_use]
    pub fn unknown_fields(&self) -> Vec<String> {
        let of_kernel = self.kernel.later.keys().map(|name| format!("kernel.{name}"));
        let of_job = self.job.unknown_fields().into_iter().map(|name| format!("job.{name}"));
        self.later.keys().cloned().chain(of_kernel).chain(of_job).collect()
    }
}
