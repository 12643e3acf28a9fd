#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Coordinated omission, side by side: a FIFO-98 thread holds a CPU for 20 ms every 500 ms (at most
# 30 s, ending by itself) while cyclictest, then tailbound, wake every 200 µs on it at FIFO 95.
# cyclictest holds /dev/cpu_dma_latency at 0, so tailbound is told to do the same.
# Needs root, cyclictest (Debian package rt-tests), perl and a release build.
set -euo pipefail
cd "$(dirname "$0")/.."
tailbound=${TAILBOUND:-${CARGO_TARGET_DIR:-target}/dist/tailbound}
cpu=${CPU:-$(($(nproc) - 1))}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

stall() { # seconds
    chrt -f 98 taskset -c "$cpu" perl -MTime::HiRes=time,sleep -e '
        my $end = time + shift;
        while (time < $end) { sleep 0.48; my $t = time + 0.02; 1 while time < $t; }' "$1" &
    staller=$!
}
due=$((8 * 5000))
stall 9
cyclictest -q -m -p 95 -i 200 -t 1 -a "$cpu" -D 8 -h 100000 --json="$work/cyclictest.json" >/dev/null
wait "$staller"
stall 10
"$tailbound" measure cyclic -i 200us -D 8s -a "$cpu" -p fifo:95 -q --cpu-dma-latency 0 -o "$work/tailbound.jsonl" >/dev/null
wait "$staller"

quantiles() { # file, which of the two distributions
    "$tailbound" show --json "$1" | python3 -c '
import json, sys
d = json.load(sys.stdin)["totals"][0][sys.argv[1]]
q = {p: v.get("ns") for p, v in d["quantiles"]}
f = lambda ns: "-" if ns is None else "%.0f µs" % (ns / 1e3)
print("%7d  %9s  %9s  %9s  %9s" % (d["n"], f(q.get(0.5)), f(q.get(0.99)), f(q.get(0.999)), f(d["max_ns"])))' "$2"
}
printf '%-34s %7s  %9s  %9s  %9s  %9s\n' "of $due due activations" counted p50 p99 p99.9 max
printf '%-33s ' cyclictest; quantiles "$work/cyclictest.json" wakeup
printf '%-33s ' "tailbound, per wake-up"; quantiles "$work/tailbound.jsonl" wakeup
printf '%-33s ' "tailbound, per due activation"; quantiles "$work/tailbound.jsonl" due
