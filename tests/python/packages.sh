# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder: sets `python` to one that has the packages a test needs, or
# ends the script with exit code 77 (skipped).
#
#   need_packages TEST WHAT VENV IMPORTS PACKAGE...
#
# TEST: its name in ctest. WHAT: what goes untested without them. IMPORTS: the modules, with commas.
# Python is $MRROPE_PYTHON, or the virtual environment VENV, filled from PyPI the first time.

# IMPORTS and PACKAGES of the tests with transformers.
with_transformers=(torch,transformers,gguf,safetensors,numpy,openai
  torch==2.6.0 transformers==5.22.2 gguf==0.19.0 safetensors numpy openai==3.49.0)

. "$(dirname "${BASH_SOURCE[0]}")/../skipped.sh"
skip() {
  skipped "$what" "$1" "To run this test: python3 -m venv V && V/bin/pip install $packages" \
    "and then MRROPE_PYTHON=V/bin/python ctest -R $test"
}

need_packages() {
  test=$1 what=$2
  local venv=$3 imports=$4
  shift 4
  packages=$*
  python=${MRROPE_PYTHON:-$venv/bin/python}
  ! "$python" -c "import $imports" 2>/dev/null || return 0
  [ -z "${MRROPE_PYTHON:-}" ] || skip "MRROPE_PYTHON lacks one of: $imports"
  # On other machines PyPI's torch brings gigabytes of CUDA: too much for a test.
  case "$packages $(uname -sm)" in
    *"Linux aarch64" | *"Darwin arm64") ;;
    *torch*) skip "no Python with the packages, and torch is installed automatically only on arm64" ;;
  esac
  rm -rf "$venv"
  python3 -m venv "$venv" || skip "python3 -m venv failed"
  "$venv/bin/python" -m pip install --disable-pip-version-check --quiet "$@" \
    >"$venv/install.log" 2>&1 || skip "pip failed: $(tail -n 1 "$venv/install.log")"
  "$python" -c "import $imports" || skip "the installed packages do not import"
}
