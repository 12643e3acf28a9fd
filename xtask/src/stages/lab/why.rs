// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a sample was late: what leads into a planted section is named at its instant, as another way of looking knows it; other
//! random numbers leave it as it is, and do not where addresses are random.
//!
//! Units: ns of the guest's virtual time.

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::{Lab, STOCK};

/// A system call, write, that disables interrupts for so long, again and again.
const PLANTED: &str = "culprit:kind=interrupts-off,busy=500us,interval=7ms";
const SECTION_NS: i64 = 400_000;
const OUT: &str = "why.jsonl";
const PAGE: &str = "why.html";
/// From the call's entry to the section: a kernel that does not preempt its own code goes on there whatever comes.
const CALL_NS: i64 = 2_000;

/// Activations, of a millisecond each, after which a run is kept in its middle.
const KEPT_AFTER: i64 = 51;

/// Programs and their stacks lie at random addresses.
const ADDRESSES: &str = "sysctl.kernel.randomize_va_space=2";
const NUMBERS: &str = "why-numbers.jsonl";
/// Of the latest samples of so many runs, at least one is another with other random numbers. Which that is, and how many programs
/// were executed before, is this build's.
const RUNS: u32 = 4;

/// The sample's latencies with other random numbers, at any instant; none: it was missed.
fn with_other_numbers(found: &Value) -> anyhow::Result<Vec<Option<i64>>> {
    let tried = found.pointer("/tried").and_then(Value::as_array).context("nothing tried")?;
    let each = tried.iter().filter_map(|t| t.get("variations")?.as_array()).flatten();
    let those = each.filter(|v| v.get("changes").is_some_and(|c| c == "random-numbers"));
    let latencies: Vec<_> = those.map(|v| v.get("latency_ns").and_then(Value::as_i64)).collect();
    ensure!(latencies.len() >= 4, "random numbers were not varied: {found}");
    Ok(latencies)
}

impl Lab {
    /// The run says by itself which section the latest wake-up waited for, and how long that was.
    pub(super) fn why(&self) -> anyhow::Result<()> {
        let words = ["lab", "run", "--paths", "-q", "--json", "--force", "-k", STOCK, "-i", "1ms"];
        let words = [&words[..], &["-D", "100ms", "-L", PLANTED, "-o", OUT]].concat();
        let run: Value = serde_json::from_str(&self.answers(&words, 0)?).context("no JSON")?;
        let number = |v: &Value, at: &str| v.pointer(at).and_then(Value::as_i64);
        // Of the latest, all of which wait for such a section, the last: that is the one for which a state in the middle is of use.
        let wakeups = run.pointer("/paths/wakeups").and_then(Value::as_array);
        let wakeups = wakeups.context("no wake-ups")?.iter();
        let behind = wakeups.filter(|w| number(w, "/behind/ns").is_some_and(|ns| ns > SECTION_NS));
        let latest = behind.max_by_key(|w| number(w, "/activation")).context("no wake-up")?;
        let section = number(latest, "/behind/ns").context("it waited for no section")?;
        let waited = number(latest, "/legs/0/ns").context("no leg")?;
        let activation = number(latest, "/activation").context("no activation")?;
        let which = activation.to_string();
        let words = ["lab", "why", OUT, "-q", "--json", "--html", PAGE, "--force"];
        let found = self.answers(&[&words[..], &["--activation", &which]].concat(), 0)?;
        let page = std::fs::read_to_string(self.folder.join(PAGE))?;
        ensure!(page.contains("inevitable from") && page.contains("<svg"), "{PAGE} tells nothing");
        let found: Value = serde_json::from_str(&found).context("no JSON")?;
        let at = |path: &str| found.pointer(path).cloned().unwrap_or_default();
        ensure!(at("/schema") == "tailbound-why/1", "{}", at("/schema"));
        ensure!(
            at("/activation") == activation
                && at("/control_ns") == at("/latency_ns")
                && at("/control_numbers_ns") == at("/latency_ns"),
            "another sample, or another run: {found}"
        );
        ensure!(
            activation < KEPT_AFTER || at("/kept_before_ns").is_i64(),
            "the state in the run's middle was not the run's: {found}"
        );
        // No random number decides about a section that a load goes into each 7 ms.
        let latency = number(&found, "/latency_ns");
        ensure!(with_other_numbers(&found)?.iter().all(|ns| *ns == latency), "{found}");
        ensure!(
            at("/is_whole") == true && at("/inevitable/open_before_ns").is_i64(),
            "nothing was found: {found}"
        );
        let before = number(&found, "/inevitable/before_due_ns").context("no instant")?;
        let began = section - waited;
        ensure!(
            (began..began + CALL_NS).contains(&before),
            "the section began {began} ns before the timer was due, and {before} ns were found: {found}"
        );
        ensure!(
            at("/inevitable/what") == "call"
                && at("/inevitable/name") == "write"
                && at("/inevitable/thread") == "load/0",
            "something else happened there: {}",
            at("/inevitable")
        );
        // The instant before was different.
        let open = number(&found, "/inevitable/at_ns")
            .zip(number(&found, "/inevitable/open_before_ns"))
            .map(|(at, before)| at - before);
        let tried = at("/tried").as_array().cloned().unwrap_or_default();
        let open = tried.iter().find(|t| number(t, "/at_ns") == open).context("no row")?;
        ensure!(number(open, "/late") < number(open, "/tried"), "{open}");
        self.other_numbers()?;
        self.one_symbol_boot()
    }

    /// Where programs lie at random addresses, what the kernel has to do for them is another with other random numbers.
    fn other_numbers(&self) -> anyhow::Result<()> {
        let mut unchanged = Vec::new();
        for seed in 1..=RUNS {
            let seed = seed.to_string();
            for activation in self.latest_at_random_addresses(&seed)? {
                if self.changes_with_other_numbers(activation)? {
                    return Ok(());
                }
                unchanged.push((seed.clone(), activation));
            }
        }
        bail!("nothing changes the samples (seed, activation) {unchanged:?}")
    }

    /// The activations of the latest samples of a run: those first that waited for a section of the kernel, and of those the last.
    ///
    /// A thread that only runs its own instructions is met by the timer at any of them alike. The kernel's sections shift with
    /// every program before them, so that the last sample is the likeliest to be another.
    fn latest_at_random_addresses(&self, seed: &str) -> anyhow::Result<Vec<i64>> {
        let words =
            ["lab", "run", "--paths", "-q", "--json", "--force", "-k", STOCK, "-i", "250us"];
        // Where nothing is where it was, QEMU has to translate each program anew: the warm-up, too, costs some seconds.
        let random = ["-D", "30ms", "-L", "fork:exec=yes", "--append", ADDRESSES, "-o", NUMBERS];
        let random = [&random[..], &["--warm-up", "10ms", "--seed", seed]].concat();
        let run = self.answers(&[&words[..], &random].concat(), 0)?;
        let run: Value = serde_json::from_str(&run).context("no JSON")?;
        let wakeups = run.pointer("/paths/wakeups").and_then(Value::as_array);
        let mut late: Vec<(bool, i64)> = (wakeups.context("no wake-ups")?.iter())
            .filter_map(|w| {
                let waited = w.pointer("/behind/ns").is_some_and(Value::is_i64);
                Some((waited, w.get("activation").and_then(Value::as_i64)?))
            })
            .collect();
        late.sort_unstable();
        Ok(late.into_iter().rev().map(|(_, activation)| activation).collect())
    }

    /// Written as they were, random numbers leave the sample as it is. Do others?
    fn changes_with_other_numbers(&self, activation: i64) -> anyhow::Result<bool> {
        let which = activation.to_string();
        let words = ["lab", "why", NUMBERS, "-q", "--json", "--variations", "0"];
        let words = [&words[..], &["--seeds", "4", "--activation", &which]].concat();
        let found: Value = serde_json::from_str(&self.answers(&words, 0)?).context("no JSON")?;
        let latency = found.pointer("/latency_ns").and_then(Value::as_i64);
        ensure!(
            found.pointer("/control_numbers_ns").and_then(Value::as_i64) == latency,
            "written as they were, random numbers change the sample: {found}"
        );
        Ok(with_other_numbers(&found)?.iter().any(|ns| *ns != latency))
    }

    /// A kernel tells its symbols once.
    fn one_symbol_boot(&self) -> anyhow::Result<()> {
        let text = self.answers(&["lab", "cache", "--verify", "--json"], 0)?;
        let answer: Value = serde_json::from_str(&text).context("no JSON")?;
        let items = answer.get("items").and_then(Value::as_array).context("no items")?;
        let kept = items
            .iter()
            .filter_map(|i| i.get("path").and_then(Value::as_str))
            .filter(|path| std::path::Path::new(path).join("symbols").is_file());
        ensure!(kept.count() > 0, "no snapshot keeps symbols");
        Ok(())
    }
}
