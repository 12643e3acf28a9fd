#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What measuring costs: tailbound beside cyclictest, jitterdebugger and the least possible loop
# (bench/reference.c), run in turn so that a slow spell of the machine meets all of them.
#
#   bench/cost.sh [ROUNDS]            default 5; needs root, strace and cc
#
#   CPU=1 INTERVAL_US=200 SECONDS_EACH=10    where, how often, how long
#   TAILBOUND=target/dist/tailbound       the program
#   TOOLS="tailbound cyclictest jitterdebugger"   which of them
#
# For each tool and round, over the middle of the run, from /proc/PID/task/*/{schedstat,status}:
#   cpu_ns      CPU time of the measuring thread for one wake-up
#   switches    context switches of the measuring thread for one due activation
#   helpers     wake-ups a second of all its other threads and children
#   rss_kib     resident memory of the process
#   start_ms    from exec to the first clock_nanosleep (strace, that one call only)
# cyclictest and jitterdebugger hold /dev/cpu_dma_latency at 0, which halves the CPU time of a
# wake-up on many machines: this script holds it for all of them (HOLD=no to leave it alone).
# The table has minimum, median and maximum of the figures, and of the ratio to the reference
# loop of the same round. Absolute figures belong to this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
cpu=${CPU:-1}
interval_us=${INTERVAL_US:-200}
seconds=${SECONDS_EACH:-10}
tailbound=${TAILBOUND:-${CARGO_TARGET_DIR:-target}/dist/tailbound}
priority=95

[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root for SCHED_FIFO" >&2; exit 3; }
[ -d "/sys/devices/system/cpu/cpu$cpu" ] || { echo "error: no CPU $cpu; set CPU=" >&2; exit 2; }

if [ "${HOLD:-yes}" = yes ] && [ -w /dev/cpu_dma_latency ]; then
    exec 9>/dev/cpu_dma_latency
    printf '\0\0\0\0' >&9
fi

dir=$(mktemp -d)
child=
cleanup() {
    if [ -n "$child" ]; then kill "$child" 2>/dev/null || true; fi
    rm -rf "$dir"
}
trap cleanup EXIT
cc -O2 -o "$dir/reference" bench/reference.c

tools=(reference)
for tool in ${TOOLS:-tailbound cyclictest jitterdebugger}; do
    case $tool in
    tailbound) program=$tailbound ;;
    *) program=$tool ;;
    esac
    if command -v "$program" >/dev/null; then
        tools+=("$tool")
    else
        echo "skipped: no $program" >&2
    fi
done

# The command line of TOOL for SECONDS, into the array `words`.
command_of() {
    case $1 in
    reference) words=("$dir/reference" "$cpu" "$priority" "$interval_us" "$2") ;;
    tailbound)
        words=("$tailbound" measure cyclic --interval "${interval_us}us" --duration "${2}s"
            --cpus "$cpu" --policy "fifo:$priority" --quiet --force --out "$dir/run.tailbound.jsonl")
        ;;
    cyclictest)
        words=(cyclictest -q -m -t1 "-a$cpu" "-p$priority" "-i$interval_us" "-D$2" -h 1000) ;;
    jitterdebugger)
        words=(jitterdebugger -a "$cpu" -p "$priority" -i "$interval_us" -D "${2}s") ;;
    esac
}

# One line `TID run_ns switches` for the measuring thread (`hot`) and one for each other thread.
sample() {
    local pid status tid run field prio
    for pid in "$1" $(pgrep -P "$1" || true); do
        for status in /proc/"$pid"/task/[0-9]*; do
            tid=${status##*/}
            read -r run _ 2>/dev/null <"$status/schedstat" || continue
            field=$(awk '/ctxt_switches/ { n += $2 } END { print n + 0 }' "$status/status" 2>/dev/null) || continue
            # Field 40 of stat is rt_priority; the name in brackets may hold spaces.
            prio=$(sed 's/.*) //' "$status/stat" 2>/dev/null | cut -d' ' -f38) || continue
            if [ "$prio" = "$priority" ]; then echo "hot $run $field"; else echo "t$tid $run $field"; fi
        done
    done
}

# Runs TOOL once and appends `ROUND TOOL METRIC VALUE` lines.
measure() {
    local round=$1 tool=$2 pid begin end
    command_of "$tool" "$seconds"
    "${words[@]}" >"$dir/out" 2>&1 &
    child=$!
    pid=$child
    # Until the measuring thread is there, and its start-up is over.
    until sample "$pid" | grep -q ^hot; do
        if ! kill -0 "$pid" 2>/dev/null; then
            echo "error: ${words[*]} ended before it measured:" >&2
            cat "$dir/out" >&2
            exit 1
        fi
        sleep 0.1
    done
    sleep 1
    begin=$(date +%s%N); sample "$pid" >"$dir/begin"
    sleep $((seconds - 5))
    end=$(date +%s%N); sample "$pid" >"$dir/end"
    awk -v round="$round" -v tool="$tool" -v span_ns=$((end - begin)) -v interval_us="$interval_us" '
        NR == FNR { run[$1] = $2; switches[$1] = $3; next }
        $1 == "hot" && ("hot" in run) { cpu = $2 - run["hot"]; hot = $3 - switches["hot"] }
        $1 != "hot" { helpers += $3 - switches[$1] }
        END {
            if (!hot) { print "no measuring thread of " tool > "/dev/stderr"; exit 1 }
            print round, tool, "cpu_ns", cpu / hot
            print round, tool, "switches", hot / (span_ns / (interval_us * 1000))
            print round, tool, "helpers", helpers / (span_ns / 1e9)
        }' "$dir/begin" "$dir/end" >>"$dir/figures"
    awk -v round="$round" -v tool="$tool" '/^VmRSS/ { print round, tool, "rss_kib", $2 }' \
        "/proc/$pid/status" >>"$dir/figures"
    wait "$pid" || true
    child=
    command_of "$tool" 2
    strace -f --seccomp-bpf -ttt -e trace=execve,clock_nanosleep -o "$dir/trace" "${words[@]}" \
        >/dev/null 2>&1 || true
    awk -v round="$round" -v tool="$tool" '
        /execve\(/ && !begin { begin = $2 }
        /clock_nanosleep\(/ { print round, tool, "start_ms", ($2 - begin) * 1000; exit }
    ' "$dir/trace" >>"$dir/figures"
}

: >"$dir/figures"
for round in $(seq "$rounds"); do
    for tool in "${tools[@]}"; do
        echo "round $round of $rounds: $tool" >&2
        measure "$round" "$tool"
    done
done

echo "kernel $(uname -r), CPU $cpu, every $interval_us us, fifo:$priority, $rounds rounds of $seconds s"
sort -k3,3 -k2,2 -s "$dir/figures" | awk '
    function at(list, n, i,    parts) { split(list, parts, " "); return parts[i] }
    function sorted(list,    parts, n, i, j, t, out) {
        n = split(list, parts, " ")
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && parts[j] + 0 < parts[j-1] + 0; j--) { t = parts[j]; parts[j] = parts[j-1]; parts[j-1] = t }
        out = parts[1]
        for (i = 2; i <= n; i++) out = out " " parts[i]
        return out
    }
    function three(list, format,    n, parts, s) {
        s = sorted(list); n = split(s, parts, " ")
        return sprintf(format "  " format "  " format, parts[1], parts[int((n + 1) / 2)], parts[n])
    }
    { value[$1, $2, $3] = $4; if (!(($2, $3) in list)) order[++n] = $2 SUBSEP $3
      list[$2, $3] = list[$2, $3] " " $4; rounds[$1] }
    END {
        printf "%-15s %-9s %-32s %s\n", "tool", "figure", "      min    median       max", "times the reference: min median max"
        for (i = 1; i <= n; i++) {
            split(order[i], key, SUBSEP); ratios = ""
            for (r in rounds)
                if (value[r, "reference", key[2]] + 0 > 0 && (r, key[1], key[2]) in value)
                    ratios = ratios " " value[r, key[1], key[2]] / value[r, "reference", key[2]]
            printf "%-15s %-9s %s   %s\n", key[1], key[2], three(list[key[1], key[2]], "%9.2f"),
                ratios == "" ? "-" : three(ratios, "%7.2f")
        }
    }'
