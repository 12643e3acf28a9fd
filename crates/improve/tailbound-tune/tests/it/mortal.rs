// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine on which whoever works with it dies at one of the calls.

use std::cell::Cell;

use tailbound_host::root::Found;
use tailbound_host::threads::Thread;
use tailbound_tune::{Moment, Refused, State, System, Target};

/// Before and after each call of `machine` a moment passes; `death` comes at the moment `dies_at`.
pub(crate) struct Mortal<'a> {
    pub(crate) machine: &'a mut dyn System,
    pub(crate) calls: Cell<usize>,
    pub(crate) dies_at: usize,
    pub(crate) death: fn(),
}

impl Mortal<'_> {
    fn tick(&self) {
        self.calls.set(self.calls.get() + 1);
        if self.calls.get() == self.dies_at {
            (self.death)();
        }
    }
}

impl System for Mortal<'_> {
    fn read(&self, target: &Target) -> Found<State> {
        self.tick();
        self.machine.read(target)
    }
    fn write(&mut self, target: &Target, state: &State) -> Result<(), Refused> {
        self.tick();
        let done = self.machine.write(target, state);
        self.tick();
        done
    }
    fn anchor(&self, target: &Target) -> Option<u64> {
        self.tick();
        self.machine.anchor(target)
    }
    fn moment(&self) -> Found<Moment> {
        self.machine.moment()
    }
    fn threads(&self) -> Found<Vec<Thread>> {
        self.machine.threads()
    }
}
