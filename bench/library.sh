#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a cycle costs with libtailbound: bench/library.c, linked with the release library.
#
#   bench/library.sh [BUILD_DIR]    default: target/dist, built if need be
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
    build=$1
else
    cargo build --profile dist --quiet -p tailbound-capi
    build=${CARGO_TARGET_DIR:-target}/dist
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PREFIX="$dir" scripts/install-lib "$build" >/dev/null
${CC:-cc} -O2 -Wall -Wextra -Werror -std=c11 -I"$dir/include" -o "$dir/library" bench/library.c \
    "$dir/lib/libtailbound.a" -pthread -ldl -lm -lgcc_s -lutil -lrt
echo "$(uname -m), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), load $(cut -d' ' -f1 /proc/loadavg)"
"$dir/library"
