// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tree of calls, from the blocks of instructions that were executed one after the other, and where the stack ended.
//!
//! Units: ns; bytes of the stack, of which the low 32 bits are known.
//! A function is over when the stack is shorter than when it began, whatever instructions did that: returns, thunks
//! that go somewhere by a return, and tables that fill the processor's stack of return addresses are all the same. A thread, an interrupt and
//! soft interrupts have a stack each; coming back to one finds its functions again. A function that had begun before is
//! what called all that its stack has seen.
//! Where a call leaves its return address in a register (ARM), the stack ends where it did when the function that was called begins:
//! that one is over when another one goes on in its middle.

use std::collections::BTreeMap;
use tailbound_core::order;

use tailbound_core::paths::TreeLine;

use crate::plan::Calls;

/// Lines that are shorter than this share of the whole are left out.
const LEAST_SHARE: i64 = 50;
/// Deepest line.
const DEPTH_MAX: u16 = 24;
/// A function that had begun before: no return of the stack ends it but one to another function.
const BEFORE: u32 = u32::MAX;

/// A function called from one place.
#[derive(Debug, Default)]
struct Node {
    name: String,
    /// The stack that it was called on.
    stack: u32,
    calls: u64,
    own_ns: i64,
    below: Vec<usize>,
}

/// A function that is not over.
#[derive(Clone, Copy, Debug)]
struct Frame {
    node: usize,
    /// Where the stack ended when it began.
    stack: u32,
}

/// One stack.
#[derive(Clone, Debug, Default)]
struct Stack {
    frames: Vec<Frame>,
    /// Which one.
    of: u32,
    /// What its first function belongs to.
    above: usize,
}

/// A block as a tree sees it.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Its function.
    pub name: &'a str,
    /// It is where the function begins.
    pub begins: bool,
    /// An interrupt or exception enters there.
    pub enters: bool,
    /// Where the stack ends.
    pub stack: u32,
    /// How long it took.
    pub ns: i64,
}

/// See the module.
#[derive(Debug)]
pub struct Tree {
    calls: Calls,
    nodes: Vec<Node>,
    stacks: BTreeMap<u32, Stack>,
    /// Which stack is in use, and the node of the block before.
    now: Option<u32>,
    last: usize,
    switched: bool,
}

impl Tree {
    /// Empty.
    #[must_use]
    pub fn new(calls: Calls) -> Self {
        Self {
            calls,
            nodes: vec![Node::default()],
            stacks: BTreeMap::new(),
            now: None,
            last: 0,
            switched: false,
        }
    }

    fn name(&self, at: usize) -> &str {
        self.nodes.get(at).map_or("", |n| n.name.as_str())
    }

    fn below(&self, at: usize) -> &[usize] {
        self.nodes.get(at).map_or(&[], |n| &n.below)
    }

    /// A call of `name` in `above`, on this stack: its node.
    fn enter(&mut self, above: usize, stack: u32, name: &str) -> usize {
        let there = self.below(above).iter().copied().find(|at| self.name(*at) == name);
        let at = there.unwrap_or_else(|| {
            let at = self.nodes.len();
            self.nodes.push(Node { name: name.to_owned(), stack, ..Node::default() });
            if let Some(node) = self.nodes.get_mut(above) {
                node.below.push(at);
            }
            at
        });
        if let Some(node) = self.nodes.get_mut(at) {
            node.calls += 1;
        }
        at
    }

    /// `name` called all that the stack has seen: its node.
    fn around(&mut self, stack: &Stack, name: &str) -> usize {
        let at = self.nodes.len();
        // What other threads did meanwhile stays where it is.
        let all = self.below(stack.above).to_vec();
        let own = |at: &usize| self.nodes.get(*at).is_some_and(|n| n.stack == stack.of);
        let (below, mut rest): (Vec<usize>, Vec<usize>) = all.into_iter().partition(own);
        rest.push(at);
        if let Some(above) = self.nodes.get_mut(stack.above) {
            above.below = rest;
        }
        let name = name.to_owned();
        self.nodes.push(Node { name, stack: stack.of, calls: 1, own_ns: 0, below });
        at
    }

    /// The next block.
    pub fn add(&mut self, step: Step<'_>) {
        // Nothing lies on an empty stack: it ends where the next one begins.
        let of = step.stack.wrapping_sub(1) / self.calls.stack_bytes.max(1);
        let mut stack = self.stacks.remove(&of).unwrap_or_else(|| {
            // An interrupt's or a call's own stack belongs to what went over to it; a thread's to nobody.
            let above = if self.switched || self.now.is_none() { 0 } else { self.last };
            Stack { frames: Vec::new(), of, above }
        });
        if step.enters && self.now != Some(of) {
            // From user mode: what the stack has seen is over.
            stack.frames.clear();
        }
        self.switched = self.switched && self.now == Some(of);
        while stack.frames.last().is_some_and(|f| self.is_over(*f, step)) {
            stack.frames.pop();
        }
        let on_top = stack.frames.last().copied();
        let named = |tree: &Self, f: Frame| tree.name(f.node) == step.name;
        let node = match on_top {
            Some(top) if named(self, top) && !(step.begins && step.stack < top.stack) => top.node,
            // Into whatever was there, even before it stored anything.
            Some(top) if step.enters => {
                let node = self.enter(top.node, of, step.name);
                stack.frames.push(Frame { node, stack: step.stack });
                node
            }
            // A part of a function that lies elsewhere is over.
            Some(top) if !step.begins && self.goes_back(&mut stack, step.name, top) => {
                stack.frames.last().map_or(0, |f| f.node)
            }
            Some(top) if step.stack < top.stack && (top.stack != BEFORE || step.begins) => {
                let node = self.enter(top.node, of, step.name);
                stack.frames.push(Frame { node, stack: step.stack });
                node
            }
            // A jump in place of a call: what it goes to ends where the one before would have.
            Some(top) if top.stack != BEFORE => {
                stack.frames.pop();
                let above = stack.frames.last().map_or(stack.above, |f| f.node);
                let node = self.enter(above, of, step.name);
                stack.frames.push(Frame { node, stack: top.stack });
                node
            }
            _ if step.begins || step.enters => {
                let node = self.enter(stack.above, of, step.name);
                stack.frames = vec![Frame { node, stack: step.stack }];
                node
            }
            _ => {
                let node = self.around(&stack, step.name);
                stack.frames = vec![Frame { node, stack: BEFORE }];
                node
            }
        };
        self.stacks.insert(of, stack);
        self.now = Some(of);
        self.last = node;
        // It goes on behind its middle with the other thread's.
        self.switched |= step.begins && step.name == self.calls.switch;
        if let Some(node) = self.nodes.get_mut(node) {
            node.own_ns += step.ns;
        }
    }

    /// Is the function of the top frame over when this step comes?
    fn is_over(&self, top: Frame, step: Step<'_>) -> bool {
        let same = self.name(top.node) == step.name;
        let returned = !self.calls.push && top.stack == step.stack && top.stack != BEFORE;
        // Another entry into the same vectors at the same stack: the one before is long over.
        top.stack < step.stack
            || (returned && (if step.enters { same } else { !step.begins && !same }))
    }

    /// Is `name` the function below the top, and the top a part of it (`.cold`), or a thunk? Then the top is over.
    fn goes_back(&self, stack: &mut Stack, name: &str, top: Frame) -> bool {
        let before = stack.frames.len().checked_sub(2).and_then(|at| stack.frames.get(at));
        let part = self.name(top.node).contains(".cold");
        let goes = part && before.is_some_and(|f| self.name(f.node) == name);
        if goes {
            stack.frames.pop();
        }
        goes
    }

    /// What is under way, from the outermost function inwards: the last one's last block was the last of all.
    #[must_use]
    pub fn under_way(&self) -> Vec<&str> {
        let stack = self.now.and_then(|now| self.stacks.get(&now));
        let frames = stack.into_iter().flat_map(|stack| &stack.frames);
        frames.map(|frame| self.name(frame.node)).collect()
    }

    fn total(&self, at: usize) -> i64 {
        let own = self.nodes.get(at).map_or(0, |n| n.own_ns);
        own + self.below(at).iter().map(|b| self.total(*b)).sum::<i64>()
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
        let mut below: Vec<(i64, usize)> =
            self.below(at).iter().map(|b| (self.total(*b), *b)).collect();
        order::by_key(&mut below, |(total, at)| (std::cmp::Reverse(*total), *at));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Guest;

    const SWITCH: &str = "__switch_to_asm";

    fn lines(steps: &[(&str, bool, u32, i64)]) -> Vec<(u16, String, i64, i64)> {
        told(Tree::new(Guest::X86_64.calls()), steps)
    }

    fn told(mut tree: Tree, steps: &[(&str, bool, u32, i64)]) -> Vec<(u16, String, i64, i64)> {
        for &(name, begins, stack, ns) in steps {
            let enters = name == "vectors";
            tree.add(Step { name, begins, enters, stack: 0x4000 + stack, ns });
        }
        tree.lines().into_iter().map(|l| (l.depth, l.name, l.total_ns, l.own_ns)).collect()
    }

    #[test]
    fn where_calls_leave_the_stack_alone_a_return_is_seen_by_the_function() {
        let found = told(
            Tree::new(Guest::Arm64.calls()),
            &[
                ("a", true, 800, 10),
                // The stack of a is 64 bytes longer when it calls b, which calls nothing.
                ("b", true, 736, 20),
                ("a", false, 736, 10),
                // b again, interrupted before it stored anything, and another one goes on in its place.
                ("b", true, 736, 20),
                ("vectors", false, 736, 5),
                ("el1_irq", true, 600, 15),
                ("b", false, 736, 20),
                ("c", true, 736, 25),
                ("a", false, 736, 10),
                // Of a function that had begun before.
                ("outer", false, 800, 7),
            ],
        );
        assert_eq!(
            found,
            [
                line(0, "outer", 142, 7),
                line(1, "a", 135, 30),
                line(2, "b", 80, 60),
                line(3, "vectors", 20, 5),
                line(4, "el1_irq", 15, 15),
                line(2, "c", 25, 25),
            ]
        );
    }

    fn line(depth: u16, name: &str, total_ns: i64, own_ns: i64) -> (u16, String, i64, i64) {
        (depth, name.to_owned(), total_ns, own_ns)
    }

    #[test]
    fn calls_returns_interrupts_and_jumps() {
        let found = lines(&[
            ("a", false, 800, 10),
            ("b", true, 792, 20),
            // An interrupt within b, which goes on.
            ("asm_timer", true, 700, 5),
            ("handler", true, 600, 15),
            ("asm_timer", false, 650, 5),
            ("b", false, 780, 20),
            // A jump in place of a call.
            ("c", true, 792, 25),
            ("a", false, 800, 10),
            // Of a function that had begun before.
            ("outer", false, 900, 7),
        ]);
        assert_eq!(
            found,
            [
                line(0, "outer", 117, 7),
                line(1, "a", 110, 20),
                line(2, "b", 65, 40),
                line(3, "asm_timer", 25, 10),
                line(4, "handler", 15, 15),
                line(2, "c", 25, 25),
            ]
        );
    }

    #[test]
    fn a_thunk_is_replaced_by_what_it_goes_to() {
        let found = lines(&[
            ("a", false, 800, 10),
            ("thunk", true, 792, 2),
            ("thunk", false, 784, 2),
            ("b", true, 792, 30),
            ("a", false, 800, 10),
        ]);
        assert_eq!(found, [line(0, "a", 54, 20), line(1, "b", 30, 30), line(1, "thunk", 4, 4)]);
    }

    #[test]
    fn what_another_thread_did_meanwhile_is_its_own() {
        let found = told(
            Tree::new(Guest::Arm64.calls()),
            &[
                ("holds_lock", false, 800, 10),
                ("__schedule", true, 700, 10),
                ("cpu_switch_to", true, 650, 5),
                // The other thread's stack; its first functions had begun before.
                ("cpu_switch_to", false, 0x4000 + 650, 5),
                ("__schedule", false, 0x4000 + 700, 10),
                // A stack of interrupts, empty: its end is the next one's begin.
                ("vectors", false, 0x4000 + 690, 1),
                ("irq", true, 0x8000 + 0x4000, 7),
                ("waits", false, 0x4000 + 900, 20),
                ("__schedule", true, 0x4000 + 700, 10),
                ("cpu_switch_to", true, 0x4000 + 650, 5),
                ("cpu_switch_to", false, 650, 5),
                ("__schedule", false, 690, 5),
                // It goes back to what had begun before.
                ("outer", false, 900, 7),
            ],
        );
        assert_eq!(
            found,
            [
                line(0, "waits", 58, 20),
                line(1, "__schedule", 38, 20),
                line(2, "cpu_switch_to", 10, 10),
                line(2, "vectors", 8, 1),
                line(3, "irq", 7, 7),
                line(0, "outer", 42, 7),
                line(1, "holds_lock", 35, 10),
                line(2, "__schedule", 25, 15),
                line(3, "cpu_switch_to", 10, 10),
            ]
        );
    }

    #[test]
    fn another_thread_has_another_stack_and_an_interrupt_belongs_to_what_it_came_into() {
        let found = lines(&[
            ("schedule", false, 900, 10),
            (SWITCH, true, 892, 10),
            // The other thread's stack.
            ("finish", true, 0x4000 + 700, 10),
            ("wait", false, 0x4000 + 800, 10),
            // A stack of interrupts, and back.
            ("irq", true, 0x8000 + 500, 5),
            ("wait", false, 0x4000 + 790, 10),
        ]);
        assert_eq!(
            found,
            [
                line(0, "wait", 35, 20),
                line(1, "finish", 10, 10),
                line(1, "irq", 5, 5),
                line(0, "schedule", 20, 10),
                line(1, SWITCH, 10, 10),
            ]
        );
    }
}
