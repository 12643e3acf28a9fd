// SPDX-License-Identifier: MIT OR Apache-2.0
//! An RP2040 with the firmware, wires and a host, cycle by cycle.
//!
//! The emulator's own loop steps PIO for a whole instruction (or 64 cycles) with the inputs as they were at its
//! beginning. Here core and PIO are joined by hand: after each instruction the block takes each of its cycles alone,
//! with the inputs of that cycle. The UART is ours as well: the emulator's receives nothing.

use std::collections::VecDeque;
use std::path::PathBuf;

use rp2040_emu::bus::ppb::Ppb;
use rp2040_emu::core::{CoreBus, Nvic};
use rp2040_emu::{Bus, Config, Emulator, EmulatorBuilder};
use tailbound_wire::{Decoder, FRAME_MAX, Message};

const UART: u32 = 0x4003_4000;
const UART_FIFO: usize = 32;

/// PIO0_IRQ_0 and PIO1_IRQ_0.
const PIO_IRQ: [u8; 2] = [7, 9];
const PIO: [u32; 2] = [0x5020_0000, 0x5030_0000];

/// Where channel 0 gives pulses and hears; the next ones are two pins further, two channels a block.
const OUT: u32 = 2;
const BACK: u32 = 3;

/// The serial line to the host.
#[derive(Default)]
struct Uart {
    to_box: VecDeque<u8>,
    to_host: VecDeque<u8>,
    waiting: VecDeque<u8>,
    /// Cycles for a byte, and those that passed.
    cycles_per_byte: u64,
    passed: u64,
}

impl Uart {
    fn tick(&mut self, cycles: u64) {
        self.passed += cycles;
        while self.passed >= self.cycles_per_byte {
            self.passed -= self.cycles_per_byte;
            self.to_host.extend(self.waiting.pop_front());
        }
    }

    fn read(&mut self, offset: u32) -> Option<u32> {
        match offset {
            0x00 => Some(u32::from(self.to_box.pop_front().unwrap_or(0))),
            0x18 => {
                let full = u32::from(self.waiting.len() >= UART_FIFO) << 5;
                let idle = u32::from(self.waiting.is_empty()) << 7;
                Some(full | idle | u32::from(self.to_box.is_empty()) << 4)
            }
            _ => None,
        }
    }
}

/// What the core sees: the emulator's bus, and our UART.
struct Joined<'a>(&'a mut Bus, &'a mut Uart);

impl Joined<'_> {
    fn uart(addr: u32) -> Option<u32> {
        (addr & 0xFFFF_C000 == UART).then_some(addr & 0xFFF)
    }
}

impl CoreBus for Joined<'_> {
    fn read8(&mut self, addr: u32) -> u8 {
        match Self::uart(addr).and_then(|offset| self.1.read(offset)) {
            Some(word) => word as u8,
            None => self.0.read8(addr),
        }
    }
    fn read16(&mut self, addr: u32) -> u16 {
        self.0.read16(addr)
    }
    fn read32(&mut self, addr: u32) -> u32 {
        match Self::uart(addr).and_then(|offset| self.1.read(offset)) {
            Some(word) => word,
            None => self.0.read32(addr),
        }
    }
    fn write8(&mut self, addr: u32, val: u8) {
        if Self::uart(addr) == Some(0) {
            self.1.waiting.push_back(val);
        } else {
            self.0.write8(addr, val);
        }
    }
    fn write16(&mut self, addr: u32, val: u16) {
        self.0.write16(addr, val);
    }
    fn write32(&mut self, addr: u32, val: u32) {
        if Self::uart(addr) == Some(0) {
            self.1.waiting.push_back(val as u8);
        } else {
            self.0.write32(addr, val);
        }
    }
    fn set_active_pc(&mut self, pc: u32) {
        self.0.set_active_pc(pc);
    }
    fn bus_fault(&self) -> bool {
        self.0.bus_fault()
    }
    fn bus_fault_addr(&self) -> u32 {
        self.0.bus_fault_addr()
    }
    fn clear_bus_fault(&mut self) {
        self.0.clear_bus_fault();
    }
    fn ppb(&self, core: usize) -> &Ppb {
        &self.0.ppb[core]
    }
    fn ppb_mut(&mut self, core: usize) -> &mut Ppb {
        &mut self.0.ppb[core]
    }
    fn nvic(&self, core: usize) -> &Nvic {
        &self.0.nvics[core]
    }
    fn nvic_mut(&mut self, core: usize) -> &mut Nvic {
        &mut self.0.nvics[core]
    }
    fn active_core(&self) -> usize {
        self.0.active_core()
    }
    fn event_flag(&self, core: usize) -> bool {
        CoreBus::event_flag(&*self.0, core)
    }
    fn consume_event_flag(&mut self, core: usize) -> bool {
        CoreBus::consume_event_flag(self.0, core)
    }
    fn set_wfe_waiting(&mut self, core: usize, val: bool) {
        CoreBus::set_wfe_waiting(self.0, core, val);
    }
    fn signal_sev(&mut self) {
        CoreBus::signal_sev(self.0);
    }
}

/// What the machine under test does with the level that it sees: edges of its output, so many cycles later.
pub(crate) type Machine = Box<dyn FnMut(u64, bool) -> Vec<(u64, bool)>>;

/// A channel's pins, and what is joined to them.
struct Wire {
    channel: u32,
    output: bool,
    /// The answer's level, as each of the last cycles had it.
    synchroniser: VecDeque<bool>,
    edges: VecDeque<(u64, bool)>,
    input: bool,
    machine: Machine,
    pulses: u64,
    /// Words without a place, and cycles without a word, until now.
    dropped: u64,
    starved: u64,
}

impl Wire {
    fn new(channel: u32, machine: Machine) -> Self {
        Self {
            channel,
            output: false,
            synchroniser: VecDeque::new(),
            edges: VecDeque::new(),
            input: false,
            machine,
            pulses: 0,
            dropped: 0,
            starved: 0,
        }
    }

    fn block(&self) -> usize {
        self.channel as usize / 2
    }

    /// Its first state machine gives pulses, the next one hears.
    fn giver(&self) -> usize {
        self.channel as usize % 2 * 2
    }

    /// The levels of its pins in this cycle.
    fn levels(&mut self, now: u64) -> u32 {
        while self.edges.front().is_some_and(|(at, _)| *at <= now) {
            self.input = self.edges.pop_front().is_some_and(|(_, level)| level);
        }
        self.synchroniser.push_back(self.input);
        let input = self.synchroniser.pop_front().unwrap_or(self.input);
        u32::from(input) << (BACK + 2 * self.channel)
            | u32::from(self.output) << (OUT + 2 * self.channel)
    }

    /// What the machine does with the level that its channel has now.
    fn take(&mut self, output: bool, now: u64) {
        if output == self.output {
            return;
        }
        self.output = output;
        let pulse = self.pulses;
        self.pulses += 1;
        for (after, level) in (self.machine)(pulse, output) {
            let at = now + after;
            let place = self.edges.partition_point(|(edge, _)| *edge <= at);
            self.edges.insert(place, (at, level));
        }
    }

    /// The emulator counts what FDEBUG should show, and leaves FDEBUG as it was: the bits that are missing.
    fn flags(&mut self, dropped: u64, starved: u64) -> u32 {
        let mut bits = 0;
        if dropped > self.dropped {
            bits |= 1 << (self.giver() + 1);
        }
        if starved > self.starved {
            bits |= 1 << (24 + self.giver());
        }
        (self.dropped, self.starved) = (dropped, starved);
        bits
    }
}

/// The board on the bench.
pub(crate) struct Board {
    emu: Emulator,
    uart: Uart,
    decoder: Decoder,
    sequence: u16,
    pub(crate) samples: Vec<tailbound_wire::SampleBatch>,
    /// Cycles since the begin.
    pub(crate) now: u64,
    wires: Vec<Wire>,
}

/// The firmware as it was linked.
pub(crate) fn elf() -> PathBuf {
    let built =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../target/thumbv6m-none-eabi/release/tailbound-box");
    std::env::var_os("TAILBOUND_BOX_ELF").map_or_else(|| built.into(), PathBuf::from)
}

/// The image as the linker wrote it, from 0x1000_0000 on.
fn image() -> Option<Vec<u8>> {
    let elf = std::fs::read(elf()).ok()?;
    let word = |at: usize| u32::from_le_bytes(elf[at..at + 4].try_into().expect("four")) as usize;
    let half = |at: usize| usize::from(u16::from_le_bytes([elf[at], elf[at + 1]]));
    let mut flash = Vec::new();
    for i in 0..half(44) {
        let head = word(28) + i * half(42);
        let (kind, offset, address, size) =
            (word(head), word(head + 4), word(head + 12), word(head + 16));
        if kind == 1 && size > 0 {
            let begin = address - 0x1000_0000;
            flash.resize(flash.len().max(begin + size), 0xFF);
            flash[begin..begin + size].copy_from_slice(&elf[offset..offset + size]);
        }
    }
    Some(flash)
}

impl Board {
    /// Switched on, through its start; `None` where the firmware was not built.
    pub(crate) fn on(machine: Machine) -> Option<Self> {
        Self::with(vec![machine])
    }

    /// With a machine for each of the first channels.
    pub(crate) fn with(machines: Vec<Machine>) -> Option<Self> {
        let Some(flash) = image() else {
            eprintln!(
                "skipped: build tailbound-box-firmware for thumbv6m-none-eabi in release first"
            );
            return None;
        };
        let mut emu = EmulatorBuilder::new(Config::default()).build().expect("an emulator");
        emu.reset();
        emu.load_flash(&flash);
        emu.direct_boot_from_flash(0x100);
        emu.step_quantum = 1;
        let mut board = Self {
            emu,
            uart: Uart { cycles_per_byte: 100, ..Uart::default() },
            decoder: Decoder::new(),
            sequence: 0,
            samples: Vec::new(),
            now: 0,
            wires: (0..)
                .zip(machines)
                .map(|(channel, machine)| Wire::new(channel, machine))
                .collect(),
        };
        // Clocks, PLLs and UART, with the emulator's own loop: what waits for time there waits for its clock.
        for _ in 0..3_000_000 {
            board.emu.step().expect("the serial model");
            if board.emu.mmio_read32(UART + 0x30) & 1 == 1 {
                break;
            }
        }
        assert_eq!(board.emu.mmio_read32(UART + 0x30) & 1, 1, "no UART; at {}", board.place());
        Some(board)
    }

    fn place(&self) -> String {
        format!("{:#x}", self.emu.core(0).regs.pc())
    }

    /// Cycles that the input synchroniser takes; the emulator has none.
    pub(crate) fn synchronise(&mut self, cycles: usize) {
        for wire in &mut self.wires {
            wire.synchroniser = std::iter::repeat_n(false, cycles).collect();
        }
    }

    /// So many cycles for a byte to the host.
    pub(crate) fn pace(&mut self, cycles_per_byte: u64) {
        self.uart.cycles_per_byte = cycles_per_byte;
    }

    /// One instruction, and the cycles of PIO beside it.
    fn step(&mut self) {
        let bus = &mut self.emu.bus;
        let cycles = self.emu.cores[0].step(&mut Joined(bus, &mut self.uart));
        assert!(cycles > 0, "the core stands");
        for _ in 0..cycles {
            self.cycle();
        }
        for (block, (base, irq)) in PIO.into_iter().zip(PIO_IRQ).enumerate() {
            // The emulator has these bits of INTR in another order than the chip (datasheet, table "INTR": RXNEMPTY is 0
            // to 3, TXNFULL 4 to 7).
            let wanted = self.emu.mmio_read32(base + 0x12C);
            let bus = &mut self.emu.bus;
            let machines = bus.pio[block].sm.iter().enumerate();
            let raised = machines.fold(0_u32, |raised, (i, sm)| {
                raised
                    | u32::from(!sm.rx_fifo_empty()) << i
                    | u32::from(!sm.tx_fifo_full()) << (4 + i)
            });
            if raised & wanted == 0 {
                bus.nvics[0].clear_pending(irq);
            } else {
                bus.nvics[0].set_pending(irq);
            }
        }
        self.uart.tick(u64::from(cycles));
    }

    fn cycle(&mut self) {
        let now = self.now;
        let levels = self.wires.iter_mut().fold(0, |all, wire| all | wire.levels(now));
        let blocks = self.wires.last().map_or(0, Wire::block);
        for pio in &mut self.emu.bus.pio[..=blocks] {
            pio.step(levels);
        }
        self.now += 1;
        for wire in &mut self.wires {
            let pio = &self.emu.bus.pio[wire.block()];
            let output = pio.pad_out & pio.pad_oe & 1 << (OUT + 2 * wire.channel) != 0;
            let (dropped, starved) =
                (pio.sm[wire.giver() + 1].rx_push_drop(), pio.sm[wire.giver()].stall_cycles());
            let flags = wire.flags(dropped, starved);
            if flags != 0 {
                self.emu.mmio_write32(PIO[wire.block()] + 0x2008, flags);
            }
            wire.take(output, self.now);
        }
    }

    /// Edges of the output until now.
    pub(crate) fn pulses(&self) -> u64 {
        self.wires[0].pulses
    }

    /// Counts edges of the output from 0 again.
    pub(crate) fn restart_pulses(&mut self) {
        for wire in &mut self.wires {
            wire.pulses = 0;
            wire.edges.clear();
            wire.input = false;
        }
    }

    pub(crate) fn run(&mut self, cycles: u64) {
        let end = self.now + cycles;
        while self.now < end {
            self.step();
            self.listen();
        }
    }

    /// So many cycles with a host of its own: its bytes go to the UART, those of the box come back.
    pub(crate) fn beside(&mut self, bytes: &[u8], cycles: u64) -> Vec<u8> {
        self.uart.to_box.extend(bytes);
        let end = self.now + cycles;
        while self.now < end {
            self.step();
        }
        self.uart.to_host.drain(..).collect()
    }

    fn listen(&mut self) -> Option<Message> {
        let mut answer = None;
        while let Some(byte) = self.uart.to_host.pop_front() {
            let Some(frame) = self.decoder.take(byte) else { continue };
            match Message::decode(frame.kind, frame.payload).expect("a message") {
                Message::Samples(samples) => self.samples.push(samples),
                message => answer = Some(message),
            }
        }
        answer
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(&mut self, message: &Message) -> Message {
        let mut bytes = [0; FRAME_MAX];
        let length = message.encode(self.sequence, &mut bytes).expect("it fits");
        self.sequence += 1;
        self.uart.to_box.extend(&bytes[..length]);
        let end = self.now + 200_000_000;
        while self.now < end {
            self.step();
            if let Some(answer) = self.listen() {
                assert_eq!(self.decoder.losses(), tailbound_wire::Losses::default());
                return answer;
            }
        }
        panic!("no answer to {message:?}; at {}", self.place());
    }
}
