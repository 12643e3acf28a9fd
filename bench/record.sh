#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What recording one wake-up costs: runs the example of tailbound-rt, release build.
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${CARGO:-cargo}" run --quiet --profile dist -p tailbound-rt --example record_cost
