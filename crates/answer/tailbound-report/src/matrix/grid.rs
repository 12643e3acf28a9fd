// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cells in their places: a row for each kernel with its options, a column for each load.
//!
//! Rows and columns stand in the order in which the cells name them first.
//! Not here: words and tables.

use tailbound_core::{Distribution, Run};
use tailbound_stats::Summary;

use crate::pictures::Series;
use crate::svg::plot::Look;

/// Where a run belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The kernel as it was asked for: `debian:6.12-rt`.
    pub kernel: String,
    /// The load: `hackbench`; empty for none.
    pub load: String,
    /// What was added to the kernel's command line: `preempt=none`; empty for nothing.
    pub append: String,
}

/// Why a combination has no run, in the words of whoever was to make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellFailure {
    /// Its words.
    pub why: String,
}

/// A combination that was asked for, and what became of it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Where it belongs.
    pub labels: Labels,
    /// Its run file, or what a failed one left; if there is anything.
    pub file: Option<String>,
    /// Its run, or why there is none.
    pub run: Result<Run, CellFailure>,
}

/// A row: a kernel with its options.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) labels: Labels,
    pub(super) look: Look,
    /// Several kernels have the same options, which are then told once for all.
    options_shared: bool,
}

impl Variant {
    /// `debian:6.12 preempt=none`
    pub(super) fn name(&self) -> String {
        let Labels { kernel, append, .. } = &self.labels;
        let kernel = if kernel.is_empty() { "unnamed kernel" } else { kernel };
        if append.is_empty() || self.options_shared {
            kernel.to_owned()
        } else {
            format!("{kernel} {append}")
        }
    }
}

/// A load for people.
pub(super) fn load_name(load: &str) -> &str {
    if ["", "none"].contains(&load) { "no load" } else { load }
}

/// What stands in a place.
#[derive(Clone, Debug)]
pub(super) enum GridSlot {
    /// Figures.
    Measured(Box<CellFigures>),
    /// It was tried in vain, and why.
    Failed(String),
    /// No cell is for this place.
    NotRun,
}

/// Figures of a cell.
#[derive(Clone, Debug)]
pub(super) struct CellFigures {
    /// Position of the cell.
    pub(super) cell: usize,
    pub(super) due: Distribution,
    pub(super) wakeup: Distribution,
    pub(super) summary: Summary,
    pub(super) missed: u64,
}

impl GridSlot {
    pub(super) fn measured(&self) -> Option<&CellFigures> {
        match self {
            Self::Measured(m) => Some(m),
            _ => None,
        }
    }
}

/// All cells in their places.
#[derive(Debug)]
pub(super) struct Grid<'a> {
    pub(super) cells: &'a [Cell],
    pub(super) variants: Vec<Variant>,
    pub(super) loads: Vec<&'a str>,
    /// One row per variant, one place per load.
    pub(super) rows: Vec<Vec<GridSlot>>,
    /// Cells whose labels another one had before.
    pub(super) repeated: usize,
}

impl<'a> Grid<'a> {
    pub(super) fn of(cells: &'a [Cell]) -> Self {
        let (mut kernels, mut appends, mut loads) = (Vec::new(), Vec::new(), Vec::new());
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for cell in cells {
            let pair = (
                place_of(&mut kernels, cell.labels.kernel.as_str()),
                place_of(&mut appends, cell.labels.append.as_str()),
            );
            place_of(&mut pairs, pair);
            place_of(&mut loads, cell.labels.load.as_str());
        }
        let look = |(kernel, append): (usize, usize)| match (kernels.len(), appends.len()) {
            (_, 1) => Look::Nth(kernel),
            (1, _) => Look::Nth(append),
            _ => Look::Pair { colour: kernel, dash: append },
        };
        let options_shared = kernels.len() > 1 && appends.len() == 1;
        let word = |words: &[&str], i: usize| words.get(i).copied().unwrap_or("").to_owned();
        let variants: Vec<Variant> = pairs
            .iter()
            .map(|&(k, a)| Variant {
                labels: Labels {
                    kernel: word(&kernels, k),
                    append: word(&appends, a),
                    load: String::new(),
                },
                look: look((k, a)),
                options_shared,
            })
            .collect();
        let mut used = 0;
        let mut place = |v: &Variant, load: &str| {
            let labels = Labels { load: load.to_owned(), ..v.labels.clone() };
            let mut found = cells.iter().enumerate().filter(|(_, c)| c.labels == labels);
            let first = found.next();
            used += usize::from(first.is_some());
            first.map_or(GridSlot::NotRun, |(i, c)| figures(i, c))
        };
        let rows =
            variants.iter().map(|v| loads.iter().map(|load| place(v, load)).collect()).collect();
        Self { cells, variants, loads, rows, repeated: cells.len() - used }
    }

    /// What was added to the command line of all kernels, where there are several.
    pub(super) fn shared_options(&self) -> Option<&str> {
        let first = self.variants.first().filter(|v| v.options_shared)?;
        Some(first.labels.append.as_str()).filter(|append| !append.is_empty())
    }

    /// The variants with what stands under load number `load`.
    pub(super) fn under(&self, load: usize) -> impl Iterator<Item = (&Variant, &GridSlot)> {
        self.variants.iter().zip(&self.rows).filter_map(move |(v, row)| Some((v, row.get(load)?)))
    }

    /// Every place with its variant and load, row by row.
    pub(super) fn places(&self) -> impl Iterator<Item = (&Variant, &str, &GridSlot)> {
        self.variants.iter().zip(&self.rows).flat_map(move |(v, row)| {
            self.loads.iter().zip(row).map(move |(load, place)| (v, *load, place))
        })
    }

    /// The run of a measured place.
    pub(super) fn run(&self, m: &CellFigures) -> Option<&'a Run> {
        self.cells.get(m.cell)?.run.as_ref().ok()
    }

    /// The file of a place.
    pub(super) fn file(&self, variant: &Variant, load: &str) -> Option<&'a str> {
        let labels = Labels { load: load.to_owned(), ..variant.labels.clone() };
        self.cells.iter().find(|c| c.labels == labels)?.file.as_deref()
    }

    /// All runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &'a Run> {
        self.cells.iter().filter_map(|c| c.run.as_ref().ok())
    }

    /// The curves under load number `load`.
    pub(super) fn series(&self, load: usize) -> Vec<Series> {
        let one = |(v, place): (&Variant, &GridSlot)| {
            let m = place.measured()?;
            Some(Series {
                name: v.name(),
                look: v.look,
                due: m.due.clone(),
                wakeup: m.wakeup.clone(),
            })
        };
        self.under(load).filter_map(one).collect()
    }

    /// The deadline that all runs share.
    pub(super) fn deadline_ns(&self) -> Option<i64> {
        let mut all = self.runs().map(|r| r.header.plan.requirement.deadline_ns);
        let first = all.next()?;
        all.all(|d| d == first).then_some(first)?
    }
}

/// The position of `what` in `list`, at whose end it is put if it is not there.
fn place_of<T: PartialEq>(list: &mut Vec<T>, what: T) -> usize {
    list.iter().position(|k| *k == what).unwrap_or_else(|| {
        list.push(what);
        list.len() - 1
    })
}

fn figures(i: usize, cell: &Cell) -> GridSlot {
    let run = match &cell.run {
        Ok(run) => run,
        Err(failure) => return GridSlot::Failed(failure.why.clone()),
    };
    let Some(context) = run.judged_context() else {
        return GridSlot::Failed("the run holds no thread's figures".to_owned());
    };
    let (wakeup, due) = run.total(context);
    if due.n == 0 {
        return GridSlot::Failed("no activation was measured".to_owned());
    }
    GridSlot::Measured(Box::new(CellFigures {
        cell: i,
        summary: Summary::of(&due),
        missed: due.n.saturating_sub(wakeup.n),
        due,
        wakeup,
    }))
}
