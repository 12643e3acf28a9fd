#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What `tailbound watch` costs the threads it watches: CPU time per cycle and per system call of a fixed
# number of cycles, alone, watched, and beside `trace-cmd record` with the same events.
#
#   bench/watch-cost.sh [TAILBOUND] [CYCLES] [ROUNDS]
#
# Each cycle sleeps to an absolute time (200 us) and makes 10 system calls that do not sleep. The variants
# run in turn, ROUNDS times; the figure is the least CPU time of each, for what else the machine does adds to
# it and never takes away. Needs root, tracefs, cc; trace-cmd if it is there. Prints a table.
set -eu

tailbound=${1:-target/dist/tailbound}
cycles=${2:-5000}
rounds=${3:-5}
calls=10
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$tailbound" ] || { echo "no $tailbound: make build, or name one" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

cat > "$folder/load.c" <<'C'
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    long cycles = argc > 1 ? atol(argv[1]) : 1000, calls = argc > 2 ? atol(argv[2]) : 10;
    struct rlimit guard = {500000, 600000};
    setrlimit(RLIMIT_RTTIME, &guard);
    mlockall(MCL_CURRENT | MCL_FUTURE);
    struct sched_param p = {.sched_priority = 50};
    if (sched_setscheduler(0, SCHED_FIFO, &p)) return 1;
    struct timespec due, cpu0, cpu1;
    /* Recording of system calls begins when the thread is seen. */
    struct timespec second = {1, 500000000};
    nanosleep(&second, NULL);
    clock_gettime(CLOCK_MONOTONIC, &due);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu0);
    for (long i = 0; i < cycles; i++) {
        due.tv_nsec += 200000;
        if (due.tv_nsec >= 1000000000) { due.tv_nsec -= 1000000000; due.tv_sec++; }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        for (long k = 0; k < calls; k++) syscall(SYS_getppid);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu1);
    long long ns = (cpu1.tv_sec - cpu0.tv_sec) * 1000000000LL + cpu1.tv_nsec - cpu0.tv_nsec;
    fprintf(stderr, "cpu_ns %lld\n", ns);
    return 0;
}
C
cc -O2 -o "$folder/load" "$folder/load.c"

# The events of `watch`, by system and name: those of the kernel among crates/explain/tailbound-trace/src/event.rs.
events() {
    root=/sys/kernel/tracing/events
    sed -n 's/^ *\(wanted\|needed\)("\([a-z_]*\)", "\([a-z_]*\)"),$/\2 \3/p' \
        "$here/../crates/explain/tailbound-trace/src/event.rs" |
        while read -r system name; do
            [ -d "$root/$system/$name" ] && printf ' -e %s:%s' "$system" "$name"
        done
}

least() { # name
    sort -n "$folder/$1" | head -1
}

one() { # variant, calls: appends the CPU time
    variant=$1
    n=$2
    case $variant in
    alone) "$folder/load" "$cycles" "$n" 2> "$folder/err" ;;
    watch) "$tailbound" watch -q --plain --json -- "$folder/load" "$cycles" "$n" > "$folder/out" 2> "$folder/err" ;;
    trace-cmd)
        # It reads its buffers while it runs, as watch does.
        # shellcheck disable=SC2046
        "$here/trace-cmd.sh" / record -i -q -C mono -o "$folder/trace.dat" $(events) -e raw_syscalls \
            "$folder/load" "$cycles" "$n" > "$folder/out" 2> "$folder/err" || true
        rm -f "$folder"/trace.dat*
        ;;
    esac
    sed -n 's/^cpu_ns //p' "$folder/err" >> "$folder/$variant.$n"
}

variants='alone watch'
if command -v trace-cmd > /dev/null; then variants="$variants trace-cmd"; fi
round=0
while [ "$round" -lt "$rounds" ]; do
    for variant in $variants; do
        one "$variant" 0
        one "$variant" "$calls"
    done
    round=$((round + 1))
done

printf '%-10s %16s %16s %10s\n' variant 'us per cycle' 'ns per call' ratio
base=$(least alone.0)
for variant in $variants; do
    bare=$(least "$variant.0")
    if [ -z "$bare" ]; then
        printf '%-10s could not record here: %s\n' "$variant" "$(tail -1 "$folder/err")"
        continue
    fi
    full=$(least "$variant.$calls")
    awk -v v="$variant" -v b="$bare" -v f="$full" -v n="$cycles" -v c="$calls" -v a="$base" \
        'BEGIN { printf "%-10s %16.2f %16.0f %10.2f\n", v, b / n / 1000, (f - b) / n / c, b / a }'
done
