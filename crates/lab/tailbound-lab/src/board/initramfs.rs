// SPDX-License-Identifier: MIT OR Apache-2.0
//! The initramfs of a board: a program, modules, and what to do; the same bytes for the same content.
//!
//! Units: s.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tailbound_core::board::{BoardJob, JOB};
use tailbound_core::lab::Job;
use tailbound_core::plan::RunConfig;
use tailbound_core::{gzip, limits, units};
use tailbound_host::elf::Elf;
use tailbound_sys::{given, new_file};

use super::program::{self, BoardProgram};
use super::{BoardAnswer, BoardWords, ReadRun, output};
use crate::cpio::Tree;
use crate::error::{BoardError, FileError, LabError};
use crate::kernel::modules;
use crate::request;

const OUT: &str = "board.cpio.gz";
const LEVEL: u8 = 6;
const TOKEN_BYTES_MAX: u64 = 4096;
/// Where nothing says how long.
const DURATION: &str = "60s";
const INTERVAL: &str = "1ms";
/// Options of `run` that are about files and answers of the machine on which it is typed.
const NOT_THERE: [&str; 8] =
    ["--config", "--campaign", "--out", "--report", "--rounds", "--json", "--brief", "--as-round"];
const NOT_THERE_SHORT: [&str; 2] = ["-c", "-o"];

/// Makes it.
///
/// # Errors
/// Words that are not possible; a program or a module that does not fit; a file that cannot be read or written.
pub(super) fn make(words: &BoardWords, run: &ReadRun<'_>) -> Result<BoardAnswer, LabError> {
    let job = job(words, run)?;
    let program = program::find(words.path("program").as_deref(), words.text("arch").as_deref())?;
    let modules: Vec<PathBuf> = words.all("module").iter().map(PathBuf::from).collect();
    let tree = tree(&program, &modules, &job)?;
    let bytes = gzip::pack(&tree.archive()?, LEVEL);
    let (out, existing) = output(words);
    let out = out.unwrap_or_else(|| OUT.into());
    new_file::write(&out, existing, &bytes).map_err(|e| LabError::unwritten(&out, e))?;
    let machine = program::name(program.machine);
    let text = format!(
        "Initramfs  {} ({} KiB, for {machine})\n\
         Program    {}\n\
         Measures   at most {} s, after about 3 s\n\
         Then       hands in to {}, {}\n\
         Kernel     give it panic=10 to restart after a panic, and console= of the serial line that you read\n",
        out.display(),
        bytes.len().div_ceil(1024),
        program.path.display(),
        job.job.limit_s,
        job.send,
        job.then.doing(),
    );
    Ok(BoardAnswer { text, status: 0 })
}

/// What the board is to do.
fn job(words: &BoardWords, run: &ReadRun<'_>) -> Result<BoardJob, LabError> {
    let mut arguments: Vec<OsString> = words.all("run").to_vec();
    if let Some(word) = arguments.iter().find(|word| is_not_there(&word.to_string_lossy())) {
        return Err(BoardError::NotThere(word.to_string_lossy().into_owned()).into());
    }
    let mut campaign = RunConfig::default();
    if let Some(path) = words.path("config") {
        let text =
            given::text(&path, limits::TEXT_BYTES_MAX).map_err(|e| LabError::file(&path, e))?;
        let wrong = |source| BoardError::Config { path, source: Box::new(source) };
        campaign = RunConfig::parse(&text).map_err(wrong)?;
    }
    let asked = campaign.over(&run(&arguments)?);
    if asked.duration.is_none() && asked.loops.is_none() {
        arguments.extend(["--duration", DURATION].map(OsString::from));
    }
    let length = RunConfig {
        duration: asked.duration.clone().or_else(|| Some(DURATION.to_owned())),
        interval: asked.interval.clone().or_else(|| Some(INTERVAL.to_owned())),
        ..asked
    };
    let mut limit_s = request::limit_s(&length)?;
    if let Some(text) = words.text("limit") {
        let wrong = |source| BoardError::Limit { source };
        let limit_ns = units::parse_ns(&text).map_err(wrong)?;
        limit_s = u64::try_from(limit_ns / 1_000_000_000).unwrap_or_default().max(1);
    }
    let word = |source| BoardError::Word { source };
    let given = |name| words.text(name);
    let job = BoardJob {
        job: Job {
            campaign: campaign.to_toml().map_err(FileError::Options)?,
            arguments: arguments.into_iter().map(told).collect::<Result<_, _>>()?,
            limit_s,
            ..Job::default()
        },
        send: given("send").map_or(Ok(Default::default()), |w| w.parse()).map_err(word)?,
        token: words.path("token-file").as_deref().map(token).transpose()?,
        address: given("ip").map_or(Ok(Default::default()), |w| w.parse()).map_err(word)?,
        then: given("then").map_or(Ok(Default::default()), |w| w.parse()).map_err(word)?,
        ..BoardJob::default()
    };
    let in_clear = job.token.is_some() && job.send.is_other_machine();
    if in_clear && !words.is_given("insecure-http") {
        return Err(BoardError::TokenInClear { to: job.send.to_string() }.into());
    }
    Ok(job)
}

fn is_not_there(word: &str) -> bool {
    let long = word.split('=').next().unwrap_or_default();
    NOT_THERE.contains(&long) || NOT_THERE_SHORT.iter().any(|short| word.starts_with(short))
}

fn told(word: OsString) -> Result<String, BoardError> {
    word.into_string().map_err(|word| BoardError::NoText(word.to_string_lossy().into_owned()))
}

fn token(path: &Path) -> Result<String, LabError> {
    let text = given::text(path, TOKEN_BYTES_MAX).map_err(|e| LabError::file(path, e))?;
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(BoardError::NoToken { path: path.to_owned() }.into());
    }
    Ok(text.to_owned())
}

fn tree(program: &BoardProgram, modules: &[PathBuf], job: &BoardJob) -> Result<Tree, LabError> {
    let mut tree = Tree::default();
    tree.file("tailbound", program.bytes.clone());
    tree.link("init", "tailbound");
    // For a kernel that does not mount its own devices.
    tree.character_device("dev/console", 5, 1);
    tree.character_device("dev/null", 1, 3);
    tree.file(JOB, serde_json::to_vec(job).map_err(FileError::Record)?);
    let mut list = String::new();
    for path in modules {
        let bytes = modules::unpacked(path)?;
        let found = Elf::new(&bytes).map(|elf| elf.machine());
        if found != Some(program.machine) {
            let found = found.map_or_else(|| "no ELF file".to_owned(), program::name);
            let wanted = program::name(program.machine);
            return Err(BoardError::OtherMachine { path: path.clone(), found, wanted }.into());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let at = format!("/modules/{}.ko", name.split(".ko").next().unwrap_or_default());
        tree.file(&at, bytes);
        list.push_str(&format!("{at}\n"));
    }
    tree.file("modules.list", list.into_bytes());
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[(&'static str, &str)]) -> BoardWords {
        BoardWords(all.iter().map(|(name, value)| (*name, vec![OsString::from(value)])).collect())
    }

    fn config(_: &[OsString]) -> Result<RunConfig, LabError> {
        Ok(RunConfig { duration: Some("10s".to_owned()), ..RunConfig::default() })
    }

    #[test]
    fn the_same_words_make_the_same_bytes() {
        let program = BoardProgram { path: "x".into(), bytes: b"program".to_vec(), machine: 62 };
        let job = job(&words(&[("run", "--paranoid"), ("then", "reboot")]), &config).unwrap();
        let packed = || gzip::pack(&tree(&program, &[], &job).unwrap().archive().unwrap(), LEVEL);
        assert_eq!(packed(), packed());
        let mut plain = Vec::new();
        let packed = packed();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut plain)
            .unwrap();
        let text = String::from_utf8_lossy(&plain);
        assert!(text.starts_with("070701") && text.contains("tailbound-board-1.json"));
        assert!(text.contains("\"then\":\"reboot\"") && text.contains("--paranoid"));
    }

    #[test]
    fn what_a_board_cannot_do_is_refused() {
        let says = |all: &[(&'static str, &str)]| match job(&words(all), &config) {
            Ok(job) => format!("{} s, {}", job.job.limit_s, job.send),
            Err(e) => e.to_string(),
        };
        assert_eq!(says(&[]), "90 s, serial");
        assert_eq!(says(&[("limit", "5m")]), "300 s, serial");
        for word in ["--out=x", "-o", "--config", "--rounds"] {
            assert!(says(&[("run", word)]).contains(word), "{word}");
        }
        assert!(says(&[("send", "https://1.2.3.4")]).contains("http://"));
        assert!(says(&[("then", "sleep")]).contains("poweroff"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "tb_1\n").unwrap();
        let file = file.display().to_string();
        let all = [("token-file", file.as_str()), ("send", "http://192.168.1.9:8787")];
        assert!(says(&all).contains("--insecure-http"), "{}", says(&all));
        let allowed = [&all[..], &[("insecure-http", "")]].concat();
        assert!(says(&allowed).ends_with("/api/v1/runs"), "{}", says(&allowed));
    }
}
