// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tutorials have a newcomer do in the lab, as it stands there: each command in its turn, in a folder of the tutorial's own.
//!
//! Two of them; those of the boards and of several CPUs are made by checks of their own. Other commands: the stage `commands`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::super::commands;
use super::Lab;
use crate::exec;

const TUTORIALS: [&str; 2] = ["choose-a-kernel", "find-a-spike"];

/// What the second one names at last, and its page promises.
const CAUSE: &str = "kernel code that cannot be preempted, of";

impl Lab {
    pub(super) fn tutorials(&self, project: &Path) -> anyhow::Result<()> {
        let bin = self.program.parent().context("the program is in no folder")?;
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let mut said = String::new();
        for name in TUTORIALS {
            let page = project.join("docs/tutorials").join(format!("{name}.md"));
            let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
            let folder = self.folder.join(name);
            fs::create_dir(&folder)?;
            let all = commands::left_to_the_lab(&text);
            ensure!(all.len() > 2, "{name} has no commands of the lab: {all:?}");
            for command in all {
                let mut c = exec::command("sh");
                c.args(["-c", &command]).current_dir(&folder).env("PATH", &path);
                said += &self.ends(&mut c, 0)?;
            }
        }
        ensure!(said.contains(CAUSE), "no answer names the cause that was planted:\n{said}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn the_pages_have_commands_of_the_lab_and_name_the_cause() {
        let project = root::project().unwrap();
        for name in TUTORIALS {
            let page = project.join("docs/tutorials").join(format!("{name}.md"));
            let text = fs::read_to_string(page).unwrap();
            let all = commands::left_to_the_lab(&text);
            assert!(all.len() > 2, "{all:?}");
            assert!(all.iter().all(|c| c.starts_with("tailbound ")), "{all:?}");
            assert_eq!(text.contains(CAUSE), name == "find-a-spike");
        }
    }
}
