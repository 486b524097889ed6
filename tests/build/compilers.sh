#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# compilers.sh: clang 19 on this system, and g++ 14 of Debian 13 in a folder, compile all our sources and run the tests
# that need no llama.cpp. The second takes root, mmdebstrap and a Debian mirror: without them it is skipped (77).
# compilers.sh BUILD [CMAKE_ARGUMENT...]: the compiler that these name, into BUILD.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [ $# -gt 0 ]; then
  build=$1
  programs=(core_test kernels_test formats_test eval_test report_test tune_test theory_test export_test)
  cmake -S "$root" --preset clang -B "$build" "${@:2}" >/dev/null
  grep -m 1 'CMAKE_CXX_COMPILER_VERSION' "$build"/CMakeFiles/*/CMakeCXXCompiler.cmake
  ninja -C "$build" --quiet mrrope_engine mrrope_proof mrrope_serve mrrope_cli "${programs[@]}"
  ctest --test-dir "$build" -j "$(nproc)" --output-on-failure -L "^($(IFS='|'; echo "${programs[*]}"))\$" | tail -n 20
  exit
fi
# Its standard library, of g++ 12, uses in std::stable_sort() what it calls deprecated.
"$0" "$root/build/clang-19" -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
  -DCMAKE_CXX_FLAGS=-Wno-deprecated-declarations

. "$root/tests/skipped.sh"
skip() { skipped "the sources were NOT compiled with g++ 14" "$1"; }
[ "$(id -u)" -eq 0 ] || skip "this takes root"
work=$(mktemp -d)
system=$work/debian-13
trap 'umount "$system"/{src,llama,proc} 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
packages=$(sed -n '/^packages=/,/"$/{s/packages=//;s/"//g;p}' "$root/run" | tr -s ' \n' ,)
mmdebstrap --mode=root --variant=apt --include="${packages%,}" trixie "$system" >"$work/log" 2>&1 ||
  skip "Debian 13 could not be made: $(tail -n 1 "$work/log")"
mkdir "$system"/{src,llama}
mount -t proc proc "$system/proc"
mount --bind -o ro "$root" "$system/src"
mount --bind -o ro "$("$root/tools/fetch_llama.sh")" "$system/llama"
chroot "$system" env -i HOME=/tmp LANG=C.UTF-8 PATH=/usr/bin:/bin MRROPE_LLAMA_SOURCE=/llama \
  /src/tests/build/compilers.sh /build -DCMAKE_C_COMPILER=gcc-14 -DCMAKE_CXX_COMPILER=g++-14 -DMRROPE_WERROR=OFF
