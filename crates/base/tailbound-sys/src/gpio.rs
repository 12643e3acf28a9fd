// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of a GPIO chip: edges of an input with the kernel's stamp, levels of an output.
//!
//! Context: SETUP to open; HOT in [`InputLine::wait`], [`InputLine::take`], [`InputLine::level`] and [`OutputLine::set`].
//! Units: ns of the clock that was asked for.
//! The kernel stamps an edge in its interrupt, or in the interrupt's thread where the chip sleeps (an expander behind I2C).
//! It keeps so many edges until they are read and drops the oldest; [`Edge::sequence`] has a gap then.
//! Source: the kernel's userspace-api/gpio/chardev.rst, linux/gpio.h, version 2 of the interface (Linux 5.10).

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::{SysError, check};
use crate::ioctl::{READ, WRITE, request};

const LETTER: u8 = 0xb4;
const GET_CHIP: u64 = request(READ, LETTER, 1, size_of::<ChipBytes>());
const GET_LINE_INFO: u64 = request(READ | WRITE, LETTER, 5, size_of::<LineInfoBytes>());
const GET_LINE: u64 = request(READ | WRITE, LETTER, 7, size_of::<LineRequest>());
const GET_VALUES: u64 = request(READ | WRITE, LETTER, 14, size_of::<LineValues>());
const SET_VALUES: u64 = request(READ | WRITE, LETTER, 15, size_of::<LineValues>());

const NAME_BYTES: usize = 32;
const USED: u64 = 1;
const INPUT: u64 = 1 << 2;
const OUTPUT: u64 = 1 << 3;
const RISING: u64 = 1 << 4;
const FALLING: u64 = 1 << 5;
const CLOCK_REALTIME: u64 = 1 << 11;
const ATTRIBUTE_VALUES: u32 = 2;
const EVENT_RISING: u32 = 1;

/// Edges that the kernel keeps until they are read, at most (`GPIO_V2_LINES_MAX` × 16).
pub const EDGES_KEPT_MAX: u32 = 1024;

/// `struct gpiochip_info`.
#[repr(C)]
struct ChipBytes {
    name: [u8; NAME_BYTES],
    label: [u8; NAME_BYTES],
    lines: u32,
}

/// `struct gpio_v2_line_attribute`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attribute {
    id: u32,
    padding: u32,
    value: AlignedU64,
}

/// `__aligned_u64`.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
struct AlignedU64(u64);

/// `struct gpio_v2_line_config_attribute`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ConfigAttribute {
    attribute: Attribute,
    mask: AlignedU64,
}

/// `struct gpio_v2_line_config`.
#[repr(C)]
#[derive(Default)]
struct LineConfig {
    flags: AlignedU64,
    attributes_len: u32,
    padding: [u32; 5],
    attributes: [ConfigAttribute; 10],
}

/// `struct gpio_v2_line_request`.
#[repr(C)]
struct LineRequest {
    offsets: [u32; 64],
    consumer: [u8; NAME_BYTES],
    config: LineConfig,
    lines_len: u32,
    event_buffer_size: u32,
    padding: [u32; 5],
    fd: i32,
}

/// `struct gpio_v2_line_info`.
#[repr(C)]
struct LineInfoBytes {
    name: [u8; NAME_BYTES],
    consumer: [u8; NAME_BYTES],
    offset: u32,
    attributes_len: u32,
    flags: AlignedU64,
    attributes: [Attribute; 10],
    padding: [u32; 4],
}

/// `struct gpio_v2_line_values`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct LineValues {
    bits: AlignedU64,
    mask: AlignedU64,
}

/// `struct gpio_v2_line_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct EventBytes {
    timestamp_ns: AlignedU64,
    id: u32,
    offset: u32,
    seqno: u32,
    line_seqno: u32,
    padding: [u32; 6],
}

impl EventBytes {
    fn edge(&self) -> Edge {
        let level = if self.id == EVENT_RISING { LineLevel::High } else { LineLevel::Low };
        Edge { stamp_ns: self.timestamp_ns.0, level, sequence: self.line_seqno }
    }
}

/// Bytes of an edge, as the kernel hands it over.
pub(crate) const EDGE_BYTES: usize = size_of::<EventBytes>();

/// The edge that these bytes are, of which there must be [`EDGE_BYTES`].
pub(crate) fn edge_of(bytes: &[u8]) -> Option<Edge> {
    let bytes = bytes.first_chunk::<EDGE_BYTES>()?;
    // SAFETY: as many bytes as the structure has, for which any bytes are valid.
    let event: EventBytes = unsafe { bytes.as_ptr().cast::<EventBytes>().read_unaligned() };
    Some(event.edge())
}

/// What a line carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineLevel {
    /// Inactive.
    Low,
    /// Active.
    High,
}

/// Edges that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edges {
    /// Low to high.
    Rising,
    /// High to low.
    Falling,
    /// Both.
    Both,
}

/// The clock of the kernel's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampClock {
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// CLOCK_REALTIME (Linux 5.11).
    Realtime,
}

/// An edge of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// When the kernel noticed it, ns of the [`StampClock`].
    pub stamp_ns: u64,
    /// The level after it.
    pub level: LineLevel,
    /// Its number, from 1; the next has the next number unless the kernel dropped some. It wraps.
    pub sequence: u32,
}

/// A chip, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipInfo {
    /// The kernel's name.
    pub name: String,
    /// The driver's or the board's.
    pub label: String,
    /// Number of its lines.
    pub lines: u32,
}

/// A line, as the chip describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineInfo {
    /// The board's name; may be empty.
    pub name: String,
    /// Who uses it: a driver or a program; `None`: nobody.
    pub consumer: Option<String>,
}

/// Why a chip or a line of it cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpioError {
    /// There is no such file.
    #[error("{chip}: this machine has no such chip; `ls /dev/gpiochip*` shows those that it has")]
    NoSuchChip {
        /// Its file.
        chip: String,
    },
    /// It is something else.
    #[error("{chip}: it is no GPIO chip")]
    NotAChip {
        /// Its file.
        chip: String,
    },
    /// The kernel is too old.
    #[error(
        "{chip}: this kernel has no version 2 of the GPIO character device: Linux 5.10 or later is needed"
    )]
    NoVersion2 {
        /// Its file.
        chip: String,
    },
    /// No line has this number.
    #[error("{chip} has no line {offset}: its {lines} lines are counted from 0")]
    NoSuchLine {
        /// Its file.
        chip: String,
        /// The number.
        offset: u32,
        /// How many there are.
        lines: u32,
    },
    /// No line has this name.
    #[error("{chip} has no line of the name `{name}`; `gpioinfo` shows names and numbers")]
    NoSuchName {
        /// Its file.
        chip: String,
        /// The name.
        name: String,
    },
    /// Several lines have this name.
    #[error("{chip} has several lines of the name `{name}`: give the number")]
    AmbiguousName {
        /// Its file.
        chip: String,
        /// The name.
        name: String,
    },
    /// Somebody uses the line.
    #[error("line {offset} of {chip} is used by `{consumer}`")]
    Busy {
        /// Its file.
        chip: String,
        /// The line.
        offset: u32,
        /// Who.
        consumer: String,
    },
    /// Its edges cannot be told.
    #[error(
        "line {offset} of {chip} tells no edges: it has no interrupt, or cannot be an input ({source})"
    )]
    NoEdges {
        /// Its file.
        chip: String,
        /// The line.
        offset: u32,
        /// What the kernel said.
        source: SysError,
    },
    /// It cannot be driven.
    #[error("line {offset} of {chip} cannot be an output ({source})")]
    NoOutput {
        /// Its file.
        chip: String,
        /// The line.
        offset: u32,
        /// What the kernel said.
        source: SysError,
    },
    /// Something else.
    #[error(transparent)]
    System(#[from] SysError),
}

/// An open chip.
#[derive(Debug)]
pub struct Chip {
    file: File,
    path: String,
}

impl Chip {
    /// Opens a chip of /dev.
    ///
    /// # Errors
    /// [`GpioError::NoSuchChip`], [`GpioError::NotAChip`], what open(2) needs.
    pub fn open(path: &Path) -> Result<Self, GpioError> {
        let shown = path.display().to_string();
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(path);
        let file = opened.map_err(|e| match e.raw_os_error().unwrap_or(libc::EIO) {
            libc::ENOENT => GpioError::NoSuchChip { chip: shown.clone() },
            libc::EISDIR => GpioError::NotAChip { chip: shown.clone() },
            errno => SysError::code("open", shown.clone(), errno)
                .needs("root, or write permission for the chip's file")
                .into(),
        })?;
        let chip = Self { file, path: shown };
        match chip.info() {
            Err(e) if matches!(e.errno, libc::ENOTTY | libc::EINVAL) => {
                Err(GpioError::NotAChip { chip: chip.path })
            }
            described => described.map(|_| chip).map_err(Into::into),
        }
    }

    /// The number of the line that `text` names, by its number or by the board's name for it.
    ///
    /// # Errors
    /// [`GpioError::NoSuchLine`], [`GpioError::NoSuchName`], [`GpioError::AmbiguousName`].
    pub fn offset(&self, text: &str) -> Result<u32, GpioError> {
        let lines = self.info()?.lines;
        let chip = self.path.clone();
        if let Ok(offset) = text.parse::<u32>() {
            if offset < lines {
                return Ok(offset);
            }
            return Err(GpioError::NoSuchLine { chip, offset, lines });
        }
        let mut named = Vec::new();
        for offset in 0..lines {
            if self.line_info(offset).map_err(|e| self.told(e))?.name == text {
                named.push(offset);
            }
        }
        match named.as_slice() {
            [] => Err(GpioError::NoSuchName { chip, name: text.to_owned() }),
            [one] => Ok(*one),
            _ => Err(GpioError::AmbiguousName { chip, name: text.to_owned() }),
        }
    }

    fn told(&self, error: SysError) -> GpioError {
        match error.errno {
            libc::ENOTTY => GpioError::NoVersion2 { chip: self.path.clone() },
            _ => error.into(),
        }
    }

    /// Why line `offset` was refused, where it is not what was asked of it.
    fn refused(&self, offset: u32, error: SysError) -> Result<SysError, GpioError> {
        let chip = self.path.clone();
        if error.errno == libc::EBUSY {
            let consumer = self.line_info(offset).ok().and_then(|info| info.consumer);
            let consumer = consumer.unwrap_or_else(|| "a driver".to_owned());
            return Err(GpioError::Busy { chip, offset, consumer });
        }
        let lines = self.info()?.lines;
        if offset >= lines {
            return Err(GpioError::NoSuchLine { chip, offset, lines });
        }
        match error.errno {
            libc::EPERM | libc::EACCES | libc::ENODEV | libc::EMFILE | libc::ENFILE => {
                Err(error.into())
            }
            libc::ENOTTY => Err(GpioError::NoVersion2 { chip }),
            // A kernel before 5.10 knows the number no better than a wrong flag: does it know the other call?
            libc::EINVAL if self.line_info(offset).is_err() => Err(GpioError::NoVersion2 { chip }),
            _ => Ok(error),
        }
    }

    /// How the chip describes itself.
    ///
    /// # Errors
    /// ENOTTY or EINVAL: it is no GPIO chip; ENODEV: it was unplugged.
    pub fn info(&self) -> Result<ChipInfo, SysError> {
        let mut bytes = ChipBytes { name: [0; NAME_BYTES], label: [0; NAME_BYTES], lines: 0 };
        self.exchange(GET_CHIP, &mut bytes, "GPIO_GET_CHIPINFO_IOCTL")?;
        Ok(ChipInfo { name: text(&bytes.name), label: text(&bytes.label), lines: bytes.lines })
    }

    /// How the chip describes line `offset`.
    ///
    /// # Errors
    /// EINVAL: there is no such line; ENOTTY: the kernel lacks version 2 of the interface.
    pub fn line_info(&self, offset: u32) -> Result<LineInfo, SysError> {
        let mut bytes = LineInfoBytes {
            name: [0; NAME_BYTES],
            consumer: [0; NAME_BYTES],
            offset,
            attributes_len: 0,
            flags: AlignedU64(0),
            attributes: [Attribute::default(); 10],
            padding: [0; 4],
        };
        self.exchange(GET_LINE_INFO, &mut bytes, "GPIO_V2_GET_LINEINFO_IOCTL")?;
        let consumer = (bytes.flags.0 & USED != 0).then(|| text(&bytes.consumer));
        Ok(LineInfo { name: text(&bytes.name), consumer })
    }

    /// Takes line `offset` as an input whose edges are read; the kernel keeps `kept` of them at most.
    ///
    /// # Errors
    /// [`GpioError::Busy`], [`GpioError::NoEdges`], [`GpioError::NoSuchLine`], [`GpioError::NoVersion2`].
    pub fn input(
        &self,
        offset: u32,
        edges: Edges,
        clock: StampClock,
        kept: u32,
    ) -> Result<InputLine, GpioError> {
        let edges = match edges {
            Edges::Rising => RISING,
            Edges::Falling => FALLING,
            Edges::Both => RISING | FALLING,
        };
        let clock = match clock {
            StampClock::Monotonic => 0,
            StampClock::Realtime => CLOCK_REALTIME,
        };
        let config =
            LineConfig { flags: AlignedU64(INPUT | edges | clock), ..LineConfig::default() };
        let taken = self.line(offset, config, kept.min(EDGES_KEPT_MAX));
        let chip = || self.path.clone();
        let line = taken.map_err(|e| match self.refused(offset, e) {
            Ok(source) => GpioError::NoEdges { chip: chip(), offset, source },
            Err(told) => told,
        })?;
        Ok(InputLine { line })
    }

    /// Takes line `offset` as an output that carries `level` from the first moment on.
    ///
    /// # Errors
    /// As [`Self::input`]; [`GpioError::NoOutput`].
    pub fn output(&self, offset: u32, level: LineLevel) -> Result<OutputLine, GpioError> {
        let mut config =
            LineConfig { flags: AlignedU64(OUTPUT), attributes_len: 1, ..LineConfig::default() };
        config.attributes[0] = ConfigAttribute {
            attribute: Attribute {
                id: ATTRIBUTE_VALUES,
                padding: 0,
                value: AlignedU64(u64::from(level == LineLevel::High)),
            },
            mask: AlignedU64(1),
        };
        let chip = || self.path.clone();
        let line = self.line(offset, config, 0).map_err(|e| match self.refused(offset, e) {
            Ok(source) => GpioError::NoOutput { chip: chip(), offset, source },
            Err(told) => told,
        })?;
        Ok(OutputLine { line })
    }

    fn line(&self, offset: u32, config: LineConfig, kept: u32) -> Result<OwnedFd, SysError> {
        let mut wanted = LineRequest {
            offsets: [0; 64],
            consumer: [0; NAME_BYTES],
            config,
            lines_len: 1,
            event_buffer_size: kept,
            padding: [0; 5],
            fd: -1,
        };
        wanted.offsets[0] = offset;
        for (to, from) in wanted.consumer.iter_mut().zip(*b"tailbound") {
            *to = from;
        }
        self.exchange(GET_LINE, &mut wanted, "GPIO_V2_GET_LINE_IOCTL")?;
        if wanted.fd < 0 {
            return Err(SysError::code("GPIO_V2_GET_LINE_IOCTL", self.path.clone(), libc::EBADF));
        }
        // SAFETY: the kernel has just opened it for us, and nobody else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(wanted.fd) })
    }

    fn exchange<T>(&self, number: u64, bytes: &mut T, call: &'static str) -> Result<(), SysError> {
        exchange(self.file.as_fd(), number, bytes, call, &self.path)
    }
}

/// An input and its edges.
#[derive(Debug)]
pub struct InputLine {
    line: OwnedFd,
}

impl InputLine {
    /// The descriptor, for poll(2) and io_uring: readable when an edge is there.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }

    /// Waits for the next edge.
    ///
    /// # Errors
    /// EINTR: a signal came; ENODEV: the chip was unplugged.
    pub fn wait(&self) -> Result<Edge, SysError> {
        let mut bytes = EventBytes::default();
        let size = size_of::<EventBytes>();
        // SAFETY: the kernel writes at most `size` bytes into the live structure, for which any bytes are valid.
        let got = unsafe {
            libc::read(self.line.as_raw_fd(), std::ptr::from_mut(&mut bytes).cast(), size)
        };
        if got < 0 {
            return Err(SysError::last("read", "an edge of a GPIO line"));
        }
        if got.unsigned_abs() != size {
            return Err(SysError::code("read", "an edge of a GPIO line", libc::EIO));
        }
        Ok(bytes.edge())
    }

    /// The next edge that is there already: `None`, there is none. Only after [`Self::never_wait`].
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn take(&self) -> Result<Option<Edge>, SysError> {
        match self.wait() {
            Err(e) if e.is_would_block() => Ok(None),
            edge => edge.map(Some),
        }
    }

    /// From now on [`Self::wait`] fails with EAGAIN where it would wait.
    ///
    /// # Errors
    /// As fcntl(2).
    pub fn never_wait(&self) -> Result<(), SysError> {
        let fd = self.line.as_raw_fd();
        // SAFETY: integer arguments only.
        let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) }, "fcntl", "F_GETFL")?;
        // SAFETY: as above.
        let done = unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) };
        check(done, "fcntl", "F_SETFL").map(drop)
    }

    /// The level now.
    ///
    /// # Errors
    /// As the driver fails; ENODEV: the chip was unplugged.
    pub fn level(&self) -> Result<LineLevel, SysError> {
        let mut values = LineValues { bits: AlignedU64(0), mask: AlignedU64(1) };
        exchange(self.line.as_fd(), GET_VALUES, &mut values, "GPIO_V2_LINE_GET_VALUES_IOCTL", "")?;
        Ok(if values.bits.0 & 1 == 1 { LineLevel::High } else { LineLevel::Low })
    }
}

/// An output.
#[derive(Debug)]
pub struct OutputLine {
    line: OwnedFd,
}

impl OutputLine {
    /// Drives the line to `level`; it is there when the call returns, as far as the driver knows.
    ///
    /// # Errors
    /// As the driver fails; ENODEV: the chip was unplugged.
    pub fn set(&self, level: LineLevel) -> Result<(), SysError> {
        let bits = AlignedU64(u64::from(level == LineLevel::High));
        let mut values = LineValues { bits, mask: AlignedU64(1) };
        exchange(self.line.as_fd(), SET_VALUES, &mut values, "GPIO_V2_LINE_SET_VALUES_IOCTL", "")
    }
}

fn exchange<T>(
    fd: BorrowedFd<'_>,
    number: u64,
    bytes: &mut T,
    call: &'static str,
    what: &str,
) -> Result<(), SysError> {
    // SAFETY: the number carries the size of `T`, of which the kernel reads and writes the live value; all of them are integers.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), number as _, std::ptr::from_mut(bytes)) };
    check(done, call, what).map(drop)
}

/// The bytes of a name up to its zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_are_those_of_the_kernel() {
        assert_eq!(size_of::<ChipBytes>(), 68);
        assert_eq!(size_of::<LineConfig>(), 272);
        assert_eq!(size_of::<LineRequest>(), 592);
        assert_eq!(size_of::<LineInfoBytes>(), 256);
        assert_eq!(size_of::<LineValues>(), 16);
        assert_eq!(size_of::<EventBytes>(), 48);
        assert_eq!(
            [GET_CHIP, GET_LINE_INFO, GET_LINE, GET_VALUES, SET_VALUES],
            [0x8044_b401, 0xc100_b405, 0xc250_b407, 0xc010_b40e, 0xc010_b40f],
            "as a C compiler has them from linux/gpio.h"
        );
    }

    #[test]
    fn what_is_no_chip_is_refused() {
        let refused = Chip::open(Path::new("/dev/null"));
        assert!(matches!(refused, Err(GpioError::NotAChip { .. })), "{refused:?}");
        let absent = Chip::open(Path::new("/dev/no-such-chip"));
        assert!(matches!(absent, Err(GpioError::NoSuchChip { .. })), "{absent:?}");
    }
}
