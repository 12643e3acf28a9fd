// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers behind their labels in a line of text: `Min:      1`, `Max  749`, `Cycles 74953`.
//!
//! Units: those of the caller.

use tailbound_core::{Finding, Impact};

use crate::draft::Draft;
use crate::error::Fault;
use crate::text::{self, Lines};

/// The word behind `label`, without a comma at its end.
pub(crate) fn after<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(label)?;
    rest.split_whitespace().next().map(|word| word.trim_end_matches([',', ';']))
}

/// The time behind `label`, in units of `unit_ns`.
pub(crate) fn time(line: &str, label: &str, unit_ns: u64, n: u64) -> Result<i64, Fault> {
    let word = after(line, label).unwrap_or("");
    text::ns(word, unit_ns, n, label.trim_end_matches(':'))
}

/// The count behind `label`.
pub(crate) fn count(line: &str, label: &str, n: u64) -> Result<u64, Fault> {
    text::count(after(line, label).unwrap_or(""), n, label.trim_end_matches(':'))
}

/// The command line that a shell's prompt shows before a tool's output: the words from the tool's name on.
pub(crate) fn command(bytes: &[u8], tools: &[&str]) -> Vec<String> {
    let lines = Lines::new(bytes).filter_map(Result::ok);
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty()).take(200);
    lines.find_map(|(_, line)| typed(&line, tools)).unwrap_or_default()
}

/// The command line that a shell shows in `line`, from the name of one of `tools` on.
pub(crate) fn typed(line: &str, tools: &[&str]) -> Option<Vec<String>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let named = |w: &&str| tools.contains(&w.rsplit('/').next().unwrap_or(w));
    let at = words.iter().position(named)?;
    // A prompt ends so, and what `set -x` shows; words alone could be a sentence about the tool.
    let prompt = at.checked_sub(1).and_then(|i| words.get(i)).map(|w| w.trim_end());
    let typed = prompt.is_none_or(|w| w.ends_with(['$', '#', '%', '>', '+']) || w == "sudo");
    let options = words.get(at + 1).is_none_or(|w| w.starts_with('-'));
    (typed && options).then(|| words.iter().skip(at).map(|w| (*w).to_owned()).collect())
}

/// The kernel's number of a thread in `T: 0 ( 2026) …`; 0 is none.
pub(crate) fn thread_id(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once('(')?;
    rest.split_once(')')?.0.trim().parse().ok().filter(|id| *id > 0)
}

/// Says that another run begins in `line` and was not read.
pub(crate) fn second_run(draft: &mut Draft, line: u64) {
    draft.doubt(
        "source-mixed",
        format!("Another run begins in line {line}; only the first was read."),
        "The file holds more than one run.",
        "Cut the file apart and import each run.",
    );
}

/// Says that a run that begins in `line` holds nothing.
pub(crate) fn run_without_figures(draft: &mut Draft, line: u64) {
    let sentence = format!(
        "A run that begins in line {line} has no figures: it was ended before them, or the file was cut off."
    );
    draft.lose(sentence.clone());
    draft.note(Finding::new("source-one-of-several", Impact::Notice, sentence));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_behind_their_labels() {
        let line = "#1 -> #0, Min   35, Cur   84, Avg   83, Max  749";
        assert_eq!(after(line, "Min"), Some("35"));
        assert_eq!(time(line, "Max", 1000, 1), Ok(749_000));
        assert!(count(line, "Cycles", 7).is_err_and(|f| f.reason.contains("Cycles")));
    }

    #[test]
    fn a_command_line_is_what_a_prompt_shows() {
        let of = |text: &str| command(text.as_bytes(), &["cyclicdeadline"]).join(" ");
        assert_eq!(of("x\nroot@h:~# ./cyclicdeadline -D 1m -q\n"), "./cyclicdeadline -D 1m -q");
        assert_eq!(of("$ sudo cyclicdeadline -q"), "cyclicdeadline -q");
        assert_eq!(of("I ran cyclicdeadline on it"), "");
        assert_eq!(of("# cyclicdeadline is a test"), "");
    }
}
