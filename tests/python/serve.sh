#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# serve.sh VENV MRROPE MODEL: serve_test.py in a Python that has the openai
# package: $MRROPE_PYTHON, or a virtual environment that is filled from PyPI the first time (some
# seconds). MRROPE_SERVE_LOAD="REQUESTS SECONDS" makes the load larger. Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$1
shift

skip() {
  printf '%s\n' "" "########################################################################" \
    "SKIPPED: the server was NOT tried with the openai package: $1" \
    "To run this test: python3 -m venv V && V/bin/pip install openai" \
    "and then MRROPE_PYTHON=V/bin/python ctest -R serve_clients" \
    "########################################################################" "" >&2
  exit 77
}

python=${MRROPE_PYTHON:-$venv/bin/python}
if ! "$python" -c 'import openai' 2>/dev/null; then
  [ -z "${MRROPE_PYTHON:-}" ] || skip "MRROPE_PYTHON lacks the openai package"
  rm -rf "$venv"
  python3 -m venv "$venv" || skip "python3 -m venv failed"
  "$venv/bin/python" -m pip install --disable-pip-version-check --quiet openai==3.49.0 \
    >"$venv/install.log" 2>&1 || skip "pip failed: $(tail -n 1 "$venv/install.log")"
fi
# shellcheck disable=SC2086  # two numbers
"$python" "$here/serve_test.py" "$@" ${MRROPE_SERVE_LOAD:-}
