#!/usr/bin/env bash
# Builds on a bare GPU machine. See README.md in this folder.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bundle=$(cd "${1:?usage: build.sh BUNDLE WORK}" && pwd)
work=${2:?usage: build.sh BUNDLE WORK}
mkdir -p "$work/llama.cpp" "$work/debs" "$work/files"
work=$(cd "$work" && pwd)

[ -f "$work/llama.cpp/CMakeLists.txt" ] || tar -C "$work/llama.cpp" -xJf "$bundle/llama.tar.xz"
if [ ! -d "$work/debs/usr" ]; then
  tar -C "$work" -xf "$bundle/debs.tar"
  for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/debs"; done
  # Runtime libraries lie in /lib, the links to them in /usr/lib.
  cp -a "$work"/debs/lib/x86_64-linux-gnu/. "$work/debs/usr/lib/x86_64-linux-gnu/"
fi
cmake -S "$root" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_CUDA=ON \
  -DCMAKE_CUDA_ARCHITECTURES="${CUDA_ARCH:-90}" -DMRROPE_LLAMA_SOURCE="$work/llama.cpp" \
  -DCMAKE_PREFIX_PATH="$work/debs/usr" -DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu \
  -DCMAKE_BUILD_RPATH="$work/debs/usr/lib/x86_64-linux-gnu"
cmake --build "$work/build" --target ${TARGET:-mrrope_command}
