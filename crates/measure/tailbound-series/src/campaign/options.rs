// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a campaign is to be made: which of its runs, how long, on which CPUs.
//!
//! Units: ns, shares of 1.

use tailbound_core::campaign::{Part, TimedFrom, scaled};
use tailbound_core::number::Real as _;
use tailbound_core::plan::RunConfig;
use tailbound_core::units::parse_ns;

use super::shipped::Chosen;
use crate::error::SeriesError;

/// Virtual time of one guest beyond which somebody has to say yes.
pub const LONG_NS: i64 = 300_000_000_000;

/// What was asked for beside the campaign itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Share of the campaign's own lengths, above 0 and up to 1.
    pub scale: f64,
    /// Measured CPUs, instead of those of the campaign.
    pub cpus: Option<String>,
    /// Name of this machine in the folder; its kernel's release where there is none.
    pub system: Option<String>,
    /// Make runs again that were made with different options.
    pub force: bool,
    /// When the only run is to begin, in words of `run --begin-at`.
    pub begin_at: Option<String>,
    /// The source of pulses for runs that are timed from outside, in words of `box run --via`.
    pub via: Option<String>,
}

impl Default for Options {
    /// The whole of it, as it is written.
    fn default() -> Self {
        Self { scale: 1.0, cpus: None, system: None, force: false, begin_at: None, via: None }
    }
}

/// A run that would take longer than [`LONG_NS`].
#[derive(Clone, Debug, PartialEq)]
pub struct Long {
    /// Which.
    pub part: String,
    /// How long.
    pub ns: i64,
    /// A scale at which it would not.
    pub scale: f64,
}

impl Options {
    /// The configuration of `part` of the campaign `name` on this machine, as long as asked for.
    #[must_use]
    pub fn config(&self, name: &str, part: &Part) -> RunConfig {
        self.scaled(name, part, &part.run)
    }

    /// The same in the lab.
    #[must_use]
    pub fn lab_config(&self, name: &str, part: &Part) -> RunConfig {
        self.scaled(name, part, &part.lab)
    }

    fn scaled(&self, name: &str, part: &Part, config: &RunConfig) -> RunConfig {
        let (mut config, _) = scaled(config, self.scale);
        config.name = Some(format!("{name}/{}", part.id));
        if let (Some(cpus), TimedFrom::Inside) = (&self.cpus, part.timed_from) {
            config.cpus = Some(cpus.clone());
        }
        config
    }

    /// The longest of `parts` in the lab, if that takes days there.
    #[must_use]
    pub fn long_in_lab(&self, name: &str, parts: &[&Part]) -> Option<Long> {
        let lengths = parts.iter().map(|p| (p, length_ns(&self.lab_config(name, p))));
        let (part, ns) = lengths.max_by_key(|(_, ns)| *ns)?;
        if ns <= LONG_NS {
            return None;
        }
        let scale = self.scale * LONG_NS.real() / ns.real();
        let digit = 10f64.powf(scale.log10().floor());
        Some(Long { part: part.id.clone(), ns, scale: (scale / digit).floor() * digit })
    }
}

fn length_ns(config: &RunConfig) -> i64 {
    let time = |text: &Option<String>| text.as_deref().and_then(|t| parse_ns(t).ok());
    let interval = time(&config.interval).unwrap_or(250_000);
    let loops = config.loops.map(|n| i64::try_from(n).unwrap_or(i64::MAX).saturating_mul(interval));
    loops.or_else(|| time(&config.duration)).unwrap_or(0)
}

/// The parts of `chosen` to be made: all, or those that `only` names, by their names or those of their steps.
///
/// # Errors
/// When a name is of no part and no step.
pub fn wanted(chosen: &Chosen, only: &[String]) -> Result<Vec<Part>, SeriesError> {
    let all = chosen.file.parts();
    let step = |p: &Part| chosen.file.steps.get(p.step).map_or("", |s| s.id.as_str());
    for name in only {
        if !all.iter().any(|p| p.id == *name || step(p) == name) {
            let known = all.iter().map(|p| p.id.clone()).collect();
            return Err(SeriesError::UnknownPart { name: name.clone(), known });
        }
    }
    let chosen = |p: &Part| only.is_empty() || only.iter().any(|n| p.id == *n || step(p) == n);
    Ok(all.iter().filter(|p| chosen(p)).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::super::shipped::{SHIPPED, find};
    use super::*;

    #[test]
    fn the_scale_that_is_suggested_is_short_enough() {
        let options = Options::default();
        let mut long = 0;
        for (name, _) in SHIPPED {
            let chosen = find(name).expect("shipped");
            let parts = wanted(&chosen, &[]).expect("all of them");
            let parts: Vec<&Part> = parts.iter().filter(|p| p.not_in_lab.is_none()).collect();
            let Some(found) = options.long_in_lab(name, &parts) else { continue };
            long += 1;
            assert!(found.ns > LONG_NS && found.scale < 1.0, "{name}: {found:?}");
            let less = Options { scale: found.scale, ..options.clone() };
            assert_eq!(less.long_in_lab(name, &parts), None, "{name}: {found:?}");
        }
        assert!(long > 0, "a campaign takes days");
    }

    #[test]
    fn parts_go_by_their_own_name_or_that_of_their_step() {
        let chosen = find("mckenney-2009").expect("shipped");
        let all = wanted(&chosen, &[]).expect("all of them");
        let step = chosen.file.steps[all[0].step].id.clone();
        for name in [all[0].id.clone(), step] {
            let some = wanted(&chosen, &[name]).expect("known");
            assert!(some.iter().any(|p| p.id == all[0].id));
        }
        let e = wanted(&chosen, &["nonesuch".to_owned()]).expect_err("unknown");
        assert!(e.to_string().contains(&all[0].id), "{e}");
        assert_eq!(e.kind(), tailbound_core::FailureKind::Usage);
    }
}
