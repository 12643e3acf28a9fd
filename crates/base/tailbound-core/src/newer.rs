// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run file of a later version holds that this one does not know, said by name.
//!
//! Files of a later version stay readable (docs/run-file.md); what is not
//! known is kept, and never taken for something else in silence.
//! Not here: line types, which the reader passes over (`runfile::read`).

use crate::Run;
use crate::context::Context;
use crate::ended::EndReason;
use crate::finding::Impact;
use crate::plan::{Clock, Means, Observe, Plan, StopRule};
use crate::policy::Policy;
use crate::requirement::Class;
use crate::verdict::Outcome;
use crate::words::Word;

impl Plan {
    /// Keys of this plan that this version does not know, each with what it is: such a plan
    /// can be shown, but not carried out.
    #[must_use]
    pub fn unknown_words(&self) -> Vec<String> {
        let mut out = Vec::new();
        let mut unknown = |what: &str, word: Option<Word>| {
            out.extend(word.map(|word| format!("{what} `{word}`")));
        };
        unknown("clock", if let Clock::Unknown(w) = self.clock { Some(w) } else { None });
        unknown("means", if let Means::Unknown(w) = self.means { Some(w) } else { None });
        unknown("policy", if let Policy::Unknown(w) = self.policy { Some(w) } else { None });
        unknown(
            "class",
            if let Class::Unknown(w) = self.requirement.class { Some(w) } else { None },
        );
        unknown(
            "observe",
            match self.observe {
                Some(Observe::Unknown(w)) => Some(w),
                _ => None,
            },
        );
        unknown(
            "stopping rule",
            match self.until.as_ref().map(|u| u.rule) {
                Some(StopRule::Unknown(w)) => Some(w),
                _ => None,
            },
        );
        out
    }
}

impl Run {
    /// Keys of the whole run that this version does not know, each with what it is.
    #[must_use]
    pub fn unknown_words(&self) -> Vec<String> {
        let mut out = self.header.plan.unknown_words();
        let contexts = self.contexts().into_iter().filter_map(|c| match c {
            Context::Unknown(w) => Some(format!("context `{w}`")),
            _ => None,
        });
        out.extend(contexts);
        let impacts = self.findings.iter().filter_map(|f| match f.impact {
            Impact::Unknown(w) => Some(format!("impact `{w}`")),
            _ => None,
        });
        out.extend(impacts);
        if let Some(Outcome::Unknown(w)) = self.verdict.as_ref().map(|v| v.outcome) {
            out.push(format!("outcome `{w}`"));
        }
        if let EndReason::Unknown(w) = self.end_reason() {
            out.push(format!("end `{w}`"));
        }
        out.dedup();
        out
    }
}
