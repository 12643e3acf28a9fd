// SPDX-License-Identifier: MIT OR Apache-2.0
//! Campaigns under way: how far each is on each system, from the work that was handed out and what its agents say.
//!
//! Units: s; times are RFC 3339 in UTC. Pure but for one visit to the store. What an agent has not said is unknown.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tailbound_core::order;

use serde::Serialize;
use tailbound_agent::wire::Doing;
use tailbound_core::utc;
use tailbound_store::{Work, WorkState};

use super::app::App;
use super::problem::Problem;
use super::work;

/// Between two pieces a campaign is under way still, for so long.
const BETWEEN_S: i64 = 600;

/// Whether somebody is at a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CampaignState {
    /// A machine makes a run of it.
    Running,
    /// It waits for its machine.
    Waiting,
    /// One piece is over, and the next is not handed out yet.
    Between,
}

/// A campaign on a system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct UnderWay {
    /// Its name.
    pub(super) campaign: String,
    /// The system.
    pub(super) system: String,
    /// Whether somebody is at it.
    pub(super) state: CampaignState,
    /// Which run is made, or was made last, from 1.
    pub(super) at: Option<i64>,
    /// Runs in all.
    pub(super) of: Option<i64>,
    /// Of those that are over: how many ended otherwise than complete.
    pub(super) not_complete: i64,
    /// The run's name.
    pub(super) part: Option<String>,
    /// When the machine took it.
    pub(super) began: Option<String>,
    /// When it ends, by what the agent said last.
    pub(super) run_ends: Option<String>,
    /// When all of it ends, by the mean length of the runs so far.
    pub(super) ends: Option<String>,
    /// How long ago the agent said something.
    pub(super) said_s_ago: Option<i64>,
    /// How much of it is done, of 1.
    pub(super) share: Option<f64>,
    /// What the agent said last.
    pub(super) words: Option<String>,
}

/// All of them, by campaign and system.
pub(super) async fn under_way(app: &Arc<App>) -> Result<(Vec<UnderWay>, Vec<Work>), Problem> {
    work::lose(app).await?;
    let all = app.ask(|store| store.all_work(work::LISTED)).await?;
    let running: Vec<&str> =
        all.iter().filter(|w| w.state == WorkState::Running).map(|w| w.id.as_str()).collect();
    let doing = app.doing.of(&running, app.now_s());
    Ok((told(&all, &doing, app.now_s()), all))
}

fn seconds(rfc3339: Option<&String>) -> Option<i64> {
    utc::from_rfc3339(rfc3339?)
}

/// What is under way, of `all` work, the newest first.
fn told(all: &[Work], doing: &BTreeMap<String, (Doing, i64)>, now_s: i64) -> Vec<UnderWay> {
    let mut groups: Vec<Vec<&Work>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for w in all {
        let key = w.batch.as_ref().map_or(w.id.as_str(), |b| b.id.as_str());
        let at = *known.entry(key).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(w),
            None => groups.push(vec![w]),
        }
    }
    let mut told: Vec<UnderWay> =
        groups.iter().filter_map(|group| of_group(group, doing, now_s)).collect();
    order::by(&mut told, |a, b| (&a.campaign, &a.system).cmp(&(&b.campaign, &b.system)));
    told
}

/// One campaign on one system; the newest piece comes first. `None`: it is over.
fn of_group(
    group: &[&Work],
    doing: &BTreeMap<String, (Doing, i64)>,
    now_s: i64,
) -> Option<UnderWay> {
    let of_state = |state: WorkState| group.iter().copied().find(|w| w.state == state);
    let (w, state) = match (of_state(WorkState::Running), of_state(WorkState::Waiting)) {
        (Some(w), _) => (w, CampaignState::Running),
        (None, Some(w)) => (w, CampaignState::Waiting),
        (None, None) => {
            let newest = *group.first()?;
            let more = newest.batch.as_ref().is_some_and(|b| b.at < b.of);
            let recent = seconds(newest.ended.as_ref()).is_some_and(|end| now_s - end < BETWEEN_S);
            // Whoever refuses one, or was lost, is not asked for the next.
            let goes_on = matches!(newest.state, WorkState::Done | WorkState::Failed);
            if !(more && recent && goes_on) {
                return None;
            }
            (newest, CampaignState::Between)
        }
    };
    let said = doing.get(&w.id);
    let parts = i64::try_from(w.parts.len()).ok().filter(|n| *n > 0);
    let (at, of) = match (&w.batch, said) {
        (Some(b), _) => (Some(b.at), Some(b.of)),
        (None, Some((d, _))) => (Some(i64::from(d.at)), Some(i64::from(d.of))),
        (None, None) => (None, parts),
    };
    let left_s = said
        .map(|(d, ago)| (i64::try_from(d.left_s).unwrap_or(i64::MAX).saturating_sub(*ago)).max(0));
    let over = || group.iter().filter(|w| w.state.is_over());
    let lengths: Vec<i64> = over()
        .filter_map(|w| Some(seconds(w.ended.as_ref())? - seconds(w.began.as_ref())?))
        .collect();
    let mean_s = (!lengths.is_empty())
        .then(|| lengths.iter().sum::<i64>() / i64::try_from(lengths.len()).unwrap_or(1));
    let behind = match &w.batch {
        Some(b) => b.of - b.at,
        // What an agent says counts all runs of its piece.
        None => 0,
    };
    let ends_s = left_s.and_then(|left| match (behind, mean_s) {
        (0, _) => Some(left),
        (n, Some(mean)) => Some(left.saturating_add(mean.saturating_mul(n))),
        (_, None) => None,
    });
    let in_future = |s: i64| utc::rfc3339(now_s.saturating_add(s));
    Some(UnderWay {
        campaign: w.name.clone(),
        system: w.system.clone(),
        state,
        at,
        of,
        not_complete: i64::try_from(over().filter(|w| w.state != WorkState::Done).count())
            .unwrap_or(0),
        part: said.map(|(d, _)| d.part.clone()).or_else(|| match w.parts.as_slice() {
            [part] => Some(part.clone()),
            _ => None,
        }),
        began: w.began.clone(),
        run_ends: left_s.map(in_future),
        ends: ends_s.map(in_future),
        said_s_ago: said.map(|(_, ago)| *ago),
        share: match &w.batch {
            Some(_) => share(at, of, said, state),
            // What the agent counts is all of its piece.
            None => said.map(within),
        },
        words: w.progress.clone(),
    })
}

/// How much of its run an agent had done, and has by now.
fn within((doing, ago_s): &(Doing, i64)) -> f64 {
    use tailbound_core::number::Real as _;
    let elapsed = doing.elapsed_s.real() + ago_s.real();
    (elapsed / (doing.elapsed_s.real() + doing.left_s.real()).max(1.0)).min(1.0)
}

/// How much of several pieces is done: the runs before this one, and of this one what its length says.
fn share(
    at: Option<i64>,
    of: Option<i64>,
    said: Option<&(Doing, i64)>,
    state: CampaignState,
) -> Option<f64> {
    use tailbound_core::number::Real as _;
    let (at, of) = (at?, of.filter(|of| *of > 0)?);
    let before = if state == CampaignState::Between { at } else { at - 1 };
    Some(((before.real() + said.map_or(0.0, within)) / of.real()).min(1.0))
}

#[cfg(test)]
mod tests {
    use tailbound_store::Batch;

    use super::*;

    const NOW_S: i64 = 1_795_608_000;

    fn piece(id: &str, state: WorkState, at: i64) -> Work {
        let time = |s: i64| Some(utc::rfc3339(NOW_S + s));
        Work {
            id: id.to_owned(),
            system: "press".to_owned(),
            name: "short".to_owned(),
            campaign: String::new(),
            parts: vec![format!("part-{at}")],
            scale: 1.0,
            cpus: None,
            handed_out_by: String::new(),
            created: String::new(),
            state,
            reason: None,
            lease: None,
            began: time(-100),
            ended: state.is_over().then(|| time(-40)).flatten(),
            progress: None,
            runs: Vec::new(),
            batch: Some(Batch { id: "b".to_owned(), at, of: 4 }),
        }
    }

    fn said(left_s: u64) -> BTreeMap<String, (Doing, i64)> {
        let doing = Doing { part: "part-3".to_owned(), at: 1, of: 1, elapsed_s: 40, left_s };
        [("c".to_owned(), (doing, 20))].into()
    }

    #[test]
    fn how_far_it_is_and_when_it_ends() {
        let all = [
            piece("c", WorkState::Running, 3),
            piece("b", WorkState::Failed, 2),
            piece("a", WorkState::Done, 1),
        ];
        let told = told(&all, &said(80), NOW_S);
        let [one] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(
            (one.at, one.of, one.not_complete, one.state),
            (Some(3), Some(4), 1, CampaignState::Running)
        );
        assert_eq!(one.part.as_deref(), Some("part-3"));
        assert_eq!(one.run_ends, Some(utc::rfc3339(NOW_S + 60)));
        // One more run, as long as the two before: 60 s.
        assert_eq!(one.ends, Some(utc::rfc3339(NOW_S + 120)));
        assert!(one.share.is_some_and(|s| (s - 0.625).abs() < 1e-9), "{one:?}");
    }

    #[test]
    fn what_an_older_agent_does_not_say_is_unknown() {
        let one = told(&[piece("c", WorkState::Running, 1)], &BTreeMap::new(), NOW_S);
        assert!(
            matches!(one.as_slice(), [u] if u.run_ends.is_none() && u.said_s_ago.is_none() && u.share == Some(0.0)),
            "{one:?}"
        );
        let alone = Work { batch: None, parts: Vec::new(), ..piece("c", WorkState::Running, 1) };
        let one = told(&[alone], &BTreeMap::new(), NOW_S);
        assert!(matches!(one.as_slice(), [u] if u.of.is_none() && u.share.is_none()), "{one:?}");
    }

    #[test]
    fn between_two_pieces_it_goes_on_and_after_the_last_it_is_over() {
        let of = |w: Work| told(&[w], &BTreeMap::new(), NOW_S).first().map(|u| u.state);
        assert_eq!(of(piece("a", WorkState::Done, 1)), Some(CampaignState::Between));
        assert_eq!(of(piece("a", WorkState::Waiting, 1)), Some(CampaignState::Waiting));
        assert_eq!(of(piece("a", WorkState::Done, 4)), None);
        assert_eq!(of(piece("a", WorkState::Lost, 1)), None);
        let old = Work {
            ended: Some("2026-01-01T00:00:00Z".to_owned()),
            ..piece("a", WorkState::Done, 1)
        };
        assert_eq!(of(old), None);
    }
}
