// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the pages `docs/from-*.md` to the command line: whatever they say to type here is understood here.
//!
//! Read are the commands in text and blocks, and the second column of each table, in which an option belongs to the
//! command of the column's head, else to `tailbound run`; words of that command are settings where it is `tune set`.
//! Words in capitals stand for values. Profiles (TOML) are read as `tune apply` reads them.
//! Not here: whether a command works (stage `commands`), what the pages say of answers (`xtask/src/tidy/claims.txt`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tailbound_core::Policy;
use tailbound_host::Root;

use super::Bench;

/// What stands for a value on a page, and one that may stand there.
const VALUES: &[(&str, &str)] = &[
    ("LIST", "0"),
    ("TIME", "10ms"),
    ("SECONDS", "4102444800"),
    ("PERCENT", "50"),
    ("RUNTIME", "1ms"),
    ("PERIOD", "10ms"),
    ("N", "2"),
    ("R", "1ms"),
    ("P", "10ms"),
    ("PID", "1"),
    ("IRQ", "24"),
    ("CMD", "true"),
    ("NAME", "cpu"),
    ("DIR", "."),
    ("WORDS", "vmlinux"),
];

/// A page, and each thing that it says to type.
struct Page {
    name: String,
    typed: Vec<Typed>,
}

enum Typed {
    /// A whole command.
    Command(String),
    /// An option of a command, with its value or without.
    Option { of: String, words: String },
    /// A setting of `tune set`, with its value.
    Setting(String),
    /// A profile.
    Profile(String),
}

impl Page {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a page");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let mut page = Self { name, typed: Vec::new() };
        let mut block: Option<(&str, String)> = None;
        let mut head: Option<String> = None;
        for line in text.lines() {
            if let Some(kind) = line.strip_prefix("```") {
                match block.take() {
                    Some(("toml", profile)) => page.typed.push(Typed::Profile(profile)),
                    Some(_) => {}
                    None => block = Some((kind, String::new())),
                }
                continue;
            }
            if let Some((_, within)) = &mut block {
                within.push_str(line);
                within.push('\n');
                let bare = line.strip_prefix("# ").unwrap_or(line);
                let command = bare.split(['|', '>', '#', ';']).next().unwrap_or_default().trim();
                page.commands(command);
                continue;
            }
            match (line.starts_with('|'), &head) {
                (false, _) => head = None,
                (true, None) => head = Some(command_of(&cell(line))),
                (true, Some(of)) => page.row(&of.clone(), &cell(line)),
            }
            spans(line).for_each(|span| page.commands(span));
        }
        page
    }

    fn commands(&mut self, text: &str) {
        if text.starts_with("tailbound ") {
            self.typed.push(Typed::Command(text.to_owned()));
        }
    }

    fn row(&mut self, of: &str, ours: &str) {
        for span in spans(ours) {
            if span.starts_with('-') && span.len() > 1 {
                self.typed.push(Typed::Option { of: of.to_owned(), words: span.to_owned() });
            } else if of == "tailbound tune set" && span.contains('=') {
                self.typed.extend(span.split(' ').map(|s| Typed::Setting(s.to_owned())));
            }
        }
    }
}

/// The second cell of a row.
pub(crate) fn cell(row: &str) -> String {
    row.replace("\\|", "/").split('|').nth(2).unwrap_or_default().to_owned()
}

/// Whose options a column has.
fn command_of(head: &str) -> String {
    spans(head).find(|s| s.starts_with("tailbound ")).unwrap_or("tailbound run").to_owned()
}

pub(crate) fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The same with values where words in capitals stand for them.
fn with_values(word: &str) -> String {
    let is_option = word.starts_with('-') && !word.contains('=');
    let mut out = String::new();
    let mut name = String::new();
    for c in word.chars().chain([' ']) {
        if c.is_ascii_uppercase() && !is_option {
            name.push(c);
            continue;
        }
        let stands = VALUES.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
        out.push_str(stands.unwrap_or(&name));
        name.clear();
        out.push(c);
    }
    out.trim_end().to_owned()
}

/// Words as a shell parts them, without what stands for more.
fn words(command: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut quoted = false;
    for (i, part) in command.split('\'').enumerate() {
        if i > 0 {
            quoted = !quoted;
        }
        match quoted {
            true => out.push(part.to_owned()),
            false => out.extend(part.split_whitespace().filter(|w| *w != "…").map(with_values)),
        }
    }
    out
}

/// Is there an option so called of this verb, whatever its value?
fn has_option(verb: &[String], option: &str) -> bool {
    let mut command = tailbound::command();
    for name in verb.iter().skip(1) {
        match command.find_subcommand(name) {
            Some(found) => command = found.clone(),
            // The name of a probe.
            None => break,
        }
    }
    let name = option.trim_start_matches('-');
    command.get_arguments().any(|arg| {
        let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
        let all = arg.get_all_aliases().unwrap_or_default();
        let shorts = arg.get_short_and_visible_aliases().unwrap_or_default();
        match option.starts_with("--") {
            true => longs.contains(&name) || all.contains(&name),
            false => shorts.iter().any(|c| name == c.to_string()),
        }
    })
}

/// What is wrong with a command; a verb that only groups others is none.
fn refused(words: &[String]) -> Option<String> {
    use clap::error::ErrorKind;
    let error = tailbound::command().try_get_matches_from(words).err()?;
    let names_verbs = matches!(
        error.kind(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::MissingSubcommand
            | ErrorKind::MissingRequiredArgument
    );
    (error.use_stderr() && !names_verbs).then(|| error.to_string())
}

/// What `tailbound run` says to these words, where they ask for nothing that only some machines and users can.
fn refused_by_run(bench: &Bench, option: &str) -> Option<String> {
    const AS_ALLOWED: &[&str] = &[
        "-a isolated",
        "-b ",
        "-c ",
        "--observe",
        "--blame",
        "--cpu-dma-latency",
        "--trace",
        "--break-irq",
        "--signal",
    ];
    if AS_ALLOWED.iter().any(|a| option.starts_with(a)) || option.contains("tree=") {
        return None;
    }
    let given = words(option);
    if given.first().is_some_and(|w| w == "-p") {
        let policy = given.get(1)?;
        let number = policy.chars().all(|c| c.is_ascii_digit());
        return (!number).then(|| policy.parse::<Policy>().err()).flatten().map(|e| e.to_string());
    }
    // What is done for a late wake-up needs a word that says what is late.
    let late: &[&str] = if option.starts_with("--on-late") { &["-d", "1ms"] } else { &[] };
    let given: Vec<OsString> = ["-p", "other"]
        .iter()
        .chain(late)
        .map(OsString::from)
        .chain(given.iter().map(OsString::from))
        .collect();
    tailbound::session_of_run(&given, Root::at(bench.path())).err().map(|e| e.to_string())
}

fn wrong(bench: &Bench, typed: &Typed) -> Option<String> {
    match typed {
        Typed::Command(command) => refused(&words(command)).map(|e| format!("`{command}`: {e}")),
        Typed::Option { of, words: option } if !option.contains([' ', '=']) => {
            let there = has_option(&words(of), option);
            (!there).then(|| format!("`{of}` has no option `{option}`"))
        }
        Typed::Option { of, words: option } => {
            let all = words(&format!("{of} {option}"));
            let why = refused(&all).or_else(|| {
                let is_run = of == "tailbound run" && !option.contains("exceedance");
                is_run.then(|| refused_by_run(bench, option)).flatten()
            });
            why.map(|e| format!("`{of} {option}`: {e}"))
        }
        Typed::Setting(text) => {
            let (name, value) = text.split_once('=')?;
            let value = with_values(value);
            let read = tailbound_tune::settings::named(name).and_then(|s| s.value(&value));
            read.err().map(|e| format!("`{text}`: {e}"))
        }
        Typed::Profile(text) => {
            tailbound_tune::Profile::parse(text).err().map(|e| format!("{text}: {e}"))
        }
    }
}

/// The pages for users of another tool.
pub(crate) fn docs() -> Vec<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let all = std::fs::read_dir(docs).expect("docs").flatten().map(|e| e.path());
    let is_from =
        |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("from-"));
    let mut paths: Vec<PathBuf> = all.filter(is_from).collect();
    paths.sort();
    paths
}

#[test]
fn whatever_a_page_for_users_of_another_tool_says_to_type_is_understood() {
    let bench = Bench::new();
    let pages: Vec<Page> = docs().iter().map(|path| Page::read(path)).collect();
    assert!(pages.len() >= 9, "{}", pages.len());
    let mut all = Vec::new();
    for page in &pages {
        assert!(page.typed.len() >= 8, "{}: {} things to type", page.name, page.typed.len());
        all.extend(
            page.typed
                .iter()
                .filter_map(|t| wrong(&bench, t))
                .map(|w| format!("{}: {w}", page.name)),
        );
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// What stands at a place of the header of `tailbound run WORDS` on the bench.
fn planned(words: &[&str], place: &str) -> serde_json::Value {
    let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    let header = Bench::new().header(&words).unwrap_or_else(|e| panic!("{words:?}: {e}"));
    header.pointer(place).cloned().unwrap_or_default()
}

#[test]
fn defaults_and_letters_are_those_that_the_pages_state() {
    let other = ["-p", "other"];
    let default = |place: &str| planned(&other, place);
    assert_eq!(default("/plan/interval_ns"), 1_000_000);
    assert_eq!(default("/plan/warm_up_ns"), 1_000_000_000);
    assert_eq!(default("/plan/activations"), 60_000, "60 s, for each thread");
    assert_eq!(default("/plan/clock"), "monotonic");
    let loads = default("/plan/loads").to_string();
    assert!(loads.contains("hackbench") && loads.contains("memory"), "{loads}");
    assert_eq!(default("/plan/requirement/deadline_ns"), serde_json::Value::Null, "no deadline");
    // The same letters mean other things to other tools.
    let with = |words: &[&str], place: &str| planned(&[&other[..], words].concat(), place);
    assert_eq!(with(&["-d", "100us"], "/plan/requirement/deadline_ns"), 100_000);
    assert_eq!(with(&["-D", "4s"], "/plan/activations"), 4_000);
    assert_eq!(with(&["-i", "200us"], "/plan/interval_ns"), 200_000);
    assert_eq!(with(&["-a", "1-2"], "/plan/cpus"), "1-2");
    assert_eq!(with(&["-l", "17"], "/plan/activations"), 17);
    assert_eq!(with(&["-L", "none"], "/plan/loads"), serde_json::json!([]));
    assert_eq!(with(&["--warm-up", "0s"], "/plan/warm_up_ns"), 0);
    for (word, policy) in [("fifo:80", "fifo:80"), ("rr:3", "rr:3"), ("other", "other")] {
        assert_eq!(word.parse::<Policy>().map(|p| p.to_string()).ok().as_deref(), Some(policy));
    }
}

#[test]
fn profiles_are_what_the_pages_say_of_them() {
    for name in ["cyclic", "polling", "virtual-host"] {
        let profile = tailbound_tune::Profile::shipped(name).unwrap_or_else(|| panic!("{name}"));
        let has: Vec<&str> = profile.settings().collect();
        for setting in ["threads", "interrupts", "rt-throttling", "fair-server", "nmi-watchdog"] {
            assert!(has.contains(&setting), "{name}: {setting}");
        }
        let written = toml::to_string(profile.written()).expect("TOML");
        for off in ["rt-throttling", "fair-server"] {
            assert!(written.contains(&format!("{off} = \"off\"")), "{name}: {written}");
        }
        assert!(!profile.written().boot.parameters.is_empty(), "{name}");
    }
}

#[test]
fn what_is_not_understood_is_found() {
    let bench = Bench::new();
    let option = |of: &str, words: &str| Typed::Option { of: of.into(), words: words.into() };
    for typed in [
        Typed::Command("tailbound rnu".into()),
        Typed::Command("tailbound tune move -c 3 NAME".into()),
        option("tailbound run", "--wurst"),
        option("tailbound run", "-L nosuch:groups=N"),
        option("tailbound measure busy", "--dutty PERCENT"),
        Typed::Setting("swappines=10".into()),
        Typed::Setting("governor=fast".into()),
        Typed::Profile("[main]\n".into()),
    ] {
        assert!(wrong(&bench, &typed).is_some());
    }
    for typed in [
        Typed::Command("tailbound tune move 'rcu*' -a LIST".into()),
        option("tailbound run", "-p deadline:RUNTIME/PERIOD"),
        option("tailbound measure busy", "--duty PERCENT"),
        Typed::Setting("busy-poll=50us".into()),
    ] {
        assert_eq!(wrong(&bench, &typed), None);
    }
}
