#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs tailbound on a device of LAVA with the options given, and makes each case of the run one of LAVA's.
#
#   tailbound.sh OPTIONS OF `tailbound run`
#
# The case `tailbound` is the run itself: pass, met; fail, not met, or it could not be made (no program, no real-time
# priority, no tracer that was asked for); unknown, undecided. Nothing that is missing passes.
#
# Without LAVA's helper `lava-test-case` (KernelCI and others that read a console): the same as KTAP on standard output, in
# which undecided is `not ok`, and exit status 1 unless the run passed.
set -u
run=tailbound.tailbound.jsonl

lava=yes
command -v lava-test-case >/dev/null || lava=

# The run could not be made: $1 says why.
not_made() {
    echo "$1" >&2
    if [ -n "$lava" ]; then
        lava-test-case tailbound --result fail
        exit 0
    fi
    printf 'KTAP version 1\n1..1\nnot ok 1 tailbound: %s\n' "$1"
    exit 1
}

command -v tailbound >/dev/null || not_made "there is no tailbound on this device"

status=0
answer=$(tailbound run --quiet --brief --force --out "$run" "$@") || status=$?
echo "$answer" >&2
case $status in
0) result=pass ;;
1) result=fail ;;
5) result=unknown ;;
# A run that was not made has no cases, and those of an earlier one are not its.
*) not_made "not measured, exit status $status of tailbound" ;;
esac
# Without a deadline nothing is judged, and 0 is no pass.
case $answer in
outcome=met*) ;;
*) [ "$result" != pass ] || result=unknown ;;
esac

if [ -z "$lava" ]; then
    tailbound export "$run" --as ktap || not_made "the run file cannot be read again"
    [ "$result" = pass ]
    exit
fi

lava-test-case tailbound --result "$result"

# The largest latency as a figure, where there is one: `max=3.311ms`.
max=$(echo "$answer" | tr ' ' '\n' | sed -n 's/^max=\([0-9.]*\)\([a-zµ]*\)$/\1 \2/p')
if [ -n "$max" ]; then
    lava-test-case latest --result "$result" --measurement "${max% *}" --units "${max#* }"
fi

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
