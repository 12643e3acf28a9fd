#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Plants known culprits one by one, has `tailbound run --blame` name them, and prints the confusion table.
#
#   bench/culprits.sh host [CULPRIT…]     on this machine, as root, on its last CPU
#   bench/culprits.sh lab [CULPRIT…]      in the lab: Debian's stock and PREEMPT_RT kernels, virtual time
#
# PROGRAM is the program (default: target/release/tailbound, else target/debug/tailbound), OUT a folder for the run
# files (default: a temporary one), LAB_KERNELS the lab's kernels, LAB_DURATION how long a run of the lab measures, in
# virtual time (default 300ms).
# A sample counts as named right when its largest foreign part has the planted cause and, where a name is planted, that
# name. "Left open" is an unexplained part that has the planted name as one of two. Samples whose largest part is
# another program's are not of the planted culprit: on a host others work too, in the lab there are none.
# The table is on standard output as Markdown, all else on standard error.
set -eu

ground=${1:-}
[ $# -gt 0 ] && shift
case $ground in host | lab) ;; *)
    sed -n '3,15s/^# \{0,1\}//p' "$0" >&2
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
ORDINARY = ("kernel-path", "own", "tracing")
right = sure = both = 0
confused, others = collections.Counter(), collections.Counter()
for line in open(path, encoding="utf-8"):
    if not line.startswith('{"type":"blame"'):
        continue
    parts = json.loads(line)["parts"]
    sums, longest = collections.Counter(), {}
    for p in parts:
        key = (p["cause"], p.get("who", ""))
        sums[key] += p["ns"]
        if p["ns"] > longest.get(key, (-1, ""))[0]:
            longest[key] = (p["ns"], p.get("sureness", "sure"))
    foreign = {k: v for k, v in sums.items() if k[0] not in ORDINARY}
    own = sum(v for k, v in sums.items() if k[0] in ORDINARY)
    pick = max(foreign, key=foreign.get) if foreign else None
    if pick is None or foreign[pick] * 4 < own:
        pick = max(sums, key=sums.get)
    cause, named = pick
    how = longest[pick][1]
    if cause in causes.split("/") and who in named:
        right += 1
        sure += how == "sure"
    elif cause == "unexplained" and who and who in named:
        both += 1
    elif who and who in named or "load/" in named or ground == "lab":
        confused[(cause, how)] += 1
    else:
        # Another program's, or nobody's: what it did at that moment is not known here.
        others[(cause, how)] += 1

def cell(counts):
    return ", ".join(f"{n} {c}" + ("" if h == "sure" else f" ({h})") for (c, h), n in counts.most_common()) or "-"

planted = right + both + sum(confused.values())
share = f" ({100 * right / planted:.0f} %)" if planted else ""
print(f"| {plant} | {kernel} | {planted} | {right}{share} | {sure} | {both} | {cell(confused)} | {cell(others)} |")
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
        printf '| %s | %s | - | - | - | - | not planted | %s |\n' "$2" "$1" "$(tail -n 1 "$log" | cut -c1-120 | tr '|' '/')"
    fi
}

if [ "$ground" = host ]; then kernels=$(uname -r); else kernels=$LAB_KERNELS; fi
echo "| planted | kernel | samples of it | named right | of these sure | left open, with its name | named with another cause | samples of other programs |"
echo "|---|---|---|---|---|---|---|---|"
plants | while IFS='|' read -r name load above cause who more rt; do
    if [ $# -gt 0 ]; then
        wanted=no
        for w in "$@"; do [ "$w" = "$name" ] && wanted=yes; done
        [ $wanted = yes ] || continue
    fi
    if [ "$ground" = lab ] && [ "$more" = - ]; then continue; fi
    # The lab's serial line takes no time, and tracing takes most of an interrupt there.
    if [ "$ground" = lab ] && { [ "$name" = console ] || [ "$name" = timers ]; }; then continue; fi
    if [ "$ground" = host ] && { [ "$name" = hotplug ] || [ "$name" = console ] || [ "$name" = nobody ]; }; then continue; fi
    # Two limits: the lab's, and that of a host on which others work too.
    if [ "$ground" = host ]; then above=${above#*,}; else above=${above%,*}; fi
    for kernel in $kernels; do
        one "$kernel" "$name" "$load" "$above" "$cause" "$who" "$more" </dev/null
    done
done
say "run files: $OUT"
