#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Probes of the scheduler beside their ancestors, run in turn so that a slow spell of the
# machine meets both.
#
#   bench/scheduling.sh [ROUNDS]             default 5; needs root
#
#   TAILBOUND=target/dist/tailbound       the program
#   SECONDS_EACH=5                           how long each runs
#   CPU=1                                    where pi runs
#
# For each round and pair, and at the end the median of each column:
#   pi        one group on one CPU: inversions a second while it runs, and CPU time of the whole
#             process for one inversion. pi_stress runs its groups as fast as it can and reports
#             their number at the end; ours runs at the interval at which it just keeps its
#             schedule, with a hold and a spin of 1 us, so that only the mechanism is left.
#   migrate   start delay of the N most urgent of N+1 tasks: the median and the greatest;
#             rt-migrate-test prints the greatest only, for 20 ms of work every 100 ms.
# Absolute figures belong to this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
seconds=${SECONDS_EACH:-5}
cpu=${CPU:-1}
tailbound=${TAILBOUND:-${CARGO_TARGET_DIR:-target}/dist/tailbound}

[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root for SCHED_FIFO" >&2; exit 3; }
[ -x "$tailbound" ] || { echo "error: no $tailbound: build it, or set TAILBOUND=" >&2; exit 2; }
command -v python3 >/dev/null || { echo "skipped: needs python3 for the figures" >&2; exit 3; }

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# CPU seconds (user and system) that a command and its children used, to $dir/cpu.
timed() {
    python3 - "$dir/cpu" "$@" <<'PY'
import resource, subprocess, sys
out, command = sys.argv[1], sys.argv[2:]
with open(out + ".out", "w") as said:
    subprocess.run(command, stdout=said, stderr=subprocess.STDOUT)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
open(out, "w").write(str(used.ru_utime + used.ru_stime))
PY
}

# Figure NAME of a run file, or the maximum latency of the judged threads.
figure() {
    python3 - "$1" "$2" <<'PY'
import json, sys
path, name = sys.argv[1:]
lines = [json.loads(l) for l in open(path)]
if name == "max_us":
    print(max(l["wakeup"]["max_ns"] for l in lines if l["type"] == "thread" and l["context"] == "user" and l["wakeup"]["max_ns"] is not None) / 1000)
else:
    print(next(l["value"] for l in lines if l["type"] == "figure" and l["name"] == name))
PY
}

row() { printf '%-10s %-16s %14s %16s\n' "$@" | tee -a "$dir/rows"; }

row what program rate_per_s cpu_us_per_event
for _ in $(seq "$rounds"); do
    file=$dir/run.jsonl
    timed taskset -c "$cpu" "$tailbound" measure pi -a "$cpu" -D "${seconds}s" --warm-up 100ms \
        -i 100us --hold 1us --spin 1us --control 0 -q --force -o "$file"
    n=$(figure "$file" inversions)
    row pi tailbound "$(python3 -c "print(round($n/$seconds))")" \
        "$(python3 -c "print(round($(cat "$dir/cpu")/$n*1e6,1))")"
    if command -v pi_stress >/dev/null; then
        timed taskset -c "$cpu" pi_stress --groups=1 --uniprocessor --quiet --duration="$seconds"
        n=$(grep -oiE 'total inversion performed: *[0-9]+' "$dir/cpu.out" | grep -oE '[0-9]+$' || echo 0)
        if [ "${n:-0}" -gt 0 ]; then
            row pi pi_stress "$(python3 -c "print(round($n/$seconds))")" \
                "$(python3 -c "print(round($(cat "$dir/cpu")/$n*1e6,1))")"
        else
            echo "skipped: pi_stress told no number of inversions: $(tail -1 "$dir/cpu.out")" >&2
        fi
    fi
    "$tailbound" measure rt-migrate -D "${seconds}s" -i 100ms --busy 20ms --warm-up 100ms -q --force -o "$file" >/dev/null || true
    echo "migrate: greatest start delay, tailbound: $(figure "$file" max_us) us"
    if command -v rt-migrate-test >/dev/null; then
        loops=$((seconds * 10))
        rt-migrate-test -l "$loops" -c 2>&1 | tail -12 | sed 's/^/migrate: rt-migrate-test: /' || true
    fi
done
python3 - "$dir/rows" <<'PY'
import statistics, sys
rows = {}
for line in open(sys.argv[1]):
    what, program, rate, cpu = line.split()
    if what != "what":
        rows.setdefault((what, program), []).append((rate, float(cpu)))
print("\nmedians")
for (what, program), values in rows.items():
    rates = [float(r) for r, _ in values if r != "-"]
    rate = statistics.median(rates) if rates else "-"
    print(f"{what:<10} {program:<16} {rate:>14} {statistics.median(c for _, c in values):>16.1f}")
PY
