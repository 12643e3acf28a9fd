// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damage to the bytes or words of a file: the same seed makes the same file again.
//!
//! Not here: values that mean harm, one at a time (`mutate`).

use crate::mutate::Random;

/// Most places that one file is damaged at.
const PLACES: usize = 6;
/// No damage makes a file longer than this.
const BYTES_MAX: usize = 1 << 20;

/// What is in a number's place, in a text.
const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "0.5",
    "1e308",
    "-1e-320",
];

/// Words that a reader may know.
const WORDS: [&str; 12] =
    ["", "null", "true", "nan", "inf", "0-4294967295", "0,0,0", "[", "\"", "9999999h", "\0", "é"];

/// One of `samples`, damaged; `texts`: they are made of words and lines.
pub(crate) fn damaged(samples: &[Vec<u8>], texts: bool, random: &mut Random) -> Vec<u8> {
    let Some(first) = samples.get(random.below(samples.len())) else { return Vec::new() };
    let mut bytes = first.clone();
    // Much damage at once is refused at the door as a rule.
    let places = if random.below(3) == 0 { PLACES } else { 2 };
    for _ in 0..=random.below(places) {
        // Texts have lines and numbers; now and then their bytes are damaged all the same.
        if texts && random.below(16) > 0 {
            words(&mut bytes, samples, random);
        } else {
            raw(&mut bytes, samples, random);
        }
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

/// A value at the edge of what `width` bytes hold, or beside the one that is there.
fn extreme(now: u64, width: usize, random: &mut Random) -> u64 {
    let bits = u32::try_from(width * 8).unwrap_or(64);
    let most = u64::MAX >> (64 - bits);
    let sign = 1u64 << (bits - 1);
    match random.below(12) {
        0 => 0,
        1 => 1,
        2 => most,
        3 => sign,
        4 => sign - 1,
        5 => sign.wrapping_add(1),
        6 => now.wrapping_add(1),
        7 => now.wrapping_sub(1),
        8 => now ^ sign,
        9 => now.wrapping_neg(),
        10 => 1 << random.below(bits as usize),
        _ => now.rotate_left(8),
    }
}

/// Overwrites a number, of any width, order and place.
fn number(bytes: &mut [u8], random: &mut Random) {
    let width = [1usize, 2, 4, 8][random.below(4)];
    let at = random.below(bytes.len());
    let Some(place) = bytes.get_mut(at..at + width) else { return };
    let is_big = random.below(4) == 0;
    let mut word = [0u8; 8];
    word[..width].copy_from_slice(place);
    if is_big {
        word[..width].reverse();
    }
    let new = extreme(u64::from_le_bytes(word), width, random).to_le_bytes();
    place.copy_from_slice(&new[..width]);
    if is_big {
        place.reverse();
    }
}

/// A stretch of `of`, short more often than long.
fn stretch(of: &[u8], random: &mut Random) -> (usize, usize) {
    let longest = [8, 64, 512, 4096][random.below(4)];
    let from = random.below(of.len());
    let most = longest.min(of.len() - from);
    (from, from + random.below(most) + usize::from(most > 0))
}

fn raw(bytes: &mut Vec<u8>, samples: &[Vec<u8>], random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    match random.below(10) {
        0..=2 => number(bytes, random),
        3 => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        4 => {
            let (from, to) = stretch(bytes, random);
            bytes[from..to].fill([0, 0xff, 0x80, b'\n'][random.below(4)]);
        }
        5 => {
            let (from, to) = stretch(bytes, random);
            let copy = bytes[from..to].to_vec();
            let at = random.below(bytes.len());
            bytes.splice(at..at, copy);
        }
        6 => {
            // Two stretches in each other's place.
            let (from, to) = stretch(bytes, random);
            let at = random.below(bytes.len());
            let n = (to - from).min(bytes.len() - at);
            for i in 0..n {
                bytes.swap(from + i, at + i);
            }
        }
        7 => {
            // What another file has there.
            let other = &samples[random.below(samples.len())];
            let (from, to) = stretch(other, random);
            let copy = other[from..to].to_vec();
            let at = random.below(bytes.len());
            let end = (at + copy.len()).min(bytes.len());
            bytes.splice(at..end, copy);
        }
        8 => {
            let (from, to) = stretch(bytes, random);
            bytes.drain(from..to);
        }
        _ if random.below(4) == 0 => bytes.truncate(random.below(bytes.len())),
        _ => number(bytes, random),
    }
}

/// Where words of a kind lie.
fn tokens(bytes: &[u8], is: fn(u8) -> bool) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut at = 0;
    for run in bytes.chunk_by(|a, b| is(*a) == is(*b)) {
        if run.first().is_some_and(|b| is(*b)) {
            out.push((at, at + run.len()));
        }
        at += run.len();
    }
    out
}

fn is_digit(b: u8) -> bool {
    b.is_ascii_digit()
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

fn no_end(b: u8) -> bool {
    b != b'\n'
}

fn words(bytes: &mut Vec<u8>, samples: &[Vec<u8>], random: &mut Random) {
    let of = |bytes: &[u8], is, random: &mut Random| {
        let all = tokens(bytes, is);
        (!all.is_empty()).then(|| all[random.below(all.len())])
    };
    match random.below(12) {
        0..=4 => {
            let Some((from, to)) = of(bytes, is_digit, random) else { return };
            bytes.splice(from..to, NUMBERS[random.below(NUMBERS.len())].bytes());
        }
        5 => {
            let Some((from, to)) = of(bytes, is_word, random) else { return };
            bytes.splice(from..to, WORDS[random.below(WORDS.len())].bytes());
        }
        6 => {
            // A word of this text in the place of another.
            let (Some(one), Some(two)) = (of(bytes, is_word, random), of(bytes, is_word, random))
            else {
                return;
            };
            let word = bytes[one.0..one.1].to_vec();
            bytes.splice(two.0..two.1, word);
        }
        7 => {
            let Some((from, to)) = of(bytes, no_end, random) else { return };
            bytes.drain(from..(to + 1).min(bytes.len()));
        }
        8 | 9 => {
            // A line once more, of this text or another, here or elsewhere.
            let other =
                if random.below(2) == 0 { &samples[random.below(samples.len())] } else { &*bytes };
            let (Some(line), Some(place)) = (of(other, no_end, random), of(bytes, no_end, random))
            else {
                return;
            };
            let mut line = other[line.0..line.1].to_vec();
            line.push(b'\n');
            for _ in 0..=random.below(3) {
                bytes.splice(place.0..place.0, line.iter().copied());
            }
        }
        10 => {
            let Some((from, to)) = of(bytes, is_digit, random) else { return };
            let digits = bytes[from..to].to_vec();
            for _ in 0..=random.below(20) {
                bytes.splice(to..to, digits.iter().copied());
            }
        }
        _ if random.below(4) == 0 => bytes.truncate(random.below(bytes.len().max(1))),
        _ => {
            let Some((from, _)) = of(bytes, is_digit, random) else { return };
            bytes.insert(from, b'-');
        }
    }
}
