// SPDX-License-Identifier: MIT OR Apache-2.0
//! `serve`: a store over HTTP, and who may reach it.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tailbound_agent::hook::Hook;
use tailbound_fleet::serve::{self, Clock, Config, ServeError, tokens};
use tailbound_store::{Role, Token};

use super::store::place::{made, now, now_s, opened};
use crate::cli_color::ColorChoice;
use crate::cli_serve::{
    AuditArgs, RoleWord, ServeArgs, ServeVerb, TokenAddArgs, TokenLsArgs, TokenRevokeArgs,
    TokenVerb,
};
use crate::flags;
use crate::say::{self, Failure};

impl From<RoleWord> for Role {
    fn from(word: RoleWord) -> Self {
        match word {
            RoleWord::Agent => Self::Agent,
            RoleWord::Reader => Self::Reader,
            RoleWord::Operator => Self::Operator,
        }
    }
}

impl From<ServeError> for Failure {
    fn from(e: ServeError) -> Self {
        match e {
            ServeError::Plain(_) => Self::usage(e),
            _ => Self::cannot(e),
        }
    }
}

/// `tailbound serve`
pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, Failure> {
    match &args.what {
        None => listen(args),
        Some(ServeVerb::Token(TokenVerb::Add(args))) => add(args),
        Some(ServeVerb::Token(TokenVerb::Ls(args))) => ls(args),
        Some(ServeVerb::Token(TokenVerb::Revoke(args))) => revoke(args),
        Some(ServeVerb::Audit(args)) => audit(args),
    }
}

fn listen(args: &ServeArgs) -> Result<ExitCode, Failure> {
    // Made here, so that what is wrong with its place is told as everywhere.
    let place = made(&args.store)?.place().clone();
    let mut config = Config::new(place, args.listen);
    config.tls = args.cert.clone().zip(args.key.clone());
    config.hosts.clone_from(&args.hosts);
    config.open &= !args.closed;
    let lease = flags::time("--lease", &args.lease)?;
    if lease < 1_000_000_000 {
        return Err(Failure::usage(format!("--lease: {} is below 1 s", args.lease)));
    }
    config.lease = Duration::from_nanos(lease.unsigned_abs());
    for url in &args.webhooks {
        let (secret, ca) = (args.webhook_secret.as_deref(), args.webhook_ca.as_deref());
        config.webhooks.push(Arc::new(Hook::open(url, secret, ca).map_err(Failure::usage)?));
    }
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let store = config.store.to_string();
    serve::serve(
        config,
        Clock(Arc::new(now_s)),
        |address| {
            say::note(&format!("{store} is served at {scheme}://{address}/ ; Ctrl-C ends it"))
        },
        serve::asked_to_end(),
    )?;
    Ok(ExitCode::SUCCESS)
}

fn add(args: &TokenAddArgs) -> Result<ExitCode, Failure> {
    let role = Role::from(args.role);
    if role != Role::Agent && args.system.is_some() {
        return Err(Failure::usage("--system: only an agent is bound to a machine"));
    }
    let system =
        (role == Role::Agent).then(|| args.system.clone().unwrap_or_else(|| args.name.clone()));
    if ![Some(&args.name), system.as_ref()].into_iter().flatten().all(|name| tokens::is_name(name))
    {
        return Err(Failure::usage(format!("a name has {}", tokens::NAME_RULE)));
    }
    let (id, token) = tokens::made().map_err(Failure::cannot)?;
    let kept = Token { id, name: args.name.clone(), role, system, created: now(), revoked: None };
    made(&args.store)?.keep_token(&kept, &tokens::hashed(&token))?;
    say::answer(&token)?;
    Ok(ExitCode::SUCCESS)
}

fn ls(args: &TokenLsArgs) -> Result<ExitCode, Failure> {
    let all = opened(&args.store)?.tokens()?;
    if args.json {
        say::answer_json(&json!({"tokens": all}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = say::style(ColorChoice::Auto);
    say::answer_in(&tokens::text(all, style.width), style)?;
    Ok(ExitCode::SUCCESS)
}

fn revoke(args: &TokenRevokeArgs) -> Result<ExitCode, Failure> {
    match opened(&args.store)?.revoke(&args.which, &now())? {
        0 => Err(Failure::usage(format!("no valid token is called `{}`", args.which))),
        n => {
            say::note(&format!("{n} token{} revoked", if n == 1 { "" } else { "s" }));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn audit(args: &AuditArgs) -> Result<ExitCode, Failure> {
    let lines = opened(&args.store)?.audited(args.number)?;
    if args.json {
        say::answer_json(&json!({"audit": lines}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let text: Vec<String> =
        lines.iter().map(|l| format!("{} {}: {}", l.at, l.who, l.what)).collect();
    // Names in it are those of strangers.
    say::answer_in(&text.join("\n"), say::style(ColorChoice::Auto))?;
    Ok(ExitCode::SUCCESS)
}
