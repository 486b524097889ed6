#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# transformers.sh VENV MRROPE SCORE_TOKENS MODEL TEXT: transformers_test.py in a Python that has the
# packages it needs (about 100 s to install where torch comes without CUDA, see packages.sh). Exit
# code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/packages.sh"
need_packages export_transformers "exports were NOT tried in transformers" "$1" \
  "${with_transformers[@]}"
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/mrrope-transformers-XXXXXX")
trap 'rm -rf "$work"' EXIT
MRROPE_PYTHON=$python HF_HUB_OFFLINE=1 "$python" "$here/transformers_test.py" "$@" "$work"
