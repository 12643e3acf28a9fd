// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is every file in a folder whole, or a shorter run that says so?

use std::io::BufReader;
use std::path::{Path, PathBuf};

use tailbound_core::Run;
use tailbound_core::runfile::read_run;
use tailbound_core::verdict::Outcome;

/// Every file below `folder`, in order.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            found.extend(below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What is wrong with the files below `folder`, one line each.
pub(crate) fn faults(folder: &Path) -> Vec<String> {
    let wrong = |path: PathBuf| {
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        whole(&path).err().map(|why| format!("{name}: {why}"))
    };
    below(folder).into_iter().filter_map(wrong).collect()
}

fn whole(path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    match name.rsplit_once('.').map(|(_, kind)| kind) {
        Some("jsonl") => run(path),
        Some("html") if text.trim_end().ends_with("</html>") => Ok(()),
        Some("html") => Err(format!("a page cut off after {} bytes", bytes.len())),
        Some("json") => serde_json::from_str::<serde_json::Value>(&text)
            .map(drop)
            .map_err(|e| format!("not JSON: {e}")),
        // What a child said: kept while it runs, and after a kill for who looks why.
        Some("toml" | "console" | "log") => Ok(()),
        _ => Err("nobody asked for this file".to_owned()),
    }
}

/// A run file that can be read, and that claims nothing it does not hold.
fn run(path: &Path) -> Result<(), String> {
    let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
    let run: Run = read_run(BufReader::new(file)).map_err(|e| e.to_string())?;
    let met = run.verdict.as_ref().is_some_and(|v| v.outcome == Outcome::Met);
    if met && run.end.is_none() {
        return Err("met, though it was cut off".to_owned());
    }
    Ok(())
}
