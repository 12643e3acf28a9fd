// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces as text, of several tools and kernels: what is said of them. Their origin: `data/texts/README.md`.

use std::path::Path;

use tailbound_core::blame::{BlameRecord, Cause, KernelKind, Phase, Ranking, Sureness};
use tailbound_trace::blame::{BlameSelection, Ground, WatchFilter};
use tailbound_trace::text::{
    self, TextBlame, TextError, TextFormat, TextRequest, binary_advice, recognized,
};

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/texts").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn request() -> TextRequest {
    TextRequest {
        watched: WatchFilter::Realtime,
        wanted: BlameSelection { realtime: true, above_ns: 0, most: 10 },
        ground: Ground::default(),
    }
}

fn read(text: &str) -> Result<TextBlame, TextError> {
    let format = recognized(text.as_bytes()).expect("a trace");
    text::read(format, text.as_bytes(), request(), &mut |_| true)
}

fn told(name: &str) -> TextBlame {
    read(&file(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The one sample of a text, whose parts are all of it.
fn one(blame: &TextBlame) -> &BlameRecord {
    let [record] = &blame.records[..] else { panic!("{:?}", blame.records) };
    let sum: i64 = record.parts.iter().map(|p| p.ns).sum();
    assert_eq!(sum, record.latency_ns, "{record:?}");
    let mut at = 0;
    for part in &record.parts {
        assert_eq!(part.from_ns, at, "{record:?}");
        at += part.ns;
    }
    record
}

fn says(blame: &TextBlame, word: &str) {
    let chain = blame.records.iter().flat_map(|r| &r.chain);
    let all: Vec<&String> = chain.chain(&blame.notes).collect();
    assert!(all.iter().any(|s| s.contains(word)), "{word}: {all:#?}");
}

#[test]
fn a_posted_trace_of_wakeup_rt() {
    let blame = told("posted-wakeup_rt-6.5-rt.txt");
    let record = one(&blame);
    assert_eq!((record.latency_ns, record.cpu), (1_689_000, Some(0)));
    assert_eq!(record.name, "cyclictest-217");
    assert_eq!(record.culprit(), (Cause::NotPreemptible, "stress-n-232"));
    let longest = record.parts.iter().max_by_key(|p| p.ns).unwrap();
    assert_eq!(longest.place(), Some("free_unref_page_list"));
    assert_eq!(longest.system_call(), Some("munmap"));
    assert_eq!(longest.sureness, Sureness::Likely, "1.65 ms without a record");
    says(
        &blame,
        "cyclictest-217 was woken at 1 µs by an interrupt over stress-n-232, on CPU 0, in hrtimer_wakeup (its stack was recorded at 12 µs)",
    );
    says(&blame, "It ran from 1,676 µs on");
    says(&blame, "From 19 µs to 1,671 µs (1,652 µs) nothing was recorded");
    assert!(!record.lost && blame.facts.records == 6);
}

#[test]
fn the_kernel_of_a_trace_is_told_where_the_trace_tells_it() {
    let posted = file("posted-wakeup_rt-6.5-rt.txt");
    let of = |text: &str| read(text).unwrap().kernel;
    assert_eq!(of(&posted), KernelKind::PreemptRt);
    assert_eq!(of(&posted.replace("M:preempt_rt", "M:PREEMPT_{RT,(lazy)}")), KernelKind::PreemptRt);
    assert_eq!(of(&posted.replace("M:preempt_rt", "M:unknown")), KernelKind::Unknown);
    let stock = posted.replace("M:preempt_rt", "M:PREEMPT(full)");
    assert_eq!(of(&stock), KernelKind::Stock);
    assert_eq!(of(&(posted + &stock)), KernelKind::Unknown, "of two kernels");
    assert_eq!(told("trace-6.12.txt").kernel, KernelKind::Unknown, "events tell nothing of it");
}

#[test]
fn a_posted_analysis_of_rtla() {
    let blame = told("posted-rtla-auto-analysis.txt");
    let record = one(&blame);
    assert_eq!((record.cpu, record.name.as_str()), (Some(23), "timerlat/23"));
    let timer = &record.parts[0];
    assert_eq!(
        (timer.ns, &timer.phase, &timer.cause),
        (27_490, &Phase::Timer, &Cause::InterruptsOff)
    );
    assert_eq!(timer.who, "objtool-49256");
    assert_eq!(timer.place(), Some("cgroup_rstat_flush_locked"));
    assert_eq!(record.latency_ns, 41_960, "by its shares");
    says(&blame, "began 27.49 µs late (65.52 %)");
    says(&blame, "objtool-49256 kept the CPU for 3.79 µs");
    says(&blame, "no line `Thread latency`");
}

#[test]
fn a_whole_analysis_names_each_who_took_part() {
    let blame = told("rtla-6.4.txt");
    let record = one(&blame);
    assert_eq!(record.latency_ns, 42_000);
    let part = |cause: Cause, who: &str| record.share_ns(cause, who);
    assert_eq!(part(Cause::IdleExit, ""), 2_000);
    assert_eq!(part(Cause::Interrupt, "eth0-40"), 7_000);
    assert_eq!(part(Cause::Softirq, "NET_RX-3"), 8_000);
    assert_eq!(part(Cause::HigherPriority, "irq/40-eth0-41"), 11_000);
    assert_eq!(part(Cause::NotPreemptible, "kworker/1:2-77"), 6_000);
    assert_eq!(part(Cause::Unexplained, "in no line of the analysis"), 1_000);
    says(&blame, "up to 1.5 µs");
    says(&blame, "17.48 µs");
}

#[test]
fn sections_of_old_and_new_kernels() {
    let blame = told("irqsoff-4.19.txt");
    let record = one(&blame);
    assert_eq!((record.latency_ns, record.cpu), (259_000, Some(2)));
    assert!(record.is_section());
    let who = "tar-6143, from lock_task to unlock_task";
    assert_eq!(record.culprit(), (Cause::InterruptsOff, who));
    says(
        &blame,
        "From 1 µs to 201 µs (200 µs) nothing was recorded: between walk_list (called from lock_task)",
    );
    says(&blame, "At its end it was in _raw_spin_unlock_irqrestore, called from unlock_task");
    says(&blame, "(system call read)");
    says(&blame, "whom it delayed is not in the trace");
    let sentence = Ranking::of(&blame.records).sentence();
    assert!(
        sentence.starts_with("the one section of 259 µs: interrupts disabled in tar, from"),
        "{sentence}"
    );

    let blame = told("preemptirqsoff-6.1.txt");
    let record = one(&blame);
    let who = "kworker/1:2-77, from queue_one to queue_all";
    assert_eq!(record.culprit(), (Cause::NotPreemptible, who));
    assert_eq!(record.parts.len(), 1, "the interrupt's end is not in it: {:?}", record.parts);
    says(&blame, "5 records of the preemptirqsoff trace were overwritten");
    assert_eq!(blame.facts.kernel.as_deref(), Some("6.1.0-rt7"));
}

#[test]
fn a_section_with_calls_names_the_longest() {
    let blame = told("irqsoff-graph-5.15.txt");
    let record = one(&blame);
    assert_eq!(record.latency_ns, 90_000);
    assert_eq!(record.culprit().0, Cause::InterruptsOff);
    says(&blame, "70 µs of it were in a_copy itself, called from a_walk.");
}

#[test]
fn a_wake_up_on_another_cpu_by_a_thread_of_higher_priority() {
    let blame = told("wakeup_rt-5.10.txt");
    let record = one(&blame);
    assert_eq!(record.culprit(), (Cause::HigherPriority, "irq/40-e-41"));
    assert_eq!(record.share_ns(Cause::HigherPriority, "irq/40-e-41"), 298_000);
    says(&blame, "ctl-900 was woken at 0 µs by an interrupt over Web Cont-12, on CPU 1");
    says(&blame, "It ran from 298 µs on, on CPU 3");
}

#[test]
fn function_graph_gives_the_longest_calls_and_no_guess() {
    let blame = told("function_graph-6.6.txt");
    let first = &blame.records[0];
    assert_eq!((first.latency_ns, first.cpu), (220_000, Some(1)));
    assert_eq!(first.culprit().0, Cause::Unexplained);
    says(
        &blame,
        "200 µs of it were in copy_page itself, called from vfs_read, called from sys_read.",
    );
    says(&blame, "whether a thread waited");
    says(&blame, "2 calls have no begin or no end");
}

#[test]
fn events_of_kernel_and_tools_give_the_same_answer() {
    for (name, latency_ns) in [
        ("trace-cmd-report-4.19.txt", 900_000),
        ("trace-6.12.txt", 900_000),
        ("perf-script-6.8.txt", 900_000),
        ("babeltrace2-lttng-2.13.txt", 900_000),
    ] {
        let blame = told(name);
        let record = one(&blame);
        assert_eq!(record.latency_ns, latency_ns, "{name}");
        assert_eq!(record.culprit(), (Cause::NotPreemptible, "cc1-50"), "{name}: {record:?}");
        let found = blame.found.as_ref().unwrap();
        assert_eq!(found.threads[&900].comm, "ctl", "{name}");
        assert_eq!(found.threads[&900].prio, 19, "{name}");
    }
    says(&told("perf-script-6.8.txt"), "sched_wakeup and no sched_waking");
    says(&told("trace-6.12.txt"), "ends of interrupts are not in the trace");
    says(&told("trace-cmd-report-4.19.txt"), "do not tell the state of the CPU");
}

#[test]
fn timehist_says_who_had_the_cpu_and_no_more_than_it_knows() {
    let blame = told("timehist-4.19.txt");
    let record = one(&blame);
    assert_eq!((record.latency_ns, record.name.as_str()), (800_000, "ctl-900"));
    assert_eq!(record.culprit(), (Cause::Unexplained, "Web Content-40 had the CPU"));
    says(&blame, "has no priorities");
    assert_eq!(blame.found.as_ref().unwrap().threads.len(), 2);

    let blame = told("timehist-6.14.txt");
    assert_eq!(one(&blame).culprit(), (Cause::NotPreemptible, "Web Content-40"));
    assert_eq!(
        blame.found.as_ref().unwrap().threads.len(),
        1,
        "the ordinary thread is not asked for"
    );
}

#[test]
fn a_text_that_is_cut_gives_what_it_has_and_says_so() {
    let whole = file("irqsoff-4.19.txt");
    let at = whole.find("  201us+").unwrap();
    let blame = read(&whole[..at + 12]).unwrap();
    let record = one(&blame);
    assert!(record.lost && record.latency_ns == 259_000);
    says(&blame, "it states 7 records and 3 are in the text");
    says(&blame, "has no end: it may be cut there");

    let whole = file("wakeup_rt-5.10.txt");
    let blame = read(whole.rsplit_once("irq/40").unwrap().0).unwrap();
    says(&blame, "The switch to it is not in the text");
    assert_eq!(one(&blame).latency_ns, 300_000);

    let error = read("# tracer: irqsoff\n#\n").unwrap_err().to_string();
    assert!(error.contains("no record") && error.contains("2 lines"), "{error}");
    let error = read("# tracer: irqsoff\n# latency: many us\n").unwrap_err().to_string();
    assert!(error.starts_with("line 2: "), "{error}");
    let error =
        read("rtla timerlat hit stop tracing\n## CPU 3 hit stop tracing, analyzing it ##\n");
    assert!(matches!(error, Err(TextError::Empty { lines: 2 })));
}

#[test]
fn each_line_may_be_the_last_one() {
    for name in [
        "posted-wakeup_rt-6.5-rt.txt",
        "posted-rtla-auto-analysis.txt",
        "irqsoff-graph-5.15.txt",
        "trace-6.12.txt",
        "timehist-6.14.txt",
        "function_graph-6.6.txt",
    ] {
        let whole = file(name);
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)).step_by(7) {
            let cut = &whole[..end];
            let Some(format) = recognized(cut.as_bytes()) else { continue };
            if let Ok(blame) = text::read(format, cut.as_bytes(), request(), &mut |_| true) {
                blame.records.iter().for_each(|r| {
                    assert_eq!(r.parts.iter().map(|p| p.ns).sum::<i64>(), r.latency_ns, "{r:?}");
                });
            }
        }
    }
}

#[test]
fn several_traces_in_one_text_are_told_apart() {
    let both = file("irqsoff-4.19.txt") + &file("posted-wakeup_rt-6.5-rt.txt");
    let blame = read(&both).unwrap();
    let latencies: Vec<i64> = blame.records.iter().map(|r| r.latency_ns).collect();
    assert_eq!(latencies, [1_689_000, 259_000]);
    assert_eq!(blame.facts.traces, 2);
    // What was said of the first trace stays where nothing can be said of the second.
    let functions = "# tracer: function\n bash-1 [000] .... 1.000001: f <-g\n";
    let blame = read(&(file("irqsoff-4.19.txt") + functions)).unwrap();
    assert_eq!(one(&blame).latency_ns, 259_000);
    says(&blame, "no sched:sched_switch");
    let twice = file("trace-6.12.txt") + &file("trace-6.12.txt");
    says(&read(&twice).unwrap(), "another trace begins in line 20");
}

#[test]
fn quoted_in_a_mail_it_is_the_same() {
    let whole = file("posted-wakeup_rt-6.5-rt.txt");
    let quoted: String = whole.lines().map(|l| format!("> {l}\r\n")).collect();
    let mail = format!("Hello,\n\nthis is what I see:\n\n{quoted}\nRegards\n");
    let blame = read(&mail).unwrap();
    assert_eq!(blame.records, told("posted-wakeup_rt-6.5-rt.txt").records);
    says(&blame, "1 lines are no records");
}

#[test]
fn other_files_are_none_of_these() {
    for text in [
        "",
        "{\"type\":\"header\"}\n",
        "T: 0 ( 1000) P:80 I:1000 C: 561 Min: 7 Act: 9 Avg: 16 Max: 561\n",
        "# cyclictest -h 100\n000000 000001\n",
        "[  1.000000] Linux version 6.1\n[  1.000002] x: y\n",
    ] {
        assert_eq!(recognized(text.as_bytes()), None, "{text}");
    }
    assert_eq!(recognized(b"# tracer: irqsoff\n\0"), None);
    assert_eq!(recognized(b"# tracer: nop\n"), Some(TextFormat::Events));
    assert!(binary_advice(&[0xc1, 0x1f, 0xfc, 0xc1]).is_some_and(|a| a.contains("CTF")));
    assert_eq!(binary_advice(b"# tracer"), None);
}

#[test]
fn what_events_lack_is_said_with_the_command_that_records_it() {
    let text = "# tracer: nop\n bash-1 [000] .... 1.000001: sys_enter: NR 1\n";
    let error = read(text).unwrap_err().to_string();
    assert!(error.contains("no sched:sched_switch and no sched:sched_waking"), "{error}");
    assert!(error.contains("trace-cmd record -C mono"), "{error}");
}

#[test]
fn lines_that_no_kernel_writes_do_no_harm() {
    let mut text = String::from("# tracer: wakeup_rt\n# latency: 5 us, #1/1, CPU#0 |\n");
    for line in [
        "x-1 0d... 99999999999us: 1:1:R ==> [0] 1:1:R x",
        "x-1 0d... 5us: ==> ",
        "x-1 0d... 4us: 1:1:R   + [99999999999] 1:1:R x",
        "x-1 0d... 3us: 1:1:R   + [0] 1:1:R x",
        "x--1 0d... 18446744073709551615ns: f <-",
        " => ",
        "-99999999999 0d... 1us: y",
        " 0) 99999999999999999999.1 us | f();",
    ] {
        text.push_str(line);
        text.push('\n');
    }
    let blame = read(&text).unwrap();
    assert_eq!(one(&blame).latency_ns, 5_000);
}
