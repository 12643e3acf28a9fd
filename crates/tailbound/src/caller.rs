// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a series (`tailbound-series`) makes and reads its runs from the command line: this program again, and
//! whatever `import` knows.

use std::ffi::OsString;
use std::path::Path;

use tailbound_core::campaign::Part;
use tailbound_core::plan::RunConfig;
use tailbound_core::{Plan, Run};
use tailbound_host::Root;
use tailbound_run::{Request, resolve};
use tailbound_series::campaign::CampaignCaller;
use tailbound_series::{Caller, ChildEnd, Children};
use tailbound_stats::Analysis;

use crate::input::{self, Existing};
use crate::say::Failure;

/// This machine, with this program.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    children: Children,
}

impl Caller for Machine {
    type Error = Failure;

    fn make(
        &mut self,
        arguments: &[OsString],
        folder: &Path,
        tick: &mut dyn FnMut(),
    ) -> Result<ChildEnd, Failure> {
        Ok(self.children.run(arguments, folder, tick)?)
    }

    fn read(&mut self, path: &Path, skip: &[&str]) -> Result<Run, Failure> {
        input::run_without(path, skip)
    }
}

impl CampaignCaller for Machine {
    fn plan(&mut self, config: &RunConfig, part: &Part) -> Result<Plan, Failure> {
        let request = Request { config: config.clone(), bare: !part.has_default_load() };
        Ok(resolve(&request, &Root::real())?.plan)
    }

    fn page(&mut self, run: &Run, file: &Path, page: &Path) -> Result<(), Failure> {
        let text = tailbound_report::html(&[Analysis::of(run)], &[input::name(file)]);
        input::write(page, &text, Existing::Replace)
    }
}
