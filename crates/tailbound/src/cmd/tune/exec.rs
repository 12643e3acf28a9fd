// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune exec`: a program on isolated CPUs.
//!
//! A cpuset partition takes its CPUs from all other groups, so a program has to be
//! in its group to run there: this one joins it and becomes the program.
//! Source: Documentation/admin-guide/cgroup-v2.rst, execve(2).

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use tailbound_core::{CpuSet, Policy};
use tailbound_host::{Root, attributes, cgroups};
use tailbound_sys::sched;

use crate::cli_tune::ExecArgs;
use crate::say::Failure;

/// `tailbound tune exec`
#[expect(
    clippy::disallowed_methods,
    reason = "this process becomes the program; there is no child"
)]
pub(super) fn exec(args: &ExecArgs) -> Result<ExitCode, Failure> {
    tailbound_tune::needs_root().map_err(Failure::cannot)?;
    let root = Root::real();
    let group = cgroups::partition(&root).ok_or_else(|| {
        Failure::cannot("no CPUs are isolated by a partition of tailbound: run `tailbound tune isolate LIST` first")
    })?;
    let path = format!("{}/cgroup.procs", group.path);
    File::options()
        .write(true)
        .open(&path)
        .and_then(|mut f| f.write_all(b"0"))
        .map_err(|e| Failure::cannot(format!("{path}: {e}")))?;
    if let Some(text) = &args.cpus {
        let cpus: CpuSet = text.parse().map_err(Failure::usage)?;
        sched::set_affinity(0, &cpus.iter().collect::<Vec<_>>()).map_err(Failure::cannot)?;
    }
    if let Some(text) = &args.policy {
        let policy: Policy = text.parse().map_err(Failure::usage)?;
        sched::set(0, &attributes(policy)).map_err(Failure::cannot)?;
    }
    let (program, rest) =
        args.command.split_first().ok_or_else(|| Failure::usage("name a program"))?;
    let e = std::process::Command::new(program).args(rest).exec();
    Err(Failure::cannot(format!("{}: {e}", program.display())))
}
