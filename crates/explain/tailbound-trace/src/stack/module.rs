// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one file of a program tells: its functions, and how their frames are undone.
//!
//! A file that lies about itself yields less, not a panic.
//! Source: elf(5); Linux Standard Base, .eh_frame and .eh_frame_hdr.

use gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian, UnwindSection as _};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

use super::demangle;

/// More functions than any program has.
const FUNCTIONS_MAX: usize = 4_000_000;
/// Most bytes of all names: several may lie on the same bytes of the file.
const NAMES_BYTES_MAX: usize = 256 << 20;

/// One function.
#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    /// 0: up to the next one.
    size: u64,
    /// Where its name lies in `names`.
    at: u32,
    length: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Module {
    functions: Vec<Function>,
    names: String,
    /// Place in the file, place in memory as the file says, and length of what is loaded.
    segments: Vec<(u64, u64, u64)>,
    eh_frame: Vec<u8>,
    eh_frame_hdr: Vec<u8>,
    bases: BaseAddresses,
}

impl Module {
    /// Reads a file.
    ///
    /// # Errors
    /// It is none that could be read.
    pub fn parse(bytes: &[u8]) -> Result<Self, object::Error> {
        let file = object::File::parse(bytes)?;
        let mut module = Self::default();
        for segment in file.segments() {
            let (at, length) = segment.file_range();
            module.segments.push((at, segment.address(), length));
        }
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            Some((section.address(), section.data().ok()?.to_vec()))
        };
        if let Some((address, data)) = section(".eh_frame") {
            module.bases = module.bases.set_eh_frame(address);
            module.eh_frame = data;
        }
        if let Some((address, data)) = section(".eh_frame_hdr") {
            module.bases = module.bases.set_eh_frame_hdr(address);
            module.eh_frame_hdr = data;
        }
        if let Some(text) = file.section_by_name(".text") {
            module.bases = module.bases.set_text(text.address());
        }
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if symbol.kind() != SymbolKind::Text || symbol.address() == 0 {
                continue;
            }
            let Ok(name) = symbol.name() else { continue };
            let (Ok(at), Ok(length)) =
                (u32::try_from(module.names.len()), u32::try_from(name.len()))
            else {
                break;
            };
            if name.is_empty() || module.functions.len() >= FUNCTIONS_MAX {
                continue;
            }
            if module.names.len().saturating_add(name.len()) > NAMES_BYTES_MAX {
                break;
            }
            module.names.push_str(name);
            let function = Function { start: symbol.address(), size: symbol.size(), at, length };
            module.functions.push(function);
        }
        // Of several names the longest extent, then the shortest name: `read`, not `__read_alias`.
        module.functions.sort_by_key(|f| (f.start, std::cmp::Reverse(f.size), f.length));
        module.functions.dedup_by_key(|f| f.start);
        Ok(module)
    }

    /// The address as the file says, of a place in the file.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|(at, address, length)| {
            let far = offset.checked_sub(*at).filter(|far| far < length)?;
            address.checked_add(far)
        })
    }

    /// The function that an address of the file lies in, and how far from its begin.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<(String, u64)> {
        let after = self.functions.partition_point(|f| f.start <= address);
        let f = self.functions.get(after.checked_sub(1)?)?;
        let far = address.checked_sub(f.start)?;
        if f.size != 0 && far >= f.size {
            return None;
        }
        let at = f.at as usize;
        let raw = self.names.get(at..at.checked_add(f.length as usize)?)?;
        Some((demangle::name(raw), far))
    }

    /// Has it tables for undoing frames?
    #[must_use]
    pub fn has_tables(&self) -> bool {
        !self.eh_frame.is_empty()
    }

    /// Hands the row of the table for an address to `with`.
    pub(super) fn row<T>(
        &self,
        address: u64,
        with: impl FnOnce(&gimli::UnwindTableRow<usize>) -> T,
    ) -> Option<T> {
        if self.eh_frame.is_empty() {
            return None;
        }
        let eh_frame = EhFrame::new(&self.eh_frame, LittleEndian);
        let header = EhFrameHdr::new(&self.eh_frame_hdr, LittleEndian).parse(&self.bases, 8).ok();
        let by_table = header.as_ref().and_then(|h| h.table()).and_then(|table| {
            table.fde_for_address(&eh_frame, &self.bases, address, EhFrame::cie_from_offset).ok()
        });
        let fde = match by_table {
            Some(fde) => fde,
            None => {
                eh_frame.fde_for_address(&self.bases, address, EhFrame::cie_from_offset).ok()?
            }
        };
        let mut context = gimli::UnwindContext::new();
        let row =
            fde.unwind_info_for_address(&eh_frame, &self.bases, &mut context, address).ok()?;
        Some(with(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_is_refused_without_a_panic() {
        assert!(Module::parse(b"").is_err());
        assert!(Module::parse(b"\x7fELF\x02\x01\x01").is_err());
        assert_eq!(Module::default().function(1), None);
        assert_eq!(Module::default().address_of(1), None);
        assert_eq!(Module::default().row(1, |_| ()), None);
    }
}
