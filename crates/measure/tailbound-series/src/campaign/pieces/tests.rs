// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run `pin` of the founding campaign, cut off once and again, by a caller that writes real run files.

use std::ffi::OsString;
use std::path::Path;

use tailbound_core::campaign::Part;
use tailbound_core::number::Real as _;
use tailbound_core::plan::RunConfig;
use tailbound_core::record::{ExceedanceRecord, SecondRecord, Source};
use tailbound_core::units::parse_ns;
use tailbound_core::{Context, Distribution, ThreadEnd};

use super::*;
use crate::ChildEnd;
use crate::campaign::{CampaignCaller, Folder, Options, find, make, wanted};
use crate::testing;

const HOUR_NS: i64 = 3_600 * SECOND_NS;

/// Measures so long, and is cut off then; at last as long as it was asked for.
struct Cut {
    after_ns: Vec<i64>,
    asked: Vec<String>,
}

impl Cut {
    fn plan() -> Plan {
        let mut plan = testing::plan();
        plan.interval_ns = 100_000;
        plan.activations = 432_000_000;
        plan
    }
}

/// A second of a million wake-ups and its worst, in place of all that a box would tell.
fn piece(planned_ns: i64, measured_ns: i64, reason: EndReason) -> Run {
    let mut run = testing::run(Some(reason));
    run.header.plan = Cut::plan();
    run.header.plan.activations = planned_ns.unsigned_abs() / 100_000;
    run.header.source = Some(Source {
        tool: "tailbound-box".to_owned(),
        format: String::new(),
        file: String::new(),
        lost: Vec::new(),
    });
    let mut wakeup = Distribution::default();
    let n = measured_ns.unsigned_abs() / 100_000;
    wakeup.add_many(20_000, n - 1);
    let worst_ns = 40_000 + measured_ns / HOUR_NS;
    wakeup.add(worst_ns);
    let thread = ThreadRecord {
        context: Context::External,
        wakeup,
        counters: [("pulses".to_owned(), n)].into(),
        ended: ThreadEnd::Complete,
        ..ThreadRecord::default()
    };
    run.threads.push(thread);
    let last = measured_ns.unsigned_abs() / 1_000_000_000 - 1;
    run.seconds = [0, last]
        .map(|second| SecondRecord {
            thread: 0,
            second,
            n: 1,
            max_ns: worst_ns,
            argmax: 7,
            min_ns: worst_ns,
            sum_ns: worst_ns,
            missed: 0,
        })
        .into();
    run.exceedances.push(ExceedanceRecord {
        thread: 0,
        activation: 7,
        error_ns: worst_ns,
        t_ns: 740_000,
        missed: 0,
    });
    let pulses = FigureRecord { value: n.real(), unit: "1".to_owned(), ..FigureRecord::default() };
    run.figures.push(FigureRecord { name: "pulses".to_owned(), ..pulses });
    run.end = Some(End { reason, measured_ns, lines: 0 });
    run
}

impl Caller for Cut {
    type Error = SeriesError;

    fn make(
        &mut self,
        arguments: &[OsString],
        _: &Path,
        _: &mut dyn FnMut(),
    ) -> Result<ChildEnd, SeriesError> {
        let words: Vec<_> = arguments.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        let after = |flag: &str| words.iter().skip_while(|w| *w != flag).nth(1).cloned();
        let asked = after("--duration").expect("a duration");
        let planned_ns = parse_ns(&asked).expect("a time");
        self.asked.push(asked);
        let cut_ns = (!self.after_ns.is_empty()).then(|| self.after_ns.remove(0));
        let (measured_ns, reason) = match cut_ns {
            Some(ns) => (ns, EndReason::CutOff),
            None => (planned_ns, EndReason::Complete),
        };
        let mut file = Vec::new();
        runfile::write_run(&piece(planned_ns, measured_ns, reason), &mut file).expect("a file");
        std::fs::write(after("--out").expect("a file"), file).expect("written");
        Ok(ChildEnd { interrupted: cut_ns.is_some(), ..ChildEnd::default() })
    }

    fn read(&mut self, path: &Path, skip: &[&str]) -> Result<Run, SeriesError> {
        let failed = |source| SeriesError::Read { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(failed)?;
        runfile::read_run_without(std::io::BufReader::new(file), skip)
            .map_err(|e| failed(std::io::Error::other(e)))
    }
}

impl CampaignCaller for Cut {
    fn plan(&mut self, _: &RunConfig, _: &Part) -> Result<Plan, SeriesError> {
        Ok(Self::plan())
    }
    fn page(&mut self, _: &Run, _: &Path, _: &Path) -> Result<(), SeriesError> {
        Ok(())
    }
}

fn measured(folder: &Path, caller: &mut Cut, options: &Options) {
    let chosen = find("altenberg-2016").expect("shipped");
    let parts = wanted(&chosen, &["pin".to_owned()]).expect("parts");
    let taken = Folder::settle(folder, &chosen, Existing::Keep).expect("a folder");
    let mut heard = super::super::make::tests::Heard::default();
    make(options, &chosen, &parts, &taken, caller, &mut heard).expect("made");
}

fn options() -> Options {
    Options {
        via: Some("pico:/dev/ttyACM0".to_owned()),
        system: Some("s".to_owned()),
        ..Options::default()
    }
}

#[test]
fn a_run_that_was_cut_off_goes_on_with_the_rest_of_its_time_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut caller = Cut { after_ns: vec![5 * HOUR_NS, HOUR_NS], asked: Vec::new() };
    for _ in 0..4 {
        measured(folder.path(), &mut caller, &options());
    }
    // The fourth has nothing to do.
    let rest = |hours: i64| format!("{}ns", hours * HOUR_NS);
    assert_eq!(caller.asked, ["12h".to_owned(), rest(7), rest(6)]);
    let system = folder.path().join("s");
    let run = caller.read(&system.join("pin.tailbound.jsonl"), &[]).expect("a run");
    assert!(run.ended_as_planned());
    assert_eq!((run.measured_ns(), run.header.plan.duration_ns()), (12 * HOUR_NS, 12 * HOUR_NS));
    let thread = run.threads.first().expect("a thread");
    assert_eq!((thread.wakeup.n, thread.wakeup.max_ns), (432_000_000, Some(40_006)));
    assert_eq!(run.figures.first().map(|f| f.value), Some(432_000_000.0));
    let worst: Vec<_> = run.exceedances.iter().map(|e| (e.activation, e.t_ns)).collect();
    let at = |hours: i64| (hours.unsigned_abs() * 36_000_000 + 7, hours * HOUR_NS + 740_000);
    assert_eq!(worst, [at(0), at(5), at(6)]);
    let gap = run.findings.iter().find(|f| f.id == FINDING).expect("the gap is said");
    assert!(gap.title.contains("3 pieces") && gap.title.contains("2026-01-01"), "{}", gap.title);
    let wrong = run.findings.iter().find(|f| f.id.starts_with("file-"));
    assert!(wrong.is_none(), "its records agree: {wrong:?}");
    let left = std::fs::read_dir(&system).expect("a folder").count();
    assert_eq!(left, 1, "no piece stays");
}

#[test]
fn a_kill_between_the_last_piece_and_the_whole_run_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut caller = Cut { after_ns: vec![5 * HOUR_NS], asked: Vec::new() };
    measured(folder.path(), &mut caller, &options());
    let system = folder.path().join("s");
    let file = system.join("pin.tailbound.jsonl");
    std::fs::rename(&file, system.join("pin.piece-1.tailbound.jsonl")).expect("moved");
    let mut text = Vec::new();
    let rest = piece(7 * HOUR_NS, 7 * HOUR_NS, EndReason::Complete);
    runfile::write_run(&rest, &mut text).expect("a file");
    std::fs::write(&file, text).expect("written");
    measured(folder.path(), &mut caller, &options());
    assert_eq!(caller.asked, ["12h"], "nothing is measured again");
    let run = caller.complete(&file).expect("whole");
    assert_eq!(run.measured_ns(), 12 * HOUR_NS);
}

#[test]
fn with_force_it_begins_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut caller = Cut { after_ns: vec![5 * HOUR_NS], asked: Vec::new() };
    measured(folder.path(), &mut caller, &options());
    measured(folder.path(), &mut caller, &Options { force: true, ..options() });
    assert_eq!(caller.asked, ["12h", "12h"]);
}
