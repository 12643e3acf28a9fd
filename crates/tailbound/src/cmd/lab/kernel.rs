// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab kernel`: kernels listed, fetched, built.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tailbound_core::progress_writer::PacedLine;
use tailbound_lab::build::{self, BuildTest, Compiling, Request, Workshop};
use tailbound_lab::kernel::{self, KernelListing, Sources};
use tailbound_lab::{Arch, KernelName, Store, needs};
use tailbound_sys::signal::Signals;

use crate::cli_lab_kernel::{KernelBuildArgs, KernelFetchArgs, KernelListArgs, LabKernel};
use crate::flags;
use crate::say::{self, Failure};

/// `tailbound lab kernel`
pub(super) fn kernel(what: &LabKernel) -> Result<ExitCode, Failure> {
    match what {
        LabKernel::List(args) => list(args),
        LabKernel::Fetch(args) => fetch(args),
        LabKernel::Build(args) => build(args),
    }
}

fn arch(word: Option<&str>) -> Result<Arch, Failure> {
    word.map_or(Ok(Arch::X86_64), |w| w.parse().map_err(flags::refused("--arch")))
}

fn list(args: &KernelListArgs) -> Result<ExitCode, Failure> {
    let store = Store::of_user()?;
    let arch = arch(args.arch.as_deref())?;
    let sources = match args.local {
        true => Sources::Store,
        false => Sources::Debian {
            suite: args.suite.as_deref(),
            lists: kernel::PackageLists::anew_if(args.refresh),
        },
    };
    let mut note = |text: &str| {
        if !args.quiet {
            say::note(text);
        }
    };
    let listing = KernelListing::of(arch, sources, &store, &mut note)?;
    match args.json {
        true => say::answer_json(&json!(listing))?,
        false => say::answer(&listing.text(sources))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn fetch(args: &KernelFetchArgs) -> Result<ExitCode, Failure> {
    let store = Store::of_user()?;
    let arch = arch(args.arch.as_deref())?;
    let names: Vec<KernelName> =
        args.kernels.iter().map(|k| k.parse()).collect::<Result<_, tailbound_lab::LabError>>()?;
    let mut note = |text: &str| {
        if !args.quiet {
            say::note(text);
        }
    };
    let wanted: Vec<_> = names.iter().map(|name| (name.clone(), arch)).collect();
    needs::for_fetching(&store, &wanted, kernel::PackageLists::anew_if(args.refresh))?;
    let mut all = Vec::new();
    for name in &names {
        let found = if args.refresh {
            kernel::refresh(name, arch, &store, &mut note)?
        } else {
            kernel::obtain(name, arch, &store, &mut note)?
        };
        if !args.json {
            say::answer(&found.text())?;
        }
        all.push(found.json());
    }
    if args.json {
        say::answer_json(&all.into())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn build(args: &KernelBuildArgs) -> Result<ExitCode, Failure> {
    let cores =
        std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    let request = Request {
        name: args
            .name
            .parse()
            .map_err(|e| Failure::usage(format!("--name {}: {e}", args.name)))?,
        arch: arch(args.arch.as_deref())?,
        source: args.source.parse()?,
        patches: args.patch.clone(),
        rebase_onto: args.rebase_onto.clone(),
        fragments: args.fragment.clone(),
        config: args.config.clone(),
        jobs: args.jobs.unwrap_or(cores),
    };
    let tests: Vec<BuildTest> =
        args.test.iter().map(|t| t.parse()).collect::<Result<_, tailbound_lab::LabError>>()?;
    let store = Store::of_user()?;
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let line = PacedLine::new(say::progress(args.quiet), Duration::ZERO);
    let mut workshop = Workshop {
        request: &request,
        store: &store,
        note: &mut |text| {
            line.clear();
            line.note(text);
        },
        progress: &mut |at: &Compiling<'_>| {
            line.draw(&format!("{:>5} s {:>6} objects  {}", at.seconds, at.objects, at.file));
        },
        stop: &|| signals.wait(0).is_some(),
    };
    if args.check {
        let options = workshop.check()?;
        if args.json {
            say::answer_json(&json!({"options_on": options}))?;
        } else {
            say::answer(&format!("Every wanted option is granted; {options} options are on."))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if tests.is_empty() {
        let made = workshop.build()?;
        (workshop.note)("done");
        match args.json {
            true => say::answer_json(&json!(made))?,
            false => say::answer(&made.text())?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let results = workshop.test(&tests)?;
    (workshop.note)("done");
    if args.json {
        say::answer_json(&json!(results))?;
    } else {
        say::answer(&build::table(&results))?;
    }
    Ok(ExitCode::from(u8::from(results.iter().any(|r| !r.passed))))
}
