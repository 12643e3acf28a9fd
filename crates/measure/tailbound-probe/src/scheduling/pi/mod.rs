// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `pi`: does the holder of a lock inherit the priority of who waits for it?
//!
//! Context: SETUP in `check` and `begin`. Units: ns.
//! On each CPU three tasks make an inversion at every due activation: the least urgent holds a
//! lock, the most urgent wants it, one in between spins. The most urgent may be on another CPU: what it
//! asks for then takes an interrupt to the holder's. With inheritance the spinner must not
//! run before the urgent task has the lock. Now and then the same trial runs without
//! inheritance: it must show the inversion, or the others would prove nothing.
//! Source: futex(2) FUTEX_LOCK_PI; Sha, Rajkumar, Lehoczky: Priority Inheritance Protocols
//! (1990).

mod findings;
mod tasks;
mod trial;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tailbound_core::Context;
use tailbound_core::plan::Plan;
use tailbound_core::policy::Policy;
use tailbound_host::clock_id;
use tailbound_rt::cyclic::{LoopEnd, Schedule};
use tailbound_rt::recorder::Recorder;
use tailbound_sys::error::SysError;
use tailbound_sys::futex::{self, Locked, Scope};
use tailbound_sys::sched::gettid;

use super::bell::Closing;
use super::{Phase, of_phase, trials};
use crate::error::ProbeError;
use crate::kind::{PlantedFault, Prepared, ProbeKind, ProbeOption, Setup};
use crate::place::{Places, Where};
use crate::thread_group::{
    Finished, RecordSlot, Recorders, Running, ThreadContext, ThreadGroup, thread_spec,
};
use findings::Sum;
use tasks::{Group, LOCKS_MAX, Lengths, LockKind, Seating};
use trial::Seats;

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "pi",
    about: "priority inheritance: three tasks and a lock, with inheritance and without",
    from: "the urgent task, just before it asks for the lock (FUTEX_LOCK_PI) that another holds",
    to: "the holder, at its first instruction after that: it has inherited the priority",
    replaces: &["pi_stress", "LTP testpi-1, -2, -4, -7", "LTP pi_perf"],
    options: &[
        ProbeOption::new(
            "hold",
            "TIME",
            "200us",
            "the lock is held for so much of its holder's own time",
        ),
        ProbeOption::new("spin", "TIME", "300us", "so long the task in between spins"),
        ProbeOption::new(
            "chain",
            "N",
            "1",
            "locks in a chain: each holder but the first waits for the one before it",
        ),
        ProbeOption::new(
            "where",
            "PLACE",
            "same",
            "the urgent task's CPU, seen from the holder's: the `same`, or any `other`: the boost is then an interrupt to the holder's CPU",
        ),
        ProbeOption::new(
            "control",
            "N",
            "10",
            "every Nth trial is played without inheritance too; 0: none",
        ),
        ProbeOption::plant(
            "`no-inheritance`: locks without inheritance are taken for those with it",
        ),
    ],
    interval: "10ms",
    policy: None,
    event: Some("inversion"),
    property: Some(
        "no task of lower priority kept the most urgent one waiting for a lock with inheritance",
    ),
    hog: false,
    takes: &[],
    prepare,
};

/// Tasks are below the controller: urgent, spinner, links of the chain, holder.
const BELOW_THE_CHAIN: u8 = 3;

/// What the options say.
#[derive(Clone, Copy, Debug)]
struct Options {
    lengths: Lengths,
    links: usize,
    control: u64,
    planted: PlantedFault,
    place: Where,
    /// Of the controller.
    priority: u8,
}

impl Options {
    fn of(setup: &Setup<'_>) -> Result<Self, ProbeError> {
        let options = setup.options();
        let chain = options.count("chain", 1..=LOCKS_MAX as u64)?;
        let links = usize::try_from(chain).unwrap_or(1).saturating_sub(1);
        let lowest = BELOW_THE_CHAIN + u8::try_from(links).unwrap_or(0) + 1;
        let planted = options.plant("no-inheritance")?;
        Ok(Self {
            lengths: Lengths {
                hold_ns: options.time_ns("hold")?,
                spin_ns: options.time_ns("spin")?,
            },
            links,
            control: options.count("control", 0..=u64::from(u32::MAX))?,
            planted,
            place: match options.word("where", &["same", "other"])? {
                0 => Where::Same,
                _ => Where::Other,
            },
            priority: super::controller_priority(setup.plan, lowest)?,
        })
    }

    fn below(&self, steps: u8) -> Policy {
        Policy::Fifo(self.priority.saturating_sub(steps).max(1))
    }
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = Options::of(setup)?;
    let busy = options.lengths.hold_ns.saturating_add(options.lengths.spin_ns);
    let busy_ns = if options.control == 0 { busy } else { busy.saturating_mul(2) };
    let (interval_ns, least_ns) = (setup.plan.interval_ns, busy_ns.saturating_mul(2));
    if least_ns > interval_ns {
        return Err(ProbeError::TrialTooLong { busy_ns, interval_ns, least_ns });
    }
    super::realtime_allowed(setup, options.priority)?;
    let word = AtomicU32::new(1);
    match futex::try_lock_pi(&word, gettid(), Scope::Private) {
        Locked::Refused(errno) if errno == super::ENOSYS => Err(ProbeError::NoPiLocks),
        _ => Ok(Prepared::with(options, begin)),
    }
}

fn begin(setup: &Setup<'_>, options: Options) -> Result<Running, ProbeError> {
    let mut threads = setup.threads()?;
    let sum = Arc::new(Mutex::new(Sum::default()));
    let cpus = setup.cpus();
    let places = Places::look(setup.root, setup.plan);
    for (cpu, place) in cpus.iter().zip(0u32..) {
        let urgent_cpu = places.second(*cpu, options.place)?;
        let seats = Seats { holder_cpu: *cpu, urgent_cpu };
        one_cpu(&mut threads, setup.plan, options, seats, (place, cpus.len()), &sum)?;
    }
    threads.after(move |_| {
        let sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        let priority = |policy| if let Policy::Fifo(p) = policy { p } else { 0 };
        let steps = BELOW_THE_CHAIN + u8::try_from(options.links).unwrap_or(0);
        let priorities = [steps, 2, 1].map(|s| priority(options.below(s)));
        sum.output(priorities, options.planted, Seating::of(options.place))
    });
    threads.release()
}

/// Controller, tasks and slots of one CPU.
fn one_cpu(
    threads: &mut ThreadGroup,
    plan: &Plan,
    options: Options,
    seats: Seats,
    (place, of): (u32, usize),
    sum: &Arc<Mutex<Sum>>,
) -> Result<(), ProbeError> {
    let seating = Seating::of(options.place);
    let group = Arc::new(Group::new(seating));
    let clock = clock_id(plan.clock);
    let Options { lengths, links, .. } = options;
    let Seats { holder_cpu: cpu, urgent_cpu } = seats;
    let at = |steps| thread_spec(options.below(steps), vec![cpu]);
    let beside_urgent = || thread_spec(options.below(1), vec![urgent_cpu]);
    let lowest = BELOW_THE_CHAIN + u8::try_from(links).unwrap_or(0);
    let g = Arc::clone(&group);
    threads.helper("urgent task", beside_urgent(), move |s| {
        tasks::high(&g, links, clock, s.stop());
        Ok(())
    })?;
    if seating == Seating::Across {
        let g = Arc::clone(&group);
        threads.helper("witness", beside_urgent(), move |s| {
            tasks::witness(&g, clock, s.stop());
            Ok(())
        })?;
    }
    let g = Arc::clone(&group);
    threads.helper("spinner", at(2), move |s| {
        tasks::middle(&g, lengths, clock, s.stop());
        Ok(())
    })?;
    for (own, steps) in (1..=links).zip((3..lowest).rev()) {
        let g = Arc::clone(&group);
        threads.helper("link of the chain", at(steps), move |s| {
            tasks::link(&g, own, s.stop());
            Ok(())
        })?;
    }
    let g = Arc::clone(&group);
    threads.helper("holder", at(lowest), move |s| {
        tasks::low(&g, lengths, clock, s.stop());
        Ok(())
    })?;
    let of = i64::try_from(of.max(1)).unwrap_or(1);
    let phase_ns = plan.interval_ns / of * i64::from(place);
    let slot = |n: u32, context| RecordSlot {
        phase_ns,
        context,
        ..RecordSlot::user(place * 4 + n, Some(cpu))
    };
    let mut own_thread = threads.thread(slot(0, Context::User))?;
    let beside = [
        own_thread.beside(slot(1, Context::HandOver))?,
        own_thread.beside(slot(2, Context::Wait))?,
        own_thread.beside(slot(3, Context::NoInheritance))?,
    ];
    let controller = Controller { group, options, clock, seats, beside, sum: Arc::clone(sum) };
    let own = thread_spec(plan.policy, vec![urgent_cpu]);
    own_thread.start(own, move |thread| controller.run(thread))
}

/// Where the controller of one CPU works.
struct Controller {
    group: Arc<Group>,
    options: Options,
    clock: i32,
    seats: Seats,
    beside: [Arc<Recorders>; 3],
    sum: Arc<Mutex<Sum>>,
}

impl Controller {
    fn run(&self, thread: &ThreadContext) -> Result<Finished, SysError> {
        let _closing = Closing(self.group.bells());
        let mut phase = Phase::WarmUp;
        let mut found = Sum::default();
        let finished = thread.phases(|schedule, recorder| {
            found = Sum::default();
            let ended = self.phase(schedule, recorder, thread, (phase, &mut found));
            phase = Phase::Measurement;
            ended
        });
        self.sum.lock().unwrap_or_else(PoisonError::into_inner).add(found);
        finished
    }

    fn phase(
        &self,
        schedule: &Schedule,
        recorder: &Recorder,
        thread: &ThreadContext,
        (phase, sum): (Phase, &mut Sum),
    ) -> LoopEnd {
        let [hand_over, wait, control] = self.beside.each_ref().map(|r| of_phase(r, phase));
        let mut control = trials::writer(control, schedule);
        let Options { lengths, links, planted, control: every, .. } = self.options;
        let play = |lock| trial::play(&self.group, links, lock, lengths, self.clock);
        let tried = LockKind::with(planted);
        let mut writers = [recorder, hand_over, wait].map(|r| trials::writer(r, schedule));
        let ended = trials::run(self.clock, schedule, &mut writers, thread.stop(), |n, writers| {
            let Some(trial) = play(tried) else {
                sum.stuck += u64::from(!thread.stop().load(Ordering::Relaxed));
                return false;
            };
            sum.enter(n, self.seats, &trial);
            let times = [trial.boost(), trial.hand_over(), trial.wait()];
            times.iter().zip(writers).for_each(|(timed, writer)| timed.enter(n, writer));
            if every != 0 && n.is_multiple_of(every) {
                let Some(trial) = play(LockKind::Plain) else { return true };
                trial.wait().enter(n, &mut control);
                sum.enter_control(self.seats, &trial);
            }
            true
        });
        control.finish();
        ended
    }
}
