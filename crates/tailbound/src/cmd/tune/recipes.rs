// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recipes of changes: their plans on this machine, and the texts of profiles.

use tailbound_host::Root;
#[cfg(feature = "lab")]
use tailbound_tune::typed;
use tailbound_tune::{Plan, Recipe, TuneError};

use crate::say::Failure;

/// The plan of a recipe on this machine.
pub(super) fn plan_of(recipe: &Recipe) -> Result<Plan, Failure> {
    Ok(recipe.plan(&Root::real()).map_err(TuneError::from)?)
}

/// The text of a shipped profile or of a file, which is one.
#[cfg(feature = "lab")]
pub(crate) fn profile_text(name: &str) -> Result<String, Failure> {
    Ok(Recipe::of(&typed::profile(name)?).profile)
}

/// The text of a profile of these `SETTING=VALUE`.
#[cfg(feature = "lab")]
pub(crate) fn profile_of(name: &str, settings: &[String]) -> Result<String, Failure> {
    let mut written = tailbound_tune::Written { name: name.to_owned(), ..Default::default() };
    typed::add(&mut written, settings.iter().map(String::as_str))?;
    tailbound_tune::Profile::of(written.clone()).map_err(Failure::usage)?;
    Ok(Recipe::of(&written).profile)
}
