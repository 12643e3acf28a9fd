#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Run by a unit of a Debian that systemd has booted, without a network: the packages in /srv are installed, each unit does its work in its
# sandbox, ends, and goes with its package. Says `ok: WHAT`, or `failed: WHAT` after what was said.
set -u
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
units="tailbound-monitor tailbound-agent tailbound-tune tailbound-server tailbound tailbound.timer"
store=/var/lib/tailbound-server/farm.sqlite

# What is promised, the unit whose journal says more where it does not hold, and what tries it.
check() {
    what=$1 unit=$2
    shift 2
    if said=$("$@" 2>&1); then
        echo "ok: $what"
    else
        printf '%s\n' "$said"
        journalctl --no-pager --lines=30 --unit="$unit"
        echo "failed: $what"
    fi
}

# Waits for what takes a moment, half a minute at most.
soon() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || { "$@"; return 1; }
        sleep 0.3
    done
}

is_not_running() { [ "$(systemctl is-active "$1")" != active ]; }

install() {
    dpkg --install /srv/*.deb || return 1
    for unit in $units; do
        is_not_running "$unit" || { echo "$unit runs"; return 1; }
    done
}

verified() {
    for unit in /usr/lib/systemd/system/tailbound*; do
        said=$(systemd-analyze verify --man=no "$unit" 2>&1)
        [ -z "$said" ] || { echo "$said"; return 1; }
    done
}

# What is answered on this port of loopback.
answers() { bash -c 'exec 3<>/dev/tcp/127.0.0.1/$0; printf "GET $1 HTTP/1.0\r\n\r\n" >&3; timeout 10 cat <&3' "$1" "$2"; }

metrics() { answers 9732 /metrics | grep tailbound; }

monitor() {
    systemctl enable --now tailbound-monitor && soon metrics && [ -s /var/log/tailbound/monitor.jsonl ] &&
        systemctl reload tailbound-monitor && soon metrics
}

listening() { bash -c 'exec 3<>/dev/tcp/127.0.0.1/8787'; }

server() {
    echo 127.0.0.1 farm.example >>/etc/hosts
    umask 077
    systemctl enable --now tailbound-server && soon listening && [ -s $store ] &&
        tailbound-server serve token add board --role agent --store $store >/etc/tailbound/agent.token
}

# It says whom it asks, and nothing more as long as it is answered.
agent() {
    systemctl enable --now tailbound-agent && sleep 5 && systemctl is-active tailbound-agent &&
        journalctl --output=cat SYSLOG_IDENTIFIER=tailbound --unit tailbound-agent | grep '^agent: asks ' &&
        ! journalctl --output=cat SYSLOG_IDENTIFIER=tailbound --unit tailbound-agent | grep -v '^agent: asks '
}

# As every night, but shorter. Whoever may not raise limits cannot give it real-time priority.
night() {
    policy=fifo:95
    capabilities=$(sed -n 's/^CapEff:\t//p' /proc/1/status)
    [ $((0x$capabilities >> 24 & 1)) = 1 ] || policy=other
    mkdir -p /etc/systemd/system/tailbound.service.d
    printf '[Service]\nExecStart=\nExecStart=/usr/bin/tailbound run --quiet --policy %s -D 2s\n' "$policy" >/etc/systemd/system/tailbound.service.d/short.conf
    systemctl daemon-reload
    systemctl enable --now tailbound.timer && systemctl is-active tailbound.timer || return 1
    systemctl start tailbound.service
    status=$(systemctl show --property=ExecMainStatus --value tailbound.service)
    for file in /var/lib/tailbound-runs/*.tailbound.jsonl; do
        case $status in
        0 | 1 | 5) [ ! -s "$file" ] || [ "$(stat -c %U "$file")" != tailbound ] || return 0 ;;
        esac
    done
    return 1
}

# Its owner has not said what to apply: nothing is.
tune() {
    ! systemctl start tailbound-tune && [ -z "$(ls /run/tailbound/tune /var/lib/tailbound/tune 2>/dev/null)" ]
}

stopped() {
    for unit in tailbound-agent tailbound-monitor tailbound-server tailbound.timer; do
        systemctl stop $unit
        [ "$(systemctl show --property=Result --value $unit)" = success ] || { systemctl status --no-pager $unit; return 1; }
        systemctl start $unit
    done
}

removed() {
    dpkg --remove tailbound tailbound-server || return 1
    for unit in $units; do
        is_not_running "$unit" || { echo "$unit still runs"; return 1; }
    done
    ! grep -s '^tailbound' /proc/[0-9]*/comm
}

purged() {
    dpkg --purge tailbound tailbound-server || return 1
    [ -z "$(ls /etc/systemd/system/*.wants/tailbound* /usr/lib/systemd/system/tailbound* 2>/dev/null)" ] && [ ! -e /var/log/tailbound ] && [ -s /var/lib/private/tailbound-server/farm.sqlite ]
}

check "installing starts nothing" tailbound-monitor install
check "systemd-analyze verify, with the programs there" tailbound-monitor verified
check "the monitor answers with its metrics, also when it was reloaded" tailbound-monitor monitor
check "the server answers by HTTPS and keeps its store" tailbound-server server
check "the agent asks the server" tailbound-agent agent
check "the timer, and a night's run of its user" tailbound night
check "tune refuses without its owner's word" tailbound-tune tune
check "each ends in order and starts again" tailbound-server stopped
check "removing ends what runs" tailbound-server removed
check "purging leaves no unit, and the store" tailbound-server purged
