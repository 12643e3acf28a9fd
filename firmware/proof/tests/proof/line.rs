// SPDX-License-Identifier: MIT OR Apache-2.0
//! The PIO program against a trace that was counted by hand, and where its counter ends.

use rp2040_emu::{Config, Emulator, EmulatorBuilder};
use tailbound_box_line as line;

const PIO: u32 = 0x5020_0000;
const OUT: u32 = 2;
const BACK: u32 = 3;

/// The upper bits of `jmp x--`.
const JUMP_X: u16 = 2;

/// One block with the program, both machines ready, no processor.
struct Block(Emulator);

impl Block {
    fn new(words: &[u16]) -> Self {
        let mut emu = EmulatorBuilder::new(Config::default()).build().expect("an emulator");
        for (i, word) in (0..).zip(words) {
            emu.mmio_write32(PIO + 0x48 + 4 * i, u32::from(*word));
        }
        let mut block = Self(emu);
        let parts = [(0, line::PULSE, OUT, 0), (1, line::HEAR, BACK, 1 << 31)];
        for (i, part, pin, join) in parts {
            let sm = PIO + 0x18 * i;
            let loops = u32::from(part.wrap) << 12 | u32::from(part.wrap_target) << 7;
            block.write(sm + 0xC8, 1 << 16);
            block.write(sm + 0xCC, pin << 24 | loops);
            block.write(sm + 0xD0, join);
            block.write(sm + 0xDC, 1 << 26 | pin << 5);
        }
        block.run(0, line::set_up::LOW);
        block.run(0, line::set_up::OUTPUT);
        block.run(1, line::set_up::X_ONES);
        block.run(1, line::set_up::Y_ONES);
        block
    }

    fn write(&mut self, at: u32, value: u32) {
        self.0.mmio_write32(at, value);
    }

    fn run(&mut self, machine: u32, word: u16) {
        self.write(PIO + 0xD8 + 0x18 * machine, u32::from(word));
    }

    fn put(&mut self, word: u32) {
        self.write(PIO + 0x10, word);
    }

    fn begin(&mut self) {
        self.run(0, u16::from(line::PULSE.begin));
        self.run(1, u16::from(line::HEAR.begin));
        self.write(PIO, 3);
    }

    /// The emulator leaves X as it is where `jmp x--` finds 0. The datasheet (RP2040, 3.4.2.2): "always decrement". So
    /// X is made all ones here behind such a jump.
    fn decrement(&mut self) {
        self.run(1, line::set_up::X_ONES);
    }

    /// One cycle with this level at the input: where both machines were, and the output behind it.
    fn cycle(&mut self, input: bool) -> (u8, u8, bool) {
        let pio = &mut self.0.bus.pio[0];
        let at = (pio.sm[0].pc(), pio.sm[1].pc());
        pio.step(u32::from(input) << BACK);
        (at.0, at.1, pio.pad_out & pio.pad_oe & 1 << OUT != 0)
    }

    fn edge(&mut self) -> Option<(u32, bool)> {
        let is_empty = self.0.mmio_read32(PIO + 4) >> 9 & 1 == 1;
        (!is_empty).then(|| line::edge(self.0.mmio_read32(PIO + 0x24)))
    }
}

/// Intervals of 6 and 4 ticks; the answer goes up at cycle 14 and down at cycle 25. Where each machine is in each
/// cycle, and the output behind it: counted by hand from the listing in `line`.
#[rustfmt::skip]
const TRACE: [(u8, u8, u8); 44] = [
    // pull, mov, nine passes of the gap, set: up from cycle 12 = 2 * 6 on.
    (22, 8, 0), (23, 9, 0), (24, 8, 0), (24, 9, 0), (24, 8, 0), (24, 9, 0), (24, 8, 0), (24, 9, 0),
    (24, 8, 0), (24, 9, 0), (24, 8, 0), (25, 9, 1),
    // pull, mov, five passes, set: down from cycle 20 = 2 * 10 on. The edge of cycle 14 is heard in it: 7 ticks.
    (26, 8, 1), (27, 9, 1), (28, 8, 1), (28, 10, 1), (28, 11, 1), (28, 12, 1), (28, 13, 1), (29, 14, 0),
    // Nothing to pull. Eight cycles behind the edge, at 22, the line is sampled again; that of cycle 25 is heard
    // in 26: 13 ticks.
    (22, 15, 0), (22, 16, 0), (22, 17, 0), (22, 19, 0), (22, 17, 0), (22, 19, 0), (22, 17, 0), (22, 18, 0),
    (22, 0, 0), (22, 1, 0), (22, 2, 0), (22, 3, 0), (22, 4, 0), (22, 5, 0), (22, 6, 0), (22, 7, 0),
    // Ten cycles behind the edge, at 36, sampled again.
    (22, 8, 0), (22, 9, 0), (22, 8, 0), (22, 9, 0), (22, 8, 0), (22, 9, 0), (22, 8, 0), (22, 9, 0),
];

#[test]
fn the_program_goes_as_it_was_counted_by_hand() {
    let mut block = Block::new(&line::toggle());
    block.put(line::interval_word(6, 0).expect("possible"));
    block.put(line::interval_word(4, 0).expect("possible"));
    block.begin();
    for (cycle, expected) in (0_u32..).zip(TRACE) {
        let (giver, hearer, output) = block.cycle((14..25).contains(&cycle));
        assert_eq!((giver, hearer, u8::from(output)), expected, "cycle {cycle}");
    }
    assert_eq!(block.edge(), Some((7, true)));
    assert_eq!(block.edge(), Some((13, false)));
    assert_eq!(block.edge(), None);
}

#[test]
fn a_pulse_with_a_width_comes_back_and_keeps_its_schedule() {
    let mut block = Block::new(&line::pulse());
    block.put(line::width_word(5).expect("possible"));
    block.run(0, line::set_up::PULL);
    block.run(0, line::set_up::Y_FROM_OSR);
    block.put(line::interval_word(20, 0).expect("possible"));
    block.put(line::interval_word(30, 5).expect("possible"));
    block.put(line::interval_word(9, 5).expect("possible"));
    block.begin();
    let mut level = false;
    let mut edges = Vec::new();
    for cycle in 0..200 {
        let (.., output) = block.cycle(false);
        if output != level {
            level = output;
            edges.push(cycle + 1);
        }
    }
    // Up at 20, 50 and 59 ticks, each for 5.
    assert_eq!(edges, [40, 50, 100, 110, 118, 128]);
}

/// An edge at each distance from where the counter ends: after 2^32 ticks it goes on from 0, in both loops.
#[test]
fn the_counter_goes_on_where_it_ends() {
    for is_high in [false, true] {
        for left in 0..32_u32 {
            for at in 20..120_u32 {
                let mut block = Block::new(&line::toggle());
                // As if `2^32 - 1 - left` ticks had passed.
                block.run(1, 0xE020 | left as u16);
                block.begin();
                if is_high {
                    block.run(1, 17);
                }
                let mut heard = None;
                let mut x = left;
                for cycle in 0..160 {
                    let (_, at_word, _) = block.cycle(is_high ^ (cycle >= at));
                    let word = line::toggle()[usize::from(at_word)];
                    if word >> 5 == JUMP_X {
                        if x == 0 {
                            block.decrement();
                        }
                        x = x.wrapping_sub(1);
                    }
                    heard = heard.or_else(|| block.edge().map(|edge| (cycle, edge)));
                }
                let (_, (ticks, level)) = heard.expect("heard");
                // Where the counter ends in the loop above, one sample is left out.
                let passed = ticks.wrapping_add(1).wrapping_add(left) & 0x7FFF_FFFF;
                let exact = at.div_ceil(2);
                let left_out = is_high && passed == exact + 1 && exact == left + 1;
                assert!(passed == exact || left_out, "{is_high} {left} {at}: {passed}");
                assert_eq!(level, !is_high);
            }
        }
    }
}
