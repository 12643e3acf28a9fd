// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of a page: on a phone each row is a card, and each cell says what it is.
//!
//! Cells are markup: whoever fills them escapes texts (`xml`).

use std::fmt::Write as _;

use tailbound_report::escape::xml;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// The row's name, its heading.
    Name(&'static str),
    /// Words in one line.
    Words(&'static str),
    /// Words that are broken into lines.
    Text(&'static str),
    /// A figure.
    Figure(&'static str),
    /// What a phone leaves out.
    Aside(&'static str),
}

impl Column {
    fn head(self) -> &'static str {
        match self {
            Self::Name(head)
            | Self::Words(head)
            | Self::Text(head)
            | Self::Figure(head)
            | Self::Aside(head) => head,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Name(_) | Self::Words(_) => "w",
            Self::Text(_) => "long",
            Self::Figure(_) => "n",
            Self::Aside(_) => "long opt",
        }
    }
}

/// A table under construction.
pub(super) struct Listing {
    columns: Vec<Column>,
    rows: String,
}

impl Listing {
    /// An empty one.
    pub(super) fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: String::new() }
    }

    /// One more row, a cell a column.
    pub(super) fn row(&mut self, cells: &[String]) {
        self.rows.push_str("<tr>");
        for (column, cell) in self.columns.iter().zip(cells) {
            let (head, class) = (xml(column.head()), column.class());
            let _ = match column {
                Column::Name(_) => write!(self.rows, "<th scope=\"row\">{cell}</th>"),
                _ => write!(
                    self.rows,
                    "<td class=\"{class}\" data-head=\"{head}\"><div>{cell}</div></td>"
                ),
            };
        }
        self.rows.push_str("</tr>");
    }

    /// The table.
    pub(super) fn html(&self) -> String {
        let mut head = String::new();
        for column in &self.columns {
            let class = column.class();
            let _ = write!(head, "<th scope=\"col\" class=\"{class}\">{}</th>", xml(column.head()));
        }
        format!(
            "<div class=\"scroll\" tabindex=\"0\"><table class=\"cards\"><thead><tr>{head}</tr></thead><tbody>{}</tbody></table></div>",
            self.rows
        )
    }
}
