#!/usr/bin/env bash
# wheel.sh TOOLS WORK [PYTHON]: builds the wheel after build.sh has filled WORK, and tries it in a fresh
# environment. TOOLS has the wheels of the tools; see README.md in this folder.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$(cd "${1:?usage: wheel.sh TOOLS WORK [PYTHON]}" && pwd)
work=$(cd "${2:?usage: wheel.sh TOOLS WORK [PYTHON]}" && pwd)
python=${3:-python3}
took() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
rm -rf "$work/wheel" && mkdir -p "$work/wheel"/{tools,raw,fresh}
cd "$work/wheel"
pip=$(ls "$tools"/pip-*.whl)/pip
"$python" "$pip" install --quiet --no-index --no-deps --target tools "$tools"/*.whl
export PYTHONPATH=$work/wheel/tools PATH=$work/wheel/tools/bin:$PATH
export CMAKE_ARGS="-DMRROPE_LLAMA_SOURCE=$work/llama.cpp -DCMAKE_PREFIX_PATH=$work/debs/usr
  -DCMAKE_LIBRARY_ARCHITECTURE=$(uname -m)-linux-gnu" SKBUILD_BUILD_DIR=$work/wheel/build
(cd "$root" && "$python" -c 'import sys, scikit_build_core.build as b; b.build_wheel(sys.argv[1])' \
  "$work/wheel/raw") >log 2>&1 || { tail -n 40 log; exit 1; }
took "built"
LD_LIBRARY_PATH=$work/debs/usr/lib/$(uname -m)-linux-gnu "$python" -m auditwheel repair \
  --wheel-dir "$work/wheel" raw/*.whl >log 2>&1 || { tail -n 40 log; exit 1; }
unset PYTHONPATH
wheel=$(ls mrrope-*.whl)
took "$wheel: $(stat -c %s "$wheel") bytes"
"$python" -m venv --without-pip fresh/venv
fresh/venv/bin/python "$pip" install --quiet --no-index "$wheel"
cp "$root/tests/python/module_test.py" fresh
cd fresh
bare() { env -i HOME="$PWD" PATH="$PWD/venv/bin" LANG=C.UTF-8 "$@"; }
bare python -c 'import mrrope, sys; print("python", sys.version.split()[0], "mrrope", mrrope.__version__)'
bare mrrope --version
bare python module_test.py
took "module tests"
bare mrrope demo
took "demo"
