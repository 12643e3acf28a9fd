// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an option did not become what was wanted.
//!
//! Pure. The kernel's tool removes silently what it cannot grant; here the
//! first conditions that were not met are named, some steps deep.

use super::expression::{Expression, N, Y};
use super::tree::{Definition, Symbol, Tree};
use crate::kernel::Config;
use tailbound_core::order;

/// Steps from an option to what it needs, and so on.
const DEPTH_MAX: usize = 3;

impl Tree {
    /// Does this kernel know the option at all (on this architecture)?
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.symbols.get(name).is_some_and(|s| !s.definitions.is_empty())
    }

    /// Why `name` is not `wanted` in `config`, in a sentence without a full stop.
    pub(crate) fn why(&self, name: &str, wanted: &str, config: &Config) -> String {
        let Some(symbol) = self.symbols.get(name).filter(|s| !s.definitions.is_empty()) else {
            return format!("this kernel has no option {name} on this architecture");
        };
        if wanted == "n" {
            return self.why_on(symbol, config);
        }
        self.why_off(name, symbol, wanted, config, 0)
    }

    fn why_on(&self, symbol: &Symbol, config: &Config) -> String {
        let by = selectors(symbol, config);
        if !by.is_empty() {
            return format!("selected by {}", by.join(", "));
        }
        match best(symbol, config, 2) {
            Some(d) => match hidden(d, config) {
                Some(why) => format!("it cannot be switched off by hand: {why}"),
                None => "its default is y, and a choice needs one member on".to_owned(),
            },
            None => "unknown: no definition with conditions that hold".to_owned(),
        }
    }

    fn why_off(
        &self,
        name: &str,
        symbol: &Symbol,
        wanted: &str,
        config: &Config,
        depth: usize,
    ) -> String {
        let enough = if wanted == "m" { 1 } else { 2 };
        let Some(definition) = best(symbol, config, enough) else {
            return format!("{name} has no definition here");
        };
        let unmet = unmet(definition, config, enough);
        if !unmet.is_empty() {
            // Only the first is followed further: the others mostly wait for the same.
            let parts: Vec<String> = unmet
                .iter()
                .take(4)
                .enumerate()
                .map(|(i, e)| self.part(e, config, if i == 0 { depth } else { DEPTH_MAX }))
                .collect();
            let place = if depth == 0 { format!(" ({})", definition.place) } else { String::new() };
            return format!("it depends on {}{place}", parts.join("; on "));
        }
        if definition.prompt.is_none() {
            let all: Vec<&str> = symbol.selected_by.iter().map(|(by, _)| by.as_str()).collect();
            return match all.as_slice() {
                [] => format!(
                    "it is not chosen by hand, and nothing selects it ({})",
                    definition.place
                ),
                some => format!(
                    "it is not chosen by hand, but selected by {}, none of which is on",
                    shortened(some)
                ),
            };
        }
        if let Some(why) = hidden(definition, config) {
            return format!("it can be chosen only where {why} ({})", definition.place);
        }
        if let Some(members) = definition.choice.and_then(|c| self.choices.get(c))
            && let Some(other) = members.iter().find(|m| m.as_str() != name && config.is_builtin(m))
        {
            return format!("of its choice {other} is on, and only one can be");
        }
        match config.option(name) {
            Some(now) => format!("it is {now}: out of range, or set by a default"),
            None => "unknown: every condition found holds".to_owned(),
        }
    }

    /// One unmet condition; if it is a single option, with its own reason behind it.
    fn part(&self, e: &Expression, config: &Config, depth: usize) -> String {
        match e {
            Expression::Symbol(name) => {
                let now = config.option(name).map_or("off".to_owned(), |v| format!("only {v}"));
                let deeper = match self.symbols.get(name) {
                    Some(symbol) if depth + 1 < DEPTH_MAX && !symbol.definitions.is_empty() => {
                        format!(": {}", self.why_off(name, symbol, "y", config, depth + 1))
                    }
                    Some(symbol) if !symbol.definitions.is_empty() => String::new(),
                    _ => ": this architecture has no such option".to_owned(),
                };
                // Options that could simply be asked for need no further reason.
                let deeper = deeper.replace(": unknown: every condition found holds", "");
                format!("{name}, which is {now}{deeper}")
            }
            Expression::Not(of) => {
                let mut names = Vec::new();
                of.symbols(&mut names);
                let on: Vec<String> = names
                    .iter()
                    .filter_map(|n| config.option(n).map(|v| format!("{n} is {v}")))
                    .collect();
                format!("{e}, but {}", on.join(", "))
            }
            _ => format!("{e}, which does not hold"),
        }
    }
}

/// Of several definitions the one nearest to being met, one that can be chosen first.
fn best<'a>(symbol: &'a Symbol, config: &Config, enough: u8) -> Option<&'a Definition> {
    symbol.definitions.iter().min_by_key(|d| (unmet(d, config, enough).len(), d.prompt.is_none()))
}

fn unmet<'a>(definition: &'a Definition, config: &Config, enough: u8) -> Vec<&'a Expression> {
    let mut found = Vec::new();
    for e in &definition.depends {
        e.unmet(config, enough, &mut found);
    }
    found
}

/// Why it cannot be chosen by hand, if it cannot.
fn hidden(definition: &Definition, config: &Config) -> Option<String> {
    let Some(conditions) = &definition.prompt else {
        return Some("it has no prompt".to_owned());
    };
    let unmet: Vec<String> = conditions
        .iter()
        .filter(|e| e.value(config) == N)
        .map(|e| format!("{e} holds, and it does not"))
        .collect();
    (!unmet.is_empty()).then(|| unmet.join(" and "))
}

/// Options that are on and select this one.
fn selectors(symbol: &Symbol, config: &Config) -> Vec<String> {
    let mut on: Vec<String> = symbol
        .selected_by
        .iter()
        .filter(|(by, condition)| {
            config.has(by) && condition.as_ref().is_none_or(|e| e.value(config) != N)
        })
        .map(|(by, _)| by.clone())
        .collect();
    order::by(&mut on, Ord::cmp);
    on.dedup();
    on
}

fn shortened(names: &[&str]) -> String {
    let shown: Vec<&str> = names.iter().take(5).copied().collect();
    let more = names.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// Is the value what was wanted? `y` is not granted by `m`.
pub(crate) fn granted(config: &Config, name: &str, wanted: &str) -> bool {
    match wanted {
        "n" => {
            Expression::Symbol(name.to_owned()).value(config) == N
                && config.option(name).is_none_or(|v| v == "n")
        }
        "y" => Expression::Symbol(name.to_owned()).value(config) == Y,
        _ => config.option(name) == Some(wanted),
    }
}
