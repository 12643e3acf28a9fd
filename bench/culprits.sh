#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Plants known culprits one by one, has `tailbound run --blame` (or `watch`, or `interruptions`) name them, and prints the
# confusion table.
#
#   bench/culprits.sh host [CULPRIT…]     on this machine, as root, on its last CPU
#   bench/culprits.sh lab [CULPRIT…]      in the lab: Debian's stock and PREEMPT_RT kernels, virtual time
#   bench/culprits.sh guest [CULPRIT…]    in a guest in real time: what virtual time cannot have
#
# PROGRAM is the program (default: target/release/tailbound, else target/debug/tailbound), OUT a folder for the run
# files (default: a temporary one), LAB_KERNELS the lab's kernels, LAB_OLD_KERNELS those before the fair server, LAB_DURATION
# how long a run of the lab measures, in virtual time (default 300ms), GUEST_KERNEL the image that `guest` boots (default: the
# lab's debian:6.12, once fetched).
# A sample counts as named right when its largest foreign part has the planted cause and, where a name is planted, that
# name. "Left open" is an unexplained part that has the planted name as one of two. Samples whose largest part is
# another program's are not of the planted culprit: on a host others work too, in the lab there are none.
# The table is on standard output as Markdown, all else on standard error.
set -eu

ground=${1:-}
[ $# -gt 0 ] && shift
case $ground in host | lab | guest) ;; *)
    sed -n '3,20s/^# \{0,1\}//p' "$0" >&2
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
LAB_OLD_KERNELS=${LAB_OLD_KERNELS:-debian:6.1 debian:6.1-rt}

# name | load | limit (lab,host) | cause(s), / between | names in `who`, & between all of them, ; between those of which one will do | where | how | more options of `lab run`
# where: l lab, h host, g guest, o the lab's old kernels. how: run; watch (a thread of the load's own); sent (interrupts of other CPUs).
plants() {
    cat <<'PLANTS'
higher-priority|culprit:kind=higher-priority|300us|higher-priority|load/0|lh|run|
fair-server|culprit:kind=fair-server,interval=2s|5ms,20ms|fair-server|load/0|lh|run|-D 4500ms
rt-throttling|culprit:kind=fair-server,interval=2s|5ms|rt-throttling|load/0|o|run|-D 4500ms
rt-throttling, CPU idle|culprit:kind=higher-priority,priority=1,busy=990ms,interval=1100ms|5ms|rt-throttling||o|run|-D 4500ms
long-call|culprit:kind=long-call|300us|not-preemptible|load/0|lh|run|
kworker|culprit:kind=kworker|100us,300us|workqueue|flush_to_ldisc|lh|run|
softirq|culprit:kind=softirq|300us|softirq|NET_RX|lh|run|
interrupts-off|culprit:kind=interrupts-off|300us|interrupts-off|load/0|lh|run|
lock-spin|culprit:kind=lock-spin|300us|lock-spin|load/1|h|run|
timers|timers:timers=200|60us|timer-interrupt|timerfd_tmrproc|h|run|
console|culprit:kind=task-list|300us|console|load/0|l|run|-D 1500ms
inversion|culprit:kind=inversion|500us|priority-inversion|load/2&behind load/1|lh|watch|
inversion, inherited|culprit:kind=inversion-pi|100us|blocked|load/2|lh|watch|
page-faults|culprit:kind=page-faults|500us|page-fault|load/1|lh|watch|
barriers|interrupts:kind=ipi|0us|ipi/membarrier_private_expedited|ipi_mb (membarrier)&from load/|hg|sent|
unmapped pages|tlb:size=2M|0us|ipi/on_each_cpu_cond_mask|flush_tlb_func (TLB flush)&from load/|hg|sent|
nmi|culprit:kind=nmi,interval=50ms|200us|nmi|nmi_cpu_backtrace_handler|g|run|
stalled|cpu:cpus=0|15ms|host||g|stalled|
hotplug|culprit:kind=hotplug,cpus=1|50us|stop-machine/workqueue/ipi/not-preemptible/interrupts-off|migration/;work_for_cpu_fn;check_tsc_sync;load/0|l|run|--smp 2 --cpus 0 -D 1500ms
nobody|none|12us|kernel-path/own/tracing||l|run|
PLANTS
}

say() { printf '%s\n' "$*" >&2; }

ns() { # 300us
    case $1 in
    *us) echo "${1%us}000" ;;
    *ms) echo "${1%ms}000000" ;;
    esac
}

on_host() { # name, load, limit, how, file
    case $4 in
    run)
        duration=6s
        [ "$1" = fair-server ] && duration=12s
        "$PROGRAM" run --quiet --force -D "$duration" --warm-up 500ms -a "$cpu" -i 1ms --blame="$3" --load "$2" -o "$5"
        ;;
    watch)
        "$PROGRAM" watch --quiet --force --comm load/0 --keep 1000 -o "$5" -- \
            "$PROGRAM" load --quiet "$2,cpus=$cpu" --duration 6s
        ;;
    sent)
        "$PROGRAM" load --quiet "$2" --duration 5s >/dev/null &
        sleep 1
        "$PROGRAM" interruptions -c "$cpu" -D 3s --json >"$5" 2>/dev/null
        wait
        ;;
    esac
}

in_lab() { # kernel, load, limit, how, file, more
    more=$6
    # shellcheck disable=SC2086 # several words
    case $4 in
    run)
        case $more in *-D*) ;; *) more="-D ${LAB_DURATION:-300ms} $more" ;; esac
        "$PROGRAM" lab run --quiet --force -k "$1" -i 1ms --blame="$3" -L "$2" -o "$5" $more
        ;;
    watch)
        "$PROGRAM" lab run --quiet --force -k "$1" -L none --tester-file /run/watched.jsonl -o "$5" --tester \
            "/tailbound watch --quiet --comm load/0 --keep 1000 -D 3s -o /run/watched.jsonl -- /tailbound load $2 --duration 2500ms"
        ;;
    esac
}

in_guest() { # name, load, limit, how, file
    folder=$5.guest
    image=${GUEST_KERNEL:-}
    if [ -z "$image" ]; then
        for image in "${TAILBOUND_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/tailbound/lab}"/kernels/*/boot/vmlinuz-6.12*[0-9]-amd64; do
            [ -e "$image" ] && break
        done
    fi
    every=10ms
    [ "$1" = nmi ] && every=1ms
    measure="tailbound run --quiet --yes -i $every --warm-up 100ms --blame=$3 -L $2 -o /run/out/named.jsonl"
    case $1,$4 in
    stalled,*) script="echo begin >/dev/ttyS1; $measure -D 20s; echo end >/dev/ttyS1" more="--stop-ms 20 --smp 2" ;;
    # Counted instructions, CPUs in turn: what is later than this waited for QEMU's other CPU too.
    nmi,*) script="$measure -D 15s -a 1 -L cpu:cpus=1" more="--smp 2 --icount" most_ns=500000 ;;
    *,sent)
        more="--smp 2"
        # A guest without an accelerator is slow to begin.
        script="tailbound load $2 --duration 1min & load=\$!; sleep 5; tailbound irqs -c 1 -D 2s --json >/run/out/named.jsonl; kill \$load; wait"
        ;;
    esac
    mkdir -p "$folder"
    printf '%s\n' "$script" >"$folder/script"
    # shellcheck disable=SC2086 # several words
    set -- --kernel "$image" --script "$folder/script" --out "$folder" --program "tailbound=$PROGRAM" $more
    # QEMU now and then breaks a guest of two CPUs whose code is being patched: then once more.
    "$here/bench/guest.py" "$@" || "$here/bench/guest.py" "$@"
    cp "$folder/named.jsonl" "$file"
}

one() { # kernel, name, load, limit, cause, who, how, more
    end=jsonl
    [ "$7" = sent ] && end=json
    file=$OUT/$(printf '%s-%s-%s' "$ground" "$1" "$2" | tr ':/ ,' '----').$end
    log=$file.log
    say "planting $2 ($1)"
    rm -f "$file"
    most_ns=0
    case $ground in
    host) on_host "$2" "$3" "$4" "$7" "$file" >"$log" 2>&1 || true ;;
    lab) in_lab "$1" "$3" "$4" "$7" "$file" "$8" >"$log" 2>&1 || true ;;
    guest) in_guest "$2" "$3" "$4" "$7" "$file" >"$log" 2>&1 || true ;;
    esac
    if [ -s "$file" ]; then
        "$here/bench/culprits-tally.py" "$file" "$2" "$ground" "$1" "$5" "$6" "$(ns "$4")" "$most_ns"
    else
        say "  no run file: $(tail -n 1 "$log")"
        printf '| %s | %s | - | - | - | - | not planted | %s |\n' "$2" "$1" "$(tail -n 1 "$log" | cut -c1-120 | tr '|' '/')"
    fi
}

case $ground in host) kernels=$(uname -r) ;; lab) kernels=$LAB_KERNELS ;; guest) kernels=guest ;; esac
echo "| planted | kernel | samples of it | named right | of these sure | left open, with its name | named with another cause | samples of other programs |"
echo "|---|---|---|---|---|---|---|---|"
plants | while IFS='|' read -r name load above cause who where how more; do
    if [ $# -gt 0 ]; then
        wanted=no
        for w in "$@"; do [ "$w" = "$name" ] && wanted=yes; done
        [ $wanted = yes ] || continue
    fi
    # Two limits: the lab's, and that of a host on which others work too.
    if [ "$ground" = host ]; then above=${above#*,}; else above=${above%,*}; fi
    these=
    case $ground$where in host*h* | lab*l* | guest*g*) these=$kernels ;; labo) these=$LAB_OLD_KERNELS ;; esac
    for kernel in $these; do
        one "$kernel" "$name" "$load" "$above" "$cause" "$who" "$how" "$more" </dev/null
    done
done
say "run files: $OUT"
