// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes every rendering of a matrix made of run files into a directory, to be looked at.
//!
//! Usage: `matrix DIRECTORY CELL...`, a cell being `KERNEL;APPEND;LOAD=FILE`,
//! or `KERNEL;APPEND;LOAD=!REASON` for one that failed.

use std::fs::File;
use std::io::{BufReader, Error, Result};
use std::path::PathBuf;

use tailbound_core::runfile::read_run;
use tailbound_report::matrix::{self, Cell, CellFailure, Labels};
use tailbound_report::{Style, matrix::html};

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let directory = PathBuf::from(words.next().unwrap_or_else(|| ".".into()));
    std::fs::create_dir_all(&directory)?;
    let cells: Vec<Cell> = words.map(|w| cell(&w)).collect::<Result<_>>()?;
    std::fs::write(directory.join("matrix.html"), html(&cells))?;
    std::fs::write(directory.join("matrix.txt"), matrix::text(&cells, Style::default()))?;
    std::fs::write(directory.join("matrix.json"), format!("{:#}", matrix::json(&cells)))
}

fn cell(text: &str) -> Result<Cell> {
    let wrong = |why: String| Error::other(format!("{text}: {why}"));
    let (labels, file) = text
        .split_once('=')
        .filter(|(l, _)| l.matches(';').count() == 2)
        .or_else(|| text.rsplit_once('='))
        .ok_or_else(|| wrong("no =".into()))?;
    let mut labels = labels.split(';').map(str::to_owned);
    let mut label = || labels.next().unwrap_or_default();
    let labels = Labels { kernel: label(), append: label(), load: label() };
    let run = match file.strip_prefix('!') {
        Some(why) => Err(CellFailure { why: why.to_owned() }),
        None => {
            let input = BufReader::new(File::open(file)?);
            Ok(read_run(input).map_err(|e| wrong(e.to_string()))?)
        }
    };
    Ok(Cell { labels, file: Some(file.to_owned()), run })
}
