// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a snapshot of a thread to its frames.
//!
//! Registers bear DWARF's numbers.
//! Source: System V ABI for x86-64, figure 3.36; DWARF for the Arm 64-bit Architecture, §4.1; RISC-V ABIs
//! Specification, "DWARF Register Numbers" and "Frame Pointer Convention".

use std::collections::BTreeMap;

use gimli::{CfaRule, RegisterRule};
use tailbound_core::rules::{Stack, StackMethod};

use super::maps::Maps;
use super::module::Module;

/// Frames that are shown.
const FRAMES_MAX: usize = 32;
/// Frames that are gone through for the place in the program.
const DEPTH_MAX: usize = 64;

/// What unwinding must know of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Arm64,
    /// 64-bit RISC-V.
    Riscv64,
}

impl Machine {
    /// Stack pointer, frame pointer, the column of the return address, the program counter.
    fn columns(self) -> (u16, u16, u16, u16) {
        match self {
            Self::X86_64 => (7, 6, 16, 16),
            Self::Arm64 => (31, 29, 30, 32),
            Self::Riscv64 => (2, 8, 1, 64),
        }
    }

    /// Where the caller's frame pointer and the return address lie, and its stack begins: from the frame pointer.
    fn frame(self) -> (i64, i64, i64) {
        match self {
            Self::X86_64 | Self::Arm64 => (0, 8, 16),
            Self::Riscv64 => (-16, -8, 0),
        }
    }
}

/// Registers and the stack's top.
#[derive(Clone, Debug, Default)]
pub struct Snapshot<'a> {
    /// By DWARF's numbers.
    pub registers: &'a [(u16, u64)],
    /// From the stack pointer upwards.
    pub stack: &'a [u8],
}

/// See the module.
#[derive(Debug)]
pub struct Unwinder<'a> {
    /// The machine.
    pub machine: Machine,
    /// Where the process has its files.
    pub maps: &'a Maps,
    /// The files by their paths.
    pub modules: &'a BTreeMap<String, Option<Module>>,
}

struct State {
    registers: BTreeMap<u16, u64>,
    base: u64,
}

impl State {
    fn get(&self, register: u16) -> Option<u64> {
        self.registers.get(&register).copied()
    }
}

impl Unwinder<'_> {
    /// The frames, and the innermost function that is the program's own: not of a shared library
    /// of the system, where every program waits in the same few places.
    #[must_use]
    pub fn unwind(&self, snapshot: &Snapshot<'_>) -> (Stack, Option<String>) {
        let (sp, _, _, pc) = self.machine.columns();
        let registers: BTreeMap<u16, u64> = snapshot.registers.iter().copied().collect();
        let (Some(mut ip), Some(base)) = (registers.get(&pc).copied(), registers.get(&sp).copied())
        else {
            return (Stack::absent("the kernel gave no registers"), None);
        };
        let mut state = State { registers, base };
        let mut stack = Stack::default();
        let mut place = None;
        let mut by_table = 0usize;
        let mut by_pointer = 0usize;
        for depth in 0..DEPTH_MAX {
            // A return address lies behind the call: the call itself is what matters.
            let at = if depth == 0 { ip } else { ip.wrapping_sub(1) };
            let (text, own) = self.name(at);
            if stack.frames.len() < FRAMES_MAX {
                stack.frames.push(text);
            }
            if place.is_none() {
                place = own;
            }
            let caller_sp = state.get(sp);
            ip = match self.step(at, &mut state, snapshot.stack) {
                Step::Table(ip) => {
                    by_table = by_table.saturating_add(1);
                    ip
                }
                Step::Pointer(ip) => {
                    by_pointer = by_pointer.saturating_add(1);
                    ip
                }
                Step::Outermost => break,
                Step::Lost(why) => {
                    why.clone_into(&mut stack.reason);
                    break;
                }
            };
            // The stack is only left upwards; what does not is no stack.
            if ip == 0 || state.get(sp) <= caller_sp {
                break;
            }
        }
        stack.method = match (by_table, by_pointer) {
            (0, 0) => StackMethod::None,
            (_, 0) => StackMethod::Dwarf,
            (0, _) => StackMethod::FramePointers,
            _ => StackMethod::Mixed,
        };
        (stack, place)
    }

    /// `step+0x1f (ctl)`, and `step` alone where that is the program's own.
    fn name(&self, address: u64) -> (String, Option<String>) {
        let Some(map) = self.maps.find(address) else {
            return ("(outside of every file)".to_owned(), None);
        };
        let file = map.path.rsplit('/').next().unwrap_or(&map.path);
        let offset = address.wrapping_sub(map.start).wrapping_add(map.offset);
        let module = self.modules.get(&map.path).and_then(Option::as_ref);
        let inside = module.and_then(|m| m.address_of(offset));
        let function = inside.and_then(|a| module.and_then(|m| m.function(a)));
        let own = !is_system(&map.path);
        match function {
            Some((name, far)) => {
                let place = own && !is_runtime(&name);
                (format!("{name}+{far:#x} ({file})"), place.then_some(name))
            }
            None => {
                let text = format!("{file}+{:#x}", inside.unwrap_or(offset));
                (text.clone(), own.then_some(text))
            }
        }
    }

    fn step(&self, at: u64, state: &mut State, dump: &[u8]) -> Step {
        let module = self.maps.find(at).and_then(|map| {
            let module = self.modules.get(&map.path)?.as_ref()?;
            let offset = at.wrapping_sub(map.start).wrapping_add(map.offset);
            Some((module, module.address_of(offset)?))
        });
        let by_table = module
            .and_then(|(module, inside)| module.row(inside, |row| self.by_row(row, state, dump)));
        match by_table {
            Some(step) => step,
            None => self.by_pointer(state, dump),
        }
    }

    fn by_row(&self, row: &gimli::UnwindTableRow<usize>, state: &mut State, dump: &[u8]) -> Step {
        let (sp, _, ra, _) = self.machine.columns();
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
            return Step::Lost("a frame whose place is computed by an expression".to_owned());
        };
        let Some(cfa) = state.get(register.0).map(|r| r.wrapping_add_signed(*offset)) else {
            return Step::Lost(format!("register {} is not known", register.0));
        };
        let mut next = state.registers.clone();
        let mut undefined = false;
        for (register, rule) in row.registers() {
            let value = match rule {
                RegisterRule::Offset(n) => word(dump, state.base, cfa.wrapping_add_signed(*n)),
                RegisterRule::ValOffset(n) => Some(cfa.wrapping_add_signed(*n)),
                RegisterRule::Register(other) => state.get(other.0),
                RegisterRule::SameValue => continue,
                RegisterRule::Undefined => {
                    undefined |= register.0 == ra;
                    None
                }
                _ => None,
            };
            match value {
                Some(value) => next.insert(register.0, value),
                None => next.remove(&register.0),
            };
        }
        if undefined {
            return Step::Outermost;
        }
        next.insert(sp, cfa);
        let Some(ip) = next.get(&ra).copied() else {
            let size = dump.len();
            return Step::Lost(format!(
                "the stack is deeper than the {size} bytes that were copied"
            ));
        };
        // On x86 the column of the return address is the program counter's.
        state.registers = next;
        Step::Table(self.bare(ip))
    }

    /// The caller's frame pointer and the return address lie beside where the frame pointer points to.
    fn by_pointer(&self, state: &mut State, dump: &[u8]) -> Step {
        let (sp, fp, ra, _) = self.machine.columns();
        let Some(frame) = state.get(fp) else {
            return Step::Lost("neither tables nor a frame pointer".to_owned());
        };
        let (caller, ip, above) = self.machine.frame();
        let at = |offset| word(dump, state.base, frame.wrapping_add_signed(offset));
        let (Some(caller), Some(ip)) = (at(caller), at(ip)) else {
            return Step::Lost("neither tables nor a frame pointer into the stack".to_owned());
        };
        let ip = self.bare(ip);
        if self.maps.find(ip.wrapping_sub(1)).is_none() {
            return Step::Lost(
                "no tables, and the frame pointer does not lead to a caller".to_owned(),
            );
        }
        state.registers.insert(fp, caller);
        state.registers.insert(sp, frame.wrapping_add_signed(above));
        state.registers.insert(ra, ip);
        Step::Pointer(ip)
    }

    /// Without the signature that ARM puts into the high bits of a return address.
    fn bare(&self, ip: u64) -> u64 {
        match self.machine {
            Machine::Arm64 => ip & 0x0000_ffff_ffff_ffff,
            Machine::X86_64 | Machine::Riscv64 => ip,
        }
    }
}

enum Step {
    Table(u64),
    Pointer(u64),
    /// The frame has no caller.
    Outermost,
    Lost(String),
}

fn word(dump: &[u8], base: u64, address: u64) -> Option<u64> {
    let at = usize::try_from(address.checked_sub(base)?).ok()?;
    let bytes = dump.get(at..at.checked_add(8)?)?;
    bytes.first_chunk::<8>().map(|b| u64::from_le_bytes(*b))
}

/// A library of the system.
fn is_system(path: &str) -> bool {
    let folder = ["/lib", "/usr/lib"].iter().any(|f| path.starts_with(f));
    path.starts_with('[') || (folder && path.contains(".so"))
}

/// Functions that languages put between a program and the system.
fn is_runtime(name: &str) -> bool {
    ["std::", "core::", "alloc::", "<std::", "<core::", "<alloc::", "__", "_start", "libc::"]
        .iter()
        .any(|p| name.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_pointers_lead_outwards_and_not_into_nothing() {
        let maps = Maps::parse("1000-9000 r-xp 00000000 fe:00 1 /opt/ctl\n");
        let modules = BTreeMap::new();
        let unwinder = Unwinder { machine: Machine::X86_64, maps: &maps, modules: &modules };
        let words = [0u64, 0, 0x7020, 0x2000, 0x0, 0x3000, 0, 0];
        let stack: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let registers = [(16, 0x1500), (7, 0x7000), (6, 0x7010)];
        let (stack, place) = unwinder.unwind(&Snapshot { registers: &registers, stack: &stack });
        assert_eq!(stack.frames, ["ctl+0x500", "ctl+0xfff", "ctl+0x1fff"]);
        assert_eq!(stack.method, StackMethod::FramePointers);
        assert_eq!(place.as_deref(), Some("ctl+0x500"));
        assert!(!stack.reason.is_empty());
    }

    #[test]
    fn on_risc_v_a_frame_lies_below_its_pointer() {
        let maps = Maps::parse("1000-9000 r-xp 00000000 fe:00 1 /opt/ctl\n");
        let modules = BTreeMap::new();
        let unwinder = Unwinder { machine: Machine::Riscv64, maps: &maps, modules: &modules };
        let words = [0u64, 0, 0x7040, 0x2000, 0, 0, 0x0, 0x3000, 0, 0];
        let stack: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let registers = [(64, 0x1500), (1, 0x1234), (2, 0x7000), (8, 0x7020)];
        let (stack, _) = unwinder.unwind(&Snapshot { registers: &registers, stack: &stack });
        assert_eq!(stack.frames, ["ctl+0x500", "ctl+0xfff", "ctl+0x1fff"]);
        assert_eq!(stack.method, StackMethod::FramePointers);
    }

    #[test]
    fn a_snapshot_without_registers_says_so() {
        let (maps, modules) = (Maps::default(), BTreeMap::new());
        let unwinder = Unwinder { machine: Machine::Arm64, maps: &maps, modules: &modules };
        let (stack, place) = unwinder.unwind(&Snapshot::default());
        assert_eq!((stack.method, place), (StackMethod::None, None));
        assert!(stack.reason.contains("no registers"));
    }
}
