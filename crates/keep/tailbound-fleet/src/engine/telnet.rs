// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands of telnet between the bytes of a console, which ser2net sends on an RFC 2217 port.
//!
//! Source: RFC 854.

/// Takes the commands of telnet out of what is read, and refuses every option, as RFC 854 asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Telnet {
    #[default]
    Data,
    Command,
    Option(u8),
    Sub,
    SubCommand,
}

impl Telnet {
    const IAC: u8 = 255;
    const DONT: u8 = 254;
    const DO: u8 = 253;
    const WONT: u8 = 252;
    const WILL: u8 = 251;
    const SUB_BEGIN: u8 = 250;
    const SUB_END: u8 = 240;

    /// What is left of `read` goes to `bytes`, what is to be sent back to `answer`.
    pub(super) fn take(&mut self, read: &[u8], bytes: &mut Vec<u8>, answer: &mut Vec<u8>) {
        for &byte in read {
            *self = match (*self, byte) {
                (Self::Data, Self::IAC) => Self::Command,
                (Self::Data, byte) => {
                    bytes.push(byte);
                    Self::Data
                }
                (Self::Command, Self::IAC) => {
                    bytes.push(Self::IAC);
                    Self::Data
                }
                (Self::Command, Self::SUB_BEGIN) => Self::Sub,
                (Self::Command, Self::WILL..=Self::DONT) => Self::Option(byte),
                (Self::Command, _) => Self::Data,
                (Self::Option(Self::WILL), option) => {
                    answer.extend([Self::IAC, Self::DONT, option]);
                    Self::Data
                }
                (Self::Option(Self::DO), option) => {
                    answer.extend([Self::IAC, Self::WONT, option]);
                    Self::Data
                }
                (Self::Option(_), _) => Self::Data,
                (Self::Sub, Self::IAC) => Self::SubCommand,
                (Self::SubCommand, Self::SUB_END) => Self::Data,
                (Self::Sub | Self::SubCommand, _) => Self::Sub,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_telnet_are_no_text_wherever_they_are_cut() {
        // WILL ECHO, DO BINARY, a subnegotiation with a doubled 255 in it, a doubled 255 of the board's.
        let sent = b"boo\xff\xfb\x01t\xff\xfd\x00ed \xff\xfa\x2c\x65\xff\xff\x01\xff\xf0now\xff\xff!\xff\xf1";
        let expected = (b"booted now\xff!".to_vec(), vec![255, 254, 1, 255, 252, 0]);
        for cut in 0..sent.len() {
            let (mut filter, mut bytes, mut answer) = (Telnet::Data, Vec::new(), Vec::new());
            for part in [&sent[..cut], &sent[cut..]] {
                filter.take(part, &mut bytes, &mut answer);
            }
            assert_eq!((bytes, answer), expected, "cut at {cut}");
        }
    }
}
