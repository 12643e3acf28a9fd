// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that hold no run: each gets the one sentence that helps.

use tailbound_import::import;

use crate::bytes;

#[test]
fn what_is_no_run_is_named() {
    let columns: String = (0..50).map(|i| format!("{i} {}\n", i * 3)).collect();
    let source = "/*\n * High resolution timer test software\n */\n#include <stdio.h>\n#include <time.h>\n#define DEFAULT_INTERVAL 1000\n\tfmt = \"T:%2d (%5d) P:%2d I:%ld C:%7lu \"\nT: 0 P: Min: Max:\n";
    for (text, words) in [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        (
            "<!DOCTYPE html>\n<html lang=\"en\"><head><title>Tailbound, cyclic</title>",
            "open it in a browser",
        ),
        ("<html><body>x</body></html>", "a web page"),
        ("<?xml version=\"1.0\"?>\n<svg xmlns=\"x\"/>", "SVG"),
        ("<?xml version=\"1.0\"?>\n<testsuites><testsuite name=\"tailbound\"/>", "JUnit"),
        ("{\"schema\":\"tailbound-report/1\",\"run\":{}}", "an answer of tailbound in JSON"),
        ("{\"traceEvents\":[]}", "Perfetto"),
        (
            "thread,cpu,context,kind,low_ns,high_ns,count\n0,0,user,wakeup,1000,1004,3\n",
            "a table that `tailbound export` wrote",
        ),
        ("thread,name,cpu,context,n,missed\n0,a,0,user,1,0\n", "`tailbound export`"),
        ("thread,activation,error_ns,t_ns,missed\n", "`tailbound export`"),
        (
            "Not met: 1 of 9 activations came later.\n\nWhat this run shows\n- x\n",
            "what tailbound printed",
        ),
        ("name = \"x\"\n[text]\ntitle = \"y\"\n[[step]]\nid = \"user\"\n", "campaign run"),
        ("[package]\nname = \"x\"\nversion = \"1\"\n", "TOML"),
        (
            "#[Histogram log format version 1.3]\n\"StartTimestamp\",\"Interval_Length\"\n",
            "log of HdrHistogram",
        ),
        ("KTAP version 1\n1..3\nok 1 x\n", "KTAP"),
        (
            "# HELP tailbound_latency_seconds x\n# TYPE tailbound_latency_seconds histogram\n",
            "OpenMetrics",
        ),
        (
            "Met: none of 9 activations came later.\n\nRun file  a.tailbound.jsonl\n",
            "what tailbound printed",
        ),
        ("#!/bin/sh\ncyclictest -q\n", "a script"),
        ("set terminal png\nset output \"a.png\"\nplot \"x\" using 1:2\n", "commands for gnuplot"),
        (&columns, "columns of numbers"),
        (source, "source text of a program"),
        ("/* CTF 1.8 */\ntypealias integer { size = 8; } := uint8_t;\n", "Common Trace Format"),
        ("%PDF-1.7\n", "PDF"),
        ("stress-ng: info:  [1] dispatching hogs: 4 timer\n", "without its stressor `cyclic`"),
        ("Starting PI Stress Test\nNumber of thread groups: 7\n", "pi_stress"),
        (
            "Running in process mode with 10 groups using 40 file descriptors each\nTime: 1.2\n",
            "hackbench",
        ),
    ] {
        let e = import("f", text.as_bytes()).unwrap_err().to_string();
        assert!(e.contains(words), "{words}: {e}");
    }
    let of_bpftrace =
        "Attaching 2 probes...\n\n@usecs: \n[0]   1 |@@@@      |\n[2, 4)   5 |@@@@@@@@@@|\n";
    for text in [of_bpftrace, &of_bpftrace[22..], "[4K, 8K)   12 |@@@@|\n"] {
        let e = import("f", text.as_bytes()).unwrap_err().to_string();
        assert!(e.contains("BCC or bpftrace"), "{text}: {e}");
    }
    for (bytes, words) in [
        (&b"\x7fELF\x02\x01\x01\0\0"[..], "ELF"),
        (b"\x17\x08\x44tracing6\0\0\0", "tailbound blame FILE"),
        (b"PERFILE2\x68\0\0\0", "recording of perf"),
        (b"\xd4\xc3\xb2\xa1\x02\0\x04\0", "network packets"),
        (b"PK\x03\x04\x14\0", "zip"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"\x0a\x05\xe2\x03\x02\x08\x01\x0a\x03\x58\x03<\x0a\x02\x50\x01", "Perfetto (protobuf)"),
        (b"\n<x>\n<y>\n", "XML"),
        (b"\x1f\x8b\x08\0\0", "packed by gzip"),
        (b"SQLite format 3\0\x10", "SQLite"),
    ] {
        let e = import("f", bytes).unwrap_err().to_string();
        assert!(e.contains(words), "{words}: {e}");
    }
}

#[test]
fn stress_ng_without_cyclic_has_no_latencies() {
    let name = "near/stressng-timer.txt";
    let e = import(name, &bytes(name)).unwrap_err().to_string();
    assert!(e.contains("no latencies") && e.contains("stress-ng --cyclic 1"), "{e}");
}
