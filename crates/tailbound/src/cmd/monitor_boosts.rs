// SPDX-License-Identifier: MIT OR Apache-2.0
//! `monitor --boost-starving`: brings the monitor's starving threads and the loans of `tailbound-tune` together.

use std::error::Error;

use tailbound_monitor::{Booster, Starving};
use tailbound_tune::ThreadId;
use tailbound_tune::boost::{Above, Loan};

use crate::cli_monitor::MonitorArgs;
use crate::say::{Failure, from_library};

from_library!(tailbound_tune::boost::BoostError);

struct Loans(Loan);

impl Booster for Loans {
    fn begin(&mut self, whom: &Starving) -> Result<String, Box<dyn Error>> {
        let (tid, start_ticks, name) = (whom.tid, whom.start_ticks, whom.comm.clone());
        let above = if whom.by.is_ordinary() { Above::Ordinary } else { Above::RealTime };
        Ok(self.0.begin(&ThreadId { tid, start_ticks, name }, above)?)
    }

    fn end(&mut self) -> Result<(), Box<dyn Error>> {
        Ok(self.0.end()?)
    }
}

/// What lends, where it is asked for.
pub(super) fn of(args: &MonitorArgs) -> Result<Option<Box<dyn Booster>>, Failure> {
    let Some(text) = &args.boost_starving else { return Ok(None) };
    if args.starving == "off" {
        return Err(Failure::usage("--boost-starving needs --starving TIME"));
    }
    let loan = Loan::new(text)?;
    Ok(Some(Box::new(Loans(loan))))
}
