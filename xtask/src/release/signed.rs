// SPDX-License-Identifier: MIT OR Apache-2.0
//! `SHA256SUMS`, and its signature where the releaser gives a key.
//!
//! The key is the releaser's own (`minisign -G`, or `tailbound sign`): `TAILBOUND_SIGN_KEY` names its file. Anybody
//! checks with `minisign -V -p KEY.pub -m SHA256SUMS` and `sha256sum -c SHA256SUMS`.
//! Source: minisign(1).

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use minisign::SecretKeyBox;
use sha2::{Digest as _, Sha256};

use super::Release;

/// Where the releaser's key is.
const KEY: &str = "TAILBOUND_SIGN_KEY";

/// Writes the sums of the products, in the order of their names.
pub(super) fn sums(release: &Release, products: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let mut lines = Vec::new();
    for path in products {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        let sum: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        let name = path.file_name().context("a product without a name")?.to_string_lossy();
        lines.push((name.into_owned(), sum));
    }
    lines.sort();
    let text: String = lines.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    let path = release.out.join("SHA256SUMS");
    fs::write(&path, text)?;
    Ok(path)
}

/// The file of the releaser's key, where one is named.
pub(super) fn key() -> Option<OsString> {
    std::env::var_os(KEY)
}

/// Signs it, or says why it is not signed. A signature of other sums is taken away.
pub(super) fn sign(release: &Release, sums: &Path) -> anyhow::Result<String> {
    let beside = sums.with_extension("minisig");
    if beside.exists() {
        fs::remove_file(&beside)?;
    }
    let Some(key) = key() else {
        return Ok(format!("not signed: {KEY} names no key (minisign -G makes one)"));
    };
    let key = PathBuf::from(key);
    let comment = format!("tailbound {}", release.version);
    fs::write(&beside, signature(&key, sums, &comment)?)?;
    Ok(format!("signed: {}", beside.display()))
}

/// A signature of `file` by the key in a file; its password is asked for where it has one.
fn signature(key: &Path, file: &Path, comment: &str) -> anyhow::Result<String> {
    let text = fs::read_to_string(key).with_context(|| key.display().to_string())?;
    let of = || SecretKeyBox::from_string(&text);
    // minisign 0.11 leaves the checksum of a key without password (`-W`) empty, which the crate refuses.
    let secret = match of().and_then(SecretKeyBox::into_unencrypted_secret_key) {
        Ok(secret) => secret,
        Err(plain) => of().and_then(|k| k.into_secret_key(None)).with_context(|| {
            format!(
                "{}: no secret key ({plain}): one with a password, or of `tailbound sign`",
                key.display()
            )
        })?,
    };
    let signed = minisign::sign(None, &secret, File::open(file)?, Some(comment), None)?;
    Ok(signed.into_string())
}

#[cfg(test)]
mod tests {
    use minisign::{KeyPair, SignatureBox};

    use super::*;

    #[test]
    fn what_is_signed_is_verified_and_anything_else_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (key, file) = (dir.path().join("key"), dir.path().join("SHA256SUMS"));
        let pair = KeyPair::generate_unencrypted_keypair().unwrap();
        fs::write(&key, pair.sk.to_box(None).unwrap().into_string()).unwrap();
        fs::write(&file, "ab  x\n").unwrap();
        let signature = signature(&key, &file, "tailbound 1").unwrap();
        let signature = SignatureBox::from_string(&signature).unwrap();
        let holds = |file: &Path| {
            minisign::verify(&pair.pk, &signature, File::open(file).unwrap(), true, false, false)
                .is_ok()
        };
        assert!(holds(&file));
        fs::write(&file, "ac  x\n").unwrap();
        assert!(!holds(&file));
        assert!(super::signature(&file, &file, "").is_err(), "no key");
    }
}
