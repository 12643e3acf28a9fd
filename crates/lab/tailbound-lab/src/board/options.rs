// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs of `tailbound board` and their options, for whoever makes help, man pages and a parser of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// How an option is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `--name`
    Flag,
    /// `--name VALUE`
    One,
    /// `--name VALUE`, several times
    Several,
    /// `VALUE`, which must be there
    Place,
    /// `-- VALUE...`
    Behind,
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct BoardOption {
    /// Its name.
    pub name: &'static str,
    /// Its letter.
    pub short: Option<char>,
    /// What its value is called.
    pub value: &'static str,
    /// Its help.
    pub about: &'static str,
    /// How it is written.
    pub form: Form,
}

/// A verb.
#[derive(Debug)]
pub struct BoardVerb {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// What stands below its help.
    pub after: &'static str,
    /// Its options.
    pub options: &'static [BoardOption],
}

pub(super) const RECEIVE: &str = "receive";

const fn option(
    form: Form,
    name: &'static str,
    short: Option<char>,
    value: &'static str,
    about: &'static str,
) -> BoardOption {
    BoardOption { name, short, value, about, form }
}

use Form::{Behind, Flag, One, Place, Several};

/// All of them.
pub static VERBS: [BoardVerb; 2] = [
    BoardVerb {
        name: "initramfs",
        about: "Make an initramfs with which a board measures, hands in its run and powers off",
        after: "The board boots its own kernel with it, by TFTP, U-Boot or a card; see docs/board.md.\n\n\
Exit status: 0 made; 2 usage or input error, also a program that is not static; 3 this machine cannot.\n\n\
Examples:\n  tailbound board initramfs --program dist/tailbound-armv7 -o board.cpio.gz -- -D 10m -d 100us -L hackbench\n  \
tailbound board initramfs --module e1000.ko --ip dhcp --send http://192.168.1.9:8787 --token-file token --insecure-http -o board.cpio.gz",
        options: &[
            option(
                One,
                "out",
                Some('o'),
                "FILE",
                "The initramfs (cpio, packed with gzip) [default: board.cpio.gz]",
            ),
            option(
                One,
                "program",
                None,
                "FILE",
                "A static tailbound for the board, as `make arm` and release tarballs have it [default: this one, or the one beside it for --arch]",
            ),
            option(
                One,
                "arch",
                None,
                "ARCH",
                "The board's architecture: x86_64, aarch64, arm, riscv64 [default: the program's]",
            ),
            option(
                Several,
                "module",
                None,
                "FILE",
                "A kernel module to load at boot; several in the order of loading",
            ),
            option(
                One,
                "config",
                Some('c'),
                "FILE",
                "Options of the measurement from a TOML file, as `tailbound run --config` reads them",
            ),
            option(
                One,
                "send",
                None,
                "WHERE",
                "`serial`: over the console, for `board receive`; `http://ADDRESS:PORT`: to a server of `tailbound serve`; with a path: by PUT to any receiver. What cannot be handed in goes over the console [default: serial]",
            ),
            option(
                One,
                "token-file",
                None,
                "FILE",
                "File with a token for the server; anybody who reads the initramfs has it",
            ),
            option(
                Flag,
                "insecure-http",
                None,
                "",
                "Allow the token to go to another machine unencrypted",
            ),
            option(
                One,
                "ip",
                None,
                "IP",
                "How the board gets an address: `kernel` (`ip=` on its command line), `dhcp`, or ADDRESS/BITS[,GATEWAY] [default: kernel]",
            ),
            option(
                One,
                "then",
                None,
                "END",
                "How the board ends: `poweroff`, `reboot`, `halt` [default: poweroff]",
            ),
            option(
                One,
                "limit",
                None,
                "TIME",
                "End the measurement after this time, with the run so far [default: three times its length and a minute]",
            ),
            option(Flag, "force", None, "", "Overwrite an existing file"),
            option(
                Behind,
                "run",
                None,
                "OPTION",
                "Options of `tailbound run` on the board, behind `--` [default: -D 60s]",
            ),
        ],
    },
    BoardVerb {
        name: RECEIVE,
        about: "Get the runs of such boards out of a log of their console, or from a serial port",
        after: "Lost or damaged lines are named. Up to an eighth of them comes back from what the others hold; what does not leaves a shorter, valid \
run where the beginning is there.\n\n\
Exit status: 0 every run is whole; 2 usage or input error, also a log without a board's lines; 3 the board brought no run; 5 a run is cut off or lost.\n\n\
Examples:\n  tailbound board receive console.log\n  tailbound board receive /dev/ttyUSB0 --baud 115200 -o board.tailbound.jsonl",
        options: &[
            option(
                Place,
                "from",
                None,
                "LOG",
                "A file, a serial port, which is read until the board has sent everything, or `-`: standard input",
            ),
            option(One, "baud", None, "N", "Speed of a serial port [default: 115200]"),
            option(One, "wait", None, "TIME", "Wait so long for a serial port [default: 1h]"),
            option(
                One,
                "out",
                Some('o'),
                "FILE",
                "The run file; further ones get numbers [default: board.tailbound.jsonl, with a number if that exists]",
            ),
            option(Flag, "force", None, "", "Overwrite existing files"),
        ],
    },
];

/// What was typed: values by the names of their options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoardWords(pub BTreeMap<&'static str, Vec<OsString>>);

impl BoardWords {
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn all(&self, name: &str) -> &[OsString] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        self.all(name).last().map(PathBuf::from)
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.all(name).last().map(|word| word.to_string_lossy().into_owned())
    }
}
