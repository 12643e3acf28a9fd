// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who answers for the packages: `TAILBOUND_MAINTAINER`, or what `packaging/maintainer` says.
//!
//! The file has nobody in it: the project has no address yet. Such packages say so where a package manager shows its
//! maintainer, `make release` says so, and nothing is signed.
//! Source: Debian Policy 5.6.2; RFC 2606 on `.invalid`.

use std::ffi::OsStr;

use anyhow::{Context as _, bail};

use super::Release;

/// A person or a list, as packages name them: `Name <address>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Maintainer(String);

impl Maintainer {
    /// That of this release.
    pub(super) fn of(release: &Release) -> anyhow::Result<Self> {
        match std::env::var("TAILBOUND_MAINTAINER") {
            Ok(text) => Self::read(&text).context("TAILBOUND_MAINTAINER"),
            Err(_) => {
                Self::read(&release.filled("maintainer", &[])?).context("packaging/maintainer")
            }
        }
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        let text = text.trim();
        let address = text.split_once(" <").and_then(|(_, rest)| rest.strip_suffix('>'));
        if address.is_none_or(|a| !a.contains('@') || a.contains(['<', ' '])) || text.contains('\n')
        {
            bail!("`{text}` is not of the form `Name <address>`");
        }
        Ok(Self(text.to_owned()))
    }

    /// As a package has it.
    pub(super) fn line(&self) -> &str {
        &self.0
    }

    /// What is to be said where nobody answers for the packages. Then they are not signed: with a key it is an error.
    ///
    /// # Errors
    /// There is a key to sign with.
    pub(super) fn lacking(&self, key: Option<&OsStr>) -> anyhow::Result<Option<String>> {
        if !self.0.ends_with(".invalid>") {
            return Ok(None);
        }
        let what = format!(
            "nobody answers for these packages: their maintainer is `{}`. Write who does into packaging/maintainer, or set TAILBOUND_MAINTAINER='Name <address>'",
            self.0
        );
        match key {
            Some(_) => bail!("not signed, and nothing made: {what}"),
            None => Ok(Some(format!("only for trials: {what}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_signed_only_where_somebody_answers_for_it() {
        let nobody = Maintainer::read("Nobody yet <x@tailbound.invalid>\n").unwrap();
        let said = nobody.lacking(None).unwrap().unwrap();
        assert!(
            said.starts_with("only for trials: ") && said.contains("TAILBOUND_MAINTAINER"),
            "{said}"
        );
        assert!(
            nobody
                .lacking(Some(OsStr::new("key")))
                .unwrap_err()
                .to_string()
                .starts_with("not signed")
        );
        let somebody = Maintainer::read("A B <a@example.org>").unwrap();
        assert_eq!(somebody.lacking(Some(OsStr::new("key"))).unwrap(), None);
        for wrong in ["", "a@example.org", "A <a>", "A <a@b", "A <a@b>\nX: y", "A <a@b <c>"] {
            assert!(Maintainer::read(wrong).is_err(), "{wrong}");
        }
    }
}
