// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is tried: each setting of a profile by itself; those that only isolate together are one.

use tailbound_host::Root;

use crate::error::TuneError;
use crate::profile::{Profile, Written};
use crate::step::{LeftOut, Recipe};
use crate::{settings, typed};

/// The candidate that all settings of isolation are: the one without the other isolates nothing.
const ISOLATION: &str = "isolation";

/// One change that is tried.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    /// Its name in tables and files.
    pub name: String,
    /// What it does.
    pub what: String,
    /// Its settings; none for a boot parameter or a kernel.
    pub settings: Written,
    /// What it adds to the kernel's command line.
    pub append: String,
    /// The kernel it is.
    pub kernel: Option<String>,
}

/// The changes that a person wants to be tried, in words.
#[derive(Clone, Debug, Default)]
pub struct CandidateWords {
    /// A profile that comes with the program, or a file.
    pub profile: Option<String>,
    /// `SETTING=VALUE`.
    pub set: Vec<String>,
    /// Settings that are not tried.
    pub without: Vec<String>,
    /// Boot parameters, each set of them one change.
    pub append: Vec<String>,
    /// Kernels.
    pub kernel: Vec<String>,
}

/// The profile of some candidates together; `None` where they have no settings.
#[must_use]
pub fn profile(name: &str, members: &[&Candidate]) -> Option<Written> {
    let mut written = Written { name: name.to_owned(), ..Written::default() };
    for member in members {
        written.settings.extend(member.settings.settings.clone());
    }
    (!written.settings.is_empty()).then_some(written)
}

/// All that was asked for, whether this machine can or not; `is_name` knows names that files may have.
///
/// # Errors
/// [`TuneError`]: a word that is wrong.
pub fn asked(
    words: &CandidateWords,
    is_name: &dyn Fn(&str) -> bool,
) -> Result<Vec<Candidate>, TuneError> {
    let given = !words.set.is_empty() || !words.append.is_empty() || !words.kernel.is_empty();
    let mut written = match &words.profile {
        Some(name) => typed::profile(name)?,
        // Who names changes wants those.
        None if given => Written::default(),
        None => typed::profile("cyclic")?,
    };
    typed::add(&mut written, words.set.iter().map(String::as_str))?;
    Profile::of(written.clone())?;
    for name in words.without.iter().filter(|n| n.as_str() != ISOLATION) {
        settings::named(name)?;
    }
    let isolates = |name: &str| typed::ISOLATION.contains(&name) || name == "partition";
    let wanted = |name: &str| {
        let group = if isolates(name) { ISOLATION } else { name };
        !words.without.iter().any(|w| w == name || w == group)
    };
    let mut all = Vec::new();
    let mut isolation = Candidate {
        name: ISOLATION.to_owned(),
        what: "everything else leaves the real-time CPUs".to_owned(),
        ..Candidate::default()
    };
    for setting in settings::catalogue() {
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
    for append in &words.append {
        let name = named(append, &all, is_name);
        let what = format!("boot parameters: {append}");
        all.push(Candidate { name, what, append: append.clone(), ..Candidate::default() });
    }
    for kernel in &words.kernel {
        let name = named(kernel, &all, is_name);
        let what = format!("kernel {kernel}");
        all.push(Candidate { name, what, kernel: Some(kernel.clone()), ..Candidate::default() });
    }
    Ok(all)
}

/// A name for files, of words that may be anything.
fn named(words: &str, others: &[Candidate], is_name: &dyn Fn(&str) -> bool) -> String {
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
///
/// # Errors
/// [`TuneError::Plan`].
pub fn possible(
    all: Vec<Candidate>,
    rt_cpus: &str,
) -> Result<(Vec<Candidate>, Vec<String>), TuneError> {
    let (mut here, mut notes) = (Vec::new(), Vec::new());
    for candidate in all {
        let Some(written) = profile(&candidate.name, &[&candidate]) else { continue };
        let recipe = Recipe { rt_cpus: rt_cpus.to_owned(), ..Recipe::of(&written) };
        let plan = recipe.plan(&Root::real())?;
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
