// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of Debian's versions.
//!
//! Pure. Source: Debian Policy Manual 5.6.12: epoch, upstream version and
//! revision; digits compare as numbers, `~` sorts before the end, letters before the rest.

use std::cmp::Ordering;

/// Which of two versions is the later one.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (epoch_a, rest_a) = epoch(a);
    let (epoch_b, rest_b) = epoch(b);
    let (up_a, rev_a) = rest_a.rsplit_once('-').unwrap_or((rest_a, "0"));
    let (up_b, rev_b) = rest_b.rsplit_once('-').unwrap_or((rest_b, "0"));
    epoch_a.cmp(&epoch_b).then_with(|| part(up_a, up_b)).then_with(|| part(rev_a, rev_b))
}

fn epoch(version: &str) -> (u64, &str) {
    match version.split_once(':') {
        Some((epoch, rest)) => (epoch.parse().unwrap_or(0), rest),
        None => (0, version),
    }
}

fn part(mut a: &str, mut b: &str) -> Ordering {
    loop {
        let (text_a, text_b) =
            (take(&mut a, |c| !c.is_ascii_digit()), take(&mut b, |c| !c.is_ascii_digit()));
        let mut of_a = text_a.chars().map(weight);
        let mut of_b = text_b.chars().map(weight);
        loop {
            // The end weighs 0: more than `~`, less than everything else.
            let (x, y) = (of_a.next(), of_b.next());
            match x.unwrap_or(0).cmp(&y.unwrap_or(0)) {
                Ordering::Equal if x.is_none() && y.is_none() => break,
                Ordering::Equal => {}
                other => return other,
            }
        }
        let (digits_a, digits_b) =
            (take(&mut a, |c| c.is_ascii_digit()), take(&mut b, |c| c.is_ascii_digit()));
        let (number_a, number_b) =
            (digits_a.trim_start_matches('0'), digits_b.trim_start_matches('0'));
        let by_number = number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b));
        if by_number != Ordering::Equal {
            return by_number;
        }
        if a.is_empty() && b.is_empty() {
            return Ordering::Equal;
        }
    }
}

/// Takes the characters at the beginning that are `of` this kind.
fn take<'a>(text: &mut &'a str, of: fn(char) -> bool) -> &'a str {
    let end = text.find(|c| !of(c)).unwrap_or(text.len());
    let (head, tail) = text.split_at(end);
    *text = tail;
    head
}

fn weight(c: char) -> i64 {
    match c {
        '~' => -1,
        c if c.is_ascii_alphabetic() => i64::from(u32::from(c)),
        c => i64::from(u32::from(c)) + 256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manuals_order() {
        // Each later than the one before it.
        let rising = [
            "1.0~~",
            "1.0~~a",
            "1.0~",
            "1.0",
            "1.0a",
            "1.0+deb12",
            "1.1",
            "1.9",
            "1.10",
            "5.10.0-36",
            "6.1.170-3",
            "6.1.172-1",
            "6.1.192-2~deb11u1",
            "6.1.192-2",
            "6.12.100-1~deb12u1",
            "6.12.117-1~deb12u1",
            "1:0.1",
        ];
        for pair in rising.windows(2) {
            let [a, b] = pair else { continue };
            assert_eq!(compare(a, b), Ordering::Less, "{a} {b}");
            assert_eq!(compare(b, a), Ordering::Greater, "{b} {a}");
        }
        assert_eq!(compare("1.01-0", "1.1"), Ordering::Equal);
    }
}
