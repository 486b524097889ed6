#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh VENV MRROPE SCORE_TOKENS MODEL TEXT: transformers_test.py in a Python that has the packages it needs:
# $MRROPE_PYTHON, or a virtual environment that is filled from PyPI the first time (about 100 s where
# torch comes without CUDA). Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$1
shift

packages="torch==2.6.0 transformers==5.22.2 gguf==0.19.0 safetensors numpy"
probe='import torch, transformers, gguf, safetensors, numpy'

skip() {
  printf '%s\n' "" "########################################################################" \
    "SKIPPED: exports were NOT tried in transformers: $1" \
    "To run this test: python3 -m venv V && V/bin/pip install $packages" \
    "and then MRROPE_PYTHON=V/bin/python ctest -R export_transformers" \
    "########################################################################" "" >&2
  exit 77
}

python=${MRROPE_PYTHON:-$venv/bin/python}
if ! "$python" -c "$probe" 2>/dev/null; then
  [ -z "${MRROPE_PYTHON:-}" ] || skip "MRROPE_PYTHON lacks a package"
  # Elsewhere PyPI's torch brings gigabytes of CUDA: too much for a test.
  case "$(uname -sm)" in
    "Linux aarch64" | "Darwin arm64") ;;
    *) skip "no Python with the packages, and they are installed automatically only on arm64" ;;
  esac
  rm -rf "$venv"
  python3 -m venv "$venv" || skip "python3 -m venv failed"
  log="$venv/install.log"
  "$venv/bin/python" -m pip install --disable-pip-version-check --quiet $packages >"$log" 2>&1 ||
    skip "pip failed: $(tail -n 1 "$log")"
  "$python" -c "$probe" || skip "the installed packages do not import"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/mrrope-transformers-XXXXXX")
trap 'rm -rf "$work"' EXIT
MRROPE_PYTHON=$python HF_HUB_OFFLINE=1 "$python" "$here/transformers_test.py" "$@" "$work"
