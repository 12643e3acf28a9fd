// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which file belongs to which of the two systems.
//!
//! A system is a kernel with its preemption model and, in the lab, what was added
//! to its command line. PREEMPT_RT is the real-time side where one system alone has it.

use tailbound_core::Run;
use tailbound_core::order;
use tailbound_core::published::{Published, PublishedError};
use tailbound_core::record::Fact;

use super::published::{PublishedFault, of_published};
use super::side::{Side, of_runs};

/// Both sides and what is known of the machine.
#[derive(Debug)]
pub struct Sides {
    /// The real-time side.
    pub real: Side,
    /// The other.
    pub fast: Side,
    /// The runs, for the facts of their machine; none of published figures.
    pub runs: Vec<Run>,
    /// A deadline that was required or given.
    pub deadline: Option<String>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// The name of a file and its run.
pub type Named = (String, Run);

/// Files as they were given.
#[derive(Debug, Default)]
pub struct Files {
    /// Those named as the real-time side.
    pub real: Vec<Named>,
    /// Those named as the other.
    pub fast: Vec<Named>,
    /// Those whose kernel has to tell.
    pub rest: Vec<Named>,
}

/// Why files cannot be parted into two systems.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SidesError {
    /// Files were named for one side alone.
    #[error("--real and --fast: give files for both sides")]
    OneSide,
    /// The kernels of the others do not tell.
    #[error("{}: name the files of each side with --real FILES --fast FILES", phrase_untold(.systems, .realtime))]
    Untold {
        /// The systems there are.
        systems: Vec<String>,
        /// How many of them have PREEMPT_RT.
        realtime: usize,
    },
    /// All files are of one side.
    #[error("--real and --fast: one side is left without a file")]
    LeftWithout,
    /// What was published cannot be read.
    #[error("--published {file}: {why}")]
    Unread {
        /// The file.
        file: String,
        /// Where, and why.
        #[source]
        why: Box<PublishedError>,
    },
    /// A figure that was published is none.
    #[error("--published {file}: {why}")]
    Published {
        /// The file.
        file: String,
        /// Which, and why.
        #[source]
        why: PublishedFault,
    },
}

fn phrase_untold(systems: &[String], realtime: &usize) -> String {
    let names = systems.join("; ");
    match systems.len() {
        0 => "no run was given".to_owned(),
        1 => format!("all runs are of one system ({names})"),
        2 if *realtime == 0 => format!("neither system has PREEMPT_RT ({names})"),
        2 => format!("both systems have PREEMPT_RT ({names})"),
        n => format!("there are {n} systems ({names})"),
    }
}

impl Sides {
    /// Of run files; a deadline that is given stands before one that a run required.
    ///
    /// # Errors
    /// When they cannot be parted into two systems.
    pub fn of_files(files: Files, deadline_ns: Option<i64>) -> Result<Self, SidesError> {
        let Files { mut real, mut fast, rest } = files;
        if real.is_empty() != fast.is_empty() && rest.is_empty() {
            return Err(SidesError::OneSide);
        }
        sort(rest, &mut real, &mut fast)?;
        let mut notes = Vec::new();
        for side in [&real, &fast] {
            let mut systems: Vec<String> = side.iter().map(|(_, run)| system(run)).collect();
            order::by(&mut systems, Ord::cmp);
            systems.dedup();
            if systems.len() > 1 {
                notes.push(format!("One side combines several systems: {}.", systems.join("; ")));
            }
        }
        notes.extend(differences(&real, &fast));
        let all = || real.iter().chain(&fast).map(|(_, run)| run);
        let required = all().find_map(|r| r.header.plan.requirement.deadline_ns);
        let deadline_ns = deadline_ns.or(required);
        let side = |runs: &[Named]| {
            let name = runs.first().map(|(_, run)| system(run)).unwrap_or_default();
            let runs: Vec<(&str, &Run)> = runs.iter().map(|(f, r)| (f.as_str(), r)).collect();
            of_runs(&name, &runs, deadline_ns)
        };
        let (mut a, mut b) = (side(&real), side(&fast));
        if a.name == b.name {
            a.name.push_str(" (real time)");
            b.name.push_str(" (real fast)");
        }
        Ok(Self {
            real: a,
            fast: b,
            deadline: deadline_ns.map(tailbound_core::units::exact),
            notes,
            runs: real.into_iter().chain(fast).map(|(_, run)| run).collect(),
        })
    }
}

impl Sides {
    /// Of published figures in `text`; `file` is what was given, `name` what people know it by.
    ///
    /// # Errors
    /// When it holds none, or not enough of them.
    pub fn of_published(text: &str, file: &str, name: &str) -> Result<Self, SidesError> {
        let wrong = |why| SidesError::Published { file: file.to_owned(), why };
        let unread = |why| SidesError::Unread { file: file.to_owned(), why: Box::new(why) };
        let figures = Published::parse(text).map_err(unread)?;
        let name = figures.source.clone().unwrap_or_else(|| name.to_owned());
        Ok(Self {
            real: of_published(&figures.real, &name).map_err(wrong)?,
            fast: of_published(&figures.fast, &name).map_err(wrong)?,
            runs: Vec::new(),
            deadline: None,
            notes: vec![format!("Published figures: {name}.")],
        })
    }
}

/// Puts the files that were given without a side where their kernels tell.
fn sort(rest: Vec<Named>, real: &mut Vec<Named>, fast: &mut Vec<Named>) -> Result<(), SidesError> {
    if rest.is_empty() && !real.is_empty() {
        return Ok(());
    }
    let mut systems: Vec<(String, bool)> = Vec::new();
    for (_, run) in &rest {
        let one = (system(run), realtime(run));
        if !systems.contains(&one) {
            systems.push(one);
        }
    }
    let named = !real.is_empty() || !fast.is_empty();
    let told = systems.iter().filter(|s| s.1).count();
    if !named && (systems.len() != 2 || told != 1) {
        let systems = systems.into_iter().map(|s| s.0).collect();
        return Err(SidesError::Untold { systems, realtime: told });
    }
    for (file, run) in rest {
        if realtime(&run) { real.push((file, run)) } else { fast.push((file, run)) }
    }
    if real.is_empty() || fast.is_empty() {
        return Err(SidesError::LeftWithout);
    }
    Ok(())
}

fn text<'a>(run: &'a Run, fact: &str) -> Option<&'a str> {
    run.header.machine.get(fact).and_then(Fact::as_str)
}

/// Does the kernel say that it is PREEMPT_RT?
fn realtime(run: &Run) -> bool {
    match text(run, "kernel.preempt") {
        Some(word) => word == "rt",
        None => text(run, "kernel.version").is_some_and(|v| v.contains("PREEMPT_RT")),
    }
}

/// What people call the system of a run.
fn system(run: &Run) -> String {
    if let Some(lab) = &run.header.lab {
        return format!("{} {}", lab.kernel.name, lab.append).trim_end().to_owned();
    }
    let release = text(run, "kernel.release").unwrap_or("kernel unknown");
    match text(run, "kernel.preempt") {
        Some("rt") => format!("{release} (PREEMPT_RT)"),
        Some(word) => format!("{release} (preempt {word})"),
        None => release.to_owned(),
    }
}

/// What else than the kernel differs between the sides and would invalidate the comparison.
fn differences(real: &[Named], fast: &[Named]) -> Vec<String> {
    type Of = fn(&Run) -> String;
    let what: [(&str, Of); 4] = [
        ("processor", |r| text(r, "cpu.model").unwrap_or("unknown").to_owned()),
        ("CPUs online", |r| text(r, "cpu.online").unwrap_or("unknown").to_owned()),
        ("interval", |r| r.header.plan.interval_words()),
        ("loads", |r| {
            let loads: Vec<String> = r.header.plan.loads.iter().map(ToString::to_string).collect();
            if loads.is_empty() { "none".to_owned() } else { loads.join(" + ") }
        }),
    ];
    let mut out = Vec::new();
    for (name, of) in what {
        let values = |side: &[Named]| {
            let mut v: Vec<String> = side.iter().map(|(_, run)| of(run)).collect();
            order::by(&mut v, Ord::cmp);
            v.dedup();
            v.join(", ")
        };
        let (a, b) = (values(real), values(fast));
        if a != b {
            out.push(format!("The systems differ in {name} too: {a} against {b}."));
        }
    }
    out
}
