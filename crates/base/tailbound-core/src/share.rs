// SPDX-License-Identifier: MIT OR Apache-2.0
//! A share as people write it: `99.999%`, `0.99999` or `p99.999`.

/// A text that is no share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a share between 0 and 1: write for example `99.999%` or `0.99999`")]
pub struct NoShare(pub String);

/// The share, more than 0 and less than 1.
///
/// # Errors
/// [`NoShare`], worded for the person who typed it.
pub fn parse(text: &str) -> Result<f64, NoShare> {
    let t = text.trim();
    let hundredths = t.strip_suffix('%').or_else(|| t.strip_prefix('p'));
    let value = match hundredths {
        Some(number) => number.trim().parse::<f64>().map(|v| v / 100.0),
        None => t.parse::<f64>(),
    };
    value.ok().filter(|v| *v > 0.0 && *v < 1.0).ok_or_else(|| NoShare(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_written_in_three_ways_and_is_never_none_or_all() {
        for text in ["25%", " 0.25 ", "p25", "25 %"] {
            assert_eq!(parse(text), Ok(0.25), "{text}");
        }
        for wrong in ["", "0", "1", "100%", "p100", "-5%", "NaN", "inf", "a", "%"] {
            assert_eq!(parse(wrong), Err(NoShare(wrong.to_owned())), "{wrong}");
        }
    }
}
