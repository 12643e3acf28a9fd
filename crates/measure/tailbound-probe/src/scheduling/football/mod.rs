// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `sched-football`: the offence must never run while the defence wants every CPU.
//!
//! Context: SETUP in `check` and `begin`, HOT in the referee's games. Units: ns.
//! On N CPUs N defenders spin, and N players of lower priority stand ready to move the ball;
//! fans of higher priority run onto the field and off it again. None of the players is pinned,
//! so every change must bring the N most urgent tasks onto the N CPUs. The referee, above
//! all, begins and ends each game; one step of the offence in between moves the ball.
//! Source: sched(7); Steven Rostedt, John Stultz: the game as a test of the push and pull logic.

mod findings;
mod players;

use std::sync::{Arc, Mutex, PoisonError};

use tailbound_core::number::Real as _;
use tailbound_core::policy::Policy;
use tailbound_host::clock_id;
use tailbound_sys::clock::{self, CLOCK_MONOTONIC};
use tailbound_sys::error::SysError;

use super::bell::Closing;
use super::{span, trials};
use crate::error::ProbeError;
use crate::kind::{Prepared, ProbeKind, ProbeOption, Setup};
use crate::thread_group::{Finished, RecordSlot, Running, ThreadContext, ThreadGroup, thread_spec};
use findings::{Proof, Sum};
use players::Field;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "sched-football",
    about: "the N most urgent of many spinning tasks have the N CPUs, while other tasks come and go",
    from: "the referee, just before it calls the defence (futex wake)",
    to: "the last defender, at its first instruction on the field",
    replaces: &["LTP sched_football"],
    options: &[
        ProbeOption::new("game", "TIME", "100ms", "length of a game, at most 300ms"),
        ProbeOption::new("defence", "N", "30", "priority of the defence"),
        ProbeOption::new("offence", "N", "15", "priority of the offence"),
        ProbeOption::new("fan", "N", "50", "priority of the fans"),
        ProbeOption::new("fans", "N", "2", "number of fans, 0 to 64"),
        ProbeOption::new(
            "tolerance",
            "TIME",
            "1ns",
            "the offence may run so long a game: kernels move tasks by interrupts, which take their time",
        ),
        ProbeOption::plant("`demoted`: the defence plays below the offence"),
    ],
    interval: "250ms",
    policy: None,
    event: Some("game"),
    property: Some("the offence never ran while the defence wanted every CPU"),
    hog: false,
    takes: &[],
    prepare,
};

/// The guard against runaway threads strikes at 0.5 s without a sleep.
const GAME_MAX_NS: i64 = 300_000_000;
/// Share of the real-time throttle's budget a game may use.
const THROTTLE_SHARE: f64 = 0.9;

/// What the options say.
#[derive(Clone, Copy, Debug)]
struct Options {
    game_ns: i64,
    tolerance_ns: i64,
    defence: u8,
    offence: u8,
    fan: u8,
    fans: u32,
    priority: u8,
}

impl Options {
    fn of(setup: &Setup<'_>) -> Result<Self, ProbeError> {
        let options = setup.options();
        let priority = |name| -> Result<u8, ProbeError> {
            options.count(name, 1..=97).map(|n| u8::try_from(n).unwrap_or(1))
        };
        let game_ns = options.time_ns("game")?;
        if game_ns > GAME_MAX_NS {
            return Err(options.wrong(
                "game",
                format!(
                    "at most {}: longer, and the guard against runaway threads would end it",
                    span(GAME_MAX_NS)
                ),
            ));
        }
        let (mut defence, offence, fan) =
            (priority("defence")?, priority("offence")?, priority("fan")?);
        if offence >= defence {
            return Err(options.wrong("offence", format!("must be below --defence {defence}")));
        }
        if fan <= defence {
            return Err(options.wrong("fan", format!("must be above --defence {defence}")));
        }
        match options.text("plant") {
            None => {}
            Some("demoted") => defence = offence.saturating_sub(1).max(1),
            Some(_) => return Err(options.wrong("plant", "choose demoted")),
        }
        Ok(Self {
            game_ns,
            tolerance_ns: options.time_ns("tolerance")?,
            defence,
            offence,
            fan,
            fans: u32::try_from(options.count("fans", 0..=64)?).unwrap_or(0),
            priority: super::controller_priority(setup.plan, fan.saturating_add(1))?,
        })
    }
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = Options::of(setup)?;
    let interval_ns = setup.plan.interval_ns;
    if options.game_ns.saturating_mul(10) > interval_ns.saturating_mul(9) {
        return Err(ProbeError::NoPause { game_ns: options.game_ns, interval_ns });
    }
    if let Some((runtime_us, period_us)) = throttle(setup)
        && options.game_ns.real() / interval_ns.real() > THROTTLE_SHARE * runtime_us / period_us
    {
        let game_ns = options.game_ns;
        return Err(ProbeError::NearThrottle { game_ns, interval_ns, runtime_us, period_us });
    }
    super::realtime_allowed(setup, options.priority)?;
    Ok(Prepared::with(options, begin))
}

/// Budget and period of the real-time throttle in µs, if there is one.
fn throttle(setup: &Setup<'_>) -> Option<(f64, f64)> {
    let number = |name: &str| setup.root.parsed::<f64>(&format!("/proc/sys/kernel/{name}")).ok();
    let (runtime, period) = (number("sched_rt_runtime_us")?, number("sched_rt_period_us")?);
    (runtime >= 0.0 && runtime < period).then_some((runtime, period))
}

fn begin(setup: &Setup<'_>, options: Options) -> Result<Running, ProbeError> {
    let cpus = setup.cpus();
    let mut threads: ThreadGroup = setup.threads()?;
    let field = Arc::new(Field::new(cpus.len(), usize::try_from(options.fans).unwrap_or(0)));
    let clock = clock_id(setup.plan.clock);
    let spec = |priority| thread_spec(Policy::Fifo(priority), cpus.clone());
    for i in 0..cpus.len() {
        let f = Arc::clone(&field);
        threads.helper("defender", spec(options.defence), move |s| {
            players::defender(&f, i, clock, s.stop());
            Ok(())
        })?;
        let f = Arc::clone(&field);
        threads.helper("player of the offence", spec(options.offence), move |s| {
            players::offence(&f, i, clock, s.stop());
            Ok(())
        })?;
    }
    for i in 0..options.fans {
        let f = Arc::clone(&field);
        threads.helper("fan", spec(options.fan), move |s| {
            players::fan(&f, i, s.stop());
            Ok(())
        })?;
    }
    let sum = Arc::new(Mutex::new(Sum::default()));
    let referee = Referee { field, options, clock, sum: Arc::clone(&sum) };
    let own = thread_spec(setup.plan.policy, cpus.clone());
    threads.measured(RecordSlot::user(0, None), own, move |thread| referee.run(thread))?;
    let players = (cpus.len(), options);
    threads.after(move |_| {
        sum.lock().unwrap_or_else(PoisonError::into_inner).output(players.0, players.1.game_ns)
    });
    threads.release()
}

/// Above all players.
struct Referee {
    field: Arc<Field>,
    options: Options,
    clock: i32,
    sum: Arc<Mutex<Sum>>,
}

impl Referee {
    fn run(&self, thread: &ThreadContext) -> Result<Finished, SysError> {
        let _closing = Closing(self.field.bells());
        let mut found = Sum::default();
        let finished = thread.phases(|schedule, recorder| {
            found = Sum::default();
            let mut writers = [trials::writer(recorder, schedule)];
            trials::run(self.clock, schedule, &mut writers, thread.stop(), |n, writers| {
                let Some(kick_off) = self.game(n, thread, &mut found) else { return false };
                writers.iter_mut().for_each(|w| kick_off.enter(n, w));
                true
            })
        });
        *self.sum.lock().unwrap_or_else(PoisonError::into_inner) = found;
        finished
    }

    /// One game; `None` when it did not end.
    fn game(&self, n: u64, thread: &ThreadContext, sum: &mut Sum) -> Option<trials::Timed> {
        let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(players::PATIENCE_NS);
        let from_ns = clock::now_ns(self.clock);
        if !self.field.line_up(until) {
            sum.stuck += u64::from(!thread.stop().load(std::sync::atomic::Ordering::Relaxed));
            return None;
        }
        let to_ns = self.field.on_the_field_ns();
        let whistle = self.field.play(self.options.game_ns, self.clock, thread.stop());
        if !self.field.leave(until.saturating_add(self.options.game_ns)) {
            sum.stuck += u64::from(!thread.stop().load(std::sync::atomic::Ordering::Relaxed));
            return None;
        }
        sum.games += 1;
        for (player, moved) in self.field.moves() {
            let ran_ns = moved.between_ns(i64::MIN, i64::MAX);
            sum.longest_ns = sum.longest_ns.max(ran_ns);
            let Some(first) = moved.stretches().first() else { continue };
            sum.moved += 1;
            if ran_ns >= self.options.tolerance_ns {
                let into_ns = first.from_ns - whistle.from_ns;
                sum.ledger.enter(n, Proof { player, into_ns, ran_ns });
            }
        }
        Some(trials::Timed { from_ns, to_ns })
    }
}
