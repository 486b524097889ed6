#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a bare Debian 12 in a folder, installs the packages there with their dependencies, and uses them.
#   debian.sh DIST       DIST: the folder with the .deb files of ./run package
# Needs root and mmdebstrap; otherwise it is skipped (exit code 77) and says so.
set -euo pipefail
dist=$(cd "${1:?usage: debian.sh DIST}" && pwd)
. "$(dirname "${BASH_SOURCE[0]}")/../skipped.sh"
skip() { skipped "the packages were not installed into a bare Debian 12" "$1"; }
fail() { echo "debian.sh: $*" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || skip "this takes root"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed: apt-get install mmdebstrap"

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
shopt -s nullglob
debs=("$dist"/*.deb)
[ ${#debs[@]} -eq 3 ] || fail "$dist has ${#debs[@]} packages, not 3"
# The machine's own sources if it runs the same Debian, otherwise mmdebstrap's.
sources=()
if grep -qs 'VERSION_CODENAME=bookworm' /etc/os-release && grep -qs '^ID=debian' /etc/os-release; then
  sources=(/etc/apt/sources.list.d/debian.sources)
  [ -e "${sources[0]}" ] || sources=(/etc/apt/sources.list)
fi
if ! mmdebstrap --mode=root --variant=apt --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount \
    "${debs[@]/#/--include=}" --include=g++,pkg-config bookworm "$work/root" "${sources[@]}" \
    >"$work/log" 2>&1; then
  tail -n 20 "$work/log" >&2
  if grep -q 'Failed to fetch\|Temporary failure\|Could not connect' "$work/log"; then
    skip "no Debian mirror can be reached: $(tail -n 1 "$work/log")"
  fi
  fail "the packages do not install"
fi
cp -r "$(dirname "$0")/../golden/tiny_config" "$(dirname "$0")/../../examples/plan.c" "$work/root/tmp"
# The loader finds libraries beside a program by way of /proc.
mount -t proc proc "$work/root/proc" || skip "/proc cannot be mounted"
trap 'umount "$work/root/proc"; rm -rf --one-file-system "$work"' EXIT
inside() { chroot "$work/root" env -i PATH=/usr/bin:/bin HOME=/tmp "$@"; }

inside mrrope --version | tee "$work/version"
grep -q '^processor code: ' "$work/version" || fail "no code was chosen by the processor"
tiny=/usr/share/mrrope/models/mrrope-tiny.gguf
inside mrrope inspect $tiny | grep 1024 >/dev/null || fail "inspect"
inside mrrope plan $tiny --method pro --ctx 4k --json | grep '"attention_scale"' >/dev/null || fail "plan"
inside mrrope generate $tiny --ctx 2k -p 'Let $n$ be' -n 8 >"$work/text" || fail "generate"
[ -s "$work/text" ] || fail "generate printed nothing"
inside sh -c 'cd /tmp && cc -c plan.c -o plan.o $(pkg-config --cflags mrrope) &&
  c++ plan.o -o plan $(pkg-config --libs mrrope) && ./plan' | grep '64 pairs' >/dev/null || fail "the library"
for package in mrrope libmrrope0 libmrrope-dev; do
  [ -s "$work/root/usr/share/doc/$package/copyright" ] || fail "$package has no copyright file"
done
inside dpkg-query -W -f '${Package} ${Version} ${Architecture} ${Installed-Size} KiB\n' \
  mrrope libmrrope0 libmrrope-dev
echo "debian.sh: passed"
