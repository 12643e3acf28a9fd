// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Parquet file read back by a reader of its own: the footer as fields and numbers, pages as levels and values.
//!
//! Context: tests.

use super::parquet::{GROUP_ROWS, Parquet};
use super::{Column, Holds, Rows as _};
use crate::value::Value;

/// A value of Thrift's compact protocol.
#[derive(Debug)]
enum Thrift {
    Yes,
    Number(i64),
    Text(String),
    List(Vec<Thrift>),
    Struct(Vec<(i16, Thrift)>),
}

impl Thrift {
    fn field(&self, number: i16) -> &Self {
        let Self::Struct(fields) = self else { panic!("{self:?}") };
        &fields.iter().find(|(n, _)| *n == number).unwrap_or_else(|| panic!("{number}: {self:?}")).1
    }

    fn number(&self) -> i64 {
        let Self::Number(n) = self else { panic!("{self:?}") };
        *n
    }

    fn text(&self) -> &str {
        let Self::Text(text) = self else { panic!("{self:?}") };
        text
    }

    fn list(&self) -> &[Self] {
        let Self::List(all) = self else { panic!("{self:?}") };
        all
    }
}

fn byte(from: &mut &[u8]) -> u8 {
    let (first, rest) = from.split_first().expect("the end");
    *from = rest;
    *first
}

fn unsigned(from: &mut &[u8]) -> u64 {
    let (mut n, mut shift) = (0, 0);
    loop {
        let next = byte(from);
        n |= u64::from(next & 0x7f) << shift;
        if next & 0x80 == 0 {
            return n;
        }
        shift += 7;
    }
}

fn signed(from: &mut &[u8]) -> i64 {
    let n = unsigned(from);
    (n >> 1).cast_signed() ^ -(n & 1).cast_signed()
}

fn bytes<'a>(from: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (these, rest) = from.split_at(n);
    *from = rest;
    these
}

fn value(kind: u8, from: &mut &[u8]) -> Thrift {
    match kind {
        1 => Thrift::Yes,
        5 | 6 => Thrift::Number(signed(from)),
        8 => {
            let n = usize::try_from(unsigned(from)).unwrap();
            Thrift::Text(String::from_utf8(bytes(from, n).to_vec()).unwrap())
        }
        9 => {
            let head = byte(from);
            let n = if head >> 4 == 15 { unsigned(from) } else { u64::from(head >> 4) };
            Thrift::List((0..n).map(|_| value(head & 15, from)).collect())
        }
        12 => {
            let (mut fields, mut number) = (Vec::new(), 0);
            loop {
                let head = byte(from);
                if head == 0 {
                    return Thrift::Struct(fields);
                }
                number = match head >> 4 {
                    0 => i16::try_from(signed(from)).unwrap(),
                    step => number + i16::from(step),
                };
                fields.push((number, value(head & 15, from)));
            }
        }
        other => panic!("kind {other}"),
    }
}

/// The values of a page of an INT64 column.
fn page(file: &[u8], at: i64, rows: i64) -> Vec<Option<i64>> {
    let mut from = &file[usize::try_from(at).unwrap()..];
    let head = value(12, &mut from);
    let (plain, packed) = (head.field(2).number(), head.field(3).number());
    let page = bytes(&mut from, usize::try_from(packed).unwrap());
    let page = zstd::bulk::decompress(page, usize::try_from(plain).unwrap()).unwrap();
    assert_eq!(i64::try_from(page.len()).unwrap(), plain);
    assert_eq!(head.field(5).field(1).number(), rows);
    let mut from = page.as_slice();
    let n = u32::from_le_bytes(bytes(&mut from, 4).try_into().unwrap());
    let (mut levels, mut all) = (bytes(&mut from, usize::try_from(n).unwrap()), Vec::new());
    while !levels.is_empty() {
        let run = unsigned(&mut levels);
        assert_eq!(run & 1, 0, "a run of one level");
        let there = byte(&mut levels) == 1;
        for _ in 0..run >> 1 {
            let value = there.then(|| i64::from_le_bytes(bytes(&mut from, 8).try_into().unwrap()));
            all.push(value);
        }
    }
    assert!(from.is_empty());
    all
}

#[test]
fn a_file_of_several_groups_has_every_value_and_every_gap() {
    let columns =
        [("n", Holds::Int), ("when", Holds::Time), ("word", Holds::Text), ("part", Holds::Real)];
    let columns: Vec<Column> =
        columns.map(|(name, holds)| Column { name: name.to_owned(), holds }).into();
    let rows = i64::try_from(GROUP_ROWS).unwrap() + 100;
    let mut file = Vec::new();
    let mut writer = Parquet::begin(&mut file, columns).unwrap();
    let is = |n: i64| if n % 7 == 3 { Value::Null } else { Value::Int(n * n - 5) };
    for n in 0..rows {
        let when = if n == 1 { "yesterday" } else { "1970-01-02T00:00:01Z" };
        writer.row(&[is(n), when.into(), "\u{fc}".into(), Value::Real(0.5)]).unwrap();
    }
    writer.end().unwrap();
    drop(writer);
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    let end = file.len() - 8;
    let length = u32::from_le_bytes(file[end..end + 4].try_into().unwrap());
    let foot = value(12, &mut &file[end - usize::try_from(length).unwrap()..end]);
    let names: Vec<&str> = foot.field(2).list().iter().map(|s| s.field(4).text()).collect();
    assert_eq!(names, ["tailbound", "n", "when", "word", "part"]);
    assert!(matches!(foot.field(2).list()[2].field(10).field(8).field(1), Thrift::Yes));
    assert_eq!(foot.field(3).number(), rows);
    let groups = foot.field(4).list();
    assert_eq!(groups.len(), 2);
    let column = |at: usize| -> Vec<Option<i64>> {
        let of = |group: &Thrift| {
            let it = group.field(1).list()[at].field(3);
            page(&file, it.field(9).number(), group.field(3).number())
        };
        groups.iter().flat_map(of).collect()
    };
    assert!(column(0).into_iter().eq((0..rows).map(|n| is(n).int())));
    let times = column(1);
    assert_eq!(times[..3], [Some(86_401_000_000), None, Some(86_401_000_000)]);
}
