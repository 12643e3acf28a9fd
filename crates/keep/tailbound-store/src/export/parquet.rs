// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table as a Parquet file: plain values, pages packed by Zstandard, every column may be null.
//!
//! Memory: one group of rows. Own code: the crate `parquet` has a hundred thousand lines, for encodings that
//! nobody needs who only writes. Source: <https://github.com/apache/parquet-format>, `parquet.thrift` and `Encodings.md`.

use std::io::{self, Write};

use super::thrift::{Compact, Element};
use super::{Column, Holds, Rows};
use crate::buckets::put as varint;
use crate::value::Value;

const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a group, and bytes of its values: whatever comes first ends it.
pub(super) const GROUP_ROWS: usize = 1 << 16;
const GROUP_BYTES: usize = 64 << 20;
const LEVEL: i32 = 3;

// Numbers of `parquet.thrift`.
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
const OPTIONAL: i32 = 1;
const UTF8: i32 = 0;
const TIMESTAMP_MICROS: i32 = 10;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const ZSTD: i32 = 6;

impl Holds {
    fn physical(self) -> i32 {
        match self {
            Self::Int | Self::Time => INT64,
            Self::Real => DOUBLE,
            Self::Text => BYTE_ARRAY,
        }
    }
}

/// A column of the group that is being filled.
#[derive(Debug, Default)]
struct Filling {
    /// Which rows have a value: runs of the same answer.
    present: Vec<(bool, u64)>,
    values: Vec<u8>,
}

impl Filling {
    fn put(&mut self, value: &Value, holds: Holds) {
        let before = self.values.len();
        match (holds, value) {
            (Holds::Int, Value::Int(n)) => self.values.extend(n.to_le_bytes()),
            (Holds::Real, Value::Real(n)) => self.values.extend(n.to_le_bytes()),
            (Holds::Time, Value::Text(text)) => {
                self.values.extend(super::us_of(text).iter().flat_map(|us| us.to_le_bytes()));
            }
            (Holds::Text, Value::Text(text)) => {
                if let Ok(n) = u32::try_from(text.len()) {
                    self.values.extend(n.to_le_bytes());
                    self.values.extend(text.as_bytes());
                }
            }
            _ => {}
        }
        let is = self.values.len() > before;
        match self.present.last_mut() {
            Some((same, n)) if *same == is => *n += 1,
            _ => self.present.push((is, 1)),
        }
    }

    /// The page's bytes before they are packed: levels with their length, then values.
    fn page(&self) -> Vec<u8> {
        let mut levels = Vec::new();
        for (is, n) in &self.present {
            varint(n << 1, &mut levels);
            levels.push((*is).into());
        }
        let length = u32::try_from(levels.len()).unwrap_or(u32::MAX);
        [&length.to_le_bytes()[..], &levels, &self.values].concat()
    }
}

/// Where a column of a written group is.
#[derive(Debug)]
struct Chunk {
    at: i64,
    plain: i64,
    packed: i64,
}

/// A group of rows that was written.
#[derive(Debug)]
struct Group {
    rows: i64,
    chunks: Vec<Chunk>,
}

/// A file that is being written.
pub(super) struct Parquet<W: Write> {
    out: W,
    at: usize,
    columns: Vec<Column>,
    filling: Vec<Filling>,
    rows: usize,
    groups: Vec<Group>,
}

/// A length as the format has it; files of this writer are far below its end.
fn long(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn int(n: usize) -> io::Result<i32> {
    i32::try_from(n).map_err(|_| io::Error::other("a page of Parquet has at most 2 GiB"))
}

impl<W: Write> Parquet<W> {
    pub(super) fn begin(mut out: W, columns: Vec<Column>) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let filling = columns.iter().map(|_| Filling::default()).collect();
        Ok(Self { out, at: MAGIC.len(), columns, filling, rows: 0, groups: Vec::new() })
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len();
        Ok(())
    }

    fn end_group(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        let mut chunks = Vec::new();
        for column in std::mem::take(&mut self.filling) {
            let plain = column.page();
            let packed = zstd::bulk::compress(&plain, LEVEL)?;
            let head = page_head(int(rows)?, int(plain.len())?, int(packed.len())?);
            chunks.push(Chunk {
                at: long(self.at),
                plain: long(head.len() + plain.len()),
                packed: long(head.len() + packed.len()),
            });
            self.put(&head)?;
            self.put(&packed)?;
            self.filling.push(Filling::default());
        }
        self.groups.push(Group { rows: long(rows), chunks });
        Ok(())
    }

    fn foot(&self) -> Vec<u8> {
        let mut foot = Compact::default();
        foot.i32(1, 2);
        foot.list(2, Element::Struct, self.columns.len() + 1);
        foot.struct_element(|it| {
            it.text(4, "tailbound");
            it.i32(5, i32::try_from(self.columns.len()).unwrap_or(i32::MAX));
        });
        for column in &self.columns {
            foot.struct_element(|it| schema(it, column));
        }
        foot.i64(3, self.groups.iter().map(|g| g.rows).sum());
        foot.list(4, Element::Struct, self.groups.len());
        for group in &self.groups {
            foot.struct_element(|it| {
                it.list(1, Element::Struct, group.chunks.len());
                for (column, chunk) in self.columns.iter().zip(&group.chunks) {
                    it.struct_element(|it| described(it, column, chunk, group.rows));
                }
                it.i64(2, group.chunks.iter().map(|c| c.plain).sum());
                it.i64(3, group.rows);
            });
        }
        foot.text(6, concat!("tailbound version ", env!("CARGO_PKG_VERSION")));
        foot.end()
    }
}

impl<W: Write> Rows for Parquet<W> {
    fn row(&mut self, row: &[Value]) -> io::Result<()> {
        for ((column, filling), value) in self.columns.iter().zip(&mut self.filling).zip(row) {
            filling.put(value, column.holds);
        }
        self.rows += 1;
        let bytes: usize = self.filling.iter().map(|f| f.values.len()).sum();
        if self.rows >= GROUP_ROWS || bytes >= GROUP_BYTES { self.end_group() } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        self.end_group()?;
        let foot = self.foot();
        self.put(&foot)?;
        self.put(&u32::try_from(foot.len()).unwrap_or(u32::MAX).to_le_bytes())?;
        self.put(MAGIC)
    }
}

fn page_head(rows: i32, plain: i32, packed: i32) -> Vec<u8> {
    let mut head = Compact::default();
    head.i32(1, 0);
    head.i32(2, plain);
    head.i32(3, packed);
    head.within(5, |it| {
        it.i32(1, rows);
        it.i32(2, PLAIN);
        it.i32(3, RLE);
        it.i32(4, RLE);
    });
    head.end()
}

fn schema(it: &mut Compact, column: &Column) {
    it.i32(1, column.holds.physical());
    it.i32(3, OPTIONAL);
    it.text(4, &column.name);
    match column.holds {
        Holds::Int | Holds::Real => {}
        Holds::Text => {
            it.i32(6, UTF8);
            it.within(10, |it| it.within(1, |_| {}));
        }
        Holds::Time => {
            it.i32(6, TIMESTAMP_MICROS);
            it.within(10, |it| {
                it.within(8, |it| {
                    it.yes(1);
                    it.within(2, |it| it.within(2, |_| {}));
                });
            });
        }
    }
}

fn described(it: &mut Compact, column: &Column, chunk: &Chunk, rows: i64) {
    it.i64(2, chunk.at);
    it.within(3, |it| {
        it.i32(1, column.holds.physical());
        it.list(2, Element::I32, 2);
        it.i32_element(PLAIN);
        it.i32_element(RLE);
        it.list(3, Element::Text, 1);
        it.text_element(&column.name);
        it.i32(4, ZSTD);
        it.i64(5, rows);
        it.i64(6, chunk.plain);
        it.i64(7, chunk.packed);
        it.i64(9, chunk.at);
    });
}
