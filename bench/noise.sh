#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The polling loop beside oslat, and the packet queue beside queuelat, in turn on one CPU at
# ordinary priority: what a turn of the loop takes (what is stolen from it included), what CPU time,
# and how short a gap is still seen. Both use all the CPU time they get.
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
    # What oslat calls its minimum is in whole microseconds; turns and time tell more.
    python3 - "$dir" "$ms" oslat <<'P' >>"$dir/figures"
import json, re, sys
folder, ms, tool = sys.argv[1:]
text = open(folder + "/out").read()
print(tool, "cpu_ms", ms)
hist = json.load(open(folder + "/oslat.json"))
print(tool, "smallest_gap_ns", 1000)
n = sum(int(c) for t in hist.get("thread", {}).values() for c in t.get("histogram", {}).values())
length = re.search(r"Duration:\s+([0-9.]+)", text)
if n and length:
    seconds = float(length.group(1))
    print(tool, "turn_ns", seconds * 1e9 / n)
    # It polls for a second before, at the same pace.
    print(tool, "turn_cpu_ns", float(ms) * 1e6 * seconds / (seconds + 1) / n)
P
    ms=$(timed "$tailbound" measure busy -q --warm-up 1s -D "${seconds}s" -a "$cpu" -o "$dir/busy.jsonl")
    rm -f "$dir/out"
    python3 - "$dir" "$ms" busy <<'P' >>"$dir/figures"
import json, sys
folder, ms, tool = sys.argv[1:]
turn = polled = seconds = 0
for line in open(folder + "/busy.jsonl"):
    r = json.loads(line)
    if r["type"] == "figure" and r["name"].startswith("turn-"):
        turn = r["value"]
        print(tool, "turn_ns", turn)
    if r["type"] == "figure" and r["name"].startswith("polled-"):
        polled = r["value"] / 100
    if r["type"] == "end":
        seconds = r["measured_ns"] / 1e9
    if r["type"] == "thread" and r["context"] == "gap" and r["ended"] == "complete":
        print(tool, "smallest_gap_ns", r["wakeup"]["min_ns"])
turns = seconds * 1e9 * polled / turn
# The warm-up of a second is in the time used, as oslat's is.
print(tool, "turn_cpu_ns", float(ms) * 1e6 * seconds / (seconds + 1) / turns)
P
    rm -f "$dir/busy.jsonl"
    # The same rate and room: 1 M packets/s, 1 ms of them. A turn that finds a packet, as each tells
    # it: queuelat (500 cycles a packet, on paper) in steps of 100 ns, ours with 1500 bytes moved.
    timeout "$((seconds + 5))" taskset -c "$cpu" queuelat -m 1000000 -c 500 -p 1 -f "$hz" -t "$seconds" >"$dir/out" || true
    awk '/^Avg loop/ { print "queuelat turn_ns", $NF }' "$dir/out" >>"$dir/figures"
    "$tailbound" measure queue -q --warm-up 0s -D "${seconds}s" -a "$cpu" --pps 1000000 --depth 1000 -o "$dir/queue.jsonl" >/dev/null 2>&1 || true
    sed -n 's/.*"name":"packets-.* took \([0-9.]*\) ns undisturbed.*/queue turn_ns \1/p' "$dir/queue.jsonl" >>"$dir/figures"
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
    for what in ("turn_ns", "turn_cpu_ns", "smallest_gap_ns"):
        a, b = med.get((ours, what)), med.get((theirs, what))
        if a is None and b is None:
            continue
        text = lambda v: "unknown" if v is None else f"{v:.1f}"
        ratio = "unknown" if a is None or not b else f"{a / b:.3f}"
        print(f"{what:16} {ours:6} {text(a):>10}  {theirs:9} {text(b):>10}  ratio {ratio}")
P
