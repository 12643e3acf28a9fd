// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Parquet file read back by the library's reader.
//!
//! Context: tests.

use parquet::basic::{Compression, LogicalType, TimeUnit};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

use super::parquet::{GROUP_ROWS, Parquet};
use super::{Column, Holds, Rows as _};
use crate::value::Value;

#[test]
fn a_file_of_several_groups_has_every_value_and_every_gap() {
    let columns =
        [("n", Holds::Int), ("when", Holds::Time), ("word", Holds::Text), ("part", Holds::Real)];
    let columns: Vec<Column> =
        columns.map(|(name, holds)| Column { name: name.to_owned(), holds }).into();
    let rows = i64::try_from(GROUP_ROWS).unwrap() + 100;
    let mut file = Vec::new();
    let mut writer = Parquet::begin(&mut file, &columns).unwrap();
    let is = |n: i64| if n % 7 == 3 { Value::Null } else { Value::Int(n * n - 5) };
    for n in 0..rows {
        let when = if n == 1 { "yesterday" } else { "1970-01-02T00:00:01Z" };
        writer.row(&[is(n), when.into(), "\u{fc}".into(), Value::Real(0.5)]).unwrap();
    }
    writer.end().unwrap();
    drop(writer);
    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(path.path(), &file).unwrap();
    let reader = SerializedFileReader::new(path.reopen().unwrap()).unwrap();
    let about = reader.metadata();
    let schema = about.file_metadata().schema_descr();
    let names: Vec<&str> = schema.columns().iter().map(|c| c.name()).collect();
    assert_eq!(names, ["n", "when", "word", "part"]);
    let time = LogicalType::timestamp(true, TimeUnit::MICROS);
    assert_eq!(schema.column(1).logical_type_ref(), Some(&time));
    assert_eq!((about.file_metadata().num_rows(), about.num_row_groups()), (rows, 2));
    for column in about.row_group(0).columns() {
        assert!(matches!(column.compression(), Compression::ZSTD(_)), "{column:?}");
    }
    let mut n = 0;
    for row in reader.get_row_iter(None).unwrap() {
        let row: Vec<Field> = row.unwrap().get_column_iter().map(|(_, f)| f.clone()).collect();
        let whole = is(n).int().map_or(Field::Null, Field::Long);
        let time = if n == 1 { Field::Null } else { Field::TimestampMicros(86_401_000_000) };
        assert_eq!(row, [whole, time, Field::Str("\u{fc}".to_owned()), Field::Double(0.5)]);
        n += 1;
    }
    assert_eq!(n, rows);
}
