// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sign` and `verify`: who vouches for a run, and is its file as it was written?
//!
//! What the digest tells, everybody can check; what a signature tells, only who has
//! the public key from somewhere else than the file.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use tailbound_files::read::CheckedFile;
use tailbound_files::signature::{self, KeyProtection, PublicKey};
use tailbound_report::integrity::{Intactness, IntegrityReport, SignatureState, changed};

use crate::cli_sign::{SignArgs, VerifyArgs};
use crate::input::{self, Existing};
use crate::say::{self, Failure};

/// `tailbound sign`
pub(crate) fn sign(args: &SignArgs) -> Result<ExitCode, Failure> {
    let key = match &args.key {
        Some(key) => key.clone(),
        None => signature::default_key()?,
    };
    if args.new_key {
        let protection =
            if args.no_password { KeyProtection::None } else { KeyProtection::Password };
        let (public, text) = signature::make(&key, protection)?;
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
        let checked = CheckedFile::of(path)?;
        let changed = changed(&checked.run);
        if !changed.is_empty() {
            say::note(&format!(
                "tailbound: {}: not signed: {}",
                path.display(),
                changed.join("; ")
            ));
            status = Intactness::Changed.exit_status();
            continue;
        }
        let outcome = checked.run.verdict.as_ref().map_or("no verdict", |v| v.outcome.word());
        let comment = format!("{}, {outcome}, {}", checked.run.header.id, input::name(path));
        let text = signature::sign(&secret, &checked.file, &comment)?;
        let beside = signature::beside(path);
        input::write(&beside, &text, Existing::replaced_if(args.force))?;
        say::answer(&format!("Signature  {}", beside.display()))?;
    }
    Ok(ExitCode::from(status))
}

/// `tailbound verify`
pub(crate) fn verify(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    let key = args.key.as_deref().map(signature::public).transpose()?;
    let (mut states, mut texts, mut all) = (Vec::new(), Vec::new(), Vec::<Value>::new());
    for path in &args.runs {
        let checked = CheckedFile::of(path)?;
        let report = IntegrityReport {
            path: path.display().to_string(),
            name: input::name(path),
            run: &checked.run,
            integrity: checked.integrity,
            signature: signature_of(path, &checked.file, key.as_ref())?,
        };
        states.push(report.intactness());
        texts.push(report.text());
        all.push(report.json());
    }
    if args.json {
        say::answer_json(&json!({ "files": all }))?;
    } else {
        say::answer(&texts.join("\n"))?;
    }
    let mut worse = [Intactness::Changed, Intactness::Undecided].into_iter();
    let worst = worse.find(|s| states.contains(s)).unwrap_or(Intactness::Intact);
    Ok(ExitCode::from(worst.exit_status()))
}

/// What `key` says of the signature beside `path`.
fn signature_of(
    path: &Path,
    file: &File,
    key: Option<&PublicKey>,
) -> Result<SignatureState, Failure> {
    let beside = signature::beside(path);
    let there = beside.symlink_metadata().is_ok();
    let Some(key) = key else {
        return Ok(if there { SignatureState::Unread } else { SignatureState::Absent });
    };
    if !there {
        return Ok(SignatureState::Invalid(format!("{} is not there", beside.display())));
    }
    let text = signature::small(&beside)?;
    Ok(match signature::verify(key, &text, file) {
        Ok(comment) => SignatureState::Valid(comment),
        Err(why) => SignatureState::Invalid(why.to_string()),
    })
}
