// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a target asks for where others share out the machines: Slurm's words for a node, labgrid's for a place.
//!
//! The keys are those of the file of targets (target.rs).

use std::path::{Path, PathBuf};

use toml::Spanned;

use super::target_entry::TargetEntry;

/// Which node Slurm is asked for, and for how long: in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlurmJob {
    /// Instead of the default one.
    pub partition: Option<String>,
    /// All of which the node has.
    pub features: Vec<String>,
    /// This one alone.
    pub node: Option<String>,
    /// After which Slurm ends the job.
    pub time_limit: Option<String>,
    /// For a free node; without it as long as it takes.
    pub wait_s: Option<u32>,
    /// Further ones of srun(1).
    pub options: Vec<String>,
    /// A target for each such node.
    pub every_node: bool,
}

/// Which board labgrid is asked for, and what is done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabgridPlace {
    /// HOST:PORT, instead of what labgrid-client knows.
    pub coordinator: Option<String>,
    /// The place.
    pub wanted: PlaceSelector,
    /// Of ssh, instead of the user's own.
    pub config: Option<PathBuf>,
    /// For a free place.
    pub wait_s: Option<u32>,
    /// Off and on before it is measured.
    pub power_cycle: bool,
    /// What boots it before it is measured.
    pub strategy: Option<Strategy>,
    /// As uname(1) -r has it: with another one it is not measured.
    pub kernel: Option<String>,
    /// Which of its serial ports is recorded, where it has several.
    pub console: Option<String>,
}

/// A strategy of labgrid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// labgrid's file that has it.
    pub environment: PathBuf,
    /// Where it is to bring the board.
    pub state: String,
}

/// Which place of labgrid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceSelector {
    /// This one.
    Place(String),
    /// One with all of these tags, KEY=VALUE: a reservation.
    Tags(Vec<String>),
}

/// What a target asks Slurm for, or the place and what is wrong there.
pub(super) fn slurm_job(one: &TargetEntry) -> Result<SlurmJob, (usize, String)> {
    if let Some(options) = &one.options {
        let bad = options.get_ref().iter().find(|o| !o.starts_with("--"));
        if let Some(bad) = bad {
            let why = format!("`{bad}` is no long option of srun: write --NAME=VALUE in one word");
            return Err((options.span().start, why));
        }
    }
    if let (Some(every), Some(_)) = (&one.every_node, &one.node) {
        let why = "`every-node` and `node` exclude each other: remove one".to_owned();
        return Err((every.span().start, why));
    }
    let text = |key: &Option<Spanned<String>>| key.as_ref().map(|k| k.get_ref().clone());
    let list = |key: &Option<Spanned<Vec<String>>>| key.as_ref().map(|k| k.get_ref().clone());
    Ok(SlurmJob {
        partition: text(&one.partition),
        features: list(&one.features).unwrap_or_default(),
        node: text(&one.node),
        time_limit: text(&one.time_limit),
        wait_s: one.wait_s.as_ref().map(|w| *w.get_ref()),
        options: list(&one.options).unwrap_or_default(),
        every_node: one.every_node.as_ref().is_some_and(|e| *e.get_ref()),
    })
}

/// What a target asks labgrid for, or the place and what is wrong there; nothing without a place.
pub(super) fn labgrid_place(
    one: &TargetEntry,
    base: &Path,
) -> Result<Option<LabgridPlace>, (usize, String)> {
    let wanted = match (&one.place, &one.place_tags) {
        (Some(place), Some(_)) => {
            let why = "`place` and `place-tags` exclude each other: remove one".to_owned();
            return Err((place.span().start, why));
        }
        (Some(place), None) => {
            // labgrid-client takes them for an option, a reservation and a part of a name.
            if place.get_ref().is_empty() || place.get_ref().starts_with(['-', '+']) {
                let why = format!("`{}` is no name of a place", place.get_ref());
                return Err((place.span().start, why));
            }
            PlaceSelector::Place(place.get_ref().clone())
        }
        (None, Some(tags)) => {
            let tag = |t: &&String| t.starts_with('-') || !t.contains('=');
            if let Some(bad) = tags.get_ref().iter().find(tag) {
                let why = format!("`{bad}` is no tag of a place: write KEY=VALUE");
                return Err((tags.span().start, why));
            }
            if tags.get_ref().is_empty() {
                return Ok(None);
            }
            PlaceSelector::Tags(tags.get_ref().clone())
        }
        (None, None) => return Ok(None),
    };
    let strategy = strategy(one, base)?;
    let text = |key: &Option<Spanned<String>>| key.as_ref().map(|k| k.get_ref().clone());
    Ok(Some(LabgridPlace {
        coordinator: one.coordinator.as_ref().map(|c| c.get_ref().clone()),
        wanted,
        config: one.config.as_ref().map(|c| base.join(c.get_ref())),
        wait_s: one.wait_s.as_ref().map(|w| *w.get_ref()),
        power_cycle: one.power_cycle.as_ref().is_some_and(|p| *p.get_ref()),
        strategy,
        kernel: text(&one.kernel),
        console: text(&one.console),
    }))
}

/// The strategy that boots the board, or the place and what is wrong there.
fn strategy(one: &TargetEntry, base: &Path) -> Result<Option<Strategy>, (usize, String)> {
    let (environment, state) = match (&one.environment, &one.state) {
        (Some(environment), Some(state)) => (environment, state),
        (None, None) => return Ok(None),
        (None, Some(state)) => {
            let why =
                "`state` needs labgrid's file with the strategy: write environment = \"lab.yaml\"";
            return Err((state.span().start, why.to_owned()));
        }
        (Some(environment), None) => {
            let why = "`environment` needs the state in which the board is measured: write state = \"shell\"";
            return Err((environment.span().start, why.to_owned()));
        }
    };
    if state.get_ref().is_empty() || state.get_ref().starts_with('-') {
        let why = format!("`{}` is no name of a state", state.get_ref());
        return Err((state.span().start, why));
    }
    if let Some(cycle) = one.power_cycle.as_ref().filter(|p| *p.get_ref()) {
        let why = "`power-cycle` and `state` exclude each other, as the strategy switches the power: remove one";
        return Err((cycle.span().start, why.to_owned()));
    }
    let environment = base.join(environment.get_ref());
    Ok(Some(Strategy { environment, state: state.get_ref().clone() }))
}
