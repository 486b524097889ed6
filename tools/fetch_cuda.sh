#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the folder of a CUDA toolkit: the one of nvcc, or where there is none, NVIDIA's packages from PyPI (0.6 GB to
# download), once, outside the tree. Version 13.0: what it compiles runs with every driver of CUDA 13.
set -euo pipefail
if nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc); then
  dirname "$(dirname "$nvcc")"
  exit
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mrrope
toolkit=$cache/cuda-13.0/nvidia/cu13
if [ ! -e "$toolkit/lib64/stubs/libcuda.so" ]; then
  echo "fetching CUDA's compiler and cuBLAS (0.6 GB) ..." >&2
  rm -rf "$cache/cuda-13.0"
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  python3 -m venv "$work"
  "$work/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$work/cuda" \
    "nvidia-cuda-nvcc==13.0.*" "nvidia-nvvm==13.0.*" "nvidia-cuda-crt==13.0.*" "nvidia-cuda-runtime==13.0.*" \
    "nvidia-cuda-cccl==13.0.*" "nvidia-cublas==13.1.0.*" >&2
  # Where CMake and the linker look; and a driver to link with, which only machines with a GPU have.
  cd "$work/cuda/nvidia/cu13"
  ln -s lib lib64
  for file in lib/*.so.*; do ln -s "$(basename "$file")" "${file%.so.*}.so"; done
  mkdir lib/stubs
  printf 'void cu%s(void) {}\n' DeviceGet DeviceGetAttribute GetErrorString MemAddressFree MemAddressReserve MemCreate \
    MemGetAllocationGranularity MemMap MemRelease MemSetAccess MemUnmap |
    cc -shared -fPIC -x c -Wl,-soname,libcuda.so.1 -o lib/stubs/libcuda.so -
  mv "$work/cuda" "$cache/cuda-13.0"
fi
echo "$toolkit"
