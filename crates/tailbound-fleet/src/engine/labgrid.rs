// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine for places of labgrid: a place is acquired, its board's power may be cycled, and ssh(1) reaches it.
//!
//! Context: COLD. By the user's own labgrid-client(1), which knows the coordinator, its reservations and the drivers of power.
//! On the board itself the lease is that of any machine (lease.rs). Whether the place was ours all the time is looked at
//! after each run: a place that was taken away and given back does not say so to a shell.
//! Source: labgrid-client(1) of labgrid 26.0.

use std::time::{Duration, Instant};

use super::asked::{LabgridPlace, Wanted};
use super::keeper::Keeper;
use super::shell::{self, Way, quoted};
use super::shells::Shell;
use super::target::Target;
use super::{Engine, EngineError, Facts, Lease, Load, Placed, Power, Task, lease};

const ASKING: &str = "asking labgrid";
const TAKING: &str = "acquiring the place";
/// A board boots in this time, or there is something wrong with it.
const BOOT_MOST: Duration = Duration::from_secs(600);
const BOOT_LOOK: Duration = Duration::from_secs(2);

pub(super) struct Labgrid {
    target: Target,
    place: LabgridPlace,
    /// What is done on the board, once it is held.
    shell: Shell,
}

/// A place that was acquired.
struct Acquired {
    /// As labgrid-client takes it: `NAME`, or `+TOKEN` of a reservation.
    place: String,
    keeper: Keeper,
    shown: Shown,
}

/// What `labgrid-client show` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    /// HOST/USER, unless nobody has it.
    acquired: Option<String>,
    /// When anything about it was.
    changed: String,
    service: Option<Service>,
}

/// Its NetworkService.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Service {
    address: String,
    user: Option<String>,
    port: Option<String>,
    /// The exporter's host, where only that reaches the board.
    proxy: Option<String>,
}

impl Labgrid {
    pub(super) fn of(target: &Target, place: &LabgridPlace) -> Self {
        let shell = Shell::of(target, Way::here());
        Self { target: target.clone(), place: place.clone(), shell }
    }

    fn client(&self, words: &[&str]) -> Vec<String> {
        let mut all = vec!["labgrid-client".to_owned()];
        if let Some(coordinator) = &self.place.coordinator {
            all.extend(["--coordinator".to_owned(), coordinator.clone()]);
        }
        all.extend(words.iter().map(|w| (*w).to_owned()));
        all
    }

    fn show(&self, place: &str) -> Result<Shown, EngineError> {
        let said = shell::tell(&self.client(&["--place", place, "show"]), ASKING)?;
        Ok(shown(&said))
    }

    /// What frees a place, as commands of a shell.
    fn freeing(&self, words: &[&str]) -> String {
        let words: Vec<String> = self.client(words).iter().map(|w| quoted(w)).collect();
        format!("{}\n", words.join(" "))
    }

    /// Acquires the place; one that somebody has is theirs.
    fn acquire(&self, heard: &mut dyn FnMut(&str)) -> Result<Acquired, EngineError> {
        let (place, keeper) = match (&self.place.wanted, self.place.wait_s) {
            (Wanted::Place(name), None) => {
                let held = self.show(name)?.acquired;
                if let Some(who) = held {
                    return Err(EngineError::Held(format!("{who} has the place {name}")));
                }
                let keeper = Keeper::start("", &self.freeing(&["--place", name, "release"]))?;
                (name.clone(), keeper)
            }
            (Wanted::Place(name), Some(wait_s)) => {
                self.reserve(&[format!("name={name}")], Some(wait_s), heard)?
            }
            (Wanted::Tags(tags), wait_s) => self.reserve(tags, wait_s, heard)?,
        };
        shell::tell(&self.client(&["--place", &place, "acquire"]), TAKING)?;
        let shown = self.show(&place)?;
        Ok(Acquired { place, keeper, shown })
    }

    /// A place by a reservation, as soon as one is free: `+TOKEN`, and what gives it back.
    fn reserve(
        &self,
        tags: &[String],
        wait_s: Option<u32>,
        heard: &mut dyn FnMut(&str),
    ) -> Result<(String, Keeper), EngineError> {
        let mut words = self.client(&["reserve", "--shell"]);
        words.extend(tags.iter().cloned());
        let said = shell::tell(&words, TAKING)?;
        let token = said.trim().strip_prefix("export LG_TOKEN=");
        let token =
            token.ok_or_else(|| EngineError::failed(TAKING, format!("it says `{said}`")))?;
        let place = format!("+{token}");
        let freeing = self.freeing(&["--place", &place, "release"])
            + &self.freeing(&["cancel-reservation", token]);
        let keeper = Keeper::start("", &freeing)?;
        heard(&format!("waits for a place with {}", tags.join(" ")));
        let mut words = Vec::new();
        if let Some(wait_s) = wait_s {
            words.extend(["timeout".to_owned(), wait_s.to_string()]);
        }
        words.extend(self.client(&["wait", token]));
        let waited = shell::tell(&words, TAKING);
        match waited {
            Ok(_) => Ok((place, keeper)),
            Err(e) => {
                let why = format!("no place with {} became free: {e}", tags.join(" "));
                Err(EngineError::Held(why))
            }
        }
    }

    /// To the board's shell.
    fn way(&self, shown: &Shown) -> Result<Way, EngineError> {
        let service = shown.service.as_ref().ok_or_else(|| {
            EngineError::failed(ASKING, "the place has no NetworkService, so ssh does not reach it")
        })?;
        let mut options = Vec::new();
        let mut add = |option: &str, value: &Option<String>| {
            options.extend(value.iter().flat_map(|v| [option.to_owned(), v.clone()]));
        };
        add("-p", &service.port);
        add("-l", &service.user);
        add("-J", &service.proxy);
        Ok(Way::ssh(&service.address, self.place.config.as_deref(), &options))
    }

    /// Off and on, until it answers.
    fn cycle(&self, held: &Acquired, heard: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
        heard("its power goes off and on");
        let what = "cycling the power";
        shell::tell(&self.client(&["--place", &held.place, "power", "cycle"]), what)?;
        let way = self.way(&held.shown)?;
        let begun = Instant::now();
        loop {
            match shell::ask(&way, "waiting for it to boot", ":", None) {
                Ok(_) => return Ok(()),
                Err(e) if begun.elapsed() > BOOT_MOST => return Err(e),
                Err(_) => std::thread::park_timeout(BOOT_LOOK),
            }
        }
    }

    /// Was the place ours all the time?
    fn still_held(&self, held: &lease::Elsewhere) -> Result<(), EngineError> {
        let now = self.show(&held.place);
        let now = now.map_err(|e| EngineError::Lost(format!("whether it is still ours: {e}")))?;
        let who = |a: &Option<String>| a.clone().unwrap_or_else(|| "nobody".to_owned());
        if now.acquired != held.acquired {
            let why = format!("{} has the place now", who(&now.acquired));
            return Err(EngineError::Lost(why));
        }
        if now.changed != held.changed {
            let why = format!(
                "the place was changed at {}: whether it was ours all the time is unknown",
                now.changed
            );
            return Err(EngineError::Lost(why));
        }
        Ok(())
    }
}

impl Engine for Labgrid {
    fn list(&self, under: Option<&Lease>) -> Result<Facts, EngineError> {
        if under.is_some() {
            return self.shell.list(under);
        }
        let Wanted::Place(name) = &self.place.wanted else {
            let why = "which place has these tags is known when one is reserved";
            return Err(EngineError::failed(ASKING, why));
        };
        let shown = self.show(name)?;
        if let Some(who) = &shown.acquired {
            return Err(EngineError::Held(format!("{who} has the place {name}")));
        }
        Shell::of(&self.target, self.way(&shown)?).list(None)
    }

    fn reserve(&self, heard: &mut dyn FnMut(&str)) -> Result<Lease, EngineError> {
        let held = self.acquire(heard)?;
        if self.place.power_cycle {
            self.cycle(&held, heard)?;
        }
        let way = self.way(&held.shown)?;
        let Acquired { place, keeper, shown } = held;
        let mut lease = lease::Lease::take(way, true, "", Some(keeper), heard)?;
        let Shown { acquired, changed, .. } = shown;
        lease.elsewhere = Some(Box::new(lease::Elsewhere { place, acquired, changed }));
        Ok(Lease::Shell(lease))
    }

    fn put(&self, lease: &Lease, facts: &Facts, load: &Load<'_>) -> Result<Placed, EngineError> {
        self.shell.put(lease, facts, load)
    }

    fn run(
        &self,
        lease: &mut Lease,
        task: &Task<'_>,
        heard: &mut dyn FnMut(&str),
    ) -> Result<i32, EngineError> {
        let made = self.shell.run(lease, task, heard);
        let Lease::Shell(lease) = lease else { return made };
        let Some(elsewhere) = &lease.elsewhere else { return made };
        match (made, self.still_held(elsewhere)) {
            // A board whose power went may have been taken, and that says more.
            (Ok(_) | Err(EngineError::Lost(_)), Err(taken)) => {
                // Whoever has it now keeps it.
                lease.keep();
                Err(taken)
            }
            (made, _) => made,
        }
    }

    fn get(&self, lease: &Lease, placed: &Placed, load: &Load<'_>) -> Result<(), EngineError> {
        self.shell.get(lease, placed, load)
    }

    fn power(&self, what: Power, heard: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
        match what {
            Power::Cycle => self.cycle(&self.acquire(heard)?, heard),
        }
    }
}

/// Reads what `show` prints: lines of the place, then each resource with its values as Python writes them.
fn shown(said: &str) -> Shown {
    let head = |key: &str| {
        let line = said.lines().find_map(|l| l.trim().strip_prefix(key));
        line.map(|v| v.trim().to_owned()).filter(|v| !v.is_empty() && v != "None")
    };
    // `Acquired resource 'NAME' (EXPORTER/GROUP/NetworkService/NAME):`, and what belongs to it is indented.
    let mut lines =
        said.lines().skip_while(|l| !(l.contains("resource '") && l.contains("/NetworkService/")));
    let service = lines.next().and_then(|_| {
        let text: Vec<&str> = lines.take_while(|l| l.starts_with(' ')).collect();
        let text = text.join(" ");
        let proxy = value(&text, "proxy_required").filter(|v| v == "True");
        Some(Service {
            address: value(&text, "address")?,
            user: value(&text, "username").filter(|v| !v.is_empty() && v != "None"),
            port: value(&text, "port").filter(|v| v != "None"),
            proxy: proxy.and_then(|_| value(&text, "proxy")),
        })
    });
    Shown { acquired: head("acquired: "), changed: head("changed: ").unwrap_or_default(), service }
}

/// The value of `'key': VALUE` in a dictionary of Python's, without its quotes.
fn value(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("'{key}': "))?;
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    Some(rest.get(..end)?.trim_matches(['\'', '"']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_labgrid_shows_of_a_place_is_read() {
        // As labgrid-client 26.0.1 prints it.
        let said = "Place 'press':
  tags: board=press
  matches:
    exp/board/*
  acquired: vm/root
  acquired resources:
    exp/board/NetworkPowerPort/NetworkPowerPort
    exp/board/NetworkService/NetworkService
  created: 2026-11-25 17:22:13.575888
  changed: 2026-11-25 17:22:25.990412
Acquired resource 'NetworkPowerPort' (exp/board/NetworkPowerPort/NetworkPowerPort):
  {'acquired': 'press',
   'params': {'extra': {'proxy': 'localhost', 'proxy_required': False},
              'host': 'http://127.0.0.1:20599/{index}',
              'index': '1',
              'model': 'simplerest'}}
Acquired resource 'NetworkService' (exp/board/NetworkService/NetworkService):
  {'acquired': 'press',
   'params': {'address': '192.0.2.7',
              'extra': {'proxy': 'rack', 'proxy_required': True},
              'port': 2222,
              'username': 'root'}}
";
        let some = |text: &str| Some(text.to_owned());
        let service = Service {
            address: "192.0.2.7".to_owned(),
            user: some("root"),
            port: some("2222"),
            proxy: some("rack"),
        };
        let all = Shown {
            acquired: some("vm/root"),
            changed: "2026-11-25 17:22:25.990412".to_owned(),
            service: Some(service),
        };
        assert_eq!(shown(said), all);
        let free = shown(
            &said.replace("acquired: vm/root", "acquired: None").replace(": True", ": False"),
        );
        assert_eq!((free.acquired, free.service.unwrap().proxy), (None, None));
        assert_eq!(shown("Place 'bare':\n  acquired: None\n").service, None);
    }
}
