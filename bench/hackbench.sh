#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compares the hackbench load with the hackbench of Debian's package rt-tests: same shape,
# same number of messages, run in turn several times. Prints medians of the time each took,
# the ratio of message rates (above 1: ours passes more messages a second), and the ratio of
# messages per second of CPU time, which other programs on the machine disturb less.
#
# Usage: bench/hackbench.sh [ROUNDS [GROUPS...]]      default: 5 rounds of 1, 4 and 10 groups
# Environment: MESSAGES  messages per run (default 8000000: some seconds)
#              LOAD      command that runs a load and prints `Time: s.mmm`
#                        (default: this tree's release example; `tailbound load` works too)
set -euo pipefail
rounds=${1:-5}
(($# == 0)) || shift
(($# > 0)) || set -- 1 4 10
messages=${MESSAGES:-8000000}
command -v hackbench >/dev/null || {
    echo "bench/hackbench.sh: no hackbench here; install the package rt-tests" >&2
    exit 3
}
if [[ -z ${LOAD:-} ]]; then
    top=$(cd "$(dirname "$0")/.." && pwd)
    (cd "$top" && cargo build --quiet --profile dist -p tailbound-load --example load)
    LOAD=${CARGO_TARGET_DIR:-$top/target}/dist/examples/load
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs a command; prints the time it reports and the CPU time it and its children used.
timed() {
    local TIMEFORMAT='%U %S'
    { time "$@" >"$work/out" 2>&1; } 2>"$work/cpu" || { cat "$work/out" >&2; exit 1; }
    awk 'FNR == 1 && FILENAME ~ /cpu$/ { cpu = $1 + $2 } /^Time:/ { t = $2 } END { print t, cpu }' \
        "$work/cpu" "$work/out"
}
# median EXPRESSION: of its value over all rounds; columns: their time, CPU, our time, CPU.
median() {
    awk "{ print $1 }" "$work/times" | sort -g |
        awk '{ v[NR] = $1 } END { m = int((NR + 1) / 2); printf "%.3f", NR % 2 ? v[m] : (v[m] + v[m + 1]) / 2 }'
}

version=$(hackbench --help 2>&1 | grep -m1 -o 'V [0-9.]*' || true)
echo "hackbench ${version:-of unknown version}; $(nproc) CPUs; $messages messages per run; $rounds rounds"
for shape in "process socketpair" "thread pipe" "process pipe"; do
    read -r mode ipc <<<"$shape"
    flags=()
    [[ $mode == process ]] || flags+=(-T)
    [[ $ipc == socketpair ]] || flags+=(-p)
    for groups in "$@"; do
        loops=$((messages / (groups * 400)))
        : >"$work/times"
        for ((round = 0; round < rounds; round++)); do
            # Each in a session of its own: with sched_autogroup a session is a share of the CPU,
            # and a load's worker always has one.
            theirs() { timed setsid -w hackbench "${flags[@]}" -l "$loops" -g "$groups"; }
            # shellcheck disable=SC2086 # LOAD may be several words
            ours() { timed setsid -w $LOAD "hackbench:mode=$mode,ipc=$ipc,groups=$groups,loops=$loops"; }
            # Who goes first changes every round: drift of the machine favours nobody.
            if ((round % 2)); then a=$(theirs) b=$(ours); else b=$(ours) a=$(theirs); fi
            echo "$a $b" >>"$work/times"
        done
        echo "$mode,$ipc groups=$groups loops=$loops: rt-tests $(median '$1') s, tailbound $(median '$3') s," \
            "rate ratio $(median '$1 / $3') (each: $(awk '{ printf "%.2f ", $1 / $3 }' "$work/times"))," \
            "per CPU second $(median '$2 / $4')"
    done
done
