// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sequence numbers of pulses: which were left out, came twice or out of order.
//!
//! Context: HOT. Of each of a few senders the highest number is kept, and which of the 64 up to it came.

/// Senders that are followed at a time.
const SENDERS: usize = 4;
/// Numbers before the highest of which is known whether they came.
const WINDOW: u64 = 64;

/// The number of a pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Which run of which sender.
    pub sender: u64,
    /// Its number.
    pub number: u64,
    /// Bits of the number: a counter of a byte has eight.
    pub bits: u32,
}

/// Where a number stands in its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The first of a sender.
    First,
    /// The one after the highest.
    Next,
    /// So many were left out before it.
    After(u64),
    /// One that was left out, and came after all.
    Late,
    /// It came before.
    Twice,
    /// Too old to say, or before the first.
    Stale,
    /// Its sender is one too many.
    Unfollowed,
}

/// One sender.
#[derive(Clone, Copy, Debug)]
struct Sender {
    id: u64,
    highest: u64,
    /// Bit k: the number `highest - k` came.
    came: u64,
    /// Numbers up to the highest of which that is known.
    known: u64,
}

/// The sequences of all senders.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequences {
    senders: [Option<Sender>; SENDERS],
}

impl Sequences {
    /// Senders that are followed.
    #[must_use]
    pub fn senders(&self) -> u64 {
        self.senders.iter().flatten().count() as u64
    }
    /// Enters a number.
    pub fn place(&mut self, sequence: Sequence) -> Place {
        let known = |s: &&mut Option<Sender>| s.is_some_and(|s| s.id == sequence.sender);
        if let Some(Some(sender)) = self.senders.iter_mut().find(known) {
            return sender.place(sequence);
        }
        let Some(free) = self.senders.iter_mut().find(|s| s.is_none()) else {
            return Place::Unfollowed;
        };
        *free = Some(Sender { id: sequence.sender, highest: sequence.number, came: 1, known: 1 });
        Place::First
    }
}

impl Sender {
    fn place(&mut self, Sequence { number, bits, .. }: Sequence) -> Place {
        let unused = 64u32.saturating_sub(bits.clamp(1, 64));
        // The way from the highest number to this one, the shorter way round.
        let ahead = number.wrapping_sub(self.highest).wrapping_shl(unused).cast_signed();
        let ahead = ahead.wrapping_shr(unused);
        if ahead > 0 {
            let steps = ahead.unsigned_abs();
            let shift = u32::try_from(steps).unwrap_or(u32::MAX);
            self.came = self.came.checked_shl(shift).unwrap_or(0) | 1;
            self.highest = self.highest.wrapping_add(steps);
            self.known = self.known.saturating_add(steps).min(WINDOW);
            return match steps {
                1 => Place::Next,
                n => Place::After(n.wrapping_sub(1)),
            };
        }
        let back = ahead.unsigned_abs();
        if back >= self.known {
            return Place::Stale;
        }
        let bit = 1u64.wrapping_shl(u32::try_from(back).unwrap_or(0));
        if self.came & bit != 0 {
            return Place::Twice;
        }
        self.came |= bit;
        Place::Late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(bits: u32, numbers: &[u64]) -> impl Iterator<Item = Place> {
        let mut all = Sequences::default();
        numbers.iter().map(move |number| all.place(Sequence { sender: 7, number: *number, bits }))
    }

    #[test]
    fn what_is_left_out_doubled_or_late_is_known() {
        use Place::{After, First, Late, Next, Stale, Twice};
        let seen = places(64, &[5, 6, 9, 8, 8, 9, 10, 100, 36, 37, 99, 1]);
        let right =
            [First, Next, After(2), Late, Twice, Twice, Next, After(89), Stale, Late, Late, Stale];
        assert!(seen.eq(right));
    }

    #[test]
    fn a_number_before_the_first_makes_up_for_none_that_is_lost() {
        let right = [Place::First, Place::Stale, Place::After(1), Place::Stale, Place::Late];
        assert!(places(64, &[5, 4, 7, 4, 6]).eq(right));
    }

    #[test]
    fn a_counter_of_a_byte_goes_round() {
        use Place::{After, First, Late, Next};
        let seen = places(8, &[254, 255, 0, 2, 1, 3]);
        assert!(seen.eq([First, Next, Next, After(1), Late, Next]));
    }

    #[test]
    fn senders_are_apart_and_one_too_many_is_not_followed() {
        let mut all = Sequences::default();
        let mut place = |sender, number| all.place(Sequence { sender, number, bits: 64 });
        for sender in 0..4 {
            assert_eq!(place(sender, sender * 10), Place::First);
        }
        assert_eq!(place(2, 21), Place::Next);
        assert_eq!(place(3, 32), Place::After(1));
        assert_eq!(place(9, 1), Place::Unfollowed);
    }
}
