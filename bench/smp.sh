#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A CPU that is isolated against one that is not, in the lab: latencies on CPU 1 of two, while CPU 0 has the load. The table of docs/results/smp.md.
#
#   bench/smp.sh [CYCLES] [LOAD…]       default 2000; none hackbench
#
# PROGRAM is the program (default: target/release/tailbound, else target/debug/tailbound), KERNELS the kernels, WORDS further options
# (`WORDS="--slice 1us"`), QEMU the emulator of all (default: 10, of `tailbound lab qemu fetch`; 8.1 or later).
set -eu
cycles=${1:-2000}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- none hackbench
here=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${PROGRAM:-}" ]; then
    PROGRAM=$here/target/release/tailbound
    [ -x "$PROGRAM" ] || PROGRAM=$here/target/debug/tailbound
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
isolate='isolcpus=1 nohz_full=1 rcu_nocbs=1 irqaffinity=0'
made() {
    # A deadline is nobody's here: 0 and 1 are answers.
    "$PROGRAM" lab run -q --json -k "$kernel" -L "$load" -l "$cycles" --force -o "$folder/run.jsonl" "$@" --qemu "${QEMU:-10}" ${WORDS:-} >"$folder/run.json" || [ $? = 1 ]
    python3 - "$folder/run.json" "$kernel" "$load" "$what" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
thread = run["threads"][0]
shares = run["machine"].get("lab.cpu_shares_permille", {}).get("value")
shares = "" if shares is None else f", shares {'/'.join(f'{s / 10:.1f} %' for s in shares)}"
median, latest = thread["wakeup"]["median"]["ns"] / 1000, thread["wakeup"]["max_ns"] / 1000
cost = run["lab_cost"]
print(f"{' '.join(sys.argv[2:])}: median {median:.2f} us, latest {latest:.2f} us, {thread['missed']} missed{shares}; {cost['host_s']:.0f} s of the host")
PYTHON
}
for kernel in ${KERNELS:-debian:6.12-rt debian:6.12}; do
    for load; do
        what="one CPU"
        made
        what="two, CPU 1 isolated"
        made --smp 2 --cpus 1 --append "$isolate"
        what="two, not isolated"
        made --smp 2 --cpus 1
    done
done
