#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Does every probe repeat to the byte in the lab while all cores of this machine are busy?
#
#   bench/repeats.sh [TIMES] [PROBE…]       default 100; the probes below, one after the other
#
# PROGRAM is the program (default: target/release/tailbound, else target/debug/tailbound), KERNELS the kernels (default: both 6.12),
# WORDS further options (`WORDS="--smp 2 --cpus 1"` repeats several CPUs in short slices). One loop runs on each core meanwhile; they
# are ended by their numbers. Each run is compared with the first of its kind. Exit status 1 if one differs.
set -eu
times=${1:-100}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- cyclic pi futex pi-futex signal condvar semaphore mqueue pipe eventfd epoll socket prio-wake
here=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${PROGRAM:-}" ]; then
    PROGRAM=$here/target/release/tailbound
    [ -x "$PROGRAM" ] || PROGRAM=$here/target/debug/tailbound
fi
folder=$(mktemp -d)
hogs=
trap 'for hog in $hogs; do kill "$hog" 2>/dev/null || :; done; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
core=0
while [ "$core" -lt "$(nproc)" ]; do
    sh -c 'while :; do :; done' &
    hogs="$hogs $!"
    core=$((core + 1))
done
differ=0
for kernel in ${KERNELS:-debian:6.12-rt debian:6.12}; do
    for probe; do
        one() {
            "$PROGRAM" lab run -q -k "$kernel" --probe "$probe" -L "${LOAD:-none}" -l "${LOOPS:-200}" ${WORDS:-} --force -o "$1" >/dev/null || [ $? = 1 ]
        }
        one "$folder/first.jsonl"
        same=0
        for _ in $(seq "$times"); do
            one "$folder/again.jsonl"
            if cmp -s "$folder/first.jsonl" "$folder/again.jsonl"; then same=$((same + 1)); fi
        done
        echo "$kernel $probe: $same of $times the same bytes"
        [ "$same" = "$times" ] || differ=1
    done
done
exit "$differ"
