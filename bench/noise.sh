#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The polling loop beside oslat, and the packet queue beside queuelat, in turn on one CPU at
# ordinary priority: what a turn of the loop takes, how short a gap is still seen, CPU time used.
# Ratios below 1 mean that ours is less.
#
#   bench/noise.sh TAILBOUND [ROUNDS [SECONDS [CPU]]]
set -euo pipefail
tailbound=$1 rounds=${2:-5} seconds=${3:-5} cpu=${4:-1}
for tool in oslat queuelat python3; do
    command -v "$tool" >/dev/null || { echo "error: $tool is missing (Debian package rt-tests, python3)" >&2; exit 3; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
main_cpu=$((cpu == 0 ? 1 : 0))
hz=$(awk '/^cpu MHz/ { print $4; exit }' /proc/cpuinfo)

# user and system time of a command, in ms.
timed() {
    local TIMEFORMAT='%U %S'
    { time "$@" >"$dir/out" 2>"$dir/err"; } 2>"$dir/time" || true
    awk '{ printf "%.0f\n", ($1 + $2) * 1000 }' "$dir/time"
}

: >"$dir/figures"
for round in $(seq "$rounds"); do
    ms=$(timed oslat -c "$cpu" -C "$main_cpu" -D "$seconds" -w no -b 32 --json="$dir/oslat.json")
    # What oslat calls the minimum is its loop in whole microseconds; its own line tells more.
    python3 - "$dir" "$ms" oslat <<'P' >>"$dir/figures"
import json, re, sys
folder, ms, tool = sys.argv[1:]
text = open(folder + "/out").read()
mean = re.search(r"Average:\s+([0-9.]+)", text)
calls = re.search(r"Loops|Minimum:\s+([0-9.]+)", text)
print(tool, "cpu_ms", ms)
hist = json.load(open(folder + "/oslat.json"))
print(tool, "smallest_gap_ns", 1000)
n = sum(int(c) for t in hist.get("thread", {}).values() for c in t.get("histogram", {}).values())
length = re.search(r"Duration:\s+([0-9.]+)", text)
if n and length:
    print(tool, "turn_ns", float(length.group(1)) * 1e9 / n)
P
    ms=$(timed "$tailbound" measure busy -q --warm-up 1s -D "${seconds}s" -a "$cpu" -o "$dir/busy.jsonl")
    rm -f "$dir/out"
    python3 - "$dir" "$ms" busy <<'P' >>"$dir/figures"
import json, sys
folder, ms, tool = sys.argv[1:]
print(tool, "cpu_ms", ms)
for line in open(folder + "/busy.jsonl"):
    r = json.loads(line)
    if r["type"] == "figure" and r["name"].startswith("turn-"):
        print(tool, "turn_ns", r["value"])
    if r["type"] == "thread" and r["context"] == "gap" and r["ended"] == "complete":
        print(tool, "smallest_gap_ns", r["wakeup"]["min_ns"])
P
    rm -f "$dir/busy.jsonl"
    # The same queue: 1 M packets/s, room for 1 ms of them, 500 cycles or 1500 bytes a packet.
    ms=$(timed timeout "$((seconds + 5))" taskset -c "$cpu" queuelat -m 1000000 -c 500 -p 1 -f "$hz" -t "$seconds")
    echo "queuelat cpu_ms $ms" >>"$dir/figures"
    ms=$(timed "$tailbound" measure queue -q --warm-up 0s -D "${seconds}s" -a "$cpu" --pps 1000000 --depth 1000 -o "$dir/queue.jsonl")
    echo "queue cpu_ms $ms" >>"$dir/figures"
    rm -f "$dir/queue.jsonl"
done
echo "$rounds rounds of $seconds s on CPU $cpu; medians"
python3 - "$dir/figures" <<'P'
import statistics, sys
all = {}
for line in open(sys.argv[1]):
    tool, what, value = line.split()
    all.setdefault((tool, what), []).append(float(value))
med = {k: statistics.median(v) for k, v in all.items()}
for ours, theirs in (("busy", "oslat"), ("queue", "queuelat")):
    for what in ("turn_ns", "smallest_gap_ns", "cpu_ms"):
        a, b = med.get((ours, what)), med.get((theirs, what))
        if a is None and b is None:
            continue
        text = lambda v: "unknown" if v is None else f"{v:.1f}"
        ratio = "unknown" if a is None or not b else f"{a / b:.3f}"
        print(f"{what:16} {ours:6} {text(a):>10}  {theirs:9} {text(b):>10}  ratio {ratio}")
P
