#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The theoretical bound beside what was observed, for each kernel with each load: the table of docs/results/theory.md.
#
#   bench/theory.sh FOLDER [DURATION] [KERNEL…]      default 300ms; all four kernels
#
# PROGRAM is the program (default: target/release/tailbound, else target/debug/tailbound), OPTIONS more words for `lab paths`,
# LOADS the loads. An answer is kept in FOLDER and not made again. Ends with 1 if any observation is above its bound.
set -u
folder=$1
duration=${2:-300ms}
shift
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- debian:6.1 debian:6.1-rt debian:6.12 debian:6.12-rt
here=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${PROGRAM:-}" ]; then
    PROGRAM=$here/target/release/tailbound
    [ -x "$PROGRAM" ] || PROGRAM=$here/target/debug/tailbound
fi
mkdir -p "$folder"
for load in ${LOADS:-none hackbench mmap fork file timers}; do
    for kernel; do
        answer=$folder/$kernel.$load.json
        [ -s "$answer" ] && continue
        # shellcheck disable=SC2086
        if "$PROGRAM" lab paths -q --json --theory ${OPTIONS:-} -k "$kernel" -L "$load" -i 1ms -D "$duration" \
            >"$answer.new" 2>"$answer.error"; then
            mv "$answer.new" "$answer"
            rm -f "$answer.error"
        else
            rm -f "$answer.new"
            echo "$kernel $load: $(cat "$answer.error")" >&2
        fi
    done
done
exec python3 - "$folder"/*.json <<'PYTHON'
import json, os, sys

MODELS = ("none", "worst-single", "one-of-each", "window", "window-counts", "sporadic")
bad = False
print("| kernel | load | wake-ups | observed | " + " | ".join(MODELS) + " | most |")
print("|" + "---|" * (5 + len(MODELS)))
for name in sys.argv[1:]:
    answer = json.load(open(name))
    kernel, load = os.path.basename(name)[: -len(".json")].rsplit(".", 1)
    seen, bound = answer["theory"]["observed"], answer["bound"]
    cells = []
    for model in MODELS:
        found = next((m for m in bound["models"] if m["model"] == model), None)
        if found is None or found["sample_ns"] is None:
            cells.append("-")
            continue
        cells.append(f"{found['sample_ns'] / seen['sample_ns']:.2f}")
        if model in MODELS[3:]:
            for what in ("latency", "sample"):
                observed = seen["scheduling_ns" if what == "latency" else "sample_ns"]
                bad |= found[f"{what}_ns"] is not None and found[f"{what}_ns"] < observed
    most = bound["terms"][0] if bound["terms"] else {"name": "; ".join(bound["refused"]), "ns": 0}
    term = most["name"].split(" (")[0]
    print(f"| {kernel} | {load} | {seen['n']} | {seen['sample_ns'] / 1000:.1f} µs | " + " | ".join(cells)
          + f" | {term} {most['ns'] / 1000:.1f} µs |")
sys.exit(bad)
PYTHON
