// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decision flow as a picture: questions down the left, where each yes leads on the right,
//! the way that was taken drawn strongly.
//!
//! Units: SVG user units. Texts are broken into lines here: SVG does not.
//! Source: figure 5 of McKenney 2008.

use std::fmt::Write as _;

use tailbound_stats::decide::flow::{FlowAnswer, Path, QUESTIONS, Step};
use tailbound_stats::decide::{Advice, Choice};

use super::text;
use crate::escape::xml;
use crate::pictures::Figure;
use crate::svg::canvas::Canvas;
use crate::table::{Table, wrap};
use tailbound_core::number::Real as _;

/// Height of a question with what is below it.
const ROW: f64 = 88.0;
const BOX: f64 = 58.0;
const LEFT: f64 = 10.0;
const TOP: f64 = 12.0;

/// Is this the way that was taken?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Taken,
    Other,
}

impl Way {
    fn taken_if(taken: bool) -> Self {
        if taken { Self::Taken } else { Self::Other }
    }
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeKind {
    Question,
    End,
}

/// The weight of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Normal,
    Bold,
}

struct Shape {
    width: f64,
    box_width: f64,
    end_width: f64,
    /// Letters that fit into a box.
    letters: usize,
    /// The same of the ends on the right.
    end_letters: usize,
    variant: &'static str,
}

const WIDE: Shape = Shape {
    width: 720.0,
    box_width: 440.0,
    end_width: 170.0,
    letters: 68,
    end_letters: 22,
    variant: "wide",
};
const NARROW: Shape = Shape {
    width: 344.0,
    box_width: 214.0,
    end_width: 88.0,
    letters: 33,
    end_letters: 10,
    variant: "narrow",
};

/// The picture of the way through the questions.
#[must_use]
pub fn figure(choice: &Choice) -> Figure {
    let path = &choice.path;
    let mut table = Table::new(&["question", "answer", "from", "leads to"]).with_words(&[1, 2, 3]);
    for s in &path.steps {
        let answer = if s.taken { word(s.known.answer) } else { "not asked" };
        let end = s.ends_in.map_or("next question", Advice::words);
        table.row(vec![
            s.question.to_owned(),
            answer.to_owned(),
            s.known.from.clone(),
            if s.taken { end } else { "" }.to_owned(),
        ]);
    }
    Figure {
        id: "flow",
        title: "Flow chart of the recommendation".to_owned(),
        caption: format!("{} {}", text::headline(path), path.because),
        wide: draw(path, &WIDE),
        narrow: draw(path, &NARROW),
        table,
        series: serde_json::Value::Array(Vec::new()),
    }
}

fn word(answer: FlowAnswer) -> &'static str {
    match answer {
        FlowAnswer::Yes => "yes",
        FlowAnswer::No => "no",
        FlowAnswer::Unknown => "unknown",
    }
}

fn draw(path: &Path, shape: &Shape) -> String {
    let rows = path.steps.len().real();
    let height = TOP + rows * ROW + BOX + 16.0;
    let words = format!("Decision flow; {}", text::headline(path));
    let canvas =
        Canvas { variant: shape.variant, words: &words, width: shape.width, height, data: "" };
    let mut out = canvas.open();
    let last_taken = path.steps.iter().rposition(|s| s.taken);
    let ended = path.steps.iter().any(|s| s.ends_in.is_some());
    for (i, step) in path.steps.iter().enumerate() {
        let top = TOP + i.real() * ROW;
        question(&mut out, step, top, shape);
        branch(&mut out, step, i, top, shape);
        // On to the next question, or past those that were not asked to the end.
        let on = Way::taken_if(last_taken.is_some_and(|last| i < last) || !ended);
        downward(&mut out, step, top, on, shape);
    }
    let top = TOP + rows * ROW;
    let reached = Way::taken_if(!ended);
    node(&mut out, LEFT, top, shape.box_width, reached, NodeKind::End);
    label(&mut out, LEFT + 12.0, top + 20.0, "Real time", reached, Weight::Bold);
    let words = "measure it under one's own load";
    label(&mut out, LEFT + 12.0, top + 36.0, words, Way::Other, Weight::Normal);
    out.push_str("</svg>");
    out
}

fn question(out: &mut String, step: &Step, top: f64, shape: &Shape) {
    let way = Way::taken_if(step.taken);
    node(out, LEFT, top, shape.box_width, way, NodeKind::Question);
    let bold = shape.letters * 5 / 6;
    let mut y = top + 18.0;
    for line in wrap(step.question, bold, "").into_iter().take(2) {
        label(out, LEFT + 12.0, y, &line, way, Weight::Bold);
        y += 14.0;
    }
    if step.taken {
        let from = if step.known.from.is_empty() {
            "neither measured nor answered"
        } else {
            &step.known.from
        };
        let room = ((top + BOX - 4.0 - y) / 13.0).floor().max(0.0);
        let mut lines = wrap(from, shape.letters, "").into_iter();
        let mut left = room;
        while left >= 0.0 {
            let Some(line) = lines.next() else { break };
            let line = if left < 1.0 && lines.len() > 0 { format!("{line} …") } else { line };
            label(out, LEFT + 12.0, y, &line, Way::Other, Weight::Normal);
            y += 13.0;
            left -= 1.0;
        }
    }
}

/// The way out to the right.
fn branch(out: &mut String, step: &Step, index: usize, top: f64, shape: &Shape) {
    // High utilisation leads to the question after barriers, not to an end of its own.
    let yes = QUESTIONS.get(index).filter(|q| q.id != "utilisation-high").map(|q| q.yes);
    let Some(yes) = yes else { return };
    let end = step.ends_in.unwrap_or(yes);
    let way = Way::taken_if(step.ends_in.is_some());
    let (x0, x1) = (LEFT + shape.box_width, shape.width - 10.0 - shape.end_width);
    let y = top + BOX / 2.0;
    edge(out, &format!("M{x0} {y}H{x1}"), way);
    let words = if way == Way::Taken { word(step.known.answer) } else { "yes" };
    label(out, x0 + 4.0, y - 5.0, words, way, Weight::Normal);
    node(out, x1, top + 6.0, shape.end_width, way, NodeKind::End);
    let lines = wrap(end.words(), shape.end_letters, "");
    let mut line_y = y + 4.0 - 7.0 * (lines.len().saturating_sub(1)).real();
    for line in &lines {
        label(out, x1 + 10.0, line_y, line, way, Weight::Bold);
        line_y += 14.0;
    }
}

fn downward(out: &mut String, step: &Step, top: f64, on: Way, shape: &Shape) {
    let x = LEFT + shape.box_width / 2.0;
    edge(out, &format!("M{x} {}V{}", top + BOX, top + ROW), on);
    let words = match (step.id, step.taken, step.known.answer) {
        (_, false, _) if on == Way::Taken => "not asked",
        ("utilisation-high", true, FlowAnswer::Yes) => "yes",
        (_, true, FlowAnswer::Unknown) if step.ends_in.is_none() => "unknown",
        _ => "no",
    };
    label(out, x + 6.0, top + BOX + 19.0, words, on, Weight::Normal);
}

fn node(out: &mut String, x: f64, y: f64, width: f64, way: Way, kind: NodeKind) {
    let (height, round) = match kind {
        NodeKind::End => (BOX - 12.0, 14),
        NodeKind::Question => (BOX, 4),
    };
    let (stroke, thick) = line_of(way);
    let _infallible = write!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{round}\" fill=\"var(--panel)\" stroke=\"{stroke}\" stroke-width=\"{thick}\"/>"
    );
}

/// Colour and width of a line.
fn line_of(way: Way) -> (&'static str, f64) {
    match way {
        Way::Taken => ("var(--c0)", 2.4),
        Way::Other => ("var(--line)", 1.0),
    }
}

fn edge(out: &mut String, d: &str, way: Way) {
    let (stroke, thick) = line_of(way);
    let _infallible =
        write!(out, "<path d=\"{d}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{thick}\"/>");
}

fn label(out: &mut String, x: f64, y: f64, words: &str, way: Way, weight: Weight) {
    let class = if way == Way::Taken { " class=\"name\"" } else { "" };
    let weight = if weight == Weight::Bold { " font-weight=\"600\"" } else { "" };
    let _infallible = write!(out, "<text x=\"{x}\" y=\"{y}\"{class}{weight}>{}</text>", xml(words));
}
