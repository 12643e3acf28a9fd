// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which kernel a module was built for, and which release a kernel image is.
//!
//! Pure. `None` where it is not written in the clear (a compressed module,
//! an image that is not a bzImage): unknown, never "fits".
//! Source: `vermagic=` in the section `.modinfo`; Documentation/arch/x86/boot.rst
//! (`kernel_version` at 0x20e points to the release, less 0x200).

/// Release and the words after it: `5.4.291 SMP preempt mod_unload `.
pub(super) fn of_module(bytes: &[u8]) -> Option<String> {
    let key = b"vermagic=";
    let at = bytes.windows(key.len()).position(|w| w == key)?.checked_add(key.len())?;
    let value = bytes.get(at..)?.split(|b| *b == 0).next()?;
    Some(String::from_utf8_lossy(value).trim().to_owned())
}

/// The release of a bzImage, the first word of its version.
pub(super) fn of_image(bytes: &[u8]) -> Option<String> {
    if bytes.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let [low, high] = bytes.get(0x20e..0x210)? else { return None };
    let at = usize::from(u16::from_le_bytes([*low, *high]));
    if at == 0 {
        return None;
    }
    let text = bytes.get(at.checked_add(0x200)?..)?.split(|b| *b == 0).next()?;
    let text = String::from_utf8_lossy(text);
    text.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_found_where_the_kernel_writes_them() {
        let module =
            b"\x7fELF....license=GPL\0vermagic=5.4.291-rtai SMP preempt mod_unload \0name=x\0";
        assert_eq!(of_module(module).as_deref(), Some("5.4.291-rtai SMP preempt mod_unload"));
        assert_eq!(of_module(b"\xfd7zXZ"), None);
        let mut image = vec![0u8; 0x400];
        image.splice(0x202..0x206, *b"HdrS");
        image.splice(0x20e..0x210, [0x50, 0x01]);
        image.splice(0x350..0x350 + 17, *b"5.4.291-rtai (me)");
        assert_eq!(of_image(&image).as_deref(), Some("5.4.291-rtai"));
        assert_eq!(of_image(b"short"), None);
    }
}
