// SPDX-License-Identifier: MIT OR Apache-2.0
//! What xtask asks static libraries and ELF files for: members, symbols, interpreter.
//!
//! Source: elf(5); the common `ar` format of binutils.

use anyhow::{Context as _, ensure};
use object::elf::{FileHeader32, FileHeader64};
use object::read::archive::ArchiveFile;
use object::read::elf::{FileHeader, ProgramHeader as _};
use object::{File, FileKind, LittleEndian, Object as _, ObjectSymbol, SymbolKind};

/// One symbol of an object file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) defined: bool,
}

/// The members of a static library: name and bytes.
pub(crate) fn members(archive: &[u8]) -> anyhow::Result<Vec<(String, &[u8])>> {
    let library = ArchiveFile::parse(archive).context("not a static library")?;
    let mut out = Vec::new();
    for member in library.members() {
        let member = member.context("a member is cut off")?;
        let name = String::from_utf8_lossy(member.name()).into_owned();
        let bytes = member.data(archive).with_context(|| format!("{name} is cut off"))?;
        out.push((name, bytes));
    }
    Ok(out)
}

/// Named symbols of an object file, the empty and the section ones left out.
pub(crate) fn symbols(object: &[u8]) -> anyhow::Result<Vec<Symbol>> {
    named(File::parse(object)?.symbols())
}

/// Named symbols of a shared library that programs are linked with.
pub(crate) fn dynamic_symbols(library: &[u8]) -> anyhow::Result<Vec<Symbol>> {
    named(File::parse(library)?.dynamic_symbols())
}

fn named<'a>(all: impl Iterator<Item = impl ObjectSymbol<'a>>) -> anyhow::Result<Vec<Symbol>> {
    let mut out = Vec::new();
    for symbol in all {
        let name = String::from_utf8_lossy(symbol.name_bytes()?).into_owned();
        let is_own = !matches!(symbol.kind(), SymbolKind::Section | SymbolKind::File);
        if is_own && !name.is_empty() {
            out.push(Symbol { name, defined: !symbol.is_undefined() });
        }
    }
    Ok(out)
}

/// The dynamic linker an executable asks for; `None`: it is fully static.
pub(crate) fn interpreter(program: &[u8]) -> anyhow::Result<Option<String>> {
    match FileKind::parse(program)? {
        FileKind::Elf32 => interpreter_of::<FileHeader32<LittleEndian>>(program),
        FileKind::Elf64 => interpreter_of::<FileHeader64<LittleEndian>>(program),
        other => anyhow::bail!("not an ELF file: {other:?}"),
    }
}

fn interpreter_of<H: FileHeader<Endian = LittleEndian>>(
    program: &[u8],
) -> anyhow::Result<Option<String>> {
    let header = H::parse(program)?;
    ensure!(header.is_little_endian(), "not a little-endian ELF file");
    for segment in header.program_headers(LittleEndian, program)? {
        if let Some(path) = segment.interpreter(LittleEndian, program)? {
            return Ok(Some(String::from_utf8_lossy(path).into_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_program_names_its_interpreter() {
        let me = std::fs::read("/proc/self/exe").unwrap();
        let interpreter = interpreter(&me).unwrap();
        let linked = interpreter.is_some_and(|i| i.contains("ld"));
        assert_eq!(linked, cfg!(not(target_feature = "crt-static")));
    }

    #[test]
    fn rubbish_is_refused() {
        assert!(members(b"!<arch>").is_err());
        assert!(members(b"!<arch>\n").unwrap().is_empty());
        assert!(members(b"!<arch>\nx").is_err());
        assert!(symbols(b"\x7fELF").is_err());
        assert!(interpreter(b"\x7fELF\x02\x01").is_err());
    }
}
