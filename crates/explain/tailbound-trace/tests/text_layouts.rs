// SPDX-License-Identifier: MIT OR Apache-2.0
//! One trace of events in the layouts of kernels, tools and mails: each gives the same answer.
//!
//! Source: Documentation/trace/ftrace.rst and trace_print_context, print_func_help_header_irq, ftrace_dump of Linux 4.13,
//! 4.19-rt, 5.15 and 6.13; trace-cmd-report(1); perf-script(1).

use tailbound_core::blame::Cause;
use tailbound_trace::blame::{BlameSelection, Ground, WatchFilter};
use tailbound_trace::text::{self, TextBlame, TextFormat, TextRequest, recognized};

/// A record: thread, letters of the state, µs, event.
struct Line {
    who: String,
    letters: &'static str,
    us: u64,
    event: String,
}

/// The letters at a switch, in an interrupt, and where another thread was asked for.
type Letters = [&'static str; 3];

const FOUR: Letters = ["d..2", "d.h3", ".N.1"];
const FIVE: Letters = ["d..2.", "d.h3.", ".N.1."];
/// Linux 6.13 and later with lazy preemption, and bottom halves off.
const LAZY: Letters = ["D..2.", "dLh3.", "bB.11"];
const SEVEN: Letters = ["d...2..", "d..h3..", ".N..1.."];

fn lines(comm: &str, [switch, interrupt, asked]: Letters) -> Vec<Line> {
    let other = format!("{comm}-50");
    let line = |who: &str, letters, us, event: String| {
        let who = who.to_owned();
        Line { who, letters, us, event }
    };
    vec![
        line(&other, switch, 50, format!("sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm={comm} next_pid=50 next_prio=120")),
        line(&other, interrupt, 100, "sched_waking: comm=ctl pid=900 prio=19 target_cpu=001".to_owned()),
        line(&other, asked, 950, "sched_migrate_task: comm=x pid=77 prio=120 orig_cpu=1 dest_cpu=0".to_owned()),
        line(&other, switch, 1_000, format!("sched_switch: prev_comm={comm} prev_pid=50 prev_prio=120 prev_state=R+ ==> next_comm=ctl next_pid=900 next_prio=19")),
        line("ctl-900", switch, 1_100, "sched_switch: prev_comm=ctl prev_pid=900 prev_prio=19 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120".to_owned()),
        line("<idle>-0", switch, 2_100, "sched_waking: comm=x pid=77 prio=120 target_cpu=000".to_owned()),
    ]
}

/// The kernel's own layout, with what stands behind the thread and behind the CPU.
fn kernel(header: &str, lines: &[Line], behind: (&str, &str)) -> String {
    let one = |l: &Line| {
        format!(
            "{:>24} {}[001]{} {}   100.{:06}: {}\n",
            l.who, behind.0, behind.1, l.letters, l.us, l.event
        )
    };
    header.to_owned() + &lines.iter().map(one).collect::<String>()
}

fn header(names: &[&str]) -> String {
    let mut out =
        "# tracer: nop\n#\n# entries-in-buffer/entries-written: 6/6   #P:4\n#\n".to_owned();
    for (at, name) in names.iter().enumerate() {
        out += &format!("#{}{} _--=> {name}\n", " ".repeat(28), "|".repeat(at));
    }
    out + "#           TASK-PID   CPU#  ||||   TIMESTAMP  FUNCTION\n#              | |       |   ||||      |         |\n"
}

fn before_5_12() -> String {
    header(&["irqs-off", "need-resched", "hardirq/softirq", "preempt-depth"])
}

fn since_5_16() -> String {
    header(&[
        "irqs-off/BH-disabled",
        "need-resched",
        "hardirq/softirq",
        "preempt-depth",
        "migrate-disable",
    ])
}

fn of_the_patch() -> String {
    header(&[
        "irqs-off",
        "need-resched",
        "need-resched_lazy",
        "hardirq/softirq",
        "preempt-depth",
        "preempt-lazy-depth",
        "migrate-disable",
    ])
}

fn read(text: &str) -> TextBlame {
    let format = recognized(text.as_bytes()).unwrap_or_else(|| panic!("no trace: {text}"));
    assert_eq!(format, TextFormat::Events);
    let wanted = BlameSelection { realtime: true, above_ns: 0, most: 10 };
    let ground = Ground::default();
    let request = TextRequest { watched: WatchFilter::Realtime, wanted, ground };
    text::read(format, text.as_bytes(), request, &mut |_| true)
        .unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn is_told(text: &str, comm: &str) -> TextBlame {
    let told = read(text);
    let [record] = &told.records[..] else { panic!("{:?}\n{text}", told.records) };
    assert_eq!((record.latency_ns, record.name.as_str()), (900_000, "ctl"), "{text}");
    let who = format!("{comm}-50");
    assert_eq!(record.culprit(), (Cause::NotPreemptible, who.as_str()), "{text}");
    told
}

/// Nothing was passed over.
fn is_whole(text: &str, comm: &str) {
    let notes = is_told(text, comm).notes;
    let part = |n: &&String| n.contains("passed over") || n.contains("could not be read");
    assert_eq!(notes.iter().find(part), None, "{text}");
}

const WEB: &str = "Web Content";

#[test]
fn columns_of_kernels_from_4_13_to_7() {
    let four = lines(WEB, FOUR);
    is_whole(&kernel(&before_5_12(), &four, ("", "")), WEB);
    is_whole(&kernel(&before_5_12(), &four, ("(-----) ", "")), WEB);
    is_whole(&kernel(&before_5_12(), &four, ("(  123) ", "")), WEB);
    is_whole(&kernel(&before_5_12(), &four, ("", " (  123)")), WEB);
    is_whole(&kernel(&since_5_16(), &lines(WEB, FIVE), ("", "")), WEB);
    is_whole(&kernel(&since_5_16(), &lines(WEB, LAZY), ("", "")), WEB);
    is_whole(&kernel(&of_the_patch(), &lines(WEB, SEVEN), ("", "")), WEB);
    is_whole(&kernel("", &lines(WEB, SEVEN), ("", "")), WEB);
    let many = kernel(&since_5_16(), &lines(WEB, FIVE), ("", ""));
    let many = many.replace("[001]", "[127]").replace("cpu=001", "cpu=127");
    assert_eq!(is_told(&many, WEB).records[0].cpu, Some(127));
    let odd = "a (b) [c] x-1";
    is_whole(&kernel(&since_5_16(), &lines(odd, FIVE), ("", "")), odd);
}

#[test]
fn layouts_of_trace_cmd_of_perf_and_of_a_dump() {
    let short = |l: &Line| {
        let (comm, pid) = l.who.rsplit_once('-').unwrap();
        format!("{:>8}-{pid:<7}", comm.get(..8).unwrap_or(comm))
    };
    let all = lines(WEB, FIVE);
    let latency = |l: &Line| format!("{} 1{}  100.{:06}: {}\n", short(l), l.letters, l.us, l.event);
    is_told(&("cpus=4\n".to_owned() + &all.iter().map(latency).collect::<String>()), WEB);
    let dump = |l: &Line| {
        format!("{} 1{} {:>8}us : {}\n", short(l), l.letters, 100_000_000 + l.us, l.event)
    };
    let ruler = "---------------------------------\n";
    let dump = format!(
        "Dumping ftrace buffer:\n{ruler}{}{ruler}",
        all.iter().map(dump).collect::<String>()
    );
    let logged: String = dump.lines().map(|l| format!("[   12.345678] {l}\n")).collect();
    is_told(&logged, WEB);
    let perf = |l: &Line| {
        let (comm, pid) = l.who.rsplit_once('-').unwrap();
        format!(
            "{comm:>16} 40/{pid:<5} [001] 100.{:06}:   1 sched:{}\n  ffffffff8110 f+0x1 (k)\n\n",
            l.us, l.event
        )
    };
    is_told(&all.iter().map(perf).collect::<String>(), WEB);
}

#[test]
fn what_mails_and_logs_put_before_or_between() {
    let plain = kernel(&since_5_16(), &lines(WEB, FIVE), ("", ""));
    let behind = |mark: &str| plain.lines().map(|l| format!("{mark}{l}\n")).collect::<String>();
    is_whole(&plain.replace('\n', "\r\n"), WEB);
    for mark in [
        "> > ",
        "[   12.345678] ",
        "[   12.345678][    T1] ",
        "<6>[   12.345678] ",
        "[Sat Nov 28 18:40:12 2026] ",
        "Nov 28 18:40:12 host kernel: ",
    ] {
        is_whole(&behind(mark), WEB);
    }
}

/// `text` in lines of at most `width`, as a mailer breaks them.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines().map(str::trim_end) {
        let mut rest = line;
        while rest.len() > width && !line.starts_with('#') {
            let from = rest.len() - rest.trim_start().len();
            let Some(at) = rest[..width].rfind(' ').filter(|at| *at > from) else { break };
            out += &format!("{}\n", &rest[..at]);
            rest = &rest[at + 1..];
        }
        out += &format!("{rest}\n");
    }
    out
}

#[test]
fn records_that_a_mailer_cut_into_lines() {
    let plain = kernel(&since_5_16(), &lines(WEB, FIVE), ("", ""));
    for width in 40..100 {
        let cut = wrapped(&plain, width);
        is_told(&cut, WEB);
        let quoted: String = cut.lines().map(|l| format!("> {l}\n")).collect();
        is_told(&format!("Hello,\n\nI see:\n{quoted}"), WEB);
    }
}
