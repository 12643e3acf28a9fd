// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel image: which architecture it boots.
//!
//! Not here: hashes (`hash`). Source: Documentation/arch/x86/boot.rst (`HdrS` at 0x202),
//! arch/arm64/booting.rst (`ARM\x64` at 56), arch/arm/boot/compressed/head.S (0x016f2818 at
//! 36), elf(5).

use std::io::Read;
use std::path::Path;

use tailbound_sys::given;

use crate::arch::Arch;
use crate::error::{FileError, KernelError, LabError};

/// Checks that `image` is something QEMU boots on `arch`.
///
/// # Errors
/// Usage: it is not a kernel image, or one of another architecture, and what it is.
pub(crate) fn check(image: &Path, arch: Arch) -> Result<(), LabError> {
    let mut head = Vec::new();
    given::file(image)
        .and_then(|f| f.take(1024).read_to_end(&mut head))
        .map_err(|source| FileError::Given { path: image.to_owned(), source })?;
    let source = match of_head(&head) {
        Ok(found) if found == arch => return Ok(()),
        Ok(found) => NoImage::OtherArch { found, arch },
        Err(what) => what,
    };
    Err(KernelError::NoImage { path: image.to_owned(), source }.into())
}

/// What a file is that QEMU cannot boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoImage {
    /// An image for another architecture.
    #[error("a kernel for {found}, not for {arch} (see --arch)")]
    OtherArch {
        /// Its architecture.
        found: Arch,
        /// The guest's.
        arch: Arch,
    },
    /// A program, or an image that is not supported.
    #[error("an ELF file of an unknown machine, not a kernel image")]
    UnknownMachine,
    /// Firmware would unpack it.
    #[error("an EFI zboot image, which needs firmware: build `Image` instead of `vmlinuz.efi`")]
    Zboot,
    /// A boot loader would unpack it.
    #[error("compressed with gzip: unpack it first (gunzip)")]
    Gzip,
    /// Something else.
    #[error("not a kernel image (bzImage, Image, zImage or vmlinux)")]
    Other,
}

fn of_head(head: &[u8]) -> Result<Arch, NoImage> {
    let at = |offset: usize, magic: &[u8]| head.get(offset..offset + magic.len()) == Some(magic);
    if at(0x202, b"HdrS") {
        Ok(Arch::X86_64)
    } else if at(56, b"ARM\x64") {
        Ok(Arch::Aarch64)
    } else if at(36, &[0x18, 0x28, 0x6f, 0x01]) {
        Ok(Arch::Arm)
    } else if at(0, b"\x7fELF") {
        match head.get(18..20) {
            Some([62, 0]) => Ok(Arch::X86_64),
            Some([183, 0]) => Ok(Arch::Aarch64),
            Some([40, 0]) => Ok(Arch::Arm),
            _ => Err(NoImage::UnknownMachine),
        }
    } else if at(4, b"zimg") {
        Err(NoImage::Zboot)
    } else if at(0, &[0x1f, 0x8b]) {
        Err(NoImage::Gzip)
    } else {
        Err(NoImage::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_told_by_their_magic() {
        let made = |offset: usize, magic: &[u8]| {
            let mut head = vec![0; 1024];
            head.splice(offset..offset + magic.len(), magic.iter().copied());
            head
        };
        assert_eq!(of_head(&made(0x202, b"HdrS")), Ok(Arch::X86_64));
        assert_eq!(of_head(&made(56, b"ARM\x64")), Ok(Arch::Aarch64));
        assert_eq!(of_head(&made(36, &[0x18, 0x28, 0x6f, 0x01])), Ok(Arch::Arm));
        assert_eq!(of_head(&made(4, b"zimg")), Err(NoImage::Zboot));
        assert_eq!(of_head(b"#!/bin/sh"), Err(NoImage::Other));
        assert!(of_head(b"").is_err());
    }
}
