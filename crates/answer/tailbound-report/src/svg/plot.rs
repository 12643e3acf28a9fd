// SPDX-License-Identifier: MIT OR Apache-2.0
//! One plot: frame, axes, legend, and an inner area into which series are drawn.
//!
//! Units: SVG user units (one CSS pixel at natural size).
//! Layout: title and legend rows, the area (a nested `svg`, so that the script can zoom
//! it by its `viewBox` alone), tick labels, axis name. Dots are zero-length lines with
//! round caps: they keep their size and shape whatever the zoom.
//! Source: SVG 1.1 section 9.6 (zero-length subpaths), SVG 2 `vector-effect`.

use std::fmt::Write as _;

use super::canvas::Canvas;
use super::scale::{Scale, number};
use super::style;
use crate::escape::xml;
use tailbound_core::number::{Real as _, Whole as _};

/// Size and shape of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Width of the whole.
    pub width: f64,
    /// Height of the plot area.
    pub area_height: f64,
    /// Class of the variant, for style sheets: `wide` or `narrow`.
    pub variant: &'static str,
}

impl Layout {
    /// For screens and paper.
    pub const WIDE: Self = Self { width: 720.0, area_height: 280.0, variant: "wide" };
    /// For one of two beside each other.
    pub const HALF: Self = Self { width: 520.0, area_height: 230.0, variant: "wide" };
    /// For phones: the same letters on a smaller picture.
    pub const NARROW: Self = Self { width: 344.0, area_height: 240.0, variant: "narrow" };

    /// The same width with another height of the area.
    #[must_use]
    pub fn with_area_height(self, area_height: f64) -> Self {
        Self { area_height, ..self }
    }
}

/// Look of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The `n`th of several.
    Nth(usize),
    /// One of several in two respects: a colour for the first, a dash for the second.
    Pair {
        /// Number of the colour.
        colour: usize,
        /// Number of the dash, 0 for a solid line.
        dash: usize,
    },
    /// All together.
    Total,
    /// All together, seen another way: as `Total`, dashed.
    TotalDashed,
    /// What is to be looked at first.
    Worst,
}

impl Look {
    /// Classes of a line of this look.
    #[must_use]
    pub fn class(self) -> String {
        match self {
            Self::Nth(i) | Self::Pair { colour: i, .. } => style::class(i),
            Self::Total => "total thick".to_owned(),
            Self::TotalDashed => "total".to_owned(),
            Self::Worst => "worst".to_owned(),
        }
    }
    /// Its dash pattern as an attribute, empty for a solid line.
    #[must_use]
    pub fn dash(self) -> String {
        match self {
            Self::Nth(i) => style::dash(i),
            Self::Pair { dash, .. } => style::nth_dash(dash),
            Self::Total | Self::Worst => String::new(),
            Self::TotalDashed => " stroke-dasharray=\"3 3\"".to_owned(),
        }
    }
}

/// As [`number`], to two decimals: columns narrower than a pixel must not leave gaps.
fn hundredth(v: f64) -> String {
    if v.is_finite() { super::scale::trimmed(v, 2) } else { "0".to_owned() }
}

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const LEGEND_ROW: f64 = 17.0;
/// Average advance of a letter at 11 px, on the wide side so that labels do not touch.
const LETTER: f64 = 6.4;

/// How large the dots of a series are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DotSize {
    /// For many.
    Small,
    /// For few.
    Large,
}

/// The side of a rule that its words stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleSide {
    Above,
    Below,
}

/// What the legend shows of a series.
#[derive(Clone, Copy, Debug)]
enum Mark {
    Line,
    Dot,
}

/// A plot under construction.
#[derive(Debug)]
pub struct Plot {
    layout: Layout,
    x: Scale,
    y: Scale,
    x_name: String,
    y_name: String,
    legend: Vec<(String, Look, Mark)>,
    area: String,
    rules: String,
}

impl Plot {
    /// An empty plot.
    #[must_use]
    pub fn new(layout: Layout, x: Scale, y: Scale, x_name: &str, y_name: &str) -> Self {
        Self {
            layout,
            x,
            y,
            x_name: x_name.to_owned(),
            y_name: y_name.to_owned(),
            legend: Vec::new(),
            area: String::new(),
            rules: String::new(),
        }
    }

    /// Width of the plot area.
    #[must_use]
    pub fn area_width(&self) -> f64 {
        self.layout.width - LEFT - RIGHT
    }

    /// Horizontal place of `v` in the area.
    #[must_use]
    pub fn px(&self, v: f64) -> f64 {
        self.x.at(v) * self.area_width()
    }

    /// Vertical place of `v` in the area.
    #[must_use]
    pub fn py(&self, v: f64) -> f64 {
        (1.0 - self.y.at(v)) * self.layout.area_height
    }

    /// Fills rectangles `(from, to, low, high)`, `opacity` of the first colour.
    pub fn tiles(&mut self, tiles: &[(f64, f64, f64, f64)], opacity: f64) {
        let mut d = String::new();
        for &(from, to, low, high) in tiles {
            let (x, y) = (self.px(from), self.py(high));
            let (right, bottom) = (self.px(to), self.py(low));
            let _ = write!(
                d,
                "M{} {}H{}V{}H{}Z",
                hundredth(x),
                number(y),
                hundredth(right),
                number(bottom),
                hundredth(x)
            );
        }
        if !d.is_empty() {
            let _ = write!(
                self.area,
                "<path d=\"{d}\" style=\"fill:var(--c0);fill-opacity:{opacity:.2}\"/>"
            );
        }
    }

    /// Names a series in the legend.
    pub fn name(&mut self, name: &str, look: Look) {
        self.legend.push((name.to_owned(), look, Mark::Line));
    }

    /// Names a series that has dots alone.
    pub fn name_dots(&mut self, name: &str, look: Look) {
        self.legend.push((name.to_owned(), look, Mark::Dot));
    }

    /// Draws a line through `points` (values); a `None` breaks it. A point that stands alone is a dot.
    pub fn line(&mut self, points: &[Option<(f64, f64)>], look: Look) {
        let mut d = String::new();
        let mut pen_down = false;
        for point in points {
            match point {
                Some((x, y)) => {
                    let letter = if pen_down { 'L' } else { 'M' };
                    let (x, y) = (number(self.px(*x)), number(self.py(*y)));
                    let _ = write!(d, "{letter}{x} {y}");
                    pen_down = true;
                }
                None => pen_down = false,
            }
        }
        self.path(&d, look);
        let at = |i: Option<usize>| i.and_then(|i| points.get(i).copied().flatten());
        let is_alone = |i: usize| at(i.checked_sub(1)).is_none() && at(Some(i + 1)).is_none();
        let alone = (0..points.len()).filter(|i| is_alone(*i)).filter_map(|i| at(Some(i)));
        self.dots(&alone.collect::<Vec<_>>(), look, DotSize::Small);
    }

    /// Draws horizontal steps `(from, to, height)`; consecutive steps that touch are joined.
    pub fn steps(&mut self, steps: &[(f64, f64, f64)], look: Look) {
        let mut d = String::new();
        let mut end = f64::NAN;
        for &(from, to, height) in steps {
            let (x0, x1, y) = (self.px(from), self.px(to), number(self.py(height)));
            if (x0 - end).abs() < 0.05 {
                let _ = write!(d, "V{y}H{}", number(x1));
            } else {
                let _ = write!(d, "M{} {y}H{}", number(x0), number(x1));
            }
            end = x1;
        }
        self.path(&d, look);
    }

    /// Fills the area between a lower and an upper line, given at ascending places.
    pub fn band(&mut self, points: &[(f64, f64, f64)], look: Look) {
        let mut d = String::new();
        let upper = points.iter().map(|(x, _, high)| (*x, *high));
        let lower = points.iter().rev().map(|(x, low, _)| (*x, *low));
        for (x, y) in upper.chain(lower) {
            let letter = if d.is_empty() { 'M' } else { 'L' };
            let _ = write!(d, "{letter}{} {}", number(self.px(x)), number(self.py(y)));
        }
        if !d.is_empty() {
            let _ = write!(self.area, "<path class=\"fill {}\" d=\"{d}Z\"/>", look.class());
        }
    }

    fn path(&mut self, d: &str, look: Look) {
        if !d.is_empty() {
            let _ =
                write!(self.area, "<path class=\"s {}\"{} d=\"{d}\"/>", look.class(), look.dash());
        }
    }

    /// Draws a dot at every point.
    pub fn dots(&mut self, points: &[(f64, f64)], look: Look, dots: DotSize) {
        if points.is_empty() {
            return;
        }
        let mut d = String::new();
        for &(x, y) in points {
            let _ = write!(d, "M{} {}h0.01", number(self.px(x)), number(self.py(y)));
        }
        let size = match dots {
            DotSize::Small => " small",
            DotSize::Large => "",
        };
        // Of the look only the colour: a dashed dot could be a gap.
        let _ = write!(self.area, "<path class=\"dots{size} {}\" d=\"{d}\"/>", look.class());
    }

    /// A vertical line at `v` with words beside it; beyond the scale, nothing.
    pub fn rule_x(&mut self, v: f64, words: &str) {
        if !self.x.holds(v) {
            return;
        }
        let x = self.px(v);
        let h = self.layout.area_height;
        let _ =
            write!(self.area, "<path class=\"deadline\" d=\"M{} 0V{}\"/>", number(x), number(h));
        let length = words.chars().count().real() * LETTER;
        let fits_right = x + 5.0 + length < self.area_width();
        let (anchor, dx) = if fits_right { ("start", 5.0) } else { ("end", -5.0) };
        self.rule_label(x + dx, 13.0, anchor, words, &format!("data-x=\"{v}\" data-dx=\"{dx}\""));
    }

    /// A horizontal line at `v` with words on it.
    pub fn rule_y(&mut self, v: f64, words: &str) {
        let side = if self.py(v) <= 18.0 { RuleSide::Below } else { RuleSide::Above };
        self.rule_y_with(v, words, side);
    }

    /// The same with words below it, where what lies above is drawn.
    pub fn rule_y_below(&mut self, v: f64, words: &str) {
        let has_room = self.py(v) < self.layout.area_height - 18.0;
        self.rule_y_with(v, words, if has_room { RuleSide::Below } else { RuleSide::Above });
    }

    fn rule_y_with(&mut self, v: f64, words: &str, side: RuleSide) {
        if !self.y.holds(v) {
            return;
        }
        let y = self.py(v);
        let w = self.area_width();
        let _ =
            write!(self.area, "<path class=\"deadline\" d=\"M0 {}H{}\"/>", number(y), number(w));
        let dy = match side {
            RuleSide::Above => -5.0,
            RuleSide::Below => 13.0,
        };
        self.rule_label(w - 5.0, y + dy, "end", words, &format!("data-y=\"{v}\" data-dy=\"{dy}\""));
    }

    fn rule_label(&mut self, x: f64, y: f64, anchor: &str, words: &str, data: &str) {
        let _ = write!(
            self.rules,
            "<text class=\"deadline-label\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" {data}>{}</text>",
            number(x),
            number(y),
            xml(words)
        );
    }

    /// The legend, and how high it came out.
    fn legend(&self) -> (String, f64) {
        let mut out = String::new();
        let (mut x, mut row) = (0.0, 0.0);
        for (name, look, mark) in &self.legend {
            let length = 30.0 + name.chars().count().real() * LETTER + 12.0;
            if x > 0.0 && x + length > self.area_width() {
                (x, row) = (0.0, row + 1.0);
            }
            let y = row * LEGEND_ROW + 8.0;
            let _ = match mark {
                Mark::Line => {
                    let (class, dash) = (look.class(), look.dash());
                    let left = number(LEFT + x);
                    write!(out, "<path class=\"s {class}\"{dash} d=\"M{left} {}h24\"/>", number(y))
                }
                Mark::Dot => {
                    let (class, middle) = (look.class(), number(LEFT + x + 12.0));
                    write!(out, "<path class=\"dots {class}\" d=\"M{middle} {}h0.01\"/>", number(y))
                }
            };
            let _ = write!(
                out,
                "<text class=\"name\" x=\"{}\" y=\"{}\">{}</text>",
                number(LEFT + x + 29.0),
                number(y + 4.0),
                xml(name)
            );
            x += length;
        }
        let rows = if self.legend.is_empty() { 0.0 } else { row + 1.0 };
        (out, rows * LEGEND_ROW)
    }

    fn axes(&self, top: f64) -> (String, String) {
        let (w, h) = (self.area_width(), self.layout.area_height);
        let (mut grid, mut text) = ("<g class=\"gx\">".to_owned(), "<g class=\"tx\">".to_owned());
        let label = if self.x.unit() == super::Unit::Utc { 110.0 } else { 68.0 };
        let (across, down) = ((w / label).whole_usize(), (h / 34.0).whole_usize());
        for t in self.x.ticks(across) {
            let x = LEFT + self.px(t.value);
            let _ = write!(grid, "<path d=\"M{} {}v{}\"/>", number(x), number(top), number(h));
            if t.labelled {
                // A label at the right end would reach beyond the picture.
                let at_end = self.px(t.value) > w - 24.0;
                let (anchor, x) = if at_end { ("end", LEFT + w + RIGHT) } else { ("middle", x) };
                let _ = write!(
                    text,
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
                    number(x),
                    number(top + h + 15.0),
                    xml(&self.x.unit().label(t.value))
                );
            }
        }
        grid.push_str("</g>");
        text.push_str("</g>");
        for t in self.y.ticks(down) {
            let y = top + self.py(t.value);
            if t.labelled {
                let _ = write!(grid, "<path d=\"M{} {}h{}\"/>", number(LEFT), number(y), number(w));
                let _ = write!(
                    text,
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                    number(LEFT - 6.0),
                    number(y + 4.0),
                    xml(&self.y.unit().label(t.value))
                );
            }
        }
        (grid, text)
    }

    /// The whole as an `svg` element; `words` describe it to those who do not see it.
    #[must_use]
    pub fn finish(self, words: &str) -> String {
        let (legend, legend_height) = self.legend();
        // The name of the vertical axis stands above it: turned letters are read badly.
        let top = legend_height + 22.0;
        let (w, h) = (self.area_width(), self.layout.area_height);
        let height = top + h + 38.0;
        let (grid, ticks) = self.axes(top);
        let data = format!(
            " data-area=\"{} {} {} {}\" data-x=\"{}\" data-y=\"{}\"",
            number(LEFT),
            number(top),
            number(w),
            number(h),
            scale_words(&self.x),
            scale_words(&self.y),
        );
        let (variant, width) = (self.layout.variant, self.layout.width);
        let mut out = Canvas { variant, words, width, height, data: &data }.open();
        out.push_str(&legend);
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{}\">{}</text>",
            number(4.0),
            number(top - 8.0),
            xml(&self.y_name)
        );
        let _ = write!(
            out,
            "<g class=\"grid\">{grid}</g><g class=\"ticks\">{ticks}</g>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            number(LEFT + w / 2.0),
            number(top + h + 32.0),
            xml(&self.x_name)
        );
        let (left, top, w, h) = (number(LEFT), number(top), number(w), number(h));
        let _ = write!(
            out,
            "<rect class=\"frame\" x=\"{left}\" y=\"{top}\" width=\"{w}\" height=\"{h}\"/>\
             <svg class=\"area\" x=\"{left}\" y=\"{top}\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" preserveAspectRatio=\"none\" overflow=\"hidden\">{}</svg>\
             <g class=\"rules\" transform=\"translate({left} {top})\">{}</g></svg>",
            self.area, self.rules
        );
        out
    }
}

fn scale_words(s: &Scale) -> String {
    let kind = if s.is_log() { "log" } else { "linear" };
    format!("{kind} {} {} {}", s.lo(), s.hi(), s.unit().word())
}

/// A document of its own: brings its name space and its style along, which a page has already.
#[must_use]
pub fn standalone(svg: &str) -> String {
    let style = format!("<style>{}{}</style>", style::VARIABLES, style::PICTURE);
    let open = "<svg xmlns=\"http://www.w3.org/2000/svg\" ";
    let body = svg.strip_prefix("<svg ").unwrap_or(svg);
    match body.split_once('>') {
        Some((attributes, rest)) => {
            format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{open}{attributes}>{style}{rest}\n"
            )
        }
        None => String::new(),
    }
}
