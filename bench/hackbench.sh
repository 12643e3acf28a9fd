#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compares the hackbench load with the hackbench of Debian's package rt-tests: same shape,
# same number of messages, run in turn several times. Prints the time of each and the ratio
# of message rates (above 1: ours passes more messages a second).
#
# Usage: bench/hackbench.sh [ROUNDS [GROUPS...]]      default: 5 rounds of 1, 4 and 10 groups
# Environment: MESSAGES  messages a run (default 8000000: some seconds)
#              LOAD      command that runs a load and prints `Time: s.mmm`
#                        (default: this tree's release example; `tailbound load` works too)
set -eu
rounds=${1:-5}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- 1 4 10
messages=${MESSAGES:-8000000}
command -v hackbench >/dev/null || {
    echo "bench/hackbench.sh: no hackbench here; install the package rt-tests" >&2
    exit 3
}
if [ -z "${LOAD:-}" ]; then
    top=$(cd "$(dirname "$0")/.." && pwd)
    (cd "$top" && cargo build --quiet --release -p tailbound-load --example load)
    LOAD=${CARGO_TARGET_DIR:-$top/target}/release/examples/load
fi
seconds() { sed -n 's/^Time: *//p'; }
median() { sort -n | awk '{ v[NR] = $1 } END { m = int((NR + 1) / 2); print NR % 2 ? v[m] : (v[m] + v[m + 1]) / 2 }'; }

echo "$(hackbench --version 2>&1 | head -n 1); $(nproc) CPUs; $messages messages a run; $rounds rounds"
times=$(mktemp)
trap 'rm -f "$times"' EXIT
for shape in "process socketpair" "thread pipe" "process pipe"; do
    mode=${shape% *}
    ipc=${shape#* }
    flags=
    [ "$mode" = process ] || flags="$flags -T"
    [ "$ipc" = socketpair ] || flags="$flags -p"
    for groups in "$@"; do
        loops=$((messages / (groups * 400)))
        : >"$times"
        for round in $(seq "$rounds"); do
            theirs() { hackbench $flags -l "$loops" -g "$groups" | seconds; }
            ours() { $LOAD "hackbench:mode=$mode,ipc=$ipc,groups=$groups,loops=$loops" | seconds; }
            # Who goes first changes every round: drift of the machine favours nobody.
            if [ $((round % 2)) -eq 0 ]; then a=$(theirs); b=$(ours); else b=$(ours); a=$(theirs); fi
            echo "$a $b" >>"$times"
        done
        awk '{ print $1 / $2 }' "$times" | median | {
            read -r ratio
            echo "$mode,$ipc groups=$groups loops=$loops:" \
                "rt-tests $(awk '{ print $1 }' "$times" | median) s," \
                "tailbound $(awk '{ print $2 }' "$times" | median) s," \
                "ratio $ratio (each: $(awk '{ printf "%.3f ", $1 / $2 }' "$times"))"
        }
    done
done
