#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debian_13.sh PACKAGES COMMAND...: makes a Debian 13 with these packages, separated by spaces, in a temporary folder, and
# runs COMMAND there. It finds this tree and llama.cpp's where they are outside, to read; HOME is /tmp.
# That takes root, mmdebstrap and a Debian mirror. Exit code 77: it could not be made; the standard error says why.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
packages=${1:?usage: debian_13.sh PACKAGES COMMAND...}
cannot() { echo "no Debian 13: $*" >&2; exit 77; }
[ "$(id -u)" -eq 0 ] || cannot "this takes root"
command -v mmdebstrap >/dev/null || cannot "mmdebstrap is not installed: apt-get install mmdebstrap"
llama=$("$root/tools/fetch_llama.sh")
work=$(mktemp -d)
system=$work/root
trap 'umount "$system"/{proc/cpuinfo,proc,"$root","$llama"} 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
mmdebstrap --mode=root --variant=apt --include="$(echo $packages | tr ' ' ,)" trixie "$system" >"$work/log" 2>&1 ||
  cannot "$(tail -n 1 "$work/log")"
mount -t proc proc "$system/proc"
# LLVM knows a processor by its model, and uses all that the model has, also what a virtual machine hides (SVE).
grep -v '^CPU part' /proc/cpuinfo >"$work/cpuinfo"
mount --bind "$work/cpuinfo" "$system/proc/cpuinfo"
for folder in "$root" "$llama"; do
  mkdir -p "$system$folder"
  mount --bind -o ro "$folder" "$system$folder"
done
chroot "$system" env -i HOME=/tmp LANG=C.UTF-8 PATH=/usr/bin:/bin MRROPE_LLAMA_SOURCE="$llama" "${@:2}"
