// SPDX-License-Identifier: MIT OR Apache-2.0
//! The datagram of a pulse, and that of its answer.
//!
//! Context: HOT. Units: ns. Both are as long, so that nobody gains by asking; an answer is no pulse, so that two
//! machines that answer never answer each other.
//!
//! ```text
//! offset  bytes  pulse                              answer (big-endian)
//!      0      4  `TBbx`                             the same
//!      4      1  version, 1                         the same
//!      5      1  1                                  2
//!      6      2  0                                  0
//!      8      8  the sender's run, any number       the same
//!     16      8  sequence number, from 0            the same
//!     24      8  anything, such as the sender's     the same
//!                time
//!     32      8  0                                  when it arrived, 0: unknown (CLOCK_REALTIME of who answers)
//!     40      8  0                                  when its thread ran
//! ```

/// Bytes of either.
pub const BYTES: usize = 48;

const MAGIC: [u8; 4] = *b"TBbx";
const VERSION: u8 = 1;
const PULSE: u8 = 1;
const ANSWER: u8 = 2;

/// A pulse on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PulsePacket {
    /// Which run of which sender.
    pub sender: u64,
    /// Its number, from 0.
    pub number: u64,
    /// The sender's own.
    pub token: u64,
}

/// The answer to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerPacket {
    /// What it answers.
    pub pulse: PulsePacket,
    /// When the pulse arrived, on CLOCK_REALTIME of the machine that answers; 0: unknown.
    pub arrived_ns: i64,
    /// When its thread ran.
    pub ran_ns: i64,
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let (word, _) = bytes.get(at..)?.split_first_chunk::<8>()?;
    Some(u64::from_be_bytes(*word))
}

fn packed(kind: u8, words: [u64; 5]) -> [u8; BYTES] {
    let [m0, m1, m2, m3] = MAGIC;
    let head = [m0, m1, m2, m3, VERSION, kind, 0, 0];
    let mut bytes = [0; BYTES];
    let all = head.into_iter().chain(words.into_iter().flat_map(u64::to_be_bytes));
    for (place, byte) in bytes.iter_mut().zip(all) {
        *place = byte;
    }
    bytes
}

fn read(kind: u8, bytes: &[u8]) -> Option<PulsePacket> {
    let [m0, m1, m2, m3] = MAGIC;
    let right = bytes.len() == BYTES && bytes.starts_with(&[m0, m1, m2, m3, VERSION, kind, 0, 0]);
    if !right {
        return None;
    }
    Some(PulsePacket { sender: word(bytes, 8)?, number: word(bytes, 16)?, token: word(bytes, 24)? })
}

impl PulsePacket {
    /// As it is sent.
    #[must_use]
    pub fn bytes(&self) -> [u8; BYTES] {
        packed(PULSE, [self.sender, self.number, self.token, 0, 0])
    }
    /// The pulse in a datagram; `None` if it is none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        read(PULSE, bytes)
    }
}

impl AnswerPacket {
    /// As it is sent.
    #[must_use]
    pub fn bytes(&self) -> [u8; BYTES] {
        let PulsePacket { sender, number, token } = self.pulse;
        let [arrived, ran] = [self.arrived_ns, self.ran_ns].map(i64::cast_unsigned);
        packed(ANSWER, [sender, number, token, arrived, ran])
    }
    /// The answer in a datagram; `None` if it is none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let pulse = read(ANSWER, bytes)?;
        let [arrived_ns, ran_ns] = [word(bytes, 32)?, word(bytes, 40)?].map(u64::cast_signed);
        Some(Self { pulse, arrived_ns, ran_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_is_taken_for_the_other_or_for_anything_else() {
        let pulse = PulsePacket { sender: 1, number: 0x0102_0304_0506_0708, token: u64::MAX };
        let answer = AnswerPacket { pulse, arrived_ns: -5, ran_ns: 7 };
        let (asked, answered) = (pulse.bytes(), answer.bytes());
        assert_eq!(asked.get(16..24), Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
        assert_eq!((PulsePacket::read(&asked), AnswerPacket::read(&asked)), (Some(pulse), None));
        assert_eq!(
            (PulsePacket::read(&answered), AnswerPacket::read(&answered)),
            (None, Some(answer))
        );
        for n in 0..BYTES {
            assert_eq!(PulsePacket::read(asked.get(..n).unwrap_or_default()), None);
        }
        for changed in 0..8 {
            let mut wrong = asked;
            if let Some(byte) = wrong.get_mut(changed) {
                *byte ^= 0x40;
            }
            assert_eq!(PulsePacket::read(&wrong), None, "{changed}");
        }
    }
}
