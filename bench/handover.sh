#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Hand-overs beside the rt-tests programs that measure the same, in turn, so that a slow spell of
# the machine meets both: mean latency, and CPU time for one hand-over.
#
#   bench/handover.sh [ROUNDS]            default 5; needs root, rt-tests and python3
#
#   CPU=1 INTERVAL_US=1000 SECONDS_EACH=8    where, how often, how long
#   TAILBOUND=target/dist/tailbound       the program
#   PAIRS="pmqtest svsematest"               which of them
#
# Both sides hand over between two threads on one CPU, every millisecond. The rt-tests programs hand
# over twice a cycle: the receiver wakes, tells its sender, and only then the one that is timed goes
# the other way, over code that has just run. So does tailbound in "ours" (--rehearse yes); "cold"
# is the first hand-over after the sleep alone, which is what a machine's own programs meet.
# What is not alike: rt-tests runs both threads at fifo:80, so the sender goes on until it sleeps;
# tailbound's sender is at fifo:79, so each hand-over preempts (two switches each instead of
# one). signaltest has no interval: two threads signal in a ring as fast as
# they can and pause 10 ms now and then; its first thread, whose figures leave the pause out, is set
# beside a round trip.
#   latency   mean, ns, of what the receiver saw (of the round trip for signaltest)
#   cpu       ns of CPU time of the real-time threads for one timed hand-over, over the middle of
#             the run: the kernel's part and the wake-up from idle included
#   helpers   the same of all other threads (supervisor, watchdog; main thread of rt-tests)
#   switches  context switches of all threads for one timed hand-over
# The table has the median of the rounds, and of the ratio to the peer of the same round.
# Absolute figures belong to this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
cpu=${CPU:-1}
interval_us=${INTERVAL_US:-1000}
seconds=${SECONDS_EACH:-8}
tailbound=${TAILBOUND:-${CARGO_TARGET_DIR:-target}/dist/tailbound}
priority=80

[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root for SCHED_FIFO" >&2; exit 3; }
[ -d "/sys/devices/system/cpu/cpu$cpu" ] || { echo "error: no CPU $cpu; set CPU=" >&2; exit 2; }
command -v python3 >/dev/null || { echo "skipped: no python3" >&2; exit 3; }

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

# The probe that does a peer's work.
probe_of() {
    case $1 in
    signaltest | sigwaittest) echo signal ;;
    ptsematest) echo futex ;;
    svsematest) echo sysv-semaphore ;;
    pmqtest) echo mqueue ;;
    esac
}

# The command line of SIDE for the work of PEER, into the array `words`.
command_of() {
    local side=$1 peer=$2
    case $side in
    peer)
        case $peer in
        signaltest) words=(signaltest "-a$cpu" -t2 "-p$priority" -q "-D$seconds") ;;
        svsematest) words=(svsematest "-a$cpu" -t1 "-p$priority" "-i$interval_us" "-D$seconds") ;;
        *) words=("$peer" "-a$cpu" -t1 "-p$priority" "-i$interval_us" -q "-D$seconds") ;;
        esac
        words+=("--json=$dir/peer.json")
        ;;
    *)
        words=("$tailbound" measure "$(probe_of "$peer")" --where same --cpus "$cpu"
            --interval "${interval_us}us" --duration "${seconds}s" --policy "fifo:$priority"
            --quiet --force --json --out "$dir/run.tailbound.jsonl")
        if [ "$peer" = signaltest ]; then words+=(--round-trip yes); fi
        if [ "$side" = ours ]; then words+=(--rehearse yes); fi
        ;;
    esac
}

# Of a process and its children so far: ns of CPU time of the real-time threads, of all others, and
# context switches.
used() {
    python3 - "$1" <<'PY'
import glob, sys
processes, threads = [sys.argv[1]], []
for process in processes:
    for task in glob.glob(f"/proc/{process}/task/[0-9]*"):
        try:
            run = int(open(task + "/schedstat").read().split()[0])
            # Field 40 of stat is rt_priority; 99 are watchdogs.
            priority = int(open(task + "/stat").read().rsplit(")", 1)[1].split()[37])
            switches = sum(int(l.split()[1]) for l in open(task + "/status") if "ctxt_switches" in l)
            processes += open(task + "/children").read().split()
        except OSError:
            continue
        threads.append((0 < priority < 99, run, switches))
print(sum(r for rt, r, _ in threads if rt), sum(r for rt, r, _ in threads if not rt), sum(t[2] for t in threads))
PY
}

# Runs SIDE of PEER once and appends `ROUND PEER SIDE METRIC VALUE` lines.
measure() {
    local round=$1 peer=$2 side=$3 pid begin end span
    command_of "$side" "$peer"
    "${words[@]}" >"$dir/out" 2>"$dir/err" &
    child=$!
    pid=$child
    sleep 2
    begin=$(used "$pid"); span=$(date +%s%N)
    sleep $((seconds - 4))
    end=$(used "$pid"); span=$(($(date +%s%N) - span))
    wait "$pid" || true
    child=
    python3 - "$dir" "$peer" "$side" "$begin" "$end" "$span" "$interval_us" "$seconds" <<'PY' |
import json, sys
dir, peer, side, begin, end, span, interval_us, seconds = sys.argv[1:]
if side == "peer":
    threads = json.load(open(dir + "/peer.json"))["thread"]
    one = threads["0"]
    mean = (one["receiver"] if "receiver" in one else one)["avg"] * 1000
    made = one["cycles"] if "cycles" in one else one["sender"]["samples"]
    a_second = made / float(seconds)
else:
    run = json.load(open(dir + "/out"))
    context = "round-trip" if peer == "signaltest" else "user"
    mean = next(t for t in run["threads"] if t["context"] == context)["wakeup"]["mean_ns"]
    a_second = 1e6 / float(interval_us)
print("latency", mean)
made = int(span) / 1e9 * a_second
for name, before, after in zip(("cpu", "helpers", "switches"), begin.split(), end.split()):
    print(name, (int(after) - int(before)) / made)
PY
        sed "s/^/$round $peer $side /" >>"$dir/figures"
}

: >"$dir/figures"
peers=()
for peer in ${PAIRS:-signaltest sigwaittest ptsematest svsematest pmqtest}; do
    if command -v "$peer" >/dev/null; then peers+=("$peer"); else echo "skipped: no $peer" >&2; fi
done
for round in $(seq "$rounds"); do
    for peer in "${peers[@]}"; do
        echo "round $round of $rounds: $peer" >&2
        for side in peer ours cold; do measure "$round" "$peer" "$side"; done
    done
done

echo "kernel $(uname -r), CPU $cpu, every $interval_us us, fifo:$priority, $rounds rounds of $seconds s"
python3 - "$dir/figures" <<'PY'
import statistics, sys
rows = [line.split() for line in open(sys.argv[1])]
value = {(r, p, s, m): float(v) for r, p, s, m, v in rows}
peers = list(dict.fromkeys(r[1] for r in rows))
print(f"{'peer':<12}{'figure':<9}{'peer':>9}{'ours':>9}{'cold':>9}   ours / peer: min median max   cold / peer")
def three(peer, metric, side):
    ratios = [v / value[r, peer, "peer", metric] for (r, p, s, m), v in value.items()
              if (p, s, m) == (peer, side, metric) and value.get((r, peer, "peer", metric))]
    if not ratios:
        return "-".rjust(16)
    return f"{min(ratios):.2f} {statistics.median(ratios):.2f} {max(ratios):.2f}".rjust(16)
for peer in peers:
    for metric in ("latency", "cpu", "helpers", "switches"):
        of = lambda side: [v for (r, p, s, m), v in value.items() if (p, s, m) == (peer, side, metric)]
        mid = [statistics.median(of(side)) if of(side) else float("nan") for side in ("peer", "ours", "cold")]
        digits = 2 if metric == "switches" else 0
        shown = "  not the same work" if peer == "signaltest" and metric != "latency" else (
            three(peer, metric, "ours") + "   " + three(peer, metric, "cold"))
        print(f"{peer:<12}{metric:<9}" + "".join(f"{m:>9.{digits}f}" for m in mid) + "   " + shown)
PY
