// SPDX-License-Identifier: MIT OR Apache-2.0
//! From flags to what the lab is request.

use tailbound_core::Spec;
use tailbound_core::lab::Tester;
use tailbound_core::plan::RunConfig;
use tailbound_lab::Request;
use tailbound_probe::catalogue;

use crate::cli_config;
use crate::cli_guest::{GuestArgs, HostArgs};
use crate::cli_lab_subject::{ProbeArgs, SubjectArgs};
use crate::cmd::tune::recipes;
use crate::names;
use crate::say::Failure;

/// What the flags alone ask for.
pub(in crate::cmd) fn of(subject: &SubjectArgs, host: &HostArgs) -> Result<Request, Failure> {
    let mut request = Request { kernels: subject.kernel.clone(), ..Request::default() };
    request.append.extend(subject.append.clone());
    if !subject.load.is_empty() {
        request.loads = vec![subject.load.join(",")];
    }
    lay(&mut request, &subject.guest, &subject.probe, host)?;
    request.campaign = request.campaign.over(&subject.work.config()?);
    Ok(request)
}

/// Lays the flags over `request`.
pub(super) fn lay(
    request: &mut Request,
    guest: &GuestArgs,
    probe: &ProbeArgs,
    host: &HostArgs,
) -> Result<(), Failure> {
    fn over<T: Clone>(file: &mut Option<T>, flag: Option<&T>) {
        if let Some(value) = flag {
            *file = Some(value.clone());
        }
    }
    over(&mut request.arch, guest.arch.as_ref());
    over(&mut request.machine, guest.machine.as_ref());
    over(&mut request.smp, guest.smp.as_ref());
    over(&mut request.slice, guest.slice.as_ref());
    over(&mut request.memory_mib, guest.memory.as_ref());
    over(&mut request.shift, guest.shift.as_ref());
    over(&mut request.seed, guest.seed.as_ref());
    request.kvm |= guest.kvm;
    if !guest.with.is_empty() {
        request.with.clone_from(&guest.with);
    }
    if !guest.tune.tune.is_empty() {
        request.tune.clone_from(&guest.tune.tune);
    }
    over(&mut request.rt_cpus, guest.tune.rt_cpus.as_ref());
    for name in request.tunes() {
        let text = recipes::profile_text(&name)?;
        request.profiles.insert(name, text);
    }
    request.guest.clone_from(&host.guest);
    if let Some(path) = &probe.config {
        request.campaign = cli_config::in_file(path)?;
    }
    let mut words = request.campaign.over(&probe.measurement.0.config()?);
    over(&mut words.probe, probe.probe.as_ref());
    known(&mut words)?;
    request.campaign = words;
    request.targets.clone_from(&guest.target);
    // A command has a path; a tester that a target brings has a name.
    let named = !guest.target.is_empty() && probe.tester.as_ref().is_some_and(|t| !t.contains('/'));
    if named {
        let names = probe.tester.as_deref().unwrap_or_default().split(',');
        request.testers = names.map(str::to_owned).collect();
    } else if let Some(line) = &probe.tester {
        request.tester = Some(Tester {
            command: shlex::split(line)
                .ok_or_else(|| Failure::usage(format!("--tester {line}: a quote is not closed")))?,
            format: probe.format.clone(),
            file: probe.tester_file.clone(),
            ..Tester::default()
        });
    }
    Ok(())
}

/// What else than kernel and load tells the runs of these words from those of others: `-pi`,
/// `-timerlat` (of `timerlat.toml`); nothing for the usual ones.
pub(super) fn more(request: &Request, probe: &ProbeArgs) -> String {
    let file = probe.config.as_deref().and_then(std::path::Path::file_stem);
    let file = file.map(|stem| stem.to_string_lossy().into_owned());
    let mut more = String::new();
    for word in file.iter().chain(&request.campaign.probe).chain(&probe.measurement.0.observe) {
        more.push_str(&format!("-{}", names::plain(word)));
    }
    more
}

/// Refuses options that mean nothing before anything boots, and gives any but the default probe its own
/// interval: the lab's is for that one.
fn known(words: &mut RunConfig) -> Result<(), Failure> {
    tailbound_run::check_options(words)?;
    let Some(text) = &words.probe else { return Ok(()) };
    let spec: Spec = text.parse().map_err(|e| Failure::usage(format!("--probe {text}: {e}")))?;
    let (kind, _) = catalogue::known(&spec).map_err(|e| Failure::usage(e.to_string()))?;
    if kind.name != catalogue::DEFAULT.name {
        words.interval.get_or_insert_with(|| kind.interval.to_owned());
    }
    Ok(())
}
