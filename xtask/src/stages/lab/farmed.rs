// SPDX-License-Identifier: MIT OR Apache-2.0
//! A farm of three boards in the lab and this machine: the regression that is planted is found.
//!
//! Of this machine's own figures nothing is asked.

use std::path::Path;

use anyhow::ensure;

use super::Lab;
use crate::exec;

/// The fewest from which the change can be told.
const NIGHTS: &str = "12";

impl Lab {
    pub(super) fn farmed(&self, project: &Path) -> anyhow::Result<()> {
        let mut c = exec::command("scripts/farm-demo");
        c.arg(&self.program).arg(self.folder.join("farm")).args([NIGHTS, "0", "no"]);
        c.current_dir(project);
        let said = self.ends(&mut c, 0)?;
        ensure!(said.contains("Found: press became worse"), "{said}");
        // The same kernel each night, in virtual time: nothing else may be found on the boards.
        let others = said.lines().find(|l| l.starts_with("Also became worse")).unwrap_or_default();
        ensure!(!others.contains("lathe") && !others.contains("gate"), "{others}");
        Ok(())
    }
}
