// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run as one test suite of JUnit.
//!
//! Units: s. Not here: the format (`crate::cases`).

use tailbound_stats::Analysis;

use super::cases;
use crate::cases::{Suite, junit};

/// A run as one test suite.
pub(super) fn text(analysis: &Analysis<'_>) -> String {
    let run = analysis.run();
    let mut properties = vec![
        ("id".to_owned(), run.header.id.clone()),
        ("tool".to_owned(), run.header.tool.clone()),
    ];
    for (name, fact) in &run.header.machine {
        if matches!(name.as_str(), "kernel.release" | "cpu.model" | "kernel.preempt") {
            properties.push((name.clone(), fact.text()));
        }
    }
    let suite = Suite {
        name: "tailbound".to_owned(),
        time_s: Some(super::seconds(run.measured_ns().into())),
        began: Some(run.header.started.trim_end_matches('Z').to_owned()),
        properties,
        output: Some(crate::digest::headline(run)),
    };
    let class = format!("tailbound.{}", run.header.plan.probe);
    let cases: Vec<_> = cases::of(analysis).into_iter().map(|c| (class.clone(), c)).collect();
    junit(&suite, &cases)
}
