// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU time lent to threads that starve, where somebody asked for it: one thread at a time, for some seconds.
//!
//! Units: ns of CLOCK_MONOTONIC. Not here: how a policy is changed and given back whatever happens
//! (`tailbound-tune`), who starves (`starving`).

use std::collections::BTreeSet;
use std::error::Error;

use serde::Serialize;

use crate::starving::Starving;

/// So long a thread has what it was lent.
const LENT_NS: i64 = 3_000_000_000;

/// Lends CPU time. What it lends ends with it, however it ends.
pub trait Booster {
    /// Lends it to `whom`; the policy that it has now.
    ///
    /// # Errors
    /// It has nothing then.
    fn begin(&mut self, whom: &Starving) -> Result<String, Box<dyn Error>>;
    /// Gives back what was lent.
    ///
    /// # Errors
    /// Something is not as before.
    fn end(&mut self) -> Result<(), Box<dyn Error>>;
}

/// What became of one starving thread, as a line tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Boost {
    comm: String,
    tid: u32,
    at_ns: i64,
    #[serde(flatten)]
    outcome: BoostOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum BoostOutcome {
    /// The policy it has for a while.
    Policy(String),
    /// Why it has none.
    Refused(String),
    /// Why it was not given back.
    Left(String),
}

/// See the module.
pub(crate) struct Boosting {
    booster: Box<dyn Booster>,
    /// Who has something, and until when.
    lent: Option<(Starving, i64)>,
    /// Once each time that it starves: its number, and since when.
    tried: BTreeSet<(u32, i64)>,
    /// How often it was lent.
    pub(crate) n: u64,
}

impl Boosting {
    pub(crate) fn new(booster: Box<dyn Booster>) -> Self {
        Self { booster, lent: None, tried: BTreeSet::new(), n: 0 }
    }

    /// Until something is to be given back.
    pub(crate) fn left_ns(&self, now_ns: i64) -> Option<i64> {
        self.lent.as_ref().map(|(_, until)| until.saturating_sub(now_ns).max(0))
    }

    /// Gives back what it is time for, and lends to who starves longest.
    pub(crate) fn go_on(&mut self, starving: &[&Starving], now_ns: i64) -> Vec<Boost> {
        let mut lines = Vec::new();
        if self.left_ns(now_ns) == Some(0) {
            lines.extend(self.end(now_ns));
        }
        self.tried
            .retain(|(tid, since)| starving.iter().any(|s| (s.tid, s.since_ns) == (*tid, *since)));
        while self.lent.is_none() {
            let waits = |s: &&&Starving| !self.tried.contains(&(s.tid, s.since_ns));
            let Some(next) = starving.iter().filter(waits).max_by_key(|s| s.for_ns) else { break };
            self.tried.insert((next.tid, next.since_ns));
            let outcome = match self.booster.begin(next) {
                Ok(policy) => {
                    self.n = self.n.saturating_add(1);
                    self.lent = Some(((*next).clone(), now_ns.saturating_add(LENT_NS)));
                    BoostOutcome::Policy(policy)
                }
                Err(why) => BoostOutcome::Refused(why.to_string()),
            };
            lines.push(line(next, now_ns, outcome));
        }
        lines
    }

    /// Gives back what is lent; a line where that failed.
    pub(crate) fn end(&mut self, now_ns: i64) -> Option<Boost> {
        let (whom, _) = self.lent.take()?;
        let why = self.booster.end().err()?;
        Some(line(&whom, now_ns, BoostOutcome::Left(why.to_string())))
    }
}

fn line(whom: &Starving, at_ns: i64, outcome: BoostOutcome) -> Boost {
    Boost { comm: whom.comm.clone(), tid: whom.tid, at_ns, outcome }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::starving::Starver;
    use crate::window::Policy;

    /// Notes what is asked of it; odd threads are refused.
    struct Played(Rc<RefCell<Vec<String>>>);

    impl Booster for Played {
        fn begin(&mut self, whom: &Starving) -> Result<String, Box<dyn Error>> {
            self.0.borrow_mut().push(format!("lend {}", whom.tid));
            if whom.tid % 2 == 1 { Err("it is odd".into()) } else { Ok("deadline:20us/1s".into()) }
        }
        fn end(&mut self) -> Result<(), Box<dyn Error>> {
            self.0.borrow_mut().push("end".into());
            Ok(())
        }
    }

    fn starving(tid: u32, for_ns: i64) -> Starving {
        Starving {
            comm: "t".to_owned(),
            pid: 1,
            tid,
            start_ticks: 1,
            policy: Policy::of(0, 0),
            cpu: 0,
            since_ns: 9,
            for_ns,
            by: Starver::Unknown("unknown: test"),
        }
    }

    #[test]
    fn one_at_a_time_the_longest_first_and_each_once() {
        let asked = Rc::new(RefCell::new(Vec::new()));
        let mut boosting = Boosting::new(Box::new(Played(Rc::clone(&asked))));
        let all = [starving(2, 5), starving(3, 9), starving(4, 7)];
        let all: Vec<&Starving> = all.iter().collect();
        let lines = boosting.go_on(&all, 0);
        assert_eq!(*asked.borrow(), ["lend 3", "lend 4"]);
        let text = |lines: &[Boost]| serde_json::to_string(lines).unwrap();
        assert_eq!(
            text(&lines),
            r#"[{"comm":"t","tid":3,"at_ns":0,"refused":"it is odd"},{"comm":"t","tid":4,"at_ns":0,"policy":"deadline:20us/1s"}]"#
        );
        assert_eq!(boosting.left_ns(1), Some(LENT_NS - 1));
        assert_eq!(boosting.go_on(&all, LENT_NS - 1), []);
        assert_eq!(boosting.go_on(&all, LENT_NS).len(), 1);
        assert_eq!(asked.borrow()[2..], ["end", "lend 2"]);
        assert_eq!(boosting.go_on(&all, 2 * LENT_NS), [], "each had its turn");
        assert_eq!((boosting.left_ns(0), boosting.n), (None, 2));
        // It ran, and starves again.
        assert_eq!(boosting.go_on(&[], 2 * LENT_NS), []);
        assert_eq!(boosting.go_on(&all[..1], 2 * LENT_NS).len(), 1);
        assert_eq!(boosting.end(0), None);
        assert_eq!(asked.borrow().last().map(String::as_str), Some("end"));
    }
}
