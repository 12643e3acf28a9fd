// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worst workload, searched with real runs: in guests of the lab, or on this machine.
//!
//! Units: ns. Which candidate is next: [`crate::hunt`].
//!
//! ```text
//! guests.rs  a run of a candidate in the lab   corpus.rs   what is kept
//! here/      the same on this machine          remains.rs  what is left of the worst, as files
//! answer.rs  what is told                      line.rs     how far it is
//! ```

mod answer;
mod corpus;
mod guests;
mod here;
mod line;
mod remains;

use std::cmp::Reverse;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tailbound_core::Run;
use tailbound_lab::{Accelerator, Bench, Emulator, LabError, Request, paths};
use tailbound_report::Style;
use tailbound_series::Caller;
use tailbound_series::rounds::Progress;

pub use self::corpus::{CorpusHeader, HereHow};
use self::corpus::{Folder, SCHEMA, Tried};
use self::guests::Guests;
pub use self::here::MachineHunt;
pub use self::line::HuntLine;
use crate::error::SearchError;
use crate::hunt::{
    Candidate, End, Entry, Evaluator, Guidance, Origin, Outcome, Search, Shrunk, Space, lab, shrink,
};

const LOOPS: u64 = 400;
const FOLDER: &str = "hunt";

/// Reads the runs in a folder.
pub type FolderReader<'a> = dyn Fn(&Path) -> Result<Vec<Run>, SearchError> + 'a;

/// Hears how far a hunt is.
pub trait HuntListener {
    /// The search begins.
    fn begins(&self);

    /// Something worth knowing.
    fn note(&self, text: &str);

    /// What is known now.
    fn known(&self, search: &Search);

    /// So many runs were made by a search that ends at some time.
    fn searching(&self, runs: usize, until: Option<Instant>);

    /// So many runs were made to make the find smaller.
    fn shrinking(&self, runs: usize);

    /// Nothing is under way.
    fn clear(&self);
}

/// How a hunt on this machine measures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineOptions {
    /// Length of each run.
    pub each: Option<String>,
    /// Runs of each candidate.
    pub rounds: Option<u32>,
    /// CPUs that are measured.
    pub cpus: Option<String>,
}

/// What is hunted, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct HuntOptions {
    /// The kernel's name.
    pub kernel: Option<String>,
    /// Words of its command line.
    pub append: Option<String>,
    /// The guest's architecture.
    pub arch: Option<String>,
    /// Activations of each candidate.
    pub loops: Option<u64>,
    /// On this machine instead.
    pub on_machine: Option<MachineOptions>,
    /// The hunt in this folder goes on, as it was begun.
    pub resume: Option<PathBuf>,
    /// The folder.
    pub out: Option<PathBuf>,
    /// How long to search; none: as long as the number takes.
    pub length: Option<Duration>,
    /// Candidates in all.
    pub evaluations: Option<u64>,
    /// Of the search.
    pub seed: Option<u64>,
    /// Draw every candidate at random.
    pub random: bool,
    /// Are sections watched?
    pub has_sections: bool,
    /// The share that the smaller workload may be less late.
    pub within: f64,
    /// The candidate to make smaller instead of the worst.
    pub shrink: Option<u64>,
}

/// What a hunt needs from the program that makes it.
pub struct HuntCaller<'a, C> {
    /// Opens the lab.
    pub open: &'a dyn Fn() -> Result<Bench<'a>, LabError>,
    /// Hears how far it is.
    pub listener: &'a dyn HuntListener,
    /// Makes runs on this machine.
    pub machine: C,
    /// Hears how far the last measurement on this machine is.
    pub rounds: &'a mut dyn Progress,
    /// Reads its runs.
    pub runs: &'a FolderReader<'a>,
}

impl<C> fmt::Debug for HuntCaller<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HuntCaller").finish_non_exhaustive()
    }
}

/// How a hunt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HuntEnd {
    /// What it found is as it says.
    Done,
    /// What was left showed something else when it was run once more.
    NotTheSame,
    /// A signal ended it.
    Interrupted,
}

/// What was found.
#[derive(Debug)]
pub enum HuntAnswer {
    /// In the lab.
    Lab(Box<LabHunt>),
    /// On this machine.
    Machine(Box<MachineHunt>),
}

/// What was found in the lab.
#[derive(Debug)]
pub struct LabHunt {
    header: CorpusHeader,
    folder: PathBuf,
    search: Search,
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

impl HuntAnswer {
    /// For people.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        match self {
            Self::Lab(hunt) => answer::text(hunt, style),
            Self::Machine(hunt) => hunt.text(style),
        }
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        match self {
            Self::Lab(hunt) => answer::json(hunt),
            Self::Machine(hunt) => hunt.json(),
        }
    }

    /// How it ended.
    #[must_use]
    pub fn end(&self) -> HuntEnd {
        match self {
            Self::Machine(hunt) => hunt.end(),
            Self::Lab(hunt) if hunt.interrupted => HuntEnd::Interrupted,
            Self::Lab(hunt) if hunt.remains.as_ref().is_some_and(|r| !r.same()) => {
                HuntEnd::NotTheSame
            }
            Self::Lab(_) => HuntEnd::Done,
        }
    }
}

/// Hunts.
///
/// # Errors
/// The question or its folder is wrong; no candidate ran; the lab's reasons.
pub fn hunt<C: Caller<Error: Into<SearchError>>>(
    options: &HuntOptions,
    caller: &mut HuntCaller<'_, C>,
) -> Result<HuntAnswer, SearchError> {
    let (folder, header) = asked(options)?;
    if header.here.is_some() {
        let found = here::hunt(options, &folder, header, caller)?;
        return Ok(HuntAnswer::Machine(Box::new(found)));
    }
    let found = in_lab(options, &folder, header, caller.open, caller.listener)?;
    Ok(HuntAnswer::Lab(Box::new(found)))
}

fn in_lab<'a>(
    options: &HuntOptions,
    folder: &Path,
    mut header: CorpusHeader,
    open: &dyn Fn() -> Result<Bench<'a>, LabError>,
    listener: &dyn HuntListener,
) -> Result<LabHunt, SearchError> {
    let bench = open()?;
    let words = words(&header, bench.guest());
    let emulator = bench.ready(&words)?;
    let mut guests = ready(&bench, &emulator, &words)?;
    let unwatched = watchable(options, &words, &emulator).err().map(|why| why.to_string());
    [header.kernel_sha256, header.guest_sha256, header.qemu] = guests.made_of();
    header.watched &= unwatched.is_none();
    let mut folder = Folder::open(folder, &header)?;
    if header.watched {
        listener.note("booting the kernel, and checking that watching it changes nothing");
        guests.watch()?;
    }
    held(&folder, &mut guests)?;
    guests.whole()?;
    let begin = Instant::now();
    let until = options.length.map(|length| begin + length);
    guests.until = until;
    let mut search = Search::new(lab(), header.seed, Guidance::chance_if(header.random));
    listener.begins();
    guests.shown = Box::new(move |runs| listener.searching(runs, until));
    let evaluations = options.evaluations;
    let end = searched(evaluations, &mut search, &mut folder, &mut guests, listener)?;
    guests.whole()?;
    let interrupted = bench.stopped() && end == End::Early;
    let worst = chosen(&search, options.shrink, SearchStop::by_signal_if(interrupted))?;
    guests.until = None;
    guests.shown = shrinking(listener);
    let (worst, latest_ns) = (worst.candidate.clone(), worst.latest_ns().unwrap_or(0));
    let mut shrunk = None;
    let mut remains = None;
    if !interrupted {
        let of = (&worst, latest_ns);
        let less = smaller(of, options.within, &lab(), &mut folder, &mut guests)?;
        listener.clear();
        guests.whole()?;
        if less.end == End::Done {
            remains = Some(remains::make(&guests, &words, &header, &less, &folder.path)?);
        }
        shrunk = Some(less);
    }
    let left = shrunk.as_ref().map_or(&worst, |s| &s.candidate);
    Ok(LabHunt {
        command: guests::command(&words, left),
        header,
        folder: folder.path,
        search,
        shrinks: options.shrink,
        remains,
        shrunk,
        runs: guests.runs,
        took: begin.elapsed(),
        unwatched,
        interrupted: bench.stopped(),
    })
}

/// Guests of the one kernel.
fn ready<'a>(
    bench: &'a Bench<'a>,
    emulator: &'a Emulator,
    words: &Request,
) -> Result<Guests<'a>, SearchError> {
    let mut kernel = None;
    words.cells(&mut |name, arch| {
        let found = bench.obtain(name, arch)?;
        kernel = Some(found.clone());
        Ok(found)
    })?;
    let kernel = kernel.ok_or(SearchError::NoKernel)?;
    Guests::of(bench, emulator, words.clone(), kernel, bench.jobs())
}

/// Tells of a find that is made smaller.
fn shrinking<'a>(listener: &'a dyn HuntListener) -> Box<dyn FnMut(usize) + 'a> {
    let mut first = None;
    Box::new(move |runs| {
        let first = *first.get_or_insert(runs);
        listener.shrinking(runs.saturating_sub(first));
    })
}

/// Searches until the time or the number is reached; what was known is not run again.
fn searched(
    evaluations: Option<u64>,
    search: &mut Search,
    folder: &mut Folder,
    evaluator: &mut dyn Evaluator,
    listener: &dyn HuntListener,
) -> Result<End, SearchError> {
    let known = std::mem::take(&mut folder.entries);
    let count = known.len();
    if count > 0 {
        listener.note(&format!("{count} candidates were run before"));
    }
    let mut broken = None;
    let most = evaluations.unwrap_or(u64::MAX);
    let end = crate::hunt::hunt(search, known, most, evaluator, &mut |search, entry| {
        listener.known(search);
        if let Err(e) = folder.keep(entry) {
            broken.get_or_insert(e);
        }
    });
    listener.clear();
    if let Some(failure) = broken {
        return Err(failure);
    }
    end.map_err(|line| SearchError::ForeignCandidate {
        path: folder.path.join(corpus::CORPUS),
        nr: line.nr,
        why: line.why,
    })
}

/// What the answer is made of is run again, where the same run shows the same: the latest of all that are known, and of the single
/// loads. There is no run file of a candidate that its line could be held against.
fn held(folder: &Folder, evaluator: &mut dyn Evaluator) -> Result<(), SearchError> {
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
            return Err(SearchError::OtherResult {
                path: folder.path.join(corpus::CORPUS),
                nr: entry.nr,
                candidate: entry.candidate.to_string(),
                then,
                now,
            });
        }
    }
    Ok(())
}

/// An evaluator that runs nothing twice.
struct Remembered<'a> {
    folder: &'a mut Folder,
    evaluator: &'a mut dyn Evaluator,
    broken: Option<SearchError>,
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
) -> Result<Shrunk, SearchError> {
    let mut remembered = Remembered { folder, evaluator, broken: None };
    let shrunk = shrink(worst, latest_ns, within, space, &mut remembered);
    remembered.broken.take().map_or(Ok(shrunk), Err)
}

/// The candidate that is to be made smaller: that of this number, else the worst.
fn chosen(search: &Search, nr: Option<u64>, stop: SearchStop) -> Result<&Entry, SearchError> {
    let worst = search.worst().ok_or_else(|| nothing(search, stop))?;
    let Some(nr) = nr else { return Ok(worst) };
    let found = search.entries().iter().find(|e| e.nr == nr);
    let ran = found.filter(|e| e.latest_ns().is_some());
    ran.ok_or_else(|| SearchError::NoCandidate { nr, of: search.entries().len() })
}

/// What ended a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchStop {
    /// Its time or its number was over.
    Limit,
    Signal,
}

impl SearchStop {
    fn by_signal_if(interrupted: bool) -> Self {
        if interrupted { Self::Signal } else { Self::Limit }
    }
}

/// Why there is no worst one.
fn nothing(search: &Search, stop: SearchStop) -> SearchError {
    if stop == SearchStop::Signal {
        return SearchError::NothingRanYet;
    }
    let why = search.entries().iter().find_map(|e| match &e.outcome {
        Outcome::Failed(why) => Some(why.as_str()),
        Outcome::Ran(_) => None,
    });
    SearchError::NothingRan { why: why.unwrap_or("none was tried").to_owned() }
}

/// The folder, and what the hunt is of.
fn asked(options: &HuntOptions) -> Result<(PathBuf, CorpusHeader), SearchError> {
    if let Some(folder) = &options.resume {
        let there = corpus::header(folder)?
            .ok_or_else(|| SearchError::NoCorpus { folder: folder.clone() })?;
        return Ok((folder.clone(), there));
    }
    let loops = options.loops.unwrap_or(LOOPS);
    if loops == 0 {
        return Err(SearchError::NoLoops);
    }
    let is_here = options.on_machine.is_some();
    let header = CorpusHeader {
        schema: SCHEMA.to_owned(),
        kernel: if is_here { here::kernel() } else { options.kernel.clone().unwrap_or_default() },
        append: options.append.clone().unwrap_or_default(),
        arch: options.arch.clone().unwrap_or_else(|| "x86_64".to_owned()),
        loops,
        seed: options.seed.unwrap_or(1),
        random: options.random,
        watched: options.has_sections && !is_here,
        here: options.on_machine.as_ref().map(here::how).transpose()?,
        kernel_sha256: String::new(),
        guest_sha256: String::new(),
        qemu: String::new(),
    };
    Ok((options.out.clone().unwrap_or_else(|| PathBuf::from(FOLDER)), header))
}

/// What the lab is asked, but for load, interval and seed.
fn words(header: &CorpusHeader, guest: Option<PathBuf>) -> Request {
    let mut words = Request { kernels: vec![header.kernel.clone()], guest, ..Request::default() };
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

/// Why sections are not watched.
#[derive(Debug, thiserror::Error)]
enum Unwatched {
    /// Nobody wants it.
    #[error("--no-paths")]
    Unwanted,
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// Can sections be watched?
fn watchable(options: &HuntOptions, words: &Request, emulator: &Emulator) -> Result<(), Unwatched> {
    if !options.has_sections {
        return Err(Unwatched::Unwanted);
    }
    paths::possible(words.arch()?, Accelerator::Tcg, 1)?;
    paths::plugin(emulator)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Candidate, CorpusHeader, End, Entry, Evaluator, Folder, Origin, Outcome};
    use crate::hunt::{Guidance, LEFT_OUT, Random, Values, lab};
    use tailbound_core::Spec;
    use tailbound_core::calls::Calls;
    use tailbound_load::{CATALOGUE, check};

    /// A lab in which every run is as late.
    struct Shows(i64);

    impl Evaluator for Shows {
        fn evaluate(&mut self, batch: &[Candidate], told: &mut dyn FnMut(Outcome)) -> End {
            for _ in batch {
                told(Outcome::Ran(crate::hunt::Figures {
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
        let header = CorpusHeader { watched: false, ..super::corpus::tests::some() };
        let mut folder = Folder::open(&top.path().join("hunt"), &header).expect("a folder");
        assert!(super::held(&folder, &mut Shows(1)).is_ok(), "nothing is known");
        for (nr, latest_ns) in [(0, 500), (1, 900)] {
            let figures = crate::hunt::Figures { latest_ns, ..Default::default() };
            let candidate = Candidate { loads: Vec::new(), interval_ns: 250_000 + nr, seed: 1 };
            let outcome = Outcome::Ran(figures);
            folder.entries.push(Entry { nr, origin: Origin::Base, candidate, outcome });
        }
        assert!(super::held(&folder, &mut Shows(900)).is_ok());
        let failure = super::held(&folder, &mut Shows(400)).expect_err("another figure");
        assert_eq!(failure.kind(), tailbound_core::FailureKind::Usage);
        for part in ["corpus.jsonl: candidate 1", "latest 900 ns there, latest 400 ns when"] {
            assert!(failure.to_string().contains(part), "{failure}");
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
        let mut search = crate::hunt::Search::new(lab(), 3, Guidance::Chance);
        let mut random = Random::new(1);
        for _ in 0..20 {
            for proposal in search.generation() {
                let text = proposal.candidate.load();
                for load in &proposal.candidate.loads {
                    assert!(check(load).is_ok(), "{text}: {:?}", check(load).err());
                }
                let latest_ns = i64::try_from(random.within(1, 1000)).unwrap_or(1);
                let figures = crate::hunt::Figures { latest_ns, ..Default::default() };
                search.tell(proposal, crate::hunt::Outcome::Ran(figures));
            }
        }
    }
}
