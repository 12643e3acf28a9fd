// SPDX-License-Identifier: MIT OR Apache-2.0
//! From words to a recipe: profiles, settings, threads and interrupts that were typed.
//!
//! Not here: what a recipe comes to on the machine (`recipe`).

use std::path::Path;

use crate::error::TuneError;
use crate::profile::{Profile, SHIPPED, Written};
use crate::rules::{InterruptRule, ThreadRule};
use crate::step::Recipe;

/// Largest profile that is read, in bytes.
const PROFILE_MAX: u64 = 1 << 20;

/// Settings that keep others off CPUs, in the words of profiles.
pub(crate) const ISOLATION: &[&str] = &[
    "threads",
    "kernel-threads",
    "default-irq-affinity",
    "interrupts",
    "workqueues",
    "own-workqueues",
    "watchdog-cpus",
];

/// A profile that comes with the program, or in a file.
///
/// # Errors
/// [`TuneError::NoProfile`], [`TuneError::ProfileFile`], [`TuneError::ProfileText`].
pub fn profile(name: &str) -> Result<Written, TuneError> {
    if let Some(profile) = Profile::shipped(name) {
        return Ok(profile.written().clone());
    }
    let path = Path::new(name);
    let named = || name.to_owned();
    if !name.contains(['/', '.']) && !path.exists() {
        return Err(TuneError::NoProfile { name: named(), known: shipped_names() });
    }
    let text = tailbound_sys::given::text(path, PROFILE_MAX)
        .map_err(|source| TuneError::ProfileFile { name: named(), source })?;
    let profile =
        Profile::parse(&text).map_err(|why| TuneError::ProfileText { name: named(), why })?;
    Ok(profile.written().clone())
}

fn shipped_names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(n, _)| *n).collect()
}

/// Adds `SETTING=VALUE` words.
///
/// # Errors
/// [`TuneError::Word`].
pub fn add<'a>(
    written: &mut Written,
    words: impl Iterator<Item = &'a str>,
) -> Result<(), TuneError> {
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| TuneError::Word(word.to_owned()))?;
        written.set(name, value);
    }
    Ok(())
}

/// For which CPUs, and what not, in words.
#[derive(Clone, Debug, Default)]
pub struct CpusWords {
    /// CPUs for real-time work, as a list.
    pub rt_cpus: Option<String>,
    /// CPU 0 may be among them.
    pub allow_cpu0: bool,
    /// Settings that are left out.
    pub without: Vec<String>,
}

impl CpusWords {
    fn with(&self, written: &Written) -> Result<Recipe, TuneError> {
        Profile::of(written.clone())?;
        Ok(Recipe {
            rt_cpus: self.rt_cpus.clone().unwrap_or_default(),
            without: self.without.clone(),
            allow_cpu0: self.allow_cpu0,
            ..Recipe::of(written)
        })
    }
}

/// What is to be changed, in words.
#[derive(Clone, Debug, Default)]
pub struct RecipeWords {
    /// A profile that comes with the program, or a file.
    pub profile: Option<String>,
    /// `SETTING=VALUE`, over those of the profile.
    pub set: Vec<String>,
    /// For which CPUs.
    pub cpus: CpusWords,
    /// The profile's boot parameters too.
    pub boot: bool,
}

impl RecipeWords {
    /// The recipe of a profile and settings.
    ///
    /// # Errors
    /// [`TuneError`]: a word that is wrong.
    pub fn recipe(&self) -> Result<Recipe, TuneError> {
        let mut written = match &self.profile {
            Some(name) => profile(name)?,
            None if self.set.is_empty() => {
                return Err(TuneError::NothingAsked { known: shipped_names() });
            }
            None => Written { name: "settings".to_owned(), ..Written::default() },
        };
        add(&mut written, self.set.iter().map(String::as_str))?;
        Ok(Recipe { boot: self.boot, ..self.cpus.with(&written)? })
    }
}

/// What keeps everything else off isolated CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A cpuset partition, and affinities.
    Partition,
    /// Affinities alone.
    Affinities,
}

impl Isolation {
    /// As `--no-partition` says.
    #[must_use]
    pub fn without_partition_if(no_partition: bool) -> Self {
        if no_partition { Self::Affinities } else { Self::Partition }
    }
}

/// Keeps everything else off `cpus`.
#[must_use]
pub fn isolated(cpus: &str, by: Isolation) -> Recipe {
    let mut written = Written { name: "isolate".to_owned(), ..Written::default() };
    let partition = (by == Isolation::Partition).then_some(("partition", "isolated"));
    for (name, value) in ISOLATION.iter().map(|n| (*n, "housekeeping")).chain(partition) {
        written.set(name, value);
    }
    Recipe { rt_cpus: cpus.to_owned(), ..Recipe::of(&written) }
}

/// Threads by number or name.
fn threads(words: &[String], policy: Option<&str>, cpus: Option<&str>) -> Vec<ThreadRule> {
    let rule = |word: &String| {
        let number = word.parse().ok();
        ThreadRule {
            name: if number.is_some() { String::new() } else { word.clone() },
            number,
            policy: policy.map(str::to_owned),
            cpus: cpus.map(str::to_owned),
        }
    };
    words.iter().map(rule).collect()
}

pub(crate) fn of_rules(
    name: &str,
    thread: Vec<ThreadRule>,
    interrupt: Vec<InterruptRule>,
) -> Recipe {
    Recipe::of(&Written { name: name.to_owned(), thread, interrupt, ..Written::default() })
}

/// Lets threads, by number or name, run on `cpus` only.
#[must_use]
pub fn moved(words: &[String], cpus: &str) -> Recipe {
    of_rules("move", threads(words, None, Some(cpus)), Vec::new())
}

/// Gives threads, by number or name, a policy.
#[must_use]
pub fn with_policy(words: &[String], policy: &str) -> Recipe {
    of_rules("set", threads(words, Some(policy), None), Vec::new())
}

/// Has interrupts handled on `cpus`, by threads of `policy`.
#[must_use]
pub fn interrupts(words: &[String], cpus: Option<&str>, policy: Option<&str>) -> Recipe {
    let lines = cpus.iter().flat_map(|cpus| {
        words.iter().map(|name| InterruptRule { name: name.clone(), cpus: (*cpus).to_owned() })
    });
    let names: Vec<String> = match policy {
        // The threads are named after the number and the first part of the handler's name.
        Some(_) => words.iter().map(|name| interrupt_threads(name)).collect(),
        None => Vec::new(),
    };
    of_rules("irq", threads(&names, policy, None), lines.collect())
}

fn interrupt_threads(name: &str) -> String {
    if name.bytes().all(|b| b.is_ascii_digit()) {
        format!("irq/{name}-*")
    } else {
        format!("irq/*-{}", name.chars().take(8).collect::<String>() + "*")
    }
}

/// `SETTING=VALUE` words for `cpus`.
///
/// # Errors
/// [`TuneError`]: a word that is wrong.
pub fn settings(words: &[String], cpus: &CpusWords) -> Result<Recipe, TuneError> {
    let mut written = Written { name: "set".to_owned(), ..Written::default() };
    add(&mut written, words.iter().map(String::as_str))?;
    cpus.with(&written)
}
