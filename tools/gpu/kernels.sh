#!/usr/bin/env bash
# Builds the rotation kernels with their GPU test and bench on a machine that has nvcc and g++ and
# nothing else (no Highway, no gtest, no llama.cpp), runs them, and leaves text in OUT:
# test.txt, bench.txt, torch.txt (only a word where torch is missing).
set -euo pipefail
src=$(cd "${1:?usage: kernels.sh SRC WORK OUT}" && pwd)
mkdir -p "${2:?usage: kernels.sh SRC WORK OUT}" "${3:?usage: kernels.sh SRC WORK OUT}"
work=$(cd "$2" && pwd)
out=$(cd "$3" && pwd)
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
arch=${CUDA_ARCH:-90}
flags=(-std=c++20 -O3 "-arch=sm_$arch" -I "$src/include" -I "$src/src" -I "$src/tests"
  -Xcompiler -fPIC,-ffp-contract=off)

objects=()
jobs=()
for file in src/core/{methods,plan,ladder,geometry,rotary_reference,version}.cpp \
  src/kernels/{batch,rotary_table}.cpp src/kernels/cuda/rotary.cu \
  src/capi/{capi,batch,cuda}.cpp tests/gpu/rotary_cuda_test.cpp bench/rotary_cuda_bench.cu; do
  object="$work/${file//\//_}.o"
  "$nvcc" "${flags[@]}" -c "$src/$file" -o "$object" &
  jobs+=($!)
  case $file in src/*) objects+=("$object") ;; esac
done
for job in "${jobs[@]}"; do wait "$job"; done
"$nvcc" "${objects[@]}" "$work/tests_gpu_rotary_cuda_test.cpp.o" -o "$work/rotary_cuda_test"
"$nvcc" "${objects[@]}" "$work/bench_rotary_cuda_bench.cu.o" -o "$work/rotary_cuda_bench"
"$nvcc" -shared "${objects[@]}" -o "$work/libmrrope_cuda.so"

status=0
"$work/rotary_cuda_test" >"$out/test.txt" 2>&1 || status=$?
"$work/rotary_cuda_bench" >"$out/bench.txt" 2>&1 || status=$?
timeout 120 python3 "$src/tools/gpu/rotary_torch.py" "$work/libmrrope_cuda.so" \
  >"$out/torch.txt" 2>&1 || status=$?
tail -n 3 "$out"/*.txt
exit $status
