#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# short_window.sh FILE: gives a copy of the bundled model a window of 192 tokens, so that its demo is short.
set -euo pipefail
at=$(LC_ALL=C grep -obUa llama.context_length "$1" | head -n 1 | cut -d : -f 1)
printf '\300\0\0\0' | dd of="$1" bs=1 seek=$((at + 24)) conv=notrunc status=none
