// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people read in place of an address.

use tailbound_trace::symbols::Symbols;

/// The function at `address`.
pub(crate) fn named(symbols: &Symbols, address: u64) -> &str {
    match symbols.name(address) {
        _ if address >> 63 == 0 => "user mode",
        Some(name) => name,
        None => "a function without a name",
    }
}
