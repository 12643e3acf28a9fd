// SPDX-License-Identifier: MIT OR Apache-2.0
//! Build tests: does a source compile in several configurations, and if not, where.
//!
//! Units: s. Each has an output folder of its own, deleted when it passed:
//! `allmodconfig` alone fills many gigabytes and takes hours on two cores.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::configure::configure;
use super::fragment::Wanted;
use super::make::Make;
use super::request::BuildTest;
use super::work::Workshop;
use crate::error::LabError;
use crate::kernel::Config;

/// One configuration's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// `allmodconfig`, `randconfig:7`, …
    pub test: String,
    /// Did it compile and link?
    pub passed: bool,
    /// Options that are on.
    pub options: usize,
    /// Files compiled, assembled, linked.
    pub objects: u64,
    /// How long it took.
    pub seconds: f64,
    /// The first error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
}

impl Workshop<'_> {
    /// Builds each configuration; one that fails does not keep the others from being tried.
    ///
    /// # Errors
    /// The source or compiler is missing; interrupted.
    pub fn test(&mut self, tests: &[BuildTest]) -> Result<Vec<TestResult>, LabError> {
        let _lock = self.store.lock(&format!("work/{}", self.request.name), self.note)?;
        let (base, wanted) = self.begin()?;
        let mut results = Vec::new();
        for test in tests {
            let name = test.to_string();
            (self.note)(&format!("{name}: configuring"));
            let make = Make { out: self.folder()?.join(name.replace(':', "-")), ..base.clone() };
            let log = make.out.with_extension("log");
            let begun = Instant::now();
            let mut result = TestResult {
                test: name,
                passed: false,
                options: 0,
                objects: 0,
                seconds: 0.0,
                error: None,
                log: None,
            };
            let done = self.settle(&make, test, &wanted).and_then(|config| {
                result.options = config.iter().count();
                let jobs = self.request.jobs;
                make.build(&["all"], jobs, &log, self.progress, self.stop)
            });
            result.seconds = begun.elapsed().as_secs_f64();
            match done {
                Ok(built) => {
                    result.passed = true;
                    result.objects = built.objects;
                    fs::remove_dir_all(&make.out).map_err(|e| LabError::file(&make.out, e))?;
                }
                Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                Err(e) => result.error = Some(e.to_string()),
            }
            result.log = log.exists().then_some(log);
            results.push(result);
        }
        Ok(results)
    }

    fn settle(
        &mut self,
        make: &Make,
        test: &BuildTest,
        wanted: &Wanted,
    ) -> Result<Config, LabError> {
        let target = match test {
            BuildTest::AllMod => "allmodconfig",
            BuildTest::AllYes => "allyesconfig",
            BuildTest::AllNo => "allnoconfig",
            BuildTest::Random(_) => "randconfig",
            BuildTest::Guest => {
                let base = self.request.config.as_deref();
                return configure(make, wanted, base, self.note);
            }
        };
        let seed = match test {
            BuildTest::Random(seed) => vec![format!("KCONFIG_SEED={seed}")],
            _ => Vec::new(),
        };
        make.ask(&[target], &seed)?;
        Config::read(&make.out.join(".config"))
    }
}

/// The results as a table for people.
#[must_use]
pub fn table(results: &[TestResult]) -> String {
    let mut text = format!(
        "{:<18} {:<7} {:>8} {:>8} {:>8}\n",
        "test", "result", "options", "objects", "seconds"
    );
    for r in results {
        let result = if r.passed { "passed" } else { "FAILED" };
        text.push_str(&format!(
            "{:<18} {result:<7} {:>8} {:>8} {:>8.0}\n",
            r.test, r.options, r.objects, r.seconds
        ));
        for line in r.error.iter().flat_map(|e| e.lines()) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}
