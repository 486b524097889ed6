#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# compilers.sh: clang 19 on this system, and g++ 14 of Debian 13 (debian_13.sh), compile all our sources and run the tests
# that need no llama.cpp. Exit code 77: there is no Debian 13.
# compilers.sh BUILD [CMAKE_ARGUMENT...]: the compiler that these name, into BUILD.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [ $# -gt 0 ]; then
  build=$1
  programs=(core_test kernels_test formats_test eval_test report_test tune_test theory_test export_test)
  cmake -S "$root" --preset clang -B "$build" "${@:2}" >/dev/null
  grep -m 1 'CMAKE_CXX_COMPILER_VERSION' "$build"/CMakeFiles/*/CMakeCXXCompiler.cmake
  ninja -C "$build" --quiet mrrope_engine mrrope_proof mrrope_serve mrrope_cli "${programs[@]}"
  ctest --test-dir "$build" --no-tests=error -j "$(nproc)" --output-on-failure \
    -L "^($(IFS='|'; echo "${programs[*]}"))\$" | tail -n 20
  exit
fi
# Its standard library, of g++ 12, uses in std::stable_sort() what it calls deprecated.
"$root/tests/build/compilers.sh" "$root/build/clang-19" -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
  -DCMAKE_CXX_FLAGS=-Wno-deprecated-declarations

. "$root/tests/skipped.sh"
status=0
"$root/tests/build/debian_13.sh" "$(sed -n '/^packages=/,/"$/{s/packages=//;s/"//g;p}' "$root/run")" \
  "$root/tests/build/compilers.sh" /build -DCMAKE_C_COMPILER=gcc-14 -DCMAKE_CXX_COMPILER=g++-14 -DMRROPE_WERROR=OFF ||
  status=$?
[ $status -ne 77 ] || skipped "the sources were NOT compiled with g++ 14" "see the line above"
exit $status
