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
# Ends with 1 where what is recorded is less than what is exact, or its bound below what either observed; 3 without that kernel.
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
us = lambda ns: f"{ns / 1000:.2f}" if ns is not None else "-"
times = lambda recorded, exact: f"{recorded / exact:.2f}" if recorded and exact else "-"
print("| load | what | exact, µs | recorded, µs | times | of that recording, up to | exact: from, to | recorded: from, to |")
print("|---|---|---|---|---|---|---|---|")
# What is recorded may not be less than what is exact, nor its bound less than what was observed.
bad = []


def row(load, what, exact, recorded, tracing="", places=("", "")):
    print(f"| {load} | {what} | {us(exact)} | {us(recorded)} | {times(recorded, exact)} | {tracing} | {places[0]} | {places[1]} |")
    if exact is not None and (recorded is None or recorded < exact):
        bad.append(f"{load}: {what}: {recorded} ns recorded, {exact} ns exact")


for load in loads:
    try:
        exact = json.load(open(os.path.join(folder, f"{load}.lab.json")))
        here = json.load(open(os.path.join(folder, f"{load}.here.json")))
    except (OSError, ValueError) as e:
        bad.append(f"{load}: no answer: {e}")
        continue
    record, answer = here["theory"]["record"], here["theory"]["answer"]
    recorded = {v["variable"]: v for v in record["variables"]}
    place = lambda v: f"{v['from']}, {v['to'] or '-'}" if v else "-"
    for v in exact["theory"]["variables"]:
        # These are no part of the theorem, and have no events.
        if v["variable"] in ("timer", "return", "reading"):
            continue
        r = recorded.get(v["variable"])
        row(load, v["variable"], v["ns"], r and r["ns"], us(r.get("tracing_ns", 0)) if r else "-", (place(v), place(r)))
    longest = lambda of: max(of["interrupts"], key=lambda i: i["longest_ns"], default=None)
    one, other = longest(exact["theory"]), longest(record)
    if one:
        row(load, "interrupt", one["longest_ns"], other and other["longest_ns"], "", (one["vector"], other["vector"] if other else "-"))
    for model in ("none", "window"):
        of = lambda models: next((m.get("latency_ns") for m in models if m["model"] == model), None)
        row(load, f"bound, {model}", of(exact["bound"]["models"]), of(answer["models"]))
    seen, found = exact["theory"]["observed"], record["observed"]
    print(f"| {load} | observed | {us(seen['scheduling_ns'])} | {us(found['scheduling_ns'])} | | | of {seen['n']} | of {found['n']} |")
    bound = next((m.get("latency_ns") for m in answer["models"] if m["model"] == "window"), None)
    if bound is None or bound < max(seen["scheduling_ns"], found["scheduling_ns"]):
        bad.append(f"{load}: the bound from recorded events is {bound} ns, and {seen}, {found} was observed")
    told = here["here"]
    print(f"{load}: {told['events']} events, {told['lost']} lost, each {told['event_ns']} ns; refused: {answer['refused']}", file=sys.stderr)
    for p in record["preconditions"]:
        print(f"{load}: {p['name']}: {p['holds']}: {p['why']}", file=sys.stderr)
for line in bad:
    print(f"optimistic: {line}", file=sys.stderr)
sys.exit(1 if bad else 0)
PYTHON
