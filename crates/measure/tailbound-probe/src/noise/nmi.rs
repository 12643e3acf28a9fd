// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `nmi`: how soon the kernel is in the handler of an interrupt that nothing can mask.
//!
//! Context: SETUP; HOT in `tailbound_rt::strike`. Units: ns, ticks, cycles.
//! A performance counter of the CPU overflows while a loop in user mode reads the time counter
//! as fast as it can; on x86 that is an NMI. The kernel stamps the sample in the handler. When the
//! counter overflowed nobody can say, so the way begins at the last read that user mode came to.
//! `--source clock` takes the kernel's own timer instead: the same way by an ordinary interrupt,
//! to be set beside it; it is labelled so.
//! Source: perf_event_open(2).

use std::sync::Arc;

use tailbound_core::number::Real as _;
use tailbound_core::{Context, Finding, Impact};
use tailbound_host::clock_id;
use tailbound_rt::strike::{self, Struck, Target};
use tailbound_rt::ticks::{Counter, Scale, Taker};
use tailbound_sys::perf::{Samples, Source};
use tailbound_sys::{SysError, counter};

use crate::error::ProbeError;
use crate::figures::of_cpu;
use crate::kind::{Prepared, ProbeKind, ProbeOption, Setup};
use crate::noise::gauge::{Gauge, KernelEntries};
use crate::noise::polled;
use crate::noise::poller::Poller;
use crate::thread_group::{Finished, RecordSlot, Recorders, Running, ThreadContext, thread_spec};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "nmi",
    about: "How soon is the kernel in the handler of an interrupt that nothing can mask?",
    from: "the last read of the CPU's time counter that user mode came to before the interrupt",
    to: "the stamp that the kernel puts on the sample in the handler",
    replaces: &[],
    options: &[
        ProbeOption::new(
            "source",
            "WORD",
            "cycles",
            "`cycles`: a counter of the CPU that overflows (an NMI on x86); `clock`: a timer of the kernel (an ordinary interrupt)",
        ),
        ProbeOption::new(
            "every",
            "TIME",
            "1ms",
            "from one sample to the next, of the loop's own time",
        ),
        ProbeOption::new(
            "siblings",
            "WORD",
            "no",
            "`yes`: measure both threads of a core, and mark the run",
        ),
    ],
    interval: "10ms",
    policy: Some("other"),
    event: Some("window"),
    property: None,
    hog: true,
    takes: &[],
    prepare,
};

/// A turn longer than an undisturbed one by this may hold a strike: an interrupt costs more.
const THRESHOLD_NS: i64 = 100;
/// The kernel's stamp and our counter may be apart by so much.
const APART_NS: i64 = 200;
/// Samples more often than this would be nothing but samples.
const EVERY_NS_MIN: i64 = 50_000;

fn source(setup: &Setup<'_>) -> Result<Source, ProbeError> {
    let at = setup.options().word("source", &["cycles", "clock"])?;
    Ok(if at == 0 { Source::Cycles } else { Source::Clock })
}

fn every_ns(setup: &Setup<'_>) -> Result<i64, ProbeError> {
    let every = setup.options().time_ns("every")?;
    if every < EVERY_NS_MIN {
        return Err(setup
            .options()
            .wrong("every", "less than 50us: there would be nothing but samples"));
    }
    Ok(every)
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let every_ns = every_ns(setup)?;
    let source = source(setup)?;
    polled::check_busy(setup)?;
    Samples::open(source, 1 << 30).map_err(match source {
        Source::Cycles => ProbeError::NoCycles,
        Source::Clock => ProbeError::NoClockEvent,
    })?;
    Ok(Prepared::with((source, every_ns), begin))
}

/// The loop's view: the counter, and the stamps of the handler as times of the counter.
struct Port {
    samples: Samples,
    scale: Scale,
}

impl Counter for Port {
    #[inline(always)]
    fn ticks(&mut self) -> u64 {
        counter::ticks()
    }
    fn taker(&mut self) -> Taker {
        Taker::Unknown
    }
    fn arm(&mut self) {}
}

impl Struck for Port {
    fn struck(&mut self) -> Option<u64> {
        let stamp_ns = self.samples.take()?;
        // Both clocks read anew: over a few µs no error of the frequency shows.
        let now = counter::pair(3);
        Some(now.ticks.wrapping_sub(self.scale.ticks(now.ns.saturating_sub(stamp_ns))))
    }
}

struct Body {
    cpu: u32,
    source: Source,
    period: u64,
    gauge: Gauge,
    clock: i32,
    ways: Arc<Recorders>,
    back: Arc<Recorders>,
}

impl Body {
    fn run(self, thread: &ThreadContext) -> Result<Finished, SysError> {
        let scale = self.gauge.scale();
        let turn_ticks = Poller::new(KernelEntries::Hidden, None, 0).turn_ticks();
        let samples = Samples::open(self.source, self.period)?;
        samples.enable()?;
        let mut port = Port { samples, scale };
        let mut seen = None;
        let mut measured = false;
        let finished = thread.phases(|schedule, windows| {
            let (ways, back) = if measured {
                (&self.ways.measured, &self.back.measured)
            } else {
                (&self.ways.warm_up, &self.back.warm_up)
            };
            let target = Target {
                origin: self.gauge.at(self.clock, schedule.first_ns),
                scale,
                threshold_ticks: turn_ticks.saturating_add(scale.ticks(THRESHOLD_NS)),
                apart_ticks: scale.ticks(APART_NS),
                schedule: *schedule,
                windows,
                ways,
                back,
                stop: thread.stop(),
            };
            let (ended, strikes) = strike::run(&mut port, &target);
            seen = measured.then_some(strikes);
            measured = true;
            ended
        })?;
        let Some(strikes) = seen else { return Ok(finished) };
        let (cpu, lost) = (self.cpu, port.samples.lost());
        thread.output(|output| {
            let mut add = |name: &str, n: u64, note: &str| {
                output.figures.push(of_cpu(name, cpu, n.real(), "1", note));
            };
            add("samples", strikes.known, "interrupts whose way is known");
            add("samples-stray", strikes.stray, "stamps that lie in no gap of the loop: left out");
            add("samples-lost", lost, "samples for which the kernel found no room");
            if strikes.known == 0 {
                output.findings.push(Finding::listed(
                    &format!("no-sample-{cpu}"),
                    Impact::Unfit,
                    format!("CPU {cpu}: the source caused no interrupt"),
                ));
            }
        });
        Ok(finished)
    }
}

fn begin(setup: &Setup<'_>, (source, every_ns): (Source, i64)) -> Result<Running, ProbeError> {
    let gauge = Gauge::take()?;
    let period = match source {
        Source::Clock => every_ns.unsigned_abs(),
        // Cycles go at about the counter's rate; the exact one does not matter.
        Source::Cycles => gauge.scale().ticks(every_ns).max(1),
    };
    let mut threads = setup.threads()?.busy();
    let cpus = setup.cpus();
    let n = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    for (&cpu, thread) in cpus.iter().zip(0u32..) {
        let on = |thread, context| RecordSlot { context, ..RecordSlot::user(thread, Some(cpu)) };
        let mut poller = threads.thread(on(thread, Context::User))?;
        let body = Body {
            cpu,
            source,
            period,
            gauge,
            clock: clock_id(setup.plan.clock),
            ways: poller.beside(on(
                thread + n,
                if source == Source::Cycles { Context::Nmi } else { Context::Irq },
            ))?,
            back: poller.beside(on(thread + 2 * n, Context::Back))?,
        };
        let spec = thread_spec(setup.plan.policy, vec![cpu]);
        poller.start(spec, move |thread| body.run(thread))?;
    }
    polled::release(setup, threads, gauge, move |output| {
        let (title, meaning) = match (source, cfg!(target_arch = "x86_64")) {
            (Source::Cycles, true) => (
                "timed into the handler of an NMI",
                "A performance counter's overflow: no interrupt lock of the kernel delays it.",
            ),
            (Source::Cycles, false) => (
                "timed into the handler of a performance counter's interrupt",
                "On this architecture it is an NMI only where the kernel has pseudo-NMIs for it.",
            ),
            (Source::Clock, _) => (
                "timed into the handler of an ordinary timer interrupt, not of an NMI",
                "Code that keeps interrupts off delays it; the loop itself never does.",
            ),
        };
        output.findings.push(Finding::new("nmi-source", Impact::Notice, title).meaning(meaning));
    })
}
