// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conditions of Kconfig: `A && (B || !C) && D = "text"`, and what they come to.
//!
//! Pure. Three values, n < m < y; a macro (`$(cc-option,…)`) is unknown here,
//! and so is what hangs on it. Source: Documentation/kbuild/kconfig-language.rst.

use crate::kernel::Config;

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    /// An option, or the constant y, m or n.
    Symbol(String),
    /// A text in quotes.
    Text(String),
    /// What only the kernel's own build can say.
    Macro(String),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    /// Left side, operator, right side.
    Compare(Box<Self>, String, Box<Self>),
}

/// n, m or y; nothing when unknown.
pub(crate) type Value = Option<u8>;
/// Off.
pub(crate) const N: Value = Some(0);
/// Built in.
pub(crate) const Y: Value = Some(2);

impl Expression {
    /// Reads a condition; nothing if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let words = words(text)?;
        let mut parser = Parser { words: &words, at: 0 };
        let whole = parser.any()?;
        (parser.at == words.len()).then_some(whole)
    }

    /// Its value under a configuration.
    pub(crate) fn value(&self, config: &Config) -> Value {
        match self {
            Self::Symbol(name) => Some(match name.as_str() {
                "y" => 2,
                "m" => 1,
                "n" => 0,
                _ => match config.option(name) {
                    Some("y") => 2,
                    Some("m") => 1,
                    _ => 0,
                },
            }),
            Self::Text(text) => Some(match text.as_str() {
                "y" => 2,
                "m" => 1,
                _ => 0,
            }),
            Self::Macro(_) => None,
            Self::Not(of) => of.value(config).map(|v| 2 - v),
            Self::And(a, b) => match (a.value(config), b.value(config)) {
                (N, _) | (_, N) => N,
                (Some(a), Some(b)) => Some(a.min(b)),
                _ => None,
            },
            Self::Or(a, b) => match (a.value(config), b.value(config)) {
                (Y, _) | (_, Y) => Y,
                (Some(a), Some(b)) => Some(a.max(b)),
                _ => None,
            },
            Self::Compare(a, operator, b) => compare(a, operator, b, config),
        }
    }

    /// The parts that keep it below `enough`, each as small as it can be said.
    pub(crate) fn unmet<'a>(&'a self, config: &Config, enough: u8, into: &mut Vec<&'a Self>) {
        if self.value(config).is_none_or(|v| v >= enough) {
            return;
        }
        if let Self::And(a, b) = self {
            a.unmet(config, enough, into);
            b.unmet(config, enough, into);
        } else {
            into.push(self);
        }
    }

    /// Every option it names.
    pub(crate) fn symbols<'a>(&'a self, into: &mut Vec<&'a str>) {
        match self {
            Self::Symbol(name) if !matches!(name.as_str(), "y" | "m" | "n") => into.push(name),
            Self::Symbol(_) | Self::Text(_) | Self::Macro(_) => {}
            Self::Not(of) => of.symbols(into),
            Self::And(a, b) | Self::Or(a, b) | Self::Compare(a, _, b) => {
                a.symbols(into);
                b.symbols(into);
            }
        }
    }
}

impl std::fmt::Display for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = |of: &Self| match of {
            Self::And(..) | Self::Or(..) | Self::Compare(..) => format!("({of})"),
            _ => of.to_string(),
        };
        match self {
            Self::Symbol(name) | Self::Macro(name) => f.write_str(name),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Not(of) => write!(f, "!{}", inner(of)),
            Self::And(a, b) => write!(f, "{} && {}", inner(a), inner(b)),
            Self::Or(a, b) => {
                // A chain of alternatives needs no brackets.
                let side = |of: &Self| match of {
                    Self::Or(..) => of.to_string(),
                    _ => inner(of),
                };
                write!(f, "{} || {}", side(a), side(b))
            }
            Self::Compare(a, operator, b) => write!(f, "{a} {operator} {b}"),
        }
    }
}

fn compare(a: &Expression, operator: &str, b: &Expression, config: &Config) -> Value {
    let text = |of: &Expression| match of {
        Expression::Symbol(name) if matches!(name.as_str(), "y" | "m" | "n") => Some(name.clone()),
        Expression::Symbol(name) => match config.option(name) {
            Some(value) => Some(value.trim_matches('"').to_owned()),
            // A number written as a word is itself; an option that is off is n.
            None if name.starts_with(|c: char| c.is_ascii_digit()) => Some(name.clone()),
            None => Some("n".to_owned()),
        },
        Expression::Text(text) => Some(text.clone()),
        _ => None,
    };
    let (a, b) = (text(a)?, text(b)?);
    let order = match (number(&a), number(&b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.cmp(&b),
    };
    let holds = match operator {
        "=" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        _ => return None,
    };
    Some(if holds { 2 } else { 0 })
}

fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let length = word_length(rest)?;
        let (word, after) = rest.split_at_checked(length)?;
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    Some(words)
}

/// Bytes of the first word of `rest`.
fn word_length(rest: &str) -> Option<usize> {
    for two in ["&&", "||", "!=", "<=", ">="] {
        if rest.starts_with(two) {
            return Some(2);
        }
    }
    match rest.chars().next()? {
        '(' | ')' | '!' | '=' | '<' | '>' => Some(1),
        quote @ ('"' | '\'') => rest.get(1..)?.find(quote).map(|end| end + 2),
        '$' => {
            let mut depth = 0;
            for (at, c) in rest.char_indices() {
                match c {
                    '(' => depth += 1,
                    ')' if depth == 1 => return Some(at + 1),
                    ')' => depth -= 1,
                    _ => {}
                }
            }
            None
        }
        c if is_name(c) => Some(rest.find(|c| !is_name(c)).unwrap_or(rest.len())),
        _ => None,
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+')
}

struct Parser<'a> {
    words: &'a [String],
    at: usize,
}

impl Parser<'_> {
    fn next_is(&mut self, word: &str) -> bool {
        let is = self.words.get(self.at).is_some_and(|w| w == word);
        self.at += usize::from(is);
        is
    }

    fn any(&mut self) -> Option<Expression> {
        let mut left = self.all()?;
        while self.next_is("||") {
            left = Expression::Or(Box::new(left), Box::new(self.all()?));
        }
        Some(left)
    }

    fn all(&mut self) -> Option<Expression> {
        let mut left = self.one()?;
        while self.next_is("&&") {
            left = Expression::And(Box::new(left), Box::new(self.one()?));
        }
        Some(left)
    }

    fn one(&mut self) -> Option<Expression> {
        if self.next_is("!") {
            return Some(Expression::Not(Box::new(self.one()?)));
        }
        if self.next_is("(") {
            let inner = self.any()?;
            return self.next_is(")").then_some(inner);
        }
        let left = self.atom()?;
        for operator in ["=", "!=", "<=", ">=", "<", ">"] {
            if self.next_is(operator) {
                let right = self.atom()?;
                let (left, right) = (Box::new(left), Box::new(right));
                return Some(Expression::Compare(left, operator.to_owned(), right));
            }
        }
        Some(left)
    }

    fn atom(&mut self) -> Option<Expression> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        match word.chars().next()? {
            '"' | '\'' => {
                let text = word.trim_matches(['"', '\'']);
                // A macro in quotes is no less unknown.
                Some(if text.starts_with("$(") {
                    Expression::Macro(text.to_owned())
                } else {
                    Expression::Text(text.to_owned())
                })
            }
            '$' => Some(Expression::Macro(word.clone())),
            c if is_name(c) => Some(Expression::Symbol(word.clone())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_three_values() {
        let config = Config::parse("CONFIG_A=y\nCONFIG_M=m\nCONFIG_N=8\nCONFIG_S=\"gcc\"\n");
        for (text, value) in [
            ("A", Some(2)),
            ("M", Some(1)),
            ("OFF", Some(0)),
            ("!M", Some(1)),
            ("A && M", Some(1)),
            ("OFF || M || A", Some(2)),
            ("!(OFF || A)", Some(0)),
            ("A && !OFF", Some(2)),
            ("N >= 8 && N < 0x10", Some(2)),
            ("S = \"gcc\"", Some(2)),
            ("M = m", Some(2)),
            ("OFF = n", Some(2)),
            ("M != n", Some(2)),
            ("$(cc-option,-mx (y))", None),
            ("$(success,x) || A", Some(2)),
            ("$(success,x) && OFF", Some(0)),
            ("\"$(ARCH)\" = \"x86\"", None),
        ] {
            let parsed = Expression::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(parsed.value(&config), value, "{text}");
        }
        for text in ["", "A &&", "(A", "A B", "A = ", "\"open", "$(open", "A & B", "ä"] {
            assert_eq!(Expression::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_unmet_is_reported_in_its_smallest_part() {
        let config = Config::parse("CONFIG_A=y\nCONFIG_M=m\n");
        let condition = Expression::parse("A && (B || C || (D && E)) && !A && M && $(x)").unwrap();
        let mut unmet = Vec::new();
        condition.unmet(&config, 2, &mut unmet);
        let text: Vec<String> = unmet.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["B || C || (D && E)", "!A", "M"]);
    }
}
