// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's description of one kind of record: `events/*/*/format`.
//!
//! Units: bytes. Layout: `name:`, `ID:`, then one `field:` line a field with
//! its C declaration, offset, size and signedness, then the print format (not used).
//! Source: Documentation/trace/events.rst, section 2.

/// Why a description could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A line is not what it should be.
    #[error("line {line} of the format of a trace event: {reason}")]
    Line {
        /// Where, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// The kernel's event lacks a field that is needed.
    #[error("the kernel's event `{event}` has no field `{field}`")]
    Field {
        /// The event.
        event: String,
        /// The field.
        field: String,
    },
}

/// One integer of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Where it begins.
    pub offset: usize,
    /// 1, 2, 4 or 8 for what can be read as an integer.
    pub size: usize,
    /// Sign-extended when read.
    pub signed: bool,
}

impl Field {
    /// The field's value in `record`; the upper half of u64 comes out negative (pointers keep
    /// their bits). `None`: the record is too short, or the field no integer.
    #[must_use]
    pub fn get(&self, record: &[u8]) -> Option<i64> {
        let bytes = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match (self.size, self.signed) {
            (1, false) => i64::from(u8::from_le_bytes(bytes.try_into().ok()?)),
            (1, true) => i64::from(i8::from_le_bytes(bytes.try_into().ok()?)),
            (2, false) => i64::from(u16::from_le_bytes(bytes.try_into().ok()?)),
            (2, true) => i64::from(i16::from_le_bytes(bytes.try_into().ok()?)),
            (4, false) => i64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            (4, true) => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
            (8, _) => i64::from_le_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }
}

/// One kind of record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// Its name, without the system before it.
    pub name: String,
    /// The number every record of it begins with.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl EventFormat {
    /// Reads a `format` file.
    ///
    /// # Errors
    /// [`FormatError`] with the line.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let (mut name, mut id, mut fields) = (None, None, Vec::new());
        for (i, line) in text.lines().enumerate() {
            let wrong = |reason: &str| FormatError::Line {
                line: i.saturating_add(1),
                reason: reason.to_owned(),
            };
            if let Some(text) = line.strip_prefix("name:") {
                name = Some(text.trim().to_owned());
            } else if let Some(text) = line.strip_prefix("ID:") {
                id = Some(text.trim().parse().map_err(|_| wrong("the ID is not a number"))?);
            } else if line.trim_start().starts_with("field:") {
                fields.push(field(line).ok_or_else(|| wrong("not a field with offset and size"))?);
            }
        }
        let missing =
            |what: &str| FormatError::Line { line: 1, reason: format!("there is no `{what}`") };
        Ok(Self {
            name: name.ok_or_else(|| missing("name:"))?,
            id: id.ok_or_else(|| missing("ID:"))?,
            fields,
        })
    }

    /// The field `name`.
    ///
    /// # Errors
    /// [`FormatError::Field`].
    pub fn field(&self, name: &str) -> Result<Field, FormatError> {
        self.fields
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, f)| *f)
            .ok_or_else(|| FormatError::Field { event: self.name.clone(), field: name.to_owned() })
    }
}

/// `field: TYPE NAME; offset:N; size:N; signed:N;`, as event formats and the page header have it.
pub(crate) fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let name = declaration.rsplit([' ', '*']).next()?;
    let name = name.split('[').next().unwrap_or(name);
    let mut numbers = [None; 3];
    for part in parts {
        for (slot, key) in numbers.iter_mut().zip(["offset:", "size:", "signed:"]) {
            if let Some(text) = part.strip_prefix(key) {
                *slot = Some(text.parse::<usize>().ok()?);
            }
        }
    }
    let [offset, size, signed] = numbers;
    // Kernels before 2.6.35 did not say `signed`.
    let field = Field { offset: offset?, size: size?, signed: signed == Some(1) };
    (!name.is_empty()).then(|| (name.to_owned(), field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_each_size_keep_their_sign() {
        let record = [0xff, 0xfe, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5, 6, 7, 8];
        let get = |offset, size, signed| Field { offset, size, signed }.get(&record);
        assert_eq!(get(0, 1, true), Some(-1));
        assert_eq!(get(0, 1, false), Some(255));
        assert_eq!(get(1, 4, true), Some(-2));
        assert_eq!(get(5, 8, false), Some(0x0807_0605_0403_0201));
        assert_eq!(get(6, 8, false), None, "beyond the end");
        assert_eq!(get(0, 3, false), None, "no integer");
        assert_eq!(get(usize::MAX, 8, false), None);
    }

    #[test]
    fn a_broken_description_says_where() {
        let line = |text: &str| match EventFormat::parse(text) {
            Err(FormatError::Line { line, .. }) => line,
            other => panic!("{other:?}"),
        };
        assert_eq!(line("name: x\nID: seven\n"), 2);
        assert_eq!(line("name: x\nID: 7\nformat:\n\tfield:int a;\toffset:x;\tsize:4;\n"), 4);
        assert_eq!(line(""), 1);
        let ok =
            EventFormat::parse("name: x\nID: 7\n\tfield:char comm[16];\toffset:8;\tsize:16;\n");
        assert!(ok.as_ref().is_ok_and(|f| f.field("comm").is_ok()));
        let why = ok.and_then(|f| f.field("pid")).map_err(|e| e.to_string());
        assert!(why.is_err_and(|w| w.contains("pid")));
    }
}
