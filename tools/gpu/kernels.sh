#!/usr/bin/env bash
# Builds the rotation kernels with their GPU test and benches on a machine that has nvcc and g++ and
# nothing else (no Highway, no gtest, no llama.cpp), runs them, and leaves text in OUT:
#   test.txt             the GPU test
#   bench.txt            prefill compared with the device copy, decode with an empty kernel
#   torch.txt            transformers, eager and compiled (a short note if torch is missing)
#   took.txt             seconds of each step
# Exit code 0 only if the test and every bench ended well; each step runs whatever the others did.
set -euo pipefail
src=$(cd "${1:?usage: kernels.sh SRC WORK OUT}" && pwd)
mkdir -p "${2:?usage: kernels.sh SRC WORK OUT}" "${3:?usage: kernels.sh SRC WORK OUT}"
work=$(cd "$2" && pwd)
out=$(cd "$3" && pwd)
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
arch=${CUDA_ARCH:-90}
flags=(-std=c++20 -O3 "-arch=sm_$arch" -I "$src/include" -I "$src/src" -I "$src/tests"
  -Xcompiler -fPIC,-ffp-contract=off)

# torch compiles its kernels while nvcc compiles ours.
timeout 150 python3 "$src/tools/gpu/rotary_torch.py" --warm >"$out/torch-warm.txt" 2>&1 &
warm=$!
objects=()
jobs=()
compile() { # OBJECT FILE FLAGS...
  "$nvcc" "${flags[@]}" "${@:3}" -c "$src/$2" -o "$work/$1.o" &
  jobs+=($!)
}
for file in src/core/{methods,parameters,plan,ladder}.cpp src/base/text.cpp \
  src/kernels/rotary_table.cpp src/kernels/cuda/rotary.cu src/capi/{capi,cuda}.cpp; do
  name=${file//\//_}
  compile "$name" "$file"
  objects+=("$work/$name.o")
done
compile test tests/gpu/rotary_cuda_test.cpp
compile bench bench/rotary_cuda_bench.cu
for job in "${jobs[@]}"; do wait "$job"; done
for program in test bench; do
  "$nvcc" "${objects[@]}" "$work/$program.o" -o "$work/$program"
done
"$nvcc" -shared "${objects[@]}" -o "$work/libmrrope_cuda.so"

status=0
echo "build $SECONDS" >"$out/took.txt"
step() { # NAME SECONDS COMMAND...
  timeout "$2" "${@:3}" >"$out/$1.txt" 2>&1 || {
    echo "$1: exit code $?" | tee -a "$out/took.txt"
    status=1
  }
  echo "$1 $SECONDS" >>"$out/took.txt"
}
step test 120 "$work/test" # no timing, so beside torch's compiler
wait "$warm" || true
echo "torch-warm $SECONDS" >>"$out/took.txt"
step bench 120 "$work/bench"
step torch 120 python3 "$src/tools/gpu/rotary_torch.py" "$work/libmrrope_cuda.so"
tail -n 3 "$out"/*.txt
cat "$out/took.txt"
exit $status
