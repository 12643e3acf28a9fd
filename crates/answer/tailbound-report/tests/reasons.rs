// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer says why without tracing: planted steal time and a planted period are told with their figures, a run
//! without either says nothing of them, and one command ends the answer.

mod common;

use common::{Shape, run};
use tailbound_core::blame::{BlamePart, BlameRecord, Cause, Phase, Sureness};
use tailbound_core::disturbance::{
    CpuTaken, DisturbanceKind, DisturbanceRecord, MachineTaken, RanAbove,
};
use tailbound_core::plan::Means;
use tailbound_core::record::{ExceedanceRecord, Fact, WindowRecord};
use tailbound_core::recurring::{Recurring, RecurringKind};
use tailbound_core::{Outcome, Run};
use tailbound_report::next_step::NextStep;
use tailbound_report::{Color, Style, html, json, reasons, text};
use tailbound_stats::Analysis;
use tailbound_stats::coincidence::Amount;

const STYLE: Style = Style { width: 100, color: Color::Off };

fn quiet() -> Run {
    let mut run = run(&Shape { seconds: 60, per_second: 100, stall_ns: 0, ..Shape::default() });
    run.findings.clear();
    run
}

/// Late by 3 ms in seven seconds, in which the hypervisor took 10 or 20 ms of that CPU.
fn with_steal() -> Run {
    let mut run = quiet();
    for second in [3u64, 11, 17, 26, 34, 41, 52] {
        for s in run.seconds.iter_mut().filter(|s| s.second == second && s.thread == 1) {
            s.max_ns = 3_000_000;
        }
        let taken = CpuTaken {
            cpu: 1,
            steal_ns: if second % 2 == 0 { 20_000_000 } else { 10_000_000 },
            ..CpuTaken::default()
        };
        let t_ns = i64::try_from(second + 1).unwrap() * 1_000_000_000 + 5_000_000;
        run.disturbances.push(DisturbanceRecord {
            t_ns,
            span_ns: 1_000_000_000,
            cpus: vec![taken],
            ..DisturbanceRecord::default()
        });
    }
    run
}

/// Late on CPU 0 every 2.5 s, on the run's grid of 10 ms.
fn with_period() -> Run {
    let mut run = quiet();
    for i in 0..23u64 {
        let activation = 40 + i * 250;
        let t_ns = i64::try_from(activation).unwrap() * 10_000_000 + 200_000;
        let error_ns = 200_000;
        run.exceedances.push(ExceedanceRecord { thread: 0, activation, error_ns, t_ns, missed: 0 });
    }
    run
}

fn blamed(t_ns: i64, who: &str) -> BlameRecord {
    let part = BlamePart {
        phase: Phase::Switch,
        ns: 200_000,
        cause: Cause::Workqueue,
        who: who.to_owned(),
        sureness: Sureness::Sure,
        ..BlamePart::default()
    };
    BlameRecord {
        t_ns,
        latency_ns: 200_000,
        cpu: Some(0),
        parts: vec![part],
        ..BlameRecord::default()
    }
}

#[test]
fn steal_time_with_the_latest_seconds_is_the_second_sentence() {
    let run = with_steal();
    let analysis = Analysis::of(&run);
    let told = reasons::sentences(&analysis);
    let first = told.first().expect("it is told");
    assert!(
        first.starts_with("In 7 of the ")
            && first.contains("the hypervisor had taken 10.0 ms to 20.0 ms from that CPU"),
        "{first}"
    );
    let shown = text(&analysis, STYLE).replace("\n  ", " ");
    assert!(shown.lines().nth(1).is_some_and(|l| l.starts_with("In 7 of the ")), "{shown}");
    let page = html(&[Analysis::of(&run)], &["x".to_owned()]);
    assert!(page.contains("the hypervisor had taken"));
    let value = json(&analysis);
    assert_eq!(value["coincidence"]["kind"], "steal");
    assert_eq!(value["coincidence"]["count"], 7);
    assert!(NextStep::of(&analysis).command.ends_with("--sample 10s"));
    // The file keeps it.
    let mut file = Vec::new();
    tailbound_core::runfile::write_run(&run, &mut file).unwrap();
    let again = tailbound_core::runfile::read_run(file.as_slice()).unwrap();
    assert_eq!(again.disturbances, run.disturbances);
}

#[test]
fn threads_above_firmware_and_a_slow_cpu_are_told_in_their_own_units() {
    let late_seconds = [3u64, 11, 17, 26, 34, 41, 52];
    for kind in [DisturbanceKind::RanAbove, DisturbanceKind::Firmware, DisturbanceKind::Frequency] {
        let mut run = late_in(&late_seconds);
        for second in 0..60u64 {
            let is_late = late_seconds.contains(&second);
            let t_ns = i64::try_from(second + 1).unwrap() * 1_000_000_000 + 5_000_000;
            let mut look =
                DisturbanceRecord { t_ns, span_ns: 1_000_000_000, ..DisturbanceRecord::default() };
            match kind {
                DisturbanceKind::RanAbove if is_late => look.above.push(RanAbove {
                    cpu: 1,
                    thread: "irq/9 (fifo:90)".to_owned(),
                    ns: 2_000_000,
                }),
                DisturbanceKind::Firmware if is_late => look.machine.smis = 2,
                DisturbanceKind::Frequency => look.cpus.extend([0, 1].map(|cpu| CpuTaken {
                    cpu,
                    frequency_khz: if is_late && cpu == 1 { 800_000 } else { 2_400_000 },
                    ..CpuTaken::default()
                })),
                _ => {}
            }
            run.disturbances.push(look);
        }
        let told = tailbound_stats::coincidence::of_run(&run).expect("it is told");
        // What is of the machine is beside the other CPU too.
        assert!(told.kind == kind && (7..=9).contains(&told.count), "{told:?}");
        let (wanted, words) = match kind {
            DisturbanceKind::Firmware => (
                Amount::Count { least: 2, most: 2 },
                "latest seconds there were 2 firmware interrupts (SMI)",
            ),
            DisturbanceKind::Frequency => (
                Amount::Frequency { least_khz: 800_000, most_khz: 800_000 },
                "that CPU ran at 800 MHz, in none of the others as slowly",
            ),
            _ => (
                Amount::Time { least_ns: 2_000_000, most_ns: 2_000_000 },
                "threads that come before it had run 2.00 ms on that CPU, mostly irq/9 (fifo:90),",
            ),
        };
        assert_eq!(told.amount, wanted);
        assert_eq!(told.who.is_some(), kind == DisturbanceKind::RanAbove);
        let said = reasons::sentences(&Analysis::of(&run));
        assert!(said.first().is_some_and(|s| s.contains(words)), "{said:?}");
        // One look that could not tell, and nothing is told of it.
        run.disturbances[30].unread.push(kind);
        assert_eq!(tailbound_stats::coincidence::of_run(&run), None);
    }
}

#[test]
fn a_monitors_windows_are_laid_beside_its_readings() {
    let mut run = late_in(&[]);
    run.seconds.clear();
    run.windows.clear();
    run.threads.retain(|t| t.thread == 0);
    run.threads.iter_mut().for_each(|t| t.cpu = None);
    for i in 0..60u64 {
        let is_late = i % 8 == 3;
        // Windows end a little late, each later than the one before.
        let end_ms = i64::try_from((i + 1) * 300_000 + i * 50).unwrap();
        let max = if is_late { 900_000.0 } else { 20_000.0 + (i * 7 % 11) as f64 };
        run.windows.push(WindowRecord {
            thread: 0,
            window_s: 300,
            second: u64::try_from(end_ms / 1000 - 1).unwrap(),
            n: 10,
            values: [("max".to_owned(), max)].into(),
        });
        let machine = MachineTaken {
            io_pressure_ns: if is_late { 9_000_000 } else { 0 },
            ..MachineTaken::default()
        };
        let (t_ns, span_ns) = (end_ms * 1_000_000, 300_050_000_000);
        run.disturbances.push(DisturbanceRecord {
            t_ns,
            span_ns,
            machine,
            ..DisturbanceRecord::default()
        });
    }
    let told = tailbound_stats::coincidence::of_run(&run).expect("it is told");
    assert_eq!((told.kind, told.cell_s), (DisturbanceKind::IoPressure, 300));
    assert!(told.count >= 6 && told.others == 0.0, "{told:?}");
    let said = reasons::sentences(&Analysis::of(&run));
    let words = "latest windows of 300 s tasks had waited 9.00 ms for a disk, in none of the others as long";
    assert!(said.first().is_some_and(|s| s.contains(words)), "{said:?}");
    run.windows.truncate(20);
    assert_eq!(tailbound_stats::coincidence::of_run(&run), None, "too few windows show nothing");
}

/// Late by 3 ms on CPU 1 in these seconds.
fn late_in(late: &[u64]) -> Run {
    let mut run = quiet();
    for s in run.seconds.iter_mut().filter(|s| s.thread == 1 && late.contains(&s.second)) {
        s.max_ns = 3_000_000;
    }
    run
}

#[test]
fn a_period_is_told_with_who_has_it() {
    let mut run = with_period();
    let told = reasons::sentences(&Analysis::of(&run));
    let said = told.first().expect("it is told");
    assert!(said.starts_with("CPU 0: the late wake-ups come every 2.50 s ± 10.0 ms, "), "{said}");
    let mut kept: Vec<i64> = run
        .exceedances
        .iter()
        .filter(|e| e.error_ns == 200_000)
        .map(|e| e.t_ns - e.error_ns)
        .collect();
    kept.truncate(9);
    run.blames = kept
        .iter()
        .enumerate()
        .map(|(i, t)| blamed(*t, &format!("kworker/0:{i}-4{i} vmstat_update")))
        .collect();
    let told = reasons::sentences(&Analysis::of(&run));
    assert!(
        told.iter().any(|s| s
            .contains("of 9 that were taken apart, 9: work queue function kworker vmstat_update")),
        "{told:?}"
    );
    assert!(tailbound_report::blame::findings_of(&run).iter().any(|n| n.contains("every 2.50 s")));
    assert!(NextStep::of(&Analysis::of(&run)).command.contains("stat-interval=120"));
}

#[test]
fn what_has_the_same_period_is_named_and_nothing_else() {
    let mut run = with_period();
    let one = |name: &str, cpu, count| Recurring {
        kind: RecurringKind::Thread,
        name: name.to_owned(),
        cpu,
        count,
        span_ns: 60_000_000_000,
        period_ns: None,
    };
    let list = [
        one("mine (fifo:97)", Some(0), 24),
        one("elsewhere (fifo:97)", Some(1), 24),
        one("other (fifo:97)", Some(0), 30),
    ];
    let fact = Fact::of(serde_json::to_value(list).unwrap());
    run.after.insert(tailbound_core::recurring::FACT.to_owned(), fact);
    let analysis = Analysis::of(&run);
    let told = reasons::sentences(&analysis);
    assert!(told[0].ends_with(" The same period: thread mine (fifo:97)."), "{told:?}");
    assert_eq!(json(&analysis)["periods"][0]["same"].as_array().map(Vec::len), Some(1));
}

#[test]
fn times_on_an_unknown_grid_have_no_period() {
    let mut run = with_period();
    run.header.plan.interval_ns = 0;
    run.header.plan.means = Means::NotTold;
    assert_eq!(reasons::sentences(&Analysis::of(&run)), Vec::<String>::new());
}

#[test]
fn a_quiet_run_gives_no_reason_and_one_command() {
    let mut run = quiet();
    let analysis = Analysis::of(&run);
    assert_eq!(reasons::sentences(&analysis), Vec::<String>::new());
    let shown = text(&analysis, STYLE);
    let next: Vec<&str> = shown.lines().filter(|l| l.starts_with("Next: ")).collect();
    assert_eq!(next.len(), 1, "{shown}");
    assert_eq!(shown.lines().last(), next.first().copied());
    run.header.command = ["tailbound", "run", "-d", "100us", "-o", "x"].map(str::to_owned).to_vec();
    run.verdict.as_mut().unwrap().outcome = Outcome::NotMet;
    assert_eq!(NextStep::of(&Analysis::of(&run)).command, "tailbound run --blame -d 100us");
    run.verdict.as_mut().unwrap().outcome = Outcome::Met;
    assert_eq!(NextStep::of(&Analysis::of(&run)).command, "tailbound check -c 0-1");
}
