// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is tried: each setting of a profile by itself; those that only isolate together are one.

use tailbound_series::rounds::is_name;
use tailbound_tune::{LeftOut, Profile, Recipe, Written};

use crate::cli_tune_auto::AutoArgs;
use crate::cmd::tune::recipe;
use crate::say::Failure;

/// The candidate that all settings of isolation are: the one without the other isolates nothing.
const ISOLATION: &str = "isolation";

/// One change that is tried.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidate {
    /// Its name in tables and files.
    pub(super) name: String,
    /// What it does.
    pub(super) what: String,
    /// Its settings; none for a boot parameter or a kernel.
    pub(super) settings: Written,
    /// What it adds to the kernel's command line.
    pub(super) append: String,
    /// The kernel it is.
    pub(super) kernel: Option<String>,
}

/// The profile of some candidates together; `None` where they have no settings.
pub(super) fn profile(name: &str, members: &[&Candidate]) -> Option<Written> {
    let mut written = Written { name: name.to_owned(), ..Written::default() };
    for member in members {
        written.settings.extend(member.settings.settings.clone());
    }
    (!written.settings.is_empty()).then_some(written)
}

/// All that was asked for, whether this machine can or not.
pub(super) fn asked(args: &AutoArgs) -> Result<Vec<Candidate>, Failure> {
    let given = !args.set.is_empty() || !args.try_append.is_empty() || !args.try_kernel.is_empty();
    let mut written = match &args.profile {
        Some(name) => recipe::profile(name)?,
        // Who names changes wants those.
        None if given => Written::default(),
        None => recipe::profile("cyclic")?,
    };
    recipe::add(&mut written, args.set.iter().map(String::as_str))?;
    Profile::of(written.clone()).map_err(Failure::usage)?;
    for name in args.without.iter().filter(|n| n.as_str() != ISOLATION) {
        tailbound_tune::settings::named(name).map_err(Failure::usage)?;
    }
    let isolates = |name: &str| recipe::ISOLATION.contains(&name) || name == "partition";
    let wanted = |name: &str| {
        let group = if isolates(name) { ISOLATION } else { name };
        !args.without.iter().any(|w| w == name || w == group)
    };
    let mut all = Vec::new();
    let mut isolation = Candidate {
        name: ISOLATION.to_owned(),
        what: "everything else leaves the real-time CPUs".to_owned(),
        ..Candidate::default()
    };
    for setting in tailbound_tune::settings::catalogue() {
        let Some(value) = written.settings.get(setting.name).filter(|_| wanted(setting.name))
        else {
            continue;
        };
        let isolating = isolates(setting.name);
        let what = format!("{} = {value}: {}", setting.name, setting.about);
        let mut one = Candidate { name: setting.name.to_owned(), what, ..Candidate::default() };
        let candidate = if isolating { &mut isolation } else { &mut one };
        candidate.settings.settings.insert(setting.name.to_owned(), value.clone());
        if !isolating {
            all.push(one);
        }
    }
    if !isolation.settings.settings.is_empty() {
        all.insert(0, isolation);
    }
    for words in &args.try_append {
        let name = named(words, &all);
        let what = format!("boot parameters: {words}");
        all.push(Candidate { name, what, append: words.clone(), ..Candidate::default() });
    }
    for kernel in &args.try_kernel {
        let name = named(kernel, &all);
        let what = format!("kernel {kernel}");
        all.push(Candidate { name, what, kernel: Some(kernel.clone()), ..Candidate::default() });
    }
    Ok(all)
}

/// A name for files, of words that may be anything.
fn named(words: &str, others: &[Candidate]) -> String {
    let plain: String = words
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._+".contains(c) { c } else { '-' })
        .skip_while(|c| !c.is_ascii_alphanumeric())
        // Room for the `no-` before it and a number behind it.
        .take(30)
        .collect();
    let taken = |n: &str| !is_name(n) || others.iter().any(|o| o.name == n);
    let numbered = (2..).map(|i| format!("{plain}-{i}"));
    let mut all = std::iter::once(plain.clone()).chain(numbered.take(1000));
    all.find(|n| !taken(n)).unwrap_or_else(|| "words".to_owned())
}

/// Those that would change something on this machine, and why the others would not.
pub(super) fn possible(
    all: Vec<Candidate>,
    rt_cpus: &str,
) -> Result<(Vec<Candidate>, Vec<String>), Failure> {
    let (mut here, mut notes) = (Vec::new(), Vec::new());
    for candidate in all {
        let Some(written) = profile(&candidate.name, &[&candidate]) else { continue };
        let recipe = Recipe { rt_cpus: rt_cpus.to_owned(), ..Recipe::of(&written) };
        let plan = recipe::plan(&recipe)?;
        if plan.steps.is_empty() {
            let why = |l: &LeftOut| l.why.clone();
            let why = plan.left_out.first().map_or_else(|| "it is so already".to_owned(), why);
            notes.push(format!("{} was not tried: {why}", candidate.name));
        } else {
            here.push(candidate);
        }
    }
    Ok((here, notes))
}
