#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What many run files cost: 1,000 of them compared, charted over time and put into one report.
#
#   bench/many.sh [FILES]             default 1000; needs GNU time
#
#   TAILBOUND=target/dist/tailbound
#   RUN=                              a run file to copy; default a real run of 20 s, made first
#
# The files are copies of one real run with an identity and a start time of their own: as long
# to read and to reckon with as different ones, though of course all are found to be the same.
set -euo pipefail
files=${1:-1000}
tailbound=${TAILBOUND:-${CARGO_TARGET_DIR:-target}/dist/tailbound}
[ -x /usr/bin/time ] || { echo "skipped: no /usr/bin/time" >&2; exit 3; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
run=${RUN:-$dir/run.tailbound.jsonl}
if [ -z "${RUN:-}" ]; then
    status=0
    "$tailbound" run -D 20s --load none --quiet --out "$run" --report "$dir/run.html" >/dev/null || status=$?
    [ "$status" = 0 ] || [ "$status" = 5 ] || exit "$status"
fi
mkdir "$dir/many" "$dir/first" "$dir/second"
for i in $(seq "$files"); do
    started=$(date -u -d "2026-01-01 00:00:00 UTC + $i minutes" +%Y-%m-%dT%H:%M:%SZ)
    sed -E "1s/\"id\":\"[^\"]*\"/\"id\":\"copy-$i\"/; 1s/\"started\":\"[^\"]*\"/\"started\":\"$started\"/" \
        "$run" >"$dir/many/$(printf %06d "$i").tailbound.jsonl"
done

row() {
    local what=$1 status=0
    shift
    /usr/bin/time -f '%e %U %S %M' -o "$dir/time" "$@" >"$dir/out" 2>"$dir/err" || status=$?
    if [ "$status" != 0 ] && [ "$status" != 5 ] && [ "$status" != 1 ]; then
        echo "| $what | failed ($status): $(head -n 1 "$dir/err") | | |"
        return
    fi
    awk -v what="$what" 'END { printf "| %s | %.2f s | %.2f s | %.0f MiB |\n", what, $1, $2 + $3, $4 / 1024 }' \
        "$dir/time"
}

echo "# $(uname -sr), $(nproc) CPUs, load averages $(cut -d' ' -f1-3 /proc/loadavg) at the start"
echo "# $files files of $(stat -c %s "$run") bytes"
echo "| what | wall | CPU | peak |"
echo "|---|---|---|---|"
row "cat to nowhere" sh -c 'cat "$1"/* >/dev/null' cat "$dir/many"
row "compare, each with the first" "$tailbound" compare "$dir"/many/*
row "compare --json" "$tailbound" compare --json "$dir"/many/*
for i in "$dir"/many/*; do
    half=first
    [ "$((10#$(basename "$i" .tailbound.jsonl)))" -le "$((files / 2))" ] || half=second
    ln "$i" "$dir/$half/"
done
row "compare, half of them with the other half" "$tailbound" compare "$dir/first" "$dir/second"
if "$tailbound" history --help >/dev/null 2>&1; then
    row "history" "$tailbound" history "$dir"/many/*
    row "history, chart" "$tailbound" history "$dir"/many/* --out "$dir/history.html"
fi
row "report" "$tailbound" report "$dir"/many/* --force --out "$dir/report.html"
echo "# report $(stat -c %s "$dir/report.html") bytes"
