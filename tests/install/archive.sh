#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks `git archive` of the last commit and builds from it where git does not work: a release archive is
# all that is needed.
#   archive.sh ROOT
set -euo pipefail
root=$1
git -C "$root" rev-parse HEAD >/dev/null 2>&1 || {
  echo "SKIPPED: $root is not a git clone, so this is an archive already" >&2
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree" "$work/bin"
git -C "$root" archive HEAD | tar -x -C "$work/tree"
printf '#!/bin/sh\necho "git is not installed" >&2\nexit 127\n' >"$work/bin/git"
chmod +x "$work/bin/git"
export PATH=$work/bin:$PATH
cd "$work/tree"
python3 tests/style/check.py
cmake --preset package >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
ninja -C build/package mrrope_core >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
[ -s build/package/src/libmrrope_core.a ]
echo "archive.sh: passed"
