// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of the command line: what is offered, what help says of it, and what becomes of every flag of `run`.
//!
//! A flag goes the way of a run (parsed, laid over a file, resolved, planned, written, read back) up to where threads
//! would be started: it arrives in the header, or it is refused by name. The machine is four CPUs under a temporary root.
//!
//! ```text
//! extremes.rs  each flag at its extremes       merged.rs       flags laid over a file
//! help.rs      verbs under their questions     completions.rs  what a shell may offer
//! campaigns.rs the options in shipped files    from_*.rs       pages for users of other tools
//! promised.rs  verbs and options that stay, in promised.txt
//! ```

mod campaigns;
mod completions;
mod extremes;
mod from_answers;
mod from_pages;
mod help;
mod merged;
#[cfg(all(feature = "lab", feature = "server"))]
mod promised;

use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;
use tailbound_core::plan::RunConfig;
use tailbound_core::record::{Header, Line};
use tailbound_host::Root;
use tempfile::TempDir;

/// A machine with CPUs 0 to 3, and a folder for files.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let cpus = folder.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&cpus).expect("a folder");
        for file in ["online", "present", "possible"] {
            std::fs::write(cpus.join(file), "0-3\n").expect("a file");
        }
        Self { folder }
    }

    /// The header of the run that these words ask for, as a reader of its file finds it; or why there is none.
    fn header(&self, words: &[String]) -> Result<Value, String> {
        let given: Vec<OsString> = words.iter().map(OsString::from).collect();
        let session = tailbound::session_of_run(&given, Root::at(self.folder.path()));
        let session = session.map_err(|e| e.to_string())?;
        let written = serde_json::to_string(&Line::Header(Box::new(session.header())));
        let read = tailbound_core::runfile::read_line(written.expect("a line").as_bytes());
        let Line::Header(read) = read.expect("a line").expect("a line of this version") else {
            panic!("a header is read as something else");
        };
        assert_eq!(read.plan, session.plan, "{words:?}: the file says otherwise");
        let mut header = undated(*read);
        header["begin-at"] = session.begin_at_ns.into();
        Ok(header)
    }

    /// The same, where the words are a file's.
    fn header_of_file(&self, toml: &str) -> Result<Value, String> {
        self.header(&[self.config(toml), "--yes".to_owned()])
    }

    /// The flag that reads this file.
    fn config(&self, toml: &str) -> String {
        let path = self.folder.path().join("plan.toml");
        std::fs::write(&path, toml).expect("a file");
        format!("--config={}", path.display())
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Without what differs between two runs of the same words.
fn undated(mut header: Header) -> Value {
    (header.id, header.started) = (String::new(), String::new());
    header.command.clear();
    serde_json::to_value(header).expect("JSON")
}

/// A flag, `name=value` or a `name` alone, as a line of a configuration file.
fn line_of_file(flag: &str) -> String {
    let (key, value) = flag.split_once('=').unwrap_or((flag, "true"));
    let value = match key {
        "loops" | "tasks" | "repeat" | "confidence" | "raw" | "paranoid" => value.to_owned(),
        "load" | "work" => format!("[{}]", toml::Value::String(value.to_owned())),
        _ => toml::Value::String(value.to_owned()).to_string(),
    };
    format!("{key} = {value}\n")
}

#[test]
fn every_key_of_a_run_configuration_is_a_flag_of_run() {
    // The error on a key that nothing has lists those that there are.
    let refused = RunConfig::parse("nosuch = 1").expect_err("no such key").to_string();
    let known = refused.split("expected one of").nth(1).expect("the keys");
    let command = tailbound::command();
    let run = command.find_subcommand("run").expect("a verb");
    let flags: Vec<&str> = run.get_arguments().filter_map(clap::Arg::get_long).collect();
    // A name for people; and a spelling of before.
    let keys = known.split('`').skip(1).step_by(2).filter(|k| !["name", "means"].contains(k));
    let missing: Vec<&str> = keys.filter(|key| !flags.contains(key)).collect();
    assert!(missing.is_empty(), "no flags: {missing:?}");
}

#[test]
fn the_policy_of_an_agent_knows_the_usual_loads_of_a_run() {
    assert_eq!(tailbound_agent::policy::LOADS_OF_A_RUN, tailbound_run::defaults::LOADS);
}
