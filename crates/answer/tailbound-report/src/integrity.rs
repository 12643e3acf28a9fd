// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is a run file as it was written, and who vouches for it?
//!
//! Not here: the digest (`tailbound_core::runfile`), keys and signatures (the caller).

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::runfile::{Integrity, Seal};

/// What can be said of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intactness {
    /// It is as it was written.
    Intact,
    /// It was changed, or is not signed as was asked.
    Changed,
    /// Nobody can tell.
    Undecided,
}

impl Intactness {
    /// The exit status for scripts.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Intact => 0,
            Self::Changed => 1,
            Self::Undecided => 5,
        }
    }

    /// For people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Intact => "intact",
            Self::Changed => "not intact",
            Self::Undecided => "undecided",
        }
    }
}

/// The signature of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureState {
    /// It was not looked for one, and there is none.
    Absent,
    /// There is one, and no key to look at it with.
    Unread,
    /// It is the key's; its trusted comment.
    Valid(String),
    /// It is not the key's, or not there; why.
    Invalid(String),
}

/// One file, read whole.
#[derive(Debug)]
pub struct IntegrityReport<'a> {
    /// Its path, for scripts.
    pub path: String,
    /// The name people know it by.
    pub name: String,
    /// What is in it.
    pub run: &'a Run,
    /// What its digest tells.
    pub integrity: Integrity,
    /// Who vouches for it.
    pub signature: SignatureState,
}

/// What shows that the file of `run` is not as it was written.
#[must_use]
pub fn changed(run: &Run) -> Vec<String> {
    let weighty = ["file-partial", "file-cut-after-verdict"];
    let of_the_file = run.findings.iter().filter(|f| f.id.starts_with("file-"));
    of_the_file.filter(|f| !weighty.contains(&f.id.as_str())).map(|f| f.title.clone()).collect()
}

impl IntegrityReport<'_> {
    /// What can be said of it.
    #[must_use]
    pub fn intactness(&self) -> Intactness {
        match &self.signature {
            _ if !changed(self.run).is_empty() => Intactness::Changed,
            SignatureState::Invalid(_) => Intactness::Changed,
            SignatureState::Valid(_) if self.integrity.ended => Intactness::Intact,
            SignatureState::Absent | SignatureState::Unread
                if self.integrity.seal == Seal::Whole =>
            {
                Intactness::Intact
            }
            _ => Intactness::Undecided,
        }
    }

    fn digest(&self) -> String {
        match self.integrity.seal {
            Seal::Whole => "as it was written".to_owned(),
            Seal::UpTo(line) => format!("as it was written up to line {line}; cut off later"),
            Seal::Broken(after, line) => {
                format!("changed between line {} and line {line}", after + 1)
            }
            Seal::Absent => "none: an earlier version or another program wrote it; only its structure was looked at".to_owned(),
        }
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!(
            "{}: {}\n  Lines      {}\n  Digest     {}\n",
            self.name,
            self.intactness().word(),
            self.integrity.lines,
            self.digest()
        );
        let signature = match &self.signature {
            SignatureState::Valid(comment) => format!("valid: {comment}"),
            SignatureState::Invalid(why) => format!("not valid: {why}"),
            SignatureState::Unread => "there is one; give the public key with --key".to_owned(),
            SignatureState::Absent => "none".to_owned(),
        };
        out.push_str(&format!("  Signature  {signature}\n"));
        for what in changed(self.run) {
            out.push_str(&format!("  - {what}\n"));
        }
        out
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        let seal = match self.integrity.seal {
            Seal::Whole => "whole",
            Seal::UpTo(_) => "up-to",
            Seal::Broken(..) => "broken",
            Seal::Absent => "absent",
        };
        let (signed, text) = match &self.signature {
            SignatureState::Valid(comment) => (Some(true), Some(comment)),
            SignatureState::Invalid(why) => (Some(false), Some(why)),
            SignatureState::Unread | SignatureState::Absent => (None, None),
        };
        json!({
            "file": self.path,
            "status": self.intactness().exit_status(),
            "lines": self.integrity.lines,
            "ended": self.integrity.ended,
            "digest": seal,
            "digest_text": self.digest(),
            "signed": signed,
            "signature_text": text,
            "changed": changed(self.run),
        })
    }
}
