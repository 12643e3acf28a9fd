// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's functions that the plugin calls.
//!
//! Context: HOT, SETUP. The first block is the plugin interface; the second is not: those functions are looked up by
//! name, and the plugin refuses to work without one of them.
//! Source: QEMU include/qemu/qemu-plugin.h (versions 1 and 2), docs/devel/tcg-plugins.rst; dlsym(3).

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};

/// The plugin's number.
pub type Id = u64;

/// A block being translated.
#[repr(C)]
pub struct Block {
    _private: [u8; 0],
}

/// One of its instructions.
#[repr(C)]
pub struct Instruction {
    _private: [u8; 0],
}

/// What QEMU tells at the start.
#[repr(C)]
pub struct Info {
    pub target: *const c_char,
    pub version_least: c_int,
    pub version: c_int,
    pub whole_system: bool,
    pub cpus: c_int,
    pub cpus_max: c_int,
}

/// A callback touches no registers.
pub const NO_REGISTERS: c_int = 0;
/// Loads.
pub const LOADS: c_int = 1;
/// Stores; in 7.2 loads too.
pub const STORES: c_int = 2;
/// From this version of the interface on instructions are copied out.
pub const COPIES_FROM: c_int = 3;

pub type OnExecution = extern "C" fn(c_uint, *mut c_void);
pub type OnMemory = extern "C" fn(c_uint, u32, u64, *mut c_void);

unsafe extern "C" {
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, on: extern "C" fn(Id, *mut Block));
    pub fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub fn qemu_plugin_tb_vaddr(block: *const Block) -> u64;
    pub fn qemu_plugin_tb_get_insn(block: *const Block, at: usize) -> *mut Instruction;
    /// Before version 3 a pointer is returned, and the other arguments are not looked at.
    pub fn qemu_plugin_insn_data(of: *const Instruction, to: *mut c_void, most: usize) -> *const u8;
    pub fn qemu_plugin_insn_size(of: *const Instruction) -> usize;
    pub fn qemu_plugin_insn_vaddr(of: *const Instruction) -> u64;
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Block,
        on: OnExecution,
        registers: c_int,
        with: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        at: *mut Instruction,
        on: OnExecution,
        registers: c_int,
        with: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_mem_cb(
        at: *mut Instruction,
        on: OnMemory,
        registers: c_int,
        which: c_int,
        with: *mut c_void,
    );

    /// See exit(2).
    pub fn _exit(status: c_int) -> !;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    pub fn lseek(file: c_int, offset: i64, whence: c_int) -> i64;
    pub fn mmap(
        at: *mut c_void,
        bytes: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    pub fn abort() -> !;
    fn syscall(number: c_long, ...) -> c_long;
    fn usleep(us: c_uint) -> c_int;
}

/// `SYS_futex` of x86-64, on which the plugin runs, and `FUTEX_WAIT_BITSET`.
const FUTEX: c_long = 202;
const WAIT: c_int = 9;
const ALL: u32 = u32::MAX;
/// How often it is looked whether to go on.
const PAUSE_US: c_uint = 1000;

/// The thread of the virtual CPUs waits for a moment as it does on its condition variable: that is when the main loop may run.
pub fn lets_others_go() {
    let (word, past) = (0u32, [0i64; 2]);
    // SAFETY: see futex(2): a word of ours with the value it has, and a time that is over.
    unsafe {
        syscall(FUTEX, &raw const word, WAIT, 0u32, past.as_ptr(), 0usize, ALL);
        usleep(PAUSE_US);
    }
}

/// A function of QEMU by its name.
pub fn named(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a name that ends with 0; a null handle is the whole process.
    let found = unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Functions that are not of the plugin interface.
#[derive(Clone, Copy)]
pub struct Functions {
    /// The virtual CPU of a number.
    pub cpu: unsafe extern "C" fn(c_int) -> *mut u8,
    /// Reads the guest's memory by virtual address, or writes it; 0: done.
    pub memory: unsafe extern "C" fn(*mut u8, u64, *mut c_void, u64, bool) -> c_int,
    /// The physical address of a virtual one's page; all ones: none.
    pub physical: unsafe extern "C" fn(*mut u8, u64, *mut c_void) -> u64,
    /// The guest's memory at a physical address, in ours.
    pub map: unsafe extern "C" fn(u64, *mut u64, bool) -> *mut u8,
    /// Instructions as time.
    pub time: unsafe extern "C" fn() -> i64,
    /// Code of `icount_update`, which is looked at.
    pub update: *const u8,
}

impl Functions {
    /// Looks them up.
    pub fn find() -> Option<Self> {
        let (cpu, memory) = (named(c"qemu_get_cpu")?, named(c"cpu_memory_rw_debug")?);
        let (physical, map) =
            (named(c"cpu_get_phys_page_attrs_debug")?, named(c"cpu_physical_memory_map")?);
        let (time, update) = (named(c"icount_get")?, named(c"icount_update")?);
        // SAFETY: these functions have had these arguments since QEMU 5.0.
        unsafe {
            Some(Self {
                cpu: core::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> *mut u8>(cpu),
                memory: core::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut u8, u64, *mut c_void, u64, bool) -> c_int,
                >(memory),
                physical: core::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut u8, u64, *mut c_void) -> u64,
                >(physical),
                map: core::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(u64, *mut u64, bool) -> *mut u8,
                >(map),
                time: core::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> i64>(time),
                update: update.cast(),
            })
        }
    }
}
