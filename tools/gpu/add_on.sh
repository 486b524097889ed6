#!/usr/bin/env bash
# add_on.sh TOOLS WORK MODEL: after build.sh and wheel.sh have filled WORK, builds mrrope-cuda, adds it to the fresh
# environment of wheel.sh, and compares it on the first GPU with the --cuda build: the same tables, and seconds in
# alternation. See README.md in this folder.
set -euo pipefail
usage="usage: add_on.sh TOOLS WORK MODEL"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$(cd "${1:?$usage}" && pwd) work=$(cd "${2:?$usage}" && pwd) model=${3:?$usage}
pip=$(echo "$tools"/pip-*.whl)/pip
cuda=$(dirname "$(dirname "$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc)")")
export LD_LIBRARY_PATH=$work/debs/usr/lib/x86_64-linux-gnu:$cuda/lib64
export CMAKE_ARGS="-DMRROPE_LLAMA_SOURCE=$work/llama.cpp -DCMAKE_PREFIX_PATH=$work/debs/usr
  -DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu -DCMAKE_CUDA_ARCHITECTURES=${CUDA_ARCH:-90}"
add_on=$("$root/tools/make_wheel.sh" "$work/wheel" cuda)
echo "$SECONDS s  $(basename "$add_on"): $(stat -c %s "$add_on") bytes"
"$work/wheel/fresh/venv/bin/python" "$pip" install -q --no-index --no-deps --force-reinstall "$add_on" # cuBLAS: of the toolkit
cd "$work/wheel"
status=0
for method in pro elastic:pro auto; do
  for _ in 1 2 3; do
    for command in "$work/build/bin/mrrope" fresh/venv/bin/mrrope; do
      started=$(date +%s%N)
      "$command" eval ppl "$model" --method "$method" --ctx 16k --lengths 4k,16k --kl-positions 0 --device CUDA0 \
        >"table-$(basename "$(dirname "$(dirname "$command")")")" 2>errors || { cat errors; exit 1; }
      echo "$command $(($(date +%s%N) - started))"
    done
  done >"times.txt"
  awk -v method="$method" '!($1 in best) || $2 < best[$1] { best[$1] = $2 }
    END { r = best["'"$work/build/bin/mrrope"'"] / best["fresh/venv/bin/mrrope"]
          print method ": " r " of the speed"; exit !(r >= 0.97) }' times.txt || status=1
  diff table-build table-venv || status=1
done
exit $status
