// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that others may have named or written, opened for reading: regular files only, and no
//! more of them than the caller has room for.
//!
//! Units: bytes. A named pipe would be waited for, a device may do things when it is
//! opened (a watchdog begins to count), a folder cannot be read. Streams that the user names as
//! such are read: `/dev/stdin`, and `/dev/fd/N`, which is what a shell's `<(command)` becomes.
//! A stream may never bring anything: where this program blocks signals, one that is pending ends the wait.
//! Not here: `-` as standard input (the command line's), files that are written.
//! Source: open(2), fifo(7), proc(5), poll(2).

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::ipc::wait_readable;
use crate::signal;

/// What to do about a pipe or a device.
const AS_STREAM: &str = "; what comes through it can be given as standard input";
/// From one look for a signal to the next, while a stream brings nothing.
const LOOK_MS: i32 = 100;

/// Opens a regular file, or a stream that is named as one.
///
/// # Errors
/// Those of open(2); `InvalidInput` with what `path` is instead.
pub fn open(path: &Path) -> io::Result<File> {
    if is_stream(path) { File::open(path) } else { looked_at(path, AS_STREAM) }
}

/// Opens a regular file, and no stream: for what is read twice.
///
/// # Errors
/// As [`open`].
pub fn file(path: &Path) -> io::Result<File> {
    looked_at(path, "")
}

/// A regular file; `otherwise` is what to do where it is none.
fn looked_at(path: &Path, otherwise: &str) -> io::Result<File> {
    // Looked at before it is opened, and again after: it may have been exchanged meanwhile, and
    // then opening does not wait and takes no terminal.
    regular(&path.metadata()?, otherwise)?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    regular(&file.metadata()?, otherwise)?;
    Ok(file)
}

/// What [`open`] opened, read piece by piece. A pending signal ends the wait for a stream that brings nothing, with
/// an error.
#[derive(Debug)]
pub struct Reader {
    file: File,
    stream: bool,
}

impl Reader {
    /// As [`open`].
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(path: &Path) -> io::Result<Self> {
        open(path).map(|file| Self { file, stream: is_stream(path) })
    }

    /// Standard input.
    ///
    /// # Errors
    /// It is closed.
    pub fn stdin() -> io::Result<Self> {
        let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Self { file, stream: true })
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // What is there is read: whoever reads on looks for signals where it can end in order.
        while self.stream && !readable(&self.file) {
            if let Some(signal) = signal::pending() {
                let text = format!("{} came before its end", signal::name(signal));
                return Err(io::Error::other(text));
            }
        }
        self.file.read(buffer)
    }
}

/// Is there something to read, or an end, within a moment?
fn readable(file: &File) -> bool {
    // What cannot be waited for is read.
    wait_readable(&[file.as_fd()], LOOK_MS).map_or(true, |ready| ready.first() == Some(&true))
}

/// All of a file that has at most `most` bytes.
///
/// # Errors
/// As [`open`]; `FileTooLarge` beyond `most`; a signal is pending.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut reader = Reader::open(path)?;
    let known = reader.file.metadata().map_or(0, |m| m.len());
    if known > most {
        return Err(too_large(most));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(known).unwrap_or(0).saturating_add(1));
    reader.by_ref().take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

/// All of a text of at most `most` bytes.
///
/// # Errors
/// As [`read`]; `InvalidData`: it is not UTF-8.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    let bytes = read(path, most)?;
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("not UTF-8 at byte {at}"))
    })
}

/// The last bytes of a file, at most `most`.
///
/// # Errors
/// As [`open`].
pub fn end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let from = file.metadata()?.len().saturating_sub(most);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Is this the name of a stream that the caller already holds?
fn is_stream(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc/self/fd")
}

fn regular(of: &Metadata, otherwise: &str) -> io::Result<()> {
    if of.is_file() {
        return Ok(());
    }
    let is = kind(of.file_type());
    let text = if of.is_dir() {
        format!("it is {is}, not a file")
    } else {
        format!("it is {is}, not a regular file{otherwise}")
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

fn kind(of: FileType) -> &'static str {
    match of {
        t if t.is_dir() => "a folder",
        t if t.is_fifo() => "a named pipe",
        t if t.is_socket() => "a socket",
        t if t.is_block_device() || t.is_char_device() => "a device",
        _ => "something else",
    }
}

fn too_large(most: u64) -> io::Error {
    let text = if most < 1 << 20 {
        format!("it has more than {most} bytes, the most that is read")
    } else {
        format!("it has more than {} MiB, the most that is read", most >> 20)
    };
    io::Error::new(io::ErrorKind::FileTooLarge, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read_and_no_more_than_wanted() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "0123456789").expect("written");
        assert_eq!(read(&file, 10).ok().as_deref(), Some(&b"0123456789"[..]));
        assert_eq!(end(&file, 3).ok().as_deref(), Some(&b"789"[..]));
        assert_eq!(read(&file, 9).map_err(|e| e.kind()), Err(io::ErrorKind::FileTooLarge));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
        let socket = folder.path().join("socket");
        let _listens = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        let names = [folder.path(), &link, &socket, Path::new("/dev/null"), Path::new("/dev/zero")];
        for path in names {
            let got = open(path).map(drop).map_err(|e| e.kind());
            assert_eq!(got, Err(io::ErrorKind::InvalidInput), "{}", path.display());
        }
        // Files of the kernel have no length and are read nevertheless.
        assert!(text(Path::new("/proc/self/status"), 1 << 20).is_ok_and(|t| t.contains("VmHWM")));
        assert!(read(Path::new("/proc/self/status"), 10).is_err());
    }
}
