// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that mean harm, and a file with each of its values replaced by each of them.

use serde_json::{Value, json};

/// What markup of a file would begin with, if it came to life.
pub(crate) const TAG: &str = "evil";

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % (n as u64).max(1)).unwrap_or(0)
    }
}

fn strings() -> Vec<String> {
    let mut all: Vec<String> = [
        "",
        "\u{1b}[2J\u{7}\u{9b}2J\u{1b}]0;t\u{7}\u{0}\u{7f}\r\n",
        "\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}abc",
        "</text></title></style></script><script>evil</script><evil/>",
        "\"'><evil onclick=\"evil()\"/><!--",
        "]]></script><evil/>-->&evil;",
        "javascript:evil()",
        "NaN",
        "-0",
        "1e999",
        "18446744073709551615",
        "-9223372036854775808",
        "340282366920938463463374607431768211455",
        "-170141183460469231731687303715884105728",
        "0.0000000000000000000000001ns",
        "99999999999999999999h",
        "../../evil",
        "%s%n{}{0}$(evil)`evil`",
        "\u{feff}\u{fffe}\u{1f600}e\u{301}",
    ]
    .map(str::to_owned)
    .to_vec();
    all.push("long ".repeat(4000));
    all.push("x".repeat(20_000));
    all
}

fn numbers() -> Vec<Value> {
    let mut all: Vec<Value> =
        [0i64, 1, -1, 1 << 32, 1 << 48, 1 << 60, -(1 << 60), i64::MAX, i64::MIN, 999, 65_536]
            .map(Value::from)
            .to_vec();
    all.extend([json!(u64::MAX), json!(0.5), json!(1e308), json!(-1e308), json!(1e-320)]);
    all
}

fn values() -> Vec<Value> {
    let mut all: Vec<Value> = strings().into_iter().map(Value::from).collect();
    all.extend(numbers());
    all.extend([Value::Null, json!(true), json!([]), json!({}), json!([[0]])]);
    all
}

/// The pointers to every value of `of`; of long lists only to the ends.
fn pointers(of: &Value, at: &str, out: &mut Vec<String>) {
    match of {
        Value::Array(all) => {
            for (i, v) in all.iter().enumerate() {
                if i < 2 || i + 1 == all.len() {
                    pointers(v, &format!("{at}/{i}"), out);
                }
            }
        }
        Value::Object(all) => {
            for (k, v) in all {
                let key = k.replace('~', "~0").replace('/', "~1");
                pointers(v, &format!("{at}/{key}"), out);
            }
        }
        _ => {}
    }
    out.push(at.to_owned());
}

fn name(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

/// What was replaced in which line, and the file.
pub(crate) fn json_mutants(file: &str) -> impl Iterator<Item = (String, String)> + '_ {
    let lines: Vec<&str> = file.lines().collect();
    let mut places = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let mut all = Vec::new();
        let line: Value = serde_json::from_str(line).unwrap();
        pointers(&line, "", &mut all);
        places.extend(all.into_iter().filter(|p| p != "/type").map(|p| (i, p)));
    }
    let values = values();
    places.into_iter().flat_map(move |(i, pointer)| {
        let lines = lines.clone();
        let made = values.clone().into_iter().map(move |value| {
            let mut line: Value = serde_json::from_str(lines[i]).unwrap();
            let what = format!("line {} {pointer} = {}", i + 1, name(&value));
            *line.pointer_mut(&pointer).unwrap() = value;
            let mut all: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
            all[i] = typed_first(&line);
            (what, all.join("\n") + "\n")
        });
        made.collect::<Vec<_>>()
    })
}

/// A line as we write it: its type is first, so that it is read as one of ours.
fn typed_first(line: &Value) -> String {
    let Some(object) = line.as_object() else { return line.to_string() };
    let mut rest = object.clone();
    match rest.remove("type") {
        Some(kind) if !rest.is_empty() => {
            let rest = Value::Object(rest).to_string();
            format!("{{\"type\":{kind},{}", rest.get(1..).unwrap())
        }
        _ => line.to_string(),
    }
}

/// A text with one of its words or numbers replaced.
pub(crate) fn token_mutants(text: &str) -> Vec<(String, String)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || ".-+_".contains(c);
    let mut tokens = Vec::new();
    let mut begin = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (begin, is_word(c)) {
            (None, true) => begin = Some(at),
            (Some(from), false) => {
                tokens.push((from, at));
                begin = None;
            }
            _ => {}
        }
    }
    // Heads and ends are words, the middle is numbers alike.
    let n = tokens.len();
    let mut chosen: Vec<_> =
        tokens.iter().copied().enumerate().filter(|(i, _)| *i < 60 || n - i < 60).collect();
    chosen.truncate(120);
    let mut values = strings();
    values.extend(numbers().iter().map(Value::to_string));
    let mut out = Vec::new();
    for (_, (from, to)) in chosen {
        for value in &values {
            let what = format!("byte {from} = {}", name(&Value::from(value.as_str())));
            out.push((what, format!("{}{value}{}", &text[..from], &text[to..])));
        }
    }
    out
}

/// A TOML text with one of its values replaced.
pub(crate) fn toml_mutants(text: &str) -> Vec<(String, String)> {
    let whole: Value = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    let mut all = Vec::new();
    pointers(&whole, "", &mut all);
    let mut out = Vec::new();
    for pointer in all.iter().filter(|p| !p.is_empty()) {
        for value in values() {
            let what = format!("{pointer} = {}", name(&value));
            let mut changed = whole.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            // What TOML has no form for is no mutant.
            if let Ok(text) = toml::to_string(&changed) {
                out.push((what, text));
            }
        }
    }
    out
}
