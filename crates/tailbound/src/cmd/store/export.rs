// SPDX-License-Identifier: MIT OR Apache-2.0
//! `store export`: runs for other programs.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tailbound_store::{Filter, Of, Origin, Store, StoreError, TableFormat};
use tailbound_sys::new_file::{Existing, NewFile};

use super::place::{filter, opened};
use crate::cli_store::{ExportFormat, ExportTable, StoreExportArgs};
use crate::flags;
use crate::input;
use crate::say::{self, Failure};

/// What is to be written, once the words fit each other.
enum Wanted {
    Table(Of, TableFormat),
    Kcidb(Origin),
}

impl Wanted {
    fn of(args: &StoreExportArgs) -> Result<Self, Failure> {
        let of = match args.table {
            ExportTable::Runs => Of::Runs,
            ExportTable::Histograms => Of::Buckets,
        };
        match (args.format, &args.origin) {
            (ExportFormat::Kcidb, _) if of != Of::Runs => {
                Err(Failure::usage("--format kcidb: KCIDB takes runs only: leave out --table"))
            }
            (ExportFormat::Kcidb, Some(origin)) => {
                let origin = origin.parse().map_err(flags::refused("--origin"))?;
                Ok(Self::Kcidb(origin))
            }
            (ExportFormat::Kcidb, None) => Err(Failure::usage(
                "--format kcidb: give --origin, the name that KCIDB gave your CI system",
            )),
            (_, Some(_)) => Err(Failure::usage("--origin: only for --format kcidb")),
            (ExportFormat::Csv, None) => Ok(Self::Table(of, TableFormat::Csv)),
            (ExportFormat::Parquet, None) => Ok(Self::Table(of, TableFormat::Parquet)),
        }
    }

    fn write(
        &self,
        store: &mut Store,
        filter: &Filter,
        to: &mut (dyn Write + Send),
    ) -> Result<u64, StoreError> {
        let rows = match self {
            Self::Table(of, format) => store.export(*of, *format, filter, to)?,
            Self::Kcidb(origin) => store.export_kcidb(origin, filter, to)?,
        };
        to.flush()?;
        Ok(rows)
    }
}

pub(super) fn export(args: &StoreExportArgs) -> Result<ExitCode, Failure> {
    let wanted = Wanted::of(args)?;
    let filter = filter(&args.chosen, args.number);
    input::may_write(&args.out, Existing::replaced_if(args.force))?;
    if args.out == Path::new("-") {
        if args.json {
            return Err(Failure::usage("--json: standard output has the rows: give -o a name"));
        }
        let mut store = opened(&args.store)?;
        let mut to = BufWriter::new(io::stdout());
        return match wanted.write(&mut store, &filter, &mut to) {
            // Who reads has enough.
            Err(StoreError::Io(e)) if e.kind() == io::ErrorKind::BrokenPipe => {
                Ok(ExitCode::SUCCESS)
            }
            Err(e) => Err(e.into()),
            Ok(_) => Ok(ExitCode::SUCCESS),
        };
    }
    let mut store = opened(&args.store)?;
    let shown = args.out.display().to_string();
    let failed = |e: io::Error| Failure::cannot(format!("{shown}: {e}"));
    let new = NewFile::open(&args.out, Existing::replaced_if(args.force)).map_err(failed)?;
    let rows = match wanted.write(&mut store, &filter, &mut BufWriter::new(new.file())) {
        Err(StoreError::Io(e)) => return Err(failed(e)),
        other => other?,
    };
    new.finish().map_err(failed)?;
    if args.json {
        say::answer_json(
            &json!({"schema": "tailbound-store-export/1", "file": shown, "rows": rows}),
        )?;
    } else {
        let rows_are = match args.table {
            ExportTable::Runs => "runs",
            ExportTable::Histograms => "buckets",
        };
        say::answer(&format!("{rows} {rows_are} are in {shown}."))?;
    }
    Ok(ExitCode::SUCCESS)
}
