// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which channels of a capture are the two lines, by name or by number.

use crate::CaptureError;

/// Longest list of channels in a message.
const LISTED_MAX: usize = 64;

/// The channels as the user named them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// That of the pulses.
    pub stimulus: String,
    /// That of the answers.
    pub answer: String,
}

impl Wiring {
    /// The positions of the stimulus and of the answer among `names`.
    ///
    /// # Errors
    /// One of them does not exist or stands for several, or both are the same, or nobody named them.
    pub(crate) fn find(
        wiring: Option<&Self>,
        names: &[String],
    ) -> Result<[usize; 2], CaptureError> {
        let Some(wiring) = wiring else {
            return Err(CaptureError::whole(format!(
                "a capture of a logic analyser: name its lines with --stimulus CHANNEL and --answer CHANNEL; {}",
                listed(names)
            )));
        };
        let stimulus = position(&wiring.stimulus, "--stimulus", names)?;
        let answer = position(&wiring.answer, "--answer", names)?;
        if stimulus == answer {
            return Err(CaptureError::whole(format!(
                "--stimulus and --answer are the same channel: name two; {}",
                listed(names)
            )));
        }
        Ok([stimulus, answer])
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "the capture has no channel".to_owned();
    }
    let all = names.iter().enumerate().take(LISTED_MAX);
    let all: Vec<String> = all.map(|(i, name)| format!("{i} `{name}`")).collect();
    let more = if names.len() > LISTED_MAX { " and more" } else { "" };
    format!("its channels by number and name are {}{more}", all.join(", "))
}

/// A name comes before a number: channels may be called `0`.
fn position(given: &str, flag: &str, names: &[String]) -> Result<usize, CaptureError> {
    let last = |name: &str| name.rsplit('.').next() == Some(given);
    for test in [&|name: &str| name == given, &last as &dyn Fn(&str) -> bool] {
        let mut found = names.iter().enumerate().filter(|(_, name)| test(name)).map(|(i, _)| i);
        match (found.next(), found.next()) {
            (Some(one), None) => return Ok(one),
            (Some(_), Some(_)) => {
                return Err(CaptureError::whole(format!(
                    "{flag} `{given}`: several channels have this name, give the number; {}",
                    listed(names)
                )));
            }
            (None, _) => {}
        }
    }
    match given.parse::<usize>() {
        Ok(number) if number < names.len() => Ok(number),
        _ => Err(CaptureError::whole(format!(
            "{flag} `{given}`: there is no such channel; {}",
            listed(names)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(stimulus: &str, answer: &str, names: &[&str]) -> Result<[usize; 2], String> {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let wiring = Wiring { stimulus: stimulus.to_owned(), answer: answer.to_owned() };
        Wiring::find(Some(&wiring), &names).map_err(|e| e.reason)
    }

    #[test]
    fn a_channel_is_found_by_name_or_number_and_the_others_are_listed() {
        assert_eq!(find("D1", "0", &["D0", "D1"]), Ok([1, 0]));
        assert_eq!(find("1", "0", &["1", "0"]), Ok([0, 1]), "names come first");
        assert_eq!(find("a", "b", &["top.a", "top.b"]), Ok([0, 1]));
        for (stimulus, answer, words) in [
            (
                "D7",
                "D0",
                "--stimulus `D7`: there is no such channel; its channels by number and name are 0 `D0`, 1 `D1`",
            ),
            ("D0", "2", "--answer `2`"),
            ("D0", "0", "the same channel"),
        ] {
            let told = find(stimulus, answer, &["D0", "D1"]).expect_err(words);
            assert!(told.contains(words), "{told}");
        }
        assert!(find("a", "1", &["x.a", "y.a"]).is_err_and(|e| e.contains("several channels")));
        assert!(find("a", "b", &[]).is_err_and(|e| e.contains("no channel")));
        let none = Wiring::find(None, &["D0".to_owned()]).expect_err("no wiring").reason;
        assert!(none.contains("--stimulus CHANNEL") && none.contains("`D0`"), "{none}");
    }
}
