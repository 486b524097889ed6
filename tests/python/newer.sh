#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# newer.sh WHEEL: the wheel on a newer system and a newer Python than those it was built with: Debian 13
# with Python 3.13, made in a folder. Needs root, mmdebstrap and a Debian mirror. Exit code 77: skipped.
set -euo pipefail
wheel=${1:?usage: newer.sh WHEEL}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../skipped.sh"
skip() { skipped "the wheel was NOT tried with Debian 13 and Python 3.13" "$1"; }
[ "$(id -u)" -eq 0 ] || skip "this takes root"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed: apt-get install mmdebstrap"
work=$(mktemp -d)
trap 'umount "$work/root/proc" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
mmdebstrap --mode=root --variant=apt --include=python3-venv trixie "$work/root" \
  >"$work/log" 2>&1 || skip "Debian 13 could not be made: $(tail -n 1 "$work/log")"
cp "$wheel" "$here/module_test.py" "$work/root/tmp"
mount -t proc proc "$work/root/proc" # without it no program finds the libraries next to it
inside() {
  chroot "$work/root" env -i HOME=/tmp LANG=C.UTF-8 PATH=/tmp/venv/bin:/usr/bin:/bin "$@"
}
inside python3 -m venv /tmp/venv
inside pip install --quiet --no-index "/tmp/$(basename "$wheel")"
inside python3 -c '
import sys, mrrope
assert sys.version_info >= (3, 13) and sys.prefix in mrrope.__file__
print("python", sys.version.split()[0], "mrrope", mrrope.__version__)'
inside mrrope --version
inside python3 /tmp/module_test.py
