// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a shell may complete: names of the catalogues, which the help has too, and which are accepted.

use clap::{Arg, Command};
use clap_complete::Shell;
use tailbound_core::Policy;
use tailbound_core::requirement::Class;
use tailbound_lab::KernelName;

#[test]
fn names_of_the_catalogues_are_offered_in_every_shell() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut text = Vec::new();
        let mut command = tailbound::command_for_completions();
        clap_complete::generate(shell, &mut command, "tailbound", &mut text);
        let text = String::from_utf8_lossy(&text);
        for name in [
            "hackbench",
            "pi-futex",
            "openmetrics",
            "altenberg-2016",
            "timerlat",
            "nanosleep-relative",
            "6.12-rt",
        ] {
            assert!(text.contains(name), "{name} in the completions of {shell}");
        }
    }
}

#[test]
fn options_of_cyclictest_are_offered_behind_the_verb() {
    // What stands between the begin of the verb's part and its end, in each shell.
    let parts = [
        (Shell::Bash, "tailbound__subcmd__cyclictest)\n            opts=", "\n"),
        (Shell::Zsh, "\n(cyclictest)\n", "\n;;"),
        (Shell::Fish, "using_subcommand cyclictest\" -", "using_subcommand load\""),
    ];
    for (shell, begin, end) in parts {
        let mut text = Vec::new();
        let mut command = tailbound::command_for_completions();
        clap_complete::generate(shell, &mut command, "tailbound", &mut text);
        let text = String::from_utf8(text).unwrap();
        let (_, part) = text.split_once(begin).unwrap_or_else(|| panic!("{shell} has no {begin}"));
        let part = part.split(end).next().unwrap_or_default();
        for name in ["histogram", "interval"] {
            let long =
                if shell == Shell::Fish { format!("-l {name}") } else { format!("--{name}") };
            assert!(part.contains(&long), "{shell}: {long}: {part}");
        }
        let short = if shell == Shell::Fish { "-s i " } else { "-i" };
        assert!(part.contains(short), "{shell}: {part}");
        // What another clock or policy is called here is no word of cyclictest.
        assert!(!part.contains("realtime") && !part.contains("fifo:95"), "{shell}: {part}");
    }
}

/// What is offered for an option.
struct Offer<'a> {
    verb: &'a str,
    placeholder: &'a str,
    words: &'a [String],
    /// All that its help says.
    help: &'a str,
}

/// Looks at every option that a shell alone has words for: those that clap knows, it checks and shows itself.
fn offered(of: &mut dyn FnMut(&Offer<'_>)) {
    offered_by(&tailbound::command_for_completions(), &tailbound::command(), of);
}

fn offered_by(command: &Command, parsed: &Command, of: &mut dyn FnMut(&Offer<'_>)) {
    let is_listed = |arg: &Arg| {
        let own = parsed.get_arguments().find(|own| own.get_id() == arg.get_id());
        own.is_some_and(|own| !own.get_possible_values().is_empty())
    };
    let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for arg in command.get_arguments() {
        let Some(placeholder) = arg.get_value_names().and_then(|n| n.first()) else { continue };
        let words = arg.get_possible_values();
        let words: Vec<String> = words.iter().map(|w| w.get_name().to_owned()).collect();
        let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
        let help = format!("{} {below}", help.unwrap_or_default());
        if !arg.is_hide_set() && !words.is_empty() && !is_listed(arg) {
            let (verb, words, help) = (command.get_name(), &words[..], help.as_str());
            of(&Offer { verb, placeholder, words, help });
        }
    }
    for verb in command.get_subcommands() {
        if let Some(parsed) = parsed.find_subcommand(verb.get_name()) {
            offered_by(verb, parsed, of);
        }
    }
}

#[test]
fn help_names_every_word_of_a_list() {
    let mut lists = 0;
    offered(&mut |&Offer { verb, placeholder, words, help }| {
        // Long lists, and examples of many more, stand elsewhere.
        let elsewhere = ["KERNEL", "KERNELS", "POLICY", "NAME|FILE"];
        let pointed = help.contains("load --help`") || help.contains("measure --help`");
        if elsewhere.contains(&placeholder) || pointed {
            return;
        }
        lists += 1;
        for word in words {
            assert!(help.contains(word), "the help of {verb} {placeholder} lacks {word}: {help}");
        }
    });
    assert!(lists > 10, "{lists} lists");
}

#[test]
fn every_value_that_is_offered_is_accepted_by_what_reads_it() {
    let mut kinds = std::collections::BTreeSet::new();
    offered(&mut |&Offer { verb, placeholder, words, .. }| {
        for word in words.iter().filter(|w| !w.ends_with(':')) {
            let accepted = match placeholder {
                "POLICY" => word.parse::<Policy>().is_ok(),
                "CLASS" => word.parse::<Class>().is_ok(),
                "KERNEL" | "KERNELS" => word.parse::<KernelName>().is_ok(),
                _ => return,
            };
            assert!(accepted, "{verb} {placeholder}: {word}");
            kinds.insert(placeholder.to_owned());
        }
    });
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}
