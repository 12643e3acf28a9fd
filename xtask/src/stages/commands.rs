// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every command that README, the site's landing page, docs and their example files show, run in its order in one folder, shortened.
//! A tutorial has a folder of its own with nothing in it, as its reader has.
//!
//! The programs are those that the tests use. A command passes with an exit
//! status that is an answer, whatever this host's latencies are; a panic, a refusal (2) or a bug
//! (4) fails. What cannot run here is in [`NOT_HERE`] with its reason, and must be understood by
//! the program at least. A command that is neither run nor listed fails.
//! Not here: what the answers say (`tests`), the lab (`lab`).

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::tally::Tally;
use super::{examples, programs};
use crate::{exec, root};

/// Answers: met, not met, cannot here, undecided.
const ANSWERS: &[i32] = &[0, 1, 3, 5];

/// What a shell says of a program that is not there.
const NOT_FOUND: i32 = 127;

/// How a command begins that an ordinary user cannot run, and why not.
const NOT_USER: &[(&str, &str)] = &[(
    "tailbound compare loaded.rounds",
    "one of its variants holds /dev/cpu_dma_latency, which needs root",
)];

/// The longest that a shortened command may take on a loaded machine.
const LIMIT: Duration = Duration::from_secs(600);

/// Verb, flags of one meaning, the value they get, and whether they are added where missing.
const SHORTER: &[(&str, &[&str], &str, bool)] = &[
    ("run", &["-D", "--duration"], "1s", true),
    ("run", &["--warm-up"], "100ms", true),
    ("run", &["--rounds"], "6", false),
    ("run", &["--cpus", "-a"], "0", false),
    ("run", &["--repeat"], "1", false),
    ("measure", &["-D", "--duration"], "1s", true),
    ("measure", &["--warm-up"], "100ms", true),
    ("measure", &["--cpus", "-a"], "0", false),
    ("load", &["-D", "--duration"], "1s", false),
    ("campaign", &["--scale"], "0.00002", false),
];

/// Commands of the pages that are run with shorter durations.
const LIGHTER: &[(&str, &str)] = &[
    ("make -j8 -C ~/linux", "sleep 5"),
    ("target/release/tailbound", "tailbound"),
    ("cmd:make -j8", "cmd:true"),
    // What a second can show.
    ("--rate 1/1h", "--rate 4/1s"),
    ("campaign run mckenney-2009", "campaign run mckenney-2009 --only sleep-jitter,sleepers-2"),
];

/// Of each of many runs.
const ROUND: &str = "300ms";

const CHANGES: &str = "it changes the machine: tests/cli/tune.rs, tests/knobs";
/// How a command begins that cannot run here, and why not.
const NOT_HERE: &[(&str, &str)] = &[
    ("make ", "a word of the Makefile: stages of their own, and `make demo`"),
    ("cargo ", "a stage of its own"),
    ("cc ", "the stage `capi` does it"),
    ("pip ", "the stage `python` does it"),
    ("tailbound sign ", "a password is asked for, and a key kept at home: tests/cli/integrity.rs"),
    ("tailbound verify ", "a key kept at home: tests/cli/integrity.rs"),
    ("tailbound tune show --live", "a terminal: tests/cli/tune_live.rs"),
    ("tailbound tune plan ", "CPUs that not every machine has: tests/cli/tune.rs"),
    ("tailbound tune apply ", CHANGES),
    ("tailbound tune undo", CHANGES),
    ("tailbound tune verify", CHANGES),
    ("tailbound tune isolate ", CHANGES),
    ("tailbound tune exec ", CHANGES),
    ("tailbound tune move ", CHANGES),
    ("tailbound tune irq ", CHANGES),
    ("tailbound tune set ", CHANGES),
    ("tailbound tune auto ", "an experiment of half an hour: the stage `lab`"),
    ("tailbound run --rounds 10 -D 10s -a 3 ", CHANGES),
    ("tailbound run --rounds 10 -D 4s -a 1 ", CHANGES),
    ("tailbound blame full.jsonl", "a run of the lab: the stage `lab`"),
    ("tailbound blame mine.jsonl", "a run with tracing: tests/cli/blame.rs"),
    ("tailbound fleet ", "real kernels: the stage `lab`"),
    ("tailbound run --tune ", CHANGES),
    ("tailbound run -b 100us --signal ", "a program of the reader's: tests/cli/threshold.rs"),
    ("tailbound check", "the exit status is this machine's: tests/cli/check.rs"),
    ("tailbound check capture", "tests/cli/check.rs"),
    ("tailbound box answer ", "pulses from outside: tests/cli/probe_answer.rs"),
    ("tailbound blame late.jsonl", "a run with tracing: tests/cli/blame.rs, the stage `lab`"),
    ("tailbound blame /var/lib/", "a file of the monitor's recorder: tests/cli/monitor.rs"),
    ("tailbound blame --comm ", "a program of the reader's: tests/cli/blame.rs"),
    ("tailbound irqs ", "CPUs that not every machine has: tests/cli/interruptions.rs"),
    ("tailbound monitor ", "it goes on until it is ended: tests/cli/monitor.rs"),
    ("tailbound watch ", "a program of the reader's: tests/cli/watch.rs, tests/rules"),
    ("tailbound response ", "a run of such a program: tests/cli/tasks.rs"),
    ("tailbound lab ", "real kernels: the stage `lab`"),
    ("tailbound lab hunt ", "half an hour with real kernels: the stage `lab` makes a short one"),
    ("tailbound lab bisect ", "real kernels: the stage `lab`; tests/cli/bisect.rs"),
    ("tailbound decide lab/", "runs of real kernels: the stage `lab`"),
    ("tailbound decide rt-6.12.jsonl ", "runs of two systems: tests/cli/decide.rs"),
    ("tailbound decide rt.jsonl ", "runs of two systems: tests/cli/decide.rs"),
    ("tailbound agent ", "a server that runs: crates/tailbound/tests/agent"),
    ("target/release/examples/", "a large store: minutes to hours, as the page says"),
    ("tailbound serve --", "it serves until it is ended: tests/cli/serve.rs"),
    ("TOKEN=", "the same"),
    ("curl ", "a server that runs: crates/keep/tailbound-fleet/tests/it"),
    ("export TAILBOUND_STORE=", "a server of the reader's: crates/keep/tailbound-store/tests/it"),
    ("tailbound store ls --since ", "the same"),
    ("tailbound campaign run williams-redhat-2008 ", "real kernels: the stage `lab`"),
];

/// Files that the reader of the page has, made from a short run or a file of the project.
const RUNS: &[&str] = &[
    "run.tailbound.jsonl",
    "stock.tailbound.jsonl",
    "rt.tailbound.jsonl",
    "old.tailbound.jsonl",
    "new.tailbound.jsonl",
    "results/1.tailbound.jsonl",
    "results/2.tailbound.jsonl",
    "runs-of-6.6/1.tailbound.jsonl",
    "runs-of-6.12/1.tailbound.jsonl",
];
/// Files that a tutorial has of commands which cannot run here.
const OF_TUTORIALS: &[(&str, &str)] = &[
    ("a-board", "model.tailbound.jsonl"),
    ("farm", "night/desk/desk/run.tailbound.jsonl"),
    ("farm", "night/stock/lab/run.tailbound.jsonl"),
    ("farm", "night/rt/lab/run.tailbound.jsonl"),
];
const CYCLICTEST: &str = "crates/measure/tailbound-import/tests/fixtures/cyclictest-2.4_h400.json";

/// A command and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    page: String,
    line: usize,
    text: String,
    /// Folders that are made anew before it.
    fresh: Vec<String>,
}

/// The stage.
pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let folder = prepare(project, &programs::own(project)?)?;
    let mut all: Vec<Shown> =
        pages(project)?.iter().flat_map(|(name, text)| commands(name, text)).collect();
    for (page, text) in examples::files(project)? {
        let mut before = 0;
        for (line, command) in examples::commands(&text) {
            let fresh = examples::folders(&text, before..line);
            all.push(Shown { page: page.clone(), line, text: command, fresh });
            before = line;
        }
    }
    let root = fs::metadata("/proc/self")?.uid() == 0;
    for shown in all {
        if let Some((_, why)) =
            NOT_USER.iter().find(|(begin, _)| !root && shown.text.starts_with(begin))
        {
            let name = format!("{}:{}: {}", shown.page, shown.line, shown.text);
            tally.leave_out(&name, *why);
            continue;
        }
        let place = place(&folder, &shown.page)?;
        for name in &shown.fresh {
            let name = place.join(name);
            if name.exists() {
                fs::remove_dir_all(&name)?;
            }
            fs::create_dir_all(&name)?;
        }
        let name = format!("{}:{}: {}", shown.page, shown.line, shown.text);
        match not_here(&shown.text) {
            Some(why) if !shown.text.starts_with("tailbound ") => {
                tally.leave_out(&name, why);
            }
            // Its words are looked at all the same.
            Some(why) => match understood(&place, &shown.text) {
                Ok(()) => tally.leave_out(&name, why),
                Err(e) => tally.fail(&name, format!("{e:#}")),
            },
            None => match answers(&place, &shortened(&shown.text)) {
                // `scripts/deps` installs it for root alone.
                Err(e) if !root && e.is::<NoProgram>() => {
                    tally.leave_out(&name, e.to_string());
                }
                result => tally.add(&name, result),
            },
        }
    }
    examples::form(project, &mut tally)?;
    Ok(tally)
}

/// Where the commands of a page run: all in one folder, and those of a tutorial in one that is new.
fn place(folder: &Path, page: &str) -> anyhow::Result<PathBuf> {
    let tutorial = page.strip_prefix("docs/tutorials/").and_then(|p| p.strip_suffix(".md"));
    let Some(tutorial) = tutorial else { return Ok(folder.to_owned()) };
    let place = folder.join("tutorials").join(tutorial);
    if !place.exists() {
        fs::create_dir_all(&place)?;
        std::os::unix::fs::symlink(folder.join("bin"), place.join("bin"))?;
        for (_, file) in OF_TUTORIALS.iter().filter(|(of, _)| *of == tutorial) {
            let file = place.join(file);
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::copy(folder.join("a.jsonl"), file)?;
        }
    }
    Ok(place)
}

/// README, the site's landing page and every page of docs, with their text.
fn pages(project: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut paths = vec![project.join("README.md"), project.join("packaging/book/landing.md")];
    let mut folders = vec![project.join("docs")];
    while let Some(folder) = folders.pop() {
        let mut inside: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            inside.push(entry?.path());
        }
        inside.sort();
        folders.extend(inside.iter().filter(|p| p.is_dir()).cloned());
        paths.extend(inside.into_iter().filter(|p| p.extension().is_some_and(|e| e == "md")));
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(project).unwrap_or(&path).display().to_string();
        Ok((name, text))
    };
    paths.into_iter().map(read).collect()
}

/// A folder with the program and the files that a reader has.
fn prepare(project: &Path, programs: &Path) -> anyhow::Result<PathBuf> {
    let folder = root::target(project).join("xtask/commands");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("bin"))?;
    for name in ["tailbound", "tailbound-server"] {
        std::os::unix::fs::symlink(programs.join(name), folder.join("bin").join(name))?;
    }
    std::os::unix::fs::symlink(project.join("docs"), folder.join("docs"))?;
    std::os::unix::fs::symlink(project.join("campaigns"), folder.join("campaigns"))?;
    fs::copy(project.join(CYCLICTEST), folder.join("cyclictest.json"))?;
    fs::write(folder.join("campaign.toml"), "deadline = \"10ms\"\nload = [\"none\"]\n")?;
    let make = "tailbound run -q -D 3s --warm-up 100ms -L none --work arithmetic,file,messages \
                --repeat 1 -o a.jsonl";
    answers(&folder, make)?;
    let board = "tailbound campaign run mckenney-2009 --only sleep-jitter --scale 0.00002 -q \
                 --system board --out board.campaign";
    answers(&folder, board)?;
    for name in RUNS {
        let path = folder.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::copy(folder.join("a.jsonl"), path)?;
    }
    Ok(folder)
}

/// Every command in the blocks of a page.
fn commands(page: &str, text: &str) -> Vec<Shown> {
    let mut out: Vec<Shown> = Vec::new();
    // Its kind, and how far it is indented: one may stand in a list.
    let mut block: Option<(&str, usize)> = None;
    let mut open = false;
    for (line, text) in (1..).zip(text.lines()) {
        let indent = text.len() - text.trim_start().len();
        if let Some(kind) = text.trim_start().strip_prefix("```") {
            block = if block.is_some() { None } else { Some((kind.trim(), indent)) };
            open = false;
            continue;
        }
        let Some((kind, outer)) = block else { continue };
        let text = text.get(outer.min(indent)..).unwrap_or(text);
        if !matches!(kind, "" | "sh" | "console" | "bash") {
            continue;
        }
        let Some(command) = (if open { Some(text.trim()) } else { command(kind, text) }) else {
            continue;
        };
        let bare = uncommented(command);
        let (bare, more) = bare.strip_suffix('\\').map_or((bare, false), |b| (b.trim_end(), true));
        match out.last_mut().filter(|_| open) {
            Some(last) => last.text.push_str(&format!(" {bare}")),
            None if bare.is_empty() => {}
            None => out.push(Shown {
                page: page.to_owned(),
                line,
                text: bare.to_owned(),
                fresh: Vec::new(),
            }),
        }
        open = more;
    }
    out
}

/// The command of a line, where it is one: after a prompt, in a block of commands, or where it
/// begins with a program in a block of no kind.
fn command<'a>(kind: &str, line: &'a str) -> Option<&'a str> {
    let after = line.strip_prefix("$ ").or_else(|| line.strip_prefix("# "));
    match kind {
        "sh" | "bash" => Some(line).filter(|l| !l.trim_start().starts_with('#')),
        "console" => after,
        _ => line.strip_prefix("$ ").or_else(|| {
            let begins = |word: &str| line.starts_with(word);
            ["tailbound ", "echo ", "jq ", "make ", "cargo ", "cc ", "git ", "sudo ", "qemu-"]
                .into_iter()
                .any(begins)
                .then_some(line)
        }),
    }
}

/// Without its comment: a `#` after a space that stands in no quotes.
fn uncommented(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '#') if before == ' ' => return line.get(..at).unwrap_or(line).trim_end(),
            _ => {}
        }
        before = c;
    }
    line.trim_end()
}

/// Why it cannot run here.
fn not_here(text: &str) -> Option<&'static str> {
    let listed = NOT_HERE.iter().find(|(begin, _)| text.starts_with(begin)).map(|(_, why)| *why);
    // A word in capital letters stands for something of the reader's.
    let stands = |w: &str| w.len() > 2 && w.chars().all(|c| c.is_ascii_uppercase());
    let placeholder =
        || text.split(' ').any(stands).then_some("it has a placeholder in the reader's place");
    listed.or_else(placeholder)
}

/// The commands of a page that the stage `lab` runs.
pub(super) fn left_to_the_lab(text: &str) -> Vec<String> {
    let lab = |shown: &Shown| not_here(&shown.text).is_some_and(|why| why.contains("stage `lab`"));
    commands("", text).into_iter().filter(lab).map(|shown| shown.text).collect()
}

/// The words of a line of the shell, each as it is written.
fn words(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            _ => {}
        }
        match out.last_mut() {
            Some(last) if quote.is_none() && c == ' ' && !last.is_empty() => {
                out.push(String::new());
            }
            Some(last) if c != ' ' || quote.is_some() => last.push(c),
            _ => {}
        }
    }
    out.retain(|w| !w.is_empty());
    out
}

/// The same with small numbers.
fn shortened(text: &str) -> String {
    let mut all = words(text);
    let verb = match all.first().map(String::as_str) {
        Some("tailbound") => all.get(1).cloned().unwrap_or_default(),
        _ => String::new(),
    };
    // Behind `measure NAME`; a benchmark has no duration.
    let end = if verb == "measure" { 3 } else { 2 };
    let benchmark = all.get(2).is_some_and(|w| w == "work" || w == "benchmark");
    let rounds = all.iter().any(|w| w == "--rounds");
    for (_, flags, value, always) in SHORTER.iter().filter(|s| s.0 == verb) {
        let value = if rounds && flags.contains(&"-D") { ROUND } else { value };
        let variants = all.iter().position(|w| w == "--").unwrap_or(all.len());
        let at = all.iter().take(variants).position(|w| flags.contains(&w.as_str()));
        let missing = *always && !benchmark && all.len() >= end;
        match (at.and_then(|at| all.get_mut(at + 1)), flags.first()) {
            (Some(word), _) => value.clone_into(word),
            (None, Some(flag)) if missing => {
                all.splice(end..end, [(*flag).to_owned(), value.to_owned()]);
            }
            _ => {}
        }
    }
    let mut text = all.join(" ");
    for (long, short) in LIGHTER {
        text = text.replace(long, short);
    }
    text
}

/// Runs a line of the shell in `folder`.
fn shell(folder: &Path, text: &str) -> anyhow::Result<(i32, String)> {
    let log = folder.join("output.txt");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut c = exec::command("sh");
    c.args(["-c", text]).current_dir(folder).env("NO_COLOR", "1");
    c.env("PATH", format!("{}:{path}", folder.join("bin").display()));
    let ended = exec::limited(&mut c, &log, LIMIT)?;
    let said = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    match ended.and_then(|s| s.code()) {
        Some(code) => Ok((code, said)),
        None => bail!("`{text}` was killed, after {} s at most:\n{said}", LIMIT.as_secs()),
    }
}

/// A program of the line is not installed.
#[derive(Debug)]
struct NoProgram(String);

impl std::fmt::Display for NoProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.trim())
    }
}

impl std::error::Error for NoProgram {}

fn answers(folder: &Path, text: &str) -> anyhow::Result<()> {
    let (code, said) = shell(folder, text)?;
    if code == NOT_FOUND {
        return Err(NoProgram(said).into());
    }
    if !ANSWERS.contains(&code) || said.contains("panicked at") {
        bail!("`{text}`: exit status {code}, expected one of {ANSWERS:?}:\n{said}");
    }
    Ok(())
}

/// Every word of it is one that the program knows: `--help` behind them is reached.
fn understood(folder: &Path, text: &str) -> anyhow::Result<()> {
    let text = text.split([';', '|', '>']).next().unwrap_or(text).trim();
    // What stands behind `--` is another program's, or a variant's.
    let (own, _) = text.split_once(" -- ").unwrap_or((text, ""));
    let line = format!("{own} --help");
    let (code, said) = shell(folder, &line)?;
    if code != 0 {
        bail!("`{line}`: exit status {code}:\n{said}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_where_they_stand() {
        let page = "`tailbound no`\n```sh\ntailbound run   # comment\n\n# only a comment\ntailbound run --x 'a # b' \\\n  -q\n```\n\
                    ```console\n# tailbound lab list\nMeasured: 5\n$ tailbound show\n```\n\
                    ```\n$ tailbound plan\ntailbound, per wake-up 5\ntailbound: an error\ntailbound bound x\n```\n\
                    ```json\ntailbound run\n```\n1. In a list:\n\n   ```sh\n   tailbound show \\\n     y\n   ```\n";
        let found: Vec<(usize, String)> =
            commands("p", page).into_iter().map(|s| (s.line, s.text)).collect();
        let expected = [
            (3, "tailbound run"),
            (6, "tailbound run --x 'a # b' -q"),
            (10, "tailbound lab list"),
            (12, "tailbound show"),
            (15, "tailbound plan"),
            (18, "tailbound bound x"),
            (26, "tailbound show y"),
        ];
        assert_eq!(found, expected.map(|(l, t)| (l, t.to_owned())));
    }

    #[test]
    fn a_tutorial_begins_in_a_folder_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        fs::write(folder.path().join("a.jsonl"), "run").unwrap();
        assert_eq!(place(folder.path(), "docs/using.md").unwrap(), folder.path());
        let farm = place(folder.path(), "docs/tutorials/farm.md").unwrap();
        assert!(farm.join("bin").is_dir());
        fs::write(farm.join("made"), "by a command before").unwrap();
        let again = place(folder.path(), "docs/tutorials/farm.md").unwrap();
        assert!(again.join("made").exists() && again.join("night/rt/lab").is_dir());
        let other = place(folder.path(), "docs/tutorials/tune.md").unwrap();
        assert_eq!(fs::read_dir(other).unwrap().count(), 1);
    }

    #[test]
    fn what_takes_long_is_made_short() {
        for (long, short) in [
            ("tailbound run -d 1ms -D 12h", "tailbound run --warm-up 100ms -d 1ms -D 1s"),
            ("tailbound measure futex -x", "tailbound measure futex --warm-up 100ms -D 1s -x"),
            ("tailbound measure work file", "tailbound measure work file"),
            ("tailbound measure benchmark file", "tailbound measure benchmark file"),
            ("tailbound plan --duration 12h", "tailbound plan --duration 12h"),
            (
                "tailbound run --rounds 30 -D 4s -- 'a:' 'b: -D 9s'",
                "tailbound run --warm-up 100ms --rounds 6 -D 300ms -- 'a:' 'b: -D 9s'",
            ),
            ("jq . r | head", "jq . r | head"),
        ] {
            assert_eq!(shortened(long), short);
        }
        assert!(not_here("tailbound lab run -k debian:6.12").is_some());
        assert!(not_here("tailbound show FOLDER").is_some());
        assert!(not_here("tailbound show r.jsonl -D 9s").is_none());
    }
}
