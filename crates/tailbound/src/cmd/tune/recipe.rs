// SPDX-License-Identifier: MIT OR Apache-2.0
//! From words to a recipe: profiles, settings, threads and interrupts that were typed.
//!
//! What it comes to on the machine: `tailbound_tune::Recipe::plan`.

use tailbound_tune::{
    InterruptRule, Plan, PlanError, Profile, Recipe, SHIPPED, ThreadRule, Written,
};

use crate::cli_tune::{CpusArgs, IrqArgs, IsolateArgs, MoveArgs, RecipeArgs, SetArgs};
use crate::say::Failure;

/// Settings that keep others off CPUs, in the words of profiles.
pub(super) const ISOLATION: &[&str] = &[
    "threads",
    "kernel-threads",
    "default-irq-affinity",
    "interrupts",
    "workqueues",
    "own-workqueues",
    "watchdog-cpus",
];

/// The plan of a recipe on this machine.
pub(crate) fn plan(recipe: &Recipe) -> Result<Plan, Failure> {
    recipe.plan(&tailbound_host::Root::real()).map_err(failure)
}

pub(super) fn failure(e: PlanError) -> Failure {
    if e.is_of_machine() { Failure::cannot(e) } else { Failure::usage(e) }
}

/// Of `--profile` and `--set`.
pub(super) fn of(args: &RecipeArgs) -> Result<Recipe, Failure> {
    let mut written = match &args.profile {
        Some(name) => profile(name)?,
        None if args.set.is_empty() => {
            let names: Vec<&str> = SHIPPED.iter().map(|(n, _)| *n).collect();
            return Err(Failure::usage(format!(
                "what is to be changed? Name a profile (--profile {}, or a file) or settings (--set SETTING=VALUE)",
                names.join("|")
            )));
        }
        None => Written { name: "settings".to_owned(), ..Written::default() },
    };
    add(&mut written, args.set.iter().map(String::as_str))?;
    let recipe = with_cpus(&written, &args.cpus)?;
    Ok(Recipe { boot: args.boot, ..recipe })
}

fn with_cpus(written: &Written, cpus: &CpusArgs) -> Result<Recipe, Failure> {
    Profile::of(written.clone()).map_err(Failure::usage)?;
    Ok(Recipe {
        rt_cpus: cpus.rt_cpus.clone().unwrap_or_default(),
        without: cpus.without.clone(),
        allow_cpu0: cpus.allow_cpu0,
        ..Recipe::of(written)
    })
}

/// A shipped profile, or a file.
pub(crate) fn profile(name: &str) -> Result<Written, Failure> {
    tailbound_run::profile(name).map_err(Failure::usage)
}

/// Adds `SETTING=VALUE` words.
pub(super) fn add<'a>(
    written: &mut Written,
    words: impl Iterator<Item = &'a str>,
) -> Result<(), Failure> {
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| {
            Failure::usage(format!(
                "`{word}`: write SETTING=VALUE; `tailbound tune settings` lists them"
            ))
        })?;
        written.set(name, value);
    }
    Ok(())
}

/// `tune isolate`
pub(super) fn isolate(args: &IsolateArgs) -> Result<Recipe, Failure> {
    let recipe = isolated(&args.cpus, !args.no_partition);
    Ok(Recipe { allow_cpu0: args.allow_cpu0, ..recipe })
}

/// Keeps everything else off `cpus`.
pub(super) fn isolated(cpus: &str, partition: bool) -> Recipe {
    let mut written = Written { name: "isolate".to_owned(), ..Written::default() };
    let partition = partition.then_some(("partition", "isolated"));
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

pub(super) fn of_rules(
    name: &str,
    thread: Vec<ThreadRule>,
    interrupt: Vec<InterruptRule>,
) -> Recipe {
    Recipe::of(&Written { name: name.to_owned(), thread, interrupt, ..Written::default() })
}

/// `tune move`
pub(super) fn move_threads(args: &MoveArgs) -> Result<Recipe, Failure> {
    Ok(of_rules("move", threads(&args.threads, None, Some(&args.cpus)), Vec::new()))
}

/// `tune irq`
pub(super) fn interrupts(args: &IrqArgs) -> Result<Recipe, Failure> {
    let lines = args.cpus.iter().flat_map(|cpus| {
        args.interrupts.iter().map(|name| InterruptRule { name: name.clone(), cpus: cpus.clone() })
    });
    let names: Vec<String> = match &args.policy {
        // The threads are named after the number and the first part of the handler's name.
        Some(_) => args.interrupts.iter().map(|name| interrupt_threads(name)).collect(),
        None => Vec::new(),
    };
    Ok(of_rules("irq", threads(&names, args.policy.as_deref(), None), lines.collect()))
}

fn interrupt_threads(name: &str) -> String {
    if name.bytes().all(|b| b.is_ascii_digit()) {
        format!("irq/{name}-*")
    } else {
        format!("irq/*-{}", name.chars().take(8).collect::<String>() + "*")
    }
}

/// `tune set`
pub(super) fn set(args: &SetArgs) -> Result<Recipe, Failure> {
    if args.policy.is_some() {
        return Ok(of_rules("set", threads(&args.what, args.policy.as_deref(), None), Vec::new()));
    }
    let mut written = Written { name: "set".to_owned(), ..Written::default() };
    add(&mut written, args.what.iter().map(String::as_str))?;
    with_cpus(&written, &args.cpus)
}
