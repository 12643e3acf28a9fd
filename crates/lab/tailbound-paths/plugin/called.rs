// SPDX-License-Identifier: MIT OR Apache-2.0
//! What QEMU calls: each function finds the one watch and the place that was registered with it, and hands over.
//!
//! Context: HOT within QEMU. Callbacks come from the one thread of the virtual CPUs, and none calls another.
//! Not here: what is done then (`watch`, `watch_arm`), and when QEMU is to call (`translate`).

use core::ffi::{c_uint, c_void};

use crate::watch::{InstructionSite, Watch};
use crate::{arm, x86};

/// The only one: a plugin has no other place for it than a static.
pub static mut WATCH: Option<Watch> = None;

/// It, once it is there. Callbacks come from one thread, one after the other.
fn watch() -> Option<&'static mut Watch> {
    // SAFETY: only the one thread of the virtual CPUs comes here, and no callback calls another.
    unsafe { (*(&raw mut WATCH)).as_mut() }
}

fn at(with: *mut c_void) -> Option<InstructionSite> {
    // SAFETY: what was registered: null, or a place of the pool.
    unsafe { with.cast::<InstructionSite>().as_ref() }.copied()
}

macro_rules! callback {
    ($name:ident, |$watch:ident, $place:ident| $body:expr) => {
        pub extern "C" fn $name(_cpu: c_uint, with: *mut c_void) {
            if let (Some($watch), Some($place)) = (watch(), at(with)) {
                $body;
            }
        }
    };
}

callback!(on_disable, |w, place| w.changes(place, x86::Does::Disables));
callback!(on_enable, |w, place| w.changes(place, x86::Does::Enables));
callback!(on_interrupt_return, |w, place| w.changes(place, x86::Does::ReturnsFromInterrupt));
callback!(on_call_return, |w, place| w.changes(place, x86::Does::ReturnsFromCall));
callback!(on_pop, |w, place| w.changes(place, x86::Does::PopsFlags));
callback!(on_popped, |w, place| w.popped(place));
callback!(on_halt, |w, place| w.changes(place, x86::Does::Halts));
callback!(on_disable_arm, |w, place| w.changes_arm(place, arm::Does::Disables));
callback!(on_enable_arm, |w, place| w.changes_arm(place, arm::Does::Enables));
callback!(on_move_arm, |w, place| w.changes_arm(place, arm::Does::Moves));
callback!(on_return_arm, |w, place| w.changes_arm(place, arm::Does::Returns));
callback!(on_halt_arm, |w, place| w.changes_arm(place, arm::Does::Halts));
callback!(on_moved_arm, |w, place| w.changed_arm(place, arm::Does::Moves));
callback!(on_waited_arm, |w, place| w.changed_arm(place, arm::Does::Halts));
callback!(on_enabled_arm, |w, place| w.changed_arm(place, arm::Does::Enables));
callback!(on_point, |w, place| w.point(place));
callback!(on_block, |w, place| w.block(place));
callback!(on_varied, |w, place| w.vary(place));
callback!(on_read, |w, place| w.reads(place));
callback!(on_turn, |w, place| w.turn(place));

pub extern "C" fn on_store_arm(_cpu: c_uint, _info: u32, address: u64, with: *mut c_void) {
    if let (Some(w), Some(place)) = (watch(), at(with)) {
        w.stored_arm(place, address);
    }
}

pub extern "C" fn on_store(_cpu: c_uint, _info: u32, address: u64, with: *mut c_void) {
    if let (Some(w), Some(place)) = (watch(), at(with)) {
        w.stored(place, address);
    }
}

pub extern "C" fn on_frame(_cpu: c_uint, _info: u32, address: u64, with: *mut c_void) {
    if let (Some(w), Some(place)) = (watch(), at(with)) {
        w.loads_frame(place, address);
    }
}
