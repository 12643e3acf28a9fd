// SPDX-License-Identifier: MIT OR Apache-2.0
//! `no-load`: Tailbound started no load. Before the run that is all there is to say; after it the
//! recorded pressure says whether other work loaded the machine.
//!
//! Not here: reading the pressure ([`tailbound_core::pressure`]).

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::pressure::{CpuPressure, OtherWork};
use tailbound_core::record::Facts;

const ID: &str = "no-load";

/// That no load was started, before anything is known of the machine.
pub(crate) fn not_started() -> Finding {
    Finding::new(ID, Impact::Notice, "Tailbound started no load for this run")
        .meaning("The figures hold for what else ran on the machine, which is not controlled; under load latencies are larger, often by orders of magnitude.")
}

/// The same with what the facts before and after the run say of other work; `None` where the run had loads.
pub(crate) fn found(noticed: &[Finding], before: &Facts, after: &Facts) -> Option<Finding> {
    noticed.iter().find(|f| f.id == ID)?;
    let pressure = CpuPressure::of(before, after);
    let words = pressure.words();
    Some(match pressure.other_work() {
        OtherWork::Seen => Finding::new(
            ID,
            Impact::Notice,
            pressure.other_work_sentence(),
        )
        .meaning("Pressure is the share of 10 s in which a task waited for a CPU. That work is in no record of this run: it can be neither repeated nor compared."),
        OtherWork::NotSeen => Finding::new(
            ID,
            Impact::Notice,
            format!("nothing loaded the machine: Tailbound started no load, and {words}"),
        )
        .meaning("The figures are those of an unloaded machine; under load latencies are larger, often by orders of magnitude."),
        OtherWork::Unknown => Finding::new(
            ID,
            Impact::Notice,
            format!("Tailbound started no load; whether other work loaded the machine is unknown: {words}"),
        )
        .meaning("Under load latencies are larger, often by orders of magnitude."),
    })
}

#[cfg(test)]
mod tests {
    use tailbound_core::pressure::FACT;
    use tailbound_core::record::Fact;

    use super::*;

    #[test]
    fn a_busy_machine_is_not_called_unloaded() {
        let facts = |percent: f64| [(FACT.to_owned(), Fact::of(percent))].into_iter().collect();
        let title = |before: &Facts, after: &Facts| {
            found(&[not_started()], before, after).map(|f| f.title).unwrap_or_default()
        };
        let busy = title(&facts(99.0), &facts(98.0));
        assert!(
            busy.contains("other work") && busy.contains("99 %") && busy.contains("98 %"),
            "{busy}"
        );
        assert!(!busy.contains("nothing loaded"), "{busy}");
        assert!(title(&facts(0.1), &facts(0.2)).starts_with("nothing loaded the machine"));
        assert!(title(&Facts::new(), &Facts::new()).contains("unknown"));
        assert_eq!(found(&[], &facts(99.0), &facts(98.0)), None);
    }
}
