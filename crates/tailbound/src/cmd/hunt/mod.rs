// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hunt`: searches for the worst workload of a kernel, and shrinks it to what anybody can repeat.
//!
//! Units: ns. Which candidate is next: `tailbound-hunt`. A run of one: `guests`. What is kept: `corpus`.
//! What is left of the worst, as files: `remains`. What is told: `answer`.

mod answer;
mod corpus;
mod guests;
mod here;
mod progress;
mod remains;

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tailbound_core::units;
use tailbound_hunt::{
    Candidate, End, Entry, Evaluator, Origin, Outcome, Search, Shrunk, Space, lab, shrink,
};
use tailbound_lab::{LabError, Request, paths};

use self::corpus::{Folder, Header, SCHEMA, Tried};
use self::guests::Guests;
use self::progress::Line;
use crate::cli_hunt::HuntArgs;
use crate::cmd::lab::cells::Bench;
use crate::say::{self, Failure};

const LENGTH: Duration = Duration::from_secs(30 * 60);
const LOOPS: u64 = 400;
const FOLDER: &str = "hunt";

/// What was found.
struct Found<'a> {
    header: &'a Header,
    folder: &'a Path,
    search: &'a Search,
    /// The candidate that was made smaller instead of the worst.
    shrinks: Option<u64>,
    /// None where it was interrupted before.
    shrunk: Option<Shrunk>,
    remains: Option<remains::Remains>,
    /// The command that makes the worst again, shrunk or not.
    command: Vec<String>,
    /// Guests that were run by this command, and how long that took.
    runs: usize,
    took: Duration,
    /// Why sections were not watched.
    unwatched: Option<String>,
    /// Was it interrupted?
    interrupted: bool,
}

/// `tailbound lab hunt`
pub(crate) fn hunt(args: &HuntArgs) -> Result<ExitCode, Failure> {
    asked_well(args)?;
    let length = length(args)?;
    let (folder, mut header) = asked(args)?;
    if header.here.is_some() {
        return here::hunt(args, length, &folder, &header);
    }
    let words = words(&header, args);
    let bench = Bench::open(&args.host)?;
    let emulator = bench.ready(&words)?;
    let mut kernel = None;
    words.cells(&mut |name, arch| {
        let found = bench.obtain(name, arch)?;
        kernel = Some(found.clone());
        Ok(found)
    })?;
    let kernel = kernel.ok_or_else(|| Failure::cannot("no kernel"))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.host.jobs.unwrap_or(cores);
    let mut guests = Guests::of(&bench, &emulator, words.clone(), kernel, jobs)?;
    let unwatched = watchable(args, &words, &emulator).err();
    [header.kernel_sha256, header.guest_sha256, header.qemu] = guests.made_of();
    header.watched &= unwatched.is_none();
    let mut folder = Folder::open(&folder, &header)?;
    if header.watched {
        if !args.host.quiet {
            say::note("booting the kernel, and checking that watching it changes nothing");
        }
        guests.watch()?;
    }
    held(&folder, &mut guests)?;
    let begin = Instant::now();
    guests.until = length.map(|length| begin + length);
    let mut search = Search::new(lab(), header.seed, header.random);
    let line = Line::new(args.host.quiet);
    guests.shown = line.shown(guests.until);
    let end = searched(args, &mut search, &mut folder, &mut guests, &line)?;
    let interrupted = bench.stopped() && end == End::Early;
    let worst = chosen(&search, args.shrink, interrupted)?;
    guests.until = None;
    guests.shown = line.shrinking();
    let (worst, latest_ns) = (worst.candidate.clone(), worst.latest_ns().unwrap_or(0));
    let mut shrunk = None;
    let mut remains = None;
    if !interrupted {
        let within = args.within / 100.0;
        let less = smaller((&worst, latest_ns), within, &lab(), &mut folder, &mut guests)?;
        line.clear();
        if less.end == End::Done {
            remains = Some(remains::make(&guests, &words, &header, &less, &folder.path)?);
        }
        shrunk = Some(less);
    }
    let left = shrunk.as_ref().map_or(&worst, |s| &s.candidate);
    let found = Found {
        command: guests::command(&words, left),
        header: &header,
        folder: &folder.path,
        search: &search,
        shrinks: args.shrink,
        remains,
        shrunk,
        runs: guests.runs,
        took: begin.elapsed(),
        unwatched,
        interrupted: bench.stopped(),
    };
    if args.host.json {
        say::answer_json(&answer::json(&found))?;
    } else {
        let style = say::style(&args.host.color.when);
        say::answer_in(&answer::text(&found, style), style)?;
    }
    let same = found.remains.as_ref().is_none_or(|r| r.same());
    Ok(match (found.interrupted, same) {
        (true, _) => ExitCode::from(5),
        (_, false) => ExitCode::from(3),
        _ => ExitCode::SUCCESS,
    })
}

/// Searches until the time or the number is reached; what was known is not run again.
fn searched(
    args: &HuntArgs,
    search: &mut Search,
    folder: &mut Folder,
    evaluator: &mut dyn Evaluator,
    line: &Line,
) -> Result<End, Failure> {
    let known = std::mem::take(&mut folder.entries);
    let count = known.len();
    if count > 0 && !args.host.quiet {
        say::note(&format!("{count} candidates were run before"));
    }
    let mut broken = None;
    let most = args.evaluations.unwrap_or(u64::MAX);
    let end = tailbound_hunt::hunt(search, known, most, evaluator, &mut |search, entry| {
        line.set(search);
        if let Err(e) = folder.keep(entry) {
            broken.get_or_insert(e);
        }
    });
    line.clear();
    if let Some(failure) = broken {
        return Err(failure);
    }
    end.map_err(|line| {
        Failure::usage(format!(
            "{}: candidate {}: {}: choose another folder with --out",
            folder.path.join(corpus::CORPUS).display(),
            line.nr,
            line.why
        ))
    })
}

/// What the answer is made of is run again, where the same run shows the same: the latest of all that are known, and of the single
/// loads. There is no run file of a candidate that its line could be held against.
fn held(folder: &Folder, evaluator: &mut dyn Evaluator) -> Result<(), Failure> {
    let latest = |of: &dyn Fn(&&Entry) -> bool| {
        let ran = folder.entries.iter().filter(|e| e.latest_ns().is_some());
        ran.filter(of).min_by_key(|e| (Reverse(e.latest_ns()), e.nr))
    };
    let mut asked: Vec<&Entry> =
        [latest(&|_| true), latest(&|e| e.origin == Origin::Base)].into_iter().flatten().collect();
    asked.dedup_by_key(|e| e.nr);
    let batch: Vec<Candidate> = asked.iter().map(|e| e.candidate.clone()).collect();
    if batch.is_empty() {
        return Ok(());
    }
    let mut again = Vec::new();
    // Those that a signal ended are not told.
    let _all_or_early = evaluator.evaluate(&batch, &mut |outcome| again.push(outcome));
    let shown = |outcome: &Outcome| match outcome {
        Outcome::Failed(why) => format!("no run ({why})"),
        Outcome::Ran(f) => {
            let part = |what: &str, ns: Option<i64>| {
                ns.map_or_else(String::new, |ns| format!(", {what} {ns} ns"))
            };
            let sections = part("not preemptible", f.section_ns) + &part("pending", f.pending_ns);
            format!("latest {} ns{sections}", f.latest_ns)
        }
    };
    for (entry, now) in asked.iter().zip(&again) {
        let (then, now) = (shown(&entry.outcome), shown(now));
        if then != now {
            return Err(Failure::usage(format!(
                "{}: candidate {} ({}): {then} there, {now} when it is run again: this is no corpus of this kernel and program; choose another folder with --out",
                folder.path.join(corpus::CORPUS).display(),
                entry.nr,
                entry.candidate
            )));
        }
    }
    Ok(())
}

/// An evaluator that runs nothing twice.
struct Remembered<'a> {
    folder: &'a mut Folder,
    evaluator: &'a mut dyn Evaluator,
    broken: Option<Failure>,
}

impl Evaluator for Remembered<'_> {
    fn evaluate(&mut self, batch: &[Candidate], told: &mut dyn FnMut(Outcome)) -> End {
        let known = |folder: &Folder, it: &Candidate| {
            let tried = folder.tried.iter().find(|t| t.candidate == *it);
            tried.map(|t| t.outcome.clone())
        };
        let open: Vec<Candidate> =
            batch.iter().filter(|c| known(self.folder, c).is_none()).cloned().collect();
        let mut next = open.iter();
        let (folder, broken) = (&mut *self.folder, &mut self.broken);
        let _all_or_early = self.evaluator.evaluate(&open, &mut |outcome| {
            let Some(candidate) = next.next() else { return };
            let tried = Tried { candidate: candidate.clone(), outcome };
            if let Err(e) = folder.keep_tried(&tried) {
                broken.get_or_insert(e);
            }
        });
        for candidate in batch {
            match known(self.folder, candidate) {
                Some(outcome) => told(outcome),
                None => return End::Early,
            }
        }
        if self.broken.is_some() { End::Early } else { End::Done }
    }
}

/// Makes the worst, which was so late, smaller.
fn smaller(
    (worst, latest_ns): (&Candidate, i64),
    within: f64,
    space: &Space,
    folder: &mut Folder,
    evaluator: &mut dyn Evaluator,
) -> Result<Shrunk, Failure> {
    let mut remembered = Remembered { folder, evaluator, broken: None };
    let shrunk = shrink(worst, latest_ns, within, space, &mut remembered);
    remembered.broken.take().map_or(Ok(shrunk), Err)
}

/// The candidate that is to be made smaller: that of this number, else the worst.
fn chosen(search: &Search, nr: Option<u64>, interrupted: bool) -> Result<&Entry, Failure> {
    let worst = search.worst().ok_or_else(|| nothing(search, interrupted))?;
    let Some(nr) = nr else { return Ok(worst) };
    let found = search.entries().iter().find(|e| e.nr == nr);
    found.filter(|e| e.latest_ns().is_some()).ok_or_else(|| {
        Failure::usage(format!(
            "--shrink {nr}: no such candidate ran; {} are in the folder, from 0",
            search.entries().len()
        ))
    })
}

/// Why there is no worst one.
fn nothing(search: &Search, interrupted: bool) -> Failure {
    if interrupted {
        return Failure::cut_off("interrupted before any candidate ran");
    }
    let why = search.entries().iter().find_map(|e| match &e.outcome {
        Outcome::Failed(why) => Some(why.as_str()),
        Outcome::Ran(_) => None,
    });
    Failure::cannot(format!("no candidate ran: {}", why.unwrap_or("none was tried")))
}

/// What clap cannot know: a share's limits, and options of a hunt on this machine without it.
fn asked_well(args: &HuntArgs) -> Result<(), Failure> {
    if !(0.0..100.0).contains(&args.within) {
        return Err(Failure::usage("--within: write percent from 0 to 100, such as 5"));
    }
    // Clap waives what an option requires where that conflicts with another one that is there: `--kernel`.
    let own = [("--each", args.each.is_some()), ("--rounds", args.rounds.is_some())];
    let own = own.into_iter().chain([("--cpus", args.cpus.is_some())]);
    if let (false, Some((flag, _))) = (args.here, own.into_iter().find(|(_, given)| *given)) {
        return Err(Failure::usage(format!("{flag} is of a hunt on this machine: add --here")));
    }
    Ok(())
}

/// How long to search; none: as long as the number takes.
fn length(args: &HuntArgs) -> Result<Option<Duration>, Failure> {
    let Some(text) = &args.length else {
        return Ok(args.evaluations.is_none().then_some(LENGTH));
    };
    let ns = units::parse_ns(text).map_err(|e| Failure::usage(format!("--for: {e}")))?;
    let ns = u64::try_from(ns).map_err(|_| Failure::usage("--for: below zero"))?;
    Ok(Some(Duration::from_nanos(ns)))
}

/// The folder, and what the hunt is of.
fn asked(args: &HuntArgs) -> Result<(PathBuf, Header), Failure> {
    if let Some(folder) = &args.resume {
        let there = corpus::header(folder)?.ok_or_else(|| {
            Failure::usage(format!("--resume {}: there is no corpus.jsonl", folder.display()))
        })?;
        return Ok((folder.clone(), there));
    }
    let loops = args.loops.unwrap_or(LOOPS);
    if loops == 0 {
        return Err(Failure::usage("--loops: at least 1"));
    }
    let header = Header {
        schema: SCHEMA.to_owned(),
        kernel: if args.here { here::kernel() } else { args.kernel.clone().unwrap_or_default() },
        append: args.append.clone().unwrap_or_default(),
        arch: args.arch.clone().unwrap_or_else(|| "x86_64".to_owned()),
        loops,
        seed: args.seed.unwrap_or(1),
        random: args.random,
        watched: !args.no_paths && !args.here,
        here: args.here.then(|| here::how(args)).transpose()?,
        kernel_sha256: String::new(),
        guest_sha256: String::new(),
        qemu: String::new(),
    };
    Ok((args.out.clone().unwrap_or_else(|| PathBuf::from(FOLDER)), header))
}

/// What the lab is asked, but for load, interval and seed.
fn words(header: &Header, args: &HuntArgs) -> Request {
    let mut words = Request {
        kernels: vec![header.kernel.clone()],
        guest: args.host.guest.clone(),
        ..Request::default()
    };
    if !header.append.is_empty() {
        words.append.push(header.append.clone());
    }
    if header.arch != "x86_64" {
        words.arch = Some(header.arch.clone());
    }
    words.campaign.loops = Some(header.loops);
    words.campaign.raw = Some(true);
    words
}

/// Can sections be watched? Why not.
fn watchable(
    args: &HuntArgs,
    words: &Request,
    emulator: &tailbound_lab::Emulator,
) -> Result<(), String> {
    if args.no_paths {
        return Err("--no-paths".to_owned());
    }
    let possible = || -> Result<(), LabError> {
        paths::possible(words.arch()?, false, 1)?;
        paths::plugin(emulator).map(drop)
    };
    possible().map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Candidate, End, Entry, Evaluator, Folder, Header, Origin, Outcome};
    use tailbound_core::Spec;
    use tailbound_core::calls::Calls;
    use tailbound_hunt::{LEFT_OUT, Random, Values, lab};
    use tailbound_load::{CATALOGUE, check};

    /// A lab in which every run is as late.
    struct Shows(i64);

    impl Evaluator for Shows {
        fn evaluate(&mut self, batch: &[Candidate], told: &mut dyn FnMut(Outcome)) -> End {
            for _ in batch {
                told(Outcome::Ran(tailbound_hunt::Figures {
                    latest_ns: self.0,
                    ..Default::default()
                }));
            }
            End::Done
        }
    }

    #[test]
    fn the_latest_of_a_corpus_must_show_the_same_when_it_is_run_again() {
        let top = tempfile::tempdir().expect("a folder");
        let header = Header { watched: false, ..super::corpus::tests::some() };
        let mut folder = Folder::open(&top.path().join("hunt"), &header).expect("a folder");
        assert!(super::held(&folder, &mut Shows(1)).is_ok(), "nothing is known");
        for (nr, latest_ns) in [(0, 500), (1, 900)] {
            let figures = tailbound_hunt::Figures { latest_ns, ..Default::default() };
            let candidate = Candidate { loads: Vec::new(), interval_ns: 250_000 + nr, seed: 1 };
            let outcome = Outcome::Ran(figures);
            folder.entries.push(Entry { nr, origin: Origin::Base, candidate, outcome });
        }
        assert!(super::held(&folder, &mut Shows(900)).is_ok());
        let failure = super::held(&folder, &mut Shows(400)).expect_err("another figure");
        assert_eq!(failure.kind, tailbound_core::FailureKind::Usage);
        for part in ["corpus.jsonl: candidate 1", "latest 900 ns there, latest 400 ns when"] {
            assert!(failure.text.contains(part), "{}", failure.text);
        }
    }

    /// The ends of what an option can be.
    fn ends(values: Values) -> Vec<String> {
        match values {
            Values::Words(words) => words.iter().map(|w| (*w).to_owned()).collect(),
            Values::Count(least, most) => vec![least.to_string(), most.to_string()],
            Values::Kib(least, most) => vec![format!("{least}K"), format!("{most}K")],
            Values::Us(least, most) => vec![format!("{least}us"), format!("{most}us")],
            Values::Calls(_) => vec![Calls::sample().to_string()],
        }
    }

    #[test]
    fn every_load_is_hunted_with_or_left_out_for_a_reason() {
        let space = lab();
        for kind in CATALOGUE {
            let used = space.kinds.iter().any(|k| k.name == kind.name);
            let left_out = LEFT_OUT.iter().any(|(name, _)| *name == kind.name);
            assert!(used != left_out, "{}", kind.name);
        }
        assert_eq!(space.kinds.len() + LEFT_OUT.len(), CATALOGUE.len());
    }

    #[test]
    fn loads_take_every_option_at_both_ends() {
        for kind in lab().kinds {
            let fixed: Vec<(String, String)> =
                kind.fixed.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            for parameter in kind.parameters {
                for value in ends(parameter.values) {
                    let mut options = fixed.clone();
                    options.push((parameter.name.to_owned(), value));
                    let spec = Spec { name: kind.name.to_owned(), options };
                    assert!(check(&spec).is_ok(), "{spec}: {:?}", check(&spec).err());
                }
            }
        }
    }

    #[test]
    fn any_mixture_is_one_that_loads_take() {
        let mut search = tailbound_hunt::Search::new(lab(), 3, true);
        let mut random = Random::new(1);
        for _ in 0..20 {
            for proposal in search.generation() {
                let text = proposal.candidate.load();
                for load in &proposal.candidate.loads {
                    assert!(check(load).is_ok(), "{text}: {:?}", check(load).err());
                }
                let latest_ns = i64::try_from(random.within(1, 1000)).unwrap_or(1);
                let figures = tailbound_hunt::Figures { latest_ns, ..Default::default() };
                search.tell(proposal, tailbound_hunt::Outcome::Ran(figures));
            }
        }
    }
}
