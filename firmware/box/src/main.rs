// SPDX-License-Identifier: MIT OR Apache-2.0
//! The box: gives pulses, times the answers, counts, and tells a host over USB or UART.
//!
//! The state machines keep time, the interrupt of their FIFOs counts (`lines`), and the loop here talks. Whatever a
//! host does or leaves, only its own answers and samples wait.
#![no_std]
#![no_main]

mod lines;
mod pio;
mod service;

use core::panic::PanicInfo;

use fugit::RateExtU32 as _;
#[cfg(chip = "rp2350")]
use rp235x_hal as hal;
#[cfg(chip = "rp2040")]
use rp2040_hal as hal;

use hal::Clock as _;
use hal::gpio::{FunctionPio0, FunctionPio1, FunctionUart, PullDown, PullNone};
use hal::pac::{self, interrupt};
use hal::pio::PIOExt as _;
use hal::uart::{DataBits, StopBits, UartConfig, UartPeripheral};
use lines::LINES;
use service::{Port, Service};
use usb_device::bus::UsbBusAllocator;
use usb_device::device::{StringDescriptors, UsbDeviceBuilder, UsbVidPid};
use usbd_serial::{SerialPort, USB_CLASS_CDC};

#[cfg(chip = "rp2040")]
#[unsafe(link_section = ".boot2")]
#[unsafe(no_mangle)]
#[used]
static BOOT2: [u8; 256] = rp2040_boot2::BOOT_LOADER_GENERIC_03H;

#[cfg(chip = "rp2350")]
#[unsafe(link_section = ".start_block")]
#[used]
static IMAGE_DEF: hal::block::ImageDef = hal::block::ImageDef::secure_exe();

const CRYSTAL_HZ: u32 = 12_000_000;

const BAUD: u32 = 1_000_000;

#[hal::entry]
fn main() -> ! {
    let Some(mut chip) = pac::Peripherals::take() else { halt() };
    let mut watchdog = hal::Watchdog::new(chip.WATCHDOG);
    let Ok(clocks) = hal::clocks::init_clocks_and_plls(
        CRYSTAL_HZ,
        chip.XOSC,
        chip.CLOCKS,
        chip.PLL_SYS,
        chip.PLL_USB,
        &mut chip.RESETS,
        &mut watchdog,
    ) else {
        halt()
    };
    let sio = hal::Sio::new(chip.SIO);
    let pins =
        hal::gpio::Pins::new(chip.IO_BANK0, chip.PADS_BANK0, sio.gpio_bank0, &mut chip.RESETS);
    // Out of their resets; the machines are used by their registers.
    let _blocks = (chip.PIO0.split(&mut chip.RESETS), chip.PIO1.split(&mut chip.RESETS));
    let _outputs = (
        pins.gpio2.reconfigure::<FunctionPio0, PullNone>(),
        pins.gpio4.reconfigure::<FunctionPio0, PullNone>(),
        pins.gpio6.reconfigure::<FunctionPio1, PullNone>(),
        pins.gpio8.reconfigure::<FunctionPio1, PullNone>(),
    );
    // A line that is not there rests low.
    let _inputs = (
        pins.gpio3.reconfigure::<FunctionPio0, PullDown>(),
        pins.gpio5.reconfigure::<FunctionPio0, PullDown>(),
        pins.gpio7.reconfigure::<FunctionPio1, PullDown>(),
        pins.gpio9.reconfigure::<FunctionPio1, PullDown>(),
    );
    let uart_pins = (
        pins.gpio0.reconfigure::<FunctionUart, PullNone>(),
        pins.gpio1.reconfigure::<FunctionUart, PullDown>(),
    );
    let config = UartConfig::new(BAUD.Hz(), DataBits::Eight, None, StopBits::One);
    let Ok(uart) = UartPeripheral::new(chip.UART0, uart_pins, &mut chip.RESETS)
        .enable(config, clocks.peripheral_clock.freq())
    else {
        halt()
    };
    #[cfg(chip = "rp2040")]
    let (registers, memory) = (chip.USBCTRL_REGS, chip.USBCTRL_DPRAM);
    #[cfg(chip = "rp2350")]
    let (registers, memory) = (chip.USB, chip.USB_DPRAM);
    let bus = UsbBusAllocator::new(hal::usb::UsbBus::new(
        registers,
        memory,
        clocks.usb_clock,
        true,
        &mut chip.RESETS,
    ));
    let mut serial = SerialPort::new(&bus);
    let strings = StringDescriptors::default().manufacturer("Tailbound").product("Tailbound box");
    let Ok(named) = UsbDeviceBuilder::new(&bus, UsbVidPid(0x1209, 0x0001)).strings(&[strings])
    else {
        halt()
    };
    let mut usb = named.device_class(USB_CLASS_CDC).build();
    // SAFETY: the interrupts share `LINES` alone, behind a critical section.
    unsafe {
        cortex_m::peripheral::NVIC::unmask(pac::Interrupt::PIO0_IRQ_0);
        cortex_m::peripheral::NVIC::unmask(pac::Interrupt::PIO1_IRQ_0);
    }
    let mut service = Service::new(clocks.system_clock.freq().to_Hz() / 2);
    let (mut by_usb, mut by_uart) = (Port::new(), Port::new());
    loop {
        usb.poll(&mut [&mut serial]);
        talk(&mut by_usb, &mut service, |bytes| serial.read(bytes).ok());
        if let Ok(sent) = serial.write(by_usb.pending()) {
            by_usb.sent(sent);
        }
        let _ = serial.flush();
        talk(&mut by_uart, &mut service, |bytes| uart.read_raw(bytes).ok());
        let pending = by_uart.pending();
        if let Ok(rest) = uart.write_raw(pending) {
            let sent = pending.len() - rest.len();
            by_uart.sent(sent);
        }
        let slipped = critical_section::with(|section| LINES.borrow_ref_mut(section).has_slipped());
        if slipped {
            by_usb.slipped();
            by_uart.slipped();
        }
    }
}

/// Reads questions while the last one is answered.
fn talk(port: &mut Port, service: &mut Service, mut read: impl FnMut(&mut [u8]) -> Option<usize>) {
    // One byte at a time: those behind a question stay where they are until it is answered.
    while port.is_free() {
        let mut byte = [0];
        match read(&mut byte) {
            Some(1) => port.hear(byte[0], service),
            _ => break,
        }
    }
    port.work();
}

#[interrupt]
fn PIO0_IRQ_0() {
    critical_section::with(|section| LINES.borrow_ref_mut(section).interrupt(0));
}

#[interrupt]
fn PIO1_IRQ_0() {
    critical_section::with(|section| LINES.borrow_ref_mut(section).interrupt(1));
}

/// Nothing is measured any more, and nobody is told anything wrong.
fn halt() -> ! {
    loop {
        cortex_m::asm::nop();
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    cortex_m::interrupt::disable();
    for channel in 0..2 {
        pio::StateMachine::new(channel, 0).end_both();
        pio::StateMachine::new(channel, 2).end_both();
    }
    halt()
}
