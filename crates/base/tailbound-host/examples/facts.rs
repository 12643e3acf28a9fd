// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes every fact of this machine (or of the tree given as argument), for people who add one.

use std::io::Write;

use tailbound_host::{Root, inventory};

fn main() -> std::io::Result<()> {
    let root = std::env::args().nth(1).map_or_else(Root::real, Root::at);
    let begin = std::time::Instant::now();
    let facts = inventory(&root);
    let took = begin.elapsed();
    let mut out = std::io::stdout().lock();
    for (name, fact) in &facts {
        writeln!(out, "{name} = {}", fact.text())?;
    }
    writeln!(out, "# {} facts in {took:?}", facts.len())
}
