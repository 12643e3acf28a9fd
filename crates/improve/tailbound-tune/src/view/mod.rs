// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interactive view: keys in, screens out, looks at the machine in between.
//!
//! The loop here is all that touches the terminal; what keys mean is `step`, what is drawn is
//! `draw`, both pure. What was typed before a plan was on the screen does not agree to it.
//! Not here: changing the machine (`Hands`).

mod draw;
mod hands;
mod keys;
mod own_hands;
mod state;
mod step;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use tailbound_core::TerminalSize;
use tailbound_host::Root;
use tailbound_report::Color;
use tailbound_report::machine::{Choice, Look, Sort, Which};
use tailbound_sys::clock::{self, CLOCK_MONOTONIC};
use tailbound_sys::signal::Signals;
use tailbound_sys::terminal::{self, Raw};
use tailbound_sys::{SysError, ipc};

use crate::error::TuneError;
use crate::look::look_now;
use hands::Hands;
use keys::{Decoder, Key};
use own_hands::OwnHands;
use state::{Mode, State, Tab};
use step::{Effect, Input, step};

/// How long a wait for keys lasts: signals and a new size of the terminal are seen this late.
const TICK_MS: i32 = 50;
/// From look to look where no rates are asked for, in ns.
const LOOK_EVERY_NS: i64 = 1_000_000_000;
/// A look that takes long is made so many times as rarely as it takes, so that keys come first.
const LOOK_SHARE: i64 = 5;

/// What the view begins with.
#[derive(Clone, Debug)]
pub struct Start {
    /// Which rows are seen.
    pub choice: Choice,
    /// In which order.
    pub sort: Sort,
    /// Begin in the table of interrupts.
    pub interrupts: bool,
    /// Rates over this time; 0 for totals since boot.
    pub interval_ns: i64,
    /// Colours are wanted.
    pub color: Color,
}

/// Shows this machine, and changes it as a person agrees to, until that person quits or a signal comes.
///
/// # Errors
/// [`TuneError`]: no terminal, or no look at the machine.
pub fn run(start: Start) -> Result<(), TuneError> {
    let root = Root::real();
    run_with(start, &|| look_now(&root, Which::Both), &mut OwnHands::default())
}

fn run_with(
    start: Start,
    look: &dyn Fn() -> Result<Look, TuneError>,
    hands: &mut dyn Hands,
) -> Result<(), TuneError> {
    let (input, output) = (io::stdin(), io::stdout());
    if !input.is_terminal() || !output.is_terminal() {
        return Err(TuneError::NoTerminal);
    }
    let signals = Signals::block_and_open()?;
    // A message of a panic is for the screen that stays.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        terminal::restore();
        hook(panic);
    }));
    let first = look()?;
    let _raw = Raw::enter(input.as_fd(), output.as_fd())?;
    let tab = if start.interrupts { Tab::Interrupts } else { Tab::Threads };
    let mut view = View {
        state: State::new(start.choice, start.sort, tab, size()),
        drawn: Vec::new(),
        read: Mode::Browse,
        before: first.clone(),
        interval_ns: start.interval_ns,
        next_ns: 0,
        color: start.color,
        look,
        hands,
    };
    view.schedule(first.at_ns);
    let shown = first.totals();
    view.take(Input::Looked(shown));
    Ok(view.live(input.as_fd(), &signals)?)
}

fn size() -> TerminalSize {
    terminal::size(&io::stdout()).map_or_else(TerminalSize::default, |window| TerminalSize {
        columns: window.columns.into(),
        rows: window.rows.into(),
    })
}

struct View<'a> {
    state: State,
    /// The lines on the screen.
    drawn: Vec<String>,
    /// What was asked there.
    read: Mode,
    before: Look,
    interval_ns: i64,
    /// When the next look is due.
    next_ns: i64,
    color: Color,
    look: &'a dyn Fn() -> Result<Look, TuneError>,
    hands: &'a mut dyn Hands,
}

impl View<'_> {
    fn live(&mut self, input: BorrowedFd<'_>, signals: &Signals) -> Result<(), SysError> {
        let mut decoder = Decoder::default();
        loop {
            if signals.wait(0).is_some() {
                return Ok(());
            }
            let now = size();
            if now != self.state.size {
                // What is on a screen of another size, nobody knows.
                self.drawn.clear();
                self.take(Input::Resized(now));
            }
            if clock::now_ns(CLOCK_MONOTONIC) >= self.next_ns {
                self.look();
            }
            self.draw();
            if !ready(input, TICK_MS)? {
                if decoder.end().is_some_and(|key| !self.key(key)) {
                    return Ok(());
                }
                continue;
            }
            let Some(bytes) = read(input) else { return Ok(()) };
            for key in decoder.push(&bytes) {
                if !self.key(key) {
                    return Ok(());
                }
                if self.asks() {
                    // What was typed ahead was not typed at this question.
                    while ready(input, 0)? && read(input).is_some() {}
                    decoder = Decoder::default();
                    break;
                }
            }
        }
    }

    /// Does the next key agree to something that is not on the screen yet?
    fn asks(&self) -> bool {
        match (&self.state.mode, &self.read) {
            (Mode::Plan { wanted, .. }, Mode::Plan { wanted: read, .. }) => wanted != read,
            (Mode::Undo, read) => *read != Mode::Undo,
            (Mode::Plan { .. }, _) => true,
            _ => false,
        }
    }

    /// A key; false ends the view.
    fn key(&mut self, key: Key) -> bool {
        self.take(Input::Key(key))
    }

    /// Takes what happened, does what follows from it; false ends the view.
    fn take(&mut self, input: Input) -> bool {
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let (state, effect) = step(std::mem::take(&mut self.state), input);
            self.state = state;
            next = match effect {
                Effect::Nothing => None,
                Effect::Quit => return false,
                Effect::Look => Some(self.looked()),
                Effect::Plan(wanted) => {
                    let plan = self.hands.plan(&wanted);
                    Some(Input::Planned(wanted, plan))
                }
                Effect::Apply(wanted) => Some(Input::Done(self.hands.apply(&wanted))),
                Effect::Undo => Some(Input::Done(self.hands.undo())),
            };
        }
        true
    }

    fn look(&mut self) {
        let looked = self.looked();
        self.take(looked);
    }

    /// Looks at the machine; rates are over the time since the look before.
    fn looked(&mut self) -> Input {
        let begun = clock::now_ns(CLOCK_MONOTONIC);
        let looked = (self.look)();
        self.schedule(begun);
        match looked {
            Err(why) => Input::NotLooked(why.to_string()),
            Ok(look) if self.interval_ns == 0 => Input::Looked(look.totals()),
            Ok(look) => {
                let shown = look.clone().since(&self.before);
                self.before = look;
                Input::Looked(shown)
            }
        }
    }

    /// Says when the look after the one that began then is due.
    fn schedule(&mut self, begun_ns: i64) {
        let now = clock::now_ns(CLOCK_MONOTONIC);
        let every = if self.interval_ns == 0 { LOOK_EVERY_NS } else { self.interval_ns };
        let rest = now.saturating_sub(begun_ns).saturating_mul(LOOK_SHARE);
        self.next_ns = begun_ns.saturating_add(every).max(now.saturating_add(rest));
    }

    /// Draws the lines that are others than those on the screen.
    fn draw(&mut self) {
        let lines = draw::frame(&self.state, self.color);
        let mut out = String::new();
        if self.drawn.is_empty() {
            out.push_str("\x1b[H\x1b[2J");
        }
        for (at, line) in lines.iter().enumerate() {
            if self.drawn.get(at) != Some(line) {
                out.push_str(&format!("\x1b[{};1H{line}\x1b[K", at + 1));
            }
        }
        if !out.is_empty() {
            let mut terminal = io::stdout().lock();
            // A terminal that is gone ends the view when it is read.
            drop(terminal.write_all(out.as_bytes()).and_then(|()| terminal.flush()));
        }
        self.drawn = lines;
        self.read = self.state.mode.clone();
    }
}

fn ready(input: BorrowedFd<'_>, timeout_ms: i32) -> Result<bool, SysError> {
    Ok(ipc::wait_readable(&[input], timeout_ms)?.contains(&true))
}

/// What was typed; nothing where the terminal is gone.
fn read(input: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let mut buffer = [0; 256];
    let n = ipc::read(input, &mut buffer).ok().filter(|n| *n > 0)?;
    buffer.get(..n).map(<[u8]>::to_vec)
}
