#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# How fast the lab is: from the command to the first sample, cold and from a snapshot, and
# how many instructions of the guest one second of one of the host's cores executes.
#
#   bench/lab-speed.sh [ROUNDS]       default 3; needs QEMU, jq
#
#   KERNELS="debian:6.12-rt debian:6.12"
#   TAILBOUND=target/dist/tailbound     a static one, as it is PID 1 in the guest
#
# To the first sample: a whole command that measures one activation after no warm-up and under
# no load, its results and QEMU's end included, so that the figure is never too small. CPU time
# stands beside it, as other work on the host makes the one longer and hardly the other.
# Rate: 10,000 cycles under hackbench from a snapshot, instructions executed for the run by the
# CPU time of QEMU. Kernels are fetched and the program is warm before anything is timed.
set -euo pipefail
rounds=${1:-3}
tailbound=${TAILBOUND:-${CARGO_TARGET_DIR:-target}/dist/tailbound}
read -ra kernels <<<"${KERNELS:-debian:6.12-rt debian:6.12}"
command -v jq >/dev/null || { echo "skipped: no jq" >&2; exit 3; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

TIMEFORMAT='%R %U %S'
# One line: KERNEL WHAT wall_s cpu_s ready_s rate, of `tailbound lab run` with the words.
once() {
    local kernel=$1 what=$2 wall user system
    shift 2
    { time "$tailbound" lab run --quiet --force --json -k "$kernel" -o "$dir/run" "$@" \
        >"$dir/answer" 2>"$dir/said"; } 2>"$dir/time" || { cat "$dir/said" >&2; exit 1; }
    read -r wall user system <"$dir/time"
    jq -r --arg k "$kernel" --arg w "$what" --arg t "$wall" --arg c "$(bc <<<"$user + $system")" \
        '.lab_cost | "\($k) \($w) \($t) \($c) \(.ready_s) \(.executed_per_cpu_s) \(.executed)"' "$dir/answer"
}

echo "# $(uname -sr), $(nproc) CPUs, load averages $(cut -d' ' -f1-3 /proc/loadavg) at the start"
first=(-L none --cycles 1 --warm-up 1ms)
for kernel in "${kernels[@]}"; do
    once "$kernel" warm "${first[@]}" >/dev/null
    for _ in $(seq "$rounds"); do
        once "$kernel" cold "${first[@]}" --no-snapshot
        once "$kernel" snapshot "${first[@]}"
        once "$kernel" hackbench -L hackbench:groups=2 --cycles 10000
    done
done | tee "$dir/figures" >&2
echo "# load averages $(cut -d' ' -f1-3 /proc/loadavg) at the end"
sort -s -k1,2 "$dir/figures" | awk '
    function middle(list,    n, i, j, t, p) {
        n = split(list, p, " ")
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && p[j] + 0 < p[j-1] + 0; j--) { t = p[j]; p[j] = p[j-1]; p[j-1] = t }
        return p[int((n + 1) / 2)]
    }
    { key = $1 " " $2; if (!(key in wall)) order[++n] = key
      wall[key] = wall[key] " " $3; cpu[key] = cpu[key] " " $4; ready[key] = ready[key] " " $5; rate[key] = rate[key] " " $6 }
    END {
        printf "%-16s %-10s %10s %10s %10s %14s\n", "kernel", "what", "wall s", "cpu s", "ready s", "M instr/cpu s"
        for (i = 1; i <= n; i++) {
            split(order[i], k, " ")
            printf "%-16s %-10s %10.2f %10.2f %10.2f %14.0f\n", k[1], k[2], middle(wall[order[i]]),
                middle(cpu[order[i]]), middle(ready[order[i]]), middle(rate[order[i]]) / 1e6
        }
    }'
