// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benchmarks in a guest: which of them there can be, and how much of each.
//!
//! Units: s of the guest's time. Virtual time is executed instructions: a benchmark's
//! times there are the instructions it took, and what a desk machine does in a second takes
//! a minute of the host. Not here: the benchmarks themselves (`tailbound-load`).

use std::path::{Path, PathBuf};

use tailbound_core::plan::RunConfig;

use crate::error::{LabError, OptionError};

/// Name, and the amount where none is given: some 50 to 200 ms of virtual time.
const BENCHMARKS: [(&str, &str); 7] = [
    ("arithmetic", "loops=5000"),
    ("file", "size=1M,loops=16"),
    ("messages", "groups=1,loops=40"),
    ("switch", "loops=20000"),
    ("pipe", "loops=10000"),
    ("socket", "loops=10000"),
    ("syscall", "loops=200000"),
];
/// Patience with one repetition of one benchmark.
const BENCHMARK_S: u64 = 30;
/// How many there are where nobody says.
const REPEAT: u64 = 3;

/// What runs a command.
const SHELL: &str = "/bin/sh";

/// The benchmarks as the guest gets them; `with` are the programs that are added to it.
///
/// # Errors
/// A benchmark that a guest cannot run, and why.
pub(crate) fn in_guest(asked: &[String], with: &[PathBuf]) -> Result<Vec<String>, LabError> {
    let has_shell = with.iter().any(|path| path == Path::new(SHELL));
    let mut benchmarks = Vec::new();
    for text in asked {
        // A command takes the rest of the line with it.
        let (text, command) = match text.find("cmd:").map(|at| text.split_at(at)) {
            Some((before, command)) => (before, Some(command)),
            None => (text.as_str(), None),
        };
        let refused = |benchmark: &str, remedy: String| {
            Err(OptionError::Benchmark { benchmark: benchmark.to_owned(), remedy }.into())
        };
        if let Some(command) = command.filter(|_| !has_shell) {
            let remedy = format!(
                "add the shell and the command's program to it (--with {SHELL} --with PROGRAM)"
            );
            return refused(command, remedy);
        }
        if text.split([',', ':']).any(|word| word == "compile") {
            let remedy = "choose one of arithmetic, file, messages, switch, pipe, socket and syscall, or measure on the machine itself with `tailbound run --work`";
            return refused(text, remedy.to_owned());
        }
        // Options name nothing else: `messages:groups=1,loops=5` stays together.
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let option = part.contains('=') && !part.contains(':');
            match benchmarks.last_mut() {
                Some(last) if option => *last = format!("{last},{part}"),
                _ => benchmarks.push(part.to_owned()),
            }
        }
        benchmarks.extend(command.map(str::to_owned));
    }
    for one in &mut benchmarks {
        let amount = BENCHMARKS.iter().find(|(name, _)| name == one).map(|(_, amount)| amount);
        if let Some(amount) = amount {
            *one = format!("{one}:{amount}");
        }
    }
    Ok(benchmarks)
}

/// What the guest's patience grows by.
pub(crate) fn limit_s(campaign: &RunConfig) -> u64 {
    let benchmarks = campaign.work.as_ref().map_or(0, |w| w.len() as u64);
    let repeat = campaign.repeat.map_or(REPEAT, u64::from);
    benchmarks.saturating_mul(repeat).saturating_mul(BENCHMARK_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_fit_a_guest_and_what_it_lacks_is_refused() {
        let among = |texts: &[&str], with: &[PathBuf]| {
            in_guest(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>(), with)
                .map_err(|e| e.to_string())
        };
        let asked = |texts: &[&str]| among(texts, &[]);
        assert_eq!(
            asked(&["arithmetic,messages:groups=2,loops=9", "file"]),
            Ok(vec![
                "arithmetic:loops=5000".to_owned(),
                "messages:groups=2,loops=9".to_owned(),
                "file:size=1M,loops=16".to_owned()
            ])
        );
        for text in ["cmd:make -j8", "compile", "file,compile:jobs=2"] {
            assert!(asked(&[text]).is_err_and(|e| e.contains("neither a shell")), "{text}");
        }
        let with = [PathBuf::from("/usr/bin/true"), PathBuf::from("/bin/sh")];
        assert_eq!(
            among(&["arithmetic:loops=1,cmd:/usr/bin/true a,b=c"], &with),
            Ok(vec!["arithmetic:loops=1".to_owned(), "cmd:/usr/bin/true a,b=c".to_owned()])
        );
    }
}
