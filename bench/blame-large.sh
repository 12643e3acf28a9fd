#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# How long `tailbound blame` takes for a large file of trace-cmd, how much memory, and how long
# `trace-cmd report` takes for the same file.
#
#   bench/blame-large.sh [-f TRACE.DAT] [-s MEBIBYTES] [-t TAILBOUND] [-k FILE]
#
# The events are real: those of -f (version 6, not packed), or six seconds of this machine, recorded with
# trace-cmd as root under hackbench with cyclictest beside it. Their pages are repeated, each time
# with later times, until the size is reached. Within the records the times of timers stay what they were;
# so the clock is given as `boot`, for which lateness is taken from each expiry alone. -k keeps the file.
set -eu

trace='' size=1024 keep='' tailbound=''
while getopts f:s:t:k: option; do
    case $option in
    f) trace=$OPTARG ;;
    s) size=$OPTARG ;;
    t) tailbound=$OPTARG ;;
    k) keep=$OPTARG ;;
    *) exit 2 ;;
    esac
done
here=$(cd "$(dirname "$0")/.." && pwd)
tailbound=${tailbound:-$here/target/release/tailbound}
[ -x "$tailbound" ] || { echo "no $tailbound: make build, or name one with -t" >&2; exit 2; }
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/blame-large.XXXXXX")
trap 'rm -rf "$folder"' EXIT INT TERM

if [ -z "$trace" ]; then
    trace=$folder/recorded.dat
    events=''
    for e in sched:sched_switch sched:sched_waking sched:sched_wakeup sched:sched_migrate_task \
        timer:hrtimer_start timer:hrtimer_expire_entry timer:hrtimer_expire_exit \
        workqueue:workqueue_execute_start workqueue:workqueue_execute_end power:cpu_idle \
        irq irq_vectors ipi csd lock exceptions; do
        [ -e "/sys/kernel/tracing/events/$(echo $e | tr : /)" ] && events="$events -e $e"
    done
    hackbench -g 2 -l 1000000 -s 100 >/dev/null 2>&1 & load=$!
    cyclictest -q -t -a -p 80 -i 1000 -D 7 >/dev/null & tester=$!
    # shellcheck disable=SC2086 # words of their own
    "$here/bench/trace-cmd.sh" / record --file-version 6 -C mono -b 30000 -o "$trace" $events sleep 6 >/dev/null
    kill $load $tester 2>/dev/null || true
fi

large=${keep:-$folder/large.dat}
python3 - "$trace" "$large" "$size" <<'PYTHON'
import struct, sys

source, target, mebibytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = open(source, "rb").read()
assert data.startswith(b"\x17\x08Dtracing6\0"), "not a file of trace-cmd, version 6"
at = data.index(b"flyrecord\0", data.rindex(b"options  \0", 0, 64 << 20)) + 10
options = data.rindex(b"options  \0", 0, at)
cpus, = struct.unpack_from("<I", data, options - 4)
table = [struct.unpack_from("<QQ", data, at + 16 * i) for i in range(cpus)]
PAGE = 4096
pages = [[data[o + i:o + i + PAGE] for i in range(0, n, PAGE)] for o, n in table]
times = [struct.unpack_from("<Q", p)[0] for cpu in pages for p in cpu if p[8:16] != bytes(8)]
span = max(times) - min(times) + 10_000_000
rounds = max(1, (mebibytes << 20) // sum(n for _, n in table))
clock = b"mono mono_raw [boot]"
assert data.count(b"[mono] mono_raw boot", 0, at) == 1, "not recorded with -C mono"
with open(target, "wb") as out:
    begin = min(o for o, n in table if n)
    head = bytearray(data[:begin].replace(b"[mono] mono_raw boot", clock).replace(b"[mono]", b"[boot]"))
    where = begin
    for cpu, (_, n) in enumerate(table):
        struct.pack_into("<QQ", head, at + 16 * cpu, where, n * rounds)
        where += n * rounds
    out.write(head)
    for cpu in pages:
        for k in range(rounds):
            for page in cpu:
                t, = struct.unpack_from("<Q", page)
                out.write(struct.pack("<Q", t + k * span) + page[8:])
PYTHON

bytes=$(stat -c %s "$large")
for what in tailbound "tailbound --all" trace-cmd; do
    case $what in
    trace-cmd) set -- trace-cmd report "$large" ;;
    tailbound) set -- "$tailbound" blame "$large" --json ;;
    *) set -- "$tailbound" blame "$large" --json --all ;;
    esac
    command -v "$1" >/dev/null || continue
    /usr/bin/env python3 - "$bytes" "$what" "$@" <<'PYTHON'
import resource, subprocess, sys, time

size, what, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
begin = time.monotonic()
status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
s = time.monotonic() - begin
use = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{what:16} {size / 1e6:8.0f} MB  {s:7.2f} s  {size / 1e6 / s:7.1f} MB/s  "
      f"{use.ru_maxrss / 1024:6.0f} MiB at most  {use.ru_utime + use.ru_stime:7.2f} s of CPU  exit {status}")
PYTHON
done
