#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Plants known culprits one by one, has `tailbound run --blame` name them, and prints the confusion table.
#
#   bench/culprits.sh host [CULPRIT…]     on this machine, as root, on its last CPU
#   bench/culprits.sh lab [CULPRIT…]      in the lab: Debian's stock and PREEMPT_RT kernels, virtual time
#
# LAB_DURATION is how long a run of the lab measures, in virtual time (default 300ms). PROGRAM is the program (default: target/release/tailbound, else target/debug/tailbound), OUT a folder for the
# run files (default: a temporary one). LAB_KERNELS are the lab's kernels with the columns they stand in.
# A sample counts as named right when its largest foreign part has the planted cause and, where a name is
# planted, that name; "left open, with the name" is an unexplained part that names it as one of two. The table is on standard output as Markdown, all else on standard error.
set -eu

ground=${1:-}
[ $# -gt 0 ] && shift
case $ground in host | lab) ;; *)
    sed -n '3,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
here=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${PROGRAM:-}" ]; then
    PROGRAM=$here/target/release/tailbound
    [ -x "$PROGRAM" ] || PROGRAM=$here/target/debug/tailbound
fi
OUT=${OUT:-$(mktemp -d)}
mkdir -p "$OUT"
cpu=$(($(getconf _NPROCESSORS_ONLN) - 1))
LAB_KERNELS=${LAB_KERNELS:-debian:6.12 debian:6.12-rt}

# name | load | limit of --blame | cause(s), / between | name in `who` | more options of `lab run`; -: not there
# On PREEMPT_RT kernels those marked `rt` must still be there; of the others nothing may be late.
plants() {
    cat <<'PLANTS'
higher-priority|culprit:kind=higher-priority|300us|higher-priority|load/0||rt
fair-server|culprit:kind=fair-server,interval=2s|5ms|fair-server|load/0|-D 4500ms|rt
long-call|culprit:kind=long-call|300us|not-preemptible|load/0||
kworker|culprit:kind=kworker|100us,300us|workqueue|flush_to_ldisc||
softirq|culprit:kind=softirq|300us|softirq|NET_RX||
interrupts-off|culprit:kind=interrupts-off|300us|interrupts-off|load/0||
lock-spin|culprit:kind=lock-spin|300us|lock-spin|load/1|-|
timers|timers:timers=200|60us|timer-interrupt|timerfd_tmrproc||
console|culprit:kind=console|1ms|console||--append loglevel=5|
hotplug|culprit:kind=hotplug,cpus=1|50us|stop-machine|migration|--smp 2 --cpus 0|rt
nobody|none|12us|kernel-path/thread|||rt
PLANTS
}

# The blame lines of a run file, tallied: right, right and sure, others by cause and sureness.
tally() {
    python3 - "$@" <<'PYTHON'
import collections, json, sys
path, plant, ground, kernel, causes, who = sys.argv[1:7]
right = sure = total = both = 0
wrong_sure = 0
others = collections.Counter()
for line in open(path, encoding="utf-8"):
    if not line.startswith('{"type":"blame"'):
        continue
    r = json.loads(line)
    r = r.get("blame", r)
    sums, least = collections.Counter(), {}
    order = {"sure": 0, "likely": 1, "unsure": 2}
    for p in r["parts"]:
        key = (p["cause"], p.get("who", ""))
        sums[key] += p["ns"]
        longest = least.get(key, (-1, ""))
        if p["ns"] > longest[0]:
            least[key] = (p["ns"], p.get("sureness", "sure"))
    ordinary = ("kernel-path", "own", "tracing")
    foreign = {k: v for k, v in sums.items() if k[0] not in ordinary}
    own = sum(v for k, v in sums.items() if k[0] in ordinary)
    pick = max(foreign, key=foreign.get) if foreign else None
    if pick is None or foreign[pick] * 4 < own:
        pick = max(sums, key=sums.get)
    total += 1
    how = least[pick][1]
    if pick[0] in causes.split("/") and who in pick[1]:
        right += 1
        sure += how == "sure"
    elif pick[0] == "unexplained" and who and who in pick[1]:
        both += 1
    else:
        others[(pick[0], how)] += 1
        # What nothing explains claims nothing.
        wrong_sure += how == "sure" and pick[0] != "unexplained"
cell = ", ".join(f"{n} {c}" + ("" if h == "sure" else f" ({h})") for (c, h), n in others.most_common())
share = f"{100 * right / total:.0f} %" if total else "-"
print(f"| {plant} | {kernel} | {total} | {right} ({share}) | {sure} | {both} | {wrong_sure} | {cell or '-'} |")
PYTHON
}

say() { printf '%s\n' "$*" >&2; }

one() { # kernel, plant, load, above, cause, who, more, extra words before
    file=$OUT/$(printf '%s-%s' "$1" "$2" | tr ':/ ' '---').jsonl
    log=$file.log
    say "planting $2 ($1)"
    if [ "$ground" = host ]; then
        duration=6s
        [ "$2" = fair-server ] && duration=12s
        set -- "$1" "$2" "$3" "$4" "$5" "$6"
        "$PROGRAM" run --quiet --force -D "$duration" --warm-up 500ms -a "$cpu" -i 1ms --blame="$4" \
            --load "$3" -o "$file" >"$log" 2>&1 || true
    else
        more=${7:-}
        case $more in *-D*) ;; *) more="-D ${LAB_DURATION:-300ms} $more" ;; esac
        # shellcheck disable=SC2086 # several words
        "$PROGRAM" lab run --quiet --force -k "$1" -i 1ms --blame="$4" -L "$3" -o "$file" $more \
            >"$log" 2>&1 || true
    fi
    if [ -s "$file" ]; then
        tally "$file" "$2" "$ground" "$1" "$5" "$6"
    else
        say "  no run file: $(tail -n 1 "$log")"
        printf '| %s | %s | - | not planted | - | - | - | %s |\n' "$2" "$1" "$(tail -n 1 "$log" | cut -c1-120 | tr '|' '/')"
    fi
}

if [ "$ground" = host ]; then kernels=$(uname -r); else kernels=$LAB_KERNELS; fi
echo "| planted | kernel | samples | named right | of these sure | left open, with the name | wrong and sure | the others |"
echo "|---|---|---|---|---|---|---|---|"
plants | while IFS='|' read -r name load above cause who more rt; do
    if [ $# -gt 0 ]; then
        wanted=no
        for w in "$@"; do [ "$w" = "$name" ] && wanted=yes; done
        [ $wanted = yes ] || continue
    fi
    if [ "$ground" = lab ] && [ "$more" = - ]; then continue; fi
    if [ "$ground" = host ] && { [ "$name" = hotplug ] || [ "$name" = console ] || [ "$name" = nobody ]; }; then continue; fi
    # Two limits: the lab's, and that of a host on which others work too.
    if [ "$ground" = host ]; then above=${above#*,}; else above=${above%,*}; fi
    for kernel in $kernels; do
        one "$kernel" "$name" "$load" "$above" "$cause" "$who" "$more" </dev/null
    done
done
say "run files: $OUT"
