#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What watching a guest costs the host: CPU time of a run that is watched sparsely and in full, against the same run as always.
#
#   bench/paths-cost.sh [ROUNDS] [KERNEL…]       default 3; debian:6.12-rt debian:6.12
#
# PROGRAM is the program (default: target/release/tailbound, else target/debug/tailbound). Each round makes all three runs; a figure is
# the least of them, because what else the machine does only adds. Bars: sparse 1.2, full 2.
set -eu
rounds=${1:-3}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- debian:6.12-rt debian:6.12
here=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${PROGRAM:-}" ]; then
    PROGRAM=$here/target/release/tailbound
    [ -x "$PROGRAM" ] || PROGRAM=$here/target/debug/tailbound
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
for kernel; do
    for round in $(seq "$rounds"); do
        "$PROGRAM" lab paths -q --json -k "$kernel" -i 1ms -D 3s >"$folder/$round.json"
    done
    python3 - "$kernel" "$folder"/*.json <<'PYTHON'
import json, sys
costs = [json.load(open(f))["lab_cost"] for f in sys.argv[2:]]
least = {way: min(c[way]["cpu_s"] for c in costs) for way in ("plain", "sparse", "full")}
shares = ", ".join(f"{way} {least[way]:.2f} s ({least[way] / least['plain']:.2f})" for way in least)
print(f"{sys.argv[1]}: {shares}")
PYTHON
    rm -f "$folder"/*.json
done
