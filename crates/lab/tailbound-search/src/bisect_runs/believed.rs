// SPDX-License-Identifier: MIT OR Apache-2.0
//! A journal against the run files beside it: a figure is used only if the file that it names holds it.
//!
//! Units: ns. What contradicts its file is refused, with both; what names no file, or one that is gone, is measured
//! again, and said. Not here: whether the run is one of the variant (`lab`).

use std::collections::BTreeMap;
use std::path::Path;

use tailbound_core::Run;
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_lab::LabError;
use tailbound_lab::hash;
use tailbound_lab::matrix::RunReader;

use super::file_names::{self, JOURNAL};
use super::measure::{Measure, NoFigure};
use crate::bisect::{Journal, Measured, Step};
use crate::error::SearchError;

/// What a figure is worth.
enum Found {
    /// As it was measured.
    Same,
    /// There is nothing to hold it against: why.
    Nothing(String),
}

/// What contradicts a figure of the journal.
#[derive(Debug, thiserror::Error)]
enum Contradiction {
    #[error("{run} is the run file of another step too ({other})")]
    Shared { run: String, other: String },
    #[error("{0:?} is not the name of a run file of a search")]
    Name(String),
    #[error("{run} is another file than was measured: SHA-256 {now}, {then} in the journal")]
    OtherFile { run: String, now: String, then: String },
    #[error(transparent)]
    Unreadable(#[from] LabError),
    #[error("{run}: {why}, and the journal says {}", both(*journal_ns))]
    NoFigure { run: String, why: NoFigure, journal_ns: i64 },
    #[error("{run} has a {title} of {}, and the journal says {}", both(*held_ns), both(*journal_ns))]
    OtherFigure { run: String, title: String, held_ns: i64, journal_ns: i64 },
}

/// Looks at every figure of `journal`. Forgets those that have nothing beside them, and yields what is to be said of them.
///
/// Usage errors say what differs, and where.
pub(super) fn look(
    folder: &Path,
    journal: &mut Journal,
    measure: Measure,
    read: &RunReader<'_>,
) -> Result<Vec<String>, SearchError> {
    let (mut notes, mut gone) = (Vec::new(), Vec::new());
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (at, step) in journal.steps().iter().enumerate() {
        let Measured::ValueNs(ns) = step.measured else { continue };
        let title = step.title.as_deref().unwrap_or(&step.key);
        let refused = |why: Contradiction| SearchError::Contradicted {
            path: folder.join(JOURNAL),
            step: at + 1,
            title: title.to_owned(),
            why: why.to_string(),
        };
        if let Some(name) = &step.run
            && let Some(other) = names.insert(name.clone(), step.key.clone())
            && other != step.key
        {
            return Err(refused(Contradiction::Shared { run: name.clone(), other }));
        }
        match of_step(folder, step, (ns, measure), read).map_err(refused)? {
            Found::Same => {}
            Found::Nothing(why) => {
                notes.push(format!("{title}: {why}: it is measured again"));
                gone.push(at);
            }
        }
    }
    let mut at = 0..;
    journal.keep(|_| at.next().is_none_or(|at| !gone.contains(&at)));
    Ok(notes)
}

/// A figure of `ns` against its file; an error is what contradicts it.
fn of_step(
    folder: &Path,
    step: &Step,
    (ns, measure): (i64, Measure),
    read: &RunReader<'_>,
) -> Result<Found, Contradiction> {
    let Some(name) = &step.run else {
        return Ok(Found::Nothing("the journal names no run file of it".to_owned()));
    };
    if !file_names::is_run_name(name) {
        return Err(Contradiction::Name(name.clone()));
    }
    let path = folder.join(name);
    if path.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Ok(Found::Nothing(format!("{name} is gone")));
    }
    if let Some(then) = &step.run_sha256 {
        let now = hash::of_file(&path)?;
        if now != *then {
            let (run, then) = (name.clone(), then.clone());
            return Err(Contradiction::OtherFile { run, now, then });
        }
    }
    let run = read(&path)?;
    let held = match of_run(measure, &run) {
        Ok(Some(held)) => held,
        Ok(None) => return Ok(Found::Nothing(format!("{name} does not hold its sections"))),
        Err(why) => {
            return Err(Contradiction::NoFigure { run: name.clone(), why, journal_ns: ns });
        }
    };
    if held != ns {
        let (run, title) = (name.clone(), measure.title());
        return Err(Contradiction::OtherFigure { run, title, held_ns: held, journal_ns: ns });
    }
    Ok(Found::Same)
}

/// The figure that a run file holds, computed as it was when the run was made; none where earlier versions did not keep it.
fn of_run(measure: Measure, run: &Run) -> Result<Option<i64>, NoFigure> {
    match (measure, &run.paths) {
        (Measure::Section, Some(paths)) => Measure::of_paths(paths).map(Some),
        (Measure::Section, None) => Ok(None),
        (Measure::Max | Measure::Quantile(_), _) => measure.of_run(run).map(Some),
    }
}

/// For people, and to the ns.
fn both(ns: i64) -> String {
    format!("{} ({} ns)", format_ns_i64(ns), grouped(ns.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    use tailbound_core::{Distribution, FailureKind, runfile};

    const NAME: &str = "step-001.tailbound.jsonl";

    /// A run file whose latest wake-up is `ns`.
    fn write(path: &Path, ns: i64) {
        let column: String = (0..2000).map(|i| format!("{}\n", ns - 1999 + i)).collect();
        let run = tailbound_import::import(NAME, format!("# latency_ns\n{column}").as_bytes());
        let bytes = runfile::write_run(&run.expect("a column"), Vec::new()).expect("written");
        std::fs::write(path, bytes).expect("written");
    }

    fn read(path: &Path) -> Result<Run, LabError> {
        let bytes = std::fs::read(path).map_err(|e| LabError::file(path, e))?;
        runfile::read_run(bytes.as_slice()).map_err(|e| LabError::Caller {
            kind: FailureKind::Usage,
            text: format!("{}: {e}", path.display()),
        })
    }

    fn look(
        folder: &Path,
        journal: &mut Journal,
        measure: Measure,
    ) -> Result<Vec<String>, SearchError> {
        super::look(folder, journal, measure, &read)
    }

    fn journal(steps: &[Step]) -> Journal {
        let mut journal = Journal::new("x");
        steps.iter().cloned().for_each(|s| journal.add(s));
        journal
    }

    fn step(ns: i64) -> Step {
        Step {
            key: "a b".to_owned(),
            title: Some("A".to_owned()),
            measured: Measured::ValueNs(ns),
            run: Some(NAME.to_owned()),
            run_sha256: None,
            note: None,
        }
    }

    fn refused(folder: &Path, step: Step) -> String {
        let failure = look(folder, &mut journal(&[step]), Measure::Max).expect_err("refused");
        assert_eq!(failure.kind(), FailureKind::Usage);
        failure.to_string()
    }

    #[test]
    fn a_figure_that_its_run_file_does_not_hold_is_refused_with_both() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, at) = (folder.path().join(NAME), folder.path());
        write(&path, 52_000);
        let with = Step { run_sha256: Some(hash::of_file(&path).expect("read")), ..step(52_000) };
        for good in [step(52_000), with.clone()] {
            let mut known = journal(&[good]);
            assert_eq!(look(at, &mut known, Measure::Max).expect("believed"), Vec::<String>::new());
            assert_eq!(known.steps().len(), 1);
        }
        let why = refused(at, step(4_000));
        for part in [
            "journal.jsonl: step 1 (A)",
            NAME,
            "52.0 µs (52,000 ns)",
            "4.00 µs (4,000 ns)",
            "--force",
        ] {
            assert!(why.contains(part), "no `{part}` in: {why}");
        }
        // The median is another figure of the same file.
        let mut median = journal(&[step(52_000)]);
        assert!(look(at, &mut median, Measure::Quantile(0.5)).is_err());
        // The same figure in another file.
        let text = std::fs::read_to_string(&path).expect("read");
        std::fs::write(&path, text.replacen("tailbound ", "tailbound  ", 1) + "\n")
            .expect("written");
        assert!(refused(at, with).contains("another file than was measured"));
        std::fs::write(&path, "{}\n").expect("written");
        assert!(refused(at, step(52_000)).contains(NAME));
        for name in ["../step-001.tailbound.jsonl", "/etc/passwd", "journal.jsonl"] {
            let why = refused(at, Step { run: Some(name.to_owned()), ..step(1) });
            assert!(why.contains("not the name of a run file"), "{why}");
        }
        write(&path, 52_000);
        let two = [step(52_000), Step { key: "c".to_owned(), ..step(52_000) }];
        let why = look(at, &mut journal(&two), Measure::Max).expect_err("one file, two steps");
        let why = why.to_string();
        assert!(why.contains("of another step too (a b)"), "{why}");
    }

    #[test]
    fn a_figure_without_a_file_is_measured_again_and_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let unfit = Step {
            key: "no".to_owned(),
            measured: Measured::Unfit("no boot".to_owned()),
            run: None,
            ..step(0)
        };
        let nameless = Step { key: "c".to_owned(), run: None, ..step(7) };
        let mut known = journal(&[step(7), nameless, unfit.clone()]);
        let notes = look(folder.path(), &mut known, Measure::Max).expect("measured again");
        assert!(
            notes[0].contains("is gone") && notes[1].contains("names no run file"),
            "{notes:?}"
        );
        assert_eq!(known.steps(), [unfit]);
        // Sections are not in the run files of earlier versions.
        write(&folder.path().join(NAME), 9);
        let notes = look(folder.path(), &mut journal(&[step(9)]), Measure::Section).expect("again");
        assert!(notes[0].contains("does not hold its sections"), "{notes:?}");
        assert_eq!(Distribution::default().n, 0);
    }
}
