// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tree of calls, from the blocks of instructions that were executed one after the other.
//!
//! Context: COLD. Units: ns.
//! A block that ends with a call begins a function; one that ends with a return ends one, and what goes on is the nearest
//! frame of the function that comes next; any other change of function is an interrupt or exception, or a jump that takes
//! the place of a call.

use tailbound_core::paths::TreeLine;

use crate::record::block;

/// Lines that are shorter than this share of the whole are left out.
const LEAST_SHARE: i64 = 50;
/// Deepest line.
const DEPTH_MAX: u16 = 24;

/// A function called from one place.
#[derive(Debug, Default)]
struct Node {
    name: String,
    calls: u64,
    own_ns: i64,
    below: Vec<usize>,
    above: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    now: usize,
    begun: bool,
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], now: 0, begun: false }
    }
}

impl Tree {
    fn name(&self, at: usize) -> &str {
        self.nodes.get(at).map_or("", |n| n.name.as_str())
    }

    fn above(&self, at: usize) -> usize {
        self.nodes.get(at).map_or(0, |n| n.above)
    }

    fn enter(&mut self, name: &str) {
        let below = self.nodes.get(self.now).map_or(&[][..], |n| &n.below);
        let there = below.iter().copied().find(|at| self.name(*at) == name);
        let at = there.unwrap_or_else(|| {
            let at = self.nodes.len();
            self.nodes.push(Node { name: name.to_owned(), above: self.now, ..Node::default() });
            if let Some(node) = self.nodes.get_mut(self.now) {
                node.below.push(at);
            }
            at
        });
        if let Some(node) = self.nodes.get_mut(at) {
            node.calls += 1;
        }
        self.now = at;
    }

    /// A block of the function `name` that took `ns`; the one before ended so.
    pub fn add(&mut self, name: &str, before: u8, ns: i64) {
        if !self.begun {
            self.begun = true;
            self.enter(name);
        } else if before == block::CALL {
            self.enter(name);
        } else if before == block::RETURN {
            self.back(name);
        } else if name != self.name(self.now) {
            if entry(name) || self.now == 0 {
                self.enter(name);
            } else if self.frame(name).is_some() && entry(self.name(self.now)) {
                // The interrupt is over.
                self.back(name);
            } else {
                self.now = self.above(self.now);
                self.enter(name);
            }
        }
        if let Some(node) = self.nodes.get_mut(self.now) {
            node.own_ns += ns;
        }
    }

    /// The nearest frame above of that name.
    fn frame(&self, name: &str) -> Option<usize> {
        let mut at = self.above(self.now);
        while at != 0 {
            if self.name(at) == name {
                return Some(at);
            }
            at = self.above(at);
        }
        None
    }

    fn back(&mut self, name: &str) {
        match self.frame(name) {
            Some(at) => self.now = at,
            // Of a function that had begun before.
            None => {
                self.now = 0;
                self.enter(name);
            }
        }
    }

    fn total(&self, at: usize) -> i64 {
        let node = self.nodes.get(at);
        let below = node.into_iter().flat_map(|n| n.below.iter()).map(|b| self.total(*b));
        node.map_or(0, |n| n.own_ns) + below.sum::<i64>()
    }

    /// Its lines, from the outermost inwards, the longest first.
    #[must_use]
    pub fn lines(&self) -> Vec<TreeLine> {
        let mut lines = Vec::new();
        let least = self.total(0) / LEAST_SHARE;
        self.write(0, 0, least, &mut lines);
        lines
    }

    fn write(&self, at: usize, depth: u16, least: i64, lines: &mut Vec<TreeLine>) {
        let below = self.nodes.get(at).map_or(&[][..], |n| &n.below);
        let mut below: Vec<(i64, usize)> = below.iter().map(|b| (self.total(*b), *b)).collect();
        below.sort_by_key(|(total, at)| (std::cmp::Reverse(*total), *at));
        for (total_ns, at) in below.into_iter().filter(|(total, _)| *total > least) {
            let Some(node) = self.nodes.get(at) else { continue };
            lines.push(TreeLine {
                depth,
                name: node.name.clone(),
                calls: node.calls,
                total_ns,
                own_ns: node.own_ns,
            });
            if depth < DEPTH_MAX {
                self.write(at, depth + 1, least, lines);
            }
        }
    }
}

/// Does a function of this name begin by an interrupt, an exception or a system call?
fn entry(name: &str) -> bool {
    ["asm_", "irq_entries_start", "entry_"].iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_returns_interrupts_and_jumps() {
        let mut tree = Tree::default();
        for (name, before, ns) in [
            ("a", block::JUMP, 10),
            ("b", block::CALL, 20),
            // An interrupt within b, which goes on.
            ("asm_timer", block::JUMP, 5),
            ("handler", block::CALL, 15),
            ("asm_timer", block::RETURN, 5),
            ("b", block::JUMP, 20),
            // A jump in place of a call.
            ("c", block::JUMP, 25),
            ("a", block::RETURN, 10),
        ] {
            tree.add(name, before, ns);
        }
        let lines: Vec<_> =
            tree.lines().into_iter().map(|l| (l.depth, l.name, l.total_ns, l.own_ns)).collect();
        assert_eq!(
            lines,
            [
                (0, "a".to_owned(), 110, 20),
                (1, "b".to_owned(), 65, 40),
                (2, "asm_timer".to_owned(), 25, 10),
                (3, "handler".to_owned(), 15, 15),
                (1, "c".to_owned(), 25, 25),
            ]
        );
    }
}
