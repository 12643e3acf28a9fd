// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs made from a seed, for tests and examples: a lognormal body, a rare tail, missed
//! activations, loads, findings. No figure in them was measured anywhere.

use std::collections::BTreeMap;

use tailbound_core::plan::{Clock, Means};
use tailbound_core::record::{
    End, Event, ExceedanceRecord, Fact, Header, LoadRecord, SecondRecord, ThreadRecord, WarmUp,
    WindowRecord,
};
use tailbound_core::{Finding, Impact, Outcome, Plan, Policy, Requirement, Run, Verdict};

/// SplitMix64: a seed and nothing else decides the run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// Above 0, at most 1.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 1.0) / (1u64 << 53) as f64
    }
    pub(crate) fn normal(&mut self) -> f64 {
        let (u, v) = (self.unit(), self.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

/// What a run is made from.
pub(crate) struct Shape {
    pub(crate) seed: u64,
    pub(crate) cpus: u32,
    pub(crate) seconds: u64,
    pub(crate) per_second: u64,
    pub(crate) median_ns: f64,
    pub(crate) tail_ns: f64,
    pub(crate) early: bool,
    /// One stall on the last CPU, 0 for none.
    pub(crate) stall_ns: i64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            seed: 7,
            cpus: 2,
            seconds: 60,
            per_second: 1000,
            median_ns: 6200.0,
            tail_ns: 90_000.0,
            early: false,
            stall_ns: 4_310_000,
        }
    }
}

fn plan(shape: &Shape, interval_ns: i64) -> Plan {
    Plan {
        name: Some("desk machine under load".into()),
        probe: "cyclic".into(),
        options: std::collections::BTreeMap::new(),
        event: None,
        property: None,
        interval_ns,
        activations: shape.seconds * shape.per_second,
        warm_up_ns: 1_000_000_000,
        cpus: (0..shape.cpus).collect(),
        policy: Policy::Fifo(95),
        clock: Clock::Monotonic,
        means: Means::Nanosleep,
        loads: ["hackbench:groups=4", "memory"].iter().filter_map(|l| l.parse().ok()).collect(),
        requirement: Requirement { deadline_ns: Some(100_000), ..Requirement::default() },
        cpu_dma_latency_us: None,
        raw: false,
        paranoid: false,
        observe: None,
        blame: None,
        tasks: None,
        spread: None,
        timer_slack_ns: None,
        tune: None,
        work: None,
        until: None,
    }
}

fn machine() -> BTreeMap<String, Fact> {
    [
        ("host.name", Fact::of("desk")),
        ("cpu.model", Fact::of("Example CPU <2> & \"co\"")),
        ("cpu.online", Fact::of("0-1")),
        ("kernel.release", Fact::of("6.12.0-rt-amd64")),
        ("kernel.cmdline", Fact::of("root=/dev/sda1 ro quiet isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 threadirqs skew_tick=1 processor.max_cstate=1")),
        ("kernel.preempt", Fact::of("PREEMPT_RT")),
        ("clock.source", Fact::of("tsc")),
        ("power.governor", Fact::NotApplicable("no cpufreq driver is loaded".into())),
        ("hardware.smi_count", Fact::Unknown("permission denied reading MSR 0x34".into())),
        ("sched.rt_runtime_us", Fact::of(950_000)),
    ]
    .into_iter()
    .map(|(k, v)| (k.to_owned(), v))
    .collect()
}

/// A run of `shape`, with records, findings and a verdict to match.
pub(crate) fn run(shape: &Shape) -> Run {
    let interval_ns = 1_000_000_000 / i64::try_from(shape.per_second).unwrap_or(1000);
    let mut run = Run::new(Header {
        schema: tailbound_core::record::SCHEMA.into(),
        tool: "tailbound 0.2.0".into(),
        id: format!("20260101T120000Z-desk-{}", shape.seed),
        started: "2026-01-01T12:00:00Z".into(),
        command: [
            "tailbound",
            "measure",
            "--deadline",
            "100us",
            "--load",
            "hackbench:groups=4",
            "--load",
            "memory",
        ]
        .map(str::to_owned)
        .to_vec(),
        plan: plan(shape, interval_ns),
        machine: machine(),
        source: None,
        lab: None,
        round: None,
        purpose: None,
    });
    run.events.push(Event::new(0, "warm-up-over", ""));
    for thread in 0..shape.cpus {
        measure(&mut run, shape, thread, interval_ns);
    }
    loads(&mut run, shape);
    findings(&mut run);
    run.self_cost = [("clock_read_ns", 22.4), ("record_ns", 11.9)]
        .map(|(k, v)| (k.to_owned(), v))
        .into_iter()
        .collect();
    run.after = machine();
    run.after.insert("power.governor".into(), Fact::of("performance"));
    judge(&mut run);
    let measured_ns = i64::try_from(shape.seconds).unwrap_or(0) * 1_000_000_000;
    run.end = Some(End { reason: "complete".into(), measured_ns, lines: 0 });
    run
}

/// One value: body, and one in a thousand from a Pareto tail.
fn value(random: &mut Random, shape: &Shape, thread: u32) -> i64 {
    let body = shape.median_ns * (1.0 + 0.18 * f64::from(thread)) * (0.32 * random.normal()).exp();
    let tail = if random.unit() < 0.001 {
        shape.tail_ns * 0.25 * (random.unit().powf(-0.45) - 0.9)
    } else {
        0.0
    };
    let early = if shape.early && random.unit() < 0.05 { -2.1 * body } else { 0.0 };
    (body + tail + early) as i64
}

fn measure(run: &mut Run, shape: &Shape, thread: u32, interval_ns: i64) {
    let mut random = Random::new(shape.seed * 1000 + u64::from(thread));
    let mut t = ThreadRecord {
        thread,
        cpu: Some(thread),
        context: "user".into(),
        warm_up: Some(WarmUp { n: shape.per_second, missed: 0, max_ns: Some(412_345) }),
        ended: "complete".into(),
        ..ThreadRecord::default()
    };
    // One stall a run on the last CPU, longer than the interval: activations are missed.
    let stall = (shape.seconds * shape.per_second * 2 / 5, shape.stall_ns);
    let mut owed = 0u64;
    for second in 0..shape.seconds {
        let mut s = SecondRecord {
            thread,
            second,
            n: 0,
            max_ns: i64::MIN,
            argmax: 0,
            min_ns: i64::MAX,
            sum_ns: 0,
            missed: 0,
        };
        for k in 0..shape.per_second {
            let activation = second * shape.per_second + k;
            if owed > 0 {
                let behind =
                    stall.1 - i64::try_from(activation - stall.0).unwrap_or(0) * interval_ns;
                t.missed.add(behind.max(0));
                s.missed += 1;
                owed -= 1;
                continue;
            }
            let mut v = value(&mut random, shape, thread);
            if stall.1 > 0 && activation == stall.0 && thread + 1 == shape.cpus {
                v = stall.1;
                owed = u64::try_from(v / interval_ns).unwrap_or(0);
            }
            t.wakeup.add(v);
            if v > s.max_ns {
                (s.max_ns, s.argmax) = (v, activation);
            }
            s.min_ns = s.min_ns.min(v);
            (s.n, s.sum_ns) = (s.n + 1, s.sum_ns + v);
            if v > 100_000 {
                run.exceedances.push(ExceedanceRecord {
                    thread,
                    activation,
                    error_ns: v,
                    t_ns: i64::try_from(activation).unwrap_or(0) * interval_ns + v,
                    missed: owed,
                });
            }
        }
        if s.n > 0 {
            windows(run, thread, second, &s, &t);
            run.seconds.push(s);
        }
    }
    t.counters = [("minor_faults", 0), ("major_faults", 0), ("involuntary_switches", 3)]
        .map(|(k, v)| (k.to_owned(), v))
        .into_iter()
        .collect();
    run.threads.push(t);
}

/// Windows of 1, 10 and 60 s; their quantiles are those of everything so far, which is
/// enough to draw.
fn windows(run: &mut Run, thread: u32, second: u64, s: &SecondRecord, t: &ThreadRecord) {
    for (window_s, every) in [(1u32, 1), (10, 5), (60, 30)] {
        if !(second + 1).is_multiple_of(every) {
            continue;
        }
        let of_window = run
            .seconds
            .iter()
            .rev()
            .take_while(|r| r.thread == thread && r.second + u64::from(window_s) > second)
            .chain(std::iter::once(s));
        let (mut n, mut sum, mut max) = (0, 0, i64::MIN);
        for r in of_window {
            (n, sum, max) = (n + r.n + r.missed, sum + r.sum_ns, max.max(r.max_ns));
        }
        let mut values = BTreeMap::from([
            ("mean".to_owned(), sum as f64 / n as f64),
            ("max".to_owned(), max as f64),
        ]);
        // Every quantile walks the whole histogram: of a long run a few are enough.
        let few = second < 300 || second % 300 == 299;
        for p in [0.5, 0.99].into_iter().filter(|_| few) {
            if let Some(v) = tailbound_stats::quantile(&t.wakeup, p).ns() {
                values.insert(tailbound_stats::quantile::label(p), v);
            }
        }
        run.windows.push(WindowRecord { thread, window_s, second, n, values });
    }
}

fn loads(run: &mut Run, shape: &Shape) {
    let mut random = Random::new(shape.seed ^ 0xfeed);
    for second in 0..shape.seconds {
        for (load, name, unit, rate) in
            [(0, "hackbench", "messages", 412_000.0), (1, "memory", "accesses", 8.3e6)]
        {
            let stalled = load == 1 && second % 23 == 11;
            let count = rate * (1.0 + 0.04 * random.normal()) * if stalled { 0.2 } else { 1.0 };
            run.loads.push(LoadRecord {
                load,
                name: name.into(),
                t_ns: (i64::try_from(second).unwrap_or(0) + 1) * 1_000_000_000,
                span_ns: 1_000_000_000,
                count: count.max(0.0) as u64,
                unit: unit.into(),
            });
        }
    }
}

fn findings(run: &mut Run) {
    run.findings = vec![
        Finding::new("governor-unknown", Impact::Notice, "No cpufreq driver: the frequency may change unseen")
            .meaning("A CPU that slows down makes every path longer; whether it did cannot be told from here."),
        Finding::new("rt-throttling", Impact::Doubt, "Real-time throttling is on: 950 ms of every 1000 ms")
            .meaning("When real-time threads fill their share, the kernel stops them for up to 50 ms. A latency of that length may be the throttling, not the machine.")
            .remedy("Write -1 to /proc/sys/kernel/sched_rt_runtime_us for the time of the run, and put it back afterwards."),
        Finding::new("hypervisor", Impact::Notice, "The machine is virtual (\"KVM\"): the host may stop it at any time")
            .meaning("What the host does cannot be told from what this kernel does.")
            .remedy("Measure on the machine itself, or report the figures as those of a guest."),
    ];
}

fn judge(run: &mut Run) {
    let (wakeup, due) = run.total("user");
    let (beyond, beyond_unknown) = due.beyond(100_000);
    let missed = due.n - wakeup.n;
    let max = tailbound_core::units::format_ns_i64(due.max_ns.unwrap_or(0));
    let n = tailbound_core::units::grouped(due.n);
    let (outcome, sentence) = if beyond > 0 {
        (
            Outcome::NotMet,
            format!(
                "Not met: {beyond} of {n} activations came later than 100 µs, {missed} of them missed; the worst was {max}, on CPU {}.",
                run.header.plan.cpus.len() - 1
            ),
        )
    } else {
        (
            Outcome::Met,
            format!("Met: none of {n} activations came later than 100 µs; the latest was {max}."),
        )
    };
    run.verdict = Some(Verdict {
        outcome,
        sentence,
        statements: vec![
            "The figures are of this machine, under this load, for this minute.".into(),
        ],
        due: due.n,
        beyond,
        beyond_unknown,
    });
}
