#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Holds `tailbound watch --rules` against the kernel's own monitors of the same rules (runtime verification, `rtapp`), event by
# event: the planted programs of crates/tailbound/tests/rules run in a guest whose kernel has the monitors, both watch at once.
#
#   bench/rules-oracle.sh [MODE…]        modes of planted.c (default: all of them)
#
# KERNEL is a kernel with the monitors as a bzImage (default: the one built by name `rv`, see docs/rules.md), PROGRAM the program (default:
# target/debug/tailbound), SECONDS_EACH how long a program runs in the guest's time (default 2), SMP the guest's CPUs (default
# 1), WATCH further options of `watch`, separated by commas (default --no-stacks), ICOUNT=no lets the guest's time be the host's,
# OUT keeps the guest's answer. EVENTS=yes records the monitors' states too, to tell sleeps that did not come; TAIL=N prints N of
# the differences (default 10) to standard error.
# A violation of the kernel's monitor and one of ours are the same if thread and rule are, and the kernel's time lies
# in what ours names: from the system call's begin to the end of the sleep (the monitor tells a sleep when it is announced,
# and a waker when it wakes). The table is on standard output as Markdown, all else on standard error.
set -eu

case ${1:-} in -*)
    sed -n '3,18s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
here=$(cd "$(dirname "$0")/.." && pwd)
PROGRAM=${PROGRAM:-$here/target/debug/tailbound}
KERNEL=${KERNEL:-${TAILBOUND_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/tailbound/lab}/builds/rv/bzImage}
[ -r "$KERNEL" ] || { echo "no kernel with the monitors: build one (docs/rules.md), and give its bzImage as KERNEL" >&2; exit 3; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
OUT=${OUT:-$work/answer}
[ $# -gt 0 ] || set -- clean pi read relative realtime low-waker non-pi pipeline fault refault brief alloc fsync refused
modes=$(printf '%s,' "$@")

root=$work/root
mkdir -p "$root/dev" "$root/proc" "$root/sys" "$root/tmp"
cc -O1 -static -o "$root/init" "$here/bench/rules-oracle.c"
cc -O1 -fomit-frame-pointer -static -o "$root/planted" "$here/crates/tailbound/tests/rules/planted.c" -lpthread
strip -o "$root/tailbound" "$PROGRAM"
# What the program is linked against, where it is not static.
ldd "$PROGRAM" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
(cd "$root" && find . | cpio --quiet -o -H newc) >"$work/initramfs"
clock="-icount shift=0,sleep=off,align=off"
[ "${ICOUNT:-yes}" = yes ] || clock=
# In several threads QEMU mixes up code that the kernel changes on one CPU while another runs it: switching events on and off is
# enough for the guest to die of "int3" (7.2, within seconds).
events=
[ "${EVENTS:-no}" = yes ] && events="events=yes"
# shellcheck disable=SC2086 # several words
timeout "${PATIENCE:-900}" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -M pc -cpu qemu64,+ssse3,+sse4.1,+sse4.2 \
    -accel tcg,thread=single $clock -smp "${SMP:-1}" -m 1024 -serial "file:$work/console" -debugcon "file:$OUT" \
    -kernel "$KERNEL" -initrd "$work/initramfs" \
    -append "console=ttyS0 panic=-1 printk.time=1 quiet modes=${modes%,} seconds=${SECONDS_EACH:-2} watch=${WATCH:---no-stacks} $events" || true
[ -s "$work/console" ] && cp "$work/console" "$OUT.console"
if ! grep -q '^=end' "$OUT"; then
    echo "the guest ended before its work was done; its last words:" >&2
    tail -n 30 "$work/console" >&2
fi
python3 - "$OUT" "${TAIL:-10}" "${ICOUNT:-yes}" <<'PYTHON'
import collections, json, re, sys

answer, tail, exact = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "yes"
# From a line of the trace: the thread that the monitor speaks of, which need not be the one that runs.
FAULT = re.compile(r"-(\d+)\s+\[\d+\]\s+\S+\s+(\d+)\.(\d+): page_fault_(user|kernel):")
# With EVENTS=yes: the thread leaves the CPU asleep; it ends, or announces its next sleep.
LEAVES = re.compile(r"\s(\d+)\.(\d+): sched_switch: .*prev_pid=(\d+) .*prev_state=[SD]")
ENDS = re.compile(r"\s(\d+)\.(\d+): sched_switch: .*prev_pid=(\d+) .*prev_state=[XZ]")
ANNOUNCES = re.compile(r"\s(\d+)\.(\d+): event_sleep: .*\[(\d+)\]: \(.*[(,]sl[,)]")
LINE = re.compile(r"\s(\d+)\.(\d+): error_(sleep|pagefault): (.*)\[(\d+)\]: violation")
OURS = {"sleep-method": "sleep", "low-priority-waker": "sleep", "page-fault": "pagefault"}
# Two traces record one after the other; where the host's time is the guest's, it may stand still in between.
APART_NS = 50_000 if exact else 500_000

def fit(v, at):
    """Can the monitor have told this one then? A sleep between its system call and the switch, a waker until the thread has a CPU."""
    end = v["t_ns"] + (v["cost"].get("ns") or 0)
    begin, end = (v["t_ns"], end) if v["rule"] == "low-priority-waker" else (v["call_ns"], v["t_ns"])
    return begin - APART_NS <= at <= end + APART_NS

modes = collections.OrderedDict()
for line in open(answer, encoding="utf-8", errors="replace"):
    line = line.rstrip("\r\n")
    kind, rest = line[:1], line[1:]
    if kind == "=":
        if rest != "end":
            mode = modes.setdefault(rest, {"K": [], "V": [], "J": [], "E": [], "?": [], "!": []})
    elif kind in "KVJE?!" and modes:
        mode[kind].append(rest)
def nanoseconds(s, fraction):
    return int(s) * 10**9 + int(fraction.ljust(9, "0"))

def awake(states, missed):
    """Sleeps that were announced and did not come: the thread did not leave the CPU before it announced the next one, or ended."""
    def is_awake(k):
        after = [leaves for at, tid, leaves in states if tid == k[3] and at > k[0]]
        return bool(after) and not after[0]
    return [k for k in missed if is_awake(k)]

def begins_late(faults, ours, told):
    """Ours that the monitor `pagefault` cannot tell: it begins with a fault of an ordinary thread, and not again after a violation."""
    mine = {}
    for v in ours:
        near = [(abs(at - v["t_ns"]), i) for i, (at, tid, _) in enumerate(faults) if tid == v["tid"]]
        if near and min(near)[0] <= APART_NS:
            mine[min(near)[1]] = v
    started, left = set(), []
    for i, (_, tid, kind) in enumerate(faults):
        if i not in mine:
            # Of the kernel's own it may be the copy of a stack.
            if kind == "user":
                started.add(tid)
        elif tid in started:
            started.discard(tid)
        else:
            left.append(mine[i])
    return [v for v in told if any(v is l for l in left)]

print("| program | monitor | kernel | here | both | kernel alone | of these: announced, not slept | here alone | of these: the monitor had not begun |")
print("|---|---|---|---|---|---|---|---|---|")
for name, mode in modes.items():
    for problem in mode["!"] + mode["E"]:
        print(f"{name}: {problem}", file=sys.stderr)
    own = [json.loads(v) for v in mode["V"]]
    try:
        told = json.loads("\n".join(mode["J"]))
    except ValueError:
        told = {}
    program = {t.get("tid") for t in told.get("threads", [])} | {v["tid"] for v in own}
    kernel, faults, states = [], [], []
    for line in mode["K"]:
        fault = FAULT.search(line)
        if fault:
            faults.append((nanoseconds(*fault.groups()[1:3]), int(fault.group(1)), fault.group(4)))
        for pattern, leaves in ((LEAVES, True), (ENDS, False), (ANNOUNCES, False)):
            found = pattern.search(line)
            if found:
                states.append((nanoseconds(*found.groups()[:2]), int(found.group(3)), leaves))
        found = LINE.search(line)
        if found:
            s, us, monitor, comm, tid = found.groups()
            kernel.append((nanoseconds(s, us), monitor, comm, int(tid)))
    for note in told.get("notes", []):
        print(f"{name}: {note}", file=sys.stderr)
    others = [k for k in kernel if k[3] not in program and k[2] not in ("ctl", "low", "last", "planted", "refused")]
    for monitor in ("sleep", "pagefault"):
        theirs = [k for k in kernel if k[1] == monitor and k not in others]
        ours = [v for v in own if OURS.get(v["rule"]) == monitor]
        left, both = list(ours), 0
        missed = []
        for k in theirs:
            mine = next((v for v in left if v["tid"] == k[3] and fit(v, k[0])), None)
            if mine is None:
                missed.append(k)
            else:
                left.remove(mine)
                both += 1
        if theirs or ours or monitor == "sleep":
            late = begins_late(faults, ours, left) if monitor == "pagefault" else []
            stayed = awake(states, missed)
            cells = [name, monitor, len(theirs), len(ours), both, len(missed), len(stayed) if states else "-", len(left), len(late)]
            print("| " + " | ".join(map(str, cells)) + " |")
            missed = [k for k in missed if k not in stayed]
            left = [v for v in left if not any(v is l for l in late)]
        for k in missed[:tail]:
            print(f"{name}: kernel alone: {k[0] / 1e9:.6f} {k[1]} {k[2]}-{k[3]}", file=sys.stderr)
        for v in left[:tail]:
            print(f"{name}: here alone: {v['t_ns'] / 1e9:.6f} {v['rule']} {v['name']}-{v['tid']} {v['site']}", file=sys.stderr)
    if others:
        names = collections.Counter((k[1], k[2]) for k in others)
        print(f"{name}: of other threads: " + ", ".join(f"{n} {m} {c}" for (m, c), n in names.items()), file=sys.stderr)
PYTHON
