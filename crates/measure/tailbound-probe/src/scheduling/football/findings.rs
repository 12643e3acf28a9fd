// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the games of a run come to, for people.
//!
//! Context: COLD, but for the sums themselves. Units: ns.

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::number::Real as _;

use super::super::ledger::Ledger;
use super::super::{count, figure, span};
use crate::thread_group::ProbeOutput;

/// A step of the offence in a game.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    /// Who.
    pub(super) player: usize,
    /// When, since the kick-off.
    pub(super) into_ns: i64,
    /// How long in all.
    pub(super) ran_ns: i64,
}

/// All games.
#[derive(Debug, Default)]
pub(super) struct Sum {
    pub(super) games: u64,
    /// Players of the offence that ran in a game, tolerated or not.
    pub(super) moved: u64,
    pub(super) longest_ns: i64,
    pub(super) stuck: u64,
    pub(super) ledger: Ledger<Proof>,
}

impl Sum {
    /// Findings and figures.
    pub(super) fn output(&self, side: usize, game_ns: i64) -> ProbeOutput {
        let mut output = ProbeOutput::default();
        let title = |n| format!("the offence ran {n} times while the defence wanted every CPU");
        output.findings.extend(
            self.ledger
                .finding("ball-moved", title, |p| {
                    format!(
                        "player {} ran for {}, {} after the kick-off",
                        p.player,
                        span(p.ran_ns),
                        span(p.into_ns)
                    )
                })
                .map(|f| {
                    f.remedy("A defender was ready and a less urgent task had its CPU: a wake-up or a return to sleep did not bring the most urgent tasks onto the CPUs. Short moves come from CPUs that are told of each other's tasks by interrupts (the scheduler feature RT_PUSH_IPI), which a hypervisor delays further; --tolerance allows for them.")
                }),
        );
        if self.stuck > 0 {
            output.findings.push(Finding::listed(
                "game-stuck",
                Impact::Violation,
                "a game did not end within seconds",
            ));
        }
        output.figures.extend([
            count(
                "games",
                self.games,
                &format!("of {} with {side} players on each side", span(game_ns)),
            ),
            count(
                "moves",
                self.moved,
                "players of the offence that ran in a game, the tolerated ones among them",
            ),
            figure(
                "longest-move",
                self.longest_ns.real(),
                "ns",
                "the longest that one of them ran in a game",
            ),
        ]);
        output
    }
}
