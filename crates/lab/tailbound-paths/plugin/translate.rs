// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block of instructions is translated: what is to be called when it executes.
//!
//! Context: SETUP, once for each block.

use core::ffi::{c_int, c_void};

use crate::called::{self, WATCH};
use crate::files::Point;
use crate::{arm, arm32, arm64};
use crate::qemu::{self, Block, Id, Instruction, NO_REGISTERS, OnExecution};
use crate::record::{code, kind, plan, point, status};
use crate::watch::{Guest, InstructionSite, Watch};
use crate::x86::{self, Does};

/// QEMU copies instructions out, instead of pointing to them.
pub static mut COPIES: bool = false;

/// Longest instruction.
const BYTES: usize = 16;

/// Bytes of an instruction.
fn bytes(of: *const Instruction) -> ([u8; BYTES], usize) {
    let mut to = [0; BYTES];
    // SAFETY: QEMU's instruction; it has `size` bytes.
    unsafe {
        let size = qemu::qemu_plugin_insn_size(of).min(BYTES);
        let from = qemu::qemu_plugin_insn_data(of, to.as_mut_ptr().cast(), size);
        if !COPIES {
            core::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), size);
        }
        (to, size)
    }
}

/// Bytes of a block's instructions, which lie one behind the other.
fn extent(block: *mut Block, count: usize) -> u64 {
    // SAFETY: below the number of instructions.
    let size = |at| unsafe { qemu::qemu_plugin_insn_size(qemu::qemu_plugin_tb_get_insn(block, at)) };
    (0..count).map(size).sum::<usize>() as u64
}

fn callback(does: Does) -> Option<OnExecution> {
    Some(match does {
        Does::Disables => called::on_disable,
        Does::Enables => called::on_enable,
        Does::ReturnsFromInterrupt => called::on_interrupt_return,
        Does::ReturnsFromCall => called::on_call_return,
        Does::Halts => called::on_halt,
        Does::PopsFlags => called::on_pop,
        Does::OwnData | Does::ReadsCounter | Does::Nothing => return None,
    })
}

/// Registers what is to be called.
pub extern "C" fn on_block(_id: Id, block: *mut Block) {
    // SAFETY: translation happens in the one thread of the virtual CPUs, and between their blocks.
    let Some(watch) = (unsafe { (*(&raw mut WATCH)).as_mut() }) else { return };
    // SAFETY: QEMU's block, with that many instructions.
    let (count, pc) =
        unsafe { (qemu::qemu_plugin_tb_n_insns(block), qemu::qemu_plugin_tb_vaddr(block)) };
    // A CPU whose turn is not known yet has executed nothing of it.
    watch.compare();
    let pc = watch.lifted(pc);
    let kernel = x86::kernel(pc);
    if kernel && watch.plan().word(plan::CODE) != 0 {
        let t = if watch.has_cpu() { watch.time(0) } else { 0 };
        watch.write(t, kind::CODE, code::value(pc, extent(block, count)));
    }
    if watch.several {
        watch.find_executing();
        every(watch, block, count, pc, called::on_turn);
    }
    if watch.varies() {
        every(watch, block, count, pc, called::on_varied);
    }
    if watch.full() {
        every(watch, block, count, pc, called::on_block);
        return;
    }
    if !kernel && !watch.several {
        return;
    }
    for at in 0..count {
        // SAFETY: below the number of instructions.
        let (instruction, address) = unsafe {
            let instruction = qemu::qemu_plugin_tb_get_insn(block, at);
            (instruction, watch.lifted(qemu::qemu_plugin_insn_vaddr(instruction)))
        };
        let (code, size) = bytes(instruction);
        let code = code.get(..size).unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "a block has at most 512")]
        let left = (count - at) as u32;
        if !kernel {
            if x86::does(code) == Does::ReadsCounter {
                call(watch, instruction, InstructionSite { pc: address, left, what: 0 }, called::on_read);
            }
            continue;
        }
        // What the block before did is known before anything here is done.
        if at == 0 && watch.has_cpu() {
            let place = InstructionSite { pc: address, left, what: 0 };
            if watch.is_arm() {
                behind_arm(watch, instruction, place);
            } else {
                behind(watch, instruction, place);
            }
        }
        if let Some(Point { begin, end, kind }) = watch.plan().point(address, address + size as u64) {
            // An entry's range is for blocks that begin there, any other point for its instruction.
            let here = if end - begin == 1 { begin == address } else { at == 0 && begin <= address };
            #[expect(clippy::cast_possible_truncation, reason = "1 to 6")]
            let place = InstructionSite { pc: address, left, what: kind as u32 };
            if here && matches!(kind, point::WAKE | point::WAKE_SECOND | point::SWITCH) && at > 0 {
                watch.status(status::UNKNOWN_REGISTERS);
            } else if here && (1..=point::WAKE_SECOND).contains(&kind) {
                call(watch, instruction, place, called::on_point);
            }
        }
        if watch.is_arm() {
            of_arm(watch, instruction, InstructionSite { pc: address, left, what: 0 }, does_arm(watch, code));
            continue;
        }
        let does = x86::does(code);
        // Only the first instruction of a block finds QEMU's registers in memory.
        let place = InstructionSite { pc: address, left, what: u32::from(at > 0) };
        if let Some(on) = callback(does) {
            call(watch, instruction, place, on);
            if does == Does::ReturnsFromInterrupt && at > 0 {
                memory(watch, instruction, place, called::on_frame, qemu::LOADS);
            }
        } else if does == Does::OwnData {
            memory(watch, instruction, place, called::on_store, qemu::STORES);
        }
    }
}

/// A block that begins behind popf: QEMU ends its block there.
fn behind(watch: &mut Watch, first: *mut Instruction, place: InstructionSite) {
    let before = watch.read::<[u8; 1]>(place.pc.wrapping_sub(1));
    if before.is_some_and(|code| x86::does(&code) == Does::PopsFlags) {
        call(watch, first, place, called::on_popped);
    }
}

fn does_arm(watch: &Watch, code: &[u8]) -> arm::Does {
    match watch.guest {
        Guest::Arm32 => arm32::does(code, watch.arm.count_at()),
        Guest::Arm64 | Guest::X86_64 => arm64::does(code),
    }
}

fn memory(watch: &mut Watch, at: *mut Instruction, place: InstructionSite, on: qemu::OnMemory, which: c_int) {
    let with: *mut c_void = watch.pool.keep(place).cast();
    // SAFETY: a place that stays.
    unsafe { qemu::qemu_plugin_register_vcpu_mem_cb(at, on, NO_REGISTERS, which, with) };
}

fn of_arm(watch: &mut Watch, at: *mut Instruction, place: InstructionSite, does: arm::Does) {
    match does {
        arm::Does::Disables => call(watch, at, place, called::on_disable_arm),
        arm::Does::Enables => call(watch, at, place, called::on_enable_arm),
        arm::Does::Moves => call(watch, at, place, called::on_move_arm),
        arm::Does::Returns => call(watch, at, place, called::on_return_arm),
        arm::Does::Halts => call(watch, at, place, called::on_halt_arm),
        arm::Does::OwnData => memory(watch, at, place, called::on_store_arm, qemu::STORES),
        arm::Does::Nothing => {}
    }
}

/// A block that begins behind an instruction that changes `daif`: QEMU ends its block there.
fn behind_arm(watch: &mut Watch, first: *mut Instruction, place: InstructionSite) {
    let Some(before) = watch.read::<[u8; 4]>(place.pc.wrapping_sub(4)) else { return };
    match does_arm(watch, &before) {
        arm::Does::Moves => call(watch, first, place, called::on_moved_arm),
        arm::Does::Halts => call(watch, first, place, called::on_waited_arm),
        arm::Does::Enables => call(watch, first, place, called::on_enabled_arm),
        _ => {}
    }
}

fn call(watch: &mut Watch, at: *mut Instruction, place: InstructionSite, on: OnExecution) {
    let with: *mut c_void = watch.pool.keep(place).cast();
    // SAFETY: a place that stays.
    unsafe { qemu::qemu_plugin_register_vcpu_insn_exec_cb(at, on, NO_REGISTERS, with) };
}

/// Something is called whenever the block begins.
fn every(watch: &mut Watch, block: *mut Block, count: usize, pc: u64, on: OnExecution) {
    #[expect(clippy::cast_possible_truncation, reason = "a block has at most 512")]
    let with = watch.pool.keep(InstructionSite { pc, left: count as u32, what: 0 });
    // SAFETY: a place that stays.
    unsafe {
        qemu::qemu_plugin_register_vcpu_tb_exec_cb(
            block,
            on,
            NO_REGISTERS,
            with.cast(),
        );
    }
}
