#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# inspect.sh VENV MRROPE TOOLS_MODELS: inspect_test.py in a Python that has the gguf package:
# $MRROPE_PYTHON, or a virtual environment that is filled from PyPI the first time (some seconds).
# Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$1
shift

skip() {
  printf '%s\n' "" "########################################################################" \
    "SKIPPED: inspect was NOT compared with the gguf package: $1" \
    "To run this test: python3 -m venv V && V/bin/pip install gguf==0.19.0" \
    "and then MRROPE_PYTHON=V/bin/python ctest -R inspect_gguf" \
    "########################################################################" "" >&2
  exit 77
}

python=${MRROPE_PYTHON:-$venv/bin/python}
if ! "$python" -c 'import gguf' 2>/dev/null; then
  [ -z "${MRROPE_PYTHON:-}" ] || skip "MRROPE_PYTHON lacks the gguf package"
  rm -rf "$venv"
  python3 -m venv "$venv" || skip "python3 -m venv failed"
  "$venv/bin/python" -m pip install --disable-pip-version-check --quiet gguf==0.19.0 \
    >"$venv/install.log" 2>&1 || skip "pip failed: $(tail -n 1 "$venv/install.log")"
fi
"$python" "$here/inspect_test.py" "$@"
