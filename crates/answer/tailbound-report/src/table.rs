// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table: once for people with a browser, once for people with a terminal.
//!
//! The first column names the row; the others hold figures and are aligned right.
//! Not here: what is in it.

use std::fmt::Write as _;

use crate::escape::{terminal, xml};
use crate::site::{self, Subject};

/// A table of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns.
    pub head: Vec<String>,
    /// Rows as long as `head`; a shorter one is filled up with nothing.
    pub rows: Vec<Vec<String>>,
    /// Columns of words rather than figures, counted from 0, besides the first.
    pub words: Vec<usize>,
    /// Cells with the name of something that the site may have a page about.
    pub named: Vec<NamedCell>,
}

/// A cell, by row and column from 0, and what its text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCell {
    row: usize,
    column: usize,
    subject: Subject,
    id: String,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|h| (*h).to_owned()).collect(), ..Self::default() }
    }

    /// Says that these columns hold words.
    #[must_use]
    pub fn with_words(mut self, columns: &[usize]) -> Self {
        self.words = columns.to_vec();
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Says that this cell of the last row names `id`.
    pub fn naming(&mut self, column: usize, subject: Subject, id: &str) {
        let row = self.rows.len().saturating_sub(1);
        self.named.push(NamedCell { row, column, subject, id: id.to_owned() });
    }

    /// Rows as columns and columns as rows: for few rows of many figures.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let cell = |row: &[String], i: usize| row.get(i).cloned().unwrap_or_default();
        let mut out = Self::default();
        for i in 0..self.head.len() {
            let mut row = vec![cell(&self.head, i)];
            row.extend(self.rows.iter().map(|r| cell(r, i)));
            if i == 0 { out.head = row } else { out.rows.push(row) }
        }
        out
    }

    /// As HTML; it scrolls by itself where it is wider than the page.
    #[must_use]
    pub fn html(&self) -> String {
        let class = |i: usize| if self.words.contains(&i) { " class=\"w\"" } else { "" };
        let mut out = String::from("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>");
        for (i, h) in self.head.iter().enumerate() {
            let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(i), xml(h));
        }
        out.push_str("</tr></thead><tbody>");
        for (at, row) in self.rows.iter().enumerate() {
            out.push_str("<tr>");
            for i in 0..self.head.len() {
                let words = row.get(i).map_or("", String::as_str);
                let named = self.named.iter().find(|n| (n.row, n.column) == (at, i));
                let cell =
                    named.map_or_else(|| xml(words), |n| site::linked(n.subject, &n.id, words));
                if i == 0 {
                    let _ = write!(out, "<th scope=\"row\">{cell}</th>");
                } else {
                    let _ = write!(out, "<td{}>{cell}</td>", class(i));
                }
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table></div>");
        out
    }

    /// As lines of text, two spaces between columns, or one where that is enough to fit. Columns that do not fit into `width`
    /// follow below under the row names again, so that no line is ever wrapped or cut.
    #[must_use]
    pub fn text(&self, width: usize) -> Vec<String> {
        let cell = |row: &[String], i: usize| terminal(row.get(i).map_or("", String::as_str));
        let wide = |i: usize| {
            let rows = self.rows.iter().map(|r| columns(&cell(r, i))).max().unwrap_or(0);
            rows.max(columns(&cell(&self.head, i)))
        };
        let widths: Vec<usize> = (0..self.head.len()).map(wide).collect();
        let first = widths.first().copied().unwrap_or(0);
        let others = widths.len().saturating_sub(1);
        let all: usize = widths.iter().sum();
        // One space between columns where that saves folding.
        let gap = if all + 2 * others > width && all + others <= width { 1 } else { 2 };
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut used = usize::MAX;
        for (i, w) in widths.iter().enumerate().skip(1) {
            if used.saturating_add(w + gap) > width {
                blocks.push(Vec::new());
                used = first;
            }
            used += w + gap;
            if let Some(block) = blocks.last_mut() {
                block.push(i);
            }
        }
        let mut out = Vec::new();
        for block in &blocks {
            for row in std::iter::once(&self.head).chain(&self.rows) {
                let mut line = pad(&cell(row, 0), first, Align::Left);
                for &i in block {
                    line.push_str(&" ".repeat(gap));
                    let w = widths.get(i).copied().unwrap_or(0);
                    let align = if self.words.contains(&i) { Align::Left } else { Align::Right };
                    line.push_str(&pad(&cell(row, i), w, align));
                }
                out.push(line.trim_end().to_owned());
            }
        }
        out
    }
}

/// Columns a text takes on a terminal: two for the wide letters of East Asia and for most pictographs.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.chars()
        .map(|c| match u32::from(c) {
            0x0300..=0x036f | 0x200b..=0x200d | 0xfe00..=0xfe0f => 0,
            0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
            0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff => 2,
            0x20000..=0x3fffd => 2,
            _ => 1,
        })
        .sum()
}

/// Cuts a text to `width` columns; what is cut shows as `…`.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = columns(c.encode_utf8(&mut [0; 4]));
        if used + w + 1 > width {
            break;
        }
        out.push(c);
        used += w;
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// The side of its column that a text stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// Fills a text up to `width` columns.
#[must_use]
pub fn pad(text: &str, width: usize, align: Align) -> String {
    let fill = " ".repeat(width.saturating_sub(columns(text)));
    match align {
        Align::Left => format!("{text}{fill}"),
        Align::Right => format!("{fill}{text}"),
    }
}

/// Breaks a text into lines of at most `width` columns at spaces; a longer word stays whole.
#[must_use]
pub fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let own_indent = text.len() - text.trim_start().len();
    let mut line = text.get(..own_indent).unwrap_or("").to_owned();
    let mut begun = false;
    for word in text.split_whitespace() {
        if begun && columns(&line) + 1 + columns(word) > width {
            out.push(std::mem::replace(&mut line, indent.to_owned()));
        } else if begun {
            line.push(' ');
        }
        line.push_str(word);
        begun = true;
    }
    if !line.trim().is_empty() {
        out.push(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_table_is_folded_not_cut() {
        let mut t = Table::new(&["", "first", "second", "third"]);
        t.row(["CPU 0", "1", "22", "333"].map(str::to_owned).to_vec());
        for width in [12, 20, 80] {
            let lines = t.text(width);
            assert!(lines.iter().all(|l| columns(l) <= width.max(14)), "{lines:?}");
            assert!(lines.join(" ").contains("333"));
        }
        assert_eq!(t.text(80), ["       first  second  third", "CPU 0      1      22    333"]);
    }

    #[test]
    fn markup_in_cells_stays_text() {
        let mut t = Table::new(&["<x>"]);
        t.row(vec!["<script>".to_owned()]);
        assert!(!t.html().contains("<script>"));
    }

    #[test]
    fn cutting_and_wrapping_count_columns() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(columns(&cut("日本語日本語", 5)), 5);
        assert_eq!(wrap("a bb ccc dddd", 6, ""), ["a bb", "ccc", "dddd"]);
    }
}
