// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes every run of a series that is not there yet, and knows about how long that takes.
//!
//! Units: ns.

use tailbound_core::number::Real as _;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tailbound_core::Run;
use tailbound_core::record::Round;

use super::series::{Series, Variant};
use crate::caller::Caller;
use crate::error::SeriesError;

/// What a run takes besides warm-up and measurement, until the first one was timed.
const OVERHEAD_NS: i64 = 700_000_000;

/// The run that comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Next<'a> {
    /// Its round, from 0.
    pub round: u32,
    /// Number of rounds.
    pub rounds: u32,
    /// Whose.
    pub variant: &'a str,
    /// Since the first run began.
    pub elapsed: Duration,
    /// About how long this run and all after it take.
    pub left: Duration,
}

/// Hears how far a series is.
pub trait Progress {
    /// Before the first run: `there` of them are complete already, the rest takes about `expected_ns`.
    fn begins(&mut self, series: &Series, there: usize, expected_ns: i64);
    /// Before each run.
    fn next(&mut self, next: &Next<'_>);
}

/// A run that is not there yet.
struct Open<'a> {
    round: u32,
    place: usize,
    variant: &'a Variant,
    file: PathBuf,
}

/// Makes every run that is not there yet, with the options in `common` before those of its variant; `true`: ended
/// by a signal.
///
/// # Errors
/// When a run cannot be started, or is not complete: those before it are kept.
pub fn make<C: Caller>(
    series: &Series,
    common: &[OsString],
    caller: &mut C,
    progress: &mut dyn Progress,
) -> Result<bool, C::Error> {
    let open = open(series, caller)?;
    let mut pace = Pace::new(open.iter().map(|o| length_ns(o.variant)).collect());
    let there = series.rounds as usize * series.variants.len() - open.len();
    progress.begins(series, there, pace.left_ns.iter().sum());
    for Open { round, place, variant, file } in &open {
        let (elapsed, left) = pace.next();
        let (rounds, name) = (series.rounds, variant.name.as_str());
        progress.next(&Next { round: *round, rounds, variant: name, elapsed, left });
        let as_round = serde_json::to_string(&series.place(*round, *place, variant))
            .map_err(SeriesError::Place)?;
        let mut words: Vec<OsString> = vec!["run".into()];
        words.extend(common.iter().cloned());
        words.extend(variant.words.iter().map(OsString::from));
        words.extend(
            ["--as-round", &as_round, "--quiet", "--force", "--yes", "--out"].map(OsString::from),
        );
        words.push(file.clone().into_os_string());
        let ended = caller.make(&words, &series.folder, &mut || ())?;
        if ended.interrupted {
            return Ok(true);
        }
        if caller.complete(file).is_none() {
            let why = ended.reason("it left no complete run and no message").to_owned();
            let variant = variant.name.clone();
            return Err(SeriesError::Incomplete { variant, round: round + 1, why }.into());
        }
    }
    Ok(false)
}

/// The runs that are not there yet, in the order they are made.
fn open<'a, C: Caller>(series: &'a Series, caller: &mut C) -> Result<Vec<Open<'a>>, SeriesError> {
    let mut open = Vec::new();
    for round in 0..series.rounds {
        for (place, variant) in series.order(round).into_iter().enumerate() {
            let file = series.file(round, variant);
            match caller.complete(&file) {
                None => open.push(Open { round, place, variant, file }),
                Some(run) => own(series, &Open { round, place, variant, file }, &run)?,
            }
        }
    }
    Ok(open)
}

/// Does a run that is complete already say of itself what its place in the folder says? Its name alone is believed of nothing.
fn own(series: &Series, at: &Open<'_>, run: &Run) -> Result<(), SeriesError> {
    let wanted = series.place(at.round, at.place, at.variant);
    let why = match &run.header.round {
        None => Some("it was not made in rounds".to_owned()),
        // A longer series begins as the shorter one did.
        Some(there) if (Round { rounds: wanted.rounds, ..there.clone() }) != wanted => {
            Some(format!(
                "it says that it is round {} of variant `{}` in series {} with seed {}",
                there.round.saturating_add(1),
                there.variant,
                there.series,
                there.seed
            ))
        }
        Some(_) => (run.header.plan != at.variant.plan).then(|| "its plan is another".to_owned()),
    };
    why.map_or(Ok(()), |why| {
        let (path, variant) = (at.file.clone(), at.variant.name.clone());
        Err(SeriesError::OtherRun { path, variant, round: at.round + 1, why })
    })
}

fn length_ns(variant: &Variant) -> i64 {
    let plan = &variant.plan;
    plan.duration_ns().saturating_add(plan.warm_up_ns).saturating_add(OVERHEAD_NS)
}

/// How long runs take, from what was expected of those that are over.
struct Pace {
    begun: Instant,
    done: usize,
    /// Expected lengths of all runs to make, in their order.
    left_ns: Vec<i64>,
    expected_ns: i64,
}

impl Pace {
    fn new(left_ns: Vec<i64>) -> Self {
        Self { begun: Instant::now(), done: 0, left_ns, expected_ns: 0 }
    }

    /// Before a run: the time since the first, and about what is left.
    fn next(&mut self) -> (Duration, Duration) {
        let rest: i64 = self.left_ns.iter().skip(self.done).sum();
        let elapsed = self.begun.elapsed();
        // What was expected of the runs so far, and what they took.
        let rest = if self.expected_ns > 0 {
            let slower = elapsed.as_secs_f64() * 1e9 / self.expected_ns.real();
            Duration::from_secs_f64((rest.real() * slower / 1e9).max(0.0))
        } else {
            Duration::from_nanos(rest.unsigned_abs())
        };
        self.expected_ns += self.left_ns.get(self.done).copied().unwrap_or(0);
        self.done += 1;
        (elapsed, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, plan};
    use tailbound_sys::new_file::Existing;

    struct Heard(Vec<String>);

    impl Progress for Heard {
        fn begins(&mut self, series: &Series, there: usize, expected_ns: i64) {
            self.0.push(format!("{there} of {} there, {expected_ns}", series.variants.len()));
        }
        fn next(&mut self, next: &Next<'_>) {
            self.0.push(format!("{}/{} {}", next.round, next.rounds, next.variant));
        }
    }

    fn series(folder: PathBuf, rounds: u32) -> Series {
        let variant =
            |name: &str| Variant { name: name.to_owned(), words: Vec::new(), plan: plan() };
        let variants = vec![variant("a"), variant("b")];
        Series { id: "one".to_owned(), seed: 7, rounds, folder, variants }
    }

    #[test]
    fn what_is_there_is_kept_and_what_was_stopped_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut caller = Fake { until: Some(3), ..Fake::default() };
        let mut heard = Heard(Vec::new());
        let mut short = series(folder.path().join("r"), 2);
        short.settle(None, Existing::Keep).expect("a new folder");
        assert!(make(&short, &[], &mut caller, &mut heard).expect("made"));
        assert_eq!(caller.made.len(), 3);
        assert_eq!(heard.0[0], "0 of 2 there, 6800000000");
        // Longer than before, as another process would go on.
        let mut long = Series { id: "two".to_owned(), ..series(folder.path().join("r"), 3) };
        long.settle(None, Existing::Keep).expect("the same series");
        assert_eq!((long.id.as_str(), long.order(0).len()), ("one", 2));
        let mut later = Fake::default();
        let mut heard = Heard(Vec::new());
        assert!(!make(&long, &[], &mut later, &mut heard).expect("made"));
        assert_eq!(heard.0[0], "3 of 2 there, 5100000000");
        caller.made.extend(later.made);
        let whole: Vec<String> = (0..3)
            .flat_map(|r| long.order(r).into_iter().map(move |v| (r, v)))
            .map(|(r, v)| format!("{:03}-{}.tailbound.jsonl", r + 1, v.name))
            .collect();
        assert_eq!(caller.made, whole, "in the order of the seed");
    }

    #[test]
    fn a_run_of_another_place_is_refused_and_never_counted() {
        let top = tempfile::tempdir().expect("a folder");
        let folder = top.path().join("r");
        let mut two = series(folder.clone(), 2);
        two.settle(None, Existing::Keep).expect("a new folder");
        assert!(!make(&two, &[], &mut Fake::default(), &mut Heard(Vec::new())).expect("made"));
        let (one, other) =
            (folder.join("001-a.tailbound.jsonl"), folder.join("002-b.tailbound.jsonl"));
        let own = std::fs::read(&one).expect("read");
        std::fs::copy(&other, &one).expect("copied");
        let again = |series: &Series| {
            let made = make(series, &[], &mut Fake::default(), &mut Heard(Vec::new()));
            made.map_err(|e| (e.kind(), e.to_string()))
        };
        let (kind, why) = again(&two).expect_err("another round");
        assert_eq!(kind, tailbound_core::FailureKind::Usage);
        for part in [
            "001-a.tailbound.jsonl is not round 1 of variant `a`",
            "round 2 of variant `b`",
            "--force",
        ] {
            assert!(why.contains(part), "{why}");
        }
        std::fs::write(&one, own).expect("written");
        assert_eq!(again(&two), Ok(false));
        let mut plan = two.clone();
        plan.variants[0].plan.interval_ns = 7;
        assert!(again(&plan).is_err_and(|(_, why)| why.contains("its plan is another")));
    }

    #[test]
    fn a_run_that_fails_says_whose_it_was_and_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut caller =
            Fake { fails: vec!["002-b.tailbound.jsonl".to_owned()], ..Fake::default() };
        let series = series(folder.path().to_owned(), 2);
        let e = make(&series, &[], &mut caller, &mut Heard(Vec::new())).expect_err("fails");
        assert_eq!(e.to_string(), "variant `b`, round 2: no such CPU");
        assert_eq!(e.kind(), tailbound_core::FailureKind::Cannot);
    }

    #[test]
    fn a_folder_of_other_rounds_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = series(folder.path().join("r"), 1);
        first.settle(None, Existing::Keep).expect("a new folder");
        let other = |seed| {
            let mut other = series(folder.path().join("r"), 1);
            other.variants[1].words = vec!["-i".to_owned(), "2ms".to_owned()];
            other.settle(seed, Existing::Keep)
        };
        assert!(matches!(other(None), Err(SeriesError::OtherRounds { .. })));
        let mut seed = series(folder.path().join("r"), 1);
        assert!(matches!(
            seed.settle(Some(8), Existing::Keep),
            Err(SeriesError::OtherRounds { .. })
        ));
        let mut none = series(folder.path().to_owned(), 1);
        let e = none.settle(None, Existing::Keep).expect_err("something else");
        assert!(
            matches!(e, SeriesError::NoRounds { .. })
                && e.kind() == tailbound_core::FailureKind::Usage
        );
    }
}
