// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tree of calls, from the blocks of instructions that were executed one after the other.
//!
//! Context: COLD. Units: ns.
//! A call enters a function. A return goes back to the nearest frame of the function that comes next; where
//! there is none, that function called all that came so far. Any other change of function is an interrupt or exception, or a
//! jump that takes the place of a call. A switch to another thread begins another stack.

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
    /// Outermost functions of threads that had the CPU before.
    before: usize,
    /// The stack is being changed.
    switching: bool,
}

/// A block as a tree sees it.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Its function.
    pub name: &'a str,
    /// It is where the function begins.
    pub begins: bool,
    /// How the block before ended: [`block`].
    pub before: u8,
    /// How long it took.
    pub ns: i64,
}

/// Changes from one thread's stack to another's.
const SWITCH: &str = "__switch_to_asm";

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], now: 0, before: 0, switching: false }
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

    /// The next block.
    pub fn add(&mut self, step: Step<'_>) {
        let Step { name, begins, before, ns } = step;
        // A call to the middle of the own function only fills the processor's stack of return addresses.
        let called = before == block::CALL && (begins || name != self.name(self.now));
        // A thunk (retpoline) goes to a function by a return; none comes back to where a function begins.
        let returned = before == block::RETURN && !begins;
        if self.now == 0 || called {
            self.enter(name);
        } else if returned && self.switching {
            self.now = 0;
            self.before = self.nodes.first().map_or(0, |root| root.below.len());
            self.enter(name);
        } else if returned {
            self.back(name);
        } else if name != self.name(self.now) {
            if entry(name) {
                self.enter(name);
            } else if self.frame(name).is_some() && entry(self.name(self.now)) {
                // The interrupt is over.
                self.back(name);
            } else {
                self.now = self.above(self.now);
                self.enter(name);
            }
        }
        self.switching = name == SWITCH || self.switching && !returned;
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
            None if self.name(self.now) == name => {}
            None => self.around(name),
        }
    }

    /// `name` called all that this thread did so far.
    fn around(&mut self, name: &str) {
        let at = self.nodes.len();
        let Some(root) = self.nodes.first_mut() else { return };
        let below = root.below.split_off(self.before.min(root.below.len()));
        root.below.push(at);
        for one in &below {
            if let Some(node) = self.nodes.get_mut(*one) {
                node.above = at;
            }
        }
        self.nodes.push(Node { name: name.to_owned(), calls: 1, own_ns: 0, below, above: 0 });
        self.now = at;
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

    fn lines(steps: &[(&str, bool, u8, i64)]) -> Vec<(u16, String, i64, i64)> {
        let mut tree = Tree::default();
        for &(name, begins, before, ns) in steps {
            tree.add(Step { name, begins, before, ns });
        }
        tree.lines().into_iter().map(|l| (l.depth, l.name, l.total_ns, l.own_ns)).collect()
    }

    #[test]
    fn calls_returns_interrupts_and_jumps() {
        let found = lines(&[
            ("a", false, block::JUMP, 10),
            ("b", true, block::CALL, 20),
            // An interrupt within b, which goes on.
            ("asm_timer", true, block::JUMP, 5),
            ("handler", true, block::CALL, 15),
            ("asm_timer", false, block::RETURN, 5),
            ("b", false, block::JUMP, 20),
            // A jump in place of a call.
            ("c", true, block::JUMP, 25),
            ("a", false, block::RETURN, 10),
            // Of a function that had begun before.
            ("outer", false, block::RETURN, 7),
        ]);
        assert_eq!(
            found,
            [
                (0, "outer".to_owned(), 117, 7),
                (1, "a".to_owned(), 110, 20),
                (2, "b".to_owned(), 65, 40),
                (3, "asm_timer".to_owned(), 25, 10),
                (4, "handler".to_owned(), 15, 15),
                (2, "c".to_owned(), 25, 25),
            ]
        );
    }

    #[test]
    fn a_thunk_is_replaced_by_what_it_goes_to() {
        let found = lines(&[
            ("a", false, block::JUMP, 10),
            ("__x86_indirect_thunk_rax", true, block::CALL, 2),
            ("__x86_indirect_thunk_rax", false, block::CALL, 2),
            ("b", true, block::RETURN, 30),
            ("a", false, block::RETURN, 10),
        ]);
        assert_eq!(
            found,
            [
                (0, "a".to_owned(), 54, 20),
                (1, "b".to_owned(), 30, 30),
                (1, "__x86_indirect_thunk_rax".to_owned(), 4, 4),
            ]
        );
    }

    #[test]
    fn another_thread_has_another_stack() {
        let found = lines(&[
            ("__schedule", true, block::JUMP, 10),
            (SWITCH, true, block::CALL, 10),
            (SWITCH, false, block::CALL, 10),
            (SWITCH, false, block::CALL, 10),
            ("__schedule", false, block::RETURN, 10),
            ("schedule", false, block::RETURN, 10),
        ]);
        // The function that both threads were in is one.
        assert_eq!(
            found,
            [
                (0, "__schedule".to_owned(), 50, 20),
                (1, SWITCH.to_owned(), 30, 30),
                (0, "schedule".to_owned(), 10, 10),
            ]
        );
    }
}
