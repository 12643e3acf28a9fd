#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A step of a pipeline: one measurement of this machine against a deadline. GitHub, GitLab and Jenkins run this same script.
#
# It is told by variables (README.md lists them) and leaves in the folder LATENCY_RESULTS:
#   run.tailbound.jsonl  run.html  run.junit.xml  answer.txt  verdict.env (LATENCY_VERDICT, LATENCY_STATUS, LATENCY_LATEST)
# The exit status is tailbound's (0: met). What is missing, unknown or in doubt is never 0.
# POSIX shell; no root, nothing is installed.
set -u
export LC_ALL=C

# A value without white space around it: YAML from Windows ends lines with CR.
trimmed() {
    printf '%s' "$1" | tr -d '\r' | sed -e 's/^[[:blank:]]*//' -e 's/[[:blank:]]*$//'
}

deadline=$(trimmed "${LATENCY_DEADLINE:-}")
duration=$(trimmed "${LATENCY_DURATION:-1m}")
load=$(trimmed "${LATENCY_LOAD:-hackbench,memory}")
policy=$(trimmed "${LATENCY_POLICY:-fifo:95}")
options=$(printf '%s' "${LATENCY_OPTIONS:-}" | tr -d '\r')
program=$(trimmed "${LATENCY_PROGRAM:-}")
package=$(trimmed "${LATENCY_PACKAGE:-}")
sha256=$(trimmed "${LATENCY_SHA256:-}" | tr 'A-F' 'a-f')
version=$(trimmed "${LATENCY_VERSION:-}")
results=$(trimmed "${LATENCY_RESULTS:-latency}")

scratch=
measuring=
cancelled=
latest=
# 3: this machine cannot, until something better is known.
status=3

# For attributes and text of XML.
escaped() {
    printf '%s' "$1" | tr -d '\000-\010\013\014\016-\037' | sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/>/\&gt;/g' -e 's/"/\&quot;/g'
}

# A test report with one error: a dashboard without it shows nothing, which looks like "no failure".
junit_error() {
    {
        echo '<?xml version="1.0" encoding="UTF-8"?>'
        echo '<testsuites><testsuite name="tailbound" tests="1" failures="0" errors="1"><testcase classname="tailbound" name="measurement">'
        printf '<error message="%s"/>\n' "$(escaped "$1")"
        echo '</testcase></testsuite></testsuites>'
    } >"$results/run.junit.xml"
}

verdict_of() {
    case $1 in
    0) echo met ;;
    1) echo not-met ;;
    2) echo usage-error ;;
    3) echo cannot-measure ;;
    4) echo internal-error ;;
    5) echo undecided ;;
    *) echo killed ;;
    esac
}

# Says what became of it, for the system's own variables, and ends.
finish() {
    trap '' INT TERM HUP
    trap - EXIT
    status=$1
    verdict=$(verdict_of "$status")
    if [ -d "$results" ]; then
        printf 'LATENCY_VERDICT=%s\nLATENCY_STATUS=%s\nLATENCY_LATEST=%s\n' "$verdict" "$status" "$latest" >"$results/verdict.env"
    fi
    if [ -n "${GITHUB_OUTPUT:-}" ]; then
        report=''
        run=''
        junit=''
        [ ! -f "$results/run.html" ] || report=$results/run.html
        [ ! -f "$results/run.tailbound.jsonl" ] || run=$results/run.tailbound.jsonl
        [ ! -f "$results/run.junit.xml" ] || junit=$results/run.junit.xml
        printf '%s\n' "verdict=$verdict" "status=$status" "latest=$latest" "report=$report" "run=$run" "junit=$junit" >>"$GITHUB_OUTPUT"
    fi
    if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
        {
            echo "### Latency: $verdict (deadline $deadline, exit status $status)"
            echo
            echo '```text'
            [ ! -f "$results/answer.txt" ] || cat "$results/answer.txt"
            echo '```'
        } >>"$GITHUB_STEP_SUMMARY"
    fi
    [ -z "$scratch" ] || rm -rf "$scratch"
    echo "tailbound: $verdict (exit status $status)"
    exit "$status"
}

# Nothing could be measured: why, and what to do.
refuse() {
    echo "tailbound: $2" >&2
    if [ -d "$results" ]; then
        printf '%s\n' "$2" >"$results/answer.txt"
        junit_error "$2"
    fi
    finish "$1"
}

# A cancelled job: tailbound ends the measurement and writes its files. TERM, as a shell lets its children ignore INT.
# shellcheck disable=SC2317
stop() {
    cancelled=yes
    if [ -n "$measuring" ]; then
        kill -TERM "$measuring" 2>/dev/null
    else
        refuse 5 "the job was cancelled before the measurement"
    fi
}
trap stop INT TERM HUP
trap 'finish 3' EXIT

case $results in
-* | *"
"*) results='' ;;
esac
[ -n "$results" ] || refuse 2 "results must be the name of a folder"
# Results of an earlier job are not this one's: a workspace may be reused.
mkdir -p "$results" || refuse 2 "the folder $results cannot be made: set LATENCY_RESULTS to one that can"
for old in run.tailbound.jsonl run.html run.junit.xml answer.txt verdict.env; do
    rm -f "$results/$old" || refuse 2 "$results/$old is left from an earlier job and cannot be removed"
done

[ "$(uname -s)" = Linux ] || refuse 3 "this is $(uname -s): tailbound measures Linux; choose another runner"
[ -n "$deadline" ] || refuse 2 "no deadline is given: without one nothing is judged; set it, for example to 200us"

# The program: a package whose checksum is right, the one that is named, or the one that is installed.
if [ -n "$package" ]; then
    case $sha256 in
    *[!0-9a-f]* | "") refuse 2 "sha256 must be the 64 hexadecimal digits of the package in the release's SHA256SUMS; it is '$sha256'" ;;
    esac
    [ "${#sha256}" -eq 64 ] || refuse 2 "sha256 has ${#sha256} digits, not 64"
    scratch=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/tailbound.XXXXXX") || refuse 3 "no temporary folder can be made"
    file=$package
    case $package in
    http://* | https://*)
        # Without a query: `…/tailbound.tar.gz?download=1`.
        name=${package%%\?*}
        file=$scratch/${name##*/}
        if command -v curl >/dev/null; then
            curl --fail --silent --show-error --location --output "$file" -- "$package"
        elif command -v wget >/dev/null; then
            wget -q -O "$file" -- "$package"
        else
            refuse 3 "there is neither curl nor wget: give the package as a file"
        fi || refuse 3 "$package could not be fetched"
        ;;
    esac
    [ -f "$file" ] || refuse 2 "there is no package $file"
    command -v sha256sum >/dev/null || refuse 3 "there is no sha256sum, so the package cannot be verified"
    found=$(sha256sum <"$file")
    found=${found%% *}
    [ "$found" = "$sha256" ] || refuse 3 "the package is not the one that was named: its SHA-256 is $found, not $sha256; it is not used"
    case $file in
    *.deb)
        command -v dpkg-deb >/dev/null || refuse 3 "there is no dpkg-deb: give the tarball instead"
        dpkg-deb -x "$file" "$scratch/unpacked" || refuse 3 "$file could not be unpacked"
        ;;
    *.tar.gz)
        mkdir "$scratch/unpacked"
        tar -xzf "$file" -C "$scratch/unpacked" || refuse 3 "$file could not be unpacked"
        ;;
    *) refuse 2 "a package ends with .deb or .tar.gz: $file" ;;
    esac
    program=
    for path in "$scratch/unpacked/usr/bin/tailbound" "$scratch"/unpacked/*/tailbound; do
        [ -n "$program" ] || [ ! -f "$path" ] || program=$path
    done
    [ -n "$program" ] || refuse 3 "there is no tailbound in $file"
elif [ -z "$program" ]; then
    program=$(command -v tailbound) || refuse 3 "there is no tailbound on this machine: install it, or give package and sha256"
fi
told=$("$program" --version 2>&1) || refuse 3 "$program does not start here ($(uname -m)): $told"
told=${told%%
*}
if [ -n "$version" ] && [ "$told" != "tailbound ${version#v}" ]; then
    refuse 3 "$program is '$told', not version ${version#v}"
fi
echo "$told, $program"

# One option a line: what follows its first space is its value, with spaces and all. Nothing is evaluated.
set -- run --quiet --brief --deadline "$deadline" --duration "$duration" --load "$load" --policy "$policy"
while IFS= read -r line; do
    line=$(trimmed "$line")
    case $line in
    "" | "#"*) ;;
    -*" "*) set -- "$@" "${line%% *}" "$(trimmed "${line#* }")" ;;
    -*) set -- "$@" "$line" ;;
    *) refuse 2 "an option begins with '-', one a line: '$line'" ;;
    esac
done <<OPTIONS
$options
OPTIONS
set -- "$@" --out "$results/run.tailbound.jsonl" --report "$results/run.html"

"$program" "$@" >"$results/answer.txt" &
measuring=$!
# `wait` also ends when a signal comes, with a status of its own: then it is waited for again.
while :; do
    wait "$measuring"
    status=$?
    [ -n "$cancelled" ] || break
    cancelled=
done
measuring=
trap '' INT TERM HUP

answer=$(cat "$results/answer.txt")
latest=$(printf '%s\n' "$answer" | tr ' ' '\n' | sed -n 's/^max=\([0-9.]*[a-zµ]*\)$/\1/p')
# A run that judged nothing has not met anything.
case $status:$answer in
0:outcome=met*) ;;
0:*) status=5 ;;
esac
case $status in
0 | 1 | 5)
    # The answer in full, for the log. What is not there, or cannot be read again, is no result.
    [ -s "$results/run.tailbound.jsonl" ] || refuse 3 "$program ended with $status and left no run file"
    "$program" show "$results/run.tailbound.jsonl" || refuse 3 "the run file cannot be read again"
    "$program" export "$results/run.tailbound.jsonl" --as junit --out "$results/run.junit.xml" || refuse 3 "the run file cannot be made a test report"
    [ -s "$results/run.junit.xml" ] || refuse 3 "there is no test report"
    ;;
*)
    junit_error "not measured: tailbound ended with exit status $status ($(verdict_of "$status")); the log says why"
    ;;
esac
finish "$status"
