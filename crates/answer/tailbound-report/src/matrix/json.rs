// SPDX-License-Identifier: MIT OR Apache-2.0
//! A matrix for scripts.
//!
//! Units: ns.
//! Shape, schema `tailbound-matrix/1` (members are added, never renamed or removed):
//!
//! | member | what |
//! |---|---|
//! | `schema` | `tailbound-matrix/1` |
//! | `virtual_time` | what an instruction stands for where all runs are of the lab; else `null` |
//! | `kernels` | a list: `kernel`, `append` |
//! | `loads` | a list of names |
//! | `cells` | a list in the order given: `kernel`, `append`, `load`, `file`, and either `failure` or `outcome`, `totals` (as in a report), `loads`, `doubts`, `id`; of a watched run also `sections`, the longest of each kind |
//! | `notes` | a list of sentences |

use serde_json::{Value, json};
use tailbound_stats::Analysis;

use super::grid::{Cell, Grid};
use super::{notes, sections};
use crate::{digest, label};

/// Version of the shape.
pub const SCHEMA: &str = "tailbound-matrix/1";

/// The matrix.
#[must_use]
pub fn json(cells: &[Cell]) -> Value {
    of(&Grid::of(cells))
}

pub(super) fn of(grid: &Grid) -> Value {
    let kernel =
        |v: &super::grid::Variant| json!({"kernel": v.labels.kernel, "append": v.labels.append});
    json!({
        "schema": SCHEMA,
        "virtual_time": notes::virtual_time(grid),
        "kernels": grid.variants.iter().map(kernel).collect::<Vec<_>>(),
        "loads": grid.loads,
        "cells": grid.cells.iter().map(cell).collect::<Vec<_>>(),
        "notes": notes::notes(grid),
    })
}

fn cell(cell: &Cell) -> Value {
    let mut value = json!({
        "kernel": cell.labels.kernel,
        "append": cell.labels.append,
        "load": cell.labels.load,
        "file": cell.file,
    });
    match &cell.run {
        Err(failure) => value["failure"] = json!(failure.why),
        Ok(run) => {
            let analysis = Analysis::of(run);
            let doubts: Vec<&str> =
                digest::culprits(run).iter().map(|f| f.title.as_str()).collect();
            value["id"] = json!(run.header.id);
            value["outcome"] = json!(label::outcome(run));
            value["totals"] = json!(crate::json::totals(&analysis));
            value["loads"] = json!(analysis.loads());
            value["doubts"] = json!(doubts);
            if let Some(paths) = run.paths.as_deref() {
                value["sections"] = sections::json(paths);
            }
        }
    }
    value
}
