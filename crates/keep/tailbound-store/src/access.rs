// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may reach the store over the network: tokens with a role, and a log of what they did.
//!
//! A token is 256 random bits, of which only the SHA-256 is kept: there is nothing to guess, so no slow hash is
//! needed. What a token is worth is decided in one place, [`Role::may`].

use tailbound_core::printable::excerpt;

use crate::audit::{Audited, write_down};
use crate::database::all;
use crate::error::StoreError;
use crate::store::Store;
use crate::summary::TEXT_CHARS;
use crate::value::Value;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A machine: takes its own work, hands in runs of itself, and reads nothing else.
    Agent,
    /// A person or a program that looks: reads everything but the audit log, changes nothing.
    Reader,
    /// Who runs the farm: reads everything, hands out work, hands in runs of any machine, writes notes.
    Operator,
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act<'a> {
    /// Read pages, runs and figures.
    Read,
    /// Hand in a run of this machine.
    HandIn(&'a str),
    /// Take, renew, refuse and end work of this machine.
    Take(&'a str),
    /// Hand out work, and take it back.
    HandOut,
    /// Write a note.
    Note,
    /// Read the audit log.
    Audit,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Reader, Self::Operator];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Reader => "reader",
            Self::Operator => "operator",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

/// A token as the store knows it: not the token itself.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Token {
    /// Which.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it may.
    pub role: Role,
    /// Of an agent: the machine whose runs it hands in.
    pub system: Option<String>,
    /// Since when, RFC 3339.
    pub created: String,
    /// Since when no more.
    pub revoked: Option<String>,
}

impl Token {
    /// May its holder do this?
    #[must_use]
    pub fn may(&self, act: Act<'_>) -> bool {
        if self.revoked.is_some() {
            return false;
        }
        match (self.role, act) {
            // Only the machine itself can say what it did.
            (Role::Operator, Act::Take(_)) => false,
            (Role::Operator, _) | (Role::Reader, Act::Read) => true,
            (Role::Agent, Act::HandIn(system) | Act::Take(system)) => {
                self.system.as_deref() == Some(system)
            }
            (Role::Reader | Role::Agent, _) => false,
        }
    }
}

/// A row of `token`; `None`: a role that this version does not know, which may nothing.
fn token(row: &[Value]) -> Option<Token> {
    let text = |at: usize| row.get(at).and_then(Value::text).map(str::to_owned);
    Some(Token {
        id: text(0)?,
        name: text(1)?,
        role: Role::of(&text(2)?)?,
        system: text(3),
        created: text(4)?,
        revoked: text(5),
    })
}

const COLUMNS: &str = "id, name, role, system, created, revoked";

impl Store {
    /// Keeps a token, of which `sha256` (hexadecimal) is known alone.
    ///
    /// # Errors
    /// The database refuses.
    pub fn keep_token(&mut self, token: &Token, sha256: &str) -> Result<(), StoreError> {
        let sql = "INSERT INTO token (id, name, role, system, sha256, created) VALUES ($1, $2, $3, $4, $5, $6)";
        let values = [
            token.id.as_str().into(),
            token.name.as_str().into(),
            token.role.as_str().into(),
            token.system.as_deref().into(),
            sha256.into(),
            token.created.as_str().into(),
        ];
        self.db().execute(sql, &values).map(|_| ())
    }

    /// All tokens, also those that were revoked.
    ///
    /// # Errors
    /// The database refuses.
    pub fn tokens(&mut self) -> Result<Vec<Token>, StoreError> {
        let rows =
            all(self.db(), &format!("SELECT {COLUMNS} FROM token ORDER BY created, id"), &[])?;
        Ok(rows.iter().filter_map(|row| token(row)).collect())
    }

    /// The token with this SHA-256, unless it was revoked.
    ///
    /// # Errors
    /// The database refuses.
    pub fn token_of(&mut self, sha256: &str) -> Result<Option<Token>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM token WHERE sha256 = $1 AND revoked IS NULL");
        let rows = all(self.db(), &sql, &[sha256.into()])?;
        Ok(rows.first().and_then(|row| token(row)))
    }

    /// Revokes a token by its identity or its name; how many there were.
    ///
    /// # Errors
    /// The database refuses.
    pub fn revoke(&mut self, which: &str, now: &str) -> Result<u64, StoreError> {
        let sql = "UPDATE token SET revoked = $1 WHERE (id = $2 OR name = $2) AND revoked IS NULL";
        self.db().execute(sql, &[now.into(), which.into()])
    }

    /// Writes down what was done.
    ///
    /// # Errors
    /// The database refuses.
    pub fn audit(&mut self, done: &Audited) -> Result<(), StoreError> {
        self.in_need(|db| write_down(db, done))
    }

    /// The newest `most` lines of the audit log, the newest first.
    ///
    /// # Errors
    /// The database refuses.
    pub fn audited(&mut self, most: u32) -> Result<Vec<Audited>, StoreError> {
        let sql = "SELECT at, who, what FROM audit ORDER BY at DESC, who, what LIMIT $1";
        let rows = all(self.db(), sql, &[Value::Int(most.into())])?;
        let text = |row: &[Value], at: usize| {
            excerpt(row.get(at).and_then(Value::text).unwrap_or_default(), TEXT_CHARS)
        };
        Ok(rows
            .iter()
            .map(|row| Audited { at: text(row, 0), who: text(row, 1), what: text(row, 2) })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_may_what_its_page_says_and_nothing_else() {
        let of = |role: Role, system: Option<&str>| Token {
            id: "1".to_owned(),
            name: "n".to_owned(),
            role,
            system: system.map(str::to_owned),
            created: String::new(),
            revoked: None,
        };
        let acts = [
            Act::Read,
            Act::HandIn("press"),
            Act::HandIn("lathe"),
            Act::Take("press"),
            Act::Take("lathe"),
            Act::HandOut,
            Act::Note,
            Act::Audit,
        ];
        let may = |t: &Token| acts.map(|act| t.may(act));
        let agent = of(Role::Agent, Some("press"));
        assert_eq!(may(&agent), [false, true, false, true, false, false, false, false]);
        assert_eq!(may(&of(Role::Agent, None)), [false; 8]);
        let reads = [true, false, false, false, false, false, false, false];
        assert_eq!(may(&of(Role::Reader, None)), reads);
        let all_but_taking = [true, true, true, false, false, true, true, true];
        assert_eq!(may(&of(Role::Operator, None)), all_but_taking);
        let revoked = Token { revoked: Some("2026".to_owned()), ..of(Role::Operator, None) };
        assert_eq!(may(&revoked), [false; 8]);
        assert!(Role::ALL.into_iter().all(|role| Role::of(role.as_str()) == Some(role)));
    }
}
