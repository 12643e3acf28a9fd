// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a meter, a journal and a limit to an oracle: what is in the journal is not measured again.

use crate::bisect::arm::Arm;
use crate::bisect::ends::Limit;
use crate::bisect::journal::{Journal, Measured, Step};
use crate::bisect::oracle::{Answer, Oracle};

/// Measures variants; `T` says which.
pub trait Meter<T> {
    /// Why it stopped.
    type Error;

    /// What the variant is known by: the same words, the same figure. A control has words of its own.
    fn key(&self, at: &T, arm: Arm) -> String;

    /// Measures all of them, and adds a step for each to the journal as it comes.
    ///
    /// # Errors
    /// It was interrupted, or something is wrong that no other variant would mend.
    fn measure(&mut self, variants: &[(T, Arm)], journal: &mut Journal) -> Result<(), Self::Error>;

    /// Is the run that a step of the journal names one of this variant? Asked of each step that is not measured, before its
    /// figure is used.
    ///
    /// # Errors
    /// It is not: nothing follows from such a journal.
    fn believe(&mut self, _at: &T, _arm: Arm, _step: &Step) -> Result<(), Self::Error> {
        Ok(())
    }

    /// How many variants it measures in the time of one.
    fn at_once(&self) -> usize {
        1
    }
}

/// The steps of all these variants: from the journal, or measured now. In their order; none where the meter left
/// one out.
///
/// # Errors
/// The meter's; the journal has what was measured until then.
pub fn recall<T: Clone, M: Meter<T> + ?Sized>(
    meter: &mut M,
    journal: &mut Journal,
    variants: &[(T, Arm)],
) -> Result<Vec<Option<Step>>, M::Error> {
    let keys: Vec<String> = variants.iter().map(|(at, c)| meter.key(at, *c)).collect();
    let mut missing: Vec<(T, Arm)> = Vec::new();
    let mut asked: Vec<&String> = Vec::new();
    for (variant, key) in variants.iter().zip(&keys) {
        match journal.get(key) {
            Some(step) => meter.believe(&variant.0, variant.1, step)?,
            None if asked.contains(&key) => {}
            None => {
                asked.push(key);
                missing.push(variant.clone());
            }
        }
    }
    if !missing.is_empty() {
        meter.measure(&missing, journal)?;
    }
    Ok(keys.iter().map(|key| journal.get(key).cloned()).collect())
}

/// An oracle.
#[derive(Debug)]
pub struct Judged<'a, M: ?Sized> {
    /// Who measures.
    pub meter: &'a mut M,
    /// What was measured.
    pub journal: &'a mut Journal,
    /// What is bad.
    pub limit: Limit,
}

impl<M: ?Sized> Judged<'_, M> {
    fn answer(&self, step: Option<&Step>) -> Answer {
        match step.map(|s| &s.measured) {
            Some(Measured::ValueNs(ns)) if self.limit.is_bad(*ns) => Answer::Bad,
            Some(Measured::ValueNs(_)) => Answer::Good,
            Some(Measured::Unfit(_)) | None => Answer::Skip,
        }
    }
}

impl<T: Clone, M: Meter<T> + ?Sized> Oracle<T> for Judged<'_, M> {
    type Error = M::Error;

    fn ask(&mut self, questions: &[T]) -> Result<Vec<Answer>, M::Error> {
        let variants: Vec<(T, Arm)> = questions.iter().map(|q| (q.clone(), Arm::Itself)).collect();
        let steps = recall(self.meter, self.journal, &variants)?;
        Ok(steps.iter().map(|step| self.answer(step.as_ref())).collect())
    }

    fn at_once(&self) -> usize {
        self.meter.at_once()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::culprits::Culprits;
    use crate::bisect::ends::Ends;

    /// 32 options of 100 ns and 10 ns for each; the fifth and the twentieth together 1000. Stops after some.
    struct Options {
        left: usize,
        measured: Vec<String>,
    }

    impl Meter<Vec<usize>> for Options {
        type Error = &'static str;

        fn key(&self, at: &Vec<usize>, arm: Arm) -> String {
            format!("{at:?}{}", if arm.is_control() { " control" } else { "" })
        }

        fn measure(
            &mut self,
            variants: &[(Vec<usize>, Arm)],
            journal: &mut Journal,
        ) -> Result<(), &'static str> {
            for (set, arm) in variants {
                self.left = self.left.checked_sub(1).ok_or("interrupted")?;
                let key = self.key(set, *arm);
                let late = if set.contains(&5) && set.contains(&20) { 1000 } else { 0 };
                let noise = if *arm == Arm::Control { 7 } else { 0 };
                let ns = i64::try_from(100 + 10 * set.len()).unwrap() + late + noise;
                let measured = Measured::ValueNs(ns);
                journal.add(Step {
                    key: key.clone(),
                    title: None,
                    measured,
                    run: None,
                    run_sha256: None,
                    note: None,
                });
                self.measured.push(key);
            }
            Ok(())
        }
    }

    fn search(meter: &mut Options, journal: &mut Journal) -> Result<Culprits, &'static str> {
        let (good, bad): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..32).collect());
        let ends = [
            (good.clone(), Arm::Itself),
            (bad.clone(), Arm::Itself),
            (good, Arm::Control),
            (bad, Arm::Control),
        ];
        let steps = recall(meter, journal, &ends)?;
        let value = |i: usize| match steps.get(i).cloned().flatten().map(|s| s.measured) {
            Some(Measured::ValueNs(ns)) => ns,
            _ => 0,
        };
        let ends = Ends { good_ns: vec![value(0), value(2)], bad_ns: vec![value(1), value(3)] };
        let limit = ends.limit(None).unwrap();
        assert_eq!(limit.floor_ns, Some(7));
        let mut culprits = Culprits::new(32);
        culprits.search(&mut Judged { meter, journal, limit })?;
        Ok(culprits)
    }

    /// Has a journal of another variant in its hands.
    struct Doubts;

    impl Meter<usize> for Doubts {
        type Error = usize;

        fn key(&self, at: &usize, _: Arm) -> String {
            at.to_string()
        }

        fn measure(&mut self, _: &[(usize, Arm)], _: &mut Journal) -> Result<(), usize> {
            Ok(())
        }

        fn believe(&mut self, at: &usize, _: Arm, _: &Step) -> Result<(), usize> {
            if *at == 3 { Err(*at) } else { Ok(()) }
        }
    }

    #[test]
    fn a_figure_of_the_journal_is_used_only_if_the_meter_believes_it() {
        let mut journal = Journal::new("x");
        for key in ["1", "3"] {
            let (key, measured) = (key.to_owned(), Measured::ValueNs(1));
            journal.add(Step {
                key,
                title: None,
                measured,
                run: None,
                run_sha256: None,
                note: None,
            });
        }
        assert!(recall(&mut Doubts, &mut journal, &[(1, Arm::Itself), (2, Arm::Itself)]).is_ok());
        assert_eq!(
            recall(&mut Doubts, &mut journal, &[(1, Arm::Itself), (3, Arm::Itself)]),
            Err(3)
        );
    }

    #[test]
    fn however_often_it_is_interrupted_nothing_is_measured_twice_and_the_answer_is_the_same() {
        let whole = {
            let mut meter = Options { left: 1000, measured: Vec::new() };
            let found = search(&mut meter, &mut Journal::new("x")).unwrap();
            assert_eq!(found.found.first().map(|c| c.members.clone()), Some(vec![5, 20]));
            meter.measured
        };
        for every in 1..whole.len() {
            let mut journal = Journal::new("x");
            let mut measured = Vec::new();
            let found = loop {
                let mut meter = Options { left: every, measured: Vec::new() };
                let result = search(&mut meter, &mut journal);
                measured.extend(meter.measured);
                // As from its file.
                journal = Journal::read(&journal.text(), "x").unwrap();
                if let Ok(found) = result {
                    break found;
                }
            };
            assert_eq!(found.found.first().map(|c| c.members.clone()), Some(vec![5, 20]));
            assert_eq!(measured, whole, "interrupted after every {every}");
        }
    }
}
