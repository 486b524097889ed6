#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lavapipe.sh COMMAND...: runs it where Mesa's software device works. LLVM knows a processor's instructions by its name; in
# a virtual machine that hides SVE its code would end the process, so it sees the name of one without.
set -euo pipefail
if [ "$(uname -m)" != aarch64 ] || grep -qw sve /proc/cpuinfo; then exec "$@"; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export MESA_SHADER_CACHE_DIR=$work # without the code of the other name
sed 's/^\(CPU part.*: \).*/\10xd0c/' /proc/cpuinfo >"$work/cpuinfo" # Neoverse N1
unshare --map-root-user --mount bash -c 'mount --bind "$0" /proc/cpuinfo && exec "$@"' "$work/cpuinfo" "$@"
