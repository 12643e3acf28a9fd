// SPDX-License-Identifier: MIT OR Apache-2.0
//! How it is called: as the verb `cyclictest`, or by a link of that name.

use std::ffi::OsString;
use std::path::Path;

const NAME: &str = "cyclictest";

/// The options of cyclictest in a command line, program first; none: it is another verb's.
#[must_use]
pub fn arguments(line: &[OsString]) -> Option<Vec<OsString>> {
    let (program, rest) = line.split_first()?;
    let by_name = Path::new(program).file_name().is_some_and(|name| name == NAME);
    let rest = match (by_name, rest.split_first()) {
        (true, _) => rest,
        (false, Some((verb, rest))) if verb == NAME => rest,
        _ => return None,
    };
    Some(rest.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<String> {
        let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let words = arguments(&line)?;
        Some(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_verb_and_the_name_are_one() {
        assert_eq!(of("tailbound cyclictest -q -h 5").as_deref(), Some("-q -h 5"));
        assert_eq!(of("/usr/local/bin/cyclictest -q").as_deref(), Some("-q"));
        assert_eq!(of("cyclictest").as_deref(), Some(""));
        assert_eq!(of("tailbound run -q"), None);
        assert_eq!(of("tailbound"), None);
    }
}
