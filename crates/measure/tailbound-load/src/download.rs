// SPDX-License-Identifier: MIT OR Apache-2.0
//! Downloads beside each other, each unpacked and built when it is there: the mixed load of
//! McKenney's measurements. The server is ours, on loopback.
//!
//! Context: the tasks are the load; SETUP elsewhere. Units: bytes; counts KiB downloaded.
//! One process a download and one server. What arrives is written to a file, read back,
//! unpacked to files, and its sources go through the machine's compiler. All files are without
//! a name and the compiler's output goes nowhere: nothing is left behind.
//! Not here: the archive (`archive`), the compiler (`compile`).
//! Source: tcp(7); McKenney, "'Real Time' vs. 'Real Fast'", 2008.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tailbound_sys::process::ChildWait;

use tailbound_core::units;
use tailbound_sys::{ipc, process};

use crate::archive::{self, Entry};
use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::options::Reader;
use crate::{compile, file, machine, storm};

pub(crate) static KIND: LoadKind = LoadKind {
    name: "download",
    unit: "KiB",
    about: "downloads from a server of its own on loopback, each unpacked and built when it is there",
    options: &[
        ("flows", "downloads at the same time (default 4)"),
        ("size", "bytes of an archive, unpacked (default 8M, less where memory is short)"),
        ("rate", "bytes a second of each download, for example 1M (default: as fast as they go)"),
        ("build", "no: unpacked alone (default yes: with the machine's cc)"),
        CPUS,
    ],
    coarse: true,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// As many as McKenney's mixed load has.
const FLOWS_DEFAULT: usize = 4;
const FLOWS_MAX: u32 = 100;
const SIZE_DEFAULT_BYTES: usize = 8 << 20;
/// Bytes of one read, and of one write of the server.
const CHUNK_BYTES: usize = 64 << 10;
/// A task holds its archive packed, what arrived, and unpacked.
const COPIES: usize = 3;
/// Sources in an archive; the rest is text.
const SOURCES: usize = 4;

/// How many downloads, of how much, and what is done with them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Options {
    flows: usize,
    size: Option<usize>,
    /// Bytes a second of each.
    rate: Option<usize>,
    build: bool,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        Ok(Self {
            flows: r.count("flows", 1, FLOWS_MAX)?.unwrap_or(FLOWS_DEFAULT),
            size: r.bytes("size")?,
            rate: r.bytes("rate")?,
            build: r.yes_no("build")?.unwrap_or(true),
        })
    }
}

fn start(options: Options, note: Note<'_>) -> Started {
    let dir = file::first_writable()?;
    let size =
        machine::block_bytes(options.size, SIZE_DEFAULT_BYTES, options.flows * COPIES, note)?;
    let archive = Arc::new(made_up(size));
    let server = "a server on loopback";
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).on(server)?;
    let address = listener.local_addr().on(server)?;
    note(format!(
        "{} downloads of {} bytes ({} unpacked) from {address}{}",
        options.flows,
        units::grouped(archive.len() as u64),
        units::grouped(size as u64),
        if options.build { ", unpacked and built" } else { ", unpacked" }
    ));
    // The last task serves the others.
    storm::start(options.flows + 1, |task, count| {
        if task == options.flows {
            return serve(&listener, &archive, options.rate);
        }
        let it = Download { address, archive: &archive, dir: &dir, build: options.build, count };
        loop {
            it.once()?;
        }
    })
}

/// Sources that can be built, and text up to `size` bytes.
fn made_up(size: usize) -> Vec<u8> {
    let source = compile::program().into_bytes();
    let mut entries = Vec::new();
    let mut left = size;
    for n in 0..SOURCES {
        // A small archive has one source at least.
        if n > 0 && left < source.len() {
            break;
        }
        left = left.saturating_sub(source.len());
        entries.push(Entry { name: format!("src/f{n}.c"), content: source.clone() });
    }
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut text = Vec::with_capacity(left);
    while text.len() < left {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        // Half digits, half blanks: shrinks about as sources do.
        let _infallible = write!(text, "{:08x}        ", seed >> 32);
    }
    entries.push(Entry { name: "doc/text".into(), content: text });
    archive::pack(&entries)
}

/// Sends the archive to whoever connects, at `rate` bytes a second where that is given.
fn serve(
    listener: &TcpListener,
    archive: &Arc<Vec<u8>>,
    rate: Option<usize>,
) -> Result<(), Failure> {
    for stream in listener.incoming() {
        let stream = stream.on("the server")?;
        let archive = Arc::clone(archive);
        let send = move || {
            // Who goes away in the middle is no matter of the server's.
            let _gone = send(stream, &archive, rate);
        };
        let started = thread::Builder::new().name("server".into()).spawn(send);
        started.on("the server")?;
    }
    Ok(())
}

fn send(mut stream: TcpStream, archive: &[u8], rate: Option<usize>) -> io::Result<()> {
    let begun = Instant::now();
    let mut sent = 0;
    for chunk in archive.chunks(rate.map_or(CHUNK_BYTES, |r| (r / 10).clamp(512, CHUNK_BYTES))) {
        stream.write_all(chunk)?;
        sent += chunk.len();
        let due = rate.map(|r| Duration::from_millis(sent as u64 * 1000 / r.max(1) as u64));
        #[expect(clippy::disallowed_methods, reason = "a slow line; nobody else waits for it")]
        if let Some(ahead) = due.and_then(|due| due.checked_sub(begun.elapsed())) {
            thread::sleep(ahead);
        }
    }
    // The client resets the connection when it has all, and leaves no TIME_WAIT.
    let _reset = stream.read(&mut [0]);
    Ok(())
}

struct Download<'a> {
    address: SocketAddr,
    archive: &'a [u8],
    dir: &'a PathBuf,
    build: bool,
    count: &'a dyn Fn(u64),
}

impl Download<'_> {
    /// Downloaded, unpacked, built.
    fn once(&self) -> Result<(), Failure> {
        let mut file = self.fetch().on("a download")?;
        let mut packed = Vec::new();
        let full = "is it full?";
        file.rewind()
            .and_then(|()| file.read_to_end(&mut packed))
            .on(self.dir.display())
            .remedy(full)?;
        if packed != self.archive {
            return Err(Failure::Plain("other bytes arrived than were sent"));
        }
        for entry in archive::unpack(&packed)? {
            let mut file = file::make(self.dir).on(self.dir.display()).remedy(full)?.0;
            file.write_all(&entry.content).on(self.dir.display()).remedy(full)?;
            if self.build && Path::new(&entry.name).extension().is_some_and(|e| e == "c") {
                build(&file)?;
            }
        }
        Ok(())
    }

    fn fetch(&self) -> io::Result<File> {
        let mut stream = TcpStream::connect(self.address)?;
        ipc::reset_on_close(stream.as_fd()).map_err(io::Error::other)?;
        let mut file = file::make(self.dir)?.0;
        let mut buffer = vec![0; CHUNK_BYTES];
        let (mut left, mut rest) = (self.archive.len(), 0);
        while left > 0 {
            let n = stream.read(&mut buffer)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            file.write_all(buffer.get(..n).unwrap_or_default())?;
            left = left.saturating_sub(n);
            rest += n as u64;
            (self.count)(rest >> 10);
            rest &= 1023;
        }
        Ok(file)
    }
}

/// Compiles a source and waits for the end.
fn build(source: &File) -> Result<(), Failure> {
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.on("/dev/null")?;
    let compiler = compile::compiler(source, &null)?;
    match process::wait_times(compiler, ChildWait::UntilEnd)? {
        Some((status, _)) if !status.success() => {
            let remedy = format_args!("{} Otherwise write build=no", compile::NO_COMPILER);
            Err(compile::failed(status).remedy(remedy))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("download:flows=2,size=64K,rate=1M,build=no", Options::read);
        let wanted = Options { flows: 2, size: Some(64 << 10), rate: Some(1 << 20), build: false };
        assert_eq!(asked, wanted);
        let usual = read("download", Options::read);
        assert_eq!(usual, Options { flows: FLOWS_DEFAULT, size: None, rate: None, build: true });
    }

    #[test]
    fn archives_have_a_source_and_about_the_size_asked_for() {
        for size in [4096, 100_000, 1 << 20] {
            let entries = archive::unpack(&made_up(size)).unwrap_or_default();
            assert!(entries.first().is_some_and(|e| e.name == "src/f0.c"));
            let all: usize = entries.iter().map(|e| e.content.len()).sum();
            let least = entries.first().map_or(0, |e| e.content.len());
            assert!((size..size.max(least) + 64).contains(&all), "{size}: {all}");
        }
    }
}
