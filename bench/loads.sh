#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compares loads with other programs that do comparable work: perf bench (package linux-perf)
# for messages, pipes and system calls, stress-ng for forks. Run in turn several times; prints
# medians of the rates, the median of their ratio (above 1: ours does more a second), and of that
# per second of CPU time, which other programs on the machine disturb less.
# What is not installed is left out, and said. hackbench has a script of its own.
#
# Usage: bench/loads.sh [ROUNDS]                        default: 5
# Environment: LOAD  the example `load` (default: this tree's, in a release build)
set -euo pipefail
rounds=${1:-5}
if [[ -z ${LOAD:-} ]]; then
    top=$(cd "$(dirname "$0")/.." && pwd)
    (cd "$top" && cargo build --quiet --profile dist -p tailbound-load --example load)
    LOAD=${CARGO_TARGET_DIR:-$top/target}/dist/examples/load
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each in a session of its own: with sched_autogroup a session is a share of the CPU, and a
# load's worker always has one.
perf_time() { # seconds that a perf bench reports
    setsid -w perf bench "$@" 2>&1 | awk '/Total time:/ { print $3 }'
}
# shellcheck disable=SC2086 # LOAD may be several words
our_time() { setsid -w $LOAD "$1" | awk '/^Time:/ { print $2 }'; }
# shellcheck disable=SC2086
our_rate() { # units a second over SECONDS
    setsid -w $LOAD --duration "$2s" "$1" | sed -n 's/,//g; s/^[a-z-]*: \([0-9]*\) [a-z-]* in \([0-9.]*\) s$/\1 \2/p' |
        awk '{ print $1 / $2 }'
}
stress_rate() { # bogo operations a second
    setsid -w stress-ng "$@" --metrics-brief --yaml "$work/yaml" >"$work/out" 2>&1 || cat "$work/out" >&2
    awk '/bogo-ops-per-second-real-time/ { print $2 }' "$work/yaml"
}
median() { sort -g | awk '{ v[NR] = $1 } END { m = int((NR + 1) / 2); print NR % 2 ? v[m] : (v[m] + v[m + 1]) / 2 }'; }

# Runs one of the functions below; prints what it prints and the CPU seconds of all it started.
timed() {
    local TIMEFORMAT='%U %S'
    { time "$1" >"$work/said"; } 2>"$work/cpu"
    awk '{ said = said $0 } END { printf "%s ", said }' "$work/said"
    awk 'END { print $1 + $2 }' "$work/cpu"
}
# compare WHAT UNITS THEIRS OURS: functions that print the time UNITS took, or a rate for 0 UNITS.
compare() {
    local what=$1 units=$2 theirs=$3 ours=$4 a b
    : >"$work/rates"
    for ((round = 0; round < rounds; round++)); do
        # Who goes first changes every round: drift of the machine favours nobody.
        if ((round % 2)); then a=$(timed "$theirs") b=$(timed "$ours"); else b=$(timed "$ours") a=$(timed "$theirs"); fi
        echo "$a $b $units" | awk '{ print $5 ? $5 / $1 : $1, $5 ? $5 / $3 : $3, $5 ? $2 / $4 : "-" }' >>"$work/rates"
    done
    awk -v what="$what" -v a="$(awk '{ print $1 }' "$work/rates" | median)" \
        -v b="$(awk '{ print $2 }' "$work/rates" | median)" \
        -v r="$(awk '{ print $2 / $1 }' "$work/rates" | median)" \
        -v cpu="$(awk '{ print $3 }' "$work/rates" | median)" \
        -v each="$(awk '{ printf "%.2f ", $2 / $1 }' "$work/rates")" \
        'BEGIN { printf "%s: theirs %.0f a second, tailbound %.0f, ratio %.3f (each: %s), per CPU second %s\n", what, a, b, r, each, cpu }'
}

echo "$(nproc) CPUs; $rounds rounds; load averages $(cut -d' ' -f1-3 /proc/loadavg)"
if command -v perf >/dev/null; then
    perf --version
    theirs() { perf_time sched messaging -g 4 -l 500; }
    ours() { our_time hackbench:groups=4,loops=500; }
    compare "messages, processes, sockets (perf bench sched messaging)" $((4 * 400 * 500)) theirs ours
    theirs() { perf_time sched messaging -t -p -g 4 -l 500; }
    ours() { our_time hackbench:groups=4,loops=500,mode=thread,ipc=pipe; }
    compare "messages, threads, pipes (perf bench sched messaging)" $((4 * 400 * 500)) theirs ours
    theirs() { perf_time sched pipe -l 300000; }
    ours() { our_time ping-pong:pairs=1,loops=300000; }
    compare "round trips, processes, pipes (perf bench sched pipe)" 300000 theirs ours
    theirs() { perf_time sched pipe -T -l 300000; }
    ours() { our_time ping-pong:pairs=1,loops=300000,mode=thread; }
    compare "round trips, threads, pipes (perf bench sched pipe)" 300000 theirs ours
    # On one CPU both: alone on it, or with the same others.
    theirs() { taskset -c 0 setsid -w perf bench syscall basic -l 10000000 2>&1 | awk '/Total time:/ { print $3 }'; }
    ours() { our_time syscalls:call=getppid,cpus=0,loops=10000000; }
    compare "system calls, getppid (perf bench syscall basic)" 10000000 theirs ours
else
    echo "perf is not installed (package linux-perf): left out"
fi
if command -v stress-ng >/dev/null; then
    stress-ng --version
    theirs() { stress_rate --fork 2 --timeout 3; }
    ours() { our_rate fork:tasks=2 3; }
    compare "forks (stress-ng --fork)" 0 theirs ours
else
    echo "stress-ng is not installed: left out"
fi
