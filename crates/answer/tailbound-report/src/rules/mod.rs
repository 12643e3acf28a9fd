// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for real-time programs that watched threads broke, for people and scripts: which and where,
//! how often, at what cost, by which way through the program, and what to do.
//!
//! Units: ns. Names of threads and functions come from files: they are escaped where
//! they are written.
//! Not here: how violations are found (`tailbound-trace`), the words of the rules (`tailbound_core::rules`).

mod html;
mod json;
mod rows;
mod text;

pub(crate) use html::section;
pub use json::json;
pub(crate) use text::short;
pub use text::text;

use tailbound_core::rules::{Stack, StackMethod};

/// The command that shows a check of a program.
const CHECK_COMMAND: &str = "tailbound check --pid PID --all";

/// The heading of all that is about rules.
fn heading() -> &'static str {
    "Rules for real-time programs"
}

/// How a stack was read, and what is missing of it.
fn method(stack: &Stack) -> String {
    let how = match stack.method {
        StackMethod::None => return format!("no stack: {}", stack.reason),
        StackMethod::Dwarf => "by .eh_frame (DWARF)".to_owned(),
        StackMethod::FramePointers => "by frame pointers".to_owned(),
        StackMethod::Mixed => "partly by .eh_frame (DWARF), partly by frame pointers".to_owned(),
        StackMethod::Unknown(word) => format!("by {word}"),
    };
    match stack.reason.as_str() {
        "" => format!("stack read {how}"),
        reason => format!("stack read {how}; it ends there: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use tailbound_core::rules::{Cost, Occurrence, Rule, Stack, StackMethod, ViolationRecord};

    use crate::text::Style;

    fn record() -> ViolationRecord {
        let occurrence = |ns| Occurrence {
            t_ns: 1_500_000_000,
            cost: Cost::exact(ns),
            text: format!(
                "ctl-7 (real-time priority 80) slept for {ns} ns in read of descriptor 5"
            ),
            stack: Stack {
                method: StackMethod::Dwarf,
                frames: vec!["read+0x17 (libc.so.6)".to_owned(), "st\x1bep (<ctl>)".to_owned()],
                reason: String::new(),
            },
        };
        ViolationRecord {
            rule: Rule::SleepMethod,
            tid: 7,
            name: "ctl".to_owned(),
            site: "read, descriptor 5 in step".to_owned(),
            n: 3,
            total: Cost::exact(9000),
            first: occurrence(1000),
            worst: occurrence(5000),
        }
    }

    #[test]
    fn text_tells_rule_place_stack_and_what_to_do() {
        let text = super::text(&[record()], 10, Style::default());
        for phrase in [
            "sleep-method",
            "read, descriptor 5 in step",
            "libc.so.6",
            "DWARF",
            "what to do",
            "epoll_wait",
            "Rules for real-time programs were broken 3 times at one place",
        ] {
            assert!(text.contains(phrase), "{phrase}: {text}");
        }
        assert!(!text.contains('\x1b'), "{text}");
        assert!(
            super::text(&[], 10, Style::default())
                .contains("No rule for real-time programs was broken")
        );
    }

    #[test]
    fn json_counts_by_rule() {
        let value = super::json(&[record(), record()]);
        assert_eq!(value["violations"], 6);
        assert_eq!(value["rules"][0]["violations"], 6);
        let text = value["rules"][0]["remedy"]["text"].as_str();
        assert!(text.is_some_and(|t| t.contains("read without blocking")), "{text:?}");
        assert!(text.is_some_and(|t| !t.contains("nanosleep")), "{text:?}");
    }
}
