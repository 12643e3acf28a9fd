#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a long list of samples costs: 432 million of them, 12 hours at 10 kHz, imported, bounded,
# shown and reported, in seconds and peak resident memory; and beside it what people's scripts do.
#
#   bench/large.sh [FORMAT...]        default u32; also text, jitterdebugger; needs python3, GNU time
#
#   SAMPLES=432000000                 1.7 GB as u32, 2.2 GB as text, 12 GB as jitterdebugger
#   TAILBOUND=target/dist/tailbound
#   PYTHON=python3                    the one for the script beside it, which needs numpy; so does
#                                     the making of a jitterdebugger file
#   DIR=                              where the files are made (and removed); default a new one in TMPDIR
#
# The samples are drawn: lognormal about 3 us with rare additions of up to 20 us, and one of up
# to 50 us in a million. What they cost to read does not depend on that.
set -euo pipefail
samples=${SAMPLES:-432000000}
tailbound=${TAILBOUND:-${CARGO_TARGET_DIR:-target}/dist/tailbound}
python=${PYTHON:-python3}
formats=("${@:-u32}")
command -v python3 >/dev/null || { echo "skipped: no python3" >&2; exit 3; }
[ -x /usr/bin/time ] || { echo "skipped: no /usr/bin/time" >&2; exit 3; }
dir=$(mktemp -d "${DIR:-${TMPDIR:-/tmp}}/large.XXXXXX")
trap 'rm -rf "$dir"' EXIT

cat >"$dir/make.py" <<'PY'
import array, random, sys
kind, n, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
random.seed(1)
size = 1 << 20
def draw():
    extra = random.randrange(20_000) if random.random() < 1e-3 else 0
    return int(random.lognormvariate(8, 0.25)) + extra
pool = array.array("I", (draw() for _ in range(size)))
with open(path, "wb") as out:
    if kind == "text":
        out.write(b"# latency_ns\n")
    done = 0
    while done < n:
        at = random.randrange(size)
        part = (pool[at:] + pool[:at])[: min(size, n - done)]
        part[random.randrange(len(part))] = random.randrange(50_000)
        if kind == "u32":
            out.write(part.tobytes())
        elif kind == "text":
            out.write("\n".join(map(str, part)).encode() + b"\n")
        else:
            import numpy as np
            late = np.frombuffer(part, "<u4").astype("<i8")
            wake = 10**12 + (done + np.arange(len(part))) * 100_000 + late
            r = np.zeros(len(part), dtype=[("t", "<u4"), ("s", "<i8"), ("ns", "<i8"), ("v", "<u8")])
            r["s"], r["ns"], r["v"] = wake // 10**9, wake % 10**9, late
            out.write(r.tobytes())
        done += len(part)
PY

cat >"$dir/peer.py" <<'PY'
import sys
import numpy as np
a = np.fromfile(sys.argv[1], dtype="<u4")
print(a.size, a.min(), a.mean(), a.std(), a.max())
print(np.percentile(a, [50, 95, 99, 99.9, 99.99, 99.999]))
print(np.histogram(a, bins=1000)[0].sum())
PY

# One line of the table: WHAT command...
row() {
    local what=$1 status=0
    shift
    /usr/bin/time -f '%e %U %S %M' -o "$dir/time" "$@" >"$dir/out" 2>"$dir/err" || status=$?
    if [ "$status" != 0 ] && [ "$status" != 5 ] && [ "$status" != 1 ]; then
        echo "| $what | failed ($status): $(head -n 1 "$dir/err") | | | |"
        return
    fi
    awk -v what="$what" -v n="$samples" 'END { printf "| %s | %.2f s | %.2f s | %.0f MiB | %.1f ns |\n",
        what, $1, $2 + $3, $4 / 1024, $1 * 1e9 / n }' "$dir/time"
}

echo "# $(uname -sr), $(nproc) CPUs, load averages $(cut -d' ' -f1-3 /proc/loadavg) at the start"
echo "# $samples samples; seconds on the wall, CPU seconds, peak resident memory, wall time a sample"
echo "| what | wall | CPU | peak | a sample |"
echo "|---|---|---|---|---|"
for format in "${formats[@]}"; do
    file=$dir/samples.$format
    case $format in
    u32) words=(--format raw-u32 --interval 100us) maker=python3 ;;
    text) words=(--interval 100us) maker=python3 ;;
    jitterdebugger) words=() maker=$python ;;
    *) echo "unknown format: $format" >&2; exit 2 ;;
    esac
    if [ "$format" = jitterdebugger ] && ! "$python" -c 'import numpy' 2>/dev/null; then
        echo "skipped: a jitterdebugger file is made with numpy, which $python has not" >&2
        continue
    fi
    "$maker" "$dir/make.py" "$format" "$samples" "$file"
    # The second reading finds in the page cache what the first one left there.
    row "$format: cat to nowhere" dd if="$file" of=/dev/null bs=1M
    run=$dir/$format.tailbound.jsonl
    row "$format: import" "$tailbound" import "$file" "${words[@]}" --force --out "$run"
    if "$tailbound" bound --help >/dev/null 2>&1; then
        row "$format: bound, of the run file" "$tailbound" bound "$run"
    fi
    row "$format: show, of the run file" "$tailbound" show "$run"
    row "$format: report, of the run file" "$tailbound" report "$run" --force --out "$dir/report.html"
    echo "# run file $(stat -c %s "$run") bytes, report $(stat -c %s "$dir/report.html") bytes"
    if [ "$format" != u32 ]; then
        :
    elif "$python" -c 'import numpy' 2>/dev/null; then
        row "$format: numpy $("$python" -c 'import numpy; print(numpy.__version__)'), moments, six percentiles, histogram" \
            "$python" "$dir/peer.py" "$file"
    else
        echo "skipped: the script beside it needs numpy, which $python has not (PYTHON= names another)" >&2
    fi
    rm -f "$file"
done
