#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a whole run costs in instructions (one is 1 ns of virtual time), beside cyclictest: for each wake-up, for
# each second beside the wake-ups (the supervisor), and once for start and end.
#
#   bench/lab-cost.sh        needs QEMU, jq, cyclictest
#
#   KERNEL=debian:6.12-rt   TAILBOUND=target/dist/tailbound
#
# Four lengths of the same measurement in one guest each: 2 and 10 s, every 500 us and every 5 ms. CPU time of
# the process = once + wake-ups * each + seconds * beside; four figures give the three, and the
# fourth says how well they fit.
set -euo pipefail
tailbound=${TAILBOUND:-${CARGO_TARGET_DIR:-target}/dist/tailbound}
kernel=${KERNEL:-debian:6.12-rt}
for tool in jq cyclictest; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool" >&2; exit 3; }
done
cyclictest=$(realpath "$(command -v cyclictest)")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# INTERVAL_US LOOPS: CPU time of cyclictest and of tailbound, in us.
cost() {
    "$tailbound" lab run --quiet -k "$kernel" -L none -l 10 -o "$folder/$1-$2.jsonl" --repeat 1 \
        --with /bin/sh --with "$cyclictest" \
        -W "cmd:$cyclictest -q -m -p 95 -i $1 -l $2 -t 1 -a 0" \
        -W "cmd:/tailbound measure cyclic -q -i ${1}us -l $2 -a 0 --warm-up 0s" >/dev/null
    jq -r 'select(.type == "work") | (.user_ns + .sys_ns) / 1000' "$folder/$1-$2.jsonl" | xargs
}

{ cost 500 4000; cost 500 20000; cost 5000 400; cost 5000 2000; } |
    awk '{ c[NR] = $1; t[NR] = $2 }
         function row(name, v) {
             each = (v[2] - v[1] - v[4] + v[3]) / 14400
             beside = (v[4] - v[3] - 1600 * each) / 8
             once = v[1] - 4000 * each - 2 * beside
             off = v[3] - once - 400 * each - 2 * beside
             printf "%-11s %12.2f %14.0f %14.1f %12.2f\n", name, each, beside, once / 1000, off / 1000
         }
         END {
             printf "%-11s %12s %14s %14s %12s\n", "", "us/wake-up", "us/s beside", "ms once", "ms misfit"
             row("cyclictest", c); row("tailbound", t)
         }'
