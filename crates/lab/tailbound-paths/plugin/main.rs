// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin that QEMU loads: it is told what to watch, and writes what it saw.
//!
//! Context: SETUP. Compiled on its own by this crate's build script, without the standard library and without any
//! library at all: what it calls is in QEMU, which loads it. Once for each version of QEMU's interface.
//! `-plugin plugin.so`; the plan and the log are files of the current folder.
//! Source: QEMU docs/devel/tcg-plugins.rst.
#![no_std]

mod arm;
mod arm32;
mod arm64;
mod called;
mod code;
mod files;
mod modes;
mod qemu;
#[path = "../src/record.rs"]
#[allow(dead_code)]
mod record;
mod second;
mod translate;
mod turns;
#[path = "../src/variation.rs"]
#[allow(dead_code)]
mod variation;
mod vary;
mod watch;
mod watch_arm;
mod x86;

use core::ffi::{c_char, c_int};
use core::panic::PanicInfo;

use files::{Log, Plan};
use record::{guest, mode, plan, status};
use called::WATCH;
use watch::Watch;

/// Files of the current folder.
const PLAN: &core::ffi::CStr = c"paths.plan";
const LOG: &core::ffi::CStr = c"paths.log";

/// The version of QEMU's interface that this plugin is for.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = if cfg!(tailbound_version_2) { 2 } else { 1 };

/// Nothing here can fail so that it would panic; if it does, QEMU ends.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { qemu::abort() }
}

fn begin(id: qemu::Id, info: &qemu::Info, log: Log) -> Result<(), u64> {
    let fail = |log: &Log, status| {
        log.status(status);
        Err(status)
    };
    let Some(plan) = Plan::open(PLAN) else { return fail(&log, status::NO_PLAN) };
    let most = if plan.word(plan::GUEST) == guest::X86_64 { record::CPUS } else { 1 };
    let cpus = usize::try_from(info.cpus).unwrap_or(0);
    if !info.whole_system || !(1..=most).contains(&cpus) {
        return fail(&log, status::NOT_COUNTED);
    }
    let Some(functions) = qemu::Functions::find() else { return fail(&log, status::LACKING) };
    // SAFETY: code of QEMU's functions, which are longer, or followed by others.
    let (update, get) = unsafe {
        (
            core::slice::from_raw_parts(functions.update, code::LOOK),
            core::slice::from_raw_parts(functions.time as *const u8, code::LOOK),
        )
    };
    let found = code::inside(update, functions.update as u64, get, functions.time as usize as u64);
    let Some(inside) = found else { return fail(&log, status::UNKNOWN_CODE) };
    let Ok(vary) = vary::Vary::open() else { return fail(&log, status::LACKING) };
    // Blocks, and an x86-64 guest, are watched without looking for anything.
    let known = plan.word(plan::MODE) == mode::FULL || plan.word(plan::GUEST) == guest::X86_64;
    log.status(if known { status::WHOLE } else { status::UNKNOWN_GUEST });
    // SAFETY: no other thread is there yet.
    unsafe {
        WATCH = Some(Watch::new(functions, inside, plan, log, vary, cpus));
        translate::COPIES = info.version >= qemu::COPIES_FROM;
        qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, translate::on_block);
    }
    Ok(())
}

/// QEMU calls this when it loads the plugin; not 0: the plugin does not work, and QEMU ends.
///
/// # Safety
/// `info` is what QEMU gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: qemu::Id,
    info: *const qemu::Info,
    _count: c_int,
    _words: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU's own, for the time of this call.
    let (Some(info), Some(log)) = (unsafe { info.as_ref() }, Log::open(LOG)) else { return 1 };
    c_int::from(begin(id, info, log).is_err())
}
