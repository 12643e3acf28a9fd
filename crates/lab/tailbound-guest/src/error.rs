// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a guest or a board cannot do its job; the host reads it as the end of the second serial line, or on the console.

use std::io;

use tailbound_sys::error::SysError;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GuestError {
    /// A file, a device or a folder.
    #[error("{path}: {why}")]
    File { path: String, why: io::Error },
    /// A setting of the job that the kernel refuses.
    #[error("setting {path} = {value}: {why}")]
    Setting { path: String, value: String, why: io::Error },
    /// The profile of the job, which could not be applied or undone.
    #[error("tune {verb}: {how}: {why}")]
    Tune { verb: &'static str, how: String, why: String },
    /// A system call.
    #[error(transparent)]
    System(#[from] SysError),
    /// The job is not JSON, or not of a job.
    #[error("job: {0}")]
    Job(#[from] serde_json::Error),
    /// A later host's job.
    #[error("job: `{0}` is not known to the guest's tailbound")]
    UnknownField(String),
    /// Not QEMU, or not as the lab starts it.
    #[error("no fw_cfg device: QEMU's has at most a few files")]
    NoDevice,
    /// QEMU has no such file for the guest.
    #[error("the host gave no {0}")]
    NoJob(&'static str),
    /// What the device says of itself is in no range.
    #[error("fw_cfg: {0}")]
    Range(#[from] std::num::TryFromIntError),
    /// The kernel's list of CPUs.
    #[error("`{0}` is no list of CPUs")]
    Cpus(String),
    /// Nothing to start.
    #[error("the tester has no command")]
    NoCommand,
    /// A board without Ethernet.
    #[error("no Ethernet device: a driver that is a module comes by --module")]
    NoNetworkDevice,
    /// Nobody gave a board an address.
    #[error("no DHCP server answers on {device}")]
    NoLease { device: String },
    /// The tool ended without a run.
    #[error("no run: {status}; {handed_in}")]
    NoRun { status: String, handed_in: String },
    /// A receiver did not take the run.
    #[error("it answers {status} {said}")]
    NotTaken { status: u16, said: String },
    /// It was ended.
    #[error("not done after {limit_s} s of its own time: ended")]
    NotDone { limit_s: u64 },
}

impl GuestError {
    pub(crate) fn file(path: &str) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::File { path: path.to_owned(), why }
    }
}
