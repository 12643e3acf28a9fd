// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain text, with code in backquotes, as Markdown.

/// Text of a paragraph, in which nothing but backquotes means anything.
pub(super) fn text(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len() + 8);
    // An odd one stands for itself.
    let even = plain.matches('`').count().is_multiple_of(2);
    let mut code = false;
    for c in plain.chars() {
        match c {
            '`' if even => {
                code = !code;
                out.push(c);
            }
            '\n' => out.push(' '),
            c if !code && "\\`*_[]<>#|~&{}!$".contains(c) => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// The same in a cell of a table, where a bar ends code too.
pub(super) fn cell(plain: &str) -> String {
    let parts: Vec<String> = text(plain).split('|').map(str::to_owned).collect();
    // Outside of code `text` has escaped it already.
    parts.iter().map(|p| p.strip_suffix('\\').unwrap_or(p)).collect::<Vec<_>>().join("\\|")
}

/// Code in a cell or a line.
pub(super) fn code(plain: &str) -> String {
    let escaped = plain.replace('|', "\\|");
    if plain.contains('`') { format!("`` {escaped} ``") } else { format!("`{escaped}`") }
}

/// A table of names and what they are: head, and rows of two cells. On a phone each row is one below the other.
pub(super) fn names(head: [&str; 2], rows: impl IntoIterator<Item = (String, String)>) -> String {
    let mut out = format!("<div class=\"names\">\n\n| {} | {} |\n|---|---|\n", head[0], head[1]);
    for (name, what) in rows {
        out.push_str(&format!("| {name} | {what} |\n"));
    }
    out.push_str("\n</div>\n");
    out
}

/// A block of code.
pub(super) fn block(kind: &str, plain: &str) -> String {
    format!("```{kind}\n{}\n```\n", plain.trim_end())
}

/// Paragraphs apart by empty lines; lines that begin with two spaces are code.
pub(super) fn paragraphs(plain: &str) -> String {
    let mut out = String::new();
    let mut verbatim: Vec<&str> = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    let flush_words = |out: &mut String, words: &mut Vec<&str>| {
        if !words.is_empty() {
            out.push_str(&format!("{}\n\n", text(&words.join(" "))));
            words.clear();
        }
    };
    let flush_code = |out: &mut String, verbatim: &mut Vec<&str>| {
        if !verbatim.is_empty() {
            out.push_str(&format!("{}\n", block("text", &verbatim.join("\n"))));
            verbatim.clear();
        }
    };
    for line in plain.lines() {
        match line.strip_prefix("  ") {
            Some(code) => {
                flush_words(&mut out, &mut words);
                verbatim.push(code);
            }
            None if line.trim().is_empty() => {
                flush_words(&mut out, &mut words);
                flush_code(&mut out, &mut verbatim);
            }
            None => {
                flush_code(&mut out, &mut verbatim);
                words.push(line);
            }
        }
    }
    flush_words(&mut out, &mut words);
    flush_code(&mut out, &mut verbatim);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_what_it_is() {
        assert_eq!(text("a <b> `c_d|e` f_g"), "a \\<b\\> `c_d|e` f\\_g");
        assert_eq!(text("3 ` 4"), "3 \\` 4");
        assert_eq!(cell("x|y `a|b`"), "x\\|y `a\\|b`");
        assert_eq!((code("-a|b").as_str(), code("`x`").as_str()), ("`-a\\|b`", "`` `x` ``"));
    }

    #[test]
    fn examples_of_a_help_are_code() {
        let made =
            paragraphs("Examples:\n  tailbound run\n  # not a heading\n\nExit status: 0 met.");
        let expected =
            "Examples:\n\n```text\ntailbound run\n# not a heading\n```\n\nExit status: 0 met.\n\n";
        assert_eq!(made, expected);
    }
}
