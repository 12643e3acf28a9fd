// SPDX-License-Identifier: MIT OR Apache-2.0
//! The field, and what defence, offence and fans do on it.
//!
//! Context: HOT (no allocation; the mutexes around what a player saw are never contended: it
//! writes before it reports, the referee reads when all have). Units: ns.
//! Not here: when a game begins and ends, and what follows from it (the referee).

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use tailbound_rt::cyclic::Port as _;
use tailbound_sys::clock::{self, CLOCK_MONOTONIC, Nanosleep};

use super::super::bell::Bell;
use super::super::pace::Pace;
use super::super::trials::Timed;

/// Players that have not come or gone by then never will.
pub(super) const PATIENCE_NS: i64 = 3_000_000_000;
/// A fan stays on the field between these.
const FAN_RUNS_NS: (i64, i64) = (20_000, 300_000);
/// And away between these.
const FAN_RESTS_NS: (i64, i64) = (100_000, 3_000_000);

/// What all players share.
#[derive(Debug)]
pub(super) struct Field {
    defence_bell: Bell,
    offence_bell: Bell,
    fans_bell: Bell,
    referee_bell: Bell,
    /// Players that have yet to come, or to go.
    awaited: AtomicU32,
    /// From the call of the defence to the final whistle.
    playing: AtomicBool,
    /// When each defender came.
    came_ns: Vec<AtomicI64>,
    moves: Vec<Mutex<Pace>>,
    fans: usize,
}

impl Field {
    /// An empty field for `side` players on each side.
    pub(super) fn new(side: usize, fans: usize) -> Self {
        Self {
            defence_bell: Bell::default(),
            offence_bell: Bell::default(),
            fans_bell: Bell::default(),
            referee_bell: Bell::default(),
            awaited: AtomicU32::new(0),
            playing: AtomicBool::new(false),
            came_ns: (0..side).map(|_| AtomicI64::new(0)).collect(),
            moves: (0..side).map(|_| Mutex::default()).collect(),
            fans,
        }
    }

    /// All bells.
    pub(super) fn bells(&self) -> Vec<&Bell> {
        vec![&self.defence_bell, &self.offence_bell, &self.fans_bell, &self.referee_bell]
    }

    fn await_players(&self, n: usize) {
        self.awaited.store(u32::try_from(n).unwrap_or(u32::MAX), Ordering::Release);
    }

    /// A player has come, or gone: the last one tells the referee.
    fn report(&self) {
        if self.awaited.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.referee_bell.ring();
        }
    }

    /// Calls the defence; is all of it on the field by `until_ns`?
    pub(super) fn line_up(&self, until_ns: i64) -> bool {
        self.playing.store(true, Ordering::Release);
        self.await_players(self.came_ns.len());
        let rung = self.referee_bell.count();
        self.defence_bell.ring();
        self.referee_bell.wait_until(rung, until_ns)
    }

    /// When the last defender came.
    pub(super) fn on_the_field_ns(&self) -> i64 {
        self.came_ns.iter().map(|t| t.load(Ordering::Acquire)).max().unwrap_or(0)
    }

    /// Calls offence and fans, and whistles the game off after `game_ns`; when it was.
    pub(super) fn play(&self, game_ns: i64, clock_id: i32, stop: &AtomicBool) -> Timed {
        // Everybody leaves afterwards.
        self.await_players(2 * self.came_ns.len() + self.fans);
        let from_ns = clock::now_ns(clock_id);
        self.offence_bell.ring();
        self.fans_bell.ring();
        let mut port = Nanosleep(clock_id);
        while port.now_ns() < from_ns + game_ns && !stop.load(Ordering::Relaxed) {
            port.sleep_until(from_ns + game_ns);
        }
        self.playing.store(false, Ordering::Release);
        Timed { from_ns, to_ns: clock::now_ns(clock_id) }
    }

    /// Has everybody left by `until_ns`?
    pub(super) fn leave(&self, until_ns: i64) -> bool {
        while self.awaited.load(Ordering::Acquire) != 0 {
            let rung = self.referee_bell.count();
            if self.awaited.load(Ordering::Acquire) != 0
                && !self.referee_bell.wait_until(rung, until_ns)
            {
                return false;
            }
        }
        true
    }

    /// Each player of the offence, and when it ran in the last game.
    pub(super) fn moves(&self) -> impl Iterator<Item = (usize, Pace)> {
        let read = |m: &Mutex<Pace>| *m.lock().unwrap_or_else(PoisonError::into_inner);
        self.moves.iter().map(read).enumerate()
    }
}

/// A defender: takes a CPU until the final whistle.
pub(super) fn defender(field: &Field, own: usize, clock_id: i32, stop: &AtomicBool) {
    let mut rings = 0;
    while let Some(ring) = field.defence_bell.wait(rings, stop) {
        rings = ring;
        if let Some(came) = field.came_ns.get(own) {
            came.store(clock::now_ns(clock_id), Ordering::Release);
        }
        field.report();
        while field.playing.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        field.report();
    }
}

/// A player of the offence: each of its steps while the game is on moves the ball.
pub(super) fn offence(field: &Field, own: usize, clock_id: i32, stop: &AtomicBool) {
    let mut rings = 0;
    while let Some(ring) = field.offence_bell.wait(rings, stop) {
        rings = ring;
        let mut moves = Pace::default();
        while field.playing.load(Ordering::Acquire) && !stop.load(Ordering::Relaxed) {
            moves.step(clock::now_ns(clock_id));
        }
        if let Some(place) = field.moves.get(own) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = moves;
        }
        field.report();
    }
}

/// A fan: runs onto the field and off it again, at times nobody can foresee.
pub(super) fn fan(field: &Field, own: u32, stop: &AtomicBool) {
    let mut rings = 0;
    let mut state = u64::from(own).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut between = |(least, most): (i64, i64)| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        least + i64::try_from(state % (most - least).unsigned_abs()).unwrap_or(0)
    };
    let now = || clock::now_ns(CLOCK_MONOTONIC);
    while let Some(ring) = field.fans_bell.wait(rings, stop) {
        rings = ring;
        let on = || field.playing.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed);
        while on() {
            let until = now() + between(FAN_RUNS_NS);
            while on() && now() < until {}
            Nanosleep(CLOCK_MONOTONIC).sleep_until(now() + between(FAN_RESTS_NS));
        }
        field.report();
    }
}
