#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The wake-up path of every tool in instructions: tailbound, cyclictest, jitterdebugger and
# rtla measure in the same guest on the same kernels, in virtual time (one instruction is 1 ns).
#
#   bench/lab-peers.sh [FOLDER]       where the run files go, default lab-peers; needs QEMU, jq
#
#   KERNELS="debian:6.12-rt debian:6.12"   LOADS="none hackbench:groups=2"
#   CYCLES=4000 INTERVAL_US=250            rtla knows seconds only: 4000 of 250 us are its one
#   TOOLS="tailbound cyclictest jitterdebugger rtla"   those that are installed
#   TAILBOUND=target/dist/tailbound     a static one, as it is PID 1 in the guest
#
# Everyone: one thread, FIFO 95 on CPU 0. rtla's timerlat, as rtla 6.1 has it, wakes a thread of
# the kernel: its way back to user space is not in it. Where a tool cannot run, the table has
# the first line of its reason.
set -euo pipefail
folder=${1:-lab-peers}
tailbound=${TAILBOUND:-${CARGO_TARGET_DIR:-target}/dist/tailbound}
read -ra kernels <<<"${KERNELS:-debian:6.12-rt debian:6.12}"
read -ra loads <<<"${LOADS:-none hackbench:groups=2}"
cycles=${CYCLES:-4000}
interval_us=${INTERVAL_US:-250}
command -v jq >/dev/null || { echo "skipped: no jq" >&2; exit 3; }

# The words that make TOOL measure, into the array `words`.
words_of() {
    local program
    words=(--cycles "$cycles" --interval "${interval_us}us")
    [ "$1" = tailbound ] && return
    program=$(command -v "$1") || { echo "skipped: no $1" >&2; return 1; }
    program=$(realpath "$program")
    words+=(--with "$program" --tester)
    case $1 in
    cyclictest)
        words+=("$program -q -m -p 95 -i $interval_us -l $cycles -t 1 -a 0 -N -h 400000 --json=/run/answer"
            --tester-file /run/answer)
        ;;
    jitterdebugger)
        words+=("$program -a 0 -p 95 -i $interval_us -l $cycles -N -o /run/answer"
            --tester-file /run/answer/results.json)
        ;;
    rtla)
        words+=("$program timerlat hist -p $interval_us -P f:95 -c 0 -d $((cycles * interval_us / 1000000))s --nano -b 1 -E 9999"
            --tester-file /run/out)
        ;;
    esac
}

row="%-16s %-20s %-15s %8s %10s %10s %10s\n"
# shellcheck disable=SC2059
printf "$row" kernel load tool n "min ns" "median ns" "max ns"
for load in "${loads[@]}"; do
    for kernel in "${kernels[@]}"; do
        for tool in ${TOOLS:-tailbound cyclictest jitterdebugger rtla}; do
            words_of "$tool" || continue
            file="$folder/$(tr -c 'a-z0-9.\n' - <<<"$tool-$kernel-$load").tailbound.jsonl"
            if ! "$tailbound" lab run --quiet --force --json -k "$kernel" -L "$load" "${words[@]}" \
                -o "$file" >"${TMPDIR:-/tmp}/lab-peers.$$.json" 2>"${TMPDIR:-/tmp}/lab-peers.$$.err"; then
                why=$(grep 'guest:' "${TMPDIR:-/tmp}/lab-peers.$$.err" | grep -vm1 'guest: load:' ||
                    tail -1 "${TMPDIR:-/tmp}/lab-peers.$$.err")
                printf '%-16s %-20s %-15s not applicable: %s\n' "$kernel" "$load" "$tool" "${why#*guest: }"
                continue
            fi
            # The last context is the thread's; rtla has the interrupt's before it.
            read -r n least median most < <(jq -r '.totals[-1].wakeup
                | "\(.n) \(.min_ns) \(.median.ns | round) \(.max_ns)"' "${TMPDIR:-/tmp}/lab-peers.$$.json")
            # shellcheck disable=SC2059
            printf "$row" "$kernel" "$load" "$tool" "$n" "$least" "$median" "$most"
        done
    done
done
rm -f "${TMPDIR:-/tmp}/lab-peers.$$".*
