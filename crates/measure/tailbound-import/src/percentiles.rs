// SPDX-License-Identifier: MIT OR Apache-2.0
//! The percentile distribution that HdrHistogram's libraries print, as columns or as comma-separated values.
//!
//! Units: none in the file: an option. Layout: `Value Percentile TotalCount 1/(1-Percentile)`, then rows whose count is of
//! all values up to theirs, the last of them of percentile 1; `#[Mean = …, StdDeviation = …]`, `#[Max = …, Total count = …]`.
//! A row's value was seen; of values between two rows only how many there are is known. Where each row holds one value more than the one
//! above, every value is known.
//! Not here: logs of it (`.hlog`), which are packed. Source: HdrHistogram 2.x (Java), HdrHistogram_c 0.11; wrk2.

use tailbound_core::Context;
use tailbound_core::number::Real as _;

use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::fields;
use crate::read::Options;
use crate::text::{self, Lines};

/// A row, its value in ns.
struct Row {
    ns: i64,
    p: f64,
    count: u64,
}

/// Is it the line that names the columns?
pub(crate) fn begins(line: &str) -> bool {
    let has = |w: &str| line.contains(w);
    // A stamp may stand before it.
    let first = line.starts_with("Value") || line.starts_with("\"Value\"");
    first && has("Percentile") && has("TotalCount") && has("1/(1-Percentile)")
}

/// What parts the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Spaces,
    Comma,
}

fn words(line: &str, separator: Separator) -> Vec<&str> {
    let parts = |c: char| match separator {
        Separator::Spaces => c.is_whitespace(),
        Separator::Comma => c == ',',
    };
    line.split(parts).map(|w| w.trim().trim_matches('"')).filter(|w| !w.is_empty()).collect()
}

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("HdrHistogram", "percentile text");
    let (mut inside, mut ended) = (false, false);
    let mut separator = Separator::Spaces;
    let mut values: Vec<(String, f64, u64, u64)> = Vec::new();
    let (mut mean, mut max, mut total) = (None, None, None);
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if begins(line) {
            if !values.is_empty() {
                fields::run_without_figures(&mut draft, n);
                break;
            }
            inside = true;
            separator = if line.contains(',') { Separator::Comma } else { Separator::Spaces };
        } else if let Some(rest) = line.strip_prefix("#[").filter(|_| inside) {
            ended = true;
            let after = |key: &str| {
                let (_, value) = rest.split_once(key)?.1.split_once('=')?;
                value.split([',', ']']).next().map(|v| v.trim().to_owned())
            };
            mean = mean.or(after("Mean"));
            max = max.or(after("Max"));
            total = total.or(after("Total count"));
        } else if inside && line.starts_with(|c: char| c.is_ascii_digit()) && !ended {
            let words = words(line, separator);
            let [value, p, count, ..] = words.as_slice() else {
                return Err(Fault::line(
                    n,
                    format!("`{}` is not a row of percentiles", excerpt(line)),
                ));
            };
            let p: f64 = p.parse().ok().filter(|p| (0.0..=1.0).contains(p)).ok_or_else(|| {
                let comma = text::has_comma(p) && separator == Separator::Spaces;
                let why = if comma { text::COMMA } else { "is no share from 0 to 1" };
                Fault::line(n, format!("`{}` {why}", excerpt(p)))
            })?;
            values.push(((*value).to_owned(), p, text::count(count, n, "the count")?, n));
        }
    }
    let Some(unit_ns) = options.unit_ns else { return Err(no_unit(&values)) };
    draft.cut_off = !ended || values.last().is_none_or(|v| v.1 < 1.0);
    let total = total.and_then(|t| t.parse::<u64>().ok());
    let mean_ns = mean.and_then(|m| m.parse::<f64>().ok()).map(|m| m * unit_ns.real());
    let rows = rows(&values, unit_ns)?;
    let max_ns = max.and_then(|m| text::scaled(&m, unit_ns));
    finish(&mut draft, &rows, &FooterFigures { total, mean_ns, max_ns }, unit_ns)?;
    options.apply(&mut draft);
    Ok(draft)
}

/// The libraries do not know the unit of the values they count.
fn no_unit(values: &[(String, f64, u64, u64)]) -> Fault {
    let known = match (values.first(), values.last()) {
        (Some(first), Some(last)) => format!(
            "{} values from {} to {}, of a unit that the file does not name",
            last.2,
            excerpt(&first.0),
            excerpt(&last.0)
        ),
        _ => "the file does not name the unit of its values".to_owned(),
    };
    Fault::file(format!("{known}: give it with --unit ns, us, ms or s"))
}

fn rows(values: &[(String, f64, u64, u64)], unit_ns: u64) -> Result<Vec<Row>, Fault> {
    let mut out: Vec<Row> = Vec::new();
    for (value, p, count, n) in values {
        let row = Row { ns: text::ns(value, unit_ns, *n, "the value")?, p: *p, count: *count };
        if out.last().is_some_and(|l| row.ns < l.ns || row.p < l.p || row.count < l.count) {
            return Err(Fault::line(*n, "the row does not follow the one above"));
        }
        out.push(row);
    }
    Ok(out)
}

/// What the lines behind the rows say, as far as they do.
struct FooterFigures {
    total: Option<u64>,
    mean_ns: Option<f64>,
    max_ns: Option<i64>,
}

fn finish(
    draft: &mut Draft,
    rows: &[Row],
    &FooterFigures { total, mean_ns, max_ns }: &FooterFigures,
    unit_ns: u64,
) -> Result<(), Fault> {
    let Some(last) = rows.last() else {
        return Err(Fault::file(
            "no row of percentiles: the histogram was empty, or the file was cut off",
        ));
    };
    let min_ns = rows.first().map(|r| r.ns);
    let mut d = coarse();
    let mut before = 0;
    let single = rows.iter().all(|r| {
        let more = r.count - before;
        before = r.count;
        more <= 1
    });
    if single && last.p >= 1.0 {
        let mut before = 0;
        for r in rows {
            d.add_many(r.ns, r.count - before);
            before = r.count;
        }
    }
    let stated = Stated {
        n: Some(total.unwrap_or(last.count).max(last.count)),
        min_ns,
        max_ns: max_ns.max(Some(last.ns)),
        mean_ns,
        resolution_ns: 1,
        beyond_ns: min_ns,
    };
    let exact = d.n > 0;
    let mut d = draft.settle("The histogram", d, stated);
    if !exact {
        let mut pairs: Vec<(f64, i64)> = Vec::new();
        for r in rows.iter().filter(|r| r.p > 0.0 && r.p < 1.0) {
            // Percentiles are printed with twelve decimals: beyond, two rows look alike.
            pairs.pop_if(|(p, _)| *p >= r.p);
            pairs.push((r.p, r.ns));
        }
        draft.state("The histogram", &mut d, pairs);
        draft.lose("Of values between two rows only their number is in the file.");
    }
    draft.thread(0, None, Context::User, d)?;
    draft.cut_values(unit_ns);
    draft.lose("HdrHistogram keeps some significant digits of each value, often three; how many is not in the file.");
    draft.doubt(
        "source-unknown-quantity",
        "What was measured, how often and against which schedule is not in the file.".to_owned(),
        "Whether late events delayed the next ones without being counted is unknown.",
        "Import the file of the tool that measured, or a run file.",
    );
    Ok(())
}
