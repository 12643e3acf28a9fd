// SPDX-License-Identifier: MIT OR Apache-2.0
//! `campaign run --kernel`: from arguments to the runs of a campaign in the lab.
//!
//! Not here: how they are made (`tailbound_search::campaign_runs`).

use tailbound_core::campaign::Part;
use tailbound_lab::Request;
use tailbound_search::campaign_runs::{CampaignRequest, LabCampaignCaller, campaign};
use tailbound_series::campaign::{CampaignEnd, Chosen, Folder};

use crate::caller::Machine;
use crate::cli_campaign::CampaignRunArgs;
use crate::cmd::lab::bench;
use crate::say::{self, Failure};

/// Makes every one of `parts` in every kernel, as far as it is not there yet.
pub(super) fn make(
    args: &CampaignRunArgs,
    chosen: &Chosen,
    parts: &[Part],
    folder: &Folder,
) -> Result<CampaignEnd, Failure> {
    let guest = &args.guest;
    let guests = Request {
        kernels: args.kernel.clone(),
        targets: guest.target.clone(),
        arch: guest.arch.clone(),
        machine: guest.machine.clone(),
        smp: guest.smp,
        slice: guest.slice.clone(),
        memory_mib: guest.memory,
        shift: guest.shift,
        seed: guest.seed,
        kvm: guest.kvm,
        with: guest.with.clone(),
        guest: args.host.guest.clone(),
        ..Request::default()
    };
    let may_be_long = args.yes || guest.kvm;
    let options = args.options();
    let request = CampaignRequest { chosen, parts, options, guests, may_be_long, folder };
    let note = |text: &str| {
        if !args.host.quiet {
            say::note(text);
        }
    };
    let open = || Ok(bench::open(&args.host)?);
    let machine = Machine::default();
    Ok(campaign(&request, &mut LabCampaignCaller { open: &open, machine, note: &note })?)
}
