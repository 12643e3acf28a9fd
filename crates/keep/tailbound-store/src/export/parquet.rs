// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table as a Parquet file: plain values, pages packed by Zstandard, every column may be null.
//!
//! Memory: one group of rows. Not here: the format, which is the crate `parquet`'s.
//! Source: <https://github.com/apache/parquet-format>, `LogicalTypes.md`.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::{Column, Holds, Rows};
use crate::value::Value;

/// Rows of a group, and bytes of its values: whatever comes first ends it.
pub(super) const GROUP_ROWS: usize = 1 << 16;
const GROUP_BYTES: usize = 64 << 20;
const LEVEL: i32 = 3;

/// The values of a column in the group that is being filled.
#[derive(Debug)]
enum Values {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Text(Vec<ByteArray>),
}

/// A column of the group that is being filled.
#[derive(Debug)]
struct Filling {
    holds: Holds,
    /// 1 for each row that has a value, else 0: the levels of a column that may be null.
    present: Vec<i16>,
    values: Values,
}

impl Filling {
    fn of(holds: Holds) -> Self {
        let values = match holds {
            Holds::Int | Holds::Time => Values::Whole(Vec::new()),
            Holds::Real => Values::Real(Vec::new()),
            Holds::Text => Values::Text(Vec::new()),
        };
        Self { holds, present: Vec::new(), values }
    }

    /// Takes the next row's value; how many bytes that were.
    fn put(&mut self, value: &Value) -> usize {
        let bytes = match (&mut self.values, value, self.holds) {
            (Values::Whole(all), Value::Int(n), Holds::Int) => {
                all.push(*n);
                Some(size_of::<i64>())
            }
            (Values::Whole(all), Value::Text(text), Holds::Time) => super::us_of(text).map(|us| {
                all.push(us);
                size_of::<i64>()
            }),
            (Values::Real(all), Value::Real(n), _) => {
                all.push(*n);
                Some(size_of::<f64>())
            }
            (Values::Text(all), Value::Text(text), _) => {
                all.push(text.as_str().into());
                Some(text.len())
            }
            _ => None,
        };
        self.present.push(bytes.is_some().into());
        bytes.unwrap_or(0)
    }
}

/// A file that is being written.
pub(super) struct Parquet<W: Write + Send> {
    out: SerializedFileWriter<W>,
    filling: Vec<Filling>,
    rows: usize,
    bytes: usize,
}

/// The file's own error where it is one: its kind tells a reader who has enough from a full disk.
fn refused(e: ParquetError) -> io::Error {
    match e {
        ParquetError::External(e) => e.downcast().map_or_else(io::Error::other, |e| *e),
        e => io::Error::other(e),
    }
}

fn schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let one = |column: &Column| {
        let (physical, logical) = match column.holds {
            Holds::Int => (Physical::INT64, None),
            Holds::Real => (Physical::DOUBLE, None),
            Holds::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Holds::Time => {
                let unit = TimeUnit::MICROS;
                (Physical::INT64, Some(LogicalType::timestamp(true, unit)))
            }
        };
        let column = Type::primitive_type_builder(&column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        column.build().map(Arc::new)
    };
    let columns = columns.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("tailbound").with_fields(columns).build()
}

impl<W: Write + Send> Parquet<W> {
    pub(super) fn begin(out: W, columns: &[Column]) -> io::Result<Self> {
        let level = ZstdLevel::try_new(LEVEL).map_err(refused)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_created_by(concat!("tailbound version ", env!("CARGO_PKG_VERSION")).to_owned());
        let schema = Arc::new(schema(columns).map_err(refused)?);
        let out = SerializedFileWriter::new(out, schema, Arc::new(properties.build()));
        let filling = columns.iter().map(|column| Filling::of(column.holds)).collect();
        Ok(Self { out: out.map_err(refused)?, filling, rows: 0, bytes: 0 })
    }

    fn end_group(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        (self.rows, self.bytes) = (0, 0);
        let mut group = self.out.next_row_group()?;
        for column in &mut self.filling {
            let full = std::mem::replace(column, Filling::of(column.holds));
            match &full.values {
                Values::Whole(all) => chunk::<Int64Type, W>(&mut group, all, &full.present)?,
                Values::Real(all) => chunk::<DoubleType, W>(&mut group, all, &full.present)?,
                Values::Text(all) => chunk::<ByteArrayType, W>(&mut group, all, &full.present)?,
            }
        }
        group.close().map(drop)
    }
}

/// Writes the next column of a group.
fn chunk<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    present: &[i16],
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("a column too many".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, Some(present), None)?;
    column.close()
}

impl<W: Write + Send> Rows for Parquet<W> {
    fn row(&mut self, row: &[Value]) -> io::Result<()> {
        for (filling, value) in self.filling.iter_mut().zip(row) {
            self.bytes = self.bytes.saturating_add(filling.put(value));
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.end_group().map_err(refused)?;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.end_group().map_err(refused)?;
        self.out.finish().map(drop).map_err(refused)
    }
}
