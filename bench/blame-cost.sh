#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What recording for --blame costs the threads of the machine: added CPU time for a wake-up and for a system
# call, with the events alone (plain), with programs in the kernel as well (bpf), and with trace-cmd
# recording the same events into buffers of the same size; against nothing. And memory for each CPU.
#
#   bench/blame-cost.sh [ROUNDS]      default 9; needs root, tracefs, cc; trace-cmd for the comparison
#
#   CPU=1 TRIPS=20000 CALLS=200000    where, how many round trips and calls
#   TAILBOUND=target/dist/tailbound   the program
#
# Ways are taken in turn, so that a slow spell of the machine meets all; the figure of each is its minimum,
# because a disturbance only ever adds. `bpf` watches the threads that are measured (the dearest case),
# `bpf-foreign` another process: what it costs those that nobody asked about. `bpf-stacks` takes a
# stack of every wait above 10 us.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-9}
cpu=${CPU:-1}
trips=${TRIPS:-20000}
calls=${CALLS:-200000}
tailbound=${TAILBOUND:-${CARGO_TARGET_DIR:-target}/dist/tailbound}
tracing=/sys/kernel/tracing

[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root" >&2; exit 3; }
[ -d "$tracing/instances" ] || { echo "skipped: no tracefs at $tracing" >&2; exit 3; }
[ -x "$tailbound" ] || { echo "error: no $tailbound; set TAILBOUND=" >&2; exit 2; }

dir=$(mktemp -d)
recorder=
pinger=
instance=$tracing/instances/tailbound-bench
cleanup() {
    for pid in $recorder $pinger; do kill -INT "$pid" 2>/dev/null || true; done
    [ -n "$recorder" ] && wait "$recorder" 2>/dev/null || true
    rmdir "$instance" 2>/dev/null || true
    rm -rf "$dir"
}
trap cleanup EXIT
cc -O2 -pthread -o "$dir/ping" bench/blame-cost.c

# The events that --blame records, of those this kernel has.
events=()
while read -r event; do
    [ -d "$tracing/events/${event/://}" ] && events+=(-e "$event")
done < <(sed -n '/pub const WANTED/,/^];/s/.*("\([a-z_]*\)", "\([a-z_0-9]*\)").*/\1:\2/p' \
    crates/explain/tailbound-trace/src/event.rs)

# Waits until an instance of this name pattern records.
armed() {
    for _ in $(seq 1800); do
        # Before it records, tailbound measures one event: then the others are off.
        for on in "$tracing"/instances/$1; do
            [ "$(cat "$on/tracing_on" 2>/dev/null)$(cat "$on/events/sched/sched_switch/enable" 2>/dev/null)" = 11 ] && return 0
        done
        sleep 0.05
    done
    echo "error: $1 does not record" >&2
    return 1
}

# Buffers as large as tailbound's.
memory_kib=$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)
buffer_kib=$((memory_kib / 32 / $(nproc)))
[ "$buffer_kib" -lt 256 ] && buffer_kib=256
[ "$buffer_kib" -gt 4096 ] && buffer_kib=4096

ways=(off plain bpf bpf-foreign bpf-stacks)
command -v trace-cmd >/dev/null && ways+=(trace-cmd)

one() {
    local way=$1 pid line
    coproc PING { exec "$dir/ping" "$cpu" "$trips" "$calls"; }
    pinger=$PING_PID
    local out=${PING[0]} in=${PING[1]}
    read -r pid <&"$out"
    recorder=
    case $way in
    off) ;;
    trace-cmd)
        mkdir -p "$instance"
        taskset -c 0 bench/trace-cmd.sh tailbound-bench record -B tailbound-bench -C mono -b "$buffer_kib" \
            "${events[@]}" -o "$dir/trace.dat" sleep 600 >"$dir/out" 2>&1 &
        recorder=$!
        armed tailbound-bench || { cat "$dir/out" >&2; return 1; }
        sleep 0.5
        ;;
    *)
        local target=$pid words=(--all --above 10s)
        [ "$way" = plain ] && words+=(--plain)
        [ "$way" = bpf-foreign ] && target=$$
        [ "$way" = bpf-stacks ] && words=(--all --keep 10)
        taskset -c 0 "$tailbound" blame "$target" "${words[@]}" -D 600s --json >"$dir/out" 2>"$dir/err" &
        recorder=$!
        armed "tailbound-$recorder-*" || { cat "$dir/err" >&2; return 1; }
        # Programs come last: five, each with its place, and three maps.
        if [ "$way" != plain ]; then
            for _ in $(seq 200); do
                [ "$(readlink /proc/$recorder/fd/* 2>/dev/null | grep -c bpf)" -ge 9 ] && break
                sleep 0.05
            done
        fi
        sleep 0.7
        ;;
    esac
    echo go >&"$in"
    read -r line <&"$out"
    wait "$pinger" || true
    pinger=
    if [ -n "$recorder" ]; then
        if [ "$way" = trace-cmd ]; then
            # It ends with the command that it waits for.
            pkill -P "$recorder" -x sleep || kill -INT "$recorder" || true
        else
            kill -INT "$recorder"
        fi
        wait "$recorder" || true
        recorder=
        [ "$way" = trace-cmd ] && { rmdir "$instance" 2>/dev/null || true; }
    fi
    echo "$way $line" >>"$dir/figures"
}

for round in $(seq "$rounds"); do
    for way in "${ways[@]}"; do one "$way"; done
    echo "round $round of $rounds" >&2
done

awk '
    { n = $1; if (!(n in trip) || $2 < trip[n]) trip[n] = $2; if (!(n in call) || $3 < call[n]) call[n] = $3
      if (!(n in seen)) { seen[n] = 1; order[++k] = n } }
    END {
        printf "%-12s %14s %14s %14s %12s\n", "way", "round trip ns", "a wake-up +ns", "a call ns", "a call +ns"
        for (i = 1; i <= k; i++) { n = order[i]
            printf "%-12s %14.0f %14.0f %14.1f %12.1f\n", n, trip[n], (trip[n] - trip["off"]) / 2, call[n], call[n] - call["off"] }
        if ("trace-cmd" in trip) {
            base = trip["trace-cmd"] - trip["off"]
            printf "added time against trace-cmd with the same events: plain %.2f, bpf %.2f, bpf-foreign %.2f\n",
                (trip["plain"] - trip["off"]) / base, (trip["bpf"] - trip["off"]) / base, (trip["bpf-foreign"] - trip["off"]) / base } }
' "$dir/figures"

echo "memory: $buffer_kib KiB of the kernel's ring for each CPU, up to 4096 KiB for each CPU of pages kept;"
echo "        with programs 1.4 MiB for the whole machine (512 threads, ring of 256 KiB)"
