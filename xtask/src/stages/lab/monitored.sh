#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest of `monitored.rs`: a CPU goes and comes back, the machine sleeps, the clock is set; beside a monitor, once for each way to count.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tracefs tracefs /sys/kernel/tracing
ifconfig lo 127.0.0.1 up
cd /tmp || poweroff -f
cpu1=/sys/devices/system/cpu/cpu1/online
alarm=/sys/class/rtc/rtc0/wakealarm

metrics() {
    wget -q -O - http://127.0.0.1:9732/metrics | grep '^tailbound_monitor_'
}

# A thread of fifo:95 that wakes a thousand times a second on CPU 1, until a window has counted it (as `measures` of monitored.rs): one run may
# be too few on a slow guest. What a run said that failed is kept.
measure() {
    from=$(wc -l < m.jsonl)
    tries=0
    until tail -n +$((from + 1)) m.jsonl | grep -q '"policy":"fifo:95","cpu":1,"n":[0-9]\{3,\}'; do
        [ $tries -lt 8 ] || return
        tries=$((tries + 1))
        tailbound run -D 3s --cpus 1 -L none --force -o run.jsonl > ran 2>&1 || { echo "run: status $?"; cat ran; }
        next
    done
}

count() {
    grep -c '"type":"window"' m.jsonl
}

# Until one more window ended: by what is there, not by time, as the guest may be slow.
next() {
    have=$(count)
    while [ "$(count)" -le "$have" ] && kill -0 $monitor; do sleep 1; done
}

way() {
    echo "== $1"
    shift
    touch m.jsonl
    # shellcheck disable=SC2086
    tailbound monitor $* --probe 1 --every 3s --out m.jsonl --listen 127.0.0.1:9732 2> said &
    monitor=$!
    next
    measure
    echo 0 > $cpu1
    next
    metrics
    next
    echo 1 > $cpu1
    measure
    next
    metrics
    echo 0 > $alarm
    echo +20 > $alarm
    echo mem > /sys/power/state
    next
    next
    date -s '2040-01-01 00:00:00' > /dev/null
    next
    date -s '2026-11-25 00:00:00' > /dev/null
    next
    kill $monitor
    wait $monitor
    echo "ended $?"
    cat said
    grep -v '"type":"late"' m.jsonl
    rm -f m.jsonl
}

@WAYS@
poweroff -f
