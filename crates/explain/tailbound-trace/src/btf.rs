// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own description of its types (BTF): where a field lies in a structure of the kernel
//! that runs, whatever its version and configuration.
//!
//! Context: SETUP. Units: bytes. The bytes are believed in nothing: every place is looked up with its bounds,
//! every walk has an end. Only what is asked for is followed; of each type its place alone is kept.
//! Not here: reading /sys/kernel/btf/vmlinux (`tailbound-record`), BTF of modules.
//! Source: Documentation/bpf/btf.rst, include/uapi/linux/btf.h.

/// The first two bytes, in the file's byte order.
const MAGIC: u16 = 0xeb9f;
/// Typedefs, qualifiers and nameless structures are followed so deep.
const DEPTH_MAX: usize = 32;
/// Most types of a kernel: ten times those of a large one.
const TYPES_MAX: usize = 1 << 21;

const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const FLOAT: u32 = 16;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;

/// Why a description cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    /// It ends, or points beyond itself.
    #[error("the kernel's type description ends within its {0}")]
    Short(&'static str),
    /// It is none.
    #[error("not a description of kernel types (BTF)")]
    Foreign,
    /// A kind of type that this reader does not know, so that it cannot tell where the next begins.
    #[error("the kernel's type description has types of the unknown kind {0}")]
    Kind(u32),
    /// More than any kernel has.
    #[error("the kernel's type description has more than {TYPES_MAX} types")]
    Types,
    /// Not in this kernel.
    #[error("this kernel has no {0}")]
    Lacking(String),
}

/// A field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// From the structure's begin.
    pub offset: u32,
    /// Its length.
    pub size: u32,
}

/// What a tracepoint hands to a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// The type that the program is attached by.
    pub id: u32,
    /// For each argument: is it a pointer?
    pub pointers: Vec<bool>,
}

/// One type: name, kind, how many members, flag, size or the type it is made from, where its members are.
#[derive(Clone, Copy, Debug)]
struct Type {
    name: u32,
    kind: u32,
    members: u32,
    bitfields: bool,
    size_or_type: u32,
    more: usize,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Where each type begins, in the order of their numbers, which begin with 1.
    places: Vec<u32>,
    order: ByteOrder,
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    LittleEndian,
    BigEndian,
}

fn half(bytes: &[u8], at: usize, order: ByteOrder) -> Option<u16> {
    let bytes: [u8; 2] = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(match order {
        ByteOrder::LittleEndian => u16::from_le_bytes(bytes),
        ByteOrder::BigEndian => u16::from_be_bytes(bytes),
    })
}

fn word(bytes: &[u8], at: usize, order: ByteOrder) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(match order {
        ByteOrder::LittleEndian => u32::from_le_bytes(bytes),
        ByteOrder::BigEndian => u32::from_be_bytes(bytes),
    })
}

impl<'a> Btf<'a> {
    /// Finds where each type begins.
    ///
    /// # Errors
    /// [`BtfError`]: it is none, is cut off, or has types of a kind that nobody knows.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BtfError> {
        let magic = half(bytes, 0, ByteOrder::LittleEndian).ok_or(BtfError::Short("header"))?;
        let order = match magic {
            MAGIC => ByteOrder::LittleEndian,
            m if m.swap_bytes() == MAGIC => ByteOrder::BigEndian,
            _ => return Err(BtfError::Foreign),
        };
        let head = |at| word(bytes, at, order).map(|w| w as usize).ok_or(BtfError::Short("header"));
        let (begin, types_at, types_bytes) = (head(4)?, head(8)?, head(12)?);
        let (strings_at, strings_bytes) = (head(16)?, head(20)?);
        let part = |at: usize, length: usize, what| {
            let from = begin.checked_add(at);
            let to = from.and_then(|f| f.checked_add(length));
            let range = from.zip(to).and_then(|(f, t)| bytes.get(f..t));
            range.ok_or(BtfError::Short(what))
        };
        let types = part(types_at, types_bytes, "types")?;
        let strings = part(strings_at, strings_bytes, "names")?;
        let mut btf = Self { types, strings, places: Vec::new(), order };
        let mut at = 0;
        while at < types.len() {
            if btf.places.len() >= TYPES_MAX {
                return Err(BtfError::Types);
            }
            let t = btf.at(at).ok_or(BtfError::Short("types"))?;
            let more = trailing(&t).ok_or(BtfError::Kind(t.kind))?;
            btf.places.push(u32::try_from(at).map_err(|_| BtfError::Types)?);
            at = t.more.checked_add(more).ok_or(BtfError::Short("types"))?;
        }
        match at == types.len() {
            true => Ok(btf),
            false => Err(BtfError::Short("types")),
        }
    }

    fn word(&self, at: usize) -> Option<u32> {
        word(self.types, at, self.order)
    }

    fn at(&self, at: usize) -> Option<Type> {
        let info = self.word(at.checked_add(4)?)?;
        Some(Type {
            name: self.word(at)?,
            kind: info >> 24 & 0x1f,
            members: info & 0xffff,
            bitfields: info >> 31 == 1,
            size_or_type: self.word(at.checked_add(8)?)?,
            more: at.checked_add(12)?,
        })
    }

    fn by_id(&self, id: u32) -> Option<Type> {
        let index = usize::try_from(id).ok()?.checked_sub(1)?;
        self.at(*self.places.get(index)? as usize)
    }

    fn name(&self, at: u32) -> &'a [u8] {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        rest.split(|b| *b == 0).next().unwrap_or_default()
    }

    /// The number of the type called `name` of one of `kinds`.
    fn find(&self, name: &str, kinds: &[u32]) -> Option<u32> {
        let fits = |at: &u32| {
            let found = self.at(*at as usize);
            found.is_some_and(|t| kinds.contains(&t.kind) && self.name(t.name) == name.as_bytes())
        };
        let index = self.places.iter().position(fits)?;
        u32::try_from(index).ok()?.checked_add(1)
    }

    /// The type behind typedefs and qualifiers.
    fn resolved(&self, mut id: u32) -> Option<Type> {
        for _ in 0..DEPTH_MAX {
            let t = self.by_id(id)?;
            match t.kind {
                TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => id = t.size_or_type,
                _ => return Some(t),
            }
        }
        None
    }

    fn size(&self, id: u32, depth: usize) -> Option<u32> {
        let t = self.resolved(id)?;
        match t.kind {
            INT | STRUCT | UNION | ENUM | ENUM64 | FLOAT => Some(t.size_or_type),
            // Kernels that these programs run on have 64-bit pointers.
            PTR => Some(8),
            ARRAY if depth < DEPTH_MAX => {
                let element = self.size(self.word(t.more)?, depth.saturating_add(1))?;
                element.checked_mul(self.word(t.more.checked_add(8)?)?)
            }
            _ => None,
        }
    }

    /// Offset in bits, and type, of the member `name`, also within nameless structures.
    fn within(&self, t: &Type, name: &str, depth: usize) -> Option<(u32, u32)> {
        if depth >= DEPTH_MAX || !matches!(t.kind, STRUCT | UNION) {
            return None;
        }
        for i in 0..t.members as usize {
            let at = t.more.checked_add(i.checked_mul(12)?)?;
            let (called, id) = (self.word(at)?, self.word(at.checked_add(4)?)?);
            let raw = self.word(at.checked_add(8)?)?;
            let (bits, wide) = if t.bitfields { (raw & 0xff_ffff, raw >> 24) } else { (raw, 0) };
            let own = self.name(called);
            if own == name.as_bytes() {
                // A field of some bits has no address.
                return (wide == 0 && bits.is_multiple_of(8)).then_some((bits, id));
            }
            if own.is_empty()
                && let Some(inner) = self.resolved(id)
                && let Some((more, id)) = self.within(&inner, name, depth.saturating_add(1))
            {
                return Some((bits.checked_add(more)?, id));
            }
        }
        None
    }

    /// Where `path` leads, from the structure called `name`: each step is a member of the one before.
    ///
    /// # Errors
    /// [`BtfError::Lacking`] with what is not there.
    pub fn field(&self, name: &str, path: &[&str]) -> Result<Field, BtfError> {
        let lacking = || BtfError::Lacking(format!("struct {name}, field {}", path.join(".")));
        let found = || {
            let mut id = self.find(name, &[STRUCT, UNION])?;
            let mut offset = 0u32;
            for step in path {
                let (bits, next) = self.within(&self.resolved(id)?, step, 0)?;
                offset = offset.checked_add(bits / 8)?;
                id = next;
            }
            Some(Field { offset, size: self.size(id, 0)? })
        };
        found().ok_or_else(lacking)
    }

    /// The tracepoint called `name`.
    ///
    /// # Errors
    /// [`BtfError::Lacking`].
    pub fn tracepoint(&self, name: &str) -> Result<Tracepoint, BtfError> {
        let found = || {
            let id = self.find(&format!("btf_trace_{name}"), &[TYPEDEF])?;
            let pointer = self.resolved(id).filter(|t| t.kind == PTR)?;
            let function = self.resolved(pointer.size_or_type).filter(|t| t.kind == FUNC_PROTO)?;
            let is_pointer = |i: usize| {
                let id =
                    self.word(function.more.checked_add(i.checked_mul(8)?)?.checked_add(4)?)?;
                Some(self.resolved(id)?.kind == PTR)
            };
            // The first is the caller's own.
            let pointers = (1..function.members as usize).map(is_pointer).collect::<Option<_>>()?;
            Some(Tracepoint { id, pointers })
        };
        found().ok_or_else(|| BtfError::Lacking(format!("trace event {name} for programs")))
    }

    /// How many types there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// Bytes behind the twelve that every type has; `None` for an unknown kind.
fn trailing(t: &Type) -> Option<usize> {
    let members = t.members as usize;
    Some(match t.kind {
        PTR | TYPEDEF | VOLATILE | CONST | RESTRICT | FLOAT | TYPE_TAG => 0,
        // Of forward declarations and functions.
        7 | 12 => 0,
        INT | VAR | DECL_TAG => 4,
        ARRAY => 12,
        STRUCT | UNION | DATASEC | ENUM64 => members.saturating_mul(12),
        ENUM | FUNC_PROTO => members.saturating_mul(8),
        _ => return None,
    })
}

#[cfg(test)]
#[path = "btf_tests.rs"]
mod tests;
