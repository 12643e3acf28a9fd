// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine for places of labgrid: a place is acquired, its board's power may be cycled or a strategy boots it, and ssh(1)
//! reaches it. Its console is read meanwhile (console.rs, strategy.rs).
//!
//! By the user's own labgrid-client(1), which knows the coordinator, its reservations and the drivers of power.
//! On the board itself the lease is that of any machine (lease.rs). Whether the place was ours all the time is looked at
//! after each run: a place that was taken away and given back does not say so to a shell.
//! Source: labgrid-client(1) of labgrid 26.0.

use std::path::Path;
use std::time::{Duration, Instant};

use super::console::{Console, Port};
use super::keeper::Keeper;
use super::reservation::{LabgridPlace, PlaceSelector};
use super::shell::{self, ShellLauncher, quoted};
use super::shells::Shell;
use super::strategy::Reached;
use super::target::Target;
use super::{Engine, EngineError, Facts, Lease, Load, Placed, Power, Task, lease};

mod place_status;

use place_status::PlaceStatus;

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

/// An exporter opens a serial port in this time.
const SERIAL_MOST: Duration = Duration::from_secs(10);
/// Of a console, in the reason why a run failed.
const REASON_LINES: usize = 3;

/// A place that was acquired.
struct Acquired {
    /// As labgrid-client takes it: `NAME`, or `+TOKEN` of a reservation.
    place: String,
    // Given back last.
    shown: PlaceStatus,
    console: Option<Console>,
    booted: Option<Reached>,
    keeper: Keeper,
}

impl Labgrid {
    pub(super) fn of(target: &Target, place: &LabgridPlace) -> Self {
        let shell = Shell::of(target, ShellLauncher::here());
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

    fn show(&self, place: &str) -> Result<PlaceStatus, EngineError> {
        let said = shell::tell(&self.client(&["--place", place, "show"]), ASKING)?;
        Ok(place_status::read(&said))
    }

    /// What frees a place, as commands of a shell.
    fn freeing(&self, words: &[&str]) -> String {
        let words: Vec<String> = self.client(words).iter().map(|w| quoted(w)).collect();
        format!("{}\n", words.join(" "))
    }

    /// Acquires the place; one that somebody has is theirs.
    fn acquire(&self, heard: &mut dyn FnMut(&str)) -> Result<Acquired, EngineError> {
        let (place, keeper) = match (&self.place.wanted, self.place.wait_s) {
            (PlaceSelector::Place(name), None) => {
                let held = self.show(name)?.acquired;
                if let Some(who) = held {
                    return Err(EngineError::Held(format!("{who} has the place {name}")));
                }
                let keeper = Keeper::start("", &self.freeing(&["--place", name, "release"]))?;
                (name.clone(), keeper)
            }
            (PlaceSelector::Place(name), Some(wait_s)) => {
                self.reserve(&[format!("name={name}")], Some(wait_s), heard)?
            }
            (PlaceSelector::Tags(tags), wait_s) => self.reserve(tags, wait_s, heard)?,
        };
        shell::tell(&self.client(&["--place", &place, "acquire"]), TAKING)?;
        let shown = self.show(&place)?;
        Ok(Acquired { place, shown, console: None, booted: None, keeper })
    }

    /// Brings the board into the state in which it is measured, with its console read as soon as no strategy needs it.
    fn boot(&self, held: &mut Acquired, heard: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
        if let Some(strategy) = &self.place.strategy {
            heard(&format!("its strategy brings it into the state {}", strategy.state));
            // An environment file names places, not reservations.
            let place = held.shown.name.clone().unwrap_or_else(|| held.place.clone());
            let file = strategy.environment.display().to_string();
            let client = self.client(&["--config", &file, "--place", &place]);
            let more = ["--state", &strategy.state, "export", "--format", "shell-export", "-"];
            let client: Vec<String> = client.into_iter().chain(more.map(str::to_owned)).collect();
            held.booted = Some(Reached::by(&client, heard)?);
        }
        held.console = self.console(held, heard)?;
        if self.place.power_cycle {
            self.cycle(held, heard)?;
        } else if held.booted.is_some() {
            self.answers(held)?;
        }
        Ok(())
    }

    /// The board's console, if it has one that can be chosen.
    fn console(
        &self,
        held: &mut Acquired,
        heard: &mut dyn FnMut(&str),
    ) -> Result<Option<Console>, EngineError> {
        let begun = Instant::now();
        loop {
            let wanted = |s: &&place_status::Serial| {
                self.place.console.as_ref().is_none_or(|n| *n == s.name)
            };
            let found: Vec<&place_status::Serial> =
                held.shown.serial.iter().filter(wanted).collect();
            let names = || {
                let names: Vec<&str> = held.shown.serial.iter().map(|s| s.name.as_str()).collect();
                names.join(", ")
            };
            let serial = match (found.as_slice(), &self.place.console) {
                ([serial], _) => *serial,
                ([], Some(name)) => {
                    let why = format!("the place has no console `{name}`; it has: {}", names());
                    return Err(EngineError::failed(ASKING, why));
                }
                ([], None) => return Ok(None),
                _ => {
                    heard(&format!(
                        "none of its consoles is recorded: choose one of them with `console`: {}",
                        names()
                    ));
                    return Ok(None);
                }
            };
            if let Some(port) = serial.port {
                return Ok(Some(Console::open(Port {
                    host: serial.host.clone(),
                    port,
                    telnet: serial.telnet,
                    proxy: serial.proxy.clone(),
                    config: self.place.config.clone(),
                })));
            }
            if begun.elapsed() > SERIAL_MOST {
                heard("its console is not recorded: the exporter has not opened it");
                return Ok(None);
            }
            std::thread::park_timeout(BOOT_LOOK);
            held.shown = self.show(&held.place)?;
        }
    }

    /// Runs the kernel that the target names, if it names one?
    fn is_kernel(&self, lease: &Lease) -> Result<(), EngineError> {
        let Some(kernel) = &self.place.kernel else { return Ok(()) };
        let there = self.shell.list(Some(lease))?.kernel;
        if there == *kernel {
            return Ok(());
        }
        let why = format!("it runs the kernel {there}, and the target names {kernel}");
        Err(EngineError::failed("booting the board", why))
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
    fn way(&self, shown: &PlaceStatus) -> Result<ShellLauncher, EngineError> {
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
        Ok(ShellLauncher::ssh(&service.address, self.place.config.as_deref(), &options))
    }

    /// Off and on, until it answers.
    fn cycle(&self, held: &Acquired, heard: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
        heard("its power goes off and on");
        let what = "cycling the power";
        shell::tell(&self.client(&["--place", &held.place, "power", "cycle"]), what)?;
        self.answers(held)
    }

    /// Waits until its shell does; what its console said last is part of why it does not.
    fn answers(&self, held: &Acquired) -> Result<(), EngineError> {
        let way = self.way(&held.shown)?;
        let begun = Instant::now();
        loop {
            match shell::ask(&way, "waiting for it to boot", ":", None) {
                Ok(_) => return Ok(()),
                Err(e) if begun.elapsed() > BOOT_MOST => {
                    let last = held.console.as_ref().and_then(last_words);
                    let last = last.map(|l| format!("; {l}")).unwrap_or_default();
                    return Err(EngineError::failed("booting the board", format!("{e}{last}")));
                }
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
        let PlaceSelector::Place(name) = &self.place.wanted else {
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
        let mut held = self.acquire(heard)?;
        self.boot(&mut held, heard)?;
        let way = self.way(&held.shown)?;
        let Acquired { place, shown, console, booted, keeper } = held;
        let mut lease = lease::Lease::take(way, lease::LockUse::Held, "", Some(keeper), heard)?;
        let PlaceStatus { acquired, changed, .. } = shown;
        let elsewhere = lease::Elsewhere { place, acquired, changed, console, booted };
        lease.elsewhere = Some(Box::new(elsewhere));
        let lease = Lease::Shell(lease);
        self.is_kernel(&lease)?;
        Ok(lease)
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
        let recorded = task.load.notes.join(format!("{}.console.txt", task.part));
        if let Some(console) = console_of(lease) {
            console.record(&recorded)?;
            if let Some(why) = console.why_not() {
                heard(&format!("its console cannot be read: {why}"));
            }
        }
        let made = self.shell.run(lease, task, heard);
        let Lease::Shell(held) = lease else { return made };
        let Some(elsewhere) = &held.elsewhere else { return made };
        let still = self.still_held(elsewhere);
        let made = match (made, &elsewhere.console) {
            (made, Some(console)) => told(made, console, &recorded, heard),
            (made, None) => made,
        };
        match (made, still) {
            // A board whose power went may have been taken, and that says more.
            (Ok(_) | Err(EngineError::Lost(_)), Err(taken)) => {
                // Whoever has it now keeps it.
                held.keep();
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
            Power::Cycle => {
                let mut held = self.acquire(heard)?;
                held.console = self.console(&mut held, heard)?;
                self.cycle(&held, heard)
            }
        }
    }
}

/// The console of a board that is held.
fn console_of(lease: &Lease) -> Option<&Console> {
    match lease {
        Lease::Shell(lease) => lease.elsewhere.as_ref()?.console.as_ref(),
        Lease::Agent => None,
    }
}

/// What a console said last, on one line.
fn last_words(console: &Console) -> Option<String> {
    let lines = console.last();
    let last = lines.get(lines.len().saturating_sub(REASON_LINES)..).unwrap_or_default();
    (!last.is_empty()).then(|| format!("its console said last: {}", last.join(" / ")))
}

/// Ends the record of a run. Of one that was not made, the console's last lines are told, and they are part of the reason.
fn told(
    made: Result<i32, EngineError>,
    console: &Console,
    recorded: &Path,
    heard: &mut dyn FnMut(&str),
) -> Result<i32, EngineError> {
    console.pause();
    if matches!(made, Ok(0 | 1)) {
        return made;
    }
    let Some(last) = last_words(console) else { return made };
    match made {
        Err(EngineError::Lost(why)) => {
            for line in console.last() {
                heard(&format!("console: {line}"));
            }
            Err(EngineError::Lost(format!("{why}; {last} ({})", recorded.display())))
        }
        // Among the last words of the run itself.
        made => {
            heard(&last);
            made
        }
    }
}
