// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of functions as their authors wrote them: Rust and C++.
//!
//! A name that is neither stays as it is.

/// Longest name kept, in bytes.
const NAME_MAX: usize = 200;

/// The name for people.
pub(super) fn name(raw: &str) -> String {
    let text = if let Ok(rust) = rustc_demangle::try_demangle(raw) {
        format!("{rust:#}")
    } else if raw.starts_with("_Z") {
        let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        let symbol = cpp_demangle::Symbol::new(raw.as_bytes());
        symbol
            .ok()
            .and_then(|s| s.demangle_with_options(&options).ok())
            .unwrap_or_else(|| raw.to_owned())
    } else {
        raw.split('@').next().unwrap_or(raw).to_owned()
    };
    if text.len() <= NAME_MAX {
        return text;
    }
    let end = (0..=NAME_MAX).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names_of_three_languages() {
        assert_eq!(
            name("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(name("_ZN3Arm4stepEid"), "Arm::step");
        assert_eq!(name("clock_nanosleep@@GLIBC_2.17"), "clock_nanosleep");
        assert!(name(&"x".repeat(900)).len() < 210);
    }
}
