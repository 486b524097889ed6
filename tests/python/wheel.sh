#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wheel.sh SOURCE [PYTHON...]: builds the wheel and installs it into fresh virtual environments, far
# from the source tree, where the command and the module must run without a network, a compiler or
# anything of this build; and on Debian 13 (newer.sh). Then pip installs this tree, and the sdist is made.
# With MRROPE_TEST_LONG the whole demo runs instead of its short form, and pip installs the sdist with no file of
# this tree. Exit code 77: skipped.
set -euo pipefail
source=$(cd "$1" && pwd)
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/mrrope-wheel-XXXXXX")
trap 'rm -rf "$work"' EXIT
. "$source/tests/skipped.sh"
skip() { skipped "the wheel was not tried" "$1"; }
[ "$(uname -s)" = Linux ] || skip "auditwheel is for Linux"
export CC=${CC:-cc} CXX=${CXX:-c++}  # as in the other builds, so that ccache knows the files
wheel=$("$source/tools/make_wheel.sh" "$source/build/wheels")
echo "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"
case $(basename "$wheel") in
  mrrope-*-py3-none-manylinux_2_*_"$(uname -m)".whl) ;;
  *) echo "unexpected name"; exit 1 ;;
esac
[ "$(stat -c %s "$wheel")" -lt $((55 << 20)) ] || { echo "larger than 55 MiB"; exit 1; }
cmake -D ROOT="$source" -D BUILD="$source/build/wheel" -D COMPILER=c++ -P "$source/tests/build/amx_test.cmake"
for python in "${@:-python3}"; do
  "$python" -c '' 2>/dev/null || { echo "no $python here"; continue; }
  rm -rf "$work/venv" "$work/long.gguf"
  "$python" -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$wheel"
  (
    cd "$work"
    bare() { env -i HOME="$work" PATH="$work/venv/bin" LANG=C.UTF-8 "$@"; }
    # The source tree must not be needed: the bundled model is found next to the command.
    bare python -c '
import mrrope, pathlib, sys
model = pathlib.Path(mrrope.bundled_model())
assert sys.prefix in str(model) and sys.prefix in mrrope.__file__, model
assert mrrope.inspect(model)["geometry"]["train_length"] == 1024
assert mrrope.plan(model, "pro", ctx="4k").factor[-1] == 4
print("python", sys.version.split()[0], "mrrope", mrrope.__version__)'
    bare mrrope --version
    "$source/tests/install/devices.sh" "$(bare python -c 'import mrrope, os; print(os.path.dirname(mrrope.__file__))')"
    bare python -c 'import mrrope; print(mrrope.bundled_model())' >model
    said=$(bare mrrope eval ppl "$(cat model)" --methods none,elastic:pro --ctx 2k --lengths 1k,2k \
      --samples 1 --kl-positions 0 --json)
    bare python -c '
import json, sys
rows = {(r["method"], r["length"]): r["value"] for r in json.loads(sys.argv[1])["results"]
        if r["metric"] == "perplexity"}
print(rows)
assert rows["none", 2048] > 2 * rows["elastic:pro", 2048], rows' "$said"
    bare mrrope export "$(cat model)" --method pro --ctx 2k -o long.gguf | tail -n 2
    cp "$source/tests/python/module_test.py" .
    bare python module_test.py
    if [ -n "${MRROPE_TEST_LONG:-}" ]; then
      bare mrrope demo
    else
      cp -r "$(dirname "$(cat model)")/.." home
      "$source/tests/install/short_window.sh" home/models/mrrope-tiny.gguf
      bare MRROPE_HOME="$work/home" mrrope demo
      rm -rf home
    fi
  )
done
# As in a clone: the same build again, by pip.
python3 -m venv "$work/clone"
"$work/clone/bin/pip" install --quiet --disable-pip-version-check "$source" >"$work/log" 2>&1 ||
  { tail -n 40 "$work/log"; exit 1; }
(
  cd "$work"
  env -i HOME="$work" PATH="$work/clone/bin" LANG=C.UTF-8 python module_test.py
)
echo "installed from a clone"
"$source/build/wheel_venv/bin/python" -m build --sdist --outdir "$work" "$source" >"$work/log" 2>&1 ||
  { tail "$work/log"; exit 1; }
tar tzf "$work"/mrrope-*.tar.gz | sed 's,^[^/]*/,,' >"$work/names"
"$source/tests/python/newer.sh" "$wheel" || [ $? -eq 77 ]
for name in CMakeLists.txt pyproject.toml LICENSE models/mrrope-tiny.gguf python/mrrope/__init__.py \
  tools/fetch_llama.sh src/capi/capi.cpp cmake/mrrope_c.map; do
  grep -qx "$name" "$work/names" || { echo "the sdist lacks $name"; exit 1; }
done
if [ -n "${MRROPE_TEST_LONG:-}" ]; then  # compiles everything once more
  python3 -m venv "$work/sdist"
  "$work/sdist/bin/pip" install --quiet --disable-pip-version-check "$work"/mrrope-*.tar.gz \
    >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
  (
    cd "$work"
    env -i HOME="$work" PATH="$work/sdist/bin" LANG=C.UTF-8 python module_test.py
  )
  echo "installed from the sdist"
fi
echo ok
