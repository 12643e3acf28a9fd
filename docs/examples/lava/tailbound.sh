#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs tailbound on a device of LAVA with the options given, and makes each case of the run one of LAVA's.
#
#   tailbound.sh OPTIONS OF `tailbound run`
#
# The case `tailbound` is the run itself: pass, met; fail, not met, or it could not be made (no program, no real-time
# priority, no tracer that was asked for); unknown, undecided. Nothing that is missing passes.
set -u
run=tailbound.tailbound.jsonl

if ! command -v tailbound >/dev/null; then
    echo "there is no tailbound on this device" >&2
    lava-test-case tailbound --result fail
    exit 0
fi

status=0
answer=$(tailbound run --quiet --brief --force --out "$run" "$@") || status=$?
echo "$answer"
case $status in
0) result=pass ;;
5) result=unknown ;;
*) result=fail ;;
esac
# Without a deadline nothing is judged, and 0 is no pass.
case $answer in
outcome=met*) ;;
*) [ "$result" != pass ] || result=unknown ;;
esac
lava-test-case tailbound --result "$result"

# The largest latency as a figure, where there is one: `max=3.311ms`.
max=$(echo "$answer" | tr ' ' '\n' | sed -n 's/^max=\([0-9.]*\)\([a-zµ]*\)$/\1 \2/p')
if [ -n "$max" ]; then
    lava-test-case latest --result "$result" --measurement "${max% *}" --units "${max#* }"
fi

# A run that was not made has no cases, and those of an earlier one are not its.
case $status in
0 | 1 | 5) ;;
*) exit 0 ;;
esac
tailbound export "$run" --as ktap | while IFS= read -r line; do
    case $line in
    "ok "*" # SKIP"*) result=skip ;;
    "ok "*) result=pass ;;
    "not ok "*) result=fail ;;
    *) continue ;;
    esac
    # `not ok 2 cyclic: CPU 0 within 200 us`: a name of LAVA's has no space.
    name=$(echo "$line" | sed -e 's/^not //' -e 's/^ok [0-9]* //' -e 's/ # SKIP.*//' | tr -cs 'A-Za-z0-9._\n' '-')
    lava-test-case "$name" --result "$result"
done
exit 0
