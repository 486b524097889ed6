#!/usr/bin/env bash
# wheel.sh TOOLS WORK: builds the wheel after build.sh has filled WORK, and tries it in a fresh environment. TOOLS has
# the wheels of the tools; see README.md in this folder.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$(cd "${1:?usage: wheel.sh TOOLS WORK}" && pwd) work=$(cd "${2:?usage: wheel.sh TOOLS WORK}" && pwd)
took() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
pip=$(echo "$tools"/pip-*.whl)/pip
rm -rf "$work/wheel" "$root/build/wheel_venv" && mkdir -p "$work/wheel/fresh"
python3 -m venv --without-pip "$root/build/wheel_venv"
"$root/build/wheel_venv/bin/python" "$pip" install -q --no-index --no-deps "$tools"/*.whl
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$tools LD_LIBRARY_PATH=$work/debs/usr/lib/$(uname -m)-linux-gnu
export CMAKE_ARGS="-DMRROPE_LLAMA_SOURCE=$work/llama.cpp -DCMAKE_PREFIX_PATH=$work/debs/usr
  -DCMAKE_LIBRARY_ARCHITECTURE=$(uname -m)-linux-gnu"
wheel=$("$root/tools/make_wheel.sh" "$work/wheel")
took "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"
cd "$work/wheel/fresh"
python3 -m venv --without-pip venv
venv/bin/python "$pip" install -q "$wheel"
cp "$root/tests/python/module_test.py" .
bare() { env -i HOME="$PWD" PATH="$PWD/venv/bin" LANG=C.UTF-8 "$@"; }
bare python -c 'import mrrope, sys; print("python", sys.version.split()[0], "mrrope", mrrope.__version__)'
bare mrrope --version
bare python module_test.py
took "module tests"
bare mrrope demo
took "demo"
