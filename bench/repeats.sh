#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Does every probe repeat to the byte in the lab while all cores of this machine are busy?
#
#   bench/repeats.sh [TIMES] [PROBE…]       default 100; every probe of the catalogue
#
# PROGRAM is the program (default: target/release/tailbound, else target/debug/tailbound), KERNELS the kernels (default: both 6.12),
# LOAD the load and LOOPS the events of a run, WORDS further options (`WORDS="--smp 2 --cpus 1"` repeats several CPUs in short slices),
# NICE the niceness of the loops that keep the cores busy, one a core; they are ended by their numbers. All are repeated once, then all
# again: ended early (SIGINT, SIGTERM) it still says how often each was. Each run is compared with the first of its kind. Exit
# status 1 if one differs or could not be run.
set -eu
times=${1:-100}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- cyclic signal futex pi-futex condvar semaphore sysv-semaphore mqueue pipe socket eventfd epoll io-uring barrier \
    sched-football:game=5ms pi pi-process ptrace prio-preempt prio-wake rt-migrate busy hwlat queue nmi:source=clock clocks deadline \
    fixed-work periodic-load
probes=$*
here=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${PROGRAM:-}" ]; then
    PROGRAM=$here/target/release/tailbound
    [ -x "$PROGRAM" ] || PROGRAM=$here/target/debug/tailbound
fi
kernels=${KERNELS:-debian:6.12-rt debian:6.12}
folder=$(mktemp -d)
hogs=
told() {
    trap - INT TERM
    for hog in $hogs; do kill "$hog" 2>/dev/null || :; done
    status=0
    for kernel in $kernels; do
        for probe in $probes; do
            of=$folder/$kernel.$probe
            if [ -e "$of.refused" ]; then
                echo "$kernel $probe: not run: $(tail -n 1 "$of.refused")"
                status=1
                continue
            fi
            same=$(grep -c same "$of.told" || :)
            runs=$(grep -c . "$of.told" || :)
            echo "$kernel $probe: ${same:-0} of ${runs:-0} the same bytes"
            { [ "$same" = "$runs" ] && [ "$runs" != 0 ]; } || status=1
        done
    done
    if [ "$status" = 0 ]; then rm -rf "$folder"; else echo "kept: $folder"; fi
    exit "$status"
}
trap told INT TERM
core=0
while [ "$core" -lt "$(nproc)" ]; do
    nice -n "${NICE:-0}" sh -c 'while :; do :; done' &
    hogs="$hogs $!"
    core=$((core + 1))
done
# A run into the file $2.$1; a deadline is nobody's here, so that 0 and 1 are answers.
one() {
    status=0
    "$PROGRAM" lab run -q -k "$kernel" --probe "$probe" -L "${LOAD:-none}" -l "${LOOPS:-20}" ${WORDS:-} --force -o "$2.$1" \
        >/dev/null 2>"$2.said" || status=$?
    [ "$status" -le 1 ] || mv "$2.said" "$2.refused"
}
for round in $(seq 0 "$times"); do
    for kernel in $kernels; do
        for probe in $probes; do
            of=$folder/$kernel.$probe
            [ ! -e "$of.refused" ] || continue
            if [ "$round" = 0 ]; then
                : >"$of.told"
                one first.jsonl "$of"
                continue
            fi
            one again.jsonl "$of"
            [ ! -e "$of.refused" ] || continue
            if cmp -s "$of.first.jsonl" "$of.again.jsonl"; then
                echo same >>"$of.told"
            else
                echo differs >>"$of.told"
                mv "$of.again.jsonl" "$of.differs-$round.jsonl"
            fi
        done
    done
done
told
