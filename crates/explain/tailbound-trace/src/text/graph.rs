// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of the kernel's functions with their lengths, as the tracer `function_graph` and the option `display-graph`
//! write them.
//!
//! Units: ns. A line is `TIME | CPU) NAME-PID | STATE | LENGTH | TEXT`, each part but the text optional.
//! Source: Documentation/trace/ftrace.rst, "function graph tracer"; kernel/trace/trace_functions_graph.c.

use std::collections::BTreeMap;

use super::record::{micros, number, seconds};
use super::state::{Columns, CpuState};

/// Deepest call that is followed, and most CPUs.
const DEPTH_MAX: usize = 512;
const CPUS_MAX: usize = 4096;
/// Longest calls that are kept of one outermost call.
const CALLS_MAX: usize = 8;

/// What a line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text<'a> {
    Enter(&'a str),
    Leaf(&'a str),
    Exit(Option<&'a str>),
    Other,
}

/// A line, parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GraphLine<'a> {
    t_ns: Option<u64>,
    cpu: u32,
    task: Option<(&'a str, i32)>,
    state: Option<CpuState>,
    ns: Option<i64>,
    text: Text<'a>,
}

/// A call that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GraphCall {
    pub(super) function: String,
    /// Who called it, the nearest first.
    pub(super) callers: Vec<String>,
    pub(super) ns: i64,
    /// Without what it called itself.
    pub(super) own_ns: i64,
}

/// An outermost call that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallTree {
    pub(super) cpu: u32,
    /// `bash-12`, where the lines name threads.
    pub(super) task: String,
    pub(super) state: Option<CpuState>,
    /// Where the lines have times.
    pub(super) end_ns: Option<u64>,
    pub(super) top: GraphCall,
    /// The calls within that took longest by themselves, the longest first.
    pub(super) longest: Vec<GraphCall>,
}

#[derive(Clone, Debug, Default)]
struct Open {
    function: String,
    within_ns: i64,
}

#[derive(Clone, Debug, Default)]
struct CpuCalls {
    open: Vec<Open>,
    /// Calls deeper than are followed.
    deeper: usize,
    longest: Vec<GraphCall>,
    task: String,
    state: Option<CpuState>,
}

/// The calls of each CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    cpus: BTreeMap<u32, CpuCalls>,
    /// Lines that were read.
    pub(super) lines: u64,
    /// Calls without a begin or without an end in the text.
    pub(super) parted: u64,
}

/// What a line was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GraphItem {
    /// None of a graph.
    Foreign,
    /// One that ends no outermost call.
    Within,
    /// The end of one.
    Ended(Box<CallTree>),
}

impl Graph {
    /// Takes a line.
    pub(super) fn line(&mut self, line: &str, columns: &Columns) -> GraphItem {
        let Some(part) = parted(line, columns) else { return GraphItem::Foreign };
        if self.cpus.len() >= CPUS_MAX && !self.cpus.contains_key(&part.cpu) {
            return GraphItem::Foreign;
        }
        self.lines = self.lines.saturating_add(1);
        let calls = self.cpus.entry(part.cpu).or_default();
        if let Some((comm, pid)) = part.task {
            calls.task = format!("{comm}-{pid}");
        }
        let call = match part.text {
            Text::Other => return GraphItem::Within,
            Text::Enter(function) => {
                if calls.open.is_empty() {
                    calls.state = part.state;
                }
                if calls.open.len() < DEPTH_MAX {
                    calls.open.push(Open { function: function.to_owned(), within_ns: 0 });
                } else {
                    calls.deeper = calls.deeper.saturating_add(1);
                }
                return GraphItem::Within;
            }
            Text::Leaf(function) => {
                if calls.open.is_empty() {
                    calls.state = part.state;
                }
                let ns = part.ns.unwrap_or(0);
                GraphCall { function: function.to_owned(), callers: Vec::new(), ns, own_ns: ns }
            }
            Text::Exit(_) if calls.deeper > 0 => {
                calls.deeper = calls.deeper.saturating_sub(1);
                return GraphItem::Within;
            }
            Text::Exit(name) => {
                let open = calls.open.pop();
                let (Some(ns), true) = (part.ns, open.is_some() || name.is_some()) else {
                    self.parted = self.parted.saturating_add(1);
                    return GraphItem::Within;
                };
                if open.is_none() {
                    self.parted = self.parted.saturating_add(1);
                    calls.state = part.state;
                }
                let open = open.unwrap_or_default();
                let function = name.map_or(open.function, str::to_owned);
                let own_ns = ns.saturating_sub(open.within_ns).max(0);
                GraphCall { function, callers: Vec::new(), ns, own_ns }
            }
        };
        calls.ended(call, part.cpu, part.t_ns)
    }

    /// Calls that have not ended, of all CPUs.
    pub(super) fn unfinished(&self) -> u64 {
        let open = self.cpus.values().filter(|c| !c.open.is_empty()).count();
        u64::try_from(open).unwrap_or(u64::MAX)
    }
}

impl CpuCalls {
    fn ended(&mut self, mut call: GraphCall, cpu: u32, t_ns: Option<u64>) -> GraphItem {
        if let Some(outer) = self.open.last_mut() {
            outer.within_ns = outer.within_ns.saturating_add(call.ns);
        }
        let place = self.longest.partition_point(|c| c.own_ns >= call.own_ns);
        if place < CALLS_MAX && call.own_ns > 0 {
            call.callers =
                self.open.iter().rev().take(3).map(|open| open.function.clone()).collect();
            self.longest.insert(place, call.clone());
            self.longest.truncate(CALLS_MAX);
        }
        if !self.open.is_empty() {
            return GraphItem::Within;
        }
        let longest = std::mem::take(&mut self.longest);
        let (task, state) = (self.task.clone(), self.state);
        GraphItem::Ended(Box::new(CallTree { cpu, task, state, end_ns: t_ns, top: call, longest }))
    }
}

fn parted<'a>(line: &'a str, columns: &Columns) -> Option<GraphLine<'a>> {
    let mut found =
        GraphLine { t_ns: None, cpu: 0, task: None, state: None, ns: None, text: Text::Other };
    let (mut rest, mut cpu) = (line, None);
    while cpu.is_none() {
        // Before the CPU there are times alone.
        if let Some((n, after)) = rest.split_once(')')
            && let Some(n) = number(n)
        {
            (cpu, rest) = (Some(n), after);
            break;
        }
        let (time, after) = rest.split_once('|')?;
        let time = time.trim();
        let offset = time.strip_suffix("us").and_then(number::<u64>);
        found.t_ns = Some(match offset {
            Some(us) => us.checked_mul(1000)?,
            None => seconds(time)?,
        });
        rest = after;
    }
    found.cpu = cpu?;
    loop {
        let (piece, after) = match rest.split_once('|') {
            Some(parts) => parts,
            // The line of another thread: ` 0)  bash-12  =>  cat-13`.
            None => return rest.contains("=>").then_some(found),
        };
        let bare = piece.trim().trim_start_matches(['+', '!', '#', '*', '@', '$']);
        rest = after;
        if bare.is_empty() {
            break;
        }
        if let Some(ns) = micros(bare) {
            found.ns = Some(ns);
            break;
        }
        if let Some(state) = columns.state(bare) {
            found.state = Some(state);
        } else if let Some((comm, pid)) = bare.rsplit_once('-')
            && let Some(pid) = number(pid)
        {
            found.task = Some((comm, pid));
        } else {
            // An arrow of an interrupt: ` 0)   ==========> |`.
            return bare.contains("===").then_some(found);
        }
    }
    found.text = text(rest.trim());
    Some(found)
}

fn text(text: &str) -> Text<'_> {
    if let Some(rest) = text.strip_prefix('}') {
        let name = rest.trim().strip_prefix("/*").and_then(|t| t.split_whitespace().next());
        let name = name.filter(|n| n.bytes().all(is_name)).map(|n| n.trim_end_matches("()"));
        return Text::Exit(name);
    }
    let name = text.split_once('(').map(|(name, _)| name).filter(|n| !n.is_empty());
    let Some(name) = name.filter(|n| n.bytes().all(is_name)) else { return Text::Other };
    // A value that it gave back may stand behind it.
    let bare = text.split(" /*").next().unwrap_or(text).trim_end();
    match (bare.ends_with(';'), bare.ends_with('{')) {
        (true, _) => Text::Leaf(name),
        (_, true) => Text::Enter(name),
        _ => Text::Other,
    }
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"_.$<>()[]-".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trees(text: &str) -> Vec<CallTree> {
        let mut graph = Graph::default();
        let columns = Columns::default();
        let ended = |line: &str| match graph.line(line, &columns) {
            GraphItem::Ended(tree) => Some(*tree),
            _ => None,
        };
        text.lines().filter_map(ended).collect()
    }

    #[test]
    fn the_time_of_a_call_is_without_that_of_those_within_it() {
        let found = trees(
            " 1)               |  sys_read() {\n \
             1)   0.500 us    |    fdget();\n \
             1)               |    vfs_read() {\n \
             1) ! 200.000 us  |      copy_page();\n \
             1) ! 210.250 us  |    }\n \
             1) ! 220.000 us  |  } /* sys_read */\n",
        );
        let [tree] = &found[..] else { panic!("{found:?}") };
        assert_eq!((tree.cpu, tree.top.function.as_str(), tree.top.ns), (1, "sys_read", 220_000));
        let first = &tree.longest[0];
        assert_eq!((first.function.as_str(), first.own_ns), ("copy_page", 200_000));
        assert_eq!(first.callers, ["vfs_read", "sys_read"]);
        assert_eq!(tree.longest[1].own_ns, 10_250, "vfs_read by itself");
    }

    #[test]
    fn the_latency_layout_names_thread_and_state() {
        let found = trees(
            "        0 us |   0)   bash-1234    |  d..1. |   1.000 us    |  f(); /* = 0x0 */\n \
             1.000002 |   2)   a b-7    |  dN.h1.. |   1.000 us    |  g(x=1);",
        );
        let tasks: Vec<&str> = found.iter().map(|t| t.task.as_str()).collect();
        assert_eq!(tasks, ["bash-1234", "a b-7"]);
        assert!(found[1].state.unwrap().irqs_off);
        assert_eq!(found[1].end_ns, Some(1_000_002_000));
    }

    #[test]
    fn ends_without_begins_and_arrows_do_no_harm() {
        let found = trees(
            " 0)   2.000 us    |  }\n 0)   2.000 us    |  } /* tail */\n 0)   ==========> |\n \
             0)  a-1  =>  b-2\n ------\n 0)   <========== |\n 0) | |",
        );
        let [tree] = &found[..] else { panic!("{found:?}") };
        assert_eq!(tree.top.function, "tail");
    }
}
