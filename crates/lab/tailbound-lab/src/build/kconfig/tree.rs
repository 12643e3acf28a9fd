// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a kernel's Kconfig files: for each option, under which conditions it can be on.
//!
//! Of the language what an explanation needs: dependencies with those of the
//! menus, ifs and choices around, prompts, selects. Values and ranges are left to the
//! kernel's own tool, which alone decides; this only explains.
//! Source: Documentation/kbuild/kconfig-language.rst.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tailbound_core::limits;
use tailbound_sys::given;

use super::expression::Expression;

/// All options of a kernel for one architecture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) symbols: BTreeMap<String, Symbol>,
    /// Members of each choice.
    pub(crate) choices: Vec<Vec<String>>,
    /// Files that could not be read and conditions that could not be understood.
    pub(crate) gaps: Vec<String>,
}

/// One option.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbol {
    pub(crate) definitions: Vec<Definition>,
    /// Who switches it on, and on which condition.
    pub(crate) selected_by: Vec<(String, Option<Expression>)>,
}

/// One place an option is defined at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definition {
    /// File and line.
    pub(crate) place: String,
    /// All of these must hold.
    pub(crate) depends: Vec<Expression>,
    /// Can it be chosen by hand, and when: none, always (empty), or on these conditions.
    pub(crate) prompt: Option<Vec<Expression>>,
    /// The choice it is a member of.
    pub(crate) choice: Option<usize>,
}

/// A menu, an if or a choice that is open.
#[derive(Clone, Debug, Default)]
struct Frame {
    depends: Vec<Expression>,
    visible: Vec<Expression>,
    choice: Option<usize>,
}

/// What a condition is of, within a menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConditionOf {
    /// `depends on`.
    Symbols,
    /// `visible if`.
    Prompts,
}

/// What the attributes that follow belong to.
enum Entry {
    Nothing,
    Symbol(String),
    Frame,
}

struct Reader<'a> {
    root: &'a Path,
    arch: &'a str,
    tree: Tree,
    frames: Vec<Frame>,
    entry: Entry,
    depth: usize,
}

impl Tree {
    /// Reads the Kconfig files of the source in `root` for `arch` (`x86`, `arm64`, `arm`).
    pub(crate) fn read(root: &Path, arch: &str) -> Self {
        let mut reader = Reader {
            root,
            arch,
            tree: Self::default(),
            frames: Vec::new(),
            entry: Entry::Nothing,
            depth: 0,
        };
        reader.file("Kconfig");
        reader.tree
    }
}

impl Reader<'_> {
    fn file(&mut self, name: &str) {
        let name = name.replace("$(SRCARCH)", self.arch).replace("$(HEADER_ARCH)", self.arch);
        let path: PathBuf = self.root.join(&name);
        match given::text(&path, limits::TEXT_BYTES_MAX) {
            // The kernel nests about six deep; the bound is against a loop.
            Ok(text) if self.depth < 32 => {
                self.depth += 1;
                self.lines(&name, &text);
                self.depth -= 1;
            }
            Ok(_) => self.tree.gaps.push(format!("{name}: sourced too deeply")),
            Err(e) => self.tree.gaps.push(format!("{name}: {e}")),
        }
    }

    fn lines(&mut self, name: &str, text: &str) {
        let mut help: Option<Option<usize>> = None;
        let mut joined = String::new();
        for (number, raw) in text.lines().enumerate() {
            let line = raw.replace('\t', "        ");
            let indent = line.len() - line.trim_start().len();
            if let Some(base) = help {
                // The first line of a help text sets its indentation; less ends it.
                if line.trim().is_empty() {
                    continue;
                }
                let base = base.unwrap_or(indent);
                if indent >= base && indent > 0 {
                    help = Some(Some(base));
                    continue;
                }
                help = None;
            }
            joined.push_str(line.trim());
            if joined.ends_with('\\') {
                joined.pop();
                continue;
            }
            let whole = std::mem::take(&mut joined);
            if matches!(whole.as_str(), "help" | "---help---") {
                help = Some(None);
            } else {
                self.line(name, number + 1, &whole);
            }
        }
    }

    fn line(&mut self, name: &str, number: usize, line: &str) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "config" | "menuconfig" => self.open_symbol(name, number, rest),
            "menu" => self.open(Frame::default()),
            "choice" => {
                self.tree.choices.push(Vec::new());
                let choice = Some(self.tree.choices.len() - 1);
                self.open(Frame { choice, ..Frame::default() });
            }
            "if" => {
                let depends = self.condition(name, number, rest).into_iter().collect();
                self.open(Frame { depends, ..Frame::default() });
                self.entry = Entry::Nothing;
            }
            "endif" | "endmenu" | "endchoice" => {
                self.frames.pop();
                self.entry = Entry::Nothing;
            }
            "source" | "osource" => {
                self.entry = Entry::Nothing;
                self.file(rest.trim_matches('"'));
            }
            "comment" | "mainmenu" => self.entry = Entry::Nothing,
            "depends" | "visible" => {
                let text = rest.strip_prefix("on").or_else(|| rest.strip_prefix("if"));
                let Some(e) = self.condition(name, number, text.unwrap_or(rest)) else { return };
                let of =
                    if word == "visible" { ConditionOf::Prompts } else { ConditionOf::Symbols };
                self.add_condition(of, e);
            }
            "bool" | "tristate" | "int" | "hex" | "string" | "prompt" => {
                self.add_prompt(name, number, rest);
            }
            "select" => self.add_select(name, number, rest),
            _ => {}
        }
    }

    fn open(&mut self, frame: Frame) {
        self.frames.push(frame);
        self.entry = Entry::Frame;
    }

    fn open_symbol(&mut self, name: &str, number: usize, symbol: &str) {
        let choice = self.frames.iter().rev().find_map(|f| f.choice);
        if let Some(members) = choice.and_then(|c| self.tree.choices.get_mut(c)) {
            members.push(symbol.to_owned());
        }
        let definition = Definition {
            place: format!("{name}:{number}"),
            depends: self.frames.iter().flat_map(|f| f.depends.iter().cloned()).collect(),
            prompt: None,
            choice,
        };
        let known = self.tree.symbols.entry(symbol.to_owned()).or_default();
        known.definitions.push(definition);
        self.entry = Entry::Symbol(symbol.to_owned());
    }

    fn definition(&mut self) -> Option<&mut Definition> {
        let Entry::Symbol(name) = &self.entry else { return None };
        self.tree.symbols.get_mut(name)?.definitions.last_mut()
    }

    fn add_condition(&mut self, of: ConditionOf, e: Expression) {
        if let Some(definition) = self.definition() {
            definition.depends.push(e);
        } else if matches!(self.entry, Entry::Frame)
            && let Some(frame) = self.frames.last_mut()
        {
            match of {
                ConditionOf::Prompts => frame.visible.push(e),
                ConditionOf::Symbols => frame.depends.push(e),
            }
        }
    }

    fn add_prompt(&mut self, name: &str, number: usize, rest: &str) {
        // `bool` alone is a type without a prompt.
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { return };
        let after = rest.get(1..).and_then(|r| r.rsplit_once(quote)).map_or("", |(_, a)| a);
        let mut conditions: Vec<Expression> =
            self.frames.iter().flat_map(|f| f.visible.iter().cloned()).collect();
        if let Some(text) = after.trim().strip_prefix("if ") {
            conditions.extend(self.condition(name, number, text));
        }
        if let Some(definition) = self.definition() {
            definition.prompt = Some(conditions);
        }
    }

    fn add_select(&mut self, name: &str, number: usize, rest: &str) {
        let Entry::Symbol(by) = &self.entry else { return };
        let by = by.clone();
        let (target, condition) = match rest.split_once(" if ") {
            Some((target, text)) => (target.trim(), self.condition(name, number, text)),
            None => (rest, None),
        };
        let known = self.tree.symbols.entry(target.to_owned()).or_default();
        known.selected_by.push((by, condition));
    }

    fn condition(&mut self, name: &str, number: usize, text: &str) -> Option<Expression> {
        // A comment may follow; `#` has no other meaning outside quotes.
        let text = match text.find(" #") {
            Some(at) if !text.contains('"') => text.get(..at).unwrap_or(text),
            _ => text,
        };
        let parsed = Expression::parse(text);
        if parsed.is_none() {
            self.tree.gaps.push(format!("{name}:{number}: condition `{text}`"));
        }
        parsed
    }
}
