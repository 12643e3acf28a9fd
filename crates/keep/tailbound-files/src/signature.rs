// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys and detached signatures, in the files of minisign.
//!
//! The signature of `FILE` is `FILE.minisig`; its trusted comment, which is signed too,
//! says which run it is. Secret keys are files of mode 0600, with a password unless asked otherwise.
//! Not here: what makes a run file believable without a signature (`tailbound_core::runfile`).
//! Source: <https://jedisct1.github.io/minisign/>.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use minisign::{KeyPair, PublicKeyBox, SecretKeyBox, SignatureBox};
pub use minisign::{PublicKey, SecretKey};
use tailbound_sys::given;
use tailbound_sys::new_file::{Existing, NewFile};

use crate::error::FilesError;
use crate::write;

/// Longest key or signature file: theirs have four short lines.
const SMALL: u64 = 64 << 10;

/// `FILE.minisig`.
#[must_use]
pub fn beside(path: &Path) -> PathBuf {
    with(path, ".minisig")
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The key where minisign keeps it.
///
/// # Errors
/// [`FilesError::NoHome`].
pub fn default_key() -> Result<PathBuf, FilesError> {
    let home = std::env::var_os("HOME").filter(|h| Path::new(h).is_absolute());
    let home = home.ok_or(FilesError::NoHome)?;
    Ok(Path::new(&home).join(".minisign/minisign.key"))
}

/// Who can use a secret key whose file they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyProtection {
    /// Who knows its password, which is asked for.
    Password,
    /// Anybody.
    None,
}

/// Makes a key pair; yields where its public half is, and that half.
///
/// # Errors
/// A key is there already, has no password, or cannot be written.
pub fn make(secret: &Path, protection: KeyProtection) -> Result<(PathBuf, String), FilesError> {
    let public = match secret.extension() {
        Some(e) if e == "key" => secret.with_extension("pub"),
        _ => with(secret, ".pub"),
    };
    for path in [secret, &public] {
        if path.symlink_metadata().is_ok() {
            return Err(FilesError::KeyExists(path.to_owned()));
        }
    }
    let pair = match protection {
        KeyProtection::Password => {
            KeyPair::generate_encrypted_keypair(None).map_err(FilesError::Password)?
        }
        KeyProtection::None => KeyPair::generate_unencrypted_keypair().map_err(FilesError::Key)?,
    };
    let text = pair.sk.to_box(None).map_err(FilesError::Key)?.into_string();
    if let Some(folder) = secret.parent().filter(|f| !f.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(|e| failed(folder, &e))?;
    }
    private(secret, &text).map_err(|e| failed(secret, &e))?;
    let told = pair.pk.to_box().map_err(FilesError::Key)?.into_string();
    write::bytes(&public, told.as_bytes(), Existing::Keep)?;
    Ok((public, pair.pk.to_base64()))
}

/// Writes a file that nobody else may read, not even for a moment.
fn private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut new = NewFile::open(path, Existing::Keep)?;
    new.file().set_permissions(Permissions::from_mode(0o600))?;
    new.file().write_all(text.as_bytes())?;
    new.file().sync_all()?;
    new.place()
}

/// The secret key; asks for its password where it has one.
///
/// # Errors
/// It is none, or the password is wrong.
pub fn secret(path: &Path) -> Result<SecretKey, FilesError> {
    let text = small(path)?;
    let key = || SecretKeyBox::from_string(&text);
    let plain = key().and_then(SecretKeyBox::into_unencrypted_secret_key);
    plain
        .or_else(|_| key().and_then(|k| k.into_secret_key(None)))
        .map_err(|e| failed(path, &format!("no secret key: {e}")))
}

/// The public key: itself, or a file.
///
/// # Errors
/// It is none.
pub fn public(word: &str) -> Result<PublicKey, FilesError> {
    if let Ok(key) = PublicKey::from_base64(word) {
        return Ok(key);
    }
    let path = Path::new(word);
    let text = small(path)?;
    PublicKeyBox::from_string(&text)
        .and_then(PublicKeyBox::into_public_key)
        .map_err(|e| failed(path, &format!("no public key: {e}")))
}

/// Signs what `file` holds from its begin.
///
/// # Errors
/// It cannot be read.
pub fn sign(key: &SecretKey, file: &File, comment: &str) -> Result<String, FilesError> {
    minisign::sign(None, key, file, Some(&line(comment)), Some("signature of a tailbound run"))
        .map(|s| s.into_string())
        .map_err(FilesError::Key)
}

/// Is `signature` that of `key` over what `file` holds from its begin? Its trusted comment.
///
/// # Errors
/// It is not, and why.
pub fn verify(key: &PublicKey, signature: &str, file: &File) -> Result<String, minisign::PError> {
    let signature = SignatureBox::from_string(signature)?;
    minisign::verify(key, &signature, file, true, false, false)?;
    Ok(line(&signature.trusted_comment().unwrap_or_default()))
}

/// A whole small file as text.
///
/// # Errors
/// It cannot be read, or is too long.
pub fn small(path: &Path) -> Result<String, FilesError> {
    given::text(path, SMALL).map_err(|e| match e.kind() {
        io::ErrorKind::FileTooLarge | io::ErrorKind::InvalidInput => {
            failed(path, &"neither a key nor a signature")
        }
        _ => failed(path, &e),
    })
}

/// One line of plain characters.
fn line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn failed(path: &Path, e: &dyn std::fmt::Display) -> FilesError {
    FilesError::of(path, e)
}
