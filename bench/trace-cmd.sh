#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs trace-cmd also where a kernel refuses that the settings of its function tracer are written.
#
#   bench/trace-cmd.sh INSTANCE WORD…     INSTANCE: the trace instance of `-B`, or / for the top one
#
# trace-cmd writes back what it read from ftrace_enabled, set_ftrace_filter, set_ftrace_notrace and set_ftrace_pid, and
# gives up where it may not. Here it finds files of its own in their places, in a mount namespace that
# nobody else sees. An instance must be there before it. Needs root and tracefs.
set -eu
tracing=/sys/kernel/tracing
if [ -z "${TRACE_CMD_OWN:-}" ]; then
    export TRACE_CMD_OWN=1
    exec unshare -m "$0" "$@"
fi
own=$(mktemp -d)
echo 1 >"$own/ftrace_enabled"
mount --bind "$own/ftrace_enabled" /proc/sys/kernel/ftrace_enabled
for folder in $tracing $tracing/instances/$1; do
    for file in set_ftrace_filter set_ftrace_notrace set_ftrace_pid; do
        [ -e "$folder/$file" ] || continue
        : >"$own/$file"
        mount --bind "$own/$file" "$folder/$file"
    done
done
# What is mounted stays.
rm -r "$own"
shift
exec trace-cmd "$@"
