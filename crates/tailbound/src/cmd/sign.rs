// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sign` and `verify`: who vouches for a run, and is its file as it was written?
//!
//! What the digest tells, everybody can check; what a signature tells, only who has
//! the public key from somewhere else than the file.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Seek as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use minisign::PublicKey;
use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::runfile::{Integrity, Seal, read_run_checked};
use tailbound_sys::given;

use crate::cli_sign::{SignArgs, VerifyArgs};
use crate::say::{self, Failure};
use crate::{input, signature};

/// Exit status of a file that was changed, or is not signed as request.
const CHANGED: u8 = 1;
/// Exit status of a file that nobody can tell of.
const UNDECIDED: u8 = 5;

/// `tailbound sign`
pub(crate) fn sign(args: &SignArgs) -> Result<ExitCode, Failure> {
    let key = args.key.clone().map_or_else(signature::default_key, Ok)?;
    if args.new_key {
        let (public, text) = signature::make(&key, !args.no_password)?;
        say::answer(&format!(
            "Secret key  {}\nPublic key  {}\n            {text}",
            key.display(),
            public.display()
        ))?;
    }
    if args.runs.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let secret = signature::secret(&key)?;
    let mut status = 0;
    for path in &args.runs {
        let checked = Checked::of(path)?;
        let changed = checked.changed();
        if !changed.is_empty() {
            say::note(&format!(
                "tailbound: {}: not signed: {}",
                path.display(),
                changed.join("; ")
            ));
            status = CHANGED;
            continue;
        }
        let outcome = checked.run.verdict.as_ref().map_or("no verdict", |v| v.outcome.word());
        let comment = format!("{}, {outcome}, {}", checked.run.header.id, input::name(path));
        let text = signature::sign(&secret, &checked.file, &comment)?;
        let beside = signature::beside(path);
        input::write(&beside, &text, args.force)?;
        say::answer(&format!("Signature  {}", beside.display()))?;
    }
    Ok(ExitCode::from(status))
}

/// `tailbound verify`
pub(crate) fn verify(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    let key = args.key.as_deref().map(signature::public).transpose()?;
    let mut answers = Vec::new();
    for path in &args.runs {
        answers.push(Answer::of(path, key.as_ref())?);
    }
    if args.json {
        let all: Vec<Value> = answers.iter().map(Answer::json).collect();
        say::answer_json(&json!({ "files": all }))?;
    } else {
        let texts: Vec<String> = answers.iter().map(Answer::text).collect();
        say::answer(&texts.join("\n"))?;
    }
    let of = |status| answers.iter().any(|a| a.status() == status).then_some(status);
    Ok(ExitCode::from(of(CHANGED).or(of(UNDECIDED)).unwrap_or(0)))
}

/// A run file that was read, and stands at its begin again.
struct Checked {
    file: File,
    run: Run,
    integrity: Integrity,
}

impl Checked {
    fn of(path: &Path) -> Result<Self, Failure> {
        let failed = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
        let mut file = given::file(path).map_err(|e| failed(&e))?;
        let (mut run, integrity) =
            read_run_checked(BufReader::with_capacity(1 << 16, &file), &["raw"])
                .map_err(|e| failed(&e))?;
        tailbound_stats::judge(&mut run);
        file.rewind().map_err(|e| failed(&e))?;
        Ok(Self { file, run, integrity })
    }

    /// What shows that the file is not as it was written.
    fn changed(&self) -> Vec<String> {
        let weighty = ["file-partial", "file-cut-after-verdict"];
        let of_the_file = self.run.findings.iter().filter(|f| f.id.starts_with("file-"));
        of_the_file.filter(|f| !weighty.contains(&f.id.as_str())).map(|f| f.title.clone()).collect()
    }
}

/// Why a file is not signed by the key.
enum Unsigned {
    Missing(PathBuf),
    Wrong(minisign::PError),
}

impl fmt::Display for Unsigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "{} is not there", path.display()),
            Self::Wrong(why) => why.fmt(f),
        }
    }
}

/// What is said of one file.
struct Answer {
    path: PathBuf,
    checked: Checked,
    /// The trusted comment, or what is wrong; nothing without a key.
    signed: Option<Result<String, Unsigned>>,
    /// There is a signature, and no key to look at it with.
    unread: bool,
}

impl Answer {
    fn of(path: &Path, key: Option<&PublicKey>) -> Result<Self, Failure> {
        let checked = Checked::of(path)?;
        let beside = signature::beside(path);
        let there = beside.symlink_metadata().is_ok();
        let signed = match key {
            None => None,
            Some(_) if !there => Some(Err(Unsigned::Missing(beside))),
            Some(key) => {
                let text = signature::small(&beside)?;
                Some(signature::verify(key, &text, &checked.file).map_err(Unsigned::Wrong))
            }
        };
        let unread = key.is_none() && there;
        Ok(Self { path: path.to_owned(), checked, signed, unread })
    }

    fn status(&self) -> u8 {
        let (seal, ended) = (self.checked.integrity.seal, self.checked.integrity.ended);
        match &self.signed {
            _ if !self.checked.changed().is_empty() => CHANGED,
            Some(Err(_)) => CHANGED,
            Some(Ok(_)) if ended => 0,
            None if seal == Seal::Whole => 0,
            _ => UNDECIDED,
        }
    }

    fn digest(&self) -> String {
        match self.checked.integrity.seal {
            Seal::Whole => "as it was written".to_owned(),
            Seal::UpTo(line) => format!("as it was written up to line {line}; cut off later"),
            Seal::Broken(after, line) => {
                format!("changed between line {} and line {line}", after + 1)
            }
            Seal::Absent => "none: an earlier version or another program wrote it; only its structure was looked at".to_owned(),
        }
    }

    fn text(&self) -> String {
        let word = match self.status() {
            0 => "intact",
            CHANGED => "not intact",
            _ => "undecided",
        };
        let mut out = format!(
            "{}: {word}\n  Lines      {}\n  Digest     {}\n",
            input::name(&self.path),
            self.checked.integrity.lines,
            self.digest()
        );
        let signature = match &self.signed {
            Some(Ok(comment)) => format!("valid: {comment}"),
            Some(Err(why)) => format!("not valid: {why}"),
            None if self.unread => "there is one; give the public key with --key".to_owned(),
            None => "none".to_owned(),
        };
        out.push_str(&format!("  Signature  {signature}\n"));
        for what in self.checked.changed() {
            out.push_str(&format!("  - {what}\n"));
        }
        out
    }

    fn json(&self) -> Value {
        let integrity = self.checked.integrity;
        let seal = match integrity.seal {
            Seal::Whole => "whole",
            Seal::UpTo(_) => "up-to",
            Seal::Broken(..) => "broken",
            Seal::Absent => "absent",
        };
        json!({
            "file": self.path.display().to_string(),
            "status": self.status(),
            "lines": integrity.lines,
            "ended": integrity.ended,
            "digest": seal,
            "digest_text": self.digest(),
            "signed": self.signed.as_ref().map(Result::is_ok),
            "signature_text": self.signed.as_ref().map(|s| s.as_ref().map_or_else(ToString::to_string, Clone::clone)),
            "changed": self.checked.changed(),
        })
    }
}
