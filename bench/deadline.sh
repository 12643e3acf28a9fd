#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Means of sleeping and deadline threads beside their ancestors of rt-tests, in turn.
#
#   bench/deadline.sh TAILBOUND [ROUNDS [SECONDS [CPU]]]
#   MEANS="posix-timer deadline"    which of them
#
# Means: cyclictest's modes (clock_nanosleep absolute and relative, nanosleep by -s, POSIX timer by
# -x, interval timer by -x -s) and the means of `measure cyclic` that do the same, one thread at FIFO 95 on
# one CPU every 500 µs. Deadline: cyclicdeadline beside `measure deadline`, one
# thread of 6 ms in every 10 ms (below 2 ms of runtime cyclicdeadline wants HRTICK), where it runs at all.
# cyclictest holds /dev/cpu_dma_latency at 0: this script holds it for all of them.
# For each: median lateness (mean, where there is no histogram), and CPU time of all threads over
# the middle of the run, a second: what start-up and the last answer cost is not in it (bench/cost.sh
# tells of start-up).
# The table has the medians over the rounds of figures, and of the ratio within a round; below 1
# ours is less. Absolute figures belong to this machine. Needs root and rt-tests.
set -euo pipefail
tailbound=$1 rounds=${2:-5} seconds=${3:-10} cpu=${4:-1}
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root" >&2; exit 3; }
for tool in cyclictest python3; do
    command -v "$tool" >/dev/null || { echo "error: $tool is missing (Debian packages rt-tests, python3)" >&2; exit 3; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if [ -w /dev/cpu_dma_latency ]; then
    exec 9>/dev/cpu_dma_latency
    printf '\0\0\0\0' >&9
fi

# CPU time of a command, µs for each second between its second 1.5 and its last but one; its output
# goes to $dir/out.
timed() {
    local pid begin end
    "$@" >"$dir/out" 2>"$dir/err" &
    pid=$!
    sleep 1.5
    begin=$(used "$pid")
    sleep $((seconds - 3))
    end=$(used "$pid")
    wait "$pid" || true
    echo "$begin $end" | awk '{ if ($4 > $2) printf "%.0f\n", ($3 - $1) / ($4 - $2) * 1e6; else print 0 }'
}

# CPU time of all threads of a process so far and the time of day, ns.
used() {
    { cat /proc/"$1"/task/[0-9]*/schedstat 2>/dev/null || true; } | awk '{ n += $1 } END { printf "%d ", n }'
    date +%s%N
}

# NAME TOOL: median (µs) of the histogram that cyclictest printed.
of_cyclictest() {
    awk -v name="$1" -v ms="$2" -v round="$round" '
        /^[0-9]+ [0-9]+$/ { n += $2; at[++k] = $1 + 0; count[k] = $2 }
        END { for (i = 1; i <= k; i++) { so += count[i]; if (so * 2 >= n) { print round, name, "theirs", at[i] * 1000 + 500, ms; exit } } }' "$dir/out" >>"$dir/figures"
}

of_tailbound() {
    python3 - "$dir" "$round" "$1" "$2" "$tailbound" <<'P' >>"$dir/figures"
import json, subprocess, sys
folder, round_, name, ms, tailbound = sys.argv[1:]
shown = subprocess.run([tailbound, "show", "--json", folder + "/run.jsonl"], capture_output=True, text=True)
for total in json.loads(shown.stdout)["totals"]:
    if total.get("context", "user") == "user":
        q = {p: v.get("ns") for p, v in total["wakeup"]["quantiles"]}
        print(round_, name, "ours", q.get(0.5), ms)
P
    rm -f "$dir/run.jsonl"
}

: >"$dir/figures"
for round in $(seq "$rounds"); do
    while read -r means flags; do
        [[ -z ${MEANS:-} || " $MEANS " == *" $means "* ]] || continue
        # shellcheck disable=SC2086 # flags are words
        ms=$(timed cyclictest -q -m -t1 "-a$cpu" -p95 -i500 "-D$seconds" -h 20000 $flags)
        of_cyclictest "$means" "$ms"
        ms=$(timed "$tailbound" measure cyclic -q -i 500us -D "${seconds}s" --warm-up 100ms -a "$cpu" -p fifo:95 \
            --means "$means" -o "$dir/run.jsonl")
        of_tailbound "$means" "$ms"
    done <<'MEANS'
nanosleep
nanosleep-relative -r
nanosleep-plain -s
posix-timer -x
itimer -x -s
MEANS
    [[ -z ${MEANS:-} || " $MEANS " == *" deadline "* ]] || continue
    if command -v cyclicdeadline >/dev/null; then
        ms=$(timed cyclicdeadline -q -t 1 -i 10000 -D "$seconds")
        avg=$(sed -n 's/.*Avg: *\([0-9]*\).*/\1/p' "$dir/out" | tail -1)
        if [ -n "$avg" ]; then
            echo "$round deadline-start theirs $((avg * 1000)) $ms" >>"$dir/figures"
        else
            head -2 "$dir/err" "$dir/out" | sed 's/^/cyclicdeadline: /' >"$dir/refused"
        fi
    fi
    ms=$(timed "$tailbound" measure deadline -q -p deadline:6ms/10ms -i 10ms -D "${seconds}s" --warm-up 100ms \
        --threads 1 --busy 0 -o "$dir/run.jsonl")
    of_tailbound deadline-start "$ms"
done
[ ! -s "$dir/refused" ] || cat "$dir/refused"
python3 - "$dir/figures" <<'P'
import statistics, sys
rows = {}
for line in open(sys.argv[1]):
    round_, name, whose, ns, ms = line.split()
    if ns != "None":
        rows.setdefault(name, {}).setdefault(whose, {})[round_] = (float(ns), float(ms))
print("%-20s %12s %12s %7s %10s %10s %7s" % ("", "theirs", "ours", "ratio", "CPU theirs", "ours", "ratio"))
for name, by in rows.items():
    def med(whose, i):
        values = [v[i] for v in by.get(whose, {}).values()]
        return statistics.median(values) if values else None
    def ratio(i):
        both = set(by.get("theirs", {})) & set(by.get("ours", {}))
        values = [by["ours"][r][i] / by["theirs"][r][i] for r in both if by["theirs"][r][i]]
        return "%.2f" % statistics.median(values) if values else "-"
    us = lambda v: "-" if v is None else "%.1f µs" % (v / 1000)
    ms = lambda v: "-" if v is None else "%.1f ms/s" % (v / 1000)
    print("%-20s %12s %12s %7s %10s %10s %7s" % (name, us(med("theirs", 0)), us(med("ours", 0)), ratio(0), ms(med("theirs", 1)), ms(med("ours", 1)), ratio(1)))
P
