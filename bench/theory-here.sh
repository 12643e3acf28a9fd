#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Holds `tailbound bound --theory here` against the exact sections of `tailbound lab paths --theory`: the same kernel, which has the events
# `preemptirq`, with the same load; the former runs within the guest, the latter watches it from outside.
#
#   bench/theory-here.sh LOAD…          default: none hackbench mmap
#
# KERNEL is a kernel of the lab that has the events (default build:preemptirq; tailbound lab kernel build --source debian:linux-source-6.12 --fragment
# full,preemptirq --name preemptirq), PROGRAM the program (default target/debug/tailbound), SECONDS_EACH how long it is
# recorded in the guest's time (default 1), LENGTH how long it is watched (default the same), OUT keeps both answers. The table is on standard output as Markdown, all else on standard error.
# The two runs are not the same one: recording changes it. Each maximum of the recorded ones holds the tracing, and is told beside it.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
PROGRAM=${PROGRAM:-$here/target/debug/tailbound}
KERNEL=${KERNEL:-build:preemptirq}
SECONDS_EACH=${SECONDS_EACH:-1}
image=${TAILBOUND_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/tailbound/lab}/builds/${KERNEL#build:}/bzImage
[ -r "$image" ] || { echo "no kernel $KERNEL: build one (docs/theory.md)" >&2; exit 3; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
OUT=${OUT:-$work}
mkdir -p "$OUT"
[ $# -gt 0 ] || set -- none hackbench mmap

root=$work/root
mkdir -p "$root/dev" "$root/proc" "$root/sys" "$root/tmp"
cc -O1 -static -o "$root/init" "$here/bench/theory-here.c"
strip -o "$root/tailbound" "$PROGRAM"
# What the program is linked against, where it is not static.
ldd "$PROGRAM" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
(cd "$root" && find . | cpio --quiet -o -H newc) >"$work/initramfs"
for load; do
    timeout "${PATIENCE:-900}" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -M pc -cpu qemu64,+ssse3,+sse4.1,+sse4.2 \
        -accel tcg,thread=single -icount shift=0,sleep=off,align=off -m 1024 -serial "file:$work/console" -debugcon "file:$work/answer" \
        -kernel "$image" -initrd "$work/initramfs" \
        -append "console=ttyS0 panic=-1 quiet load=$load seconds=$SECONDS_EACH" || true
    grep '^E' "$work/answer" | tr -d '\r' | sed "s/^E/$load: /" >&2 || true
    if ! grep -q '^=end' "$work/answer"; then
        echo "$load: the guest ended before its work was done; its last words:" >&2
        tail -n 30 "$work/console" >&2
        continue
    fi
    sed -n 's/^J//p' "$work/answer" | tr -d '\r' >"$OUT/$load.here.json"
    "$PROGRAM" lab paths -q --json --theory -k "$KERNEL" -L "$load" -i 1ms -D "${LENGTH:-${SECONDS_EACH}s}" >"$OUT/$load.lab.json"
done
exec python3 - "$OUT" "$@" <<'PYTHON'
import json, os, sys

folder, loads = sys.argv[1], sys.argv[2:]
us = lambda ns: f"{ns / 1000:.2f}"
print("| load | variable | exact, µs | recorded, µs | of that recording, up to | exact: from, to | recorded: from, to |")
print("|---|---|---|---|---|---|---|")
bad = []
for load in loads:
    try:
        exact = json.load(open(os.path.join(folder, f"{load}.lab.json")))
        here = json.load(open(os.path.join(folder, f"{load}.here.json")))
    except (OSError, ValueError) as e:
        print(f"{load}: {e}", file=sys.stderr)
        continue
    record = here["theory"]["record"]
    recorded = {v["variable"]: v for v in record["variables"]}
    places = lambda v: f"{v['from']}, {v['to']}" if v else "-"
    for v in exact["theory"]["variables"]:
        if v["variable"] in ("timer", "return", "reading"):
            continue
        r = recorded.get(v["variable"])
        told = (us(r["ns"]), us(r.get("tracing_ns", 0))) if r else ("-", "-")
        print(f"| {load} | {v['variable']} | {us(v['ns'])} | {told[0]} | {told[1]} | {places(v)} | {places(r)} |")
        if r and r["ns"] < v["ns"]:
            bad.append(f"{load}: {v['variable']}: {r['ns']} ns recorded, {v['ns']} ns exact")
    window = lambda answer: next((m["latency_ns"] for m in answer["models"] if m["model"] == "window"), None)
    both = [window(exact["bound"]), window(here["theory"]["answer"])]
    print(f"| {load} | bound | " + " | ".join(us(b) if b else "-" for b in both) + f" | | observed {us(exact['theory']['observed']['scheduling_ns'])} | observed {us(record['observed']['scheduling_ns'])} of {record['observed']['n']} |")
    told = here["here"]
    print(f"{load}: {told['events']} events, {told['lost']} lost, each {told['event_ns']} ns; refused: {here['theory']['answer']['refused']}", file=sys.stderr)
    for p in record["preconditions"]:
        print(f"{load}: {p['name']}: {p['holds']}: {p['why']}", file=sys.stderr)
for line in bad:
    print(f"shorter than the exact one: {line}", file=sys.stderr)
PYTHON
