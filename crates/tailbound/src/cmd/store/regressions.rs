// SPDX-License-Identifier: MIT OR Apache-2.0
//! `store regressions`: what became worse and stayed so.

use std::process::ExitCode;

use serde_json::json;
use tailbound_core::utc;
use tailbound_fleet::regressions::search;
use tailbound_store::{Age, Since};

use super::place::{now_s, opened};
use crate::cli_store::{RegressionsFormat, StoreRegressionsArgs};
use crate::say::{self, Failure};

const _: () = assert!(crate::cli_store::DAYS == tailbound_fleet::regressions::DAYS);

pub(super) fn regressions(args: &StoreRegressionsArgs) -> Result<ExitCode, Failure> {
    let mut store = opened(&args.store)?;
    let mut since = utc::rfc3339(now_s().saturating_sub(Age::days(args.days).s));
    since.truncate(10);
    let since = Since::From(since);
    let only = match &args.system {
        None => None,
        Some(name) => Some(store.system_named(name)?.ok_or_else(|| {
            Failure::usage(format!("--system: there is no system `{name}` in {}", store.place()))
        })?),
    };
    let found = search(&mut store, &since, only.as_ref())?;
    if args.json {
        let mut all = json!(found);
        if let Some(all) = all.as_object_mut() {
            all.insert("schema".to_owned(), "tailbound-store-regressions/1".into());
        }
        say::answer_json(&all)?;
    } else {
        say::answer(&match args.format {
            RegressionsFormat::Text => found.words(),
            RegressionsFormat::Mail => found.mail(),
            RegressionsFormat::Junit => found.junit(),
            RegressionsFormat::Ktap => found.ktap(),
        })?;
    }
    Ok(ExitCode::from(u8::from(!found.regressions.is_empty())))
}
