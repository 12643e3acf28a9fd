#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# How fast the server of a farm answers beside a stream of uploads, where every series became worse (a kernel update of the whole farm).
#
#   bench/farm.sh [SYSTEMS [DAYS [SECONDS [A_SECOND]]]]       default 600 417 60 200: 250,200 runs, 2.5 GB, some ten minutes
#
#   STORE=            where the store is made; default a folder that is removed afterwards. One that is there is used as it is
#   RUN=              the run file that all are drawn around; default a run of 10 s, made first
#   TAILBOUND=        which program makes it
#
# The goals: overview, page of a system with 365 days, regressions and metrics within 300 ms, 99 % of them. The figures of docs/scale.md.
set -euo pipefail
systems=${1:-600} days=${2:-417} seconds=${3:-60} a_second=${4:-200}
target=${CARGO_TARGET_DIR:-target}
tailbound=${TAILBOUND:-$target/dist/tailbound}
cargo build --release --quiet -p tailbound-fleet --examples
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
run=${RUN:-$dir/run.tailbound.jsonl}
if [ -z "${RUN:-}" ]; then
    status=0
    "$tailbound" run -D 10s --load none --quiet --out "$run" --report "$dir/run.html" >/dev/null || status=$?
    [ "$status" = 0 ] || [ "$status" = 5 ] || exit "$status"
fi
store=${STORE:-$dir/farm.sqlite}
if [ ! -e "$store" ]; then
    SIMULATE_WORSE=all "$target/release/examples/simulate" "$store" "$systems" "$days" 1 "$run"
    "$target/release/examples/scale" look "$store"
fi
nproc | sed 's/$/ CPUs; load before it:/' | tr '\n' ' '
cut -d' ' -f1-3 /proc/loadavg
echo "alone:"
"$target/release/examples/scale" pages "$store" 50
echo "beside $a_second uploads a second:"
"$target/release/examples/scale" beside "$store" "$seconds" "$a_second" "$run"
