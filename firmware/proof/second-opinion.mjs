// SPDX-License-Identifier: MIT OR Apache-2.0
// The firmware in rp2040js: a second emulator, by others, of core and PIO.
//
// Standard input: { elf, asks: [hex], stop: hex, delays: [cycles or null], pulses }. Standard output: what the box
// sent, in hex. PIO is stepped once a cycle of the core: the library's own loop runs it free of the clock, and its
// step runs machines that are not enabled.
import { readFileSync } from 'node:fs';
import { RP2040, ConsoleLogger, LogLevel } from 'rp2040js';

const { elf, asks, stop, delays, pulses } = JSON.parse(readFileSync(0, 'utf8'));
const OUT = 2;
const BACK = 3;

const chip = new RP2040();
chip.logger = new ConsoleLogger(LogLevel.Error);
chip.flash.fill(0xff);
const file = readFileSync(elf);
for (let i = 0; i < file.readUInt16LE(44); i++) {
  const head = file.readUInt32LE(28) + i * file.readUInt16LE(42);
  const [kind, offset, , address, size] = [0, 4, 8, 12, 16].map((at) => file.readUInt32LE(head + at));
  if (kind === 1 && size > 0) {
    chip.flash.set(file.subarray(offset, offset + size), address - 0x10000000);
  }
}
// By its vector table, without a boot ROM.
chip.core.VTOR = 0x10000100;
chip.core.SP = chip.flashView.getUint32(0x100, true);
chip.core.PC = chip.flashView.getUint32(0x104, true) & ~1;

for (const pio of chip.pio) {
  pio.run = () => {};
}
let now = 0;
let sent = 0;
let output = false;
const edges = [];
const pio = chip.pio[0];

function cycle() {
  while (edges.length > 0 && edges[0].at <= now) {
    chip.gpio[BACK].setInputValue(edges.shift().level);
  }
  for (const machine of pio.machines) {
    if (machine.enabled) {
      machine.step();
    }
  }
  pio.checkChangedPins();
  now += 1;
  const level = ((pio.pinValues & pio.pinDirections) >> OUT) % 2 === 1;
  if (level !== output && pio.machines[0].enabled) {
    output = level;
    const delay = delays[sent];
    sent += 1;
    if (delay !== null && delay !== undefined) {
      edges.push({ at: now + delay, level });
    }
  }
}

let received = '';
let frame = [];
let answers = 0;
chip.uart[0].onByte = (byte) => {
  received += byte.toString(16).padStart(2, '0');
  if (byte !== 0) {
    frame.push(byte);
    return;
  }
  // A stuffed frame has its kind in the third byte.
  if (frame.length > 0 && frame[2] !== 0x88) {
    answers += 1;
  }
  frame = [];
};

function step() {
  const cycles = chip.core.executeInstruction();
  chip.clock.tick((cycles * 1e9) / 125e6);
  for (let i = 0; i < cycles; i++) {
    cycle();
  }
}

function ask(hex) {
  const bytes = [...Buffer.from(hex, 'hex')];
  const expected = answers + 1;
  const end = now + 20_000_000;
  while (answers < expected) {
    if (bytes.length > 0 && !chip.uart[0].rxFIFO.full) {
      chip.uart[0].feedByte(bytes.shift());
    }
    step();
    if (now > end) {
      throw new Error(`no answer to ${hex}; at ${chip.core.PC.toString(16)}`);
    }
  }
}

// Until the UART is there.
while (!chip.uart[0].enabled && now < 20_000_000) {
  step();
}
for (const hex of asks) {
  ask(hex);
}
while (sent < pulses) {
  step();
}
const end = now + 20_000;
while (now < end) {
  step();
}
ask(stop);
const rest = now + 500_000;
while (now < rest) {
  step();
}
process.stdout.write(received);
