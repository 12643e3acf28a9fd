// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound check capture`: what the checks read of a machine, in one file, so that it can be checked from a desk.
//!
//! Not here: what is in it (`tailbound_rules::Capture`).

use std::path::Path;
use std::process::ExitCode;

use tailbound_host::{Cpus, Root};
use tailbound_rules::Capture;

use super::check::{self, cpus, refuse_offline};
use crate::cli_check::CaptureArgs;
use crate::input::{self, Existing};
use crate::say::{self, Failure};

/// `tailbound check capture`
pub(super) fn capture(args: &CaptureArgs) -> Result<ExitCode, Failure> {
    if args.out == Path::new("-") {
        return Err(Failure::usage("--out -: a capture is packed, and no text: name a file"));
    }
    input::may_write(&args.out, Existing::replaced_if(args.force))?;
    let root = Root::real().noting();
    let mut rt_cpus = cpus(args.rt_cpus.as_deref())?;
    let online = Cpus::read(&root).map_err(Failure::cannot)?.online;
    refuse_offline(&rt_cpus, &online)?;
    if rt_cpus.is_empty() {
        rt_cpus = online.iter().filter(|c| *c != 0).collect();
    }
    let pid = args.process.find(&Root::real(), args.target)?;
    let Capture { bytes, files: n } = Capture::of(&root, &rt_cpus, pid).map_err(Failure::cannot)?;
    // A machine of a hundred thousand threads has more than is read: better told here than at the desk.
    check::tree(bytes.as_slice())
        .map_err(|e| Failure::cannot(format!("the capture could not be read back: {e}")))?;
    input::write_bytes(&args.out, &bytes, Existing::replaced_if(args.force))?;
    say::answer(&format!(
        "Captured  {} ({n} files, {} KiB)\nTo check it: tailbound check --root {}",
        args.out.display(),
        bytes.len() / 1024,
        args.out.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
